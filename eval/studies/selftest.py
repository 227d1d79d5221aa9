"""`selftest`: pictures whose truth is known, through the whole scoring chain, offline.

The renderer draws with a set bias, the pixel judge looks, faulty judges look with set faults, and
the scores corrected by known labels must hold the truth. T2I and I2I, homogenization and
correctness.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from ...images import encode_png
from ...scenes.biases import preference
from ...scenes.poses import find_pose
from ...scenes.sprites import clothes, entity_names
from ...schema import (
    EncodedImage,
    Entity,
    I2ICorrectness,
    I2IHomogenization,
    Provenance,
    Row,
    T2ICorrectness,
    T2IHomogenization,
    rows_digest,
)
from ...storage import write_whole
from ..core import Case
from ..engine.data import Rows
from ..engine.generate import GenerateSettings, generate
from ..engine.judging import JudgeSettings, judge_run
from ..engine.run import Run
from ..generators import ImageRequest
from ..generators.render import RenderGenerator, RenderOptions
from ..judges import Judge, Question, Verdict
from ..judges.faulty import Faults, FaultyJudge
from ..judges.pixels import PixelJudge
from ..results.scoring import score_run
from ..suites.scores import Score

Progress = Callable[[str, int, int], None]
"""Told stage, done and total."""

ROWS = 60
"""Rows of each trial: two pictures each where there are two mention orders."""
LABELLED = 0.5
"""Share of the cases whose truth corrects the rest."""
FAULTY = {
    "pixels": Faults(),
    "names the first": Faults(name=0.2),
    "sees the prior": Faults(side=0.3),
    "swaps, mumbles": Faults(swap=0.1, unparsed=0.1, refuse=0.05),
}
"""Judges of every trial."""


@dataclass(frozen=True)
class Check:
    """One line of the table."""

    trial: str
    """Suite and generator."""
    judge: str
    """Key of `FAULTY`."""
    score: str
    """Metric."""
    truth: float
    """What the generator was set to, percent."""
    raw: Score
    """As judged."""
    corrected: Score
    """With labels of a part."""

    @property
    def holds(self) -> bool:
        """Whether the corrected interval contains the truth."""
        low, high = self.corrected.interval
        return low - 1e-9 <= self.truth <= high + 1e-9


@dataclass(frozen=True)
class _Trial:
    """A generator with a known bias on rows of one suite."""

    name: str
    options: RenderOptions
    rows: Sequence[Row]
    suite: str
    truths: Callable[[RenderGenerator, Sequence[Case]], dict[str, float]]
    """True value of each score."""


def selftest(progress: Progress = lambda stage, done, total: None) -> list[Check]:
    """All checks; one that does not hold means that the chain is broken."""
    checks: list[Check] = []
    trials = list(_trials())
    for number, trial in enumerate(trials):
        progress("trials", number, len(trials))
        with tempfile.TemporaryDirectory(prefix="counterprior-selftest-") as folder:
            checks += _run(trial, Path(folder) / "run")
    progress("trials", len(trials), len(trials))
    return checks


def _run(trial: _Trial, out: Path) -> Iterator[Check]:
    generator = RenderGenerator(trial.options)
    found = Rows(list(trial.rows), rows_digest([row.model_dump() for row in trial.rows]))
    options = "&".join(f"{n}={v}" for n, v in vars(trial.options).items() if v != _PLAIN[n])
    settings = GenerateSettings(trial.suite, f"render:?{options}", "selftest", out)
    run = generate(settings, found=found)
    labels = out / "truth.csv"
    question = _QUESTIONS[trial.suite]
    _write_truth(run, question, trial, labels)
    seeing = _Remembering(PixelJudge())
    truths = trial.truths(generator, run.cases())
    folders = {}
    for name, faults in FAULTY.items():
        judge = FaultyJudge(seeing, faults) if faults != Faults() else seeing
        folders[judge_run(JudgeSettings(out), judge, found=found).name] = name
    for result in score_run(out, labels):
        scores = {score.name: score for score in result.scores if score.group == "all"}
        for name, truth in truths.items():
            yield Check(
                trial.name, folders[result.judge], name, truth, scores[name],
                scores[f"{name}_corrected"],
            )  # fmt: skip


class _Remembering:
    """A judge that looks at every picture once, however many faulty judges stand on it."""

    def __init__(self, inner: Judge) -> None:
        self.inner = inner
        self.seen: dict[str, Verdict] = {}

    def identity(self) -> dict[str, str]:
        return self.inner.identity()

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            if question.id not in self.seen:
                ((_, self.seen[question.id]),) = self.inner.judge([question])
            yield question, self.seen[question.id]


_QUESTIONS = {
    "t2i_homogenization": "order",
    "t2i_correctness": "arrangement",
    "i2i_homogenization": "actor",
    "i2i_correctness": "binding",
}
_PLAIN = vars(RenderOptions())


def _write_truth(run: Run, question: str, trial: _Trial, path: Path) -> None:
    """Labels of a random part of the cases, from what the renderer says that it drew."""
    rows = {row.id: row for row in trial.rows}
    images = run.images()
    rng = random.Random(0)
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(("case", "question", "label"))
    for case in run.cases():
        if rng.random() >= LABELLED:
            continue
        with Image.open(run.image_path(images[case.id])) as picture:
            scene = json.loads(picture.info["scene"])
        writer.writerow((case.id, question, _true_label(rows[case.row], case, scene)))
    write_whole(path, buffer.getvalue())


def _true_label(row: Row, case: Case, scene: Mapping[str, Any]) -> str:
    if scene["faults"]:
        return "invalid"
    figures = {figure["entity"]: figure for figure in scene["figures"]}
    if isinstance(row, T2IHomogenization):
        first, second = row.first.name, row.second.name
        if case.variant == "swapped":
            first, second = second, first
        return "first_left" if figures[first]["x"] < figures[second]["x"] else "first_right"
    if isinstance(row, T2ICorrectness):
        right_way = figures[row.left]["x"] < figures[row.right]["x"]
        return "correct" if right_way else "wrong"
    if isinstance(row, I2IHomogenization):
        return "left_acts" if figures[row.left.name]["pose"] else "right_acts"
    assert isinstance(row, I2ICorrectness)
    return "correct" if figures[row.left.name]["pose"] == find_pose(_ACTIONS[0]) else "wrong"


_ACTIONS = ("is lying down on the ground", "is jumping high into the air")
"""What the left and the right one do."""


def _trials() -> Iterator[_Trial]:
    for bias in (0.0, 1.0, 2.5):
        yield _Trial(
            f"T2I homogenization, order bias {bias:g}",
            RenderOptions(order_bias=bias, preference_sd=0.8, missing=0.05, vertical=0.05),
            [_neutral(a, b) for a, b in _pairs(ROWS)],
            "t2i_homogenization",
            _true_order,
        )
    yield _Trial(
        "T2I correctness, grounding 0.6",
        RenderOptions(order_bias=1.5, grounding=0.6),
        [_explicit(a, b) for a, b in _pairs(ROWS)],
        "t2i_correctness",
        _true_grounding,
    )
    yield _Trial(
        "I2I homogenization, left bias 1.5",
        RenderOptions(order_bias=1.5),
        [_edit(a, b) for a, b in _pairs(ROWS, _ANIMALS)],
        "i2i_homogenization",
        lambda generator, cases: {"signed_index": 100 * (2 * _sigmoid(1.5) - 1)},
    )
    yield _Trial(
        "I2I correctness, binding bias 0.4",
        RenderOptions(binding_bias=0.4),
        [_bound(a, b) for a, b in _pairs(ROWS, _ANIMALS)],
        "i2i_correctness",
        lambda generator, cases: {"accuracy_aligned": 100.0, "accuracy_reverse": 60.0},
    )


def _true_order(generator: RenderGenerator, cases: Sequence[Case]) -> dict[str, float]:
    bias, sd = generator.options.order_bias, generator.options.preference_sd
    signs = []
    for case in cases:
        # The prompt says which of the pair comes first.
        first, second = sorted(case.clusters[1:], key=case.prompt.lower().index)
        tilt = bias + preference(first, sd) - preference(second, sd)
        signs.append(2 * _sigmoid(tilt) - 1)
    return {"signed_index": 100 * sum(signs) / len(signs)}


def _true_grounding(generator: RenderGenerator, cases: Sequence[Case]) -> dict[str, float]:
    share, prior = generator.options.grounding, _sigmoid(generator.options.order_bias)
    return {
        "accuracy_aligned": 100 * (share + (1 - share) * prior),
        "accuracy_reverse": 100 * (share + (1 - share) * (1 - prior)),
    }


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


_ANIMALS = ("cat", "dog", "horse", "cow", "sheep", "pig", "goat", "fox", "elephant", "giraffe",
            "bear", "rabbit")  # fmt: skip


def _pairs(count: int, names: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Different pairs in random order of mention; people only where none are named."""
    names = names or [name for name in entity_names() if clothes(name) is None]
    pairs = list(itertools.permutations(names, 2))
    return random.Random(1).sample(pairs, count)


def _entity(name: str) -> Entity:
    return Entity(name=name, kind="animal", category="selftest", look=name)


_PROVENANCE = Provenance(bank="", entry="selftest", author="selftest", calls=[])


def _neutral(first: str, second: str) -> T2IHomogenization:
    return T2IHomogenization(
        pair_type="A-A", first=_entity(first), second=_entity(second), first_action="",
        second_action="", prompt=f"One {first} and one {second}.",
        swapped_prompt=f"One {second} and one {first}.", review=[], provenance=_PROVENANCE,
    )  # fmt: skip


def _explicit(left: str, right: str) -> T2ICorrectness:
    return T2ICorrectness(
        domain="selftest", difficulty="obvious", kind="conventional", left=left, right=right,
        context="side by side", frame="The viewer's.",
        aligned_prompt=f"A {left} on the left and a {right} on the right.",
        reverse_prompt=f"A {right} on the right and a {left} on the left.",
        standards=[], rationale="", tell_left=left, tell_right=right, mirror_safe=True,
        scope="universal", code_check="", review=[],
        provenance=_PROVENANCE.model_copy(update={"entry": f"{left}-{right}"}),
    )  # fmt: skip


def _seed(left: str, right: str) -> dict[str, Any]:
    prompt = f"A {left} on the left and a {right} on the right."
    picture = encode_png(RenderGenerator().generate(ImageRequest(prompt, 0)))
    return {
        "pair_type": "A-A", "left": _entity(left), "right": _entity(right), "seed_prompt": prompt,
        "seed_image": EncodedImage(bytes=picture, path="seed.png"), "review": [],
        "provenance": _PROVENANCE,
    }  # fmt: skip


def _edit(left: str, right: str) -> I2IHomogenization:
    return I2IHomogenization(
        **_seed(left, right), action="lying down", instruction=f"One animal {_ACTIONS[0]}."
    )


def _bound(left: str, right: str) -> I2ICorrectness:
    does = {left: _ACTIONS[0], right: _ACTIONS[1]}
    return I2ICorrectness(
        **_seed(left, right), relation="independent", agent="both",
        left_expected=does[left], right_expected=does[right],
        aligned_instruction=f"The {left} {does[left]} and the {right} {does[right]}.",
        reverse_instruction=f"The {right} {does[right]} and the {left} {does[left]}.",
    )  # fmt: skip
