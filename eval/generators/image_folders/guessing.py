"""What a folder holds whose images have other names than those looked for, and how to name it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePosixPath

from ....errors import DataError, UsageError
from ....images import ImageError, opened
from ...core import Case
from .known import LAYOUTS, image_of, read_layout
from .listing import ENDINGS, LayoutSource

MOST_FILES = 20_000
"""Files of a folder that are looked at."""
MOST_EXAMPLES = 200
"""Names from which templates are guessed."""
LISTS = (".jsonl", ".json", ".csv")
"""Endings of lists of prompts."""
MOST_LISTS = 20
"""Lists of a folder that are tried."""
LARGEST_LIST = 50_000_000
"""Bytes of a list that is tried."""
SHORTEST_CUT = 16
"""Characters of a prompt that are enough to know it in a name that was cut."""
NUMBERS = (r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])", r"(?<!\d)\d+(?![A-Za-z0-9])")
"""Numbers that stand alone, and those with letters before them, such as in ``seed0``."""


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


def odd_sizes(root: Path, files: Collection[str]) -> str:
    """Names the images of another size than most, where at least three of four are of one size.

    files: paths in the folder. Empty where all are of one size, or of many; clips and files that
    are no images are left out.
    """
    of_size: dict[tuple[int, int], list[str]] = {}
    for file in sorted(files):
        with suppress(ImageError), opened(root / file) as image:
            of_size.setdefault(image.size, []).append(file)
    total = sum(map(len, of_size.values()))
    most, *others = sorted(of_size, key=lambda size: -len(of_size[size])) or [(0, 0)]
    if not others or len(of_size[most]) * 4 < total * 3:
        return ""
    width, height = others[0]
    number = total - len(of_size[most])
    which = "1 image is" if number == 1 else f"{number:,} images are"
    return (
        f"{which} not {most[0]} x {most[1]} like the other {len(of_size[most]):,}, the first "
        f"{of_size[others[0]][0]} ({width} x {height}): if that is wrong, replace it"
    )


def is_numbered(root: Path, endings: Sequence[str]) -> bool:
    """Whether the names of all images differ in their numbers alone."""
    names = {re.sub(r"\d+", "0", str(image.with_suffix(""))) for image in _images(root, endings)}
    return len(names) == 1 and "0" in names.pop()


def numbered_spec(root: Path, cases: Sequence[Case]) -> tuple[str, int] | None:
    """A spec that takes the numbers of images for the lines of a list nearby, and its images.

    The list is in the folder, beside it or in the working directory. None where no list fits.
    """
    return _fullest(_with_lists(root, "numbered", cases))


def corrected_spec(
    root: Path, cases: Sequence[Case], endings: Sequence[str], fields: Sequence[str]
) -> tuple[str, int] | None:
    """A spec of `folder` that has a file for more cases than any other guess, and for how many.

    Templates are guessed from names that have a row's id, its prompt or its seed in them, layouts
    by the prompts that they or a list nearby name. None where no guess gives a file to each of
    several cases.
    """
    images = _images(root, endings)
    files = {str(image.with_suffix(image.suffix.lower())) for image in images}
    guesses: list[tuple[str, int]] = []
    for template in _templates(sorted(files), cases):
        exists = _exists_in(files, endings, template)
        named = [template_name(template, case, fields) for case in cases]
        if "{prompt" in template:
            named = [simple_name(name, endings) for name in named]
        if len(set(named)) == len(named):
            guesses.append((f"folder:{root}?template={template}", sum(map(exists, named))))
    for layout in LAYOUTS:
        if count := _count_in(layout, LayoutSource(root, None, None, ""), cases):
            guesses.append((f"folder:{root}?layout={layout}", count))
    guesses += _with_lists(root, "imagedataset", cases)
    return _fullest(guesses)


def _fullest(guesses: Iterable[tuple[str, int]]) -> tuple[str, int] | None:
    """The first of those that have a file for the most cases; None where none has any."""
    fullest = max(guesses, key=lambda guess: guess[1], default=("", 0))
    return fullest if fullest[1] else None


def _with_lists(root: Path, layout: str, cases: Sequence[Case]) -> Iterator[tuple[str, int]]:
    """Specs of a layout with each list of prompts nearby, and the number of cases with a file."""
    tried = set()
    for folder in (root, root.parent, Path()):
        lists = (path for path in folder.glob("*") if path.suffix in LISTS and path.is_file())
        for path in sorted(islice(lists, MOST_LISTS)):
            if path.resolve() in tried or path.stat().st_size > LARGEST_LIST:
                continue
            tried.add(path.resolve())
            if count := _count_in(layout, LayoutSource(root, path, None, ""), cases):
                yield f"folder:{root}?layout={layout}&prompts={path}", count


def _count_in(layout: str, source: LayoutSource, cases: Sequence[Case]) -> int:
    """Number of cases that have an image in a folder as a layout reads it; 0 where it can't."""
    with suppress(UsageError, DataError, OSError):
        images = read_layout(layout, source)
        images_of_cases = (image_of(case, images) for case in cases)
        return sum(
            image is not None and _is_there(source.root, image.file) for image in images_of_cases
        )
    return 0


def _is_there(root: Path, file: str) -> bool:
    return any((root / f"{file}{ending}").is_file() for ending in ("", *ENDINGS))


def template_name(template: str, case: Case, fields: Sequence[str]) -> str:
    """File name of a case; a prompt stays one part of it."""
    values = {name: case.number + 1 if name == "nth" else getattr(case, name) for name in fields}
    return template.format(**values | {"prompt": case.prompt.replace("/", " ")})


def _images(root: Path, endings: Sequence[str]) -> list[PurePosixPath]:
    """The images below a folder, by name."""
    files = (path for path in root.rglob("*") if path.suffix.lower() in endings)
    return sorted(
        PurePosixPath(path.relative_to(root).as_posix()) for path in islice(files, MOST_FILES)
    )


def _exists_in(files: set[str], endings: Sequence[str], template: str) -> Callable[[str], bool]:
    if "{prompt" in template:
        return {simple_name(file, endings) for file in files}.__contains__
    if PurePosixPath(template).suffix.lower() in endings:
        return files.__contains__
    return lambda name: any(name + ending in files for ending in endings)


def _templates(files: Sequence[str], cases: Sequence[Case]) -> Iterator[str]:
    """Templates that names with a row's id, prompt or seed in them may have, each once.

    Numbers count a prompt's images from 0 or from 1, with or without letters before them.
    """
    rows = {case.row for case in cases}
    prompts = {simple_name(case.prompt, ()).replace("/", " ") for case in cases}
    by_length = sorted(prompts, key=lambda prompt: (-len(prompt), prompt))
    texts = {case.prompt.replace("/", " ") for case in cases}
    variants = sorted({case.variant for case in cases}, key=len, reverse=True)
    seeds = {str(case.seed) for case in cases}
    known = set()
    for file in files[:MOST_EXAMPLES]:
        name = str(PurePosixPath(file).with_suffix("")).replace("{", "{{").replace("}", "}}")
        around = [("", name, "")]
        if row := next((row for row in rows if row in name), None):
            before, _, after = name.partition(row)
            around = [("{row}", before, after)]
        elif found := _prompt_in(name, by_length):
            around = [("{prompt}", name[: found.start()], name[found.end() :].lstrip(".!?"))]
        elif cut := _cut_prompt_in(name, texts):
            start, length = cut
            around = [
                (f"{{prompt:.{n}}}", name[:start], name[start + n :]) for n in (length, length - 1)
            ]
        elif not seeds & set(re.findall(r"\d+", name)):
            continue
        for anchor, before, after in around:
            for variant in variants if not anchor.startswith("{prompt") else ():
                pattern = rf"(?<![A-Za-z]){re.escape(variant)}(?![A-Za-z])"
                before, after = (re.sub(pattern, "{variant}", part) for part in (before, after))
                if "{variant}" in before + after:
                    break
            for pattern in NUMBERS:
                for field in ("number", "nth"):
                    head, tail = (_count_by(field, pattern, t, seeds) for t in (before, after))
                    template = f"{head}{anchor}{tail}"
                    if template not in known:
                        known.add(template)
                        yield template


def _count_by(field: str, pattern: str, text: str, seeds: Collection[str]) -> str:
    """Replaces each number of a name by the field of the seed, or by one that counts seeds."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] in seeds:
            return "{seed}"
        padded = len(match[0]) > 1 and match[0].startswith("0")
        return f"{{{field}:0{len(match[0])}}}" if padded else f"{{{field}}}"

    return re.sub(pattern, replaced, text)


def _prompt_in(name: str, prompts: Sequence[str]) -> re.Match[str] | None:
    """Finds a prompt in a file's name, whatever stands between its words."""
    words = simple_name(name, ())
    for prompt in prompts:
        if prompt and prompt in words:
            pattern = r"[^\w/{}]*_*[^\w/{}]*".join(map(re.escape, prompt.split()))
            if found := re.search(rf"(?<![^\W_]){pattern}(?![^\W_])", name, re.IGNORECASE):
                return found
    return None


def _cut_prompt_in(name: str, prompts: Collection[str]) -> tuple[int, int] | None:
    """Where a name has the first characters of a prompt, and how many, if at least `SHORTEST_CUT`.

    Characters other than letters and digits are alike.
    """
    plain = re.sub(r"[\W_]", " ", name).lower()
    longest = None
    for prompt in prompts:
        words = re.sub(r"[\W_]", " ", prompt).lower()
        start = plain.find(words[:SHORTEST_CUT])
        if start >= 0 and len(words) > SHORTEST_CUT:
            pairs = enumerate(zip(plain[start:], words, strict=False))
            length = next((n for n, (a, b) in pairs if a != b), min(len(plain) - start, len(words)))
            if longest is None or length > longest[1]:
                longest = start, length
    return longest
