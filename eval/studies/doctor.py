"""Whether specs can be opened on this machine, before anything is made or asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...agents.budget import Budget, PriceTable
from ...errors import CounterpriorError
from ..generators import open_generator
from ..judges import CallPlan, open_judge


def try_specs(generators: Sequence[str], judges: Sequence[str]) -> dict[str, str | None]:
    """Spec -> why it can't be opened here, in one line, or None where it can.

    No weights are downloaded or loaded. The Hub is asked which revision of a repository is newest.
    """
    problems = {spec: _why_not(open_generator, spec) for spec in generators}
    with TemporaryDirectory() as ledgers:
        plan = CallPlan(Path(ledgers), Budget(PriceTable({}), Decimal(0)))
        problems |= {spec: _why_not(open_judge, spec, plan) for spec in judges}
    return problems


def _why_not(opening: Callable[..., Any], *arguments: object) -> str | None:
    try:
        opening(*arguments)
    except (CounterpriorError, OSError) as error:
        return " ".join(str(error).split())
    return None
