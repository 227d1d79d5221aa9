"""Votes of people on rows that they read, from the page of `audit serve --kind bank`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Literal, TypeVar, get_args

from pydantic import Field

from ..eval.stats.agreement import cohen_kappa, confusion
from ..human_labels import most_common
from ..schema import Row, Struct, content_digest
from .bank import read_by_name
from .build_result import PeopleCount, PeopleReview, ReaderAgreement

HUMAN = "human"
"""Mark of a row that people accepted as it is."""

RowDecision = Literal["accept", "edit", "reject"]
DECISIONS: tuple[RowDecision, ...] = get_args(RowDecision)

R = TypeVar("R", bound=Row)


class RowVotes(Struct):
    """What people said of one row."""

    row: str
    """Id of the row."""
    read: str
    """Digest of the row that they read: a vote is worth nothing once the row is another one."""
    votes: dict[str, RowDecision] = Field(min_length=1)
    """Decision by reader."""

    @property
    def said(self) -> str:
        """Decision of most readers; empty where they are evenly split."""
        return most_common(Counter(self.votes.values())) or ""

    @property
    def config(self) -> str:
        return self.row.rpartition("-")[0]


Votes = Mapping[str, RowVotes]
"""Id of a row -> what people said of it."""


def read_votes(bank: Path) -> dict[str, RowVotes]:
    """What people said of the rows of a bank; none where it has no such file.

    Raises BankError for an entry that can't be read or a row that is there twice.
    """
    return read_by_name(bank / "votes.yaml", RowVotes, "row")


def vote_on(row: Row, votes: Votes) -> str:
    """Returns the vote on a row in its current form; empty if nobody read that form, or for an
    even split."""
    vote = votes.get(row.id)
    return vote.said if vote is not None and vote.read == content_digest(row) else ""


def voted(row: R, votes: Votes) -> R:
    """The row with the mark of the people who accepted it in its current form."""
    if vote_on(row, votes) != "accept" or HUMAN in row.review:
        return row
    return row.model_copy(update={"review": [*row.review, HUMAN]})


def review_by_people(votes: Votes, configs: Collection[str]) -> PeopleReview | None:
    """What people said of the rows of these configs, and how far every two readers agree.

    Counts also what was said of rows that have been revised since. None without a vote.
    """
    of_configs = [vote for _, vote in sorted(votes.items()) if vote.config in configs]
    if not of_configs:
        return None
    said = {name: Counter[str]() for name in configs}
    for vote in of_configs:
        said[vote.config][vote.said or "split"] += 1
    return PeopleReview(
        counts=[
            PeopleCount(config=name, rows=counts.total(), **counts)
            for name, counts in said.items()
            if counts
        ],
        agreement=list(_agreement(of_configs)),
    )


def _agreement(votes: Collection[RowVotes]) -> Iterator[ReaderAgreement]:
    """Every two readers with rows that both read; readers by number, in the order of names."""
    readers = sorted({name for vote in votes for name in vote.votes})
    for (first, one), (second, other) in combinations(enumerate(readers, 1), 2):
        both = [vote.votes for vote in votes if one in vote.votes and other in vote.votes]
        if not both:
            continue
        matrix = confusion([v[one] for v in both], [v[other] for v in both], DECISIONS)
        kappa = cohen_kappa(matrix)
        undefined = isnan(kappa.value)
        yield ReaderAgreement(
            first=first,
            second=second,
            rows=len(both),
            equal=int(matrix.trace()),
            kappa=None if undefined else round(kappa.value, 4),
            low=None if undefined else round(kappa.interval.low, 4),
            high=None if undefined else round(kappa.interval.high, 4),
        )
