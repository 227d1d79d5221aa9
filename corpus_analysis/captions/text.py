"""The text that prefilter and parser both read.

Losslessness is meant relative to this text: what the parser would misread (character references,
zero-width and full-width letters, glued "cat+dog") is mended before either sees it.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata

DIRTY = r"[^ -~]|  |^ | $|[A-Za-z][&+][A-Za-z]|&#?\w+;"
"""RE2 and Python: what a caption holds that `normalise` may change; it leaves others alone."""

_ENTITY = re.compile(r"&#?\w+;")
_GLUE = re.compile(r"(?<=[^\W\d_])([&+])(?=[^\W\d_])")
_INVISIBLE = dict.fromkeys(
    i for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)) == "Cf"
)


def normalise(caption: str) -> str:
    """References resolved, NFKC, no format characters, single spaces, "+" and "&" set apart.

    The raw caption stays in its own column.

    >>> normalise("a cat&amp;amp;dog \u200bnear a  \uff54ree+house")
    'a cat & dog near a tree + house'
    """
    # Twice, because "&amp;amp;" occurs; one reference at a time, because html.unescape of the whole
    # knows references without a semicolon and would eat "black&notebook".
    if "&" in caption:
        for _ in range(2):
            caption = _ENTITY.sub(lambda m: html.unescape(m[0]), caption)
    if not caption.isascii():
        caption = unicodedata.normalize("NFKC", caption).translate(_INVISIBLE)
    return " ".join(_GLUE.sub(r" \1 ", caption).split())
