"""Normalizes the text that prefilter and parser both read.

The prefilter is lossless relative to this text: what the parser would misread (character
references, zero-width and full-width letters, a joined "cat+dog") is repaired first.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

DIRTY = r"[^ -~]|  |^ | $|[A-Za-z][&+][A-Za-z]|&#?\w+;"
"""Pattern for RE2 and Python: matches every caption that `normalize` may change."""

_ENTITY = re.compile(r"&#?\w+;")
_GLUE = re.compile(r"(?<=[^\W\d_])([&+])(?=[^\W\d_])")
_AGENCY = re.compile(
    r"(?i)(?<=\w)\W*\s(?:(?:free|premium|vector)\s+)?(?:royalty[- ]free\s+)?"
    r"(?:stock|royalty[- ]free)\s+(?:(?:vector|video)\s+)?(?:photos?|photography|photographs?|"
    r"images?|pictures?|illustrations?|vectors?|footage|video|graphics?)[\W\d]*$"
    r"|(?<=\w)\s+[-\u2013\u2014|]\s*(?:photos?|fotos?|images?|pictures?|jpe?g)[\W\d]*$"
)
"""Additions of agencies after a caption: "- Royalty Free Stock Photo #1234", "- JPG"."""
_IMAGES = ("photo", "image", "stock", "foto", "picture", "jp", "royalty")
_ENDING = 40
"""Characters in which an agency names the kind of image, and its number."""
_CLOSE_UP = re.compile(r"\b[Cc]lose(?:[- ]| - )up(?= (?:of|view|shot|photo)\b)")


@cache
def hard() -> str:
    """RE2 pattern: matches captions whose normalized text may have other words of ASCII letters.

    That is all but ASCII and characters known to be harmless: no compatibility forms, no marks that
    combine with a letter, nothing invisible or lower-cased to ASCII. Checked character by character
    in the blocks that captions mostly use.
    """
    blocks = (range(0x80, 0x2FF), range(0x370, 0x530), range(0x2010, 0x2700), range(0x4E00, 0x9FB0))
    harmless = [chr(i) for block in blocks for i in block if _harmless(chr(i))]
    return rf"&#?\w+;|[^\x00-\x7f{_ranges(harmless)}]"


def hard_rows(captions: pa.StringArray) -> pa.BooleanArray:
    """Mask of the captions that match `hard`; null doesn't.

    Few hold one of the bytes that such a match begins with, and RE2 sees only these.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_hard = np.zeros(len(captions), bool)
    if not len(captions):  # its buffers may be missing
        return pa.array(is_hard)
    _, ends, data = captions.buffers()
    kind = np.int64 if pa.types.is_large_string(captions.type) else np.int32
    offsets = np.frombuffer(ends, kind)[captions.offset :][: len(captions) + 1]
    first, last = offsets[[0, -1]]
    read = np.frombuffer(data or b"", np.uint8)[first:last]
    begins = ((read == ord("&")) | (read >= 0x80)).nonzero()[0] + first
    rows = np.unique(offsets.searchsorted(begins, "right") - 1)
    hits = pc.match_substring_regex(captions.take(pa.array(rows)), hard())
    is_hard[rows] = hits.fill_null(False).to_numpy(zero_copy_only=False)
    return pa.array(is_hard)


def _harmless(char: str) -> bool:
    folded = unicodedata.normalize("NFKC", char).lower()
    marks = unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn", "Mc", "Me")
    return not marks and not re.search(r"[a-z,;&+/]", folded)


def _ranges(chars: list[str]) -> str:
    """The characters as ranges of an RE2 character class."""
    spans: list[list[int]] = []
    for code in map(ord, chars):
        if spans and spans[-1][1] == code - 1:
            spans[-1][1] = code
        else:
            spans.append([code, code])
    return "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in spans)


def normalize(caption: str) -> str:
    """Resolves references, applies NFKC, drops format characters, and spaces words, "+" and "&".

    The raw caption is kept in its own column.

    >>> normalize("a cat&amp;amp;dog \u200bnear a  \uff54ree+house")
    'a cat & dog near a tree + house'
    """
    # Twice, since "&amp;amp;" occurs; one reference at a time, since html.unescape of a whole text
    # also resolves references without a semicolon and would change "black&notebook".
    if "&" in caption:
        for _ in range(2):
            caption = _ENTITY.sub(lambda m: html.unescape(m[0]), caption)
    if not caption.isascii():
        caption = unicodedata.normalize("NFKC", caption)
        for char in set(caption):
            if unicodedata.category(char) == "Cf":  # invisible
                caption = caption.replace(char, "")
    if "&" in caption or "+" in caption:
        caption = _GLUE.sub(r" \1 ", caption)
    return " ".join(caption.split())


def readable(text: str) -> str:
    """Text for the parser: the caption from its start, to which all offsets refer.

    Capitals alone would make every word a name, an agency's words would be what a caption is about,
    and what a close-up shows would belong to "up", so that another word of its length stands there.

    >>> readable("A CAT AND A DOG"), readable("A cat at CERN")
    ('a cat and a dog', 'A cat at CERN')
    >>> readable("Girl with a box Royalty Free Stock Photo"), readable("Stock photo")
    ('Girl with a box', 'Stock photo')
    >>> readable("Cat on a mat - Photo"), readable("Close up of a cat")
    ('Cat on a mat', 'Snapshot of a cat')
    """
    if text.isascii() and text.isupper():
        text = text.lower()
    end = text[-_ENDING:].lower()
    if any(word in end for word in _IMAGES):
        text = _AGENCY.sub("", text)
    return _CLOSE_UP.sub(_snapshot, text) if "lose" in text else text


def _snapshot(close_up: re.Match[str]) -> str:
    word = "photograph" if " - " in close_up[0] else "snapshot"
    return word.capitalize() if close_up[0][0].isupper() else word
