"""A command's help in two lengths: `--help` has what a person needs, `--help-all` every option.

An option is left to `--help-all` by its panel, `FURTHER`. Panels come in one order in all commands.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from .console import failing

INPUT, MODEL, SAMPLING = "Input", "Model", "Sampling"
COST, OUTPUT = "Cost and speed", "Output"
FURTHER = "Further options"
"""Panel of the options that few runs need."""
HELP = "Help"
PANELS = (INPUT, MODEL, SAMPLING, OUTPUT, COST, FURTHER, HELP)

_PRINTING = "counterprior.printing_help"
_ALL = "counterprior.all_options"


class FailingCommand(TyperCommand):
    """A command whose errors and exit codes come from `failing`, and whose help has two lengths."""

    def invoke(self, ctx: Any) -> Any:
        with failing():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)
        if not ctx.meta.get(_PRINTING):
            return params
        return sorted(
            (p for p in params if _panel(p) != FURTHER or ctx.meta.get(_ALL)),
            key=lambda p: (PANELS.index(_panel(p)) if _panel(p) in PANELS else 0, not p.required),
        )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        parameters: list[Any] = super().get_params(ctx)
        for parameter in parameters:
            if parameter.name == "help":
                parameter.rich_help_panel = HELP
        ctx.meta[_PRINTING] = True
        try:
            super().format_help(ctx, formatter)
        finally:
            ctx.meta[_PRINTING] = False


def _panel(parameter: Any) -> str:
    return getattr(parameter, "rich_help_panel", None) or ""


def _print_all(ctx: typer.Context, value: bool) -> None:
    if value:
        ctx.meta[_ALL] = True
        print(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        callback=_print_all,
        rich_help_panel=HELP,
        help="Show the further options, too.",
    ),
]
