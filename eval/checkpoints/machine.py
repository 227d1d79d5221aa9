"""The libraries, devices and keys of this machine."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib import metadata, util
from pathlib import Path
from typing import Any

PACKAGE = "counterprior"
FOR_DEVELOPERS = frozenset({"all", "dev"})
"""Extras that install other extras or tools."""
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
"""Variables of the environment that hold a key of a provider."""
GIB = 1024**3


@dataclass(frozen=True)
class Machine:
    """Libraries, devices and keys; nothing in it is secret."""

    version: str
    """Version of this package."""
    python: str
    """Version of the interpreter, e.g. `3.11.7`."""
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
        return {extra: libraries for extra, libraries in lacking.items() if libraries}


def examine_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Lists what is installed, the devices, and the keys that are set. Imports torch."""
    return Machine(
        version=metadata.version(PACKAGE),
        python=platform.python_version(),
        extras=_extras(metadata.requires(PACKAGE) or []),
        devices=_devices() if util.find_spec("torch") else [],
        keys={name: bool(environment.get(name)) for name in KEYS} | {"Hugging Face": _hub_token()},
    )


def provenance(files: Mapping[str, Path]) -> dict[str, Any]:
    """How a result came about: time, command line, versions of the installed libraries, platform,
    and the digests of the files that it was made of. Imports nothing heavy.

    files: name of an input -> its path.
    """
    required = (re.match(r"[\w.-]+", text) for text in metadata.requires(PACKAGE) or [])
    versions = {name[0]: _version(name[0]) for name in required if name}
    libraries = {name: version for name, version in versions.items() if version is not None}
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "counterprior": metadata.version(PACKAGE),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": dict(sorted(libraries.items())),
        "files": {
            name: {"file": path.name, "sha256": sha256(path.read_bytes()).hexdigest()}
            for name, path in files.items()
        },
    }


def _extras(requirements: list[str]) -> dict[str, dict[str, str | None]]:
    """`requirements`: as metadata has them, e.g. ``spacy<3.9,>=3.8; extra == "corpus"``."""
    versions_by_extra: dict[str, dict[str, str | None]] = {}
    for text in requirements:
        extra = re.search(r"extra == [\"']([\w-]+)[\"']", text)
        name = re.match(r"[\w.-]+", text)
        if extra and name and extra[1] not in FOR_DEVELOPERS:
            versions_by_extra.setdefault(extra[1], {})[name[0]] = _version(name[0])
    return versions_by_extra


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> list[str]:
    import torch

    devices = []
    for number in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(number)
        devices.append(f"cuda:{number} {properties.name}, {properties.total_memory / GIB:.0f} GiB")
    if torch.backends.mps.is_available():
        devices.append("mps")
    return [*devices, f"cpu, {os.cpu_count()} cores"]


def _hub_token() -> bool:
    from huggingface_hub import get_token

    return bool(get_token())
