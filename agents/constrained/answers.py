"""Answers of the three roles. Bounds of texts are checked item by item, not here: one bad
item must not cost the others."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...schema import Frame, Struct

Grade = Annotated[int, Field(ge=0, le=5)]


class Proposal(Struct):
    """A pair that the Scout proposes."""

    domain: str
    """One of the listed domains, spelled as listed."""
    left: str
    """Noun phrase of what the viewer sees on the left."""
    right: str
    """Noun phrase of what the viewer sees on the right."""
    context: str
    """Where they are and from where one looks; follows the two in the sentence."""
    frame: Frame
    """Who looks, from where: one of the listed frames. The context must say it."""
    fact: str
    """Id of the listed fact table that holds both things; empty where none does."""
    family: str
    """Slug of the layout fact that the pair rests on, e.g. `qwerty`; shared by pairs that would be
    right or wrong together."""
    scope: str
    """Where it holds: universal, or a country, system or variant."""
    standard: str
    """The authority that fixes the layout."""
    rationale: str
    """Why left is left, one sentence."""
    failure: str
    """What a generator that follows the order of mention would draw."""


class Scouting(Struct):
    """A round's proposals."""

    proposals: list[Proposal] = Field(max_length=60)
    """The pairs."""
    notes: str
    """For the next round: gaps seen, domains that run dry."""


class Scores(Struct):
    """The Critic's marks for the round, 0 worst to 5 best."""

    diversity: Grade
    """Are the pairs unlike each other and unlike the bank?"""
    coverage: Grade
    """Do they fill the measured gaps?"""
    failure_exposure: Grade
    """Would a generator that follows the order of mention fail?"""
    archive_completeness: Grade
    """Are standard, rationale and viewpoint complete?"""


class Return(Struct):
    """A proposal that the Critic sends back for what its image shows."""

    proposal: int
    """Its number."""
    why: str
    """What the image shows, one sentence."""


class Criticism(Struct):
    """The Critic's review of a round."""

    scores: Scores
    """Marks."""
    strengths: str
    """What is good, two sentences at most."""
    weaknesses: str
    """What is not, two sentences at most."""
    arbitrary: list[int] = Field(max_length=60)
    """Numbers of proposals whose layout nothing fixes, or that name a side, or are wrong."""
    returned: list[Return] = Field(max_length=60)
    """Proposals whose image shows another order than their sentence says, or two things that nobody
    could tell apart; empty where no image is shown."""
    directives: list[str] = Field(max_length=12)
    """What the Scout is to do next round, one order each."""


class NewStandard(Struct):
    """An authority that the registry lacks; a person decides on it."""

    title: str
    """Full title."""
    edition: str
    """Year or edition."""
    publisher: str
    """Who publishes it."""
    fixes: str
    """What it fixes, one sentence."""


class Entry(Struct):
    """An entry for the bank, or a change to one."""

    proposal: int
    """Number of the proposal it is made from; 0 when an entry is revised or retired."""
    status: Literal["new", "revised", "retired"]
    """`new`, or what becomes of the entry named in `entry`."""
    entry: str
    """Id of the entry to revise or retire; empty when new."""
    erratum: str
    """Why it is revised or retired, one sentence; empty when new."""
    domain: str
    """One of the listed domains."""
    left: str
    """Noun phrase, e.g. `the Q key`; never says left or right."""
    right: str
    """Noun phrase; never says left or right."""
    context: str
    """Starts with in, on, at or another preposition; fixes the viewpoint where it matters."""
    frame: Frame
    """Who looks, from where: one of the listed frames. The context must say it."""
    fact: str
    """Id of the listed fact table that holds both things; empty where none does."""
    family: str
    """Slug of the layout fact that the pair rests on."""
    text_bound: bool
    """Whether the two are told apart only by reading digits or letters."""
    standards: list[str] = Field(max_length=6)
    """Ids in the registry that fix the layout, at least one."""
    rationale: str
    """Why left is left."""
    tell_left: str
    """How one recognises the left thing in a picture."""
    tell_right: str
    """How one recognises the right thing in a picture."""
    mirror_safe: bool
    """Whether a mirrored picture is a possible picture with the two exchanged."""
    scope: str
    """Where it holds: universal, or a country, system or variant."""
    new_standard: NewStandard | None
    """Only where no registered standard fits: the authority to consider. The entry then waits."""


class Curation(Struct):
    """A round's entries."""

    entries: list[Entry] = Field(max_length=60)
    """New, revised and retired entries."""
    notes: str
    """For the archive: what was left out and why."""
