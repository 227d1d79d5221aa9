"""The command that analyzes prompts over several generators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from .console import print_json
from .options import Input, Json, JudgeNames, Output, Partial, Sampling
from .progress import progress_bar


def items(
    sources: Annotated[
        list[Path], Argument(help="Judged runs of 5 or more generators, or folders of studies.")
    ],
    out: Annotated[Path, Output(help="Folder of the table, the model and the short form.")],
    suite: Annotated[str, Input(help="Config, where the runs are of several.")] = "",
    judge: JudgeNames = None,
    short_form: Annotated[
        int | None, Sampling(min=1, help="Choose so many prompts that stand for all.")
    ] = None,
    partial: Partial = False,
    json: Json = False,
) -> None:
    """Rate prompts by difficulty and discrimination over generators; find faulty ones; shorten.

    Example: `counterprior items studies/first --out items --short-form 100`
    """
    from ..eval.studies.items import ItemSettings, analyze_items
    from .show_items import print_items

    settings = ItemSettings(suite, tuple(judge or ()), short_form=short_form, partial=partial)
    with progress_bar() as progress:
        report = analyze_items(sources, out, settings, progress)
    if json:
        print_json(report.to_json())
    else:
        print_items(report, out)
