"""Names of runs: short, unique, and fit for files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core import describe


def short_names(roots: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the runs apart, also as file names."""
    longest = max(len(root.parts) for root in roots)
    for length in range(1, longest + 1):
        candidates = ["/".join(root.parts[-length:]).strip("/") for root in roots]
        if len({slugify(name) for name in candidates}) == len(candidates):
            return candidates
    # Names that differ only in punctuation: a number tells them apart.
    return [f"{root.name} ({number})" for number, root in enumerate(roots, 1)]


def slugify(name: str) -> str:
    """A name as part of a file name, in lower case so that no file system merges two.

    >>> slugify("runs/SDXL base 1.0")
    'runs-sdxl-base-1.0'
    """
    return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.") or "run"


def brief(name: str, suite: str) -> str:
    """A run's name on the page of its suite, without the suite's folder.

    >>> brief("t2i_correctness/flux", "t2i_correctness")
    'flux'
    """
    return name.removeprefix(f"{suite}/")


def short_judges(
    identities: Mapping[str, Mapping[str, str]], own_names: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Name of a judge -> short name of its model, or its kind; the full name where two are alike.

    own_names: description of a judge -> its name in the study's file, which is taken instead.

    >>> short_judges({"hf-vlm:Qwen/Qwen3-VL-8B": {"kind": "hf-vlm", "model": "Qwen/Qwen3-VL-8B"}})
    {'hf-vlm:Qwen/Qwen3-VL-8B': 'Qwen3-VL-8B'}
    """
    short = {}
    for name, identity in identities.items():
        code = identity.get("name", "") if identity["kind"] == "python" else ""
        model = identity.get("model") or code or identity["kind"]
        plain = re.fullmatch(r"[\w./@:+-]+", model)
        of_model = model.rstrip("/").rpartition("/")[2] if plain else name
        short[name] = (own_names or {}).get(describe(identity), of_model)
    counts = Counter(short.values())
    return {name: text if counts[text] == 1 else name for name, text in short.items()}
