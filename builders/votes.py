"""Votes of human readers on constrained pairs, from the page of `audit serve --kind bank`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..schema import Row, Struct, content_digest
from .bank import BankError, read_by_name

HUMAN = "human"
"""Mark of a row that people accepted as it is."""


class PairVote(Struct):
    """Majority vote of those who read a pair."""

    pair: str
    """Id of the entry."""
    read: str
    """Digest of the row that they read: a vote is worth nothing once the row is another one."""
    said: Literal["accept", "edit", "reject"]
    """Verdict of the majority."""
    people: int
    """Number of readers."""


def read_votes(bank: Path) -> dict[str, PairVote]:
    """Id of an entry -> the vote; none where the bank has no such file.

    Raises BankError for an entry that can't be read or a pair that is there twice.
    """
    path = bank / "votes.yaml"
    votes = read_by_name(path, PairVote, "pair")
    for vote in votes.values():
        if vote.people < 1:
            raise BankError(f"{path}, {vote.pair}: people: must be at least 1", code="bad-entry")
    return votes


def vote_on(row: Row, votes: dict[str, PairVote]) -> str:
    """Returns the vote on a row in its current form; empty if nobody read that form."""
    vote = votes.get(row.provenance.entry)
    return vote.said if vote is not None and vote.read == content_digest(row) else ""
