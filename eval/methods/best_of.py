"""`best-of`: the best of N seeds by a judge or a scorer (PSE, search-based guidance).

``best-of:16?by=JUDGE`` makes N images of each case and gives the one that the judge finds most
right, by its measured number where it has one. ``by`` may also name a scorer of picture quality.
Seeds are nested: the first candidate has the case's own seed, and N = 2, 4, 8 are prefixes of one
run. All candidates stay in the run's folder, each is made and judged once.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar, Literal

from PIL import Image

from ...errors import UsageError
from ...images import encode_png
from ...specs import Options, Spec, TextForm, load_factory
from ...storage import write_whole
from ..checkpoints.registry import PYTHON, spec_identity
from ..core import Generator, GeneratorError, ImageRequest
from ..generators import ENCODED, REPORT, USD, draw
from ..judges import JUDGES, CallPlan, as_judge
from ..scorers import SCORERS, as_scorer
from . import Method
from .candidates import (
    Candidate,
    EarlierImages,
    best_of,
    candidate_log,
    candidate_path,
    candidate_seed,
)

MOST = 1024
"""Maximum number of candidates of a case."""
Grader = Callable[[ImageRequest, Image.Image], float]


class BestOfOptions(Options, extra="allow"):
    """Options of `best-of`."""

    undeclared: ClassVar[str] = "options of the judge or scorer"

    by: Annotated[str, TextForm("the spec of a judge or scorer")]
    """Judge or scorer that chooses the best image."""


class BestOf(Method):
    """A generator that draws several candidates and returns the best."""

    argument: ClassVar[str] = "NUMBER"
    options: ClassVar[type[Options]] = BestOfOptions

    def __init__(self, inner: Generator, count: int, by: str) -> None:
        """by: spec of a judge or scorer, opened when a run begins: the run knows the cap."""
        super().__init__(inner)
        self.count = count
        self.by = by
        self.earlier: EarlierImages = lambda case, number: None
        """Images of candidates that another run has drawn; they are not drawn and paid again."""
        self._grade: Grader | None = None
        self._root: Path | None = None
        self._known: dict[tuple[str, int], Candidate] = {}
        self._one_at_a_time = Lock()

    @classmethod
    def from_spec(cls, spec: Spec, options: BestOfOptions, inner: Generator) -> BestOf:
        """Raises UsageError for a wrong number, and for anything but a judge or a scorer."""
        text = spec.argument
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
            problem = f"best-of: the number of seeds must be from 1 to {MOST}, not {text!r}"
            raise UsageError(problem, "write best-of:16", code="out-of-range")
        chooser = Spec.parse(options.by)
        chooser = replace(chooser, options={**chooser.options, **options.rest})
        if not (_is_judge(options.by) or chooser.kind in {*SCORERS, PYTHON}):
            choosers = ", ".join(sorted({*JUDGES, *SCORERS, PYTHON}))
            problem = f"best-of: {chooser.kind!r} can't choose"
            raise UsageError(problem, f"name one of {choosers}", code="unknown-name")
        return cls(inner, int(text), str(chooser))

    @property
    def name(self) -> str:
        return f"best-of:{self.count}?by={self.by}"

    def check_request(self, request: ImageRequest) -> None:
        super().check_request(request)
        if request.grade is None and _is_judge(self.by):
            raise UsageError(
                "best-of: this suite has no right and wrong images: choose by a scorer of image "
                "quality instead of a judge",
                code="unsupported",
            )

    def prepare(self, folder: Path, plan: CallPlan) -> None:
        """Also finds the existing candidates."""
        super().prepare(folder, plan)
        self._grade = _open_chooser(self.by, plan)
        self._root = folder
        self._candidates = candidate_log(folder)
        len(self._candidates)  # read now: threads look up while one appends

    def generate(self, request: ImageRequest) -> Image.Image:
        """Returns the best candidate, the first of equals.

        Raises GeneratorError if none can be drawn and scored, `refused` if all were declined.
        """
        candidates = [self._candidate(request, number) for number in range(self.count)]
        best = best_of(candidates)
        costs = [Decimal(c.usd) for c in candidates if c.usd]
        usd = str(sum(costs, Decimal(0))) if costs else ""
        if best is None:
            problem = f"none of {self.count} candidates can be judged: {_why(candidates)}"
            failed = GeneratorError(problem, _status(candidates), code="generator-failed")
            failed.usd = usd
            raise failed
        image = Image.open(self._path(best))
        image.load()
        image.info[ENCODED] = self._path(best).read_bytes()
        report = {
            "candidates": len(candidates),
            "chosen": best.number,
            "score": best.score,
            "failed": sum(not c.sha256 for c in candidates),
        }
        image.info[REPORT] = json.dumps(report, sort_keys=True)
        if usd:
            image.info[USD] = usd
        return image

    def _candidate(self, request: ImageRequest, number: int) -> Candidate:
        """Returns one candidate; draws and scores it unless it exists."""
        if self._grade is None or self._root is None or request.case is None:
            raise UsageError(
                "best-of: works in a run: use `counterprior generate` or `eval`", code="needs-run"
            )
        recorded = reversed(self._candidates.of(request.case.id))
        existing = next((earlier for earlier in recorded if earlier.number == number), None)
        if existing is not None and (existing.refused or self._path(existing).exists()):
            return existing
        seed = candidate_seed(request.seed, number)
        candidate = Candidate(request.case.id, number, seed)
        try:
            image = self._drawn_earlier(candidate) or draw(self.inner, replace(request, seed=seed))
        except GeneratorError as error:
            candidate = replace(candidate, problem=f"{error.status}: {error}", usd=error.usd)
        else:
            data = image.info.get(ENCODED) or encode_png(image)
            candidate = replace(candidate, sha256=hashlib.sha256(data).hexdigest())
            write_whole(self._path(candidate), data)
            with self._one_at_a_time:  # a judge's log has one writer
                score = self._grade(request, image)
            candidate = replace(candidate, score=score, usd=image.info.get(USD, ""))
        with self._one_at_a_time:
            self._candidates.append(candidate)
        return candidate

    def _drawn_earlier(self, candidate: Candidate) -> Image.Image | None:
        data = self.earlier(candidate.case, candidate.number)
        if data is None:
            return None
        image = Image.open(io.BytesIO(data))
        image.load()
        image.info[ENCODED] = data
        return image

    def _path(self, candidate: Candidate) -> Path:
        assert self._root is not None
        return candidate_path(self._root, candidate)


def _status(candidates: Sequence[Candidate]) -> Literal["refused", "error"]:
    """Status of a case without a result: refused, and never tried again, if all were declined."""
    return "refused" if all(c.refused for c in candidates) else "error"


def _why(candidates: list[Candidate]) -> str:
    return next((c.problem for c in candidates if c.problem), "the judge gave no verdict")


def _is_judge(text: str) -> bool:
    """Whether a spec names a judge; false for `python:`, whose object is known once it is
    opened."""
    return Spec.parse(text).kind in JUDGES


def _open_chooser(text: str, plan: CallPlan) -> Grader:
    """Returns a grader of images by a judge, or by a scorer with ``score(pairs) -> floats``."""
    spec = Spec.parse(text)
    if spec.kind in SCORERS:
        return _by_scorer(as_scorer(text))
    chooser: Any = load_factory(spec) if spec.kind == PYTHON else text
    if hasattr(chooser, "score"):
        return _by_scorer(chooser)
    judge = as_judge(chooser, plan, spec_identity(spec))

    def by_judge(request: ImageRequest, image: Image.Image) -> float:
        if request.grade is None:
            raise UsageError("best-of: a judge chooses only in a run of a suite", code="needs-run")
        return request.grade(image, judge)

    return by_judge


def _by_scorer(scorer: Any) -> Grader:
    def grade(request: ImageRequest, image: Image.Image) -> float:
        (score,) = scorer.score([(request.prompt, image)])
        return float(score)

    return grade
