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
from ...parsing import write_rows
from ...progress import Progress, silent
from ...storage import write_json, write_whole
from ..geometry.checker.decide import REASONS, CheckedImage
from ..judges.checker.run import read_manifest
from ..results.checked import CheckedMethod, CheckReport, as_csv
from ..results.names import slugify
from ..results.risk import Curve
from ..stats.abstention import RiskCoverage
from .pages import render
from .plots import inline, risk_plot, stacked_plot

COLORS = ("#1668c7", "#c2410c")
"""Colors of the boxes of objects a and b."""
OUTCOMES = ("PASS", "FAIL", *REASONS)


def write_check_report(
    report: CheckReport,
    out: Path,
    manifests: Sequence[Path] = (),
    overlays: int = 12,
    progress: Progress = silent,
) -> Path:
    """Writes CSV files, the page, and a folder of verdicts and metrics for each method.

    manifests: files that name the images, as for `detect`; overlays: number of images of each
    method to draw with their boxes, every verdict and reason in turn. The same inputs give the
    same bytes. Returns the page.
    """
    images = {row.sample_id: Path(row.image) for path in manifests for row in read_manifest(path)}
    drawn_images: dict[str, list[dict[str, Any]]] = {}
    for method in report.methods:
        folder = out / slugify(method.name)
        write_rows(folder / "verdicts.jsonl", (image.to_row() for image in method.checked))
        write_json(folder / "metrics.json", method.metrics)
        drawn_images[method.name] = _overlays(method, folder, images, overlays, progress)
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
        overlays=drawn_images,
        rules=yaml.safe_dump(settings, sort_keys=True),
        left_out=report.left_out,
    )
    write_whole(out / "index.html", page)
    return out / "index.html"


def _reasons(report: CheckReport) -> Markup:
    """Outcomes of each method's images, as shares of all."""
    rows = []
    for method in report.methods:
        metrics = method.metrics
        n = metrics["total_samples"] or 1
        counts = {
            "PASS": metrics["pass_count"],
            "FAIL": metrics["fail_count"],
            **metrics["undecidable_reasons"],
        }
        rows.append((method.name, [counts.get(outcome, 0) / n for outcome in OUTCOMES]))
    figure = stacked_plot(rows, [outcome.replace("_", " ") for outcome in OUTCOMES])
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
        for number, (name, analysis) in enumerate(report.curves.items()):
            points = [p for p in analysis["risk_coverage"][kind]["points"] if p["risk"] is not None]
            columns = (np.array([p[c] for p in points]) for c in ("tau", "coverage", "risk"))
            curves.append(Curve(name, number, RiskCoverage(*columns), analysis["labeled"]))
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
    """Draws the chosen images that exist, and returns an entry of the page for each."""
    entries = []
    chosen = chosen_images(
        [image for image in method.checked if image.sample.sample_id in images], most
    )
    for number, image in enumerate(chosen):
        progress(f"overlays of {method.name}", number, len(chosen))
        name = image.sample.sample_id
        try:
            drawn = overlay(open_image(images[name]), image)
        except ImageError:  # the verdict counts without an image to show
            continue
        file = f"overlays/{number:03}-{slugify(name)}.jpg"
        data = BytesIO()
        drawn.save(data, "JPEG", quality=88)
        write_whole(folder / file, data.getvalue())
        relation = image.sample.relation.replace("_", " ")
        entries.append(
            {
                "file": f"{folder.name}/{file}",
                "asked": f"{image.sample.object_a} {relation} {image.sample.object_b}",
                "verdict": image.verdict,
                "reason": image.reason or "",
                "confidence": image.confidence,
            }
        )
    return entries


def chosen_images(checked: Sequence[CheckedImage], most: int) -> list[CheckedImage]:
    """At most `most` images, one of every verdict and reason in turn; always the same."""
    strata: dict[str, list[CheckedImage]] = {}
    for image in sorted(checked, key=lambda image: image.sample.sample_id):
        kind = (image.reason or image.verdict).split(":")[0].split(" (")[0]
        strata.setdefault(kind, []).append(image)
    rng = random.Random(0)
    for members in strata.values():
        rng.shuffle(members)
    turns = sorted(
        (
            place,
            OUTCOMES.index(kind) if kind in OUTCOMES else len(OUTCOMES),
            image.sample.sample_id,
            image,
        )
        for kind, members in strata.items()
        for place, image in enumerate(members)
    )
    return [image for *_, image in turns[:most]]


def overlay(image: Image.Image, checked: CheckedImage) -> Image.Image:
    """The image with the recorded boxes: those that decide thick, all others of the two thin."""
    drawn = image.convert("RGB").copy()
    pen = ImageDraw.Draw(drawn)
    objects = (checked.sample.object_a, checked.sample.object_b)
    for detection in checked.sample.detectors.primary.detections:
        for label, color, best in zip(objects, COLORS, (checked.a, checked.b), strict=True):
            if detection.names(label):
                box = tuple(detection.box_xyxy)
                pen.rectangle(box, outline=color, width=4 if detection == best else 1)
                text = f"{label} {detection.score:.2f}"
                place = (detection.box_xyxy.x1 + 4, max(0.0, detection.box_xyxy.y1 + 2))
                pen.rectangle(pen.textbbox(place, text), fill="white")
                pen.text(place, text, fill=color)
    return drawn
