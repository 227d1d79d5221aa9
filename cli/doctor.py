"""The command that shows what this machine can run."""

from __future__ import annotations

from typing import Annotated

from .options import Json, Model
from .show_doctor import print_machine

Generators = Annotated[
    list[str] | None, Model("--generator", help="Spec to try: diffusers:MODEL, ...; repeatable.")
]
JudgeSpecs = Annotated[
    list[str] | None, Model("--judge", help="Spec to try: openai:MODEL, ...; repeatable.")
]


def doctor(generator: Generators = None, judge: JudgeSpecs = None, json: Json = False) -> None:
    """Show what is installed, which devices and keys are available, and which specs would open.

    No weights are downloaded, nothing is made or asked, and no key is printed. Exits with 1 if a
    spec that you name can't be opened.

    Example: `counterprior doctor --generator diffusers:MODEL --judge openai:MODEL`
    """
    from ..eval.checkpoints.machine import examine_machine
    from ..eval.studies.doctor import try_specs

    print_machine(examine_machine(), try_specs(generator or [], judge or []), json)
