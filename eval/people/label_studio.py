"""Label Studio instead of the page: writes a project's tasks, reads its annotations as labels.

`export_tasks` writes `tasks.json` and `label_config.xml` to import into a project, and `images/`,
which Label Studio serves. `import_labels` reads the project's export in the format "JSON" and
writes the files that the page would have written. `tasks.json` stays the record of what was asked.

Both formats are written and read here: label-studio-sdk 2.1 needs opencv-python-headless 4.12 and
with it NumPy below 2.3, and its models of an annotation know no account by email, no draft and no
time of an answer. Formats: Label Studio documentation, "Label Studio task format", "Import
pre-annotated data" and the tags Choices, TextArea and Image.
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from ...errors import DataError, UsageError
from ...human_labels import SAMPLE
from ...parsing import RowError, parse_as, read_json, write_rows
from ...storage import read_records, write_json, write_whole
from ..engine.run import Run
from ..results.judge_card import labels_of
from .forms import ReviewForm, ReviewTask, open_form, shuffled
from .page_media import media_for_page
from .sampling import LabelingSample, Metrics, open_audit
from .serve import check_name

TASKS = "tasks.json"
CONFIG = "label_config.xml"
IMAGES = "images"
LOCAL_FILES = "/data/local-files/?d="
"""Where Label Studio serves files of its document root."""
NOTE = "note"
"""Name of the free text, in a form that has one."""
_COUNTS = ("skipped", "empty", "incomplete", "drafts", "unlabeled", "shown_a_prediction")
"""Counts of an import besides labels."""


class _Result(BaseModel, frozen=True):
    """The answer of an annotation to one field."""

    from_name: str = ""
    value: dict[str, Any] = {}


class _Annotation(BaseModel, frozen=True):
    """All answers of one annotator to one task."""

    id: int | str
    completed_by: int | str | dict[str, Any]
    result: list[_Result]
    was_cancelled: bool = False
    created_at: str = ""
    updated_at: str = ""
    parent_prediction: int | None = None


class _LabeledTask(BaseModel, frozen=True):
    """A task as Label Studio exports it."""

    data: dict[str, Any]
    annotations: list[_Annotation]
    drafts: list[Any] = []


def export_tasks(
    paths: Sequence[Path],
    kind: str,
    folder: Path,
    *,
    n: int | None = None,
    seed: int = 0,
    url: str = "",
    predictions: bool = False,
    metrics: Metrics | None = None,
    where: Sequence[str] | None = None,
) -> dict[str, int]:
    """Writes tasks, labeling config and images of what `audit serve` would show; returns counts.

    url: where `images/` is served; empty for Label Studio's local files, with the folder's parent
        as document root.
    predictions: also write what the run's judges answered, which biases the annotators.
    metrics, where: see `open_audit`.

    The order of the tasks is random and always the same: that of the draw tells the judge's label.
    Raises UsageError for clips, for tasks with different numbers of images, and for predictions of
    anything but a judge's questions on runs.
    """
    audit = open_audit(paths, kind, folder, n=n, seed=seed, metrics=metrics, where=where)
    verdicts = _verdicts_by_task(kind, folder) if predictions else {}
    tasks = shuffled(audit.tasks, "label studio")
    if any(task.clips for task in tasks):
        raise UsageError(
            "clips can't be exported",
            "label them with `counterprior audit serve`",
            code="wrong-medium",
        )
    dynamic = any(task.options for task in tasks)
    if dynamic:  # a project reads the choices of every task from its data, or of none
        default = audit.form.fields[0].options
        tasks = [replace(task, options=task.options or default) for task in tasks]
    image_counts = {len(task.images) for task in tasks}
    if len(image_counts) > 1:
        raise UsageError(
            "some tasks have more images than others, and a project shows the same number for each",
            "export them separately",
            code="unsupported",
        )
    base_url = url.rstrip("/") or f"{LOCAL_FILES}{quote(folder.resolve().name)}/{IMAGES}"
    exported = []
    for task in tasks:
        urls = [f"{base_url}/{_copy_image(image, audit.form, folder)}" for image in task.images]
        record: dict[str, Any] = {"data": _task_data(task, kind, urls)}
        if predictions:
            target = "image" if urls else "text"
            choice = {"id": "label", "from_name": "label", "to_name": target, "type": "choices"}
            record["predictions"] = [
                {"model_version": judge, "result": [{**choice, "value": {"choices": [label]}}]}
                for judge, label in verdicts.get(task.id, {}).items()
            ]
        exported.append(record)
    write_json(folder / TASKS, exported)
    write_whole(folder / CONFIG, labeling_config(audit.form, image_counts.pop(), dynamic))
    return {"tasks": len(tasks), "predictions": sum(len(verdicts.get(t.id, ())) for t in tasks)}


def _verdicts_by_task(kind: str, folder: Path) -> dict[str, dict[str, str]]:
    """Task -> judge -> label, for a sample of a judge's questions; failed answers are left out."""
    if kind != "judge" or not (folder / SAMPLE).is_file():
        raise UsageError(
            "predictions are a judge's answers: only --kind judge on runs has them",
            code="unsupported",
        )
    sample = LabelingSample.read(folder / SAMPLE)
    verdicts: dict[tuple[str, str, str], dict[str, str]] = {}
    for name, root in sample.runs:
        run = Run.open(Path(root))
        for log in run.chosen_judges(()):
            for (case, question), label in labels_of(log.present(run.present())).items():
                verdicts.setdefault((name, case, question), {})[log.name] = label
    keys = {item.task(kind).id: (item.runs[0], item.case, item.question) for item in sample.items}
    return {task: verdicts.get(key, {}) for task, key in keys.items()}


def _copy_image(image: Path, form: ReviewForm, folder: Path) -> str:
    """Puts an image where Label Studio reads it; its name is its digest, which tells nothing."""
    data, media_type = media_for_page(image, form.blind, folder)
    suffix = media_type.removeprefix("image/").replace("jpeg", "jpg")
    name = f"{hashlib.sha256(data).hexdigest()}.{suffix}"
    path = folder / IMAGES / name
    if not path.exists():
        write_whole(path, data)
    return name


def _task_data(task: ReviewTask, kind: str, urls: Sequence[str]) -> dict[str, Any]:
    """The `data` of a task: what its config shows, and what names it when it comes back."""
    lines = [f"{name}: {text}" for name, text in task.texts]
    by_key = sorted(task.options, key=lambda option: option[1])
    if by_key:
        lines.append(", ".join(f"{key} = {label}" for label, key in by_key))
    options = [{"value": label, "hotkey": key} for label, key in by_key]
    return {
        "item": task.id,
        "kind": kind,
        "key": dict(task.key),
        "text": "\n".join(lines) or task.id,
        **({"options": options} if options else {}),
        **{_image_tag(n): url for n, url in enumerate(urls)},
        **{f"{_image_tag(n)}_caption": text for n, text in enumerate(task.captions) if text},
    }


def _image_tag(number: int) -> str:
    """Name of an image, counted from 0, in `data` and in the config."""
    return f"image_{number + 1}" if number else "image"


def labeling_config(form: ReviewForm, images: int, dynamic: bool = False) -> str:
    """Returns the XML of a project's labeling interface.

    images: how many a task has. dynamic: whether the choices are in each task's `options`, because
    they differ between a judge's questions.
    """
    view = ET.Element("View")
    ET.SubElement(view, "Text", name="text", value="$text")
    for tag in map(_image_tag, range(images)):
        if images > 1:
            ET.SubElement(view, "Header", value=f"${tag}_caption")
        ET.SubElement(view, "Image", name=tag, value=f"${tag}")
    target = "image" if images else "text"
    for field in form.fields:
        ET.SubElement(view, "Header", value=field.title)
        attributes = {"name": field.name, "toName": target, "choice": "single", "required": "true"}
        if dynamic:
            ET.SubElement(view, "Choices", attributes, value="$options")
            continue
        choices = ET.SubElement(view, "Choices", attributes, showInLine="true")
        for value, key in field.options:
            # The same key can't choose in several fields.
            hotkey = {"hotkey": key} if len(form.fields) == 1 else {}
            ET.SubElement(choices, "Choice", {"value": value, **hotkey})
    if form.note:
        ET.SubElement(view, "TextArea", name=NOTE, toName=target, placeholder="Note")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def import_labels(
    export: Path, folder: Path, names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Writes the labels of a project's export, one file for each annotator; returns counts.

    export: the project's export in the format "JSON".
    folder: what `export_tasks` wrote; the files of labels go there, as the page's do.
    names: account (its number, or its email) -> name of the annotator; `ls-NUMBER` by default, so
        that no email address reaches a file.

    An annotation that was imported before is replaced; one that is not in this export stays. The
    result counts what gave no label: skipped tasks, empty and incomplete annotations, drafts, tasks
    that nobody labeled. Raises RowError for a task that was not exported from the folder and for an
    answer that the task does not offer, UsageError where a file holds clicks of the page.
    """
    exported = _read_tasks(folder / TASKS)
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    accounts: dict[str, str] = {}
    counts = Counter[str]()
    annotations, labeled = set[str](), set[str]()
    for number, task in enumerate(_read_export(export), 1):
        place = f"{export}:{number}"
        item = str(task.data.get("item", ""))
        if item not in exported:
            raise RowError(
                f"{place}: item: {item!r} is none of the {len(exported)} tasks of {folder / TASKS}",
                "give the folder that `audit export` wrote for this project",
                code="unknown-reference",
            )
        form = open_form(exported[item]["kind"])
        counts["drafts"] += len(task.drafts)
        for annotation in task.annotations:
            annotations.add(str(annotation.id))
            if annotation.was_cancelled:
                counts["skipped"] += 1
                continue
            answers = _answers(annotation, form, exported[item], place)
            if not answers:
                counts["empty"] += 1
                continue
            labeled.add(item)
            counts["incomplete"] += any(f.name not in answers for f in form.fields)
            counts["shown_a_prediction"] += annotation.parent_prediction is not None
            annotator, account = _annotator(annotation.completed_by, names or {}, place)
            if accounts.setdefault(annotator, account) != account:
                raise UsageError(
                    f"two accounts would be {annotator!r}",
                    "name each with --annotator ACCOUNT=NAME",
                    code="duplicate-id",
                )
            rows[annotator].append(
                {
                    **exported[item]["key"],
                    **answers,
                    "annotator": annotator,
                    "clicked": annotation.updated_at or annotation.created_at,
                    "annotation": str(annotation.id),
                }
            )
    counts["unlabeled"] = len(exported.keys() - labeled)
    _add_earlier(rows, folder, annotations)
    for annotator, labels in sorted(rows.items()):
        labels.sort(key=lambda row: (row["clicked"], row["annotation"]))
        write_rows(folder / f"{annotator}.jsonl", labels)
    return {"labels": {annotator: len(rows[annotator]) for annotator in sorted(rows)}} | {
        name: counts[name] for name in _COUNTS
    }


def _read_tasks(path: Path) -> dict[str, dict[str, Any]]:
    """Task -> its data, as exported."""
    try:
        return {task["data"]["item"]: task["data"] for task in read_json(path)}
    except (DataError, TypeError, KeyError):
        raise DataError(
            f"{path}: can't be read",
            "give the folder that `audit export` wrote",
            code="no-such-file",
        ) from None


def _read_export(path: Path) -> list[_LabeledTask]:
    try:
        return parse_as(list[_LabeledTask], read_json(path), str(path))
    except RowError as error:
        raise DataError(
            str(error), "export the project as JSON, not JSON-MIN", code="bad-format"
        ) from None


def _answers(
    annotation: _Annotation, form: ReviewForm, data: Mapping[str, Any], place: str
) -> dict[str, str]:
    """Field -> answer, and the note. Raises RowError for a choice that the task does not offer."""
    answers: dict[str, str] = {}
    values = {result.from_name: result.value for result in annotation.result}
    options = [option["value"] for option in data.get("options", ())]
    for field in (field for field in form.fields if field.name in values):
        allowed = options or [value for value, _ in field.options]
        choices = values[field.name].get("choices")
        if not isinstance(choices, list) or len(choices) != 1 or choices[0] not in allowed:
            raise RowError(
                f"{place}: {field.name}: annotation {annotation.id} has {choices!r}",
                f"one of {', '.join(allowed)} is needed",
                code="bad-value",
            )
        answers[field.name] = choices[0]
    texts = values.get(NOTE, {}).get("text", []) if form.note else []
    note = "\n".join([texts] if isinstance(texts, str) else map(str, texts)).strip()
    return answers | ({NOTE: note} if note else {})


def _annotator(
    completed_by: int | str | Mapping[str, Any], annotators: Mapping[str, str], place: str
) -> tuple[str, str]:
    """Name of an account's file, and the account: its number, or else its email."""
    account = completed_by if isinstance(completed_by, Mapping) else {"id": completed_by}
    ids = [str(account[key]) for key in ("id", "email") if account.get(key) not in (None, "")]
    if not ids:
        raise RowError(
            f"{place}: completed_by: names neither `id` nor `email`", code="missing-field"
        )
    public = ids[0] if ids[0].isdigit() else hashlib.sha256(ids[0].encode()).hexdigest()[:8]
    name = next(
        (annotators[account_id] for account_id in ids if account_id in annotators), f"ls-{public}"
    )
    check_name(name)
    return name, ids[0]


def _add_earlier(
    rows: defaultdict[str, list[dict[str, Any]]], folder: Path, annotations: set[str]
) -> None:
    """Adds the labels of earlier imports, but for annotations that this export has.

    Raises UsageError where an annotator's file is not from an import.
    """
    for path in sorted(folder.glob("*.jsonl")):
        records = list(read_records(path))
        if all("annotation" in record for record in records):
            if records:
                rows[path.stem] += [r for r in records if r["annotation"] not in annotations]
        elif path.stem in rows:
            raise UsageError(
                f"{path} holds clicks of `audit serve`",
                "give the account another name, with --annotator ACCOUNT=NAME",
                code="would-overwrite",
            )


def parse_names(specs: Sequence[str]) -> dict[str, str]:
    """Account -> name, of `ACCOUNT=NAME`. Raises UsageError for anything else."""
    annotators = {}
    for spec in specs:
        account, _, name = spec.rpartition("=")
        if not account or not name:
            raise UsageError(
                f"--annotator {spec}: write ACCOUNT=NAME, e.g. 3=ann", code="bad-option"
            )
        check_name(name)
        annotators[account] = name
    return annotators
