"""What a folder holds whose images have other names than those looked for, and how to name it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

from ....errors import DataError, UsageError
from ...core import Case
from .known import LAYOUTS, read_layout
from .listing import LayoutSource

MOST_FILES = 20_000
"""Files of a folder that are looked at."""
MOST_EXAMPLES = 200
"""Names from which templates are guessed."""


def describe_folder(root: Path, endings: Sequence[str]) -> str:
    """How many images a folder and its subfolders hold, of which endings, and the first three."""
    files = _images(root, endings)
    if not files:
        return "it holds no image"
    kinds = Counter(file.suffix for file in files)
    named = ", ".join(f"{count:,} {ending}" for ending, count in kinds.most_common(4))
    inside = sum(len(file.parts) > 1 for file in files)
    where = f", {inside:,} of them in subfolders" if inside else ""
    examples = ", ".join(map(str, files[:3])) + (", ..." if len(files) > 3 else "")
    return f"it holds {len(files):,} images ({named}{where}): {examples}"


def corrected_spec(
    root: Path, cases: Sequence[Case], endings: Sequence[str], fields: Sequence[str]
) -> tuple[str, int] | None:
    """A spec of `folder` that has a file for more cases than any other guess, and for how many.

    Templates are guessed from names that have a row's id in them, layouts by the prompts that they
    list. None where no guess gives a file to each of several cases.
    """
    images = _images(root, endings)
    files = {str(image.with_suffix(image.suffix.lower())) for image in images}
    guesses: list[tuple[int, str]] = []
    for template in _templates(sorted(files), cases):
        exists = _exists_in(files, endings, template)
        named = [template.format(**{n: getattr(case, n) for n in fields}) for case in cases]
        if len(set(named)) == len(named):
            guesses.append((sum(map(exists, named)), f"folder:{root}?template={template}"))
    for layout in LAYOUTS:
        with suppress(UsageError, DataError, OSError):
            listed = read_layout(layout, LayoutSource(root, None, None, ""))
            count = sum(case.number < len(listed.get(case.prompt.strip(), ())) for case in cases)
            guesses.append((count, f"folder:{root}?layout={layout}"))
    count, spec = max(guesses, default=(0, ""))
    return (spec, count) if count else None


def _images(root: Path, endings: Sequence[str]) -> list[PurePosixPath]:
    """The images below a folder, by name."""
    files = (path for path in root.rglob("*") if path.suffix.lower() in endings)
    return sorted(
        PurePosixPath(path.relative_to(root).as_posix()) for path in islice(files, MOST_FILES)
    )


def _exists_in(files: set[str], endings: Sequence[str], template: str) -> Callable[[str], bool]:
    if PurePosixPath(template).suffix.lower() in endings:
        return files.__contains__
    return lambda name: any(name + ending in files for ending in endings)


def _templates(files: Sequence[str], cases: Sequence[Case]) -> Iterator[str]:
    """Templates that names with the id of a row in them may have, each once."""
    rows = {case.row: case for case in cases}
    variants = sorted({case.variant for case in cases}, key=len, reverse=True)
    seeds = {str(case.seed) for case in cases}
    known = set()
    for file in files[:MOST_EXAMPLES]:
        name = str(PurePosixPath(file).with_suffix(""))
        row = next((row for row in rows if row in name), None)
        if row is None:
            continue
        template = name.replace("{", "{{").replace("}", "}}").replace(row, "{row}")
        before, _, after = template.partition("{row}")
        for variant in variants:
            pattern = rf"(?<![A-Za-z]){re.escape(variant)}(?![A-Za-z])"
            before, after = (re.sub(pattern, "{variant}", part) for part in (before, after))
            if "{variant}" in before + after:
                break

        def numbered(match: re.Match[str]) -> str:
            if match[0] in seeds:
                return "{seed}"
            padded = len(match[0]) > 1 and match[0].startswith("0")
            return f"{{number:0{len(match[0])}}}" if padded else "{number}"

        pattern = r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])"
        before, after = (re.sub(pattern, numbered, part) for part in (before, after))
        template = f"{before}{{row}}{after}"
        if template not in known:
            known.add(template)
            yield template
