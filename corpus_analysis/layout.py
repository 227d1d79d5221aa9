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
from pathlib import Path
from typing import Any

from PIL import ImageOps
from PIL.Image import Image

from ..eval.judges import Judge, Question, Verdict
from ..eval.prompts import Prompt
from ..images import ImageError, open_image
from ..progress import Progress
from ..storage import RecordLog, read_records, write_json
from .captions.ontology import Ontology

ASPECTS = {
    "existence": "The statement is: the picture shows A and it shows B, each clearly visible.",
    "separation": "The statement is: A and B are apart, neither inside, on nor hidden by the "
    "other.",
    "topology": "The statement is: A and B stand side by side, one clearly to the left and one to "
    "the right, rather than one above, below or behind the other.",
}
"""The criteria of stage 1 and how they are asked."""

PROBES = ("original", "swap", "mirror", "mirror_swap")
"""Probes of stage 2; the first is the paper's. `swap`: A is the second-mentioned."""

GATE_PROBES = ("original", "mirror")
"""Probes of stage 1; the first decides, the second is a control."""

ALIGNED, REVERSED, NEITHER = "first_left", "first_right", "invalid"
"""Labels of stage 2. Only measuring judges can answer `invalid`; language models can't."""

VERDICTS = "verdicts.jsonl"

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
    text = (Path(__file__).parent / "prompts" / f"{name}.md").read_text("utf-8")
    return Prompt(f"corpus_{name}", text)


def judge_folder(root: Path, judge: Judge) -> Path:
    """The folder of one judge's verdicts; holds its identity in `judge.json`."""
    identity = {**judge.identity(), **{p.name: p.version for p in _prompts()}}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    folder = root / f"{identity['kind']}-{digest}"
    write_json(folder / "judge.json", identity)
    return folder


def verify(
    candidates: Sequence[PairToJudge], judge: Judge, folder: Path, progress: Progress
) -> dict[str, Answers]:
    """Asks every question without a verdict; returns answers by pair id and resumes after any end.

    Only a judge's own failure (`error`) is asked again. Verdicts belong to the bytes of the image:
    another image is another question.
    """
    done = {r["key"]: r["label"] for r in read_records(folder / VERDICTS) if r["label"] != "error"}
    found: dict[str, Answers] = {}
    with RecordLog(folder / VERDICTS) as log:
        for start in range(0, len(candidates), AHEAD):
            progress("verdicts", start, len(candidates))
            part = candidates[start : start + AHEAD]
            images = {c.pair["id"]: _open(c.image) for c in part}
            gate = _ask(judge, log, done, part, images, gate_questions)
            answers = {c.pair["id"]: Answers({}, {}) for c in part}
            for (pair, aspect, probe), label in gate.items():
                answers[pair].gate[aspect, probe] = label
            valid = [c for c in part if answers[c.pair["id"]].valid]
            order = _ask(judge, log, done, valid, images, order_questions)
            for (pair, _, probe), label in order.items():
                answers[pair].order[probe] = label
            found |= answers
    progress("verdicts", len(candidates), len(candidates))
    return found


def gate_questions(pair: dict[str, Any], image: Image) -> Iterator[Question]:
    """The questions of stage 1, about the image and its mirror image."""
    prompt = read_prompt("gate")
    first, second = _names(pair)
    for probe in GATE_PROBES:
        for aspect, statement in ASPECTS.items():
            yield Question(
                id=f"{pair['id']}/{aspect}/{probe}",
                task="gate",
                subjects=(first, second),
                labels=("yes", "no"),
                prompt=prompt.fill(
                    first=first, second=second, statement=statement, answers="1: yes\n2: no"
                ),
                answers={"1": "yes", "2": "no"},
                images=(_shown(image, probe),),
                facts={**_facts(pair, probe, exchanged=False), "aspect": aspect},
            )


def order_questions(pair: dict[str, Any], image: Image) -> Iterator[Question]:
    """The question of stage 2, in four probes."""
    prompt = read_prompt("order")
    for probe in PROBES:
        exchanged = probe.endswith("swap")
        subjects = _names(pair)[::-1] if exchanged else _names(pair)
        labels = (ALIGNED, REVERSED)
        if exchanged != probe.startswith("mirror"):
            labels = labels[::-1]
        yield Question(
            id=f"{pair['id']}/order/{probe}",
            task="order",
            subjects=subjects,
            labels=(*labels, NEITHER),
            prompt=prompt.fill(first=subjects[0], second=subjects[1]),
            answers=dict(zip("AB", labels, strict=True)),
            images=(_shown(image, probe),),
            facts=_facts(pair, probe, exchanged),
        )


def _names(pair: dict[str, Any]) -> tuple[str, str]:
    return pair["first"]["name"], pair["second"]["name"]


def _facts(pair: dict[str, Any], probe: str, exchanged: bool) -> dict[str, str]:
    kinds = ["|".join(sorted(_kinds(name))) for name in _names(pair)]
    if exchanged:
        kinds.reverse()
    return {
        "url": pair["url"],
        "mirrored": "yes" if probe.startswith("mirror") else "no",
        "first_kinds": kinds[0],
        "second_kinds": kinds[1],
    }


def _kinds(name: str) -> frozenset[str]:
    entity = Ontology.read().entities.get(name)
    return entity.kinds if entity else frozenset()


def _shown(image: Image, probe: str) -> Image:
    return ImageOps.mirror(image) if probe.startswith("mirror") else image


def _prompts() -> tuple[Prompt, Prompt]:
    return read_prompt("gate"), read_prompt("order")


def _open(path: Path) -> Image | None:
    try:
        return open_image(path)
    except ImageError:
        return None


def _ask(
    judge: Judge,
    log: RecordLog,
    done: dict[str, str],
    part: Sequence[PairToJudge],
    images: dict[str, Image | None],
    questions_of: Callable[[dict[str, Any], Image], Iterator[Question]],
) -> dict[tuple[str, str, str], str]:
    """(pair, question, probe) -> label; new verdicts are recorded as they come."""
    found: dict[tuple[str, str, str], str] = {}
    heads: dict[str, dict[str, Any]] = {}
    open_questions = []
    for candidate in part:
        image = images[candidate.pair["id"]]
        if image is None:
            continue  # fetched but unreadable now: counted as a pair without answers
        for question in questions_of(candidate.pair, image):
            pair, name, probe = question.id.split("/")
            words = json.dumps([question.id, candidate.sha256, question.prompt])
            key = hashlib.sha256(words.encode()).hexdigest()[:24]
            if key in done:
                found[pair, name, probe] = done[key]
                continue
            heads[question.id] = {"key": key, "pair": pair, "question": name, "probe": probe}
            open_questions.append(question)
    for question, verdict in judge.judge(open_questions):
        head = heads[question.id]
        log.append(head | _plain(verdict))
        found[head["pair"], head["question"], head["probe"]] = verdict.label
    return found


def _plain(verdict: Verdict) -> dict[str, Any]:
    plain: dict[str, Any] = {"label": verdict.label, "raw": verdict.raw}
    if verdict.probabilities is not None:
        plain["probabilities"] = dict(verdict.probabilities)
    return plain
