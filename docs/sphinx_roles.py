"""Docstrings name other objects the Sphinx way (``:class:`Query```); on the site these become links.

An extension of Griffe, which reads the docstrings for mkdocstrings: a role becomes one of mkdocstrings' own
cross-references. It is here because mkdocstrings reads only its own syntax. A name that has no entry on the site is
shown as plain code.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:mod|class|func|meth|attr|data|exc):`(?:([^`<]+?)\s*<)?(~?)([\w.]+)>?`")


class SphinxRoles(griffe.Extension):
    """Rewrites the roles of every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by Griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(lambda found: link(obj, *found.groups()), obj.docstring.value)


def link(obj: griffe.Object, title: str | None, short: str, name: str) -> str:
    """A reference to ``name`` as seen from ``obj``, under its title if it has one.

    ``~anyorder.query.Query`` is shown as ``Query``, ``Query.among <anyorder.query.Query.among>`` as ``Query.among``.
    """
    shown = title or (name.rpartition(".")[2] if short or name.startswith(".") else name)
    path = full_path(obj, name)
    return f'<autoref identifier="{path}" optional><code>{shown}</code></autoref>'


def full_path(obj: griffe.Object, name: str) -> str:
    """The dotted path of a name from the top: given in full, from the package (``.base.Head``), or in scope."""
    if name.startswith("."):
        return obj.module.path.rpartition(".")[0] + name
    if name.startswith("anyorder."):
        return name
    first, dot, rest = name.partition(".")
    try:
        return obj.resolve(first) + dot + rest
    except griffe.NameResolutionError:
        # Inherited members are not in scope when docstrings are read, but the class has them on the site.
        owner = obj if obj.is_class else obj.parent
        return name if dot or owner is None or not owner.is_class else f"{owner.path}.{name}"
