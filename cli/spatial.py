"""Check spatial relations by geometry: detect what images show, and decide from the boxes.

Example: `counterprior spatial detect run/manifest.jsonl --detector pixels --out d.jsonl`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from .options import ImageSize, Input, Json, Model, Output, Rules, SomeLabels
from .progress import progress_bar
from .show_metrics import print_metrics


def detect(
    manifest: Annotated[Path, Argument(help="JSONL of images, relations and objects.")],
    detector: Annotated[str, Model(help="Spec: owl:MODEL?revision=COMMIT, pixels, ...")],
    out: Annotated[Path, Output(help="JSONL for `spatial check`; run again to continue.")],
    rules: Rules = None,
    secondary: Annotated[str, Model(help="Spec of a second detector that has to agree.")] = "",
    cache: Annotated[Path | None, Output(help="Folder that keeps detections.")] = None,
    json: Json = False,
) -> None:
    """Detect what the images of a manifest show, also under the checker's perturbations.

    Example: `counterprior spatial detect run/manifest.jsonl --detector pixels --out d.jsonl`
    """
    from ..eval.judges.checker.run import detect_manifest

    with progress_bar() as progress:
        counts = detect_manifest(
            manifest,
            rules,
            detector,
            out,
            secondary=secondary,
            cache=cache,
            progress=progress,
        )
        print_metrics(counts, json)


def check(
    detections: Annotated[Path, Argument(help="JSONL of samples with their detections.")],
    out: Annotated[Path, Output(help="JSONL of verdicts; OUT.metrics.json goes beside it.")],
    rules: Rules = None,
    labels: SomeLabels = None,
    size: ImageSize = "512x512",
    manifest: Annotated[
        list[Path] | None, Input(help="Manifest of the images, to draw boxes on some; repeatable.")
    ] = None,
    overlays: Annotated[int, Output(min=0, help="Images to draw, into OUT.overlays.")] = 12,
    json: Json = False,
) -> None:
    """Check relations by geometry: PASS, FAIL or UNDECIDABLE, with reason and confidence.

    Example: `counterprior spatial check d.jsonl --out verdicts.jsonl`
    """
    from ..eval.geometry.boxes import Size
    from ..eval.judges.checker.run import run_check

    with progress_bar() as progress:
        metrics = run_check(
            detections,
            rules,
            out,
            labels,
            Size.parse(size),
            manifests=manifest or (),
            overlays=overlays,
            progress=progress,
        )
    print_metrics(metrics, json)
