"""What a folder holds whose images have other names than those looked for, and how to name it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
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


def simple_name(file: str, endings: Sequence[str]) -> str:
    """A path without its ending, of which only letters and digits count, in any case.

    So a prompt is found in a name in which spaces and full stops became something else.

    >>> simple_name("One_Cat and one dog./0.png", [".png"])
    'one cat and one dog/0'
    """
    for ending in endings:
        if file.lower().endswith(ending):
            file = file[: -len(ending)]
            break
    parts = file.casefold().split("/")
    return "/".join(" ".join(re.findall(r"[^\W_]+", part)) for part in parts)


def stray_note(root: Path, used: Collection[str], missing: str, endings: Sequence[str]) -> str:
    """Returns how many images are of no case, and which of them is named most like a missing one.

    used: paths of images that a case has, lowercase ending and all. Empty where there are none.
    """
    stray = [str(file) for file in _images(root, endings) if str(file) not in used]
    if not stray:
        return ""
    (nearest, *_) = get_close_matches(missing, stray, n=1, cutoff=0.6) or stray
    count = "1 image is" if len(stray) == 1 else f"{len(stray):,} images are"
    return f"; {count} of no case: if {nearest} is that one, rename it"


def is_numbered(root: Path, endings: Sequence[str]) -> bool:
    """Whether the names of all images differ in their numbers alone."""
    names = {re.sub(r"\d+", "0", str(image.with_suffix(""))) for image in _images(root, endings)}
    return len(names) == 1 and "0" in names.pop()


def corrected_spec(
    root: Path, cases: Sequence[Case], endings: Sequence[str], fields: Sequence[str]
) -> tuple[str, int] | None:
    """A spec of `folder` that has a file for more cases than any other guess, and for how many.

    Templates are guessed from names that have a row's id, its prompt or its seed in them, layouts
    by the prompts that they list. None where no guess gives a file to each of several cases.
    """
    images = _images(root, endings)
    files = {str(image.with_suffix(image.suffix.lower())) for image in images}
    guesses: list[tuple[int, str]] = []
    for template in _templates(sorted(files), cases):
        exists = _exists_in(files, endings, template)
        named = [template_name(template, case, fields) for case in cases]
        if "{prompt}" in template:
            named = [simple_name(name, endings) for name in named]
        if len(set(named)) == len(named):
            guesses.append((sum(map(exists, named)), f"folder:{root}?template={template}"))
    for layout in LAYOUTS:
        with suppress(UsageError, DataError, OSError):
            listed = read_layout(layout, LayoutSource(root, None, None, ""))
            count = sum(case.number < len(listed.get(case.prompt.strip(), ())) for case in cases)
            guesses.append((count, f"folder:{root}?layout={layout}"))
    count, spec = max(guesses, default=(0, ""))
    return (spec, count) if count else None


def template_name(template: str, case: Case, fields: Sequence[str]) -> str:
    """File name of a case; a prompt stays one part of it."""
    values = {name: getattr(case, name) for name in fields}
    return template.format(**values | {"prompt": case.prompt.replace("/", " ")})


def _images(root: Path, endings: Sequence[str]) -> list[PurePosixPath]:
    """The images below a folder, by name."""
    files = (path for path in root.rglob("*") if path.suffix.lower() in endings)
    return sorted(
        PurePosixPath(path.relative_to(root).as_posix()) for path in islice(files, MOST_FILES)
    )


def _exists_in(files: set[str], endings: Sequence[str], template: str) -> Callable[[str], bool]:
    if "{prompt}" in template:
        return {simple_name(file, endings) for file in files}.__contains__
    if PurePosixPath(template).suffix.lower() in endings:
        return files.__contains__
    return lambda name: any(name + ending in files for ending in endings)


def _templates(files: Sequence[str], cases: Sequence[Case]) -> Iterator[str]:
    """Templates that names with a row's id, prompt or seed in them may have, each once."""
    rows = {case.row for case in cases}
    prompts = {simple_name(case.prompt, ()).replace("/", " ") for case in cases}
    by_length = sorted(prompts, key=lambda prompt: (-len(prompt), prompt))
    variants = sorted({case.variant for case in cases}, key=len, reverse=True)
    seeds = {str(case.seed) for case in cases}
    known = set()

    def numbered(match: re.Match[str]) -> str:
        if match[0] in seeds:
            return "{seed}"
        padded = len(match[0]) > 1 and match[0].startswith("0")
        return f"{{number:0{len(match[0])}}}" if padded else "{number}"

    for file in files[:MOST_EXAMPLES]:
        name = str(PurePosixPath(file).with_suffix("")).replace("{", "{{").replace("}", "}}")
        anchor, before, after = "", name, ""
        if row := next((row for row in rows if row in name), None):
            anchor = "{row}"
            before, _, after = name.partition(row)
        elif found := _prompt_in(name, by_length):
            anchor = "{prompt}"
            before, after = name[: found.start()], name[found.end() :]
        elif not seeds & set(re.findall(r"\d+", name)):
            continue
        for variant in variants if anchor != "{prompt}" else ():
            pattern = rf"(?<![A-Za-z]){re.escape(variant)}(?![A-Za-z])"
            before, after = (re.sub(pattern, "{variant}", part) for part in (before, after))
            if "{variant}" in before + after:
                break
        pattern = r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])"
        before, after = (re.sub(pattern, numbered, part) for part in (before, after))
        template = f"{before}{anchor}{after}"
        if template not in known:
            known.add(template)
            yield template


def _prompt_in(name: str, prompts: Sequence[str]) -> re.Match[str] | None:
    """Finds a prompt in a file's name, whatever stands between its words."""
    words = simple_name(name, ())
    for prompt in prompts:
        if prompt and prompt in words:
            pattern = r"[^\w/{}]*_*[^\w/{}]*".join(map(re.escape, prompt.split()))
            if found := re.search(rf"(?<![^\W_]){pattern}(?![^\W_])", name, re.IGNORECASE):
                return found
    return None
