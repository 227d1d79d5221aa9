"""The command line on one page: every command, its panel in the help, and its function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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
    organism,
    quality,
    release,
    spatial,
    studies,
    study,
)
from .console import failing
from .help import FailingCommand
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
        "gate": quality.gate,
        "report": evaluate.report,
        "judge-check": studies.judge_check,
        "doctor": doctor.doctor,
    },
    "Train": {
        "tune": methods.tune,
    },
    "Release": {
        "build": release.build,
        "validate": release.validate,
        "diff": release.diff,
        "push": release.push,
        "publish": release.publish,
        "verify": release.verify,
    },
}

STUDY: Commands = {
    "run": study.run,
    "plan": study.plan,
    "status": study.status,
    "table": study.table,
    "pack": study.pack,
    "recipes": study.recipes,
    "power": studies.power,
    "race": studies.race,
    "items": items.items,
    "best-of": methods.best_of,
}

SPATIAL: Commands = {
    "detect": spatial.detect,
    "check": spatial.check,
    "relations": author.relations,
}

ORGANISM: Commands = {
    "train": organism.train,
    "judge": organism.judge,
}

CORPUS: Commands = {
    "mine": corpus.mine,
    "accuracy": corpus.accuracy,
    "flips": corpus.flips,
    "control": corpus.control,
    "captioning": captioning.captioning,
}

AUDIT: Commands = {
    "sample": audit.sample,
    "serve": audit.serve,
    "export": audit.export,
    "import": audit.import_,
    "merge": audit.merge,
    "analyze": audit.analyze,
    "calibrate": audit.calibrate,
    "findings": studies.findings,
}

AUTHOR: Commands = {
    "constrained": author.constrained,
    "counterfactual": author.counterfactual,
    "consistency": author.consistency,
    "verify": author.verify,
    "worlds": author.worlds,
    "rarity": author.rarity,
    "publish": author.publish,
}

MOVED = {
    "agree": "audit analyze SCORES.jsonl --labels FILE",
    "audit gate": "audit calibrate RUN --labels FILE",
    "audit judges": "audit analyze RUN... --labels FILE",
    "audit pairs": "corpus accuracy",
    "audit ratings": "audit analyze FOLDER",
    "author relations": "spatial relations",
    "author rules": "author counterfactual --rules",
    "best-of": "study best-of",
    "captioning": "corpus captioning",
    "check": "spatial check",
    "check-report": "study table --as spatialbench-uc-5 NAME=FILE",
    "control": "corpus control",
    "detect": "spatial detect",
    "findings": "audit findings",
    "flips": "corpus flips",
    "items": "study items",
    "mine": "corpus mine",
    "plan": "study power",
    "race": "study race",
    "selftest": "doctor --selftest",
    "settle": "doctor FOLDER",
    "study report": "report STUDY",
    "switch": "study recipes ots-bench-7",
    "verify-holdout": "verify PUBLIC --holdout PRIVATE --salt-file FILE",
}
"""Former name of a command -> what does the same now."""


class CommandGroup(TyperGroup):
    """Commands; a former name raises an error that gives the present one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        former = f"{ctx.info_name} {args[0]}" if ctx.parent is not None else args[0]
        if args[0] not in self.commands and former in MOVED:
            with failing():
                raise UsageError(
                    f"`counterprior {former}` is now `counterprior {MOVED[former]}`",
                    code="removed-name",
                )
        return super().resolve_command(ctx, args)


def group(commands: Commands, panel: str | None = None, **settings: Any) -> typer.Typer:
    """Returns a group of commands, in the named panel of the help."""
    typer_group = typer.Typer(cls=CommandGroup, **settings)
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
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.callback(invoke_without_command=True)(print_version)
for panel, commands in PANELS.items():
    app.add_typer(group(commands, panel))

for name, (commands, module, panel) in {
    "study": (STUDY, study, "Evaluate"),
    "spatial": (SPATIAL, spatial, "Evaluate"),
    "audit": (AUDIT, audit, "Evaluate"),
    "organism": (ORGANISM, organism, "Train"),
    "corpus": (CORPUS, corpus, "Look for the prior in data"),
}.items():
    grouped = group(commands, help=module.__doc__, no_args_is_help=True)
    app.add_typer(grouped, name=name, rich_help_panel=panel)

writing = group(AUTHOR)
writing.callback(invoke_without_command=True)(author.show_prompts)
app.add_typer(writing, name="author", rich_help_panel="Release")
