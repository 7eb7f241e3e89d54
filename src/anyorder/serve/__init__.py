"""The service: the questions of Python and of the command line over HTTP, in the same words.

``anyorder serve MODEL ...`` runs it; :func:`anyorder.serve.app.create_app` makes the application for any ASGI server.
It needs the extra ``serve``.

========================  ====================================================================
:mod:`.app`               the application: routes, and what surrounds every request
:mod:`.models`            the models that are served, by name
:mod:`.settings`          who may ask, and how much at once
:mod:`.statements`        what is known, as JSON says it
:mod:`.answers`           the shapes of answers
:mod:`.tables`            tables in and out: JSON, CSV, Parquet, Arrow
:mod:`.unpacking`         Parquet and Arrow, no further than the limits allow
:mod:`.filled`            a filled table, and how sure its cells are
:mod:`.workers`           the threads that answer, and what is answered together
:mod:`.jobs`              long work: how far it is, and an end to it
:mod:`.errors`            one shape for everything that goes wrong
:mod:`.guard`             the size of a request, hosts, tokens
:mod:`.columns`           what is to be known of columns before any question
:mod:`.in_process`        the application without a socket
:mod:`.explore`           ``explore``, for notebooks
:mod:`.notebook`          its widget; needs the extra ``notebook``
:mod:`.metrics`           counts and times, as Prometheus reads them
:mod:`.routes`            one file each for questions, tables, texts, pictures, and the service itself
========================  ====================================================================
"""
