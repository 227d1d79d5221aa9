"""`counterprior race`: where a race's scores come from: recorded ones, or a run of each generator.

A live race is a loop around the engine: each generator has a run folder, and an image is made and
judged when the race asks for it. What is there is never made again, so a stopped race goes on.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from ...errors import RunFailed, UsageError
from ...progress import Progress
from ...specs import without_password
from ...storage import Lock, write_json, write_whole
from ...tables import RowError
from ..core import FAILURES, Generator, Judge, Verdict
from ..engine.costs import Cost, capped, count_images
from ..engine.data import Rows, read_rows
from ..engine.evaluation import Evaluation, RunSettings, outcomes
from ..generators import as_generator
from ..judges import Answering, as_judge
from ..methods import Method, apply_methods
from ..results.agree import read_scores
from ..suites import open_suite
from .race import RaceSettings, course_figure, race

HEADER = "race.json"
RESULT = "result.json"
FIGURE = "race.svg"
"""Pulls and regret, where the policy pulls."""
_LOCK = "race.lock"


@dataclass(frozen=True)
class LiveSettings:
    """A race of generators on a suite."""

    suite: str
    """Config; its images must be right or wrong, or right to a share."""
    generators: tuple[str, ...]
    judge: str
    data: str
    """Release folder or repository."""
    limit: int | None = None
    """Rows to sample; None for all."""
    seeds: int = 1
    methods: tuple[str, ...] = ()
    """What every generator is changed by, in this order, e.g. ``switch:a2b?at=3``."""
    cost: Cost = field(default_factory=Cost)
    """How paid calls are made; the cap is over all generators and the judge together."""
    by: Literal["label", "number"] = "label"
    """What an image scores: what its labels are worth, or what the judge measured, e.g. PSE."""


class Recorded:
    """Scores that were made before: files of rows with sample_id and a column of scores."""

    def __init__(self, specs: Iterable[str], metric: str) -> None:
        """specs are `NAME=FILE`. Raises RowError unless all files hold the metric."""
        self._scores: dict[str, Mapping[str, float]] = {}
        self._digests = {}
        for spec in specs:
            name, _, file = spec.rpartition("=")
            path = Path(file)
            columns = read_scores(path)
            if metric not in columns:
                raise RowError(
                    f"{path}: no metric {metric!r}: choose from {', '.join(columns)}",
                    code="unknown-name",
                )
            self._scores[name or path.stem] = columns[metric]
            self._digests[name or path.stem] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.metric = metric
        self.first_error = ""
        self.names = tuple(self._scores)
        self.items = tuple(sorted(set().union(*self._scores.values())))

    def score(self, name: str, item: str) -> float | str:
        """In [0, 1], or `missing`."""
        return self._scores[name].get(item, "missing")

    def identity(self) -> dict[str, Any]:
        """What is compared; a race goes on only with the same."""
        return {"kind": "recorded", "metric": self.metric, "sha256": self._digests}


class Live:
    """A run of each generator, whose images are made and judged when they are asked for."""

    def __init__(self, settings: LiveSettings, out: Path, found: Rows | None = None) -> None:
        """Raises UsageError for a bad spec and a suite that can't be raced, ReleaseError for bad
        data, InUseError where another process races here."""
        self._settings = settings
        suite = open_suite(settings.suite)
        if not suite.has_right_images:
            raise UsageError(
                f"{suite.name} has no right and wrong images: it can't be raced", code="unsupported"
            )
        plan = settings.cost.plan(out)
        self._judge: Judge = as_judge(settings.judge, plan)
        self._open = ExitStack()
        self._runs: dict[str, tuple[Evaluation, Generator]] = {}
        found = found or read_rows(settings.data, settings.suite)
        self._digest = found.digest
        names = tuple(map(without_password, settings.generators))
        with ExitStack() as opened:
            for number, spec in enumerate(settings.generators):
                generator = apply_methods(as_generator(spec), settings.methods)
                root = out / "runs" / str(number)
                seeds, limit = settings.seeds, settings.limit
                run = RunSettings(settings.suite, settings.data, root, seeds=seeds, limit=limit)
                evaluation = Evaluation.start(run, generator.identity(), found)
                opened.enter_context(evaluation)
                evaluation.check_sources()
                evaluation.check_generator(generator)
                if isinstance(generator, Method):
                    generator.prepare(root, plan)
                self._runs[names[number]] = evaluation, capped(generator, plan, evaluation.run)[0]
                count_images(plan, evaluation.run)
            self._open = opened.pop_all()
        if isinstance(self._judge, Answering):
            self._judge.check()
        self.first_error = ""
        self._cases = {case.id: case for case in next(iter(self._runs.values()))[0].cases}
        self.names = names
        self.items = tuple(self._cases)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def score(self, name: str, item: str) -> float | str:
        """In [0, 1], or why there is none: a failure, or a label neither right nor wrong."""
        evaluation, generator = self._runs[name]
        cases = [self._cases[item]]
        evaluation.make(generator, cases)
        log, tally = evaluation.ask(self._judge, cases=cases)
        self.first_error = self.first_error or tally.first_error
        (outcome,) = outcomes(evaluation.run, log, cases)
        asked = list(outcome.case.weights or evaluation.suite.worths)
        if self._settings.by == "label":
            value = evaluation.suite.correctness(outcome)
        else:
            value = _measured([outcome.verdict(question) for question in asked])
        if not math.isnan(value):
            return value
        labels = [outcome.label(question) for question in asked]
        failed = [label for label in labels if label in FAILURES]
        return (failed or labels)[0]

    def identity(self) -> dict[str, Any]:
        """What is compared; a race goes on only with the same."""
        settings = {k: v for k, v in vars(self._settings).items() if k != "cost"}
        settings |= {"generators": self.names, "judge": without_password(self._settings.judge)}
        return {
            "kind": "live",
            "settings": settings,
            "rows_sha256": self._digest,
            "judge": self._judge.identity(),
            "generators": [generator.identity() for _, generator in self._runs.values()],
        }


def _measured(said: Sequence[Verdict]) -> float:
    """Mean of what was measured; NaN where a verdict failed or holds no number."""
    numbers = [math.nan if one.number is None else one.number for one in said]
    return sum(numbers) / len(numbers)


def race_scores(
    specs: Sequence[str], metric: str, settings: RaceSettings, out: Path, progress: Progress
) -> dict[str, Any]:
    """Races on recorded scores, `NAME=FILE` each."""
    with Lock(out / _LOCK, f"the race {out}"):
        return run_race(Recorded(specs, metric), settings, out, progress)


def race_live(
    live: LiveSettings, settings: RaceSettings, out: Path, progress: Progress
) -> dict[str, Any]:
    """Races generators whose images are made and judged as the race asks for them.

    Raises UsageError unless suite, generators and judge are named, and for a bad `by`.
    """
    if live.by not in ("label", "number"):
        raise UsageError(f"--by {live.by!r}: choose from label, number", code="unknown-name")
    if not (live.suite and live.generators and live.judge):
        raise UsageError(
            "a race needs --scores, or --suite with --generator and --judge", code="missing-option"
        )
    with Lock(out / _LOCK, f"the race {out}"), Live(live, out) as source:
        return run_race(source, settings, out, progress)


def run_race(
    source: Recorded | Live, settings: RaceSettings, out: Path, progress: Progress
) -> dict[str, Any]:
    """Races, or goes on with a race that was interrupted; writes and returns the result.

    Raises UsageError where `out` holds a race of something else, RunFailed where no image at all
    could be scored.
    """
    header = json.loads(json.dumps({"settings": asdict(settings), "source": source.identity()}))
    path = out / HEADER
    if path.exists() and json.loads(path.read_text("utf-8")) != header:
        raise UsageError(f"{out} holds another race: choose another --out", code="another-run")
    write_json(path, header)
    why: dict[str, Counter[str]] = {name: Counter() for name in source.names}

    def score(name: str, item: str) -> float | None:
        found = source.score(name, item)
        if isinstance(found, str):
            why[name][found] += 1
            return None
        return found

    result = race(source.names, source.items, score, settings, progress)
    failures = {name: dict(sorted(counts.items())) for name, counts in why.items()}
    if all(mean is None for mean in result.means.values()):
        causes = "; ".join(f"{name}: {counts}" for name, counts in failures.items())
        first = f"; the first: {source.first_error}" if source.first_error else ""
        raise RunFailed(
            f"no image of the race could be scored ({causes}){first}", code="all-failed"
        )
    plain: dict[str, Any] = json.loads(json.dumps(asdict(result) | {"failures": failures}))
    if figure := course_figure(result):
        write_whole(out / FIGURE, figure)
    write_json(out / RESULT, plain)
    return plain
