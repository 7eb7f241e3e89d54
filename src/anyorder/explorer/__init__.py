"""The page that ``anyorder serve`` gives at ``/``: files that are served as they are."""
