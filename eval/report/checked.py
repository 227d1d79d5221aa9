"""`check-report`: the page of several checked methods, its CSV files, and boxes on the images."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from markupsafe import Markup
from PIL import Image, ImageDraw

from ...images import ImageError, open_image
from ...progress import Progress, silent
from ...storage import write_json, write_whole
from ...tables import write_rows
from ..geometry.checker.decide import REASONS, CheckedImage
from ..judges.checker.run import read_manifest
from ..results.checked import CheckedMethod, CheckReport, as_csv
from ..results.names import slugify
from ..results.risk import Curve
from ..stats.abstention import RiskCoverage
from .pages import render
from .plots import inline, risk_plot, stacked_plot

COLORS = ("#1668c7", "#c2410c")
"""Of the boxes of objects a and b."""
PARTS = ("PASS", "FAIL", *REASONS)


def write_check_report(
    report: CheckReport,
    out: Path,
    manifests: Sequence[Path] = (),
    overlays: int = 12,
    progress: Progress = silent,
) -> Path:
    """Writes CSV files, the page, and a folder of verdicts and metrics for each method.

    manifests: where the images lie, as `detect` reads them; overlays: how many images of each
    method are drawn with their boxes, every verdict and reason in turn. The same inputs give the
    same bytes. Returns the page.
    """
    images = {row.sample_id: Path(row.image) for path in manifests for row in read_manifest(path)}
    shown: dict[str, list[dict[str, Any]]] = {}
    for method in report.methods:
        folder = out / slugify(method.name)
        write_rows(folder / "verdicts.jsonl", (one.to_row() for one in method.checked))
        write_json(folder / "metrics.json", method.metrics)
        shown[method.name] = _overlays(method, folder, images, overlays, progress)
    for name, table in report.tables.items():
        write_whole(out / f"{name}.csv", as_csv(table))
    settings = report.methods[0].metrics["rules"]
    write_whole(out / "rules.yaml", yaml.safe_dump(settings, sort_keys=True))
    page = render(
        "checked.html",
        tables=report.tables,
        methods=report.methods,
        reasons=_reasons(report),
        risks=_risks(report),
        curves=list(report.curves),
        overlays=shown,
        rules=yaml.safe_dump(settings, sort_keys=True),
        left_out=report.left_out,
    )
    write_whole(out / "index.html", page)
    return out / "index.html"


def _reasons(report: CheckReport) -> Markup:
    """What became of each method's images, as shares of all."""
    rows = []
    for method in report.methods:
        metrics = method.metrics
        n = metrics["total_samples"] or 1
        counts = {
            "PASS": metrics["pass_count"],
            "FAIL": metrics["fail_count"],
            **metrics["undecidable_reasons"],
        }
        rows.append((method.name, [counts.get(part, 0) / n for part in PARTS]))
    figure = stacked_plot(rows, [part.replace("_", " ") for part in PARTS])
    return inline(figure, "verdicts by reason")


def _risks(report: CheckReport) -> list[tuple[str, Markup]]:
    """A figure for each way of counting what people could not decide."""
    figures = []
    kinds = {
        "human_undecidable_excluded": "images that people could not decide are no part of the risk",
        "human_undecidable_counted": "images that people could not decide count as errors",
    }
    for kind, meaning in kinds.items():
        curves = []
        for number, (name, told) in enumerate(report.curves.items()):
            points = [p for p in told["risk_coverage"][kind]["points"] if p["risk"] is not None]
            columns = (np.array([p[c] for p in points]) for c in ("tau", "coverage", "risk"))
            curves.append(Curve(name, number, RiskCoverage(*columns), told["labeled"]))
        if curves:
            title = f"risk against coverage: {meaning}"
            figures.append((meaning, inline(risk_plot(curves), title)))
    return figures


def _overlays(
    method: CheckedMethod,
    folder: Path,
    images: Mapping[str, Path],
    most: int,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Draws the chosen images that are there, and says what the page shows of them."""
    found = []
    chosen = chosen_images([one for one in method.checked if one.sample.sample_id in images], most)
    for number, one in enumerate(chosen):
        progress(f"overlays of {method.name}", number, len(chosen))
        name = one.sample.sample_id
        try:
            drawn = overlay(open_image(images[name]), one)
        except ImageError:  # the verdict stands, there is only nothing to show
            continue
        file = f"overlays/{number:03}-{slugify(name)}.jpg"
        data = BytesIO()
        drawn.save(data, "JPEG", quality=88)
        write_whole(folder / file, data.getvalue())
        relation = one.sample.relation.replace("_", " ")
        found.append(
            {
                "file": f"{folder.name}/{file}",
                "asked": f"{one.sample.object_a} {relation} {one.sample.object_b}",
                "verdict": one.verdict,
                "reason": one.reason or "",
                "confidence": one.confidence,
            }
        )
    return found


def chosen_images(checked: Sequence[CheckedImage], most: int) -> list[CheckedImage]:
    """At most `most` images, one of every verdict and reason in turn; always the same."""
    strata: dict[str, list[CheckedImage]] = {}
    for one in sorted(checked, key=lambda one: one.sample.sample_id):
        kind = (one.reason or one.verdict).split(":")[0].split(" (")[0]
        strata.setdefault(kind, []).append(one)
    rng = random.Random(0)
    for part in strata.values():
        rng.shuffle(part)
    turns = sorted(
        (place, PARTS.index(kind) if kind in PARTS else len(PARTS), one.sample.sample_id, one)
        for kind, part in strata.items()
        for place, one in enumerate(part)
    )
    return [one for *_, one in turns[:most]]


def overlay(image: Image.Image, one: CheckedImage) -> Image.Image:
    """The image with the recorded boxes: those that decide thick, all others of the two thin."""
    drawn = image.convert("RGB").copy()
    pen = ImageDraw.Draw(drawn)
    objects = (one.sample.object_a, one.sample.object_b)
    for found in one.sample.detectors.primary.detections:
        for label, color, best in zip(objects, COLORS, (one.a, one.b), strict=True):
            if found.names(label):
                box = tuple(found.box_xyxy)
                pen.rectangle(box, outline=color, width=4 if found == best else 1)
                text = f"{label} {found.score:.2f}"
                place = (found.box_xyxy.x1 + 4, max(0.0, found.box_xyxy.y1 + 2))
                pen.rectangle(pen.textbbox(place, text), fill="white")
                pen.text(place, text, fill=color)
    return drawn
