"""The command that shows what this machine can run, what blocks a run, and whether scores hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from ..errors import UsageError
from .console import WRONG
from .options import Cost, Input, Json, Model, Prices
from .progress import progress_bar
from .show_doctor import print_machine
from .show_money import print_repaired, print_settlement
from .show_results import print_checks

Generators = Annotated[
    list[str] | None, Model("--generator", help="Spec to try: diffusers:MODEL, ...; repeatable.")
]
JudgeSpecs = Annotated[
    list[str] | None, Model("--judge", help="Spec to try: openai:MODEL, ...; repeatable.")
]


def doctor(
    generator: Generators = None,
    judge: JudgeSpecs = None,
    folder: Annotated[
        Path | None,
        Argument(help="Show what blocks a run, study or race, or an author's ledger, instead."),
    ] = None,
    selftest: Annotated[
        bool,
        Input(
            "--selftest",
            help="Run the scoring chain on images whose truth is known: offline, within a minute.",
        ),
    ] = False,
    repair: Annotated[
        bool,
        Input("--repair", help="Move lines of FOLDER's logs that can't be read to files beside."),
    ] = False,
    billed: Annotated[
        str | None,
        Cost(help="What FOLDER's attempts of unknown cost were billed in all, in US dollars."),
    ] = None,
    worst: Annotated[bool, Cost("--worst", help="Count them at their worst case.")] = False,
    prices: Prices = None,
    lower_prices: Annotated[
        bool, Cost("--lower-prices", help="Count later calls at --prices, though they are lower.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what is installed, which devices and keys are available, and which specs would open.

    No weights are downloaded, nothing is made or asked, and no key is printed. Exits with 1 if a
    spec that you name can't be opened. Of a FOLDER it lists attempts that may have been billed
    without an answer: with --billed or --worst, paid calls go on.

    Example: `counterprior doctor --generator diffusers:MODEL --judge openai:MODEL`, or
    `counterprior doctor runs/demo --billed 0.12`
    """
    if folder is not None:
        if generator or judge or selftest:
            raise UsageError(
                f"--generator, --judge and --selftest are not about {folder}",
                "leave them or the folder out",
                code="conflicting-options",
            )
        if repair and not _repair(folder):
            return
        from ..eval.engine.settling import read_billed, settle

        settlement = settle(folder, read_billed(billed), worst, prices, lower_prices)
        print_settlement(settlement, json)
        return
    if repair or worst or lower_prices or billed is not None or prices is not None:
        raise UsageError(
            "--repair, --billed, --worst, --prices and --lower-prices are about a folder",
            "name it: `counterprior doctor FOLDER`",
            code="missing-option",
        )
    if selftest:
        _selftest()
        return
    from ..eval.checkpoints.machine import examine_machine
    from ..eval.studies.doctor import try_specs

    print_machine(examine_machine(), try_specs(generator or [], judge or []), json)


def _repair(folder: Path) -> bool:
    """Moves lines that can't be read aside; returns whether anything was ever paid for."""
    from ..eval.engine.repair import repair
    from ..eval.engine.settling import has_spending

    print_repaired(repair(folder))
    return has_spending(folder)


def _selftest() -> None:
    from ..eval.selftest.run import selftest

    with progress_bar() as progress:
        checks = selftest(progress)
    print_checks(checks)
    if not all(check.holds for check in checks):
        raise SystemExit(WRONG)
