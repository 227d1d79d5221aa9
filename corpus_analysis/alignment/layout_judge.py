"""Two-stage verification: are the two things side by side, and which of them is on the left?

Stage 1 asks three questions (existence, separation, horizontal topology) about the image and its
mirror image, where the answers must stay the same. Stage 2 asks A or B in four probes: {image,
mirrored} x {A is the first-mentioned, A is the second-mentioned}. A judge that always says A, or
always puts the first-mentioned on the left, is right in two of the four, so biases pull the mean
toward one half. Labels always refer to the image as found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from PIL import ImageOps
from PIL.Image import Image

from ...eval.core import ORIGINAL, PROBES, Judge, Question, is_mirrored, names_exchanged
from ...eval.questions import Prompt
from ...eval.store.verdicts import Answered, OpenQuestion, Tally, VerdictLog, check_tally
from ...images import ImageError, open_image
from ...progress import Progress
from ..captions.ontology import Ontology
from ..images.local import file_name

ASPECTS = {
    "existence": "The statement is: the picture shows A and it shows B, each clearly visible.",
    "separation": "The statement is: A and B are apart, neither inside, on nor hidden by the "
    "other.",
    "topology": "The statement is: A and B stand side by side, one clearly to the left and one to "
    "the right, rather than one above, below or behind the other.",
}
"""Criteria of stage 1 -> the statement that the judge assesses."""

GATE_PROBES = (ORIGINAL, "mirror")
"""Probes of stage 1; the first decides, the second is a control."""

ALIGNED, REVERSED, NEITHER = "first_left", "first_right", "invalid"
"""Labels of stage 2. Only measuring judges can answer `invalid`; language models can't."""

AHEAD = 64
"""Pairs whose questions are open at a time."""


@dataclass(frozen=True)
class PairToJudge:
    """A pair with its image."""

    pair: dict[str, Any]
    """Its row."""
    image: Path
    """Its image file."""
    sha256: str
    """SHA-256 of the bytes that the server sent for the image."""


@dataclass(frozen=True)
class Answers:
    """One judge's labels or failures for one pair; missing keys were not asked."""

    gate: dict[tuple[str, str], str]
    """(aspect, probe) -> `yes`, `no` or a failure."""
    order: dict[str, str]
    """Probe -> label or a failure."""

    @property
    def valid(self) -> bool:
        """Whether all three criteria are met."""
        return all(self.gate.get((aspect, "original")) == "yes" for aspect in ASPECTS)


def read_prompt(name: str) -> Prompt:
    """Reads a prompt file of this folder."""
    text = (Path(__file__).parents[1] / "prompts" / f"{name}.md").read_text("utf-8")
    return Prompt(f"corpus_{name}", text)


def open_log(root: Path, judge: Judge) -> VerdictLog:
    """Opens a judge's verdicts on a mined run, under the current versions of the prompts."""
    identity = {**judge.identity(), **{p.name: p.version for p in _prompts()}}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    return VerdictLog.start(root / f"{identity['kind']}-{digest}", identity)


def verify(
    candidates: Sequence[PairToJudge], judge: Judge, log: VerdictLog, progress: Progress
) -> dict[str, Answers]:
    """Asks all questions without a verdict; returns pair id -> answers. A second run resumes.

    Questions that ended in `error` are asked again, all others once. Verdicts belong to the bytes
    that were fetched: another image is another question. Raises JudgeFailed if every call failed.
    """
    answers: dict[str, Answers] = {}
    tally = Tally()
    for start in range(0, len(candidates), AHEAD):
        progress("verdicts", start, len(candidates))
        opened = [(c, _open(c.image)) for c in candidates[start : start + AHEAD]]
        answers |= {candidate.pair["id"]: Answers({}, {}) for candidate, _ in opened}
        for answered in _ask(judge, log, opened, gate_questions, tally):
            gate = answers[answered.case].gate
            gate[answered.question, answered.probe] = answered.verdict.label
        valid = [item for item in opened if answers[item[0].pair["id"]].valid]
        for answered in _ask(judge, log, valid, order_questions, tally):
            answers[answered.case].order[answered.probe] = answered.verdict.label
    check_tally(log.name, tally)
    progress("verdicts", len(candidates), len(candidates))
    return answers


def gate_questions(pair: dict[str, Any], image: Image) -> Iterator[Question]:
    """Yields the questions of stage 1 about the image and its mirror image."""
    prompt = read_prompt("gate")
    first, second = _names(pair)
    for probe in GATE_PROBES:
        for aspect, statement in ASPECTS.items():
            yield Question(
                case=pair["id"],
                name=aspect,
                probe=probe,
                task="gate",
                subjects=(first, second),
                labels=("yes", "no"),
                prompt=prompt.fill(
                    first=first, second=second, statement=statement, answers="1: yes\n2: no"
                ),
                answers={"1": "yes", "2": "no"},
                images=(_variant(image, probe),),
                facts={**_facts(pair, probe), "aspect": aspect},
            )


def order_questions(pair: dict[str, Any], image: Image) -> Iterator[Question]:
    """Yields the question of stage 2 in its four probes."""
    prompt = read_prompt("order")
    for probe in PROBES:
        exchanged = names_exchanged(probe)
        subjects = _names(pair)[::-1] if exchanged else _names(pair)
        labels = (ALIGNED, REVERSED)
        if exchanged != is_mirrored(probe):
            labels = labels[::-1]
        yield Question(
            case=pair["id"],
            name="order",
            probe=probe,
            task="order",
            subjects=subjects,
            labels=(*labels, NEITHER),
            prompt=prompt.fill(first=subjects[0], second=subjects[1]),
            answers=dict(zip("AB", labels, strict=True)),
            images=(_variant(image, probe),),
            prior=REVERSED if is_mirrored(probe) else ALIGNED,
            facts=_facts(pair, probe),
        )


def _names(pair: dict[str, Any]) -> tuple[str, str]:
    return pair["first"]["name"], pair["second"]["name"]


def _facts(pair: dict[str, Any], probe: str) -> dict[str, str]:
    kinds = ["|".join(sorted(_kinds(name))) for name in _names(pair)]
    if names_exchanged(probe):
        kinds.reverse()
    return {
        "url": pair["url"] or file_name(pair["image"]),
        "mirrored": "yes" if is_mirrored(probe) else "no",
        "first_kinds": kinds[0],
        "second_kinds": kinds[1],
    }


@cache
def _kinds(name: str) -> frozenset[str]:
    """Returns kinds and other names of a thing, since a class may have either, e.g. "tv"."""
    ontology = Ontology.read()
    entity = ontology.entities.get(name)
    if entity is None:
        return frozenset()
    return entity.kinds | {form for form, named in ontology.surface.items() if named is entity}


def _variant(image: Image, probe: str) -> Image:
    return ImageOps.mirror(image) if is_mirrored(probe) else image


def _prompts() -> tuple[Prompt, Prompt]:
    return read_prompt("gate"), read_prompt("order")


def _open(path: Path) -> Image | None:
    try:
        return open_image(path)
    except ImageError:
        return None


def _ask(
    judge: Judge,
    log: VerdictLog,
    candidates: Sequence[tuple[PairToJudge, Image | None]],
    questions_of: Callable[[dict[str, Any], Image], Iterator[Question]],
    tally: Tally,
) -> Iterator[Answered]:
    """Yields every answer, recorded ones first.

    Images that were retrieved but have become unreadable get no answers.
    """
    open_questions = [
        OpenQuestion(question, candidate.sha256)
        for candidate, image in candidates
        if image is not None
        for question in questions_of(candidate.pair, image)
    ]
    recorded = [item for item in open_questions if not log.needs(item)]
    tally.recorded += len(recorded)
    yield from (log.of(item.question.case)[item.key] for item in recorded)
    yield from log.ask(
        judge,
        (item for item in open_questions if log.needs(item)),
        tally,
    )
