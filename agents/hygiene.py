"""Checks of texts that models write before they enter another role's prompt or a bank.

A bank's texts become prompts, YAML, cards and web pages, and the next role reads a proposal. So a
text must be one line of plain characters without anything that reads as an instruction or markup.
Look-alikes of Latin letters are rejected, because they defeat every later check.
"""

from __future__ import annotations

import re
import unicodedata

SYMBOLS = frozenset("ΩΔΣΠΦΨΘΛΞΓπσμλθφψωδ")
"""Greek letters that stand for quantities and look like no Latin letter."""

_LAST_LATIN = "\u017f"
"""End of Latin Extended-A; later Latin letters are phonetic or look-alikes."""

_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}"
    r"\b(?:previous|prior|above|earlier|all|any|these|those|your|the)\b.{0,40}"
    r"\b(?:instruction|rule|prompt|message|direction|constraint|guideline|check)s?\b"
    r"|\b(?:system|developer)\s+(?:prompt|message)\b"
    r"|\bas an ai\b|\blanguage model\b|\bjailbreak"
    r"|\byou\s+(?:are\s+now|must|should|will\s+now)\b"
    r"|\b(?:answer|respond|reply|output|print|return|score|rate|accept|approve)\s+"
    r"(?:only|with|this|every|all|it|everything)\b"
    r"|\b(?:assistant|user)\s*:",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"</?[a-z][^>]{0,80}>|```|\[/?INST\]|<\||\|>|https?:|www\.|\$\{|\{\{|!\[", re.I
)


def text_fault(text: str, limit: int, *, latin: bool = True) -> str | None:
    """Returns the fault of a text that may have `limit` characters, or None.

    No word may mix scripts. With `latin`, only letters of Latin and East Asian scripts and
    `SYMBOLS` are allowed, since other scripts have look-alikes.

    >>> text_fault("the Q key", 100)
    >>> text_fault("the " + chr(0x430) + " key", 100).partition(" (")[2]
    'CYRILLIC SMALL LETTER A)'
    """
    if len(text) > limit:
        return f"has {len(text)} characters, may have {limit}"
    if text != " ".join(text.split()) or not text:
        return "is not one line of words with single spaces"
    if (bad := next((c for c in text if not _plain(c)), None)) is not None:
        return f"holds the character U+{ord(bad):04X}"
    if unicodedata.normalize("NFC", text) != text:
        return "is not in Unicode normal form C"
    for word in text.split():
        if (strange := _strange_letter(word, latin)) is not None:
            return f"holds {strange!r} ({unicodedata.name(strange, 'unnamed')})"
    if (match := _INSTRUCTION.search(text) or _MARKUP.search(text)) is not None:
        return f"reads as an instruction or markup: {match.group(0)!r}"
    return None


def one_line(text: str, limit: int) -> str:
    """The text as one line of at most `limit` plain characters, to quote one model to another."""
    plain = "".join(c if _plain(c) else " " for c in text)
    line = " ".join(plain.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def skeleton(text: str) -> str:
    """The text without case, accents, marks and first article: equal for texts that read alike.

    >>> skeleton("The \uff31-key"), skeleton("the Q key")
    ('q key', 'q key')
    """
    folded = unicodedata.normalize("NFKD", text.casefold()).translate(_LOOKALIKES)
    letters = "".join(c for c in folded if not unicodedata.combining(c))
    words = re.findall(r"[^\W_]+|[^\s\w]", letters)
    # Only the first word can be an article: "A" in "the A key" is none.
    without_article = words[1:] if words[:1] and words[0] in _ARTICLES else words
    # A key or sign may be named by a mark alone.
    return " ".join([w for w in without_article if w[0].isalnum()] or without_article)


_ARTICLES = {"a", "an", "the"}
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһвкмнтԛԝαβεικνορτυχıɡɑⅼ",
    "aeopcyxijsdhbkmhtqwabeiknoptuxigal",
)
"""Cyrillic and Greek letters, lower case, that are drawn as Latin ones."""


def _plain(character: str) -> bool:
    if character == " ":
        return True
    category = unicodedata.category(character)
    return category[0] not in "CZ" and category != "Nl" and not unicodedata.combining(character)


def _strange_letter(word: str, latin: bool) -> str | None:
    letters = [c for c in word if c.isalpha() and c not in SYMBOLS]
    foreign = [c for c in letters if not _is_latin(c)]
    if foreign and len(foreign) < len(letters):
        return foreign[0]
    return next((c for c in foreign if latin and not _is_distinct(c)), None)


def _is_distinct(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("CJK ", "HANGUL ", "HIRAGANA ", "KATAKANA "))


def _is_latin(letter: str) -> bool:
    return letter <= _LAST_LATIN
