"""What this machine can run: libraries by extra, devices, and keys that are set."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata, util

PACKAGE = "counterprior"
FOR_DEVELOPERS = frozenset({"all", "dev"})
"""Extras that are no library's own."""
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
"""Variables of the environment that hold a key of a provider."""
GIB = 1024**3


@dataclass(frozen=True)
class Machine:
    """What was found; nothing in it is secret."""

    version: str
    """Of this package."""
    python: str
    """Of the interpreter, e.g. `3.11.7`."""
    extras: dict[str, dict[str, str | None]]
    """Extra -> library -> its version, None where it is not installed."""
    devices: list[str]
    """Devices that torch can use, e.g. `cuda:0 NVIDIA H200, 139 GiB`; empty without torch."""
    keys: dict[str, bool]
    """Source of a key -> whether there is one. The key itself is never read further."""

    @property
    def missing(self) -> dict[str, list[str]]:
        """Extra -> its libraries that are not installed."""
        lacking = {
            extra: [name for name, version in libraries.items() if version is None]
            for extra, libraries in self.extras.items()
        }
        return {extra: names for extra, names in lacking.items() if names}


def examine_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """What is installed, which devices there are, and which keys are set. Imports torch."""
    return Machine(
        version=metadata.version(PACKAGE),
        python=platform.python_version(),
        extras=_extras(metadata.requires(PACKAGE) or []),
        devices=_devices() if util.find_spec("torch") else [],
        keys={name: bool(environment.get(name)) for name in KEYS} | {"Hugging Face": _hub_token()},
    )


def _extras(requirements: list[str]) -> dict[str, dict[str, str | None]]:
    """`requirements`: as metadata has them, e.g. ``spacy<3.9,>=3.8; extra == "corpus"``."""
    found: dict[str, dict[str, str | None]] = {}
    for text in requirements:
        extra = re.search(r"extra == [\"']([\w-]+)[\"']", text)
        name = re.match(r"[\w.-]+", text)
        if extra and name and extra[1] not in FOR_DEVELOPERS:
            found.setdefault(extra[1], {})[name[0]] = _version(name[0])
    return found


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> list[str]:
    import torch

    found = []
    for number in range(torch.cuda.device_count()):
        told = torch.cuda.get_device_properties(number)
        found.append(f"cuda:{number} {told.name}, {told.total_memory / GIB:.0f} GiB")
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, f"cpu, {os.cpu_count()} cores"]


def _hub_token() -> bool:
    from huggingface_hub import get_token

    return bool(get_token())
