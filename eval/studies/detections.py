"""Tables of SpatialBench-UC from recorded detections: no run, no images, no models.

The detections of each file are checked again under each `checker` judge of a study file, and
scored as `spatial_uc`. Files are those of `counterprior spatial detect`, or the published
`per_sample.jsonl`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ...errors import UsageError
from ...human_labels import Label, read_labels
from ...parsing import RowError, read_rows
from ...specs import Spec
from ..core import ALL, INVALID, ORIGINAL, Case, Outcome, Verdict
from ..engine.run import RunHeader
from ..geometry.boxes import Size
from ..geometry.checker.decide import CheckedImage
from ..geometry.checker.rules import CheckerRules
from ..geometry.checker.summary import scene_of
from ..judges.checker.analyze import human_verdicts
from ..judges.checker.run import PUBLISHED_SIZE, check_file
from ..results.judge_card import judge_card
from ..results.names import slugify
from ..results.scoring import JudgedRun, Result
from ..store.verdicts import Answered, VerdictLog
from ..suites import open_suite
from ..suites.spatial import CHECKED, QUESTION, SpatialUCSuite
from .folder import Study
from .packed import unpacked
from .recipes import find_layout, find_study
from .scores.scope import LabeledRun
from .spec import StudyFile, SuiteSample, cells_of, unknown
from .status import CellStatus
from .table import Key, StudyTable, TableCells, build_table, study_table
from .table_layout import TableLayout, without_missing_suites

SUITE = SpatialUCSuite.name
EXAMPLE = "spatialbench-uc-5"
"""Recipe that messages name."""
CHECKER = "checker"
RULES = "rule.rules"
"""Option of the judge that names its rules."""
DIGITS = 17
"""Decimals of a confidence: all that a float in [0, 1] has."""
LABELS: Mapping[str, str] = {verdict: label for label, verdict in CHECKED.items()}
"""Verdict of the checker -> label of the suite."""


@dataclass(frozen=True)
class TableSources:
    """Sources of a table: a study's folder, or files of detections and their rules."""

    sources: Sequence[str]
    """Folder of a study; or `NAME=FILE` each, `JUDGE:NAME=FILE` for one judge of the recipe."""
    rules: Sequence[str] = ()
    """`JUDGE=FILE`, or `FILE` for all judges that name none in the study file; without both, the
    published ones."""
    labels: Path | None = None
    """File of human verdicts (PASS, FAIL, UNDECIDABLE) on some of the samples."""
    size: Size = PUBLISHED_SIZE
    """Size of images whose row gives none."""


@dataclass(frozen=True)
class CheckedFile:
    """One file of detections under the rules of one judge."""

    path: Path
    rules: CheckerRules
    judge: str
    """The rules in a few words."""
    images: Sequence[CheckedImage]

    @property
    def prompts(self) -> dict[str, CheckedImage]:
        """Prompt id -> the first of its images."""
        return {image.sample.prompt_id: image for image in reversed(self.images)}

    @property
    def samples(self) -> set[str]:
        """Ids of the images."""
        return {image.sample.sample_id for image in self.images}


def open_table(name: str, inputs: TableSources) -> StudyTable:
    """Builds the table of a study's folder, of a packed study, or of detections.

    name: recipe, or study file with a table; empty for the study's own. Raises UsageError for
    options of detections with a folder, and the errors of `Study.open` and `detections_table`.
    """
    first, *further = inputs.sources
    if further or ("=" in first and not Path(first).is_dir()):
        return detections_table(name, inputs)
    if inputs.rules or inputs.labels:
        raise UsageError(
            f"{first} is a folder, whose study names its rules and labels",
            "leave out --rules and --labels, or pass detections as NAME=FILE",
            code="conflicting-options",
        )
    with unpacked(Path(first)) as root:
        return study_table(Study.open(root), find_layout(name) if name else None)


def detections_table(name: str, inputs: TableSources) -> StudyTable:
    """Builds the table of a recipe or study file from detections.

    Raises UsageError for a study file without a checker on spatial_uc, for bad or repeated names
    and missing files; RowError, with file, line and field, for a row that can't be used, a sample
    that is in two files, files of different prompts, and labels of none of the samples.
    """
    if not name:
        raise UsageError(
            "detections alone do not say which table: pass --as with a recipe",
            f"for example `--as {EXAMPLE}`",
            code="missing-option",
        )
    study, layout = find_study(name), find_layout(name)
    checked, labels, unmatched = check_sources(name, study, inputs)
    layout = without_missing_suites(layout, [SUITE])
    if unmatched:
        count = f"{len(unmatched):,}, the first {unmatched[0]}"
        note = f"Labels of samples that are in none of the files are excluded: {count}."
        layout = layout.model_copy(update={"notes": (*layout.notes, note)})
    return build_table(_cells(study, layout, checked, labels), layout)


def check_sources(
    name: str, study: StudyFile, inputs: TableSources
) -> tuple[dict[tuple[str, str], CheckedFile], list[Label], list[str]]:
    """(Generator, judge) -> its file; the labels of their samples; and labeled samples that are in
    none of the files.

    name: of the study, for messages. Raises as `detections_table`.
    """
    judges = {
        judge: spec
        for judge, text in study.judges.items()
        if (spec := Spec.parse(text)).kind == CHECKER
    }
    if SUITE not in study.suites or not judges:
        raise UsageError(
            f"{name} has no judge `{CHECKER}:` on {SUITE}, which alone detections can fill",
            f"choose another recipe, for example {EXAMPLE}",
            code="wrong-suite",
        )
    checked = _checked(inputs, judges)
    return (checked, *_labels(inputs.labels, checked))


def _checked(
    inputs: TableSources, judges: Mapping[str, Spec]
) -> dict[tuple[str, str], CheckedFile]:
    """(Generator, judge) -> its file, in the order of the files."""
    rules = _rules(inputs.rules, judges)
    checked: dict[tuple[str, str], CheckedFile] = {}
    for generator, paths in _paths(inputs.sources, judges).items():
        for judge, path in paths.items():
            settings = CheckerRules.load(rules[judge])
            images = check_file(path, settings, inputs.size)
            words = str(rules[judge] or "published rules")
            file = CheckedFile(path, settings, words, images)
            for (earlier_generator, earlier_judge), earlier in checked.items():
                if earlier_judge == judge:
                    _check_samples(file, earlier, earlier_generator)
                _check_prompts(file, earlier)
            checked[generator, judge] = file
    return checked


def _paths(files: Sequence[str], judges: Mapping[str, Spec]) -> dict[str, dict[str, Path]]:
    """Generator -> judge -> file of its detections."""
    paths: dict[str, dict[str, Path]] = {}
    for text in files:
        label, _, path = text.partition("=")
        judge, colon, name = label.rpartition(":")
        if not (name and path):
            raise UsageError(f"{text!r} has no name: write NAME=FILE", code="missing-option")
        if colon and judge not in judges:
            raise UsageError(f"{text}: {unknown('judge', judge, judges)}", code="unknown-name")
        alike = [known_name for known_name in paths if slugify(known_name) == slugify(name)]
        if alike and (name not in paths or judge in paths[name]):
            raise UsageError(
                f"{text}: the name {name!r} occurs twice, or differs from {alike[0]!r} only in "
                f"punctuation",
                "give each file a name of its own",
                code="duplicate-id",
            )
        paths.setdefault(name, {})[judge] = Path(path)
    complete = {}
    for name, of_judge in paths.items():
        for judge in judges:
            if judge not in of_judge and "" not in of_judge:
                raise UsageError(
                    f"{name} has no detections for the judge {judge}",
                    f"pass {name}=FILE, or {judge}:{name}=FILE",
                    code="missing-option",
                )
        complete[name] = {j: of_judge[j] if j in of_judge else of_judge[""] for j in judges}
    return complete


def _rules(texts: Sequence[str], judges: Mapping[str, Spec]) -> dict[str, Path | None]:
    """Judge -> file of its rules, None for the published ones."""
    chosen: dict[str, Path] = {}
    for text in texts:
        judge, equals, path = text.partition("=")
        judge, path = (judge, path) if equals and judge in judges else ("", text)
        if judge in chosen:
            raise UsageError(
                f"--rules {text}: there is {chosen[judge]} already",
                f"pass one file, or JUDGE=FILE for each of {', '.join(judges)}",
                code="duplicate-option",
            )
        chosen[judge] = Path(path)
    rules: dict[str, Path | None] = {}
    for judge, spec in judges.items():
        rules_file = spec.options.get(RULES)
        if judge in chosen or not rules_file:
            rules[judge] = chosen.get(judge, chosen.get(""))
        elif Path(rules_file).is_file():
            rules[judge] = Path(rules_file)
        else:
            raise UsageError(
                f"the judge {judge} has its rules in {rules_file}, which does not exist",
                f"pass --rules {judge}=FILE",
                code="no-such-file",
            )
    return rules


def _check_samples(file: CheckedFile, first: CheckedFile, generator: str) -> None:
    """Raises RowError for a sample that two files share: labels could not tell them apart."""
    for sample in sorted(file.samples & first.samples):
        raise RowError(
            f"{_place(file, sample)}: sample_id: {sample!r} is in {first.path} of {generator} too",
            "pass a file of other images",
            code="duplicate-id",
        )


def _check_prompts(file: CheckedFile, earlier: CheckedFile) -> None:
    """Raises RowError for a prompt that one of two files lacks, or that differs in them."""
    prompts, earlier_prompts = file.prompts, earlier.prompts
    for prompt, image in prompts.items():
        if prompt not in earlier_prompts or _stated(image) != _stated(earlier_prompts[prompt]):
            theirs = (
                f"{_stated(earlier_prompts[prompt])!r} in"
                if prompt in earlier_prompts
                else "not in"
            )
            raise RowError(
                f"{_place(file, image.sample.sample_id)}: prompt_id: {prompt!r} "
                f"({_stated(image)}) is {theirs} {earlier.path}",
                "compare detections of the same prompts",
                code="different-rows",
            )
    if lacking := sorted(earlier_prompts.keys() - prompts):
        raise RowError(
            f"{file.path}: prompt_id: lacks {lacking[0]!r} and {len(lacking) - 1} more prompts of "
            f"{earlier.path}",
            "compare detections of the same prompts",
            code="different-rows",
        )


def _stated(image: CheckedImage) -> str:
    """Relation that the prompt states."""
    return f"{image.sample.object_a} {image.sample.relation} {image.sample.object_b}"


def _place(file: CheckedFile, sample: str) -> str:
    """File and line of a sample."""
    lines = (n for n, row in read_rows(file.path) if str(row["sample_id"]) == sample)
    return f"{file.path}:{next(lines)}"


def _labels(
    path: Path | None, checked: Mapping[tuple[str, str], CheckedFile]
) -> tuple[list[Label], list[str]]:
    """Labels of the samples, and the labeled samples that are in none of the files, sorted."""
    labels = read_labels(path) if path else []
    samples = {sample for file in checked.values() for sample in file.samples}
    matched = [label for label in labels if label.case in samples]
    if labels and not matched:
        raise RowError(
            f"{labels[0].place}: sample_id: {labels[0].case!r} is in none of the files, and no "
            f"other label is",
            "pass labels of these images",
            code="different-rows",
        )
    return matched, sorted({label.case for label in labels} - samples)


def _cells(
    study: StudyFile,
    layout: TableLayout,
    checked: Mapping[tuple[str, str], CheckedFile],
    labels: Sequence[Label],
) -> TableCells:
    generators = dict.fromkeys(generator for generator, _ in checked)
    file = study.model_copy(
        update={
            "data": "recorded detections",
            "suites": {SUITE: SuiteSample()},
            "generators": {name: "" for name in generators},
            "judges": {name: study.judges[name] for _, name in checked},
            "scorers": {},
            "methods": {},
            "only": (),
            "exceptions": (),
        }
    )
    statuses: dict[Key, CellStatus] = {}
    entries: dict[Key, LabeledRun] = {}
    groups = any(column.group != ALL for column in layout.columns)
    for cell in cells_of(file):
        of_cell = checked[cell.generator, cell.judge]
        key = cell.suite, cell.generator, cell.judge
        n = len(of_cell.images)
        statuses[key] = CellStatus(
            cell, "done", cases=n, images={"made": n}, verdicts={"answered": n}, questions=n
        )
        entries[key] = _scored(of_cell, cell.generator, labels, groups)
    models = {
        "generators": {
            f"{SUITE}/{name}": {"identity": entries[SUITE, name, judge].judged.result.run.generator}
            for name, judge in checked
        },
        "judges": {
            judge: {"identity": entries[SUITE, name, judge].judged.result.card.identity}
            for name, judge in checked
        },
        "scorers": {},
    }
    return TableCells(file, statuses, entries, models)


def _scored(file: CheckedFile, name: str, labels: Sequence[Label], groups: bool) -> LabeledRun:
    """One file as a judged run, with the labels of its samples."""
    suite = open_suite(SUITE)
    outcomes = dict(_outcomes(file.images, groups))
    human = human_verdicts([label for label in labels if label.case in outcomes], outcomes)
    by_people = {
        (outcomes[sample].case.id, QUESTION): LABELS[verdict] for sample, verdict in human.items()
    }
    prompts = sorted((prompt, _stated(image)) for prompt, image in file.prompts.items())
    identity = {
        "kind": CHECKER,
        "name": file.judge,
        "rules": file.rules.model_dump_json(exclude={"detector", "output"}),
    }
    header = RunHeader(
        suite=SUITE,
        data=str(file.path),
        rows_sha256=sha256(json.dumps(prompts).encode()).hexdigest(),
        rows=len(prompts),
        seeds=max((o.case.number + 1 for o in outcomes.values()), default=0),
        limit=None,
        generator={"kind": "detections"},
    )
    answers = [_answered(outcome) for outcome in outcomes.values()]
    result = Result(
        run=header,
        folder=str(file.path),
        judge=identity["name"],
        card=judge_card(identity, suite, answers, by_people),
        scores=suite.score(list(outcomes.values())),
        cases=len(outcomes),
        alpha={},
        notes=tuple(_notes(file)),
    )
    # The log is empty: all verdicts are in the outcomes.
    log = VerdictLog(file.path, identity)
    return LabeledRun(JudgedRun(result, list(outcomes.values()), log, name=name), by_people)


def _outcomes(images: Sequence[CheckedImage], groups: bool) -> Iterator[tuple[str, Outcome]]:
    """Sample id -> its outcome. Intervals are over prompts, whose images are alike."""
    numbers: Counter[str] = Counter()
    for image in images:
        sample = image.sample
        number = numbers[sample.prompt_id]
        numbers[sample.prompt_id] += 1
        case = Case(
            row=sample.prompt_id,
            variant="recorded",
            seed=number,
            number=number,
            prompt=_stated(image),
            clusters=(sample.prompt_id, "/".join(scene_of(image))),
            groups={"relation": sample.relation} if groups else {},
        )
        measure = image.measurement(DIGITS)
        verdict = Verdict(LABELS[image.verdict], json.dumps({"why": measure.why}), measure.number)
        yield sample.sample_id, Outcome(case, {(QUESTION, ORIGINAL): verdict})


def _answered(outcome: Outcome) -> Answered:
    return Answered(
        key="",
        case=outcome.case.id,
        image="",
        question=QUESTION,
        probe=ORIGINAL,
        labels=("holds", "opposite", INVALID),
        answers={},
        sided=True,
        verdict=outcome.verdict(QUESTION),
    )


def _notes(file: CheckedFile) -> Iterator[str]:
    yield f"{file.path}, SHA-256 {sha256(file.path.read_bytes()).hexdigest()}"
    for component in ("stability", "agreement"):
        assumed = sum(component in image.assumed for image in file.images)
        if assumed:
            yield f"{component} was not recorded for {assumed:,} images and is taken as 1"
