"""Audit verdicts and mined pairs: compare them with human labels.

Example: `counterprior audit sample gligen=verdicts.jsonl --n 200 --out sample.jsonl`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from ..errors import UsageError
from .options import (
    Folds,
    ImageSize,
    Input,
    Json,
    JudgeNames,
    LabelKind,
    LabelsFile,
    Output,
    Sampling,
    SomeLabels,
    Verdicts,
    Where,
)
from .show_metrics import print_agreement, print_analysis, print_metrics, print_selection
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
    sources: Annotated[
        list[str],
        Argument(
            help="Verdicts of the checker, METHOD=FILE; judged runs; a file of scores, with a "
            "sample_id in each row; or a folder of ratings of image quality."
        ),
    ],
    labels: SomeLabels = None,
    sample: Annotated[
        Path | None, Input(help="Of verdicts: the drawn sample, to estimate the whole run.")
    ] = None,
    judge: JudgeNames = None,
    metric: Annotated[
        list[str] | None, Input(help="Of scores: only this column; repeatable.")
    ] = None,
    threshold: Annotated[
        float | None, Input(help="Of scores: smallest one that counts as positive; 0.5.")
    ] = None,
    clusters: Annotated[
        str, Input(help="Of scores: column of what images share, e.g. their prompt.")
    ] = "",
    out: Annotated[Path | None, Output(help="Of verdicts: JSON with the curves.")] = None,
    json: Json = False,
) -> None:
    """Compare verdicts, judges or scores with human labels: confusion, kappa, correlations, curves.

    Of a folder of `audit serve --kind quality`: means, paired differences, tests, agreement.

    Example: `counterprior audit analyze runs/a runs/b --labels labels/ann.jsonl`
    """
    from ..eval.people.sources import kind_of

    kind = kind_of(sources)
    options = {
        "--labels": labels,
        "--sample": sample,
        "--judge": judge,
        "--metric": metric,
        "--threshold": threshold,
        "--clusters": clusters,
        "--out": out,
    }
    kind.check_options({name: value for name, value in options.items() if value not in (None, "")})
    paths = [Path(source) for source in sources]
    if kind.name == "ratings":
        from ..eval.people.ratings import analyze_ratings

        print_ratings(analyze_ratings(paths[0]), json)
        return
    assert labels is not None, "see check_options"
    if kind.name == "runs":
        from ..eval.results.selection import judge_selection

        print_selection(judge_selection(paths, labels, judge or ()), json)
    elif kind.name == "scores":
        from ..eval.results.agree import run_agree

        least = 0.5 if threshold is None else threshold
        print_agreement(run_agree(paths[0], labels, metric or (), least, clusters), json)
    else:
        from ..eval.people.checker_audit import analyze_files

        print_analysis(analyze_files(sources, labels, out, sample), json)


def calibrate(
    sources: Annotated[
        list[Path],
        Argument(help="Samples with their detections; or the folder of a run of counterfactual."),
    ],
    labels: LabelsFile,
    rules: Annotated[
        Path | None, Input(help="Of detections, and needed: checker.yaml to start from.")
    ] = None,
    question: Annotated[
        str, Input(help="Of a run: name of the question in the labels; `accept`.")
    ] = "",
    size: ImageSize = "512x512",
    folds: Folds = 5,
    risk: Annotated[
        float | None,
        Sampling(help="Promise that at most this share of accepted verdicts is wrong, e.g. 0.1."),
    ] = None,
    delta: Annotated[
        float | None, Sampling(help="With --risk: probability that the promise is broken; 0.1.")
    ] = None,
    out: Annotated[Path | None, Output(help="JSON with the whole grid.")] = None,
    json: Json = False,
) -> None:
    """Find the settings that fit labels best, and how well they fit other labels.

    Of detections: the checker's settings. Of a run: the L1 threshold for groups of worlds that best
    matches human acceptance (CF-World).

    Example: `counterprior audit calibrate per_sample.jsonl --labels l.csv --rules checker.yaml`
    """
    from ..eval.geometry.boxes import Size
    from ..eval.people.checker_settings import Promise, calibrate_files
    from ..eval.people.gate import calibrate_run
    from ..eval.people.sampling import is_run

    if is_run(sources[0]):
        of_detections = {"--rules": rules, "--risk": risk, "--delta": delta, "--out": out}
        if needless := [name for name, value in of_detections.items() if value is not None]:
            raise UsageError(
                f"{needless[0]} is for detections, and {sources[0]} is a run",
                "leave it out",
                code="conflicting-options",
            )
        if len(sources) > 1:
            raise UsageError(
                f"{len(sources)} sources of which the first is a run",
                "name one run",
                code="unsupported",
            )
        print_metrics(calibrate_run(sources[0], labels, question or "accept", folds), json)
        return
    if rules is None or question:
        raise UsageError(
            f"{sources[0]} is not a run",
            "pass --rules, the checker.yaml to start from, and no --question",
            code="missing-option",
        )
    promise = None if risk is None else Promise(risk, 0.1 if delta is None else delta)
    pixels = Size.parse(size)
    metrics = calibrate_files(sources, labels, rules, pixels, folds, out, promise)
    print_metrics(metrics, json)


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
        Sampling(min=1, help="Cases to draw from runs, rows of a release; of a study, by score."),
    ] = None,
    seed: Annotated[int, Sampling(help="Seed of the draw.")] = 0,
    where: Where = None,
    port: Annotated[int, Output(min=0, help="Port of the page; 0 for any free one.")] = 0,
) -> None:
    """Serve a local page to label on by keyboard; every click is saved, restart to continue.

    Example: `counterprior audit serve runs/plain runs/lora --kind quality --out ratings`
    """
    from ..eval.people.sampling import open_audit
    from ..eval.people.serve import serve as serve_page
    from ..eval.studies.labeling import runs_to_label

    roots, metrics = runs_to_label(rows, kind)
    audit = open_audit(roots, kind, out, n=n, seed=seed, metrics=metrics, where=where)
    serve_page(audit, port)


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
        Sampling(min=1, help="Cases to draw from runs, rows of a release; of a study, by score."),
    ] = None,
    seed: Annotated[int, Sampling(help="Seed of the draw.")] = 0,
    where: Where = None,
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
    settings: dict[str, Any] = {"n": n, "seed": seed, "where": where}
    settings |= {"url": url, "predictions": predictions}
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
