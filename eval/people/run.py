"""The `counterprior audit` commands: from files to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...labels import Label, check_labels, consensus, read_labels
from ...storage import write_json
from ...tables import RowError, write_rows
from ..judges.checker.analyze import ANSWERS, among_annotators, analyze, human_verdicts
from ..rules.boxes import Size
from ..rules.checker.recorded import read_samples
from ..rules.checker.rules import CheckerRules
from .calibrate import calibrate
from .clicks import merge_clicks
from .forms import open_form
from .sample import SampleSettings, read_candidates, read_weights, run_sample


def write_sample(settings: SampleSettings, out: Path) -> int:
    """Draws images for an audit and writes their rows; returns how many."""
    rows = run_sample(settings)
    write_rows(out, rows)
    return len(rows)


def analyze_files(
    verdicts: Sequence[str], labels: Path, out: Path | None, sample: Path | None = None
) -> dict[str, Any]:
    """Compares the checker with people, over all runs together.

    sample: what `audit sample` wrote, to weight each image by what it stands for. Raises RowError
        for labels of images that are in no run, or not in the sample.
    """
    candidates = read_candidates(verdicts)
    given = read_labels(labels)
    weights = read_weights(sample) if sample else None
    if weights is not None:
        check_labels(given, weights.keys())
    result = analyze([one.row.model_dump() for one in candidates], given, weights)
    _write(result, out)
    return result


def calibrate_files(
    detections: Sequence[Path], labels: Path, rules: Path, size: Size, folds: int, out: Path | None
) -> dict[str, Any]:
    """The best settings for the labeled samples of all runs together."""
    samples = [pair for path in detections for pair in read_samples(path, size)]
    known = {sample.sample_id for sample, _ in samples}
    if len(known) < len(samples):
        raise RowError("two of the files hold the same sample_id: give each run once")
    human = human_verdicts(read_labels(labels), known)
    result = calibrate(samples, human, CheckerRules.load(rules), folds=folds)
    _write(result, out)
    return result


def merge(files: Sequence[Path], kind: str, out: Path) -> dict[str, Any]:
    """Merges the labels or decisions of several people into one file; returns their agreement.

    Raises RowError for an annotator with two files.
    """
    if kind in ("verdict", "judge"):
        return merge_labels(files, kind, out)
    return merge_clicks(files, open_form(kind), out)


def merge_labels(files: Sequence[Path], kind: str, out: Path) -> dict[str, Any]:
    """Writes one row a case and question: what most annotators say, and every vote.

    A row without an annotator belongs to the file's name. An even split is UNDECIDABLE for
    verdicts; other questions are then left out and listed in `split`.
    """
    merged: list[Label] = []
    for path in files:
        own = [replace(one, annotator=one.annotator or path.stem) for one in read_labels(path)]
        twice = {label.annotator for label in own} & {label.annotator for label in merged}
        if twice:
            raise RowError(f"{path}: {sorted(twice)[0]!r} labels in another file too")
        merged += own
    if kind == "verdict":
        merged = check_labels(merged, {label.case for label in merged}, ANSWERS)
    decided, votes = consensus(merged), _votes(merged)
    tie = "UNDECIDABLE" if kind == "verdict" else None
    rows = [
        {"case": case, "question": question, "label": label, "votes": votes[case, question]}
        for (case, question), most in sorted(decided.items())
        if (label := most or tie)
    ]
    write_rows(out, rows)
    split = [] if tie else ["/".join(key) for key, most in sorted(decided.items()) if not most]
    return {"cases": len(rows), **among_annotators(merged), "split": split}


def _votes(labels: Sequence[Label]) -> dict[tuple[str, str], dict[str, str]]:
    votes: dict[tuple[str, str], dict[str, str]] = {}
    for label in labels:
        votes.setdefault(label.key, {})[label.annotator] = label.label
    return votes


def _write(result: dict[str, Any], out: Path | None) -> None:
    if out:
        write_json(out, result)
