"""The `counterprior audit` commands: from files to files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...storage import write_whole
from ...tables import RowError, write_rows
from ..rules.checker.boxes import Size
from ..rules.checker.recorded import read_samples
from ..rules.checker.rules import Rules
from .analyse import among_annotators, analyse
from .calibrate import calibrate
from .clicks import merge_clicks
from .forms import open_form
from .labels import Label, consensus, read_labels, refuse_unknown
from .sample import SampleSettings, read_candidates, read_weights, run_sample


def write_sample(settings: SampleSettings, out: Path) -> int:
    """Draws pictures for an audit and writes their rows; returns how many."""
    rows = run_sample(settings)
    write_rows(out, rows)
    return len(rows)


def analyse_files(
    verdicts: Sequence[str], labels: Path, out: Path | None, sample: Path | None = None
) -> dict[str, Any]:
    """Checker against people, over all runs together; `sample` says what each picture stands for.

    Raises RowError for labels of pictures that are in no run, or not in the sample.
    """
    candidates = read_candidates(verdicts)
    given = read_labels(labels)
    refuse_unknown(given, {one.row.sample_id for one in candidates}, labels)
    weights = read_weights(sample) if sample else None
    if weights is not None:
        refuse_unknown(given, set(weights), labels)
    result = analyse([one.row.model_dump() for one in candidates], given, weights)
    _write(result, out)
    return result


def calibrate_files(
    detections: Sequence[Path], labels: Path, rules: Path, size: Size, folds: int, out: Path | None
) -> dict[str, Any]:
    """The best settings for the labelled samples of all runs together."""
    samples = [pair for path in detections for pair in read_samples(path, size)]
    known = {sample.sample_id for sample, _ in samples}
    if len(known) < len(samples):
        raise RowError("two of the files hold the same sample_id: give each run once")
    given = read_labels(labels)
    refuse_unknown(given, known, labels)
    result = calibrate(samples, consensus(given), Rules.load(rules), folds=folds)
    _write(result, out)
    return result


def merge(files: Sequence[Path], kind: str, out: Path) -> dict[str, Any]:
    """Labels or decisions of several people as one file; returns how far they agree."""
    form = open_form(kind)
    return merge_labels(files, out) if kind == "verdict" else merge_clicks(files, form, out)


def merge_labels(files: Sequence[Path], out: Path) -> dict[str, Any]:
    """One row a sample with every vote and what most say; a file's name is who labelled.

    A file whose rows name annotators keeps them. Raises RowError for someone in two files.
    """
    merged: list[Label] = []
    for path in files:
        own = [
            Label(label.sample_id, label.verdict, label.annotator or path.stem)
            for label in read_labels(path)
        ]
        twice = {label.annotator for label in own} & {label.annotator for label in merged}
        if twice:
            raise RowError(f"{path}: {sorted(twice)[0]!r} labels in another file too")
        merged += own
    verdicts = consensus(merged)
    votes: dict[str, dict[str, str]] = {}
    for label in merged:
        votes.setdefault(label.sample_id, {})[label.annotator] = label.verdict
    write_rows(
        out,
        (
            {"sample_id": name, "human_verdict": verdicts[name], "votes": votes[name]}
            for name in sorted(verdicts)
        ),
    )
    return {"samples": len(verdicts), **among_annotators(merged)}


def _write(result: dict[str, Any], out: Path | None) -> None:
    if out:
        write_whole(out, json.dumps(result, indent=2, ensure_ascii=False) + "\n")
