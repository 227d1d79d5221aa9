"""A study file: generators x suites x judges and scorers, and what is done otherwise in some cells.

Every fault names file, line and field. A repeated key is a fault: YAML would keep the last one
silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from ...errors import DataError, UsageError
from ...parsing import check_yaml, fault_code, load_yaml, yaml_fault
from ...schema import SEEDS_PER_ITEM
from ...specs import Spec
from ..captioners import CAPTIONERS
from ..clips.frames import USUAL, FrameChoice
from ..generators import GENERATORS
from ..judges import JUDGES
from ..methods import METHODS
from ..roundtrips.routes import (
    EDITS,
    JOINT,
    MOST_CYCLES,
    StepKind,
    check_start,
    end_of,
    routes_of,
    trip_name,
    trips_of,
)
from ..scorers import SCORERS
from ..suites import SUITES, open_suite
from .scores.switched import prior_of
from .table_layout import (
    SCORER,
    ColumnLayout,
    LineLayout,
    PaperLayout,
    PaperLine,
    StudyFault,
    TableLayout,
    TablePart,
    layout_problems,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
"""A name is a file name on every system, and holds no `+`, which joins generator and method."""
Control = Literal["mirror", "swap"]
Manner = Literal["standard", "strict", "paper"]


def _frames(text: str) -> str:
    try:
        return FrameChoice(text).text
    except UsageError as error:
        raise ValueError(str(error)) from None


def _where(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts:
        message = "should be FIELD=VALUE such as pair_type=A-A, a list of these, or biased"
        raise PydanticCustomError("value_error", message)
    for text in texts:
        name, equals, wanted = text.partition("=") if isinstance(text, str) else ("", "", "")
        if text != BIASED and not (name and equals and wanted):
            message = "should be FIELD=VALUE such as pair_type=A-A, or biased"
            raise PydanticCustomError("value_error", message)
    return tuple(texts)


BIASED = "biased"
"""Choice of the cases that a judge calls biased without the method."""
ChosenFields = Annotated[tuple[str, ...], BeforeValidator(_where)]
"""``FIELD=VALUE`` of the rows, as of `--where`, and `BIASED`."""
ShownFrames = Annotated[str, AfterValidator(_frames)]
"""Choice of the frames of a clip that are judged, as text of a `FrameChoice`."""


def _seeds(value: Any) -> int | tuple[int, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    if not all(type(seed) is int for seed in listed):
        message = "should be a number from 1 to 4, or a list of seeds such as [0, 1, 2, 3]"
        raise PydanticCustomError("seeds_type", message)
    if listed is not value:
        if not 1 <= value <= SEEDS_PER_ITEM:
            message = "should be 1 to 4, the seeds of a row; or list seeds, such as [0, 1, 2, 3, 4]"
            raise PydanticCustomError("less_than_equal", message)
        return int(value)
    if not listed or min(listed) < 0 or max(listed) >= MOST_SEED or len({*listed}) < len(listed):
        message = "should be different seeds from 0 to 2^31 - 1"
        raise PydanticCustomError("seeds_value", message)
    return tuple(listed)


MOST_SEED = 2**31
SeedChoice = Annotated[int | tuple[int, ...], BeforeValidator(_seeds)]
"""Number of images of each prompt, from its own seeds; or seeds that all prompts have in common."""


class StudyError(DataError):
    """A study file that can't be used; the message names file, line and field."""


class Sampling(TablePart):
    """Sample of a suite: the images that are made, and how they are judged."""

    limit: Annotated[int, Field(ge=1)] | None = None
    """Rows to sample; None for all."""
    seeds: SeedChoice | None = None
    """Images of each prompt; 1 where None. A list holds the seeds themselves, for all prompts."""
    probes: tuple[Control, ...] | None = None
    """Controls of the judge; the study's where None."""
    persona: Manner | None = None
    """How free questions are answered; the study's where None."""
    frames: ShownFrames | None = None
    """Frames of a clip that are judged and scored; the study's where None."""
    cycles: Annotated[int, Field(ge=1, le=MOST_CYCLES)] | None = None
    """Times that a round trip goes there and back, of a suite of round trips; 1 where None."""
    where: ChosenFields | None = None
    """Rows by ``FIELD=VALUE``, all of which must fit. `BIASED` is for generators with a method: the
    cases that a judge calls biased in every order of mention without it. All where None."""
    ids: Annotated[str, Field(min_length=1)] | None = None
    """File of the prompts or cases to draw, one id a line; all where None."""


class SuiteSample(Sampling):
    """Sample of a suite, and where its rows are."""

    data: str = ""
    """Release or file of prompts of this suite alone; the study's where empty."""


class NamePatterns(TablePart):
    """Cells, by shell patterns of their names; a missing pattern fits all."""

    suite: str = "*"
    generator: str = "*"
    judge: str = "*"

    def fits(self, suite: str, generator: str, judge: str) -> bool:
        """Whether a cell fits all patterns."""
        patterns = ((suite, self.suite), (generator, self.generator), (judge, self.judge))
        return all(fnmatchcase(name, pattern) for name, pattern in patterns)


class CellOverride(NamePatterns, Sampling):
    """Cells that are left out, or done with other settings if any is set."""

    spec: str | None = None
    """Spec of the generator there, e.g. of a model's editing pipeline."""

    @property
    def changes(self) -> dict[str, Any]:
        """Settings that the entry changes."""
        return self.model_dump(include={*Sampling.model_fields, "spec"}, exclude_none=True)


class TripEditors(TablePart):
    """Models that edit in round trips; criteria that need a missing one are left out."""

    image: str = ""
    """Spec of a generator that edits images."""
    text: str = ""
    """Spec of a captioner that writes texts anew."""


class StudyFile(TablePart):
    """Contents of a study file."""

    data: str = ""
    """Release: a folder, or NAMESPACE/NAME@vX.Y.Z on the Hub; or a file of the user's."""
    suites: dict[str, SuiteSample] = Field(default={}, min_length=1)
    """Config -> its sample."""
    generators: dict[str, str] = Field(default={}, min_length=1)
    """Name -> spec."""
    captioners: dict[str, str] = Field(default={})
    """Name -> spec of what puts images into words, for round trips with each generator."""
    any_to_any: dict[str, str] = Field(default={})
    """Name -> spec of a model that is both a captioner and a generator."""
    editors: TripEditors = TripEditors()
    instructions: Literal["ours", "paper"] = "ours"
    """What the models of round trips are told to do: our instructions, or ACON's."""
    methods: dict[str, str | tuple[str, ...]] = Field(default={})
    """Name -> specs of methods, applied one after the other to every generator."""
    judges: dict[str, str] = Field(default={}, min_length=1)
    """Name -> spec."""
    text_judges: dict[str, str] = Field(default={})
    """Name -> spec of those that judge the texts of round trips; the judges do where empty."""
    scorers: dict[str, str] = Field(default={})
    """Name -> spec of what scores the quality of all images; no judge has the name."""
    margins: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default={})
    """Headline score or scorer -> largest loss by a method that doesn't matter, in its unit."""
    corpora: dict[str, str] = Field(default={}, min_length=1)
    """Name -> folder that `counterprior corpus mine` made; they need nothing else of a study."""
    probes: tuple[Control, ...] = ()
    """Controls of every judge, of `core.CONTROLS`."""
    persona: Manner = "standard"
    """How free questions are answered."""
    frames: ShownFrames = USUAL
    """Frames of a clip that are judged and scored."""
    unchecked: bool = False
    """Whether judges judge without being checked on gold images first."""
    only: tuple[NamePatterns, ...] = ()
    """Where given, cells that none of them fits are left out."""
    exceptions: tuple[CellOverride, ...] = Field(default=(), alias="except")
    """Cells that are left out, or done otherwise: of two settings the later one holds."""
    labels: dict[str, str | dict[str, str]] = Field(default={})
    """Suite -> file of people's labels, or generator -> file."""
    max_usd: Annotated[float, Field(ge=0)] | None = None
    """Cap over everything, US dollars."""
    prices: str | None = None
    """File of the user's own price table."""
    concurrency: Annotated[int, Field(ge=1)] = 8
    """Paid calls under way at the same time."""
    table: TableLayout | None = None
    """Layout of `study table` unless it names another."""

    def data_of(self, suite: str) -> str:
        """Release or file with the rows of a suite."""
        return self.suites[suite].data or self.data

    @property
    def all_generators(self) -> dict[str, str]:
        """Name -> spec of all that make images."""
        return {**self.generators, **self.any_to_any}

    @property
    def by_paper(self) -> bool:
        """Whether models of round trips get the paper's instructions."""
        return self.instructions == "paper"

    @property
    def all_captioners(self) -> dict[str, str]:
        """Name -> spec of all that put images into words."""
        return {**self.captioners, **self.any_to_any}

    @property
    def all_judges(self) -> dict[str, str]:
        """Name -> spec of those of images and of texts."""
        return {**self.judges, **self.text_judges}


@dataclass(frozen=True)
class Cell:
    """One generator on one suite under one judge, or one scorer."""

    suite: str
    """Config."""
    generator: str
    """Name in the study, with `+METHOD` where a method applies."""
    judge: str
    """Name in the study, of a judge or a scorer."""
    spec: str
    """Spec of the generator."""
    limit: int | None
    """Rows to sample; None for all."""
    seeds: int | tuple[int, ...]
    """Images of each prompt, or their seeds."""
    probes: tuple[str, ...]
    """Controls of the judge."""
    persona: str
    """How free questions are answered."""
    frames: str = USUAL
    """Frames of a clip that are judged and scored."""
    methods: tuple[str, ...] = ()
    """Specs of the methods around the generator, the innermost first."""
    scorer: bool = False
    """Whether a scorer looks at the images, and no judge."""
    start: str = ""
    """Start of a round trip, `image` or `text`; empty for other runs."""
    steps: tuple[tuple[StepKind, str], ...] = ()
    """Kind and spec of the models of a round trip, those in its name first."""
    cycles: int = 1
    """Times that a round trip goes there and back at most."""
    where: tuple[str, ...] = ()
    """``FIELD=VALUE`` of the rows that are drawn; all if empty."""
    ids: str = ""
    """File of the prompts or cases that are drawn; all if empty."""
    biased: bool = False
    """Whether only biased cases are drawn, see `Sampling`; never without a method."""

    @property
    def only(self) -> tuple[str, ...]:
        """Rows or prompts that are drawn, see `data.RowChoice`; all if empty."""
        return (*self.where, *filter(None, (self.ids,)))

    @property
    def base(self) -> str:
        """Name of its generator without the method."""
        return self.generator.partition("+")[0]

    @property
    def model(self) -> str:
        """Specs of the generator and the methods that make its images."""
        if self.start:
            return JOINT.join((self.start, *(f"{kind}={spec}" for kind, spec in self.steps)))
        return " + ".join((self.spec, *self.methods))

    @property
    def variants(self) -> tuple[str, ...]:
        """Variants of the suite whose route the models of a round trip can go."""
        kinds = {kind for kind, _ in self.steps}
        routes = (
            routes_of(check_start(self.start), sorted(kinds - set(EDITS))) if self.start else []
        )
        fit = tuple(
            route.name
            for route in routes
            if kinds >= set(route.steps) and route.cycles <= self.cycles
        )
        return tuple(v for v in SUITES[self.suite].variants if v.startswith(fit)) if fit else ()

    @property
    def ends_in_text(self) -> bool:
        """Whether its run makes texts in place of images."""
        kinds = [kind for kind, _ in self.steps if kind not in EDITS]
        return bool(self.start) and end_of(check_start(self.start), kinds) == "text"

    def __str__(self) -> str:
        return f"{self.suite} x {self.generator} x {self.judge}"

    @property
    def key(self) -> str:
        """Unique in a study."""
        return f"{self.suite}/{self.generator}/{self.judge}"

    @property
    def asked(self) -> list[str]:
        """Settings that decide which questions are asked about an image."""
        frames = [] if self.frames == USUAL else [self.frames]
        return frames if self.scorer else [*self.probes, self.persona, *frames]

    @property
    def run(self) -> str:
        """Its run, which all of its judges share."""
        return f"{self.suite}/{self.generator}"

    @property
    def folder(self) -> str:
        """The folder of its run, relative to the study's."""
        return f"runs/{self.run}"


def read_study(path: Path, changes: Sequence[str] = ()) -> StudyFile:
    """Reads and checks a study file.

    changes: ``KEY.KEY=VALUE`` that take the place of what it says, a spec or a value as YAML;
    an empty value takes an entry out. Raises StudyError naming file, line and field, and UsageError
    for a change of something that can't be.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.reason
        raise StudyError(f"{path}: no study file: {reason}", code="no-such-file") from None
    return parse_study(text, str(path), changes)


def parse_study(text: str, source: str, changes: Sequence[str] = ()) -> StudyFile:
    """As `read_study`, of a text; `source` names it in messages."""
    lines = _lines(text, source)
    plain = load_yaml(text, source)
    if not isinstance(plain, dict):
        raise StudyError(
            f"{source}: a study maps data, suites, generators and judges", code="wrong-type"
        )
    for change in changes:
        _change(plain, change)
    try:
        study = StudyFile.model_validate(plain)
    except ValidationError as error:
        problem, code = _first_fault(error, source, lines, plain)
        raise StudyError(problem, code=code) from None
    for place, code, problem in _problems(study):
        raise StudyError(f"{_at(source, lines, place)}: {problem}", code=code)
    return study


def write_study(study: StudyFile) -> str:
    """A study as the text of a file that reads as the same study."""
    plain = study.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)


def generators_of(study: StudyFile) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name of a generator, with and without each method -> its spec and those of the methods."""
    specs_by_name: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name, spec in study.all_generators.items():
        specs_by_name[name] = spec, ()
        for method, specs in study.methods.items():
            specs_by_name[f"{name}+{method}"] = spec, (specs,) if isinstance(specs, str) else specs
    return specs_by_name


def cells_of(study: StudyFile) -> list[Cell]:
    """Every cell, by generator, suite, judge and scorer in the order of the file."""
    cells = []
    for suite, generator, run_settings in _runs_of(study):
        sampling = study.suites[suite]
        for judge in _raters_of(study, run_settings):
            place = suite, generator, judge
            if study.only and not any(pattern.fits(*place) for pattern in study.only):
                continue
            settings: dict[str, Any] = {
                "probes": study.probes,
                "persona": study.persona,
                "frames": study.frames,
                "limit": None,
            }
            settings |= {"seeds": 1, **run_settings}
            settings |= sampling.model_dump(include={*Sampling.model_fields}, exclude_none=True)
            left_out = False
            for override in study.exceptions:
                if override.fits(*place):
                    left_out = left_out or not override.changes
                    settings |= override.changes
            where = settings.pop("where", ())
            settings["where"] = tuple(text for text in where if text != BIASED)
            settings["biased"] = BIASED in where and bool(settings.get("methods"))
            if not left_out:
                cell = Cell(suite, generator, judge, **settings)
                cells.append(replace(cell, scorer=judge in study.scorers))
    return cells


def chosen_at(study: StudyFile, cell: Cell, key: str) -> tuple[Any, ...]:
    """Place in the file of the setting of a sample that holds for a cell."""
    place: tuple[Any, ...] = ("suites", cell.suite, key)
    for number, override in enumerate(study.exceptions):
        if key in override.changes and override.fits(cell.suite, cell.generator, cell.judge):
            place = ("except", number, key)
    return place


def labels_of(study: StudyFile, cell: Cell) -> tuple[Path | None, bool]:
    """The file of people's labels of a cell's images, and whether it is of several runs."""
    files = study.labels.get(cell.suite)
    if isinstance(files, str):
        runs = {
            neighbor.run
            for neighbor in cells_of(study)
            if study.labels.get(neighbor.suite) == files
        }
        return Path(files), len(runs) > 1
    file = (files or {}).get(cell.generator)
    return (Path(file) if file else None), False


def trips_in(study: StudyFile) -> dict[str, dict[str, Any]]:
    """Name of each run of round trips -> where it starts, and its steps; those without a criterion
    that their editors allow are left out."""
    editors: dict[StepKind, str] = {
        "edit_image": study.editors.image,
        "edit_text": study.editors.text,
    }
    trips = {}
    for start, kinds, models in trips_of(list(study.all_captioners), list(study.all_generators)):
        specs = {"caption": study.all_captioners, "generate": study.all_generators}
        steps = [(kind, specs[kind][name]) for kind, name in zip(kinds, models, strict=True)]
        needed = {step for route in routes_of(start, kinds) for step in route.steps}
        steps += [(kind, spec) for kind, spec in editors.items() if spec and kind in needed]
        cell = {"spec": "", "start": start, "steps": tuple(steps)}
        step_kinds = {kind for kind, _ in steps}
        if any(step_kinds >= set(route.steps) for route in routes_of(start, kinds)):
            trips[trip_name(start, models)] = cell
    return trips


def _runs_of(study: StudyFile) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Suite, name of the run, and what makes it; by generator and suite, round trips last."""
    for generator, (spec, methods) in generators_of(study).items():
        for suite in study.suites:
            if suite not in SUITES or not SUITES[suite].takes_trips:
                yield suite, generator, {"spec": spec, "methods": methods}
    for suite in study.suites:
        if suite in SUITES and SUITES[suite].takes_trips:
            for name, trip in trips_in(study).items():
                yield suite, name, trip


def _raters_of(study: StudyFile, run_settings: Mapping[str, Any]) -> Iterator[str]:
    """Judges and scorers of a run; scorers look at images only."""
    kinds = [kind for kind, _ in run_settings.get("steps", ()) if kind not in EDITS]
    if run_settings.get("start") and end_of(run_settings["start"], kinds) == "text":
        yield from study.text_judges or study.judges
    else:
        yield from study.judges
        yield from study.scorers


def _problems(study: StudyFile) -> Iterator[StudyFault]:
    """Faults that the types of the fields do not exclude, the first in the file first."""
    named = study.data or (study.suites and all(s.data for s in study.suites.values()))
    needed = {"data": named, "suites": study.suites, "generators": study.all_generators}
    for key, value in {**needed, "judges": study.judges}.items():
        if not value and (any(needed.values()) or study.judges or not study.corpora):
            yield (
                (key,),
                "missing-field",
                f"missing; a study has {', '.join(needed)} and judges, or corpora",
            )
    for suite in study.suites:
        if suite not in SUITES:
            yield ("suites", suite), "unknown-name", unknown("suite", suite, SUITES)
    models: dict[str, Iterable[str]] = {
        "generators": GENERATORS,
        "captioners": CAPTIONERS,
        "any_to_any": GENERATORS.keys() & CAPTIONERS.keys(),
        "judges": JUDGES,
        "text_judges": JUDGES,
        "scorers": SCORERS,
    }
    yield from _trip_problems(study)
    for key, kinds in models.items():
        noun = _WHAT.get(key, key[:-1])
        names_by_lower: dict[str, str] = {}
        for name, text in getattr(study, key).items():
            if not NAME.fullmatch(name):
                yield (key, name), "bad-name", _bad_name(name)
            # Some file systems hold one of two names that differ in case only.
            if (first_name := names_by_lower.setdefault(name.lower(), name)) != name:
                yield (
                    (key, name),
                    "duplicate-id",
                    f"{name!r} and {first_name!r} differ in case only",
                )
            yield from _spec_problems((key, name), noun, text, kinds)
    for noun, specs_by_name in (("judge", study.judges), ("scorer", study.scorers)):
        specs: dict[str, str] = {}
        for name, text in specs_by_name.items():
            if (first_name := specs.setdefault(text, name)) != name:
                yield (
                    (f"{noun}s", name),
                    "duplicate-id",
                    f"{name!r} is the same {noun} as {first_name!r}",
                )
    for name in study.scorers:
        if name.lower() in map(str.lower, study.judges):
            yield (
                ("scorers", name),
                "duplicate-id",
                f"a judge is named {name!r}, too: give it another name",
            )
    losable = [*study.scorers, *(SUITES[s].headline.score for s in study.suites if s in SUITES)]
    # A line's difference of replicates has a claim, too, of any score that it shows.
    columns = study.table.columns if study.table else ()
    losable += [c.measured for c in columns if c.score.startswith("replicates:")]
    for name in study.margins:
        if name not in losable:
            problem = unknown("headline score or scorer", name, dict.fromkeys(losable))
            yield ("margins", name), "unknown-name", problem
    for name in study.methods:
        if not NAME.fullmatch(name):
            yield ("methods", name), "bad-name", _bad_name(name)
        texts = study.methods[name]
        for text in (texts,) if isinstance(texts, str) else texts:
            yield from _spec_problems(("methods", name), "method", text, METHODS)
    runs = dict.fromkeys(name for _, name, _ in _runs_of(study))
    names_by_axis = {
        "suite": list(study.suites),
        "generator": list(runs),
        "judge": [*study.all_judges, *study.scorers],
    }
    for suite, files in study.labels.items():
        if suite not in study.suites:
            yield (
                ("labels", suite),
                "unknown-name",
                unknown("suite of the study", suite, study.suites),
            )
        for generator in files if isinstance(files, dict) else ():
            if generator not in names_by_axis["generator"]:
                problem = unknown("generator", generator, names_by_axis["generator"])
                yield ("labels", suite, generator), "unknown-name", problem
    for key, patterns in (("only", study.only), ("except", study.exceptions)):
        for number, pattern in enumerate(patterns):
            for axis, axis_names in names_by_axis.items():
                text = getattr(pattern, axis)
                if not any(fnmatchcase(name, text) for name in axis_names):
                    problem = f"{text!r} fits no {axis} of {', '.join(axis_names)}"
                    yield (key, number, axis), "unknown-name", problem
    for number, override in enumerate(study.exceptions):
        image_settings = override.changes.keys() & {"limit", "seeds", "spec", "where", "ids"}
        if override.judge != "*" and image_settings:
            keys = ", ".join(sorted(image_settings))
            problem = f"all judges see the same images: remove `judge`, or {keys}"
            yield ("except", number, "judge"), "conflicting-options", problem
        if override.spec is not None:
            yield from _spec_problems(
                ("except", number, "spec"), "generator", override.spec, GENERATORS
            )
    if study.table is not None:
        yield from layout_problems(study.table)
        for number, column in enumerate(study.table.columns):
            if column.score.startswith(SCORER) and column.scorer not in study.scorers:
                problem = unknown("scorer", column.scorer, study.scorers)
                yield ("table", "columns", number, "score"), "unknown-name", problem
    for cell in cells_of(study):
        if cell.ids and cell.limit is not None:
            problem = "names the prompts: leave out `limit`"
            yield chosen_at(study, cell, "ids"), "conflicting-options", problem
    if study.judges and not cells_of(study):
        yield (), "nothing-to-do", "`only` and `except` leave no cell: remove a pattern"


_WHAT = {"any_to_any": "model that is a captioner and a generator", "text_judges": "judge"}


def _trip_problems(study: StudyFile) -> Iterator[StudyFault]:
    for key, text, noun, kinds in (
        ("image", study.editors.image, "generator", GENERATORS),
        ("text", study.editors.text, "captioner", CAPTIONERS),
    ):
        if text:
            yield from _spec_problems(("editors", key), noun, text, kinds)
    for name in study.any_to_any:
        if name in study.generators or name in study.captioners:
            yield ("any_to_any", name), "duplicate-id", f"{name!r} names another model, too"
    for name in study.text_judges:
        if name in study.judges or name in study.scorers:
            yield (
                ("text_judges", name),
                "duplicate-id",
                f"{name!r} names another judge or scorer, too",
            )
    for suite, sampling in study.suites.items():
        if BIASED in (sampling.where or ()) and suite in SUITES:
            place = ("suites", suite, "where")
            try:
                prior_of(open_suite(suite))
            except UsageError as error:
                yield place, error.code, str(error)
            if not study.methods:
                yield place, "missing-field", "is for methods, and the study has none"
    trips = [suite for suite in study.suites if suite in SUITES and SUITES[suite].takes_trips]
    for suite, sampling in study.suites.items():
        if sampling.cycles and suite not in trips:
            place = ("suites", suite, "cycles")
            yield place, "conflicting-options", "is for round trips, and this suite has none"
    if trips and not study.all_captioners:
        yield (
            ("suites", trips[0]),
            "missing-field",
            "needs captioners, or models that are any_to_any",
        )
    if study.all_captioners and not trips:
        yield (
            ("suites",),
            "conflicting-options",
            "captioners and any_to_any are for round trips: no suite has any",
        )


def _bad_name(name: str) -> str:
    return f"{name!r} is not a valid file name: use letters, digits, . _ -"


def _spec_problems(
    place: tuple[Any, ...], noun: str, text: str, kinds: Iterable[str]
) -> Iterator[StudyFault]:
    try:
        kind = Spec.parse(text).kind
    except UsageError as error:
        yield place, error.code, str(error)
        return
    if kind not in kinds and kind != "python":
        yield place, "unknown-name", unknown(noun, kind, [*kinds, "python"])


def unknown(noun: str, name: str, choices: Iterable[str]) -> str:
    """Returns a message for an unknown name, with the nearest choices, or else all."""
    choices = list(choices)
    near = get_close_matches(name, choices, n=3)
    return f"no {noun} {name!r}: " + (
        f"did you mean {' or '.join(near)}?"
        if near
        else f"choose from {', '.join(choices)}"
        if choices
        else "there is none"
    )


def _change(plain: dict[str, Any], change: str) -> None:
    keys, equals, text = change.partition("=")
    section, _, name = keys.partition(".")
    if not equals or section not in _KEYS:
        raise UsageError(
            f"--set {change!r}: {unknown('key', section, _KEYS)}", code="unknown-field"
        )
    value: Any = text or None
    if (section, bool(name)) not in _TEXTS:
        try:
            value = load_yaml(text, f"--set {change!r}")
        except yaml.YAMLError:
            raise UsageError(f"--set {change!r}: {text!r} is not YAML", code="bad-yaml") from None
    held: Any = plain
    path = [section, name] if name else [section]
    if section == "suites":  # names of suites and settings have no dots
        path = keys.split(".")
    for key in path[:-1]:
        held = held.setdefault(key, {})
        if not isinstance(held, dict):
            raise UsageError(f"--set {change!r}: {key} has no entries", code="bad-value")
    if value is None:
        held.pop(path[-1], None)
    else:
        held[path[-1]] = value


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


_KEYS = _keys(StudyFile)
_MODELS = ("generators", "captioners", "any_to_any", "editors", "judges", "text_judges", "scorers")
_TEXTS = {(key, True) for key in _MODELS}
_TEXTS |= {("data", False), ("prices", False)}
"""(Section, whether an entry is named) whose value is a text; YAML reads `render:` as a mapping."""
_KEYS_BELOW = {
    ("suites", 2): _keys(SuiteSample),
    ("editors", 1): _keys(TripEditors),
    ("only", 2): _keys(NamePatterns),
    ("except", 2): _keys(CellOverride),
    ("table", 1): _keys(TableLayout),
    ("table", 2): _keys(PaperLayout),
    ("table", 3): _keys(ColumnLayout),
    ("table", 4): _keys(PaperLine),
}
"""(Section, depth) -> the keys that an entry takes."""

Lines = Mapping[tuple[Any, ...], int]
"""Path of keys and places -> line, from 1."""


def _lines(text: str, source: str) -> Lines:
    """Reads the line of every key. Raises StudyError for text that is not YAML or repeats a key."""
    try:
        check_yaml(text, source)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise StudyError(yaml_fault(error, source), code="bad-yaml") from None
    lines: dict[tuple[Any, ...], int] = {}
    if root is not None:
        _walk(root, (), lines, source)
    return lines


def _walk(node: yaml.Node, path: tuple[Any, ...], lines: dict[Any, int], source: str) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise StudyError(
                    f"{source}:{line}: a key is a list or a mapping: write a name, without `?`",
                    code="bad-yaml",
                )
            below = (*path, key.value)
            if below in lines:
                raise StudyError(
                    f"{source}:{line}: {'.'.join(map(str, below))} occurs twice, first in line "
                    f"{lines[below]}",
                    code="duplicate-id",
                )
            lines[below] = line
            _walk(value, below, lines, source)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _walk(value, (*path, number), lines, source)


def place_text(text: str, source: str, place: Sequence[Any]) -> str:
    """``FILE:LINE: FIELD`` of a study's text that was read before."""
    return _at(source, _lines(text, source), place)


def _at(source: str, lines: Lines, place: Sequence[Any]) -> str:
    """``FILE:LINE: FIELD``, the line of the nearest key that is there."""
    path = tuple(place)
    near = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in lines), ())
    head = f"{source}:{lines[near]}" if near else source
    return f"{head}: {'.'.join(map(str, path))}" if path else head


def _first_fault(
    error: ValidationError, source: str, lines: Lines, plain: Mapping[str, Any]
) -> tuple[str, str]:
    """The first fault in the file, in one line, and the code of its error."""

    def place(loc: tuple[Any, ...]) -> tuple[Any, ...]:
        # A union adds which of its types was tried; what stands in the file does not.
        keys = [key for key in loc if not (isinstance(key, str) and "[" in key)]
        while keys and tuple(keys) not in lines and keys[-1] in ("str", "dict", "tuple"):
            keys.pop()
        return tuple(keys)

    faults = sorted(error.errors(), key=lambda fault: lines.get(place(fault["loc"]), 10**9))
    first = faults[0]
    where = place(first["loc"]) or tuple(first["loc"])  # a key may look like a type
    problem = first["msg"].removeprefix("Input ")
    problem = problem[:1].lower() + problem[1:]
    if first["type"] == "extra_forbidden":
        allowed_keys = _KEYS_BELOW.get((where[0], len(where) - 1), _KEYS)
        if where[:2] == ("table", "lines"):
            allowed_keys = _keys(LineLayout)
        problem = unknown("key", str(where[-1]), allowed_keys)
    elif first["type"] in ("model_type", "dict_type"):
        problem = "should be a mapping; write {} for the defaults"
    elif first["type"] == "tuple_type":
        scalar = "" if isinstance(first["input"], Mapping) else f": write [{first['input']}]"
        problem = f"should be a list{scalar}"
    elif not isinstance(first["input"], Mapping):
        problem += f", not {first['input']!r}"
    remaining_text = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{_at(source, lines, where)}: {problem}{remaining_text}", fault_code(first["type"])
