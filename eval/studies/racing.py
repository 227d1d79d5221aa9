"""`counterprior race`: where a race's scores come from, and the log from which it goes on.

Scores are recorded ones, or pictures that are made and judged when the race asks for them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from PIL.Image import Image

from ...images import ImageError, encode_png, open_image
from ...storage import RecordLog, read_records, write_whole
from ...tables import RowError
from ..core import Case
from ..engine.data import Rows, read_rows, sample_rows
from ..generators import Gallery, GeneratorError, ImageRequest, open_images
from ..judges import Judge, Question, open_judge
from ..results.agree import read_scores
from ..suites import open_suite, source_image
from .race import Progress, RaceSettings, race

LOG = "scores.jsonl"
HEADER = "race.json"
RESULT = "result.json"


class Scored(NamedTuple):
    """The score of one picture."""

    value: float | None
    """In [0, 1]; None where there is no picture or no verdict."""
    why: str = ""
    """Where there is none: `missing`, `refused`, `error`, `unparsed`, or a label that is neither
    right nor wrong."""


class Source(Protocol):
    """What is raced."""

    @property
    def names(self) -> Sequence[str]:
        """Generators."""
        ...

    @property
    def items(self) -> Sequence[str]:
        """What each of them can be scored on."""
        ...

    def score(self, name: str, item: str) -> Scored:
        """The picture of an item by a generator."""
        ...

    def identity(self) -> dict[str, Any]:
        """What is compared; a race goes on only with the same."""
        ...


@dataclass(frozen=True)
class LiveSettings:
    """A race of generators on a suite."""

    suite: str
    """Config; its picture scores must be right or wrong, or shares."""
    generators: tuple[str, ...]
    """Specs."""
    judge: str
    """Spec."""
    data: str
    """Release folder or repository."""
    limit: int | None = None
    """Rows to sample; None for all."""
    seeds: int = 1
    """Pictures of each prompt."""


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
                raise RowError(f"{path}: no metric {metric!r}: choose from {', '.join(columns)}")
            self._scores[name or path.stem] = columns[metric]
            self._digests[name or path.stem] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.metric = metric
        self.names = tuple(self._scores)
        self.items = tuple(sorted(set().union(*self._scores.values())))

    def score(self, name: str, item: str) -> Scored:
        value = self._scores[name].get(item)
        return Scored(value, "missing" if value is None else "")

    def identity(self) -> dict[str, Any]:
        return {"kind": "recorded", "metric": self.metric, "sha256": self._digests}


class Live:
    """Pictures that are made and judged when they are asked for."""

    def __init__(self, settings: LiveSettings, out: Path, found: Rows | None = None) -> None:
        """Raises ValueError for a bad spec, ReleaseError for bad data."""
        self._settings, self._out = settings, out
        self._suite = open_suite(settings.suite)
        self._judge = open_judge(settings.judge)
        self._generators = {spec: open_images(spec) for spec in settings.generators}
        rows = found or read_rows(settings.data, settings.suite)
        self._digest = rows.digest
        self._rows = {row.id: row for row in sample_rows(rows.rows, settings.limit)}
        self._cases = {
            case.id: case
            for row in self._rows.values()
            for case in self._suite.cases(row, settings.seeds)
        }
        self.names = settings.generators
        self.items = tuple(self._cases)

    def score(self, name: str, item: str) -> Scored:
        case = self._cases[item]
        row = self._rows[case.row]
        try:
            source = source_image(row)
            picture = open_image(self._picture(name, case, source))
        except FileNotFoundError:
            return Scored(None, "missing")
        except GeneratorError as error:
            return Scored(None, error.status)
        except (ImageError, OSError, ValueError):
            return Scored(None, "error")
        images = (picture,) if source is None else (source.convert("RGB"), picture)
        return case_score(case, self._suite.questions(row, case, images, "original"), self._judge)

    def _picture(self, name: str, case: Case, source: Image | None) -> Path:
        """Path of the picture, made where it isn't there."""
        generator = self._generators[name]
        if isinstance(generator, Gallery):
            return generator.find(case)
        path = self._out / f"pictures{self.names.index(name)}" / f"{case.id}.png"
        if not path.exists():
            image = generator.generate(ImageRequest(case.prompt, case.seed, source))
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, encode_png(image))
        return path

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "live",
            "settings": asdict(self._settings),
            "rows_sha256": self._digest,
            "judge": self._judge.identity(),
            "generators": [one.identity() for one in self._generators.values()],
        }


def open_source(live: LiveSettings, scores: Sequence[str], metric: str, out: Path) -> Source:
    """Recorded scores where there are any, else a live race. Raises ValueError for neither."""
    if scores:
        return Recorded(scores, metric)
    if not (live.suite and live.generators and live.judge):
        raise ValueError("a race needs --scores, or --suite with --generator and --judge")
    return Live(live, out)


def case_score(case: Case, questions: Sequence[Question], judge: Judge) -> Scored:
    """Weighted share of questions answered with their first label, in [0, 1].

    No score where one of them has neither its first nor its second label: a picture that can't be
    judged is no wrong one.
    """
    total = weights = 0.0
    for question, verdict in judge.judge(questions):
        if verdict.label not in question.labels[:2]:
            return Scored(None, verdict.label)
        weight = case.weights.get(question.id.split("/")[1], 1.0)
        total += weight * (verdict.label == question.labels[0])
        weights += weight
    return Scored(total / weights) if weights else Scored(None, "missing")


class Logged:
    """A source whose scores are on disk when they are known, each asked for once."""

    def __init__(self, source: Source, log: RecordLog, records: Iterable[Mapping[str, Any]]):
        self._source, self._log = source, log
        self.known = {(r["generator"], r["item"]): Scored(r["score"], r["why"]) for r in records}

    def score(self, name: str, item: str) -> float | None:
        """From the log where it is there, else from the source."""
        if (name, item) not in self.known:
            found = self._source.score(name, item)
            self._log.append(
                {"generator": name, "item": item, "score": found.value, "why": found.why}
            )
            self.known[name, item] = found
        return self.known[name, item].value

    def failures(self, name: str) -> dict[str, int]:
        """Why pictures of a generator have no score, and how many."""
        reasons = Counter(found.why for (n, _), found in self.known.items() if n == name)
        return {why: count for why, count in sorted(reasons.items()) if why}


def run_race(
    source: Source, settings: RaceSettings, out: Path, progress: Progress
) -> dict[str, Any]:
    """Races, or goes on with a race that was interrupted; writes and returns the result.

    Raises ValueError where `out` holds a race of something else.
    """
    header = json.dumps({"settings": asdict(settings), "source": source.identity()}, indent=2)
    path = out / HEADER
    if path.exists() and path.read_text("utf-8") != header + "\n":
        raise ValueError(f"{out} holds another race: choose another --out")
    write_whole(path, header + "\n")
    with RecordLog(out / LOG) as log:
        logged = Logged(source, log, read_records(out / LOG))
        found = race(source.names, source.items, logged.score, settings, progress)
    result = found.to_json() | {"failures": {n: logged.failures(n) for n in source.names}}
    text = json.dumps(result, indent=2)
    write_whole(out / RESULT, text + "\n")
    plain: dict[str, Any] = json.loads(text)
    return plain
