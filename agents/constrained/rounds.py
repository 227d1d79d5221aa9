"""Inputs and outputs of a run of the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..pairs import KnownPair
from .answers import Criticism, Proposal, Return


@dataclass(frozen=True)
class LoopSettings:
    """When the loop ends, and how much a round asks for."""

    rounds: int = 20
    """Rounds at most."""
    target: int = 400
    """Pairs in the bank, including those it starts with."""
    patience: int = 3
    """Rounds in a row without an accepted entry after which the loop is saturated."""
    proposals: int | None = None
    """Proposals that a round asks for; None for the missing pairs over the rounds that remain."""
    domains: tuple[str, ...] = ()
    """Domains to add to those of the bank."""
    eyes: bool = False
    """Whether the Critic is shown the drawn image of each proposal; its model must see images."""
    planned: int | None = None
    """Rounds over which the missing pairs are spread; None for `rounds`. A run that is resumed with
    more rounds keeps its plan."""
    lists_flagged: bool = True
    """Whether the Scout is told which proposals the Critic flagged. Ledgers of earlier versions
    were recorded without."""


@dataclass(frozen=True)
class BankContract:
    """Access of the loop to the bank; made by the room that owns the bank."""

    domains: tuple[str, ...]
    """Domains that exist."""
    standards: Mapping[str, str]
    """Id -> title and what it fixes."""
    frames: tuple[str, ...]
    """Frames of reference, each with its meaning."""
    facts: tuple[str, ...]
    """Fact tables from which code derives the left thing, each with its frames and parts."""
    pairs: tuple[KnownPair, ...]
    """Entries of the bank that are not retired."""
    ids: frozenset[str]
    """Ids that are taken, including those of retired entries."""
    faults: Callable[[str, Mapping[str, Any]], list[str]]
    """Returns the faults of an entry of a domain; empty if it may enter the bank."""
    draw: Callable[[Proposal], bytes | None]
    """The PNG of a proposal in the layout of its fact, whatever it calls left; None if the bank
    can't draw it."""


@dataclass(frozen=True)
class Written:
    """One accepted entry."""

    domain: str
    """Its domain."""
    entry: Mapping[str, Any]
    """The entry as the bank stores it."""


@dataclass(frozen=True)
class Rejected:
    """One proposal or entry that goes no further."""

    by: str
    """`hygiene`, `critic`, `image` (the Critic saw it), `bank`, `duplicate`, `protocol` or
    `standard` (it waits for one)."""
    what: str
    """The pair, cut and cleaned."""
    why: str
    """The reason."""


@dataclass
class Round:
    """Record of one round, as the archive keeps it."""

    number: int
    """From 1."""
    calls: list[str] = field(default_factory=list)
    """Ledger ids of its calls."""
    requested: int = 0
    """Proposals that the Scout was asked for."""
    failure: str = ""
    """Role without a usable answer, and the reason; empty in a complete round."""
    proposals: list[Proposal] = field(default_factory=list)
    """Proposals passed on to the Critic, numbered from 1."""
    shown: tuple[int, ...] = ()
    """Numbers of the proposals whose image the Critic was shown."""
    criticism: Criticism | None = None
    """The Critic's review."""
    accepted: list[Written] = field(default_factory=list)
    """New and changed entries."""
    rejected: list[Rejected] = field(default_factory=list)
    """Everything else."""
    standards: list[dict[str, Any]] = field(default_factory=list)
    """Proposed authorities with the entry that waits for each."""
    notes: list[str] = field(default_factory=list)
    """The Scout's and the Curator's."""

    @property
    def returned(self) -> dict[int, Return]:
        """Proposals that the Critic sent back for an image that it was shown, by number."""
        listed = self.criticism.returned if self.criticism else ()
        return {back.proposal: back for back in listed if back.proposal in self.shown}

    @property
    def flagged(self) -> list[int]:
        """Proposals that the Critic flagged as arbitrary, without those that it sent back."""
        listed = {*self.criticism.arbitrary} if self.criticism else set()
        return sorted((listed & {*range(1, len(self.proposals) + 1)}) - {*self.returned})

    def archive(self) -> dict[str, Any]:
        """The round as plain data."""
        plain = asdict(replace(self, proposals=[], criticism=None))
        del plain["requested"]  # archives of earlier versions lack it
        plain["proposals"] = [p.model_dump() for p in self.proposals]
        plain["criticism"] = self.criticism.model_dump() if self.criticism else None
        return plain


@dataclass
class Authored:
    """Results of a run."""

    rounds: list[Round]
    """Every round, in order."""
    entries: dict[str, Written]
    """New and changed entries of the bank by id."""
    stopped: str
    """`target`, `rounds`, `saturation`, `budget`, or `ledger` (the end of a replay)."""
    reason: str = ""
    """The budget's message if it stopped the run."""

    @property
    def standards(self) -> list[dict[str, Any]]:
        """Authorities that a person has to decide on."""
        return [standard for r in self.rounds for standard in r.standards]
