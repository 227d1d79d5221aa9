"""`counterprior check`: from recorded detections to verdicts and metrics, on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....storage import write_whole
from ....tables import write_rows
from ...people.analyse import analyse
from ...people.labels import read_labels, refuse_unknown
from ...rules.checker.boxes import Size
from ...rules.checker.decide import Checked, check
from ...rules.checker.recorded import read_samples
from ...rules.checker.rules import Rules
from ...rules.checker.summary import summarise
from ...rules.checker.tables import markdown

PUBLISHED_SIZE = Size(512, 512)
"""Of the pictures of all published runs, whose rows do not say it."""


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
    """Of pictures whose row gives none."""


def check_file(path: Path, rules: Rules, size: Size = PUBLISHED_SIZE) -> list[Checked]:
    """Every sample of a file under the rules. Raises RowError for a row that cannot be used."""
    return [check(sample, own, rules) for sample, own in read_samples(path, size)]


def run_check(settings: CheckSettings) -> dict[str, Any]:
    """Writes verdicts and metrics and returns the metrics; nothing is written on an error."""
    rules = Rules.load(settings.rules)
    checked = check_file(settings.detections, rules, settings.size)
    metrics = summarise(checked) | {
        "detections_sha256": sha256(settings.detections.read_bytes()).hexdigest(),
        "rules": rules.model_dump(exclude={"detector", "output"}, mode="json"),
    }
    if settings.labels:
        labels = read_labels(settings.labels)
        refuse_unknown(labels, {item.sample.sample_id for item in checked}, settings.labels)
        metrics["human"] = analyse([item.to_row() for item in checked], labels)
    write_rows(settings.out, (item.to_row() for item in checked))
    beside = settings.out.with_name("metrics.json")
    write_whole(beside, json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
    write_whole(beside.with_suffix(".md"), markdown({settings.detections.stem: metrics}))
    return metrics
