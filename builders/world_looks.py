"""Looks at gold images of altered worlds: can each question tell the two worlds apart?

A reader who does not know which world an image shows answers all five questions about it. An image
is shown again once its bytes or its questions are others: the look is then worth nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from ..schema import AlteredWorld, AlteredWorldGold, Struct, World, canonical
from .bank import read_by_name
from .worlds import KEYED

PRESENCE = "presence"
ASKED = (PRESENCE, *KEYED)
"""Questions about every image."""
LookAnswer = Literal["yes", "no", "unsure"]
ANSWERS: tuple[LookAnswer, ...] = get_args(LookAnswer)
ALL = "all"


class WorldLook(Struct):
    """Answers of a reader who saw an image without its key."""

    image: str
    """SHA-256 of the image's file."""
    group: str
    """Id of its group."""
    world: World
    """World that it shows."""
    asked: Annotated[str, Field(pattern="^[0-9a-f]{12}$")]
    """Digest of the questions as they were asked."""
    presence: LookAnswer
    point_factual: LookAnswer
    logic_factual: LookAnswer
    point_counterfactual: LookAnswer
    logic_counterfactual: LookAnswer


@dataclass(frozen=True)
class Discrimination:
    """Whether a question tells the worlds apart, over groups of which both worlds were looked at.

    Presence tells nothing apart: it must be yes in both.
    """

    question: str
    groups: int
    """Groups that were looked at."""
    told: int
    """Groups with only right answers in both worlds."""
    unsure: int
    """Groups with an answer `unsure`."""


@dataclass(frozen=True)
class Undecided:
    """A question of a group that does not tell its worlds apart."""

    row: AlteredWorldGold
    """An image with an answer that is not that of the key."""
    question: str
    answers: Mapping[World, str]
    """World -> what was answered; several answers with a slash between."""

    def __str__(self) -> str:
        answers = ", ".join(
            f"{answer} of the {world} world" for world, answer in self.answers.items()
        )
        must = "must be yes" if self.question == PRESENCE else "does not tell the worlds apart"
        return (
            f"{must}, answered {answers}: {question_text(self.row, self.question)} "
            f"Rewrite it, or leave {self.row.group} undrawn"
        )


def read_world_looks(bank: Path) -> dict[str, WorldLook]:
    """Looks by the SHA-256 of the image; none where the bank has no such file.

    Raises BankError for an entry that can't be read or an image that is there twice.
    """
    return read_by_name(bank / "world_looks.yaml", WorldLook, "image")


def question_text(row: AlteredWorld | AlteredWorldGold, question: str) -> str:
    """A question as it is asked."""
    return row.presence if question == PRESENCE else str(getattr(row, question).text)


def asked_digest(row: AlteredWorldGold) -> str:
    """First 12 hexadecimal digits of the SHA-256 of an image's questions."""
    texts = [question_text(row, question) for question in ASKED]
    return hashlib.sha256(canonical(texts)).hexdigest()[:12]


def keyed_answer(row: AlteredWorldGold, question: str) -> LookAnswer:
    """The right answer about an image."""
    if question == PRESENCE:
        return "yes"
    return "yes" if getattr(row, question).world == row.world else "no"


def answers_of(row: AlteredWorldGold, looks: Mapping[str, WorldLook]) -> dict[str, str]:
    """Returns question -> answer about an image; empty if nobody looked since it changed."""
    look = looks.get(row.image_sha256)
    if look is None or look.asked != asked_digest(row):
        return {}
    return {question: getattr(look, question) for question in ASKED}


def recognized(row: AlteredWorldGold, looks: Mapping[str, WorldLook]) -> bool:
    """Whether a reader of an image answered every question as its key does."""
    answers = answers_of(row, looks)
    return bool(answers) and all(answers[name] == keyed_answer(row, name) for name in ASKED)


def undecided(
    rows: Iterable[AlteredWorldGold], looks: Mapping[str, WorldLook]
) -> Iterator[Undecided]:
    """Every question of a group about which an answer is not that of the key."""
    for listed in _by_group(rows).values():
        answered = [(row, answers_of(row, looks)) for row in listed]
        answered = [(row, answers) for row, answers in answered if answers]
        for name in ASKED:
            wrong = [row for row, answers in answered if answers[name] != keyed_answer(row, name)]
            if wrong:
                by_world: dict[World, list[str]] = {"real": [], "altered": []}
                for row, answers in answered:
                    by_world[row.world].append(answers[name])
                answers_by_world = {
                    w: "/".join(dict.fromkeys(answers_given))
                    for w, answers_given in by_world.items()
                    if answers_given
                }
                yield Undecided(wrong[0], name, answers_by_world)


def discriminations(
    rows: Iterable[AlteredWorldGold], looks: Mapping[str, WorldLook]
) -> dict[str, list[Discrimination]]:
    """Discipline, and `all` -> each question, over the groups of which both worlds were seen."""
    counts: dict[tuple[str, str], list[int]] = {}
    for listed in _by_group(rows).values():
        answers = {row.id: answers_of(row, looks) for row in listed}
        answered = [row for row in listed if answers[row.id]]
        if len({row.world for row in answered}) < 2:
            continue
        for name in ASKED:
            correct = all(answers[row.id][name] == keyed_answer(row, name) for row in answered)
            unsure = any(answers[row.id][name] == "unsure" for row in answered)
            for discipline in (answered[0].discipline, ALL):
                count = counts.setdefault((discipline, name), [0, 0, 0])
                for place, holds in enumerate((True, correct, unsure)):
                    count[place] += holds
    disciplines = sorted({discipline for discipline, _ in counts} - {ALL})
    return {
        discipline: [Discrimination(name, *counts[discipline, name]) for name in ASKED]
        for discipline in (*disciplines, *([ALL] if counts else []))
    }


def _by_group(rows: Iterable[AlteredWorldGold]) -> dict[str, list[AlteredWorldGold]]:
    groups: dict[str, list[AlteredWorldGold]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return groups
