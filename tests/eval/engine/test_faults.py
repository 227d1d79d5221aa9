"""Whatever happens to a run, every case is counted once, as a label or as a failure.

Hypothesis makes sequences of kills, resumed runs, replaced, broken and removed files, and judges
that answer, refuse, mumble or fail; a model of the run says what must come out.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from counterprior.eval.core import (
    ALL,
    FAILURES,
    Case,
    ImageRequest,
    Outcome,
    Question,
    Verdict,
)
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import Evaluation, RunSettings, outcomes
from counterprior.eval.engine.run import Run
from counterprior.eval.selftest.trials import trials_of
from counterprior.eval.suites import open_suite

SUITE = "t2i_correctness"
ROWS = Rows.of(next(trials_of(SUITE)).rows[:4])
CASES = [case for row in ROWS.rows for case in open_suite(SUITE).cases(row, 1)]
ANSWERS = ("correct", "wrong", "invalid", "unparsed", "refused", "error")


class Killed(BaseException):
    """Stands for kill -9: nothing in the package may catch it."""


class Files:
    """A generator whose images lie in a folder, where anybody can change them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left = 10_000
        for number, case in enumerate(CASES):
            self.draw(case, number)

    def draw(self, case: Case, color: int) -> None:
        image = Image.new("RGB", (16, 16), (color % 256, color // 256, 7))
        image.save(self.root / case.file)

    def identity(self) -> dict[str, str]:
        return {"kind": "files"}

    def generate(self, request: ImageRequest) -> Path:
        self.left -= 1
        if self.left < 0:
            raise Killed
        assert request.case is not None
        path = self.root / request.case.file
        if not path.exists():
            raise FileNotFoundError(path.name)
        return path


class Answering:
    """A judge whose answer hangs on case and pixels; an `error` becomes an answer the next time."""

    def __init__(self) -> None:
        self.left = 10_000
        self.asked: Counter[tuple[str, bytes]] = Counter()

    def identity(self) -> dict[str, str]:
        return {"kind": "answering"}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            self.left -= 1
            if self.left < 0:
                raise Killed
            pixels = question.images[-1].tobytes()
            self.asked[question.id, pixels] += 1
            tries = self.asked[question.id, pixels]
            yield question, Verdict(answer(question.case, pixels, tries))


def answer(case: str, pixels: bytes, tries: int) -> str:
    """What the judge says of these pixels the `tries`-th time that it is asked."""
    digest = hashlib.sha256(case.encode() + pixels).digest()
    said = ANSWERS[digest[0] % len(ANSWERS)]
    return ANSWERS[digest[1] % 5] if said == "error" and tries > 1 else said


PLACES = st.integers(0, len(CASES) - 1)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), st.integers(0, 12)),
        st.tuples(st.just("ask"), st.integers(0, 12)),
        st.tuples(st.just("replace"), PLACES),
        st.tuples(st.just("restore"), PLACES),
        st.tuples(st.just("break"), PLACES),
        st.tuples(st.just("remove"), PLACES),
    ),
    max_size=7,
)


def test_counts_every_case_once_after_replaced_images() -> None:
    _counts_once([("ask", 12), *(("replace", place) for place in range(5)), ("ask", 0)])


def test_counts_every_case_once_after_a_kill_and_lost_files() -> None:
    _counts_once([("make", 3), ("ask", 2), ("break", 0), ("remove", 1), ("ask", 1), ("restore", 1)])


@pytest.mark.slow
@given(ACTIONS)
@settings(max_examples=10)
def test_counts_every_case_once_after_any_actions(actions: list[tuple[str, int]]) -> None:
    _counts_once(actions)


@pytest.mark.lane
@given(ACTIONS)
@settings(max_examples=200)
def test_counts_every_case_once_after_many_actions(actions: list[tuple[str, int]]) -> None:
    _counts_once(actions)


def _counts_once(actions: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "images").mkdir()
        files, judge = Files(root / "images"), Answering()
        for number, (action, value) in enumerate(actions):
            _act(root, files, judge, action, value, number)
            _check_nothing_stale(root, files)
        _run(root, files, judge)
        first = _outcomes(root, files, judge)
        _check(files, judge, first)
        again = judge.asked.copy()
        assert _labels(_outcomes(root, files, judge)) == _labels(first)
        assert all(n == again[key] or _errs(key) for key, n in judge.asked.items())


def _act(root: Path, files: Files, judge: Answering, action: str, value: int, number: int) -> None:
    case = CASES[value % len(CASES)]
    if action == "replace":
        files.draw(case, 1000 + 17 * number + value)
    elif action == "restore":
        files.draw(case, CASES.index(case))
    elif action == "break":
        (files.root / case.file).write_bytes(b"no image")
    elif action == "remove":
        (files.root / case.file).unlink(missing_ok=True)
    else:
        files.left, judge.left = (value, 10_000) if action == "make" else (10_000, value)
        with contextlib.suppress(Killed):
            _run(root, files, judge)
        files.left = judge.left = 10_000


def _run(root: Path, files: Files, judge: Answering) -> None:
    run = RunSettings(SUITE, "trial", root / "run")
    with Evaluation.start(run, files.identity(), ROWS) as evaluation:
        evaluation.make(files)
        evaluation.ask(judge)


def _outcomes(root: Path, files: Files, judge: Answering) -> list[Outcome]:
    run = RunSettings(SUITE, "trial", root / "run")
    with Evaluation.start(run, files.identity(), ROWS) as evaluation:
        evaluation.make(files)
        log, _ = evaluation.ask(judge)
        return outcomes(evaluation.run, log)


def _check_nothing_stale(root: Path, files: Files) -> None:
    """At any moment, a label is about the pixels that lie there now."""
    if not (root / "run" / "run.json").exists():
        return
    run = Run.open(root / "run")
    for log in run.judges():
        for outcome in outcomes(run, log):
            path = files.root / outcome.case.file
            label = outcome.label("arrangement")
            if label in FAILURES:
                continue
            with Image.open(path) as image:
                pixels = image.tobytes()
            assert label in {answer(outcome.case.id, pixels, tries) for tries in (1, 2)}


def _labels(found: list[Outcome]) -> dict[str, str]:
    return {outcome.case.id: outcome.label("arrangement") for outcome in found}


def _errs(key: tuple[str, bytes]) -> bool:
    """Whether a question is asked again as the judge itself failed on it."""
    return answer(key[0].split("/")[0], key[1], 1) == "error"


def _check(files: Files, judge: Answering, found: list[Outcome]) -> None:
    labels = _labels(found)
    assert len(found) == len(labels) == len(CASES)
    for case in CASES:
        path = files.root / case.file
        if not path.exists():
            assert labels[case.id] == "missing"
        elif path.read_bytes() == b"no image":
            assert labels[case.id] == "error"
        else:
            with Image.open(path) as image:
                pixels = image.tobytes()
            tries = judge.asked[f"{case.id}/arrangement/original", pixels]
            assert labels[case.id] == answer(case.id, pixels, tries)
            failed = answer(case.id, pixels, 1) == "error"
            assert tries >= 2 if failed else tries == 1
    scores = {s.name: s for s in open_suite(SUITE).score(found) if s.group == ALL}
    for variant in ("aligned", "reverse"):
        said = [labels[case.id] for case in CASES if case.variant == variant]
        right, wrong = said.count("correct"), said.count("wrong")
        accuracy, valid = scores[f"accuracy_{variant}"], scores[f"valid_{variant}"]
        assert accuracy.n == right + wrong
        assert accuracy.n + sum(accuracy.excluded.values()) == len(said)
        assert set(accuracy.excluded) <= {"invalid", *FAILURES}
        if accuracy.n:
            assert abs(accuracy.value - 100 * right / (right + wrong)) < 1e-9
        judged = [label for label in said if label not in FAILURES]
        assert valid.n == len(judged)
        assert valid.excluded == dict(Counter(x for x in said if x in FAILURES))
