"""The command that settles attempts of unknown cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from .options import Cost, Input, Json, Prices
from .show_money import print_repaired, print_settlement


def settle(
    path: Annotated[Path, Argument(help="Folder of a run, study or race, or an author's ledger.")],
    billed: Annotated[
        str | None, Cost(help="Their total cost on the provider's bill, in US dollars.")
    ] = None,
    repair: Annotated[
        bool, Input("--repair", help="First move lines of logs that can't be read to files beside.")
    ] = False,
    worst: Annotated[bool, Cost("--worst", help="Settle them at their worst case.")] = False,
    prices: Prices = None,
    lower_prices: Annotated[
        bool, Cost("--lower-prices", help="Count later calls at --prices, though they are lower.")
    ] = False,
    json: Json = False,
) -> None:
    """List attempts that may have been billed without an answer, and settle what they cost.

    Example: `counterprior settle runs/demo --billed 0.12`
    """
    from ..eval.engine.repair import repair as repair_logs
    from ..eval.engine.settling import has_spending, read_billed
    from ..eval.engine.settling import settle as settle_attempts

    if repair:
        print_repaired(repair_logs(path))
        if not has_spending(path):  # nothing was paid for
            return
    print_settlement(settle_attempts(path, read_billed(billed), worst, prices, lower_prices), json)
