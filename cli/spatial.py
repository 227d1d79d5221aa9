"""Commands that detect objects and check spatial relations by geometry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from .options import ImageSize, Input, Json, LabelsFile, Model, Output, Rules, SomeLabels
from .progress import progress_bar
from .show_metrics import print_agreement, print_metrics, print_tables


def detect(
    manifest: Annotated[Path, Argument(help="JSONL of images, relations and objects.")],
    detector: Annotated[str, Model(help="Spec: owl:MODEL?revision=COMMIT, pixels, ...")],
    out: Annotated[Path, Output(help="JSONL for `check`; run again to continue.")],
    rules: Rules = None,
    secondary: Annotated[str, Model(help="Spec of a second detector that has to agree.")] = "",
    cache: Annotated[Path | None, Output(help="Folder that keeps detections.")] = None,
    json: Json = False,
) -> None:
    """Detect what the images of a manifest show, also under the checker's perturbations.

    Example: `counterprior detect run/manifest.jsonl --detector pixels --out d.jsonl`
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
    json: Json = False,
) -> None:
    """Check relations by geometry: PASS, FAIL or UNDECIDABLE, with reason and confidence.

    Example: `counterprior check d.jsonl --out verdicts.jsonl`
    """
    from ..eval.geometry.boxes import Size
    from ..eval.judges.checker.run import run_check

    print_metrics(run_check(detections, rules, out, labels, Size.parse(size)), json)


def check_report(
    methods: Annotated[list[str], Argument(help="METHOD=FILE of samples with detections, each.")],
    out: Annotated[Path, Output(help="Folder of the page and its CSV files.")],
    rules: Rules = None,
    before: Annotated[
        list[str] | None, Input(help="METHOD=FILE before calibration; the same files by default.")
    ] = None,
    before_rules: Annotated[Path | None, Input(help="checker.yaml before calibration.")] = None,
    labels: SomeLabels = None,
    manifest: Annotated[
        list[Path] | None, Input(help="Manifest of the images, to draw boxes on some; repeatable.")
    ] = None,
    overlays: Annotated[int, Output(min=0, help="Number of images to draw for each method.")] = 12,
    size: ImageSize = "512x512",
    json: Json = False,
) -> None:
    """Compare checked methods: main results, abstention, prompts, calibration, risk and coverage.

    Example: `counterprior check-report sd15=a.jsonl gligen=b.jsonl --labels l.csv --out report`
    """
    from ..eval.geometry.boxes import Size
    from ..eval.report.checked import write_check_report
    from ..eval.results.checked import CheckInputs
    from ..eval.results.checked import check_report as make_report

    inputs = CheckInputs(
        methods=methods,
        rules=rules,
        before=before or (),
        before_rules=before_rules,
        labels=labels,
        size=Size.parse(size),
    )
    with progress_bar() as progress:
        report = make_report(inputs)
        page = write_check_report(report, out, manifest or (), overlays, progress)
    print_tables(report.tables, page, json)


def agree(
    scores: Annotated[Path, Argument(help="Rows of sample_id and one number for each metric.")],
    labels: LabelsFile,
    metric: Annotated[list[str] | None, Input(help="Only this metric; repeatable.")] = None,
    threshold: Annotated[float, Input(help="Minimum score counted as positive.")] = 0.5,
    json: Json = False,
) -> None:
    """Compare metrics with people: correlations, precision, recall and more, with intervals.

    Example: `counterprior agree scores.jsonl --labels labels.jsonl --metric pse`
    """
    from ..eval.results.agree import run_agree

    print_agreement(run_agree(scores, labels, metric or (), threshold), json)
