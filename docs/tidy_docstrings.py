"""Docstrings name other objects the Sphinx way (``:class:`Query```); on the site they read as plain code.

Tables drawn with ``=====`` keep their columns. A hook of MkDocs, run over every finished page.
"""

from __future__ import annotations

import re
from typing import Any

ROLE = re.compile(r":(?:mod|class|func|meth|attr|data|exc):<code>(~?)([\w.]+)</code>")
DRAWN = re.compile(r"<p>(={3,} [\s\S]*?={3,})</p>")


def on_page_content(html: str, **_: Any) -> str:
    """Called by MkDocs with the HTML of a page."""
    html = ROLE.sub(lambda found: f"<code>{short(found[2]) if found[1] else found[2]}</code>", html)
    return DRAWN.sub(r"<pre>\1</pre>", html)


def short(name: str) -> str:
    """``~anyorder.query.Query`` is shown as ``Query``."""
    return name.rpartition(".")[2]
