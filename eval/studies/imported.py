"""Published runs of SpatialBench-UC as a study: cases, images, verdicts and labels in its folder.

The files are those of `detections`; manifests say which file each image is, with which seed it was
drawn and by what. From then on it is a study like any other: tables, scores, other judges, a site
and a publication.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...human_labels import Label
from ...parsing import RowError, csv_text, read_rows, write_rows
from ...specs import Spec
from ...storage import write_whole
from ..core import INVALID, ORIGINAL, Case, Verdict
from ..engine.data import Rows
from ..engine.data import read_rows as read_release
from ..engine.evaluation import Evaluation
from ..engine.making import found_image
from ..engine.run import CaseResult
from ..geometry.checker.decide import CheckedImage
from ..judges.checker.analyze import human_verdicts
from ..results.names import slugify
from ..store.verdicts import VERDICTS, Answered, judging_identity
from ..suites.spatial import QUESTION
from .detections import DIGITS, EXAMPLE, LABELS, SUITE, CheckedFile, TableSources, check_sources
from .events import StudyEvents
from .folder import Study
from .recipes import find_layout, find_study
from .spec import Cell, SuiteSample, write_study

SEED = re.compile(r"seed(\d+)$")
"""End of a published sample's id."""
KEPT = ("model", "gen_params", "timestamp_utc", "code_version")
"""Columns of a manifest that each image's record keeps."""


@dataclass(frozen=True)
class ImportSettings:
    """Where published files become a study."""

    out: Path
    """Folder of the study; new or empty."""
    data: str
    """Release with the prompts."""
    manifests: Sequence[Path] = ()
    """Published manifests: files, seeds and models of the images."""


@dataclass(frozen=True)
class PublishedImage:
    """An image of a published run."""

    sample: str
    """Published id."""
    prompt: str
    """Published id of its prompt."""
    seed: int
    about: Mapping[str, Any]
    """Row of the manifest; empty without one."""
    file: Path | None
    """The image, where it is there."""


def import_study(name: str, inputs: TableSources, settings: ImportSettings) -> Study:
    """Writes the study of some files of detections, with the suite and the table of a recipe.

    An image without a file can be scored, but no other judge can see it. Raises UsageError for a
    folder that is not empty, the errors of `check_sources`, and RowError for a prompt that the
    release lacks or words otherwise, for prompts with different seeds, and for two images of one
    prompt and seed.
    """
    out = settings.out
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty", "choose another folder", code="folder-not-empty")
    if not name:
        raise UsageError(
            "detections alone do not say which table: pass --as with a recipe",
            f"for example `--as {EXAMPLE}`",
            code="missing-option",
        )
    study = find_study(name)
    checked, labels, _ = check_sources(name, study, inputs)
    generators = dict.fromkeys(generator for generator, _ in checked)
    about = _manifest(settings.manifests)
    runs = {
        generator: _images(next(f for (g, _), f in checked.items() if g == generator), about)
        for generator in generators
    }
    rows = read_release(settings.data, SUITE)
    seeds = _common_seeds(image for images in runs.values() for image in images)
    label_files = {
        generator: str(out / "labels" / f"{slugify(generator)}.csv")
        for generator, images in runs.items()
        if {label.case for label in labels} & {image.sample for image in images}
    }
    judges = dict.fromkeys(judge for _, judge in checked)
    file = study.model_copy(
        update={
            "data": settings.data,
            "suites": {SUITE: SuiteSample(seeds=seeds)},
            "generators": {g: _spec(g, out, images) for g, images in runs.items()},
            "judges": {judge: study.judges[judge] for judge in judges},
            "labels": {SUITE: label_files} if label_files else {},
            "scorers": {},
            "methods": {},
            "only": (),
            "exceptions": (),
            "table": find_layout(name),
        }
    )
    cases = {g: _cases(checked, g, images, rows, settings.data) for g, images in runs.items()}
    imported = Study.start(out, file, write_study(file))
    for generator, images in runs.items():
        _write_files(imported, generator, images, cases[generator], labels)
    for cell in imported.cells:
        _record(
            imported,
            cell,
            rows,
            runs[cell.generator],
            cases[cell.generator],
            checked[cell.generator, cell.judge],
        )
    return Study.open(out)


def _manifest(paths: Iterable[Path]) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """Sample id -> file of the manifest, and its row."""
    rows: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for path in paths:
        for number, row in read_rows(path):
            sample = str(row.get("sample_id", ""))
            if not sample or sample in rows:
                problem = f"{sample!r} occurs twice" if sample else "missing"
                code = "duplicate-id" if sample else "missing-field"
                raise RowError(f"{path}:{number}: sample_id: {problem}", code=code)
            rows[sample] = path, row
    return rows


def _images(
    file: CheckedFile, about: Mapping[str, tuple[Path, Mapping[str, Any]]]
) -> list[PublishedImage]:
    """Raises RowError for two images of one prompt and seed, which would be one case."""
    images: dict[tuple[str, int], PublishedImage] = {}
    numbers: dict[str, int] = {}
    for checked in file.images:
        sample, prompt = checked.sample.sample_id, checked.sample.prompt_id
        number = numbers[prompt] = numbers.get(prompt, -1) + 1
        path, row = about.get(sample, (file.path, {}))
        stated = row.get("gen_params", {}).get("seed")
        ending = SEED.search(sample)
        seed = stated if isinstance(stated, int) else int(ending[1]) if ending else number
        named = row.get("image_path") or row.get("file")
        image = path.parent / named if named else None
        present = image.resolve() if image is not None and image.is_file() else None
        if (first := images.get((prompt, seed))) is not None:
            raise RowError(
                f"{file.path}: sample_id: {first.sample!r} and {sample!r} are both of prompt "
                f"{prompt!r} and seed {seed}",
                "leave out one of them, or pass a --manifest with their seeds",
                code="duplicate-id",
            )
        images[prompt, seed] = PublishedImage(sample, prompt, seed, row, present)
    return [*images.values()]


def _common_seeds(images: Iterable[PublishedImage]) -> tuple[int, ...]:
    """The seeds of every prompt. Raises RowError where prompts have different ones."""
    of_prompt: dict[str, set[int]] = {}
    for image in images:
        of_prompt.setdefault(image.prompt, set()).add(image.seed)
    first, seeds = next(iter(of_prompt.items()))
    for prompt, others in of_prompt.items():
        if others != seeds:
            raise RowError(
                f"prompt_id: {prompt!r} has the seeds {sorted(others)}, and {first!r} has "
                f"{sorted(seeds)}",
                "pass files with the same seeds of every prompt",
                code="different-rows",
            )
    return tuple(sorted(seeds))


def _files_of(out: Path, generator: str) -> Path:
    return out / "files" / f"{slugify(generator)}.csv"


def _name(generator: str, images: Sequence[PublishedImage]) -> str:
    """The generator's name, with what drew all of its images where their manifest says it."""
    models = {
        ",".join((generator, model.get("pipeline", ""), model.get("model_id", "")))
        + f"@{model.get('revision', '')}"
        for image in images
        for model in (image.about.get("model", {}),)
    }
    return models.pop() if len(models) == 1 and images[0].about.get("model") else generator


def _spec(generator: str, out: Path, images: Sequence[PublishedImage]) -> str:
    """The generator as a folder of images, read by a manifest of its cases."""
    files = [image.file.parent for image in images if image.file]
    options = {"name": _name(generator, images)}
    if files:
        options["manifest"] = str(_files_of(out, generator))
    return str(Spec("folder", str(files[0]) if files else ".", options))


def _cases(
    checked: Mapping[tuple[str, str], CheckedFile],
    generator: str,
    images: Sequence[PublishedImage],
    rows: Rows,
    data: str,
) -> dict[str, str]:
    """Sample id -> id of its case.

    Raises RowError for a prompt that the release does not have, or with other things.
    """
    file = next(file for (g, _), file in checked.items() if g == generator)
    row_of: dict[str, Any] = {row.prompt_id: row for row in rows.rows}  # type: ignore[attr-defined]
    for prompt, first in file.prompts.items():
        row, sample = row_of.get(prompt), first.sample
        stated = (sample.object_a, sample.relation, sample.object_b)
        if row is None or (row.object_a, row.relation, row.object_b) != stated:
            theirs = "not in" if row is None else "another prompt in"
            raise RowError(
                f"{file.path}: prompt_id: {prompt!r} ({' '.join(stated)}) is {theirs} {data}",
                "pass the release with these prompts by --data",
                code="different-rows",
            )
    return {i.sample: f"{row_of[i.prompt].id}-{i.prompt}-{i.seed}" for i in images}


def _write_files(
    study: Study,
    generator: str,
    images: Sequence[PublishedImage],
    cases: Mapping[str, str],
    labels: Sequence[Label],
) -> None:
    """Writes the table of the images' files, and that of the labels, where there are any."""
    files = [(cases[image.sample], str(image.file)) for image in images if image.file]
    if files:
        write_whole(_files_of(study.root, generator), csv_text([("case", "file"), *files]))
    human = human_verdicts([label for label in labels if label.case in cases], cases)
    if human:
        lines = [(cases[s], QUESTION, LABELS[verdict]) for s, verdict in sorted(human.items())]
        path = study.root / "labels" / f"{slugify(generator)}.csv"
        write_whole(path, csv_text([("case", "question", "label"), *lines]))


def _record(
    study: Study,
    cell: Cell,
    rows: Rows,
    images: Sequence[PublishedImage],
    case_ids: Mapping[str, str],
    file: CheckedFile,
) -> None:
    """Writes the run of a cell, its images and its verdicts."""
    identity = {"kind": "folder", "name": _name(cell.generator, images)}
    settings = replace(study.run_settings(cell), cases=frozenset(case_ids.values()))
    with Evaluation.start(settings, identity, rows) as evaluation:
        run = evaluation.run
        cases = {case.id: case for case in run.cases()}
        if not run.images():
            with run.results as results:
                for image in images:
                    results.append(_result(cases[case_ids[image.sample]], image))
        study.models.remember("generators", f"{cell.suite}/{cell.generator}", cell.spec, identity)
        judge = {
            "kind": "checker",
            "name": _detectors(file.images),
            "version": "recorded",
            "rules": file.rules.model_dump_json(exclude={"detector", "output"}),
        }
        study.models.remember("judges", cell.judge, study.file.judges[cell.judge], judge)
        log = run.judge(judging_identity(judge, cell.persona, cell.frames))
        present = run.present()
        answers = [_answered(cases[case_ids[c.sample.sample_id]], c, present) for c in file.images]
        write_rows(log.root / VERDICTS, (answer.to_record() for answer in answers))
        events = StudyEvents(study.root)
        record = events.completion_record(cell, run, len(answers), 0)
        events.add(cell, "done", **record)


def _detectors(images: Sequence[CheckedImage]) -> str:
    """Names of the recorded detectors, the one that decides first."""
    names: dict[str, None] = {}
    for image in images:
        for role, detected in image.sample.detectors:
            if detected is not None:
                names[detected.type or role] = None
    return "recorded " + " and ".join(names)


def _result(case: Case, image: PublishedImage) -> CaseResult:
    """The record of an image. Without its file, the digest is that of its published id."""
    about = {"sample_id": image.sample, **{n: image.about[n] for n in KEPT if n in image.about}}
    report = json.dumps({"published": about}, sort_keys=True)
    if image.file is not None:
        return replace(found_image(case, image.file, None), report=report)
    digest = sha256(f"published image {image.sample}".encode()).hexdigest()
    return CaseResult(case.id, "made", f"images/{case.id}.png", digest, report=report)


def _answered(case: Case, checked: CheckedImage, present: Mapping[str, str]) -> Answered:
    measured = checked.measurement(DIGITS)
    raw = json.dumps({"relation": checked.sample.relation, "why": measured.why})
    key = sha256(f"{case.id} {present[case.id]} {checked.sample.sample_id}".encode()).hexdigest()
    return Answered(
        key=key[:16],
        case=case.id,
        image=present[case.id],
        question=QUESTION,
        probe=ORIGINAL,
        labels=("holds", "opposite", INVALID),
        answers={},
        sided=True,
        verdict=Verdict(LABELS[checked.verdict], raw, measured.number),
    )
