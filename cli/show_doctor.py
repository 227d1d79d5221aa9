"""Prints what a machine can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..extras import install_command
from .console import WRONG, print_json

if TYPE_CHECKING:
    from ..eval.checkpoints.machine import Machine


def print_machine(machine: Machine, tried: Mapping[str, str | None], as_json: bool) -> None:
    """Prints one fact a line, or JSON. Exits with 1 if a spec can't be opened.

    tried: spec -> why it can't be opened, or None.
    """
    if as_json:
        print_json({**asdict(machine), "specs": dict(tried)})
    else:
        print(f"counterprior {machine.version}, Python {machine.python}")
        for extra, libraries in machine.extras.items():
            versions = ", ".join(
                f"{name} {version or 'missing'}" for name, version in libraries.items()
            )
            remedy = f"; {install_command(extra)}" if extra in machine.missing else ""
            print(f"{extra + ':':<13}{versions}{remedy}")
        print(f"{'devices:':<13}{'; '.join(machine.devices) or 'unknown without torch'}")
        for name, there in machine.keys.items():
            print(f"{'key:':<13}{name} {'is set' if there else 'is not set'}")
        for spec, fault in tried.items():
            print(f"{'spec:':<13}{spec} {'opens' if fault is None else 'does not open: ' + fault}")
    if any(tried.values()):
        raise SystemExit(WRONG)
