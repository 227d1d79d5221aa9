"""The command that analyzes prompts over several generators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from ..errors import UsageError
from .console import print_json
from .options import Input, Json, JudgeNames, Output, Partial, Sampling
from .progress import progress_bar


def items(
    sources: Annotated[
        list[Path], Argument(help="Judged runs, or folders of studies; 5 generators for a model.")
    ],
    out: Annotated[
        Path | None, Output(help="Folder of the table, the model and the short form.")
    ] = None,
    by: Annotated[
        Path | None, Input(help="Such a folder: estimate the runs' scores over all of its prompts.")
    ] = None,
    suite: Annotated[str, Input(help="Config, where the runs are of several.")] = "",
    judge: JudgeNames = None,
    short_form: Annotated[
        int | None, Sampling(min=1, help="Choose so many prompts that stand for all.")
    ] = None,
    partial: Partial = False,
    json: Json = False,
) -> None:
    """Rate prompts by difficulty and discrimination over generators; find faulty ones; shorten.

    Example: `counterprior study items studies/first --out items --short-form 100`
    """
    from ..eval.studies.items import ItemSettings, analyze_items, linked_scores
    from .show_items import print_items, print_linked

    if (out is None) == (by is None):
        raise UsageError(
            "items needs --out DIR to fit a model, or --by DIR to use one", code="missing-option"
        )
    if by is not None and short_form is not None:
        raise UsageError(
            "--short-form is for --out: a model by --by has its own", code="conflicting-options"
        )
    settings = ItemSettings(suite, tuple(judge or ()), short_form=short_form, partial=partial)
    if by is not None:
        scores = linked_scores(sources, by, settings)
        if json:
            print_json([score.to_json() for score in scores])
        else:
            print_linked(scores)
    if out is None:
        return
    with progress_bar() as progress:
        report = analyze_items(sources, out, settings, progress)
    if json:
        print_json(report.to_json())
    else:
        print_items(report, out)
