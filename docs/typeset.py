"""Mathematics becomes MathML while the site is built, so that it reads without scripts and without a network.

A hook of MkDocs: it turns what arithmatex marked (``\\( ... \\)`` and ``\\[ ... \\]``) into markup that browsers draw
themselves. It is here because neither MkDocs nor mkdocstrings typesets mathematics; the usual way is a script loaded
from elsewhere.
"""

from __future__ import annotations

import html as markup
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.S)


def on_page_content(html: str, **_: Any) -> str:
    """Called by MkDocs with the HTML of a page."""
    html = INLINE.sub(lambda found: convert(markup.unescape(found[1].strip())), html)
    return DISPLAY.sub(lambda found: convert(markup.unescape(found[1].strip()), display="block"), html)
