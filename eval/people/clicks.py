"""Clicks and labels of human annotators: read, compared, and merged into decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...human_labels import (
    UNIFORM,
    Label,
    LabeledImage,
    check_labels,
    check_placed,
    click_time,
    consensus,
    is_uniform_draw,
    most_common,
    read_labels,
)
from ...parsing import RowError, write_rows
from ...storage import read_records
from ..judges.checker.analyze import ANSWERS, among_annotators, number
from ..stats.agreement import LabelScale, krippendorff_alpha
from .forms import ReviewForm, open_form

Clicks = dict[str, dict[str, str]]
"""Task -> field (or `note`) -> value."""


def read_clicks(path: Path, form: ReviewForm) -> Clicks:
    """The answers in one file of the page, as last clicked, not as last written; empty without a
    file.

    Raises RowError for a record without its key: the file is of another kind of review.
    """
    clicks: Clicks = {}
    columns = (*(field.name for field in form.fields), "note")
    records = list(enumerate(read_records(path), 1))
    records.sort(key=lambda numbered: click_time(str(numbered[1].get("clicked", ""))))
    for line, record in records:
        if missing := [column for column in form.key if column not in record]:
            raise RowError(
                f"{path}:{line}: {missing[0]}: missing: is it of another --kind?",
                code="missing-field",
            )
        task = form.name(record)
        clicks.setdefault(task, {}).update({n: record[n] for n in columns if n in record})
    return clicks


def agreement(everyone: Mapping[str, Clicks], form: ReviewForm) -> dict[str, float | None]:
    """Krippendorff's alpha of each field over all annotators, ordinal for ratings; None where it is
    undefined."""
    tasks = sorted(set().union(*everyone.values()))
    alphas = {}
    for field in form.fields:
        ratings = [
            [clicks.get(t, {}).get(field.name) for t in tasks] for clicks in everyone.values()
        ]
        scale: LabelScale = "ordinal" if form.blind else "nominal"
        order = [value for value, _ in field.options]
        alphas[field.name] = number(krippendorff_alpha(ratings, scale, order)) if tasks else None
    return alphas


def merge_clicks(files: Sequence[Path], form: ReviewForm, out: Path) -> dict[str, Any]:
    """One row for each task: the majority of each field, every vote and every note.

    A field on which the annotators are evenly split is listed in `split` of the result and not in
    the row; a row without any decision is left out. Raises RowError for two files of one name.
    """
    everyone: dict[str, Clicks] = {}
    for path in files:
        if path.stem in everyone:
            raise RowError(
                f"{path}: {path.stem!r} also labels in another file", code="duplicate-id"
            )
        if not path.is_file():
            raise RowError(f"{path}: no such file", code="no-such-file")
        everyone[path.stem] = read_clicks(path, form)
    split: dict[str, list[str]] = {field.name: [] for field in form.fields}
    rows = []
    for task in sorted(set().union(*everyone.values())):
        votes = {who: clicks[task] for who, clicks in everyone.items() if task in clicks}
        decided = {}
        for field in form.fields:
            winner = most_common(
                Counter(vote[field.name] for vote in votes.values() if field.name in vote)
            )
            if winner is None:
                split[field.name].append(task)
            else:
                decided[field.name] = winner
        if decided:
            key = dict(zip(form.key, task.rsplit("/", len(form.key) - 1), strict=True))
            rows.append({**key, **decided, "votes": votes})
    write_rows(out, rows)
    return {
        "tasks": len(rows),
        "labels": {who: len(clicks) for who, clicks in everyone.items()},
        "alpha": agreement(everyone, form),
        "split": {name: tasks for name, tasks in split.items() if tasks},
    }


def merge(files: Sequence[Path], kind: str, out: Path) -> dict[str, Any]:
    """Merges the labels or decisions of several annotators into one file; returns their agreement.

    Raises RowError for an annotator with two files, UsageError for ratings.
    """
    if kind in ("verdict", "judge"):
        return merge_labels(files, kind, out)
    form = open_form(kind)
    if form.blind:
        raise UsageError(
            f"ratings of {kind} have no majority: average them with "
            f"`counterprior audit analyze FOLDER`",
            code="unsupported",
        )
    return merge_clicks(files, form, out)


def merge_labels(files: Sequence[Path], kind: str, out: Path) -> dict[str, Any]:
    """Writes one row for each case, question and image: the majority label, and every vote.

    A row without an annotator belongs to the file's name. An even split is UNDECIDABLE for
    verdicts; other questions are then left out and listed in `split`. Raises RowError for an
    annotator with two files, and where only some labels of a question name their image.
    """
    merged: list[Label] = []
    for path in files:
        labels = [
            replace(label, annotator=label.annotator or path.stem) for label in read_labels(path)
        ]
        twice = {label.annotator for label in labels} & {label.annotator for label in merged}
        if twice:
            raise RowError(
                f"{path}: {sorted(twice)[0]!r} also labels in another file", code="duplicate-id"
            )
        merged += labels
    if kind == "verdict":
        merged = check_labels(merged, {label.case for label in merged}, ANSWERS)
    check_placed(merged)
    decided = consensus(merged)
    votes: dict[LabeledImage, dict[str, str]] = {}
    for label in merged:
        votes.setdefault(label.about, {})[label.annotator] = label.label
    tie = "UNDECIDABLE" if kind == "verdict" else None
    draw = {"draw": UNIFORM} if all(map(is_uniform_draw, files)) else {}
    rows = []
    split = []
    for about, most in sorted(decided.items()):
        case, question, image = about
        if decision := most or tie:
            place = {"case": case, "question": question} | ({"image": image} if image else {})
            rows.append({**place, "label": decision, "votes": votes[about], **draw})
        else:
            split.append("/".join(filter(None, about)))
    write_rows(out, rows)
    return {"cases": len(rows), **among_annotators(merged), "split": split}
