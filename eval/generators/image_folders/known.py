"""How other benchmarks lay out their images in a folder: which file shows which prompt.

One function a layout, one line in `LAYOUTS` each. Images are matched by the text of their prompt,
as the folder itself or the list of prompts beside it says it, and by counting only where the list
is named (`numbered`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....errors import DataError, UsageError
from ....parsing import read_json, read_rows
from ....specs import choose_from
from ...core import Case
from ...questions.benchmark_files import whatsup_captions
from .listing import ENDINGS, ImagePlace, LayoutSource, Listed

PROMPTS = ("prompt", "Prompt", "text", "caption", "prompt_en", "prompt_cn")
"""Columns of a prompt, the first that is there."""
FILES = ("file_name", "file", "filename", "image_path", "image", "path")
"""Columns of an image's path, the first that is there."""


def geneval(source: LayoutSource) -> Listed:
    """GenEval: ``00000/metadata.jsonl`` with the prompt, ``00000/samples/0000.png``."""
    for metadata in sorted(source.root.glob("*/metadata.jsonl")):
        _, row = next(read_rows(metadata), (1, {}))
        prompt = _text(row, metadata, 1, PROMPTS)
        samples = (metadata.parent / "samples").glob("*")
        images = [path for path in samples if path.stem.isdigit() and path.suffix in ENDINGS]
        for path in sorted(images, key=lambda path: int(path.stem)):
            yield prompt, ImagePlace(path.relative_to(source.root).as_posix())


def geneval2(source: LayoutSource) -> Listed:
    """GenEval 2: one JSON object, prompt -> path."""
    path = source.listed("the JSON of prompts and paths", "*.json")
    for prompt, file in _object(path).items():
        if not isinstance(file, str):
            raise DataError(f"{path}, {prompt!r}: its path must be a text", code="wrong-type")
        yield prompt, ImagePlace(file)


def wise(source: LayoutSource) -> Listed:
    """WISE: ``ID.png``, and a JSON of `prompt_id` and `Prompt`."""
    path = source.listed("WISE's JSON of prompts", "*.json")
    for number, row in read_rows(path):
        name = _text(row, path, number, ("prompt_id", "id"))
        yield _text(row, path, number, PROMPTS), ImagePlace(name)


def tiif(source: LayoutSource) -> Listed:
    """TIIF-Bench: ``DIMENSION/MODEL/short_description/0.png``, numbered as in its JSONL."""
    path = source.listed("TIIF's JSONL of prompts (or their folder)", "*.jsonl")
    lengths = ("short_description", "long_description")
    model = source.of_model("*/{}/*_description")
    counts: dict[str, int] = {}
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        for number, row in read_rows(file):
            dimension = _text(row, file, number, ("type",))
            index = counts[dimension] = counts.get(dimension, -1) + 1
            for length in lengths:
                if (folder := source.root / dimension / model / length).is_dir():
                    prompt = _text(row, file, number, (length,))
                    name = (folder / str(index)).relative_to(source.root).as_posix()
                    yield prompt, ImagePlace(name)


def t2icompbench(source: LayoutSource) -> Listed:
    """T2I-CompBench: ``PROMPT_000000.png``, in the folder or in its ``samples``."""
    folder = source.root / "samples"
    numbered = []
    for path in (folder if folder.is_dir() else source.root).iterdir():
        prompt, _, number = path.stem.rpartition("_")
        if number.isdigit() and prompt and path.suffix.lower() in ENDINGS:
            numbered.append((prompt, int(number), path.relative_to(source.root).as_posix()))
    for prompt, _, file in sorted(numbered):
        yield prompt, ImagePlace(file)


ONEIG = {
    "anime_stylization": "anime",
    "general_object": "object",
    "knowledge_reasoning": "reasoning",
    "multilingualism": "multilingualism",
    "portrait": "human",
    "text_rendering": "text",
}
"""Category in OneIG's list -> folder."""


def oneig(source: LayoutSource) -> Listed:
    """OneIG-Bench: ``CATEGORY/MODEL/ID.webp``, each one image or a grid of four."""
    if source.grid is None:
        problem = "folder: say with grid=1 or grid=2 whether each file is one image or four"
        raise UsageError(problem, code="missing-option")
    path = source.listed("OneIG's CSV of prompts", "*.csv")
    model = source.of_model("*/{}/*.*")
    for number, row in read_rows(path):
        category = _text(row, path, number, ("category",)).lower().replace(" & ", "_")
        folder = ONEIG.get(category.replace(" ", "_"), category)
        name = f"{folder}/{model}/{_text(row, path, number, ('id',))}"
        yield from _cells(_text(row, path, number, PROMPTS), name, source.grid)


def dpg_grid(source: LayoutSource) -> Listed:
    """DPG-Bench: ``ID.png``, a grid of 2 x 2 seeds, and ``prompts/ID.txt``."""
    if source.prompts is None:
        problem = "folder: name DPG's folder of prompts with prompts="
        raise UsageError(problem, code="missing-option")
    for name, prompt in sorted(_texts(source.prompts).items()):
        yield from _cells(prompt, name, source.grid or 2)


def evalscope(source: LayoutSource) -> Listed:
    """evalscope: JSONL of `id`, `prompt` and `image_path`."""
    path = source.listed("evalscope's JSONL", "*.jsonl")
    for number, row in read_rows(path):
        file = _text(row, path, number, ("image_path",))
        yield _text(row, path, number, PROMPTS), ImagePlace(file)


def imagedataset(source: LayoutSource) -> Listed:
    """A Hugging Face dataset of images: an imagefolder with metadata, or parquet files.

    A prompt's images are told apart by `seed` where there is such a column, else by their order.
    With ``prompts``, this table lists the images, with paths from its own folder or the images'.
    """
    metadata = [*source.root.rglob("metadata.jsonl")]
    listed = {path.parent for path in metadata}  # of two tables of a folder, one counts
    metadata += [p for p in source.root.rglob("metadata.csv") if p.parent not in listed]
    tables = [] if source.prompts else sorted(source.root.rglob("*.parquet"))
    metadata = [source.prompts] if source.prompts else metadata
    if not tables and not metadata:
        problem = f"folder: {source.root} holds neither parquet files nor metadata.jsonl"
        raise UsageError(problem, code="unknown-format")
    for path in tables:
        import pyarrow.parquet as pq

        present = pq.read_schema(path).names
        columns = [name for name in (*PROMPTS, "seed") if name in present]
        if "image" not in present:
            raise DataError(f"{path}: has no column `image`", code="missing-column")
        for number, row in enumerate(pq.read_table(path, columns=columns).to_pylist()):
            prompt = _text(row, path, number + 1, PROMPTS)
            file = path.relative_to(source.root).as_posix()
            yield prompt, ImagePlace(file, row=number, seed=_seed(row))
    for path in sorted(metadata):
        for number, row in read_rows(path):
            file = _text(row, path, number, FILES)
            beside = os.path.relpath(path.parent / file, source.root)
            if source.prompts and not (source.root / beside).is_file():
                beside = file
            image = ImagePlace(Path(beside).as_posix(), seed=_seed(row))
            yield _text(row, path, number, PROMPTS), image


def numbered(source: LayoutSource) -> Listed:
    """Images numbered as the lines of a list: ``0001.png``, or ``00001/0.png`` by prompt and seed,
    or ``0/00001.png`` by seed and prompt.

    The list is that of `counterprior prompts`, or any with `prompt` and, if it has them, `seed`.
    Raises DataError for numbers that are not those of its lines.
    """
    if source.prompts is None:
        problem = "folder: name the list of prompts whose lines the numbers are with prompts="
        raise UsageError(problem, code="missing-option")
    lines = [(_text(row, source.prompts, n, PROMPTS), row) for n, row in read_rows(source.prompts)]
    by_prompt: dict[str, list[int]] = {}
    for place, (prompt, _) in enumerate(lines):
        by_prompt.setdefault(prompt, []).append(place)
    files: list[tuple[list[int], str]] = []
    for path in sorted(source.root.rglob("*")):
        if path.suffix.lower() in ENDINGS:
            file = path.relative_to(source.root).as_posix()
            files.append((list(map(int, re.findall(r"\d+", file.removesuffix(path.suffix)))), file))
    if len({len(numbers) for numbers, _ in files}) > 1:
        raise DataError(
            f"{source.root}: some names have more numbers in them than others", code="bad-entry"
        )
    # A number that all names share, such as that of a model, counts nothing.
    columns = [set(column) for column in zip(*(numbers for numbers, _ in files), strict=True)]
    counting = [place for place, values in enumerate(columns) if len(values) > 1]
    if not counting and columns:
        counting = [0]
    if len(counting) not in (1, 2):
        return
    if len(counting) == 1:
        groups = [[place] for place in range(len(lines))]
    else:
        groups = list(by_prompt.values())
        if _is_by_seed([columns[place] for place in counting], groups):
            counting.reverse()
    first = _first_number(columns[counting[0]], len(groups), source)
    second = min(columns[counting[1]]) if len(counting) == 2 else 0
    counts_seeds = len(counting) == 2 and not any("seed" in row for _, row in lines)
    placed = []
    for numbers, file in files:
        group = groups[numbers[counting[0]] - first]
        nth = numbers[counting[1]] - second if len(counting) == 2 else 0
        if nth < len(group):
            placed.append((group[nth], 0, file))
        elif counts_seeds:  # a list that names each prompt once, whatever its number of images
            placed.append((group[-1], nth, file))
    for place, _, file in sorted(placed):
        prompt, row = lines[place]
        yield prompt, ImagePlace(file, seed=_seed(row))


def _is_by_seed(columns: Sequence[Collection[int]], groups: Sequence[Sequence[int]]) -> bool:
    """Whether of two numbers the first is the seed's and the second the prompt's: ``0/0007.png``.

    They are the prompt's and the seed's unless the second alone goes through all prompts.
    """

    def goes_through(numbers: Collection[int]) -> bool:
        return len(numbers) == len(groups) == max(numbers) - min(numbers) + 1

    return goes_through(columns[1]) and not goes_through(columns[0])


def _first_number(numbers: Collection[int], lines: int, source: LayoutSource) -> int:
    """Whether numbers count from 0 or from 1. Raises DataError where that can't be said."""
    if 0 in numbers and max(numbers) < lines:
        return 0
    if 0 not in numbers and max(numbers) == lines:
        return 1
    problem = (
        f"{source.root}: has the numbers {min(numbers):,} to {max(numbers):,}, and "
        f"{source.prompts} lists {lines:,}: numbers must be 0 to {lines - 1:,} or 1 to {lines:,}; "
        f"name the list from which the images were drawn"
    )
    raise DataError(problem, code="different-rows")


def whatsup(source: LayoutSource) -> Listed:
    """What'sUp: photos, and a JSON of their names and captions, of which the first is right.

    Where the folder has no such path as the list says, the photo's name alone is looked for.
    """
    for image, caption in whatsup_captions(source.listed("What'sUp's JSON of captions", "*.json")):
        there = (source.root / image).is_file()
        yield caption, ImagePlace(image if there else Path(image).name)


LAYOUTS: Mapping[str, Callable[[LayoutSource], Listed]] = {
    "dpg-grid": dpg_grid,
    "evalscope": evalscope,
    "geneval": geneval,
    "geneval2": geneval2,
    "imagedataset": imagedataset,
    "numbered": numbered,
    "oneig": oneig,
    "t2icompbench": t2icompbench,
    "tiif": tiif,
    "whatsup": whatsup,
    "wise": wise,
}
"""Name -> what lists a folder's prompts and images."""


def read_layout(name: str, source: LayoutSource) -> dict[str, list[ImagePlace]]:
    """Returns prompt -> its images, in the order of their seeds.

    Raises UsageError for an unknown layout, a missing option, and a folder without images in the
    layout; DataError for an unreadable list.
    """
    if name not in LAYOUTS:
        raise UsageError(
            f"folder: no layout {name!r}", choose_from(name, LAYOUTS), code="unknown-name"
        )
    images: dict[str, list[ImagePlace]] = {}
    for prompt, image in LAYOUTS[name](source):
        images.setdefault(prompt.strip(), []).append(image)
    if not images:
        problem = f"folder: {source.root} holds no images in the layout {name}"
        raise UsageError(problem, code="nothing-to-do")
    return images


def image_of(case: Case, images: Mapping[str, Sequence[ImagePlace]]) -> ImagePlace | None:
    """A case's image: that of its prompt and seed where a layout records seeds, else by number."""
    of_prompt = images.get(case.prompt.strip(), ())
    if any(image.seed is not None for image in of_prompt):
        return next((image for image in of_prompt if image.seed == case.seed), None)
    return of_prompt[case.number] if case.number < len(of_prompt) else None


def _text(row: Mapping[str, Any], path: Path, number: int, columns: tuple[str, ...]) -> str:
    for name in columns:
        value = row.get(name)
        if isinstance(value, str | int) and value != "":
            return str(value)
    raise DataError(f"{path}:{number}: needs `{columns[0]}`", code="missing-field")


def _seed(row: Mapping[str, Any]) -> int | None:
    value = row.get("seed")
    return int(value) if isinstance(value, int | str) and str(value).isdigit() else None


def _object(path: Path) -> Mapping[str, Any]:
    prompts = read_json(path)
    if not isinstance(prompts, dict):
        raise DataError(f"{path}: is not a JSON object of prompts", code="wrong-type")
    return prompts


def _texts(path: Path) -> Mapping[str, str]:
    """Id -> prompt, of a folder of text files or a table with `id` and `prompt`."""
    if path.is_dir():
        return {file.stem: file.read_text("utf-8").strip() for file in path.glob("*.txt")}
    return {_text(r, path, n, ("id",)): _text(r, path, n, PROMPTS) for n, r in read_rows(path)}


def _cells(prompt: str, name: str, side: int) -> Listed:
    for cell in range(side * side):
        yield prompt, ImagePlace(name, (cell, side) if side > 1 else None)
