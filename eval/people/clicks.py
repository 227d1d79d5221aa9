"""What people clicked: one file an annotator, read back, compared, and merged into decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...labels import most_common
from ...storage import read_records
from ...tables import RowError, write_rows
from ..judges.checker.analyze import number
from ..stats.agreement import krippendorff_alpha
from .forms import ReviewForm

Clicks = dict[str, dict[str, str]]
"""Task -> field (or `note`) -> value."""


def read_clicks(path: Path, form: ReviewForm) -> Clicks:
    """The answers in one file of the page, as last clicked; empty where there is no file.

    Raises RowError for a record without its key: the file is of another kind of review.
    """
    found: Clicks = {}
    names = (*(one.name for one in form.fields), "note")
    for line, record in enumerate(read_records(path), 1):
        if missing := [column for column in form.key if column not in record]:
            raise RowError(f"{path}:{line}: {missing[0]}: missing: is it of another --kind?")
        task = "/".join(record[column] for column in form.key)
        found.setdefault(task, {}).update({n: record[n] for n in names if n in record})
    return found


def agreement(everyone: Mapping[str, Clicks], form: ReviewForm) -> dict[str, float | None]:
    """Krippendorff's alpha of each field over all annotators; None where it is undefined."""
    tasks = sorted(set().union(*everyone.values()))
    found = {}
    for field in form.fields:
        ratings = [[given.get(t, {}).get(field.name) for t in tasks] for given in everyone.values()]
        found[field.name] = number(krippendorff_alpha(ratings)) if tasks else None
    return found


def merge_clicks(files: Sequence[Path], form: ReviewForm, out: Path) -> dict[str, Any]:
    """One row a task: what most say of each field, every vote and every note.

    A field on which people are evenly split stands in `split` of the result and not in the row; a
    row of which nothing is decided is left out. Raises RowError for two files of one name.
    """
    everyone: dict[str, Clicks] = {}
    for path in files:
        if path.stem in everyone:
            raise RowError(f"{path}: {path.stem!r} labels in another file too")
        if not path.is_file():
            raise RowError(f"{path}: no such file")
        everyone[path.stem] = read_clicks(path, form)
    split: dict[str, list[str]] = {field.name: [] for field in form.fields}
    rows = []
    for task in sorted(set().union(*everyone.values())):
        votes = {who: given[task] for who, given in everyone.items() if task in given}
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
        "labels": {who: len(given) for who, given in everyone.items()},
        "alpha": agreement(everyone, form),
        "split": {name: tasks for name, tasks in split.items() if tasks},
    }
