"""Studies: generators x suites x judges from one file, each model loaded once, and their tables.

Example: `counterprior study recipes ots-bench-4 > study.yaml`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from ..errors import UsageError
from .console import WRONG, print_json, print_note
from .options import (
    Cost,
    Data,
    ImageSize,
    Input,
    Json,
    MaxUsd,
    Output,
    RetryFailed,
    ScaleOptions,
    SomeLabels,
)
from .progress import progress_bar

StudyPath = Annotated[Path, Argument(help="YAML file of the study.")]
StudyFolder = Annotated[Path, Argument(help="Folder of a study.")]
Changes = Annotated[
    list[str] | None,
    Input("--set", help="KEY.KEY=VALUE replaces an entry of the file; repeatable."),
]


Trust = Annotated[
    bool, Input("--trust", help="Run the code that the file names by python: and command:.")
]


def run(
    file: StudyPath,
    out: Annotated[Path, Output(help="Folder of the study; run again to continue.")],
    workers: ScaleOptions,
    changes: Changes = None,
    max_usd: MaxUsd = None,
    trust: Trust = False,
    retry_failed: RetryFailed = False,
) -> None:
    """Run a study, or what is left of it: load each model once, make images, ask judges.

    Example: `counterprior study run study.yaml --out studies/first --max-usd 20`
    """
    from ..eval.studies.runner import run_study
    from .show_study import print_done

    with progress_bar() as progress:
        scale = workers.scale()
        done = run_study(
            file,
            out,
            max_usd,
            changes or (),
            progress=progress,
            scale=scale,
            trust=trust,
            retry_failed=retry_failed,
        )
    print_done(done, scale.shard)
    if done.failures:
        raise SystemExit(WRONG)


def plan(
    file: StudyPath,
    out: Annotated[
        Path | None, Output(help="Folder of a study; what it already has is skipped.")
    ] = None,
    changes: Changes = None,
    max_usd: MaxUsd = None,
    probe: Annotated[
        bool, Cost("--probe", help="Make 3 images with each model and ask about them, to measure.")
    ] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Estimate the images, questions, money, disk and time of a study, and list what would fail.

    Example: `counterprior study plan study.yaml --probe`
    """
    from ..eval.studies.preflight import plan_study
    from .show_study import print_plan

    with progress_bar() as progress:
        study_plan = plan_study(
            file,
            out,
            changes=changes or (),
            max_usd=max_usd,
            probe=probe,
            trust=trust,
            progress=progress,
        )
    if json:
        print_json(study_plan.to_json())
    else:
        print_plan(study_plan)
    if study_plan.problems:
        raise SystemExit(WRONG)


def status(folder: StudyFolder, json: Json = False) -> None:
    """Show the progress of each cell of a study, its score so far, and why cells failed.

    Example: `counterprior study status studies/first`
    """
    from ..eval.studies.folder import Study
    from ..eval.studies.status import study_status
    from .show_study import print_study

    cells = study_status(Study.open(folder), scores=True)
    if json:
        print_json([cell.to_json() for cell in cells])
    else:
        print_study(cells)


def table(
    sources: Annotated[
        list[str],
        Argument(help="Study: a folder, or a file of `study pack`; or detections, NAME=FILE each."),
    ],
    layout: Annotated[
        str,
        Output("--as", help="Recipe, or study file with a `table`; by default the study's own."),
    ] = "",
    form: Annotated[
        str, Output("--format", help="md, tex, html, csv, json, or svg of a figure.")
    ] = "md",
    rules: Annotated[
        list[str] | None,
        Input(help="checker.yaml for detections, or JUDGE=FILE; repeatable. Else the published."),
    ] = None,
    labels: SomeLabels = None,
    size: ImageSize = "512x512",
    keep: Annotated[
        Path | None,
        Output(help="Folder of a new study: keep detections as runs, to score and judge again."),
    ] = None,
    manifest: Annotated[
        list[Path] | None,
        Input(help="With --keep: JSONL of the images' files, seeds and models; repeatable."),
    ] = None,
    data: Data = "dist/counterprior",
) -> None:
    """Print a study, or detections, as one table, with intervals and the paper's values.

    Example: `counterprior study table studies/first --as ots-bench-4 --format tex`
    """
    from ..eval.geometry.boxes import Size
    from ..eval.studies.detections import TableSources, open_table
    from ..eval.studies.formats import format_table

    inputs = TableSources(sources, rules or (), labels, Size.parse(size))
    if keep is not None:
        from ..eval.studies.imported import ImportSettings, import_study

        import_study(layout, inputs, ImportSettings(keep, data, manifest or ()))
        inputs = TableSources([str(keep)])
    elif manifest:
        raise UsageError("--manifest is for --keep", "name a folder", code="missing-option")
    comparison = open_table(layout, inputs)
    print(format_table(comparison, form), end="")
    if not comparison.complete:
        print_note(f"{sources[0]} is not complete: the table says which numbers are of a part")


def pack(
    folder: StudyFolder,
    out: Annotated[Path, Output(help="File to write, ending in .zip.")],
) -> None:
    """Write a study without its images to one small file, from which its tables are recomputed.

    Example: `counterprior study pack studies/first --out first.zip`
    """
    from ..eval.studies.packed import pack_study

    size = pack_study(folder, out)
    print(f"{size / 1e6:.2f} MB: {out}, for `counterprior study table {out}`")


def recipes(
    name: Annotated[str, Argument(help="Print this one; list all without a name.")] = "",
    offline: Annotated[
        bool,
        Input("--offline", help="With the renderer and rules in place of its models: a few rows."),
    ] = False,
) -> None:
    """List the recipes that ship, one for each table of a paper, or print one.

    Example: `counterprior study recipes ots-bench-4 > study.yaml`
    """
    from ..eval.studies.offline import offline_text
    from ..eval.studies.recipes import read_recipe, recipe_names

    if name:
        recipe = read_recipe(name)
        print(offline_text(recipe) if offline else recipe.text, end="")
        return
    for recipe_name in recipe_names():
        print(f"{recipe_name:<27} {read_recipe(recipe_name).title}")
