"""Names of runs: short, unique, and fit for files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def short_names(roots: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the runs apart, also as file names."""
    longest = max(len(root.parts) for root in roots)
    for length in range(1, longest + 1):
        names = ["/".join(root.parts[-length:]).strip("/") for root in roots]
        if len({slugify(name) for name in names}) == len(names):
            return names
    # Names that differ in signs only: a number tells them apart.
    return [f"{root.name} ({number})" for number, root in enumerate(roots, 1)]


def slugify(name: str) -> str:
    """A name as part of a file name, in lower case so that no file system merges two.

    >>> slugify("runs/SDXL base 1.0")
    'runs-sdxl-base-1.0'
    """
    return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.") or "run"
