"""Audit verdicts and mined pairs: compare them with human labels.

Example: `counterprior audit sample gligen=verdicts.jsonl --n 200 --out sample.jsonl`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from .options import (
    Folds,
    ImageSize,
    Input,
    Json,
    JudgeNames,
    LabelKind,
    LabelsFile,
    Output,
    Runs,
    Sampling,
    Verdicts,
)
from .show_corpus import print_truth
from .show_metrics import print_analysis, print_metrics, print_selection
from .show_quality import print_ratings


def sample(
    verdicts: Verdicts,
    n: Annotated[int, Sampling(min=1, help="Images to draw.")],
    out: Annotated[Path, Output(help="JSONL of the images, in the order to label them.")],
    manifest: Annotated[
        list[Path] | None,
        Input(help="Manifest with the image and prompt of each sample; repeatable."),
    ] = None,
    seed: Annotated[int, Sampling(help="Seed of the draw.")] = 42,
) -> None:
    """Draw images to label, stratified by method, relation, verdict and confidence.

    Example: `counterprior audit sample gligen=verdicts.jsonl --n 200 --out sample.jsonl`
    """
    from ..eval.people.checker_audit import write_sample

    print(f"{write_sample(verdicts, n, out, seed, manifest or ())} images in {out}")


def analyze(
    verdicts: Verdicts,
    labels: LabelsFile,
    sample: Annotated[
        Path | None, Input(help="The drawn sample, to estimate values of the whole run.")
    ] = None,
    out: Annotated[Path | None, Output(help="JSON with the curves.")] = None,
    json: Json = False,
) -> None:
    """Compare checker and annotators: confusion, kappa, risk and coverage, agreement.

    Example: `counterprior audit analyze gligen=verdicts.jsonl --labels labels.jsonl`
    """
    from ..eval.people.checker_audit import analyze_files

    print_analysis(analyze_files(verdicts, labels, out, sample), json)


def calibrate(
    detections: Annotated[list[Path], Argument(help="Samples with their detections.")],
    labels: LabelsFile,
    rules: Annotated[Path, Input(help="checker.yaml to start from.")],
    size: ImageSize = "512x512",
    folds: Folds = 5,
    risk: Annotated[
        float | None,
        Sampling(help="Promise that at most this share of accepted verdicts is wrong, e.g. 0.1."),
    ] = None,
    delta: Annotated[
        float, Sampling(help="With --risk: probability that the promise is broken.")
    ] = 0.1,
    out: Annotated[Path | None, Output(help="JSON with the whole grid.")] = None,
    json: Json = False,
) -> None:
    """Find the checker settings that fit the labels best, and how well they fit other labels.

    Example: `counterprior audit calibrate per_sample.jsonl --labels l.csv --rules checker.yaml`
    """
    from ..eval.geometry.boxes import Size
    from ..eval.people.checker_settings import Promise, calibrate_files

    promise = None if risk is None else Promise(risk, delta)
    pixels = Size.parse(size)
    metrics = calibrate_files(detections, labels, rules, pixels, folds, out, promise)
    print_metrics(metrics, json)


def gate(
    run: Annotated[Path, Argument(help="Folder of a judged run of counterfactual.")],
    labels: LabelsFile,
    question: Annotated[str, Input(help="Name of the question in the labels.")] = "accept",
    folds: Folds = 5,
    json: Json = False,
) -> None:
    """Find the L1 threshold for groups of worlds that best matches human acceptance (CF-World).

    Example: `counterprior audit gate runs/cf --labels accepted.csv`
    """
    from ..eval.people.gate import calibrate_run

    print_metrics(calibrate_run(run, labels, question, folds), json)


def serve(
    rows: Annotated[
        list[Path],
        Argument(
            help="Folders of runs; a study; rows of `audit sample`, groups, a bank file; a release."
        ),
    ],
    out: Annotated[Path, Output(help="Folder of the labels, one file for each annotator.")],
    kind: LabelKind = "verdict",
    n: Annotated[
        int | None,
        Sampling(min=1, help="Cases to draw from runs; of a study, images for each score."),
    ] = None,
    seed: Annotated[int, Sampling(help="Seed of the draw.")] = 0,
    port: Annotated[int, Output(min=0, help="Port of the page; 0 for any free one.")] = 0,
) -> None:
    """Serve a local page to label on by keyboard; every click is saved, restart to continue.

    Example: `counterprior audit serve runs/plain runs/lora --kind quality --out ratings`
    """
    from ..eval.people.sampling import open_audit
    from ..eval.people.serve import serve as serve_page
    from ..eval.studies.labeling import runs_to_label

    roots, metrics = runs_to_label(rows, kind)
    serve_page(open_audit(roots, kind, out, n=n, seed=seed, metrics=metrics), port)


def export(
    rows: Annotated[
        list[Path],
        Argument(
            help="Folders of runs; a study; rows of `audit sample`, groups, a bank file; a release."
        ),
    ],
    out: Annotated[Path, Output(help="Folder of tasks, labeling config and images.")],
    kind: LabelKind = "verdict",
    n: Annotated[
        int | None,
        Sampling(min=1, help="Cases to draw from runs; of a study, images for each score."),
    ] = None,
    seed: Annotated[int, Sampling(help="Seed of the draw.")] = 0,
    url: Annotated[
        str, Output(help="URL that serves OUT/images; Label Studio's local files by default.")
    ] = "",
    predictions: Annotated[
        bool, Output("--predictions", help="Also show the judge's answers, which biases labels.")
    ] = False,
    json: Json = False,
) -> None:
    """Write tasks and labeling config for a Label Studio project, in place of `audit serve`.

    Example: `counterprior audit export runs/mine --kind judge --n 60 --out labels`
    """
    from ..eval.people.label_studio import export_tasks
    from ..eval.studies.labeling import runs_to_label

    roots, metrics = runs_to_label(rows, kind)
    settings: dict[str, Any] = {"n": n, "seed": seed, "url": url, "predictions": predictions}
    print_metrics(export_tasks(roots, kind, out, metrics=metrics, **settings), json)


def import_(
    exported: Annotated[Path, Argument(help="Export of the Label Studio project, as JSON.")],
    out: Annotated[Path, Output(help="Folder that `audit export` wrote; labels go there.")],
    annotator: Annotated[
        list[str] | None,
        Input(help="Name of an account, ACCOUNT=NAME, e.g. 3=ann; repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """Read the annotations of a Label Studio project as labels, one file for each annotator.

    Example: `counterprior audit import project-1.json --out labels --annotator 3=ann`
    """
    from ..eval.people.label_studio import import_labels, parse_names

    print_metrics(import_labels(exported, out, parse_names(annotator or ())), json)


def ratings(
    folder: Annotated[Path, Argument(help="Folder of the labels, as `audit serve` wrote it.")],
    json: Json = False,
) -> None:
    """Show human ratings of image quality: means, paired differences, tests, agreement.

    Example: `counterprior audit ratings ratings`
    """
    from ..eval.people.ratings import analyze_ratings

    print_ratings(analyze_ratings(folder), json)


def judges(
    runs: Runs,
    labels: LabelsFile,
    judge: JudgeNames = None,
    json: Json = False,
) -> None:
    """Compare judges with human labels over runs and metrics: confusion, kappa, score differences.

    Example: `counterprior audit judges runs/a runs/b --labels labels/ann.jsonl`
    """
    from ..eval.results.selection import judge_selection

    print_selection(judge_selection(runs, labels, judge or ()), json)


def pairs(
    captions: Annotated[
        list[Path], Argument(help="Files of the sources: parquet, jsonl, json or csv.")
    ],
    gold: Annotated[
        Path | None, Input(help="Annotated captions; the shipped ones by default.")
    ] = None,
    tuned: Annotated[
        bool, Input("--tuned", help="The half that may be used for tuning, with every mistake.")
    ] = False,
    draw: Annotated[
        int | None, Input(min=1, help="Only captions of this draw; all by default.")
    ] = None,
    reference: Annotated[
        bool, Input("--reference", help="Use spaCy alone, without the prefilter.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure precision and recall of `mine` against annotated captions.

    Example: `counterprior audit pairs laion.parquet cc3m.parquet coco.json`
    """
    from ..corpus_analysis.mining.accuracy import GOLD, Half, check_pairs

    half: Half = "tuned" if tuned else "held-out"
    report = check_pairs(captions, half, gold or GOLD, reference=reference, draw=draw)
    print_truth(report, json)


def merge(
    labels: Annotated[list[Path], Argument(help="Label files, one for each annotator.")],
    out: Annotated[Path, Output(help="JSONL with every vote and the majority.")],
    kind: LabelKind = "verdict",
    json: Json = False,
) -> None:
    """Merge the labels of several annotators into one file, and print how far they agree.

    Example: `counterprior audit merge ann.jsonl bo.jsonl --out labels.jsonl`
    """
    from ..eval.people.clicks import merge as merge_files

    print_metrics(merge_files(labels, kind, out), json)
