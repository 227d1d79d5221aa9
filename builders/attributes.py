"""The bank of attribute pairs: a concept with a rare and a common attribute (CF-World 5.2).

How rare is measured: `cooccurrence.yaml` has, for each pair and for the reference, in how many
captions the concept is named and the attribute is there with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..schema import Sightings, Struct
from ..storage import write_whole
from .bank import BankError, by_name, read_by_name, read_entries

PLACE = "{}"
"""Placeholder of the attribute in prompt and assessment point."""

REFERENCE = "glass-bridge"
"""Name of the counts that no rare attribute may exceed."""
REFERENCE_WORDS = ("bridge", "glass")
"""Concept and attribute counted under that name."""

COUNTS, CAPTIONS = "cooccurrence.yaml", "captions.yaml"

Rarity = Literal["rare", "common"]


class AttributePair(Struct):
    """One concept, two attributes."""

    id: str
    """Slug; never changes."""
    concept: str
    """Thing that has the attribute."""
    rare: str
    """Attribute, place, partner or content that it rarely has."""
    common: str
    """The one that it usually has."""
    prompt: str
    """Sentence with ``{}`` for the attribute."""
    shows: str
    """Assessment point: content that the image must show, with ``{}`` for the attribute."""
    rare_word: str = ""
    """Word to search captions for if the rare attribute is a phrase; empty: the attribute."""
    common_word: str = ""
    """The same for the common attribute."""
    review: tuple[str, ...] = ()
    """Reviewers besides the author: `reviewer-model`, `human`."""

    @property
    def words(self) -> dict[Rarity, tuple[str, str]]:
        """Concept and attribute to look for in captions, by rarity."""
        return {
            "rare": (self.concept, self.rare_word or self.rare),
            "common": (self.concept, self.common_word or self.common),
        }


class CaptionSource(Struct):
    """Captions in which attributes were counted; the captions themselves are not in the bank."""

    name: str
    """Data set, with its split."""
    license: str
    """Under which its captions are published."""
    captions: int
    """Different captions that it adds to those of the sources before it."""


class Cooccurrence(Struct):
    """In how many captions a concept is named, and an attribute with it."""

    name: str
    """Id of the pair with `/rare` or `/common`, or `glass-bridge`."""
    concept: int
    """Captions that name the concept."""
    together: int
    """Captions among those with the attribute's word anywhere."""
    linked: int
    """Captions among those whose parse links both."""


@dataclass(frozen=True)
class Counted:
    """Counts in captions (`cooccurrence.yaml`) and their sources (`captions.yaml`)."""

    counts: Mapping[str, Cooccurrence]
    """Name of the count -> count; empty if the bank has none."""
    sources: tuple[CaptionSource, ...]
    """Sources of the captions that were counted."""

    def sightings(self, name: str) -> Sightings:
        """Returns the counts of one name, zeros if it was not counted."""
        count = self.counts.get(name)
        if count is None:
            return Sightings(captions=0, concept=0, together=0, linked=0, source="")
        return Sightings(
            captions=sum(source.captions for source in self.sources),
            concept=count.concept,
            together=count.together,
            linked=count.linked,
            source=", ".join(source.name for source in self.sources),
        )


def read_attributes(bank: Path) -> list[AttributePair]:
    """Every pair, checked. Raises BankError naming the entry."""
    file = bank / "attributes.yaml"
    pairs = read_entries(file, AttributePair)
    by_name(pairs, "id", str(file))
    for pair in pairs:
        if pair.prompt.count(PLACE) != 1 or pair.shows.count(PLACE) != 1:
            raise BankError(
                f"{file}, {pair.id}: prompt and shows each hold {PLACE} once", code="bad-entry"
            )
        if pair.rare == pair.common:
            raise BankError(f"{file}, {pair.id}: rare and common are the same", code="bad-entry")
    return pairs


def read_counts(bank: Path) -> Counted:
    """Reads and checks the counts in captions. Raises BankError naming file and entry."""
    path = bank / COUNTS
    counts = read_by_name(path, Cooccurrence, "name")
    sources = read_by_name(bank / CAPTIONS, CaptionSource, "name")
    if counts and not sources:
        raise BankError(
            f"{path}: {bank / CAPTIONS} must name the captions that were counted",
            code="no-such-file",
        )
    for name, some in counts.items():
        if not 0 <= some.linked <= some.together <= some.concept:
            raise BankError(
                f"{path}, {name}: needs linked <= together <= concept", code="out-of-range"
            )
    return Counted(counts, tuple(sources.values()))


def write_counts(path: Path, counts: Iterable[Cooccurrence]) -> None:
    """Writes counts as a bank file, a line each."""
    lines = "".join(
        f"- {{name: {c.name}, concept: {c.concept}, together: {c.together}, linked: {c.linked}}}\n"
        for c in counts
    )
    write_whole(
        path, f"# Counted by `counterprior author rarity`, in the captions of {CAPTIONS}.\n{lines}"
    )


def count_anew(
    counts_by_name: Mapping[str, tuple[int, int, int]],
    sources: tuple[CaptionSource, ...],
    out: Path | None = None,
) -> Counted:
    """Builds counts that replace the bank's and, with `out`, writes them as a bank file.

    counts_by_name: captions with the concept, with both, with both linked.
    """
    entries = {
        name: Cooccurrence(name=name, concept=concept, together=together, linked=linked)
        for name, (concept, together, linked) in counts_by_name.items()
    }
    if out is not None:
        write_counts(out, entries.values())
    return Counted(entries, sources)


def sought(pairs: list[AttributePair]) -> dict[str, tuple[str, str]]:
    """Concept and attribute to count, by name, the reference first."""
    words_by_name = {REFERENCE: REFERENCE_WORDS}
    for pair in pairs:
        words_by_name |= {f"{pair.id}/{rarity}": words for rarity, words in pair.words.items()}
    return words_by_name


def rarity_faults(pairs: list[AttributePair], counted: Counted) -> Iterator[tuple[str, str]]:
    """Yields (id, message) for pairs that are not rare or not counted; none without counts."""
    if not counted.counts:
        return
    expected = set(sought(pairs))
    for name in sorted(expected - set(counted.counts)):
        yield name, f"is not in {COUNTS}: count it (`counterprior author rarity`)"
    reference = counted.sightings(REFERENCE)
    for pair in pairs:
        rare = counted.sightings(f"{pair.id}/rare")
        if rare.linked > reference.linked:
            yield (
                pair.id,
                f"{pair.rare!r} is linked with {pair.concept!r} in {rare.linked} captions, "
                f"glass with bridge in {reference.linked}: choose a rarer one",
            )
