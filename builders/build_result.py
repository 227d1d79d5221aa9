"""The result of a build, which `cards` writes: rows, and what the release's documents state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ..release import Change
from ..schema import Row, Struct
from .bank import BankError, read_entries

Count = Annotated[int, Field(ge=0, le=10**12)]
"""Number of entries, rows or images; bounded because a forged manifest may hold any number."""


class ReviewRound(Struct):
    """One round of review of bank content."""

    content: str
    """Bank content that was read."""
    by: Literal["author", "reviewer-model", "human"]
    """Reader: the author, a second language model, or a person."""
    read: Annotated[Count, Field(ge=1)]
    """Entries read."""
    mended: Count
    """Entries changed among them."""
    dropped: Count
    """Entries removed among them."""


class ContentReading(Struct):
    """One reading of rows that were drawn beforehand, with planted faults among them."""

    config: str
    """Config of the rows."""
    language: str = ""
    """Language of the rows, if only rows of one were drawn."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    """Day of the reading, YYYY-MM-DD."""
    by: Literal["reviewer-model", "human"]
    """What the readers are: language models, or people."""
    readers: Annotated[Count, Field(ge=1)]
    """Readers, none of whom saw what another said."""
    read: Annotated[Count, Field(ge=1)]
    """Rows read, without those with a planted fault."""
    serious: Count
    """Rows that any reader finds wrong in a way that may change a number."""
    small: Count
    """Other rows that any reader would mend."""
    planted: Count
    """Rows with a planted fault."""
    seen: Count
    """Planted faults that any reader objected to."""

    @model_validator(mode="after")
    def _parts_of_wholes(self) -> Self:
        if self.serious + self.small > self.read:
            raise ValueError(f"serious {self.serious} and small {self.small} of {self.read} read")
        if self.seen > self.planted:
            raise ValueError(f"seen {self.seen} of {self.planted} planted")
        return self


class PeopleCount(Struct):
    """What people said of the rows of one config, each as most of its readers say."""

    config: str
    """Config of the rows."""
    rows: Annotated[Count, Field(ge=1)]
    """Rows that people read, those that have been revised since among them."""
    accept: Count = 0
    """Rows to be left as they are."""
    edit: Count = 0
    """Rows to be revised."""
    reject: Count = 0
    """Rows to be removed."""
    split: Count = 0
    """Rows on which as many readers say one thing as another."""


class ReaderAgreement(Struct):
    """How far two people agree on the rows that both read."""

    first: Annotated[Count, Field(ge=1)]
    """Number of one reader, by which documents name people."""
    second: Annotated[Count, Field(ge=1)]
    """Number of the other."""
    rows: Annotated[Count, Field(ge=1)]
    """Rows that both read."""
    equal: Count
    """Rows of which both say the same."""
    kappa: Annotated[float, Field(ge=-1, le=1)] | None
    """Cohen's kappa over accept, edit and reject; None where both say one thing throughout."""
    low: Annotated[float, Field(ge=-1, le=1)] | None
    """Lower end of its 95 % interval."""
    high: Annotated[float, Field(ge=-1, le=1)] | None
    """Upper end."""


class PeopleReview(Struct):
    """What people said of rows, and how far they agree."""

    counts: list[PeopleCount]
    """By config."""
    agreement: list[ReaderAgreement]
    """Every two readers with rows that both read."""


class SeedCheck(Struct):
    """How seed images were kept: drawn, judged as they are and mirrored, drawn again."""

    judge: dict[str, str]
    """Identity of the judge that affirmed each kept image."""
    scenes: Count
    """Different seed images that the rows ask for."""
    kept: Count
    """Scenes with an image."""
    drawn: Count
    """Images that were drawn for them."""
    refused: dict[str, int]
    """Tries without a kept image, by reason."""


class Erratum(Struct):
    """A released entry, or one row of it, that was revised, retired or removed."""

    config: str
    """Config that it is in."""
    entry: str
    """Id in the bank."""
    status: Literal["revised", "retired", "removed"]
    """Change to the entry."""
    reason: str
    """Why, one sentence."""
    row: str = ""
    """Id of the row; empty for all rows of the entry."""
    version: str = ""
    """The first version with the change; empty if only the bank has it."""


class Composition(Struct):
    """How the datasheet tabulates the rows of a config: one line per value of one column."""

    by: str
    """Column whose values are the lines."""
    counts: tuple[str, ...] = ()
    """Columns whose values are counted side by side."""
    distinct: tuple[str, ...] = ()
    """Columns whose different values are counted."""
    filled: tuple[str, ...] = ()
    """Columns whose non-empty values are counted."""


class Holdout(Struct):
    """States that rows are held out and commits to which; only the salt tells them."""

    private: bool = False
    """Whether this is the folder with the held-out rows."""
    fraction: float
    """Share of the groups (rows that belong together), in (0, 1)."""
    salt_sha256: str
    """SHA-256 of a fixed prefix and the salt."""
    held_out_sha256: str
    """SHA-256 over the sorted digests, keyed by the salt, of the rows held out."""
    full_hmac: str
    """HMAC-SHA256, keyed by the salt, of the logical digests of the configs before the split."""


@dataclass(frozen=True)
class Division:
    """Assignment of the rows of a full build to the public and the held-out side."""

    held: dict[str, frozenset[str]]
    """Ids by config."""
    commitment: Holdout
    """As the public folder states it."""


@dataclass(frozen=True)
class BuiltConfig:
    """One config, ready to be written."""

    name: str
    """Config name, a key of `schema.ROWS`."""
    rows: list[Row]
    """Rows of the config's type, in release order."""
    planned: int
    """Rows of the config when complete."""
    source: str
    """Paper and section that defines it."""
    summary: str
    """One sentence."""
    license: str
    """SPDX expression of its rows."""
    breakdown: tuple[str, ...]
    """Columns by whose values the card counts the rows."""
    composition: Composition | None
    """How the datasheet tabulates them; None if the card says enough."""
    elsewhere: int = 0
    """Rows in the other folder of a hold-out."""
    added: int = 0
    """How many of the rows, the last ones, are of additions to the frozen draw (v1)."""


@dataclass(frozen=True)
class Build:
    """The result of a build."""

    configs: tuple[BuiltConfig, ...]
    """In the order of the card."""
    changes: tuple[Change, ...]
    """Released versions, newest first; the first is the one being built."""
    seed: int | None
    """Seed of every sampled suite; None if it would rebuild what is held out."""
    seed_images: dict[str, str]
    """Identity of the generator that drew the seed images; empty if there are none."""
    seed_check: SeedCheck | None
    """How a judge chose them, over all rows of the build; None without a judge."""
    bank_sha256: str
    """Digest over the names and bytes of all bank files."""
    reviews: tuple[ReviewRound, ...]
    """Rounds of review of the bank."""
    readings: tuple[ContentReading, ...]
    """Readings of drawn rows."""
    errata: tuple[Erratum, ...]
    """Entries revised or retired since they were first released."""
    people: PeopleReview | None = None
    """What people said of the rows of these configs; None if nobody said anything."""
    holdout: Holdout | None = None
    """Set if a share of the rows is held out."""


def read_changes(bank: Path) -> tuple[Change, ...]:
    """The versions of the bank, newest first. Raises BankError if there is none."""
    file = bank / "changes.yaml"
    changes = read_entries(file, Change)
    if not changes:
        raise BankError(f"{file}: names no version", code="missing-field")
    return tuple(changes)
