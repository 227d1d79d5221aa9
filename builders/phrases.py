"""English for prompts: articles, lists of noun phrases, and words that prompts may not contain."""

from __future__ import annotations

import re

SPATIAL_WORDS = (
    "left right leftmost rightmost above below beneath underneath under beside between behind "
    "in_front front_of near next_to adjacent alongside opposite middle center centre upper lower "
    "topmost bottommost foreground background flanking west east western eastern"
).split()
"""Words that say where a thing is, with `_` for a space; neutral prompts contain none of them.

`front`, `over` and `top` alone are missing: a front paw and rolling over are no places.
"""

_SPATIAL = re.compile(rf"\b({'|'.join(SPATIAL_WORDS).replace('_', ' ')})\b", re.IGNORECASE)
_LEFT_RIGHT = re.compile(r"\b(?:left|right)(?:most|wards?|-?hand(?:ed|er)?)?\b", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(an?) ([a-z]+)", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"(?i:uni(?!n)|use|usu|one|once|eu)")
_VOWEL_SOUND = re.compile(r"(?:hour|honest|heir|x(?![aeiouy]))", re.IGNORECASE)


def article(noun: str) -> str:
    """`a` or `an`, by the first sound of the noun phrase.

    >>> article("owl"), article("unicycle"), article("male architect")
    ('an', 'a', 'a')
    """
    if _CONSONANT_SOUND.match(noun):
        return "a"
    return "an" if noun[0].lower() in "aeiou" or _VOWEL_SOUND.match(noun) else "a"


def indefinite(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"{article(noun)} {noun}"


COMPUTER = ("keyboard", "mouse")
"""COCO labels that mean parts of a computer, and may also mean a part of a piano or an animal."""


def in_one_sense(label: str) -> str:
    """A COCO label as a prompt says it, so that it means what COCO means by it.

    >>> in_one_sense("mouse"), in_one_sense("cat")
    ('computer mouse', 'cat')
    """
    return f"computer {label}" if label in COMPUTER else label


def sentence(text: str) -> str:
    """The text as a sentence: first letter in upper case, one period at the end."""
    text = text[0].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def listing(phrases: list[str]) -> str:
    """Phrases joined in order.

    >>> listing(["one cat", "one dog", "one fox"])
    'one cat, one dog and one fox'
    """
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " and " + phrases[-1]


def spatial_word(text: str) -> str | None:
    """The first spatial word in the text, or None.

    >>> spatial_word("One cat next to one dog.")
    'next to'
    """
    match = _SPATIAL.search(text)
    return match.group(1) if match else None


def side_word(text: str) -> str | None:
    """The first word that names a side (left, right-hand, ...), or None."""
    match = _LEFT_RIGHT.search(text)
    return match.group(0) if match else None


def wrong_article(text: str) -> str | None:
    """The first wrong article, with the word after it, or None.

    >>> wrong_article("A photo of a apple.")
    'a apple'
    """
    for match in _ARTICLE.finditer(text):
        written, word = match.groups()
        # "A" before a noun may also be a name (the A key), and an abbreviation may be spelled or
        # spoken (a US map, an FDI chart, a U-shaped tube).
        abbreviation = word.isupper()
        if written != "A" and not abbreviation and written.lower() != article(word):
            return match.group(0)
    return None
