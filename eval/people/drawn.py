"""What people label of runs: drawn once, kept beside their clicks, and never told to them.

`OUT/sample.json` says which run and case each item of the page is. The page has the items' names
alone, which are digests.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ...storage import write_json
from ...tables import MALFORMED
from ..core import ORIGINAL, Case
from ..engine.asking import Asking
from ..engine.evaluation import Evaluation
from ..engine.run import HEADER, Run, RunError
from ..results.judge_card import labels_of
from ..results.names import short_names
from .forms import FORMS, ReviewForm, ReviewTask, open_form
from .gold import is_release, release_tasks
from .sample import equal_shares
from .serve import Audit

SAMPLE = "sample.json"
MOST = {"quality": 100, "compare": 100, "judge": 400, "verdict": 200}
"""What can be drawn from runs, and how many where nobody says: cases of which each run has an image
(quality, compare), answers of each question (judge), images (verdict)."""

OF_CLIPS = (
    "This is a clip. What is asked of the picture: answer with what most of the clip shows.\n"
)
"""Before the judge's question, where people answer it of a clip: their label stands beside the
verdict of most frames."""


@dataclass(frozen=True)
class DrawnItem:
    """One thing to label."""

    id: str
    """A digest, which tells the annotator nothing."""
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
    """Of each that is a clip, how many it has; 0 of an image. Empty in older samples."""
    source: str = ""
    """Path of the image that was edited; empty for text-to-image."""
    question: str = ""
    """Name of the judge's question, where one is asked."""
    asked: str = ""
    """Its text."""
    answers: tuple[tuple[str, str], ...] = ()
    """Its labels, each with the digit that stands for it in the text."""
    weight: float = 1.0
    """How many it stands for."""

    def task(self, kind: str) -> ReviewTask:
        """What the page shows of it."""
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
class DrawnSample:
    """What was drawn, of what, and how."""

    kind: str
    """One of `MOST`."""
    runs: tuple[tuple[str, str], ...]
    """Name and folder of each; the base run first."""
    n: int | None
    """How many were asked for; None for `MOST`, or all where there are fewer."""
    seed: int
    items: Sequence[DrawnItem]

    @property
    def names(self) -> list[str]:
        """Of the runs."""
        return [name for name, _ in self.runs]

    @property
    def form(self) -> ReviewForm:
        return open_form(self.kind)

    @property
    def tasks(self) -> list[ReviewTask]:
        """What the page shows."""
        return [item.task(self.kind) for item in self.items]

    def save(self, path: Path) -> None:
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> DrawnSample:
        """Raises DataError for a file that holds no sample."""
        try:
            plain = json.loads(path.read_text("utf-8"))
            items = [DrawnItem(**{n: _tuples(v) for n, v in one.items()}) for one in plain["items"]]
            return cls(**{**plain, "runs": _tuples(plain["runs"]), "items": items})
        except (OSError, *MALFORMED) as error:
            raise DataError(f"{path}: is not a sample of runs ({error})") from None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def open_audit(
    paths: Sequence[Path], kind: str, folder: Path, n: int | None = None, seed: int = 0
) -> Audit:
    """The audit of rows in one file or of a release, or of images drawn from runs.

    Raises UsageError where runs and files are mixed, and for a draw from a file.
    """
    runs = [path for path in paths if is_run(path)]
    if runs and len(runs) == len(paths):
        sample = drawn_sample(paths, kind, folder, n, seed)
        return Audit.of(sample.form, sample.tasks, folder)
    if runs or len(paths) > 1:
        raise UsageError("give folders of runs, or one file of rows")
    if n is not None or seed:
        raise UsageError(f"{paths[0]} is not a run: --n and --seed need runs to draw from")
    if is_release(paths[0]):
        form = open_form(kind)
        if form is not FORMS["bank"]:
            raise UsageError(f"{paths[0]} is a release: it is read with --kind bank")
        return Audit.of(form, release_tasks(paths[0], form, folder), folder)
    return Audit.open(paths[0], kind, folder)


def is_run(path: Path) -> bool:
    """Whether a path is a run's folder."""
    return (path / HEADER).is_file()


def drawn_sample(
    roots: Sequence[Path], kind: str, folder: Path, n: int | None = None, seed: int = 0
) -> DrawnSample:
    """The sample in the folder; drawn and put there where there is none.

    Raises UsageError for a sample that was drawn otherwise: labels belong to their sample.
    """
    path = folder / SAMPLE
    names = short_names([root.resolve() for root in roots])
    runs = tuple((name, str(root.resolve())) for name, root in zip(names, roots, strict=True))
    if len({folder for _, folder in runs}) < len(roots):
        raise UsageError("a run is given twice")
    if path.exists():
        found = DrawnSample.read(path)
        asked = (kind, runs, n, seed)
        if (found.kind, found.runs, found.n, found.seed) != asked:
            raise UsageError(
                f"{path} was drawn with other settings ({found.kind}, --n {found.n}, "
                f"--seed {found.seed}, of {', '.join(found.names)}): choose another --out"
            )
        return found
    opened = {name: Run.open(Path(root)) for name, root in runs}
    _check_alike(opened)
    if kind not in MOST:
        raise UsageError(f"{kind} is not drawn from runs: choose from {', '.join(MOST)}")
    draw = {"quality": _ratings, "compare": _pairs, "judge": _questions, "verdict": _verdicts}[kind]
    items = draw(opened, n, random.Random(f"{kind} {seed}"))
    sample = DrawnSample(kind, runs, n, seed, items)
    sample.save(path)
    return sample


def _check_alike(runs: Mapping[str, Run]) -> None:
    base, *others = runs
    for name in others:
        one, first = runs[name].header, runs[base].header
        if (one.suite, one.rows_sha256) != (first.suite, first.rows_sha256):
            raise RunError(f"{name} and {base} are of different rows: they can't be compared")


def _shared(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[Case]:
    """`n` of the cases of which every run has an image, in random order."""
    present = [run.present() for run in runs.values()]
    cases = next(iter(runs.values())).cases()
    known = [case for case in cases if all(case.id in images for images in present)]
    n = min(len(known), MOST["quality"]) if n is None else n
    if not 0 < n <= len(known):
        raise UsageError(
            f"can't draw {n} of {len(known)} cases of which every run has an image: choose a "
            f"smaller --n"
        )
    return rng.sample(known, n)


def _ratings(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[DrawnItem]:
    """Every run's image of each drawn case, one at a time."""
    return [_item(runs, case, (name,)) for case in _shared(runs, n, rng) for name in runs]


def _pairs(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[DrawnItem]:
    """Every two runs' images of each drawn case, side by side; half of them exchanged."""
    if len(runs) < 2:
        raise UsageError("two runs are needed to compare their images")
    items = []
    cases = _shared(runs, n, rng)
    for pair in combinations(runs, 2):
        exchanged = set(rng.sample(range(len(cases)), len(cases) // 2))
        items += [
            _item(runs, case, pair[::-1] if number in exchanged else pair)
            for number, case in enumerate(cases)
        ]
    return items


def _item(runs: Mapping[str, Run], case: Case, names: tuple[str, ...], **more: Any) -> DrawnItem:
    made = [runs[name].images()[case.id] for name in names]
    parts = zip(names, made, strict=True)
    root = runs[names[0]].root.resolve()
    return DrawnItem(
        id=hashlib.sha256(json.dumps([case.id, *names]).encode()).hexdigest()[:16],
        case=case.id,
        cluster=case.clusters[0],
        prompt=case.prompt,
        runs=names,
        images=tuple(image.sha256 for image in made),
        files=tuple(str(runs[n].image_path(image).resolve()) for n, image in parts),
        frames=tuple(image.frames for image in made),
        source=str(root / case.source) if case.source else "",
        **more,
    )


def _verdicts(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[DrawnItem]:
    """`n` images over all runs: each run and each of its groups as often as it has them."""
    strata: dict[tuple[str, ...], list[DrawnItem]] = {}
    for name, run in runs.items():
        present = run.present()
        for case in (case for case in run.cases() if case.id in present):
            group = [f"{column}={value}" for column, value in sorted(case.groups.items())[:1]]
            strata.setdefault((name, *group), []).append(_item(runs, case, (name,)))
    return _drawn(strata, n or MOST["verdict"], rng)


def _questions(runs: Mapping[str, Run], n: int | None, rng: random.Random) -> list[DrawnItem]:
    """`n` answers of each question over all runs, every label of every run as often as it is there.

    By the labels of each run's first judge, so that rare ones are seen.
    """
    strata: dict[str, dict[tuple[str, ...], list[DrawnItem]]] = {}
    for name, run in runs.items():
        log = run.chosen_judges(())[0]
        said = labels_of(log.present(run.present()))
        persona = log.identity.get("persona", "standard")
        asking = Asking(run.root, run.header.suite, persona, (ORIGINAL,))
        suite = asking.open_suite()
        with Evaluation.open(run.root) as evaluation:
            for case in evaluation.cases:
                row, image = evaluation.rows[case.row], run.images()[case.id]
                for question in asking.planned(suite, row, case, image):  # of each frame alike
                    label = said.get((case.id, question.name))
                    if label is None:
                        continue
                    item = _item(
                        runs,
                        case,
                        (name,),
                        question=question.name,
                        asked=(OF_CLIPS if image.frames else "") + question.prompt.strip(),
                        answers=tuple((label, digit) for digit, label in question.answers.items()),
                    )
                    part = strata.setdefault(question.name, {})
                    part.setdefault((name, label), []).append(item)
    return [
        item
        for question in sorted(strata)
        for item in _drawn(strata[question], n or MOST["judge"], rng)
    ]


def _drawn(
    strata: Mapping[tuple[str, ...], Sequence[DrawnItem]], n: int, rng: random.Random
) -> list[DrawnItem]:
    """At most `n`, equal shares of each stratum as far as it reaches, each with its weight.

    An image that is the same in two runs is asked about once, as of the first.
    """
    seen: set[tuple[str, str, str]] = set()
    distinct: dict[tuple[str, ...], list[DrawnItem]] = {}
    for name, items in strata.items():
        for item in items:
            key = (item.case, item.question, item.images[0])
            if key not in seen:
                distinct.setdefault(name, []).append(item)
            seen.add(key)
    strata = distinct
    sizes = {name: len(strata[name]) for name in sorted(strata)}
    share = equal_shares(sizes, min(n, sum(sizes.values())), rng)
    found = []
    for name in (name for name in sizes if share[name]):
        weight = sizes[name] / share[name]
        ordered = sorted(strata[name], key=lambda item: item.id)
        found += [replace(item, weight=weight) for item in rng.sample(ordered, share[name])]
    return found
