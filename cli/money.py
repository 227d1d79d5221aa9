"""The command that settles attempts of unknown cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from .options import Cost, Json, Prices
from .show_money import print_settlement


def settle(
    path: Annotated[Path, Argument(help="Folder of a run, study or race, or an author's ledger.")],
    billed: Annotated[
        str | None, Cost(help="Their total cost on the provider's bill, in US dollars.")
    ] = None,
    worst: Annotated[bool, Cost("--worst", help="Settle them at their worst case.")] = False,
    prices: Prices = None,
    json: Json = False,
) -> None:
    """List attempts that may have been billed without an answer, and settle what they cost.

    Example: `counterprior settle runs/demo --billed 0.12`
    """
    from ..eval.engine.settling import read_billed
    from ..eval.engine.settling import settle as settle_attempts

    print_settlement(settle_attempts(path, read_billed(billed), worst, prices), json)
