"""Draws what human annotators label: uniformly, so that labels speak for all images of the runs.

A draw from runs is written once, to `OUT/sample.json` beside the annotators' clicks. It records the
run and case of each item. The page has only the items' names, which are digests.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ...human_labels import SAMPLE
from ...parsing import MALFORMED
from ...storage import write_json
from ..core import ORIGINAL, Case, Outcome
from ..engine.asking import Asking
from ..engine.evaluation import Evaluation
from ..engine.run import HEADER, Run
from ..results.changes import check_alike
from ..results.names import short_names
from ..suites import open_suite
from .forms import FORMS, ReviewForm, ReviewTask, open_form
from .release_tasks import is_release, release_tasks
from .serve import Audit

DEFAULT_SIZES = {"quality": 100, "compare": 100, "judge": 400, "verdict": 200}
"""Kinds that can be drawn from runs -> how many by default: cases of which each run has an image
(quality, compare), answers of each question (judge), images (verdict)."""

CLIP_PREAMBLE = (
    "This is a clip. What is asked of the picture: answer with what most of the clip shows.\n"
)
"""Precedes the judge's question about a clip: the label is compared with the verdict of most
frames."""


@dataclass(frozen=True)
class SampledItem:
    """One image, pair of images or answer to label."""

    id: str
    """A digest, which reveals nothing to the annotator."""
    case: str
    cluster: str
    """Narrowest cluster of the case."""
    prompt: str
    runs: tuple[str, ...]
    """Name of the run of each image; two where images are compared, the left one first."""
    images: tuple[str, ...]
    """SHA-256 of each."""
    files: tuple[str, ...]
    """Path of each."""
    frames: tuple[int, ...] = ()
    """Number of frames of each clip, 0 for an image. Empty in older samples."""
    source: str = ""
    """Path of the image that was edited; empty for text-to-image."""
    question: str = ""
    """Name of the judge's question, if any."""
    asked: str = ""
    """Its text."""
    answers: tuple[tuple[str, str], ...] = ()
    """Its labels, each with the digit that stands for it in the text."""
    metric: str = ""
    """Suite and mean that it was drawn for, if it was drawn by metric."""

    def task(self, kind: str) -> ReviewTask:
        """Returns the task that the page shows."""
        image = ("image", self.images[0])
        key: tuple[tuple[str, str], ...] = (("item", self.id),)
        if kind == "judge":
            key = (("case", self.case), ("question", self.question), image)
        elif kind == "verdict":
            key = (("sample_id", self.case), image)
        sources = (self.source,) if self.source else ()
        captions = ("left", "right") if len(self.files) > 1 else ("edited",) if sources else ("",)
        return ReviewTask(
            key=key,
            texts=(("prompt", self.prompt), *((("asked", self.asked),) if self.asked else ())),
            images=tuple(map(Path, (*sources, *self.files))),
            options=self.answers,
            captions=(*("source" for _ in sources), *captions),
            clips=tuple(len(sources) + n for n, frames in enumerate(self.frames) if frames),
        )


@dataclass(frozen=True)
class LabelingSample:
    """The drawn items, and the runs and settings that they were drawn from."""

    kind: str
    """One of `DEFAULT_SIZES`."""
    runs: tuple[tuple[str, str], ...]
    """Name and folder of each; the base run first."""
    n: int | None
    """Size as set with --n; None: that of `DEFAULT_SIZES`, or all where there are fewer."""
    seed: int
    items: Sequence[SampledItem]

    @property
    def names(self) -> list[str]:
        """Names of the runs."""
        return [name for name, _ in self.runs]

    @property
    def form(self) -> ReviewForm:
        return open_form(self.kind)

    @property
    def tasks(self) -> list[ReviewTask]:
        """The tasks that the page shows."""
        return [item.task(self.kind) for item in self.items]

    def save(self, path: Path) -> None:
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> LabelingSample:
        """Reads a sample. Raises DataError for any other file."""
        try:
            plain = json.loads(path.read_text("utf-8"))
            items = [
                SampledItem(**{n: _tuples(v) for n, v in item.items() if n != "weight"})
                for item in plain["items"]
            ]
            return cls(**{**plain, "runs": _tuples(plain["runs"]), "items": items})
        except (OSError, *MALFORMED) as error:
            raise DataError(
                f"{path}: is not a sample of runs ({error})", code="bad-format"
            ) from None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


Metrics = Mapping[str, Collection[str]]
"""Suite -> scores that images are labeled for. All that labels can correct, if none of these is."""


def open_audit(
    paths: Sequence[Path],
    kind: str,
    folder: Path,
    n: int | None = None,
    seed: int = 0,
    metrics: Metrics | None = None,
    where: Sequence[str] | None = None,
) -> Audit:
    """Opens the audit of rows in one file, of rows drawn from a release, or of images drawn from
    runs.

    metrics: draw `n` images for each of these of all runs together, which may be of several suites.
    where: FIELD=VALUE of the rows of a release.
    Raises UsageError where runs and files are mixed, and for a draw from a file.
    """
    runs = [path for path in paths if is_run(path)]
    if where and not is_release(paths[0]):
        raise UsageError(
            f"{paths[0]} is not a release: --where chooses rows of one", code="unsupported"
        )
    if runs and len(runs) == len(paths):
        sample = draw_sample(paths, kind, folder, n, seed, metrics)
        return Audit.of(sample.form, sample.tasks, folder)
    if runs or len(paths) > 1:
        raise UsageError("name folders of runs, or one file of rows", code="missing-option")
    if is_release(paths[0]):
        form = open_form(kind)
        if form is not FORMS["bank"]:
            raise UsageError(
                f"{paths[0]} is a release: it is read with --kind bank", code="unsupported"
            )
        return Audit.of(form, release_tasks(paths[0], form, folder, n, seed, where), folder)
    if n is not None or seed:
        raise UsageError(
            f"{paths[0]} is not a run or a release: --n and --seed need one to draw from",
            code="not-a-run",
        )
    return Audit.open(paths[0], kind, folder)


def is_run(path: Path) -> bool:
    """Whether a path is a run's folder."""
    return (path / HEADER).is_file()


def draw_sample(
    roots: Sequence[Path],
    kind: str,
    folder: Path,
    n: int | None = None,
    seed: int = 0,
    metrics: Metrics | None = None,
) -> LabelingSample:
    """Reads the folder's sample, or draws and writes it if there is none.

    Raises UsageError for a sample drawn with other settings: labels belong to their sample.
    """
    path = folder / SAMPLE
    run_names = short_names([root.resolve() for root in roots])
    runs = tuple((name, str(root.resolve())) for name, root in zip(run_names, roots, strict=True))
    if len({folder for _, folder in runs}) < len(roots):
        raise UsageError("a run is given twice", code="duplicate-id")
    if path.exists():
        sample = LabelingSample.read(path)
        if (sample.kind, sample.runs, sample.n, sample.seed) != (kind, runs, n, seed):
            raise UsageError(
                f"{path} was drawn with other settings ({sample.kind}, --n {sample.n}, "
                f"--seed {sample.seed}, of {', '.join(sample.names)}): choose another --out",
                code="another-run",
            )
        return sample
    opened = {name: Run.open(Path(root)) for name, root in runs}
    if metrics is None:
        check_alike(opened)
    if kind not in DEFAULT_SIZES:
        raise UsageError(
            f"{kind} is not drawn from runs: choose from {', '.join(DEFAULT_SIZES)}",
            code="unknown-name",
        )
    rng = random.Random(f"{kind} {seed}")
    if metrics is None:
        draws = {"quality": _ratings, "compare": _pairs, "judge": _questions, "verdict": _verdicts}
        items = draws[kind](opened, n, rng)
    else:
        items = _by_metric(opened, n, rng, metrics)
    sample = LabelingSample(kind, runs, n, seed, items)
    sample.save(path)
    return sample


def _shared(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[Case]:
    """`n` of the cases of which every run has an image, in random order."""
    present = [run.present() for run in runs.values()]
    cases = next(iter(runs.values())).cases()
    shared = [case for case in cases if all(case.id in images for images in present)]
    n = min(len(shared), DEFAULT_SIZES["quality"]) if n is None else n
    if not 0 < n <= len(shared):
        raise UsageError(
            f"can't draw {n} of {len(shared)} cases of which every run has an image: choose a "
            f"smaller --n",
            code="too-few-items",
        )
    return rng.sample(shared, n)


def _ratings(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[SampledItem]:
    """Every run's image of each drawn case, one at a time."""
    return [_item(runs, case, (name,)) for case in _shared(runs, n, rng) for name in runs]


def _pairs(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[SampledItem]:
    """Every two runs' images of each drawn case, side by side; half of them exchanged."""
    if len(runs) < 2:
        raise UsageError("a comparison needs at least two runs", code="too-few-items")
    items = []
    cases = _shared(runs, n, rng)
    for pair in combinations(runs, 2):
        exchanged = set(rng.sample(range(len(cases)), len(cases) // 2))
        items += [
            _item(runs, case, pair[::-1] if number in exchanged else pair)
            for number, case in enumerate(cases)
        ]
    return items


def _item(
    runs: Mapping[str, Run], case: Case, run_names: tuple[str, ...], **judge_fields: Any
) -> SampledItem:
    images = [runs[name].images()[case.id] for name in run_names]
    root = runs[run_names[0]].root.resolve()
    return SampledItem(
        id=hashlib.sha256(json.dumps([case.id, *run_names]).encode()).hexdigest()[:16],
        case=case.id,
        cluster=case.clusters[0],
        prompt=case.prompt,
        runs=run_names,
        images=tuple(image.sha256 for image in images),
        files=tuple(
            str(runs[name].image_path(image).resolve())
            for name, image in zip(run_names, images, strict=True)
        ),
        frames=tuple(image.frames for image in images),
        source=str(root / case.source) if case.source else "",
        **judge_fields,
    )


def _verdicts(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[SampledItem]:
    """`n` images over all runs."""
    items = []
    for name, run in runs.items():
        present = run.present()
        items += [_item(runs, case, (name,)) for case in run.cases() if case.id in present]
    return _uniform(items, n or DEFAULT_SIZES["verdict"], rng)


def _questions(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[SampledItem]:
    """`n` images for each question over all runs, whatever a judge answered, or none did."""
    items: dict[str, list[SampledItem]] = {}
    for item in _askable(runs):
        items.setdefault(item.question, []).append(item)
    size = n or DEFAULT_SIZES["judge"]
    return [item for question in sorted(items) for item in _uniform(items[question], size, rng)]


def _by_metric(
    runs: Mapping[str, Run], n: int | None, rng: random.Random, metrics: Metrics
) -> list[SampledItem]:
    """`n` images for each metric over all runs of its suite, with all questions that it needs."""
    needed: dict[tuple[str, str, str], frozenset[str]] = {}  # run, case, metric -> questions
    for name, run in runs.items():
        suite, wanted = open_suite(run.header.suite), metrics[run.header.suite]
        measures = list(suite.measures([Outcome(case) for case in run.cases()]))
        chosen = [entry for entry in measures if entry[1].name in wanted] or measures
        for questions, measure in chosen:
            for outcome in measure.outcomes:
                needed[name, outcome.case.id, f"{suite.name}/{measure.name}"] = questions
    by_image: dict[tuple[str, str], list[SampledItem]] = {}
    for item in _askable(runs):
        by_image.setdefault((item.runs[0], item.case), []).append(item)
    images: dict[str, list[SampledItem]] = {}
    for run_name, case, metric in needed:
        if asked := by_image.get((run_name, case)):
            images.setdefault(metric, []).append(asked[0])
    drawn = []
    for metric in sorted(images):
        for image in _uniform(images[metric], n or DEFAULT_SIZES["judge"], rng):
            questions = needed[image.runs[0], image.case, metric]
            asked = by_image[image.runs[0], image.case]
            drawn += [replace(q, metric=metric) for q in asked if q.question in questions]
    return drawn


def _askable(runs: Mapping[str, Run]) -> Iterator[SampledItem]:
    """Every question that a judge is asked about an image of the runs."""
    for name, run in runs.items():
        log = run.chosen_judges(())[0]
        persona = log.identity.get("persona", "standard")
        asking = Asking(run.root, run.header.suite, persona, (ORIGINAL,))
        suite, present = asking.open_suite(), run.present()
        with Evaluation.open(run.root) as evaluation:
            for case in evaluation.cases:
                if case.id not in present:
                    continue
                row, image = evaluation.rows[case.row], run.images()[case.id]
                for question in asking.planned(suite, row, case, image):  # of each frame alike
                    yield _item(
                        runs,
                        case,
                        (name,),
                        question=question.name,
                        asked=(CLIP_PREAMBLE if image.frames else "") + question.prompt.strip(),
                        answers=tuple(
                            (label, digit) for digit, label in sorted(question.answers.items())
                        ),
                    )


def _uniform(items: Sequence[SampledItem], n: int, rng: random.Random) -> list[SampledItem]:
    """At most `n` of the items, in random order.

    An image that is the same in two runs is drawn once, for the first run.
    """
    distinct: dict[tuple[str, str], SampledItem] = {}
    for item in items:
        distinct.setdefault((item.case, item.images[0]), item)
    ordered = sorted(distinct.values(), key=lambda item: item.id)
    return rng.sample(ordered, min(n, len(ordered)))
