"""`counterprior check`: from recorded detections to verdicts and metrics, on disk."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....labels import read_labels
from ....storage import write_json, write_whole
from ....tables import write_rows
from ...rules.boxes import Size
from ...rules.checker.decide import CheckedImage, check
from ...rules.checker.recorded import read_samples
from ...rules.checker.rules import CheckerRules
from ...rules.checker.summary import summarize
from ...rules.checker.tables import markdown
from .analyze import analyze

PUBLISHED_SIZE = Size(512, 512)
"""Of the images of all published runs, whose rows do not say it."""


@dataclass(frozen=True)
class CheckSettings:
    """What `counterprior check` is asked for."""

    detections: Path
    """JSONL in the format of the published `per_sample.jsonl`."""
    rules: Path | None
    """`checker.yaml`; None for the published rules."""
    out: Path
    """Where the verdicts go; `metrics.json` and its tables, `metrics.md`, are written beside it."""
    labels: Path | None = None
    """Human labels of some of the samples."""
    size: Size = PUBLISHED_SIZE
    """Of images whose row gives none."""


def check_file(path: Path, rules: CheckerRules, size: Size = PUBLISHED_SIZE) -> list[CheckedImage]:
    """Every sample of a file under the rules. Raises RowError for a row that cannot be used."""
    return [check(sample, own, rules) for sample, own in read_samples(path, size)]


def run_check(settings: CheckSettings) -> dict[str, Any]:
    """Writes verdicts and metrics and returns the metrics; nothing is written on an error."""
    rules = CheckerRules.load(settings.rules)
    checked = check_file(settings.detections, rules, settings.size)
    metrics = summarize(checked) | {
        "detections_sha256": sha256(settings.detections.read_bytes()).hexdigest(),
        "rules": rules.model_dump(exclude={"detector", "output"}, mode="json"),
    }
    if settings.labels:
        labels = read_labels(settings.labels)
        metrics["human"] = analyze([item.to_row() for item in checked], labels)
    write_rows(settings.out, (item.to_row() for item in checked))
    beside = settings.out.with_name("metrics.json")
    write_json(beside, metrics)
    write_whole(beside.with_suffix(".md"), markdown({settings.detections.stem: metrics}))
    return metrics
