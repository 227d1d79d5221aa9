"""`counterprior study race`: sources of a race's scores, recorded files or a run of each generator.

A live race is a loop around the engine: each generator has a run folder, and an image is made and
judged when the race asks for it. Recorded images are never made again, so a stopped race goes on.
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
from ...parsing import RowError
from ...parsing import read_rows as read_records
from ...progress import Progress
from ...specs import without_secrets
from ...storage import Lock, write_json, write_whole
from ..core import FAILURES, Generator, Judge, Verdict
from ..engine.costs import Cost, capped, count_images
from ..engine.data import Rows, read_rows
from ..engine.evaluation import Evaluation, RunSettings, outcomes
from ..generators import as_generator
from ..judges import Answering, as_judge
from ..methods import Method, apply_methods
from ..results.agree import read_scores
from ..stats.items import expected_discordance
from ..suites import open_suite
from .items import model_of, read_items
from .race import RaceSettings, course_figure, race

HEADER = "race.json"
RESULT = "result.json"
FIGURE = "race.svg"
"""Figure of pulls and regret, if the policy pulls."""
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
    """Specs of methods around every generator, in this order, e.g. ``switch:a2b?at=3``."""
    cost: Cost = field(default_factory=Cost)
    """How paid calls are made; the cap is over all generators and the judge together."""
    by: Literal["label", "number"] = "label"
    """Source of an image's score: the worth of its labels, or the judge's measurement, e.g. PSE."""


class Recorded:
    """Recorded scores: files of rows with sample_id and a column of scores."""

    def __init__(self, specs: Iterable[str], metric: str) -> None:
        """specs are `NAME=FILE`. Raises RowError unless all files hold the metric, and for an item
        that is in two clusters."""
        self._scores: dict[str, Mapping[str, float]] = {}
        self._digests = {}
        self.clusters: dict[str, str] = {}
        for spec in specs:
            name, _, file = spec.rpartition("=")
            path = Path(file)
            columns = read_scores(path).by_metric
            if metric not in columns:
                raise RowError(
                    f"{path}: no metric {metric!r}: choose from {', '.join(columns)}",
                    code="unknown-name",
                )
            self._scores[name or path.stem] = columns[metric]
            self._read_clusters(path)
            self._digests[name or path.stem] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.metric = metric
        self.first_error = ""
        self.names = tuple(self._scores)
        self.items = tuple(sorted(set().union(*self._scores.values())))

    def _read_clusters(self, path: Path) -> None:
        """Reads the column `cluster`, if there is one."""
        for number, row in read_records(path):
            item, cluster = str(row["sample_id"]), row.get("cluster")
            if cluster and self.clusters.setdefault(item, str(cluster)) != str(cluster):
                raise RowError(
                    f"{path}:{number}: cluster: {item!r} is in {cluster!r} here and in "
                    f"{self.clusters[item]!r} elsewhere",
                    code="conflicting-labels",
                )

    def score(self, name: str, item: str) -> float | str:
        """Returns a score in [0, 1], or `missing`."""
        return self._scores[name].get(item, "missing")

    def identity(self) -> dict[str, Any]:
        """Identity of the competitors; a race continues only with an equal one."""
        return {"kind": "recorded", "metric": self.metric, "sha256": self._digests}


class Live:
    """Runs of each generator, which make and judge an image when the race asks for it."""

    def __init__(self, settings: LiveSettings, out: Path, rows: Rows | None = None) -> None:
        """Raises UsageError for a bad spec and a suite that can't be raced, ReleaseError for bad
        data, InUseError where another process races here."""
        self._settings = settings
        suite = open_suite(settings.suite)
        if not suite.has_right_images:
            raise UsageError(
                f"{suite.name} has no right and wrong images: it can't be raced", code="unsupported"
            )
        self._runs: dict[str, tuple[Evaluation, Generator]] = {}
        rows = rows or read_rows(settings.data, settings.suite)
        self._digest = rows.digest
        generator_names = tuple(map(without_secrets, settings.generators))
        with ExitStack() as opened:
            plan = opened.enter_context(settings.cost.plan(out))
            self._judge: Judge = as_judge(settings.judge, plan)
            for number, spec in enumerate(settings.generators):
                generator = apply_methods(as_generator(spec), settings.methods)
                root = out / "runs" / str(number)
                seeds, limit = settings.seeds, settings.limit
                run = RunSettings(settings.suite, settings.data, root, seeds=seeds, limit=limit)
                evaluation = Evaluation.start(run, generator.identity(), rows)
                opened.enter_context(evaluation)
                evaluation.check_sources()
                evaluation.check_generator(generator)
                if isinstance(generator, Method):
                    generator.prepare(root, plan)
                self._runs[generator_names[number]] = (
                    evaluation,
                    capped(generator, plan, evaluation.run)[0],
                )
                count_images(plan, evaluation.run)
            if isinstance(self._judge, Answering):
                self._judge.check()
            self._open = opened.pop_all()
        self.first_error = ""
        self._cases = {case.id: case for case in next(iter(self._runs.values()))[0].cases}
        self.names = generator_names
        self.items = tuple(self._cases)
        self.clusters = {case.id: case.clusters[0] for case in self._cases.values()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def score(self, name: str, item: str) -> float | str:
        """Returns a score in [0, 1], or the failure or undecided label instead of one."""
        evaluation, generator = self._runs[name]
        cases = [self._cases[item]]
        evaluation.make(generator, cases)
        log, tally = evaluation.ask(self._judge, cases=cases)
        self.first_error = self.first_error or tally.first_error
        (outcome,) = outcomes(evaluation.run, log, cases)
        questions = list(outcome.case.weights or evaluation.suite.worths)
        if self._settings.by == "label":
            value = evaluation.suite.correctness(outcome)
        else:
            value = _measured([outcome.verdict(question) for question in questions])
        if not math.isnan(value):
            return value
        labels = [outcome.label(question) for question in questions]
        failed = [label for label in labels if label in FAILURES]
        return (failed or labels)[0]

    def identity(self) -> dict[str, Any]:
        """Identity of the competitors; a race continues only with an equal one."""
        settings = {k: v for k, v in vars(self._settings).items() if k != "cost"}
        settings |= {"generators": self.names, "judge": without_secrets(self._settings.judge)}
        return {
            "kind": "live",
            "settings": settings,
            "rows_sha256": self._digest,
            "judge": self._judge.identity(),
            "generators": [generator.identity() for _, generator in self._runs.values()],
        }


def _measured(verdicts: Sequence[Verdict]) -> float:
    """Mean of the measured numbers; NaN if a verdict failed or has no number."""
    numbers = [math.nan if verdict.number is None else verdict.number for verdict in verdicts]
    return sum(numbers) / len(numbers)


def race_scores(
    specs: Sequence[str],
    metric: str,
    settings: RaceSettings,
    out: Path,
    progress: Progress,
    items: Path | None = None,
) -> dict[str, Any]:
    """Races on recorded scores, `NAME=FILE` each. items: as in `run_race`."""
    with Lock(out / _LOCK, f"the race {out}"):
        return run_race(Recorded(specs, metric), settings, out, progress, items)


def race_live(
    live: LiveSettings,
    settings: RaceSettings,
    out: Path,
    progress: Progress,
    items: Path | None = None,
) -> dict[str, Any]:
    """Races generators whose images are made and judged as the race asks for them.

    items: as in `run_race`. Raises UsageError unless suite, generators and judge are named, and for
    a bad `by`.
    """
    if live.by not in ("label", "number"):
        raise UsageError(f"--by {live.by!r}: choose from label, number", code="unknown-name")
    if not (live.suite and live.generators and live.judge):
        raise UsageError(
            "a race needs --scores, or --suite with --generator and --judge", code="missing-option"
        )
    with Lock(out / _LOCK, f"the race {out}"), Live(live, out) as source:
        return run_race(source, settings, out, progress, items)


def run_race(
    source: Recorded | Live,
    settings: RaceSettings,
    out: Path,
    progress: Progress,
    items: Path | None = None,
) -> dict[str, Any]:
    """Races, or goes on with a race that was interrupted; writes and returns the result.

    items: what `counterprior study items` wrote, by which informative items are drawn more often;
    None to draw all alike. Raises UsageError if `out` holds another race, for a policy that draws
    on its own, and for a model of none of the items; RunFailed if no image at all could be scored.
    """
    information = None if items is None else _information(items, source.items, settings)
    header = json.loads(json.dumps({"settings": asdict(settings), "source": source.identity()}))
    if information is not None:
        plain_text = json.dumps(information, sort_keys=True)
        header["information"] = hashlib.sha256(plain_text.encode()).hexdigest()
    path = out / HEADER
    if path.exists() and json.loads(path.read_text("utf-8")) != header:
        raise UsageError(f"{out} holds another race: choose another --out", code="another-run")
    write_json(path, header)
    why: dict[str, Counter[str]] = {name: Counter() for name in source.names}

    def score(name: str, item: str) -> float | None:
        score_or_failure = source.score(name, item)
        if isinstance(score_or_failure, str):
            why[name][score_or_failure] += 1
            return None
        return score_or_failure

    result = race(
        source.names, source.items, score, settings, progress, source.clusters, information
    )
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


def _information(path: Path, items: Sequence[str], settings: RaceSettings) -> dict[str, float]:
    """Item -> probability that two like generators differ on it, for items of the model; those are
    named by case, or by prompt."""
    if settings.policy != "eliminate":
        raise UsageError(
            f"--items is for the policy eliminate: {settings.policy} draws on its own",
            code="conflicting-options",
        )
    report = read_items(path)
    discordance = expected_discordance(model_of(report)).tolist()
    of_prompt = dict(zip((item.item for item in report.items), discordance, strict=True))
    known = {
        item: of_prompt[prompt]
        for item in items
        for prompt in (item if item in of_prompt else item.rpartition("-")[0],)
        if prompt in of_prompt
    }
    if not known:
        raise UsageError(
            f"--items {path}: of {report.suite}, and none of its {len(of_prompt):,} prompts is "
            "raced",
            "make a model of runs of the same suite",
            code="wrong-suite",
        )
    return known
