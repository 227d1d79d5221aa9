"""The command line on one page: every command, its panel in the help, and its function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import UsageError
from . import (
    audit,
    author,
    captioning,
    corpus,
    doctor,
    evaluate,
    items,
    methods,
    money,
    organism,
    quality,
    release,
    spatial,
    studies,
    study,
)
from .console import failing
from .options import with_option_groups

Commands = dict[str, Callable[..., None]]

PANELS: dict[str, Commands] = {
    "Evaluate": {
        "eval": evaluate.evaluate,
        "prompts": evaluate.prompts,
        "generate": evaluate.generate,
        "judge": evaluate.judge,
        "score": evaluate.score,
        "quality": quality.quality,
        "report": evaluate.report,
        "judge-check": studies.judge_check,
        "findings": studies.findings,
        "items": items.items,
        "plan": studies.plan,
        "race": studies.race,
        "selftest": studies.selftest,
        "settle": money.settle,
        "doctor": doctor.doctor,
    },
    "Methods against the prior": {
        "best-of": methods.best_of,
        "tune": methods.tune,
    },
    "Check spatial relations": {
        "detect": spatial.detect,
        "check": spatial.check,
    },
    "Release": {
        "build": release.build,
        "validate": release.validate,
        "diff": release.diff,
        "push": release.push,
        "publish": release.publish,
        "verify": release.verify,
        "verify-holdout": release.verify_holdout,
    },
    "Corpora": {
        "mine": corpus.mine,
        "control": corpus.control,
        "flips": corpus.flips,
        "captioning": captioning.captioning,
    },
    "People": {
        "agree": spatial.agree,
    },
}

AUTHOR: Commands = {
    "constrained": author.constrained,
    "counterfactual": author.counterfactual,
    "rules": author.rules,
    "consistency": author.consistency,
    "verify": author.verify,
    "relations": author.relations,
    "worlds": author.worlds,
    "rarity": author.rarity,
    "publish": author.publish,
}

AUDIT: Commands = {
    "sample": audit.sample,
    "serve": audit.serve,
    "export": audit.export,
    "import": audit.import_,
    "ratings": audit.ratings,
    "judges": audit.judges,
    "merge": audit.merge,
    "analyze": audit.analyze,
    "calibrate": audit.calibrate,
    "gate": audit.gate,
    "pairs": audit.pairs,
}

REMOVED = {
    "check-report": "its tables are recipes: `counterprior study table --as spatialbench-uc-5 "
    "NAME=FILE`, and -6, -7, -relations, -pairs, -calibration, -fig-3; `counterprior check` draws "
    "the boxes",
    "switch": "a study draws only biased cases with `where: biased`, see `counterprior study "
    "recipes ots-bench-7`",
}
"""Name of a removed command -> its replacement."""

ORGANISM: Commands = {
    "train": organism.train,
    "judge": organism.judge,
}

STUDY: Commands = {
    "run": study.run,
    "plan": study.plan,
    "status": study.status,
    "table": study.table,
    "pack": study.pack,
    "report": study.report,
    "recipes": study.recipes,
}


class FailingCommand(TyperCommand):
    """A command whose errors and exit codes come from `failing`."""

    def invoke(self, ctx: Any) -> Any:
        with failing():
            return super().invoke(ctx)


class CommandsAndRemoved(TyperGroup):
    """The commands; a removed command raises an error that names its replacement."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in REMOVED:
            with failing():
                raise UsageError(
                    f"`counterprior {args[0]}` was removed",
                    REMOVED[args[0]],
                    code="removed-name",
                )
        return super().resolve_command(ctx, args)


def group(commands: Commands, panel: str | None = None, **settings: Any) -> typer.Typer:
    """Returns a group of commands, in the named panel of the help."""
    typer_group = typer.Typer(**settings)
    for name, function in commands.items():
        typer_group.command(name, cls=FailingCommand, rich_help_panel=panel)(
            with_option_groups(function)
        )
    return typer_group


def print_version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Does an image generator follow the prompt, or its prior?

    Build, check and release the benchmarks that answer it, and evaluate generators on them.
    """
    if version:
        print(f"counterprior {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=CommandsAndRemoved,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.callback(invoke_without_command=True)(print_version)
for panel, commands in PANELS.items():
    app.add_typer(group(commands, panel))

studying = group(STUDY, help=study.__doc__, no_args_is_help=True)
app.add_typer(studying, name="study", rich_help_panel="Evaluate")

training = group(ORGANISM, help=organism.__doc__, no_args_is_help=True)
app.add_typer(training, name="organism", rich_help_panel="Methods against the prior")

writing = group(AUTHOR)
writing.callback(invoke_without_command=True)(author.show_prompts)
app.add_typer(writing, name="author", rich_help_panel="Write content")

auditing = group(AUDIT, help=audit.__doc__, no_args_is_help=True)
app.add_typer(auditing, name="audit", rich_help_panel="People")
