"""Labeling in Label Studio instead of on the page: its tasks out, its annotations back as labels.

`export_tasks` writes a folder: `tasks.json` and `label_config.xml` to import into a project, and
`images/`, which Label Studio serves. `import_labels` reads the project's export, in the format
"JSON", and writes the files that the page would have written: one for each annotator, one line for
each label. `tasks.json` stays the record of what was asked, whatever the project makes of it.

Formats: Label Studio documentation, "Label Studio task format", "Import pre-annotated data" and
the tags Choices, TextArea and Image.
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field

from ...errors import DataError, UsageError
from ...storage import read_records, write_json, write_whole
from ...tables import RowError, parse, read_json, write_rows
from ..engine.run import Run
from ..results.judge_card import labels_of
from .drawn import SAMPLE, DrawnSample, open_audit
from .forms import ReviewForm, ReviewTask, open_form, shuffled
from .serve import check_name
from .shown import shown

TASKS = "tasks.json"
CONFIG = "label_config.xml"
IMAGES = "images"
LOCAL_FILES = "/data/local-files/?d="
"""Where Label Studio serves files of its document root."""
DYNAMIC_TITLE = "Your answer to the question above"
NOTE = "note"
"""Name of the free text, in a form that has one."""
_ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif"}


class _Result(BaseModel, frozen=True):
    """One answer of an annotation."""

    from_name: str = ""
    value: dict[str, Any] = Field(default_factory=dict)


class _Annotation(BaseModel, frozen=True):
    """What one person said of one task."""

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
    drafts: list[Any] = Field(default_factory=list)


def export_tasks(
    paths: Sequence[Path],
    kind: str,
    folder: Path,
    *,
    n: int | None = None,
    seed: int = 0,
    url: str = "",
    predictions: bool = False,
) -> dict[str, Any]:
    """Writes tasks, labeling config and images of what `audit serve` would show; returns counts.

    url: where `images/` is served; empty for Label Studio's local files, with the folder's parent
        as document root.
    predictions: also write what the run's judges answered, which biases whoever sees it.

    The order of the tasks is random and always the same: that of the draw tells the judge's label.
    Raises UsageError for clips, for tasks with different numbers of images, and for predictions of
    anything but a judge's questions on runs.
    """
    audit = open_audit(paths, kind, folder, n=n, seed=seed)
    said = _predicted(kind, folder) if predictions else {}
    tasks = shuffled(audit.tasks, "label studio")
    if any(task.clips for task in tasks):
        raise UsageError("clips can't be exported: label them with `counterprior audit serve`")
    dynamic = any(task.options for task in tasks)
    if dynamic:  # a project reads the choices of every task from its data, or of none
        plain = audit.form.fields[0].options
        tasks = [replace(task, options=task.options or plain) for task in tasks]
    slots = {len(task.images) for task in tasks}
    if len(slots) > 1:
        raise UsageError(
            "some tasks have more images than others, and a project shows the same number for "
            "each: export them separately"
        )
    where = url.rstrip("/") or f"{LOCAL_FILES}{quote(folder.resolve().name)}/{IMAGES}"
    written = []
    for task in tasks:
        names = [_copy(image, audit.form, folder) for image in task.images]
        data = _data(task, kind, [f"{where}/{name}" for name in names])
        one: dict[str, Any] = {"data": data}
        if predictions:
            guesses = said.get(task.id, {}).items()
            one["predictions"] = [_prediction(judge, label, data) for judge, label in guesses]
        written.append(one)
    write_json(folder / TASKS, written)
    write_whole(folder / CONFIG, labeling_config(audit.form, slots.pop(), dynamic))
    return {"tasks": len(written), "predictions": sum(len(said.get(t.id, ())) for t in tasks)}


def _predicted(kind: str, folder: Path) -> dict[str, dict[str, str]]:
    """Task -> judge -> label, for a sample of a judge's questions; failed answers are left out."""
    if kind != "judge" or not (folder / SAMPLE).is_file():
        raise UsageError("predictions are a judge's answers: only --kind judge on runs has them")
    sample = DrawnSample.read(folder / SAMPLE)
    said: dict[str, dict[str, dict[tuple[str, str], str]]] = {}
    for name, root in sample.runs:
        run = Run.open(Path(root))
        present = run.present()
        said[name] = {log.name: labels_of(log.present(present)) for log in run.chosen_judges(())}
    found: dict[str, dict[str, str]] = {}
    for item in sample.items:
        answers = {
            judge: labels[item.case, item.question]
            for judge, labels in said[item.runs[0]].items()
            if (item.case, item.question) in labels
        }
        found[item.task(kind).id] = answers
    return found


def _prediction(judge: str, label: str, data: Mapping[str, Any]) -> dict[str, Any]:
    result = {
        "id": "label",
        "from_name": "label",
        "to_name": "image" if "image" in data else "text",
        "type": "choices",
        "value": {"choices": [label]},
    }
    return {"model_version": judge, "result": [result]}


def _copy(image: Path, form: ReviewForm, folder: Path) -> str:
    """Puts an image where Label Studio finds it; its name is its digest, which tells nothing."""
    data, kind = shown(image, form.blind, folder)
    name = hashlib.sha256(data).hexdigest() + _ENDINGS.get(kind, ".png")
    path = folder / IMAGES / name
    if not path.exists():
        write_whole(path, data)
    return name


def _data(task: ReviewTask, kind: str, urls: Sequence[str]) -> dict[str, Any]:
    """The `data` of a task: what its config shows, and what names it when it comes back."""
    lines = [f"{name}: {text}" for name, text in task.texts]
    by_key = sorted(task.options, key=lambda one: one[1])
    if by_key:
        lines.append(", ".join(f"{key} = {label}" for label, key in by_key))
    options = [{"value": label, "hotkey": key} for label, key in by_key]
    return {
        "item": task.id,
        "kind": kind,
        "key": dict(task.key),
        "text": "\n".join(lines) or task.id,
        **({"options": options} if options else {}),
        **{_slot(number): url for number, url in enumerate(urls)},
        **{f"{_slot(number)}_caption": text for number, text in enumerate(task.captions) if text},
    }


def _slot(number: int) -> str:
    """Name of an image in `data` and in the config."""
    return f"image_{number + 1}" if number else "image"


def labeling_config(form: ReviewForm, images: int, dynamic: bool = False) -> str:
    """The XML of a project's labeling interface.

    images: how many a task has. dynamic: whether the choices are in each task's `options`, because
    they differ between a judge's questions.
    """
    view = ET.Element("View")
    ET.SubElement(view, "Text", name="text", value="$text")
    for number in range(images):
        if images > 1:
            ET.SubElement(view, "Header", value=f"${_slot(number)}_caption")
        ET.SubElement(view, "Image", name=_slot(number), value=f"${_slot(number)}")
    target = "image" if images else "text"
    for field in form.fields:
        # The title counts the digits of a question in plain order; a task's own may be others.
        ET.SubElement(view, "Header", value=DYNAMIC_TITLE if dynamic else field.title)
        given = {"name": field.name, "toName": target, "choice": "single", "required": "true"}
        if dynamic:
            ET.SubElement(view, "Choices", given, value="$options")
            continue
        choices = ET.SubElement(view, "Choices", given, showInLine="true")
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
    answer that is none of the task's, UsageError where a file holds clicks of the page.
    """
    asked = _asked(folder)
    rows: dict[str, list[dict[str, Any]]] = {}
    accounts: dict[str, str] = {}
    counts = Counter[str]()
    seen, labeled = set[str](), set[str]()
    for number, task in _exported(export):
        place = f"{export}:{number}"
        name = str(task.data.get("item", ""))
        if name not in asked:
            raise RowError(
                f"{place}: item: {name!r} is none of the {len(asked)} tasks of {folder / TASKS}: "
                f"give the folder that `audit export` wrote for this project"
            )
        counts["drafts"] += len(task.drafts)
        for one in task.annotations:
            seen.add(str(one.id))
            if one.was_cancelled:
                counts["skipped"] += 1
                continue
            form = open_form(asked[name]["kind"])
            answers = _answers(one, form, asked[name], place)
            if not answers:
                counts["empty"] += 1
                continue
            labeled.add(name)
            counts["incomplete"] += any(f.name not in answers for f in form.fields)
            counts["shown_a_prediction"] += one.parent_prediction is not None
            who = _annotator(one.completed_by, names or {}, accounts, place)
            rows.setdefault(who, []).append(
                {
                    **asked[name]["key"],
                    **answers,
                    "annotator": who,
                    "clicked": one.updated_at or one.created_at,
                    "annotation": str(one.id),
                }
            )
    counts["unlabeled"] = len(asked.keys() - labeled)
    for who, kept in _kept(folder, seen).items():
        rows[who] = [*kept, *rows.get(who, [])]
    for who, own in rows.items():
        _check_file(folder / f"{who}.jsonl")
        own.sort(key=lambda row: (row["clicked"], row["annotation"]))
    for who, own in sorted(rows.items()):
        write_rows(folder / f"{who}.jsonl", own)
    return {"labels": {who: len(rows[who]) for who in sorted(rows)}} | {
        what: counts[what]
        for what in ("skipped empty incomplete drafts unlabeled shown_a_prediction").split()
    }


def _asked(folder: Path) -> dict[str, dict[str, Any]]:
    """Task -> its data, of what was exported."""
    path = folder / TASKS
    if not path.is_file():
        raise UsageError(f"{path}: no such file: give the folder that `audit export` wrote")
    try:
        return {task["data"]["item"]: task["data"] for task in read_json(path)}
    except (TypeError, KeyError):
        raise DataError(f"{path}: holds no tasks of `audit export`") from None


def _exported(path: Path) -> list[tuple[int, _LabeledTask]]:
    """The tasks of an export, counted from 1."""
    tasks = read_json(path)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{path}: holds no list of tasks: export the project as JSON")
    if any("annotations" not in task or "data" not in task for task in tasks):
        raise DataError(
            f"{path}: has tasks without `data` or `annotations`: export the project as JSON, not "
            f"JSON-MIN, which leaves skipped tasks out"
        )
    return [(n, parse(_LabeledTask, task, path, n)) for n, task in enumerate(tasks, 1)]


def _answers(
    annotation: _Annotation, form: ReviewForm, data: Mapping[str, Any], place: str
) -> dict[str, str]:
    """Field -> answer, and the note. Raises RowError for a choice that the task does not offer."""
    found: dict[str, str] = {}
    given = {result.from_name: result.value for result in annotation.result}
    for field in form.fields:
        if field.name not in given:
            continue
        offered = [one["value"] for one in data.get("options", ())]
        allowed = offered or [value for value, _ in field.options]
        choices = given[field.name].get("choices")
        if not isinstance(choices, list) or len(choices) != 1 or choices[0] not in allowed:
            raise RowError(
                f"{place}: {field.name}: annotation {annotation.id} says {choices!r}: one of "
                f"{', '.join(allowed)} is needed"
            )
        found[field.name] = choices[0]
    texts = given.get(NOTE, {}).get("text", []) if form.note else []
    note = "\n".join([texts] if isinstance(texts, str) else map(str, texts)).strip()
    return found | ({NOTE: note} if note else {})


def _annotator(
    account: int | str | Mapping[str, Any],
    names: Mapping[str, str],
    accounts: dict[str, str],
    place: str,
) -> str:
    """Name of an account's file. accounts: name -> account so far, to which it adds.

    Raises UsageError for two accounts of one name.
    """
    told = account if isinstance(account, Mapping) else {"id": account}
    known = [str(told[part]) for part in ("id", "email") if told.get(part) not in (None, "")]
    if not known:
        raise RowError(f"{place}: completed_by: names neither `id` nor `email`")
    plain = known[0] if known[0].isdigit() else hashlib.sha256(known[0].encode()).hexdigest()[:8]
    name = next((names[part] for part in known if part in names), f"ls-{plain}")
    check_name(name)
    if accounts.setdefault(name, known[0]) != known[0]:
        raise UsageError(f"two accounts would be {name!r}: name each with --annotator ACCOUNT=NAME")
    return name


def _kept(folder: Path, seen: set[str]) -> dict[str, list[dict[str, Any]]]:
    """Annotator -> labels imported before, of annotations that this export does not have."""
    kept = {}
    for path in sorted(folder.glob("*.jsonl")):
        records = list(read_records(path))
        if records and all("annotation" in record for record in records):
            kept[path.stem] = [one for one in records if one["annotation"] not in seen]
    return kept


def _check_file(path: Path) -> None:
    """Raises UsageError for a file that an import did not write."""
    if path.exists() and not all("annotation" in one for one in read_records(path)):
        raise UsageError(
            f"{path} holds clicks of `audit serve`: give the account another name, with "
            f"--annotator ACCOUNT=NAME"
        )


def parse_names(given: Sequence[str]) -> dict[str, str]:
    """Account -> name, of `ACCOUNT=NAME`. Raises UsageError for anything else."""
    found = {}
    for text in given:
        account, _, name = text.rpartition("=")
        if not account or not name:
            raise UsageError(f"--annotator {text}: write ACCOUNT=NAME, e.g. 3=ann")
        check_name(name)
        found[account] = name
    return found
