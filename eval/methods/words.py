"""The places in a prompt of the things that its relations are about: whole words, and of several
occurrences the one that the relation is stated of."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

CUES = re.compile(
    r"\b(?:left|right|above|below|top|atop|bottom|over|under|underneath|beneath|near|next|close|"
    r"far|inside|within|surrounding|around|between)\b",
    re.IGNORECASE,
)
"""Words that state a relation of what stands before and behind them."""


class PromptWord(NamedTuple):
    """A thing where a prompt names it."""

    name: str
    """Its name in the row."""
    start: int
    """First character."""
    end: int
    """Character after the last."""


def place_claims(
    prompt: str, claims: Sequence[tuple[str, str, str]]
) -> list[tuple[PromptWord, str, PromptWord]]:
    """Each claim (thing, relation, thing) with both things where the prompt states it.

    Of several occurrences those count that have a word of space between them, then those in the
    order of the claim, then the nearest. Raises ValueError for a thing that is no whole word of the
    prompt, and for one that occurs only within the name of another.
    """
    names = dict.fromkeys(name for a, _, b in claims for name in (a, b))
    places = {name: find_word(prompt, name, names) for name in names}

    def rank(pair: tuple[PromptWord, PromptWord]) -> tuple[bool, bool, int, int]:
        a, b = pair
        first, second = sorted(pair, key=lambda word: word.start)
        silent = CUES.search(prompt, first.end, second.start) is None
        return silent, a.start > b.start, second.start - first.end, first.start

    placed = []
    for a, relation, b in claims:
        pairs = ((first, second) for first in places[a] for second in places[b])
        first, second = min(pairs, key=rank)
        placed.append((first, relation, second))
    return placed


def find_word(prompt: str, name: str, names: Collection[str] = ()) -> list[PromptWord]:
    """Occurrences of a name as whole words, or of its plural, outside of the other `names`.

    >>> find_word("A hot dog to the left of a dog.", "dog", ["hot dog"])
    [PromptWord(name='dog', start=27, end=30)]
    """
    occurrences = _whole_words(prompt, name)
    if not occurrences:
        raise ValueError(f"{name!r} is not in the prompt {prompt!r} as a word")
    longer = [
        word for other in names if len(other) > len(name) for word in _whole_words(prompt, other)
    ]
    free = [
        word
        for word in occurrences
        if not any(other.start <= word.start and word.end <= other.end for other in longer)
    ]
    if not free:
        holder = next(other.name for other in longer if name.lower() in other.name.lower())
        raise ValueError(
            f"the words of {name!r} and {holder!r} are the same in the prompt {prompt!r}: "
            f"{name!r} occurs only within {holder!r}, so that the two can't be guided apart"
        )
    return free


def _whole_words(prompt: str, name: str) -> list[PromptWord]:
    # The plural only where the name itself does not occur: "skis" is not "ski".
    for ending in ("", "(?:s|es)"):
        pattern = rf"(?<![\w-]){re.escape(name)}{ending}(?![\w-])"
        if matches := list(re.finditer(pattern, prompt, re.IGNORECASE)):
            return [PromptWord(name, *match.span()) for match in matches]
    return []
