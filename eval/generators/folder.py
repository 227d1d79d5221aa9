"""`folder`: existing images and clips, by name, manifest or a known layout.

``folder:DIR[?template={row}-{variant}-{seed}|manifest=FILE|layout=geneval][&name=WHOSE]``. That
template is the default; its fields are `row`, `variant`, `seed`, `number` (which of the row's
seeds, from 0), `nth` (the same from 1), `id` (all of the default) and `prompt` (only letters and
digits are compared; `{prompt:.50}` is its first 50 characters). A name without an ending is tried
with .png, .jpg, .jpeg and .webp, then with .mp4, .webm and .gif, then with these in capitals. For
layouts of other benchmarks see `image_folders`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import Annotated, ClassVar

from PIL.Image import Image
from pydantic import Field

from ...errors import DataError, UsageError
from ...images import open_image
from ...parsing import read_rows
from ...specs import Options, Spec, choose_from
from ..core import Case, ImageRequest
from .image_folders.guessing import (
    corrected_spec,
    describe_folder,
    is_numbered,
    numbered_spec,
    odd_sizes,
    simple_name,
    stray_note,
    template_name,
)
from .image_folders.known import image_of, read_layout
from .image_folders.listing import ENDINGS, ImagePlace, LayoutSource

FIELDS = ("id", "row", "variant", "seed", "number", "nth", "prompt")
NAMED = (*ENDINGS, ".mp4", ".webm", ".gif")
"""Endings of images and clips."""
TEMPLATE = "{row}-{variant}-{seed}"


class FolderOptions(Options):
    """Options of `folder`."""

    template: str = TEMPLATE
    """File name of a case, with the fields row, variant, seed, number, nth, id and prompt."""
    manifest: Path | None = None
    """Table with the columns `case` and `file`, instead of a template."""
    layout: str = ""
    """Naming scheme of another benchmark, instead of a template."""
    name: str = ""
    """Name of the model that made the images; by default that of the folder."""
    prompts: Path | None = None
    """With a layout: list of the prompts by id, or folder of text files."""
    grid: Annotated[int, Field(ge=1, le=2)] | None = None
    """With a layout: number of images along a side of each file."""
    model: str = ""
    """With a layout: the model whose images are read, if the folder has several models."""
    revision: str | None = None
    """With the layout `imagedataset`: branch, tag or commit of the Hub."""


class ImageFolder:
    """A folder of images."""

    argument: ClassVar[str] = "FOLDER"
    options: ClassVar[type[Options]] = FolderOptions

    def __init__(
        self,
        root: Path,
        template: str = TEMPLATE,
        manifest: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        """template: file name with the fields of `FIELDS`; manifest: case id -> file, instead.

        Raises UsageError for a missing folder or a template with unknown fields.
        """
        if not root.is_dir():
            raise UsageError(f"folder: {root} is not a folder", code="no-such-file")
        try:
            named = {n for _, n, _, _ in Formatter().parse(template) if n is not None}
        except ValueError as error:
            raise UsageError(f"folder: template {template!r}: {error}", code="bad-spec") from None
        if unknown := named - set(FIELDS):
            raise UsageError(
                f"folder: template {template!r} has unknown fields {sorted(unknown)}",
                choose_from(min(unknown), FIELDS),
                code="unknown-name",
            )
        self.root = root
        self.template = template
        self.manifest = manifest
        self.name = name or root.resolve().name

    @classmethod
    def from_spec(cls, spec: Spec, options: FolderOptions) -> ImageFolder:
        """Raises UsageError for options that exclude each other, DataError for a bad manifest."""
        if len(spec.options.keys() & {"template", "manifest", "layout"}) > 1:
            problem = "folder: template, manifest and layout exclude each other"
            raise UsageError(problem, "choose one", code="conflicting-options")
        if options.layout:
            return LaidOutFolder.from_spec(spec, options)
        if stray := sorted(spec.options.keys() & {"prompts", "grid", "model", "revision"}):
            problem = f"folder: {stray[0]} needs a layout"
            raise UsageError(problem, "add layout=", code="missing-option")
        files = read_manifest(options.manifest) if options.manifest else None
        return cls(Path(spec.argument), options.template, files, options.name)

    def identity(self) -> dict[str, str]:
        """Kind, and name of the model that made the images."""
        return {"kind": "folder", "name": self.name}

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError if two cases share a file, or the manifest has unknown cases.

        Warns of cases without a file: they are `missing`.
        """
        if unknown := sorted((self.manifest or {}).keys() - {case.id for case in cases}):
            raise UsageError(
                f"the manifest has {len(unknown):,} unknown cases, the first {unknown[0]!r}: "
                f"`counterprior prompts` writes the cases of a suite",
                code="unknown-reference",
            )
        first: dict[str, Case] = {}
        without, used = [], set()
        for case in cases:
            file = self.file_of(case)
            path = None if file is None else self._existing(file)
            if path is None:
                without.append(case)
            else:
                used.add(path)
            if file is not None and (first_case := first.setdefault(str(file), case)) is not case:
                raise UsageError(
                    f"one image can't serve two cases: {file} would be of {first_case.id} "
                    f"({first_case.prompt!r}) and of {case.id} ({case.prompt!r}); name them apart, "
                    f"e.g. template={TEMPLATE}",
                    code="ambiguous-file",
                )
        if without:
            logging.getLogger(__name__).warning(
                "%s: %s of %s cases have no file, the first %s (%r)%s",
                self.root,
                f"{len(without):,}",
                f"{len(cases):,}",
                without[0].id,
                without[0].prompt,
                self._advice(without[0], cases, used),
            )
        if note := odd_sizes(self.root, used):
            logging.getLogger(__name__).warning("%s: %s", self.root, note)

    def _advice(self, case: Case, cases: Sequence[Case], used: Collection[str]) -> str:
        """What the folder holds instead of a missing case, and how to name these files."""
        file = self.file_of(case)
        if file is None or isinstance(file, ImagePlace):
            return ""
        names = self._names(file)
        if used:
            return f"; looked for {names[0]}{stray_note(self.root, used, names[0], NAMED)}"
        looked_for = f"{names[0]}, or with {', '.join(NAMED[1:])}" if names[1:] else names[0]
        text = f"; looked for {looked_for}; {describe_folder(self.root, NAMED)}"
        if guess := corrected_spec(self.root, cases, NAMED, FIELDS):
            spec, count = guess
            return f"{text}; use --generator '{spec}', which has {count:,} of {len(cases):,}"
        if is_numbered(self.root, NAMED):
            if guess := numbered_spec(self.root, cases):
                spec, count = guess
                listed = spec.partition("&prompts=")[2]
                return (
                    f"{text}; if the numbers are those of the lines of {listed}, use --generator "
                    f"'{spec}', which has {count:,} of {len(cases):,}"
                )
            return (
                f"{text}; if the numbers are those of the lines of a list that `counterprior "
                f"prompts` wrote, use --generator "
                f"'folder:{self.root}?layout=numbered&prompts=prompts.jsonl'; if you have the list "
                f"no more, `counterprior prompts --out prompts.jsonl` with the same --suite, "
                f"--limit and --seeds writes it again"
            )
        return (
            f"{text}; name them by a template of {', '.join(f'{{{n}}}' for n in FIELDS)}, e.g. "
            f"'folder:{self.root}?template={TEMPLATE}', or list them in a CSV with the columns "
            f"case and file, 'folder:{self.root}?manifest=FILE': `counterprior prompts` lists the "
            f"ids of the cases"
        )

    def file_of(self, case: Case) -> str | ImagePlace | None:
        """File name of a case in the folder; None if the manifest lacks it."""
        if self.manifest is not None:
            return self.manifest.get(case.id)
        name = template_name(self.template, case, FIELDS)
        return self._named_alike(name) if "{prompt" in self.template else name

    def _named_alike(self, name: str) -> str:
        """The file whose name has the same letters and digits; the name itself if there is none."""
        simple = simple_name(name, NAMED)
        files = self._by_simple_name.get(simple, [])
        if len({str(Path(file).with_suffix("")) for file in files}) > 1:
            raise UsageError(
                f"{self.root}: {files[0]} and {files[1]} are both named by {simple!r}: keep one",
                code="ambiguous-file",
            )
        return files[0] if files else simple

    @cached_property
    def _by_simple_name(self) -> dict[str, list[str]]:
        files: dict[str, list[str]] = {}
        for ending in NAMED:
            for path in sorted(self.root.rglob("*")):
                if path.suffix.lower() == ending:
                    file = path.relative_to(self.root).as_posix()
                    files.setdefault(simple_name(file, NAMED), []).append(file)
        return files

    def generate(self, request: ImageRequest) -> Path | Image:
        """Returns the file. Raises FileNotFoundError if it is missing, ValueError if it is outside
        the folder."""
        if request.case is None:
            raise UsageError("folder: holds images and can't make any", code="cannot-generate")
        name = self.file_of(request.case)
        if name is None:
            raise FileNotFoundError(f"the manifest has no {request.case.id}")
        return self._find(str(name))

    def _names(self, name: str) -> list[str]:
        is_complete = self.manifest is not None or Path(name).suffix.lower() in NAMED
        if is_complete:
            return [name]
        return [name + ending for ending in (*NAMED, *map(str.upper, NAMED))]

    def _existing(self, file: str | ImagePlace) -> str | None:
        """Path in the folder of a file that is there, else None."""
        name = file.file if isinstance(file, ImagePlace) else file
        candidates = self._names(name)
        return next((name for name in candidates if (self.root / name).is_file()), None)

    def _find(self, name: str) -> Path:
        candidates = self._names(name)
        for candidate in candidates:
            path = self.root / candidate
            try:
                resolved = path.resolve(strict=True)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, RuntimeError):
                raise ValueError(f"{candidate}: a loop of links") from None
            # Also after links are followed.
            if not resolved.is_relative_to(self.root.resolve()):
                raise ValueError(f"{candidate} lies outside {self.root}")
            if not resolved.is_file():
                raise ValueError(f"{candidate} is not a file")
            return path
        raise FileNotFoundError(f"{self.root} has no {candidates[0]}")


class LaidOutFolder(ImageFolder):
    """A folder as another benchmark lays it out; cases find their images by prompt."""

    def __init__(self, source: LayoutSource, layout: str, name: str = "", commit: str = "") -> None:
        """Raises UsageError for a missing folder, and as `read_layout`."""
        super().__init__(source.root, name=name)
        self._layout = layout
        self._commit = commit
        try:
            self._images = read_layout(layout, source)
        except UsageError as error:
            if error.code != "nothing-to-do":
                raise
            raise UsageError(
                f"{error}; {describe_folder(self.root, NAMED)}",
                f"--generator 'folder:{self.root}' tells which spec reads these",
                code=error.code,
            ) from None

    @classmethod
    def from_spec(cls, spec: Spec, options: FolderOptions) -> LaidOutFolder:
        root, commit = Path(spec.argument), ""
        if not root.is_dir() and options.layout == "imagedataset":
            root, commit = _downloaded(spec.argument, options.revision)
        elif options.revision is not None:
            raise UsageError(f"folder: {root} is a folder and has no revision", code="no-revision")
        if not root.is_dir():
            raise UsageError(f"folder: {root} is not a folder", code="no-such-file")
        if options.prompts is not None and not options.prompts.exists():
            raise UsageError(f"folder: {options.prompts}: no such file", code="no-such-file")
        source = LayoutSource(root, options.prompts, options.grid, options.model)
        name = options.name or (spec.argument if commit else "")
        return cls(source, options.layout, name=name, commit=commit)

    def identity(self) -> dict[str, str]:
        identity = {**super().identity(), "layout": self._layout}
        return {**identity, "revision": self._commit} if self._commit else identity

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError if no case's prompt is in the folder, and as for every folder."""
        if cases and not any(case.prompt.strip() in self._images for case in cases):
            there = next(iter(self._images))
            raise UsageError(
                f"{self.root} has no image of this suite: its first prompt is {there!r}, the "
                f"suite's is {cases[0].prompt!r}",
                code="different-rows",
            )
        super().check(cases)

    def file_of(self, case: Case) -> ImagePlace | None:
        """Finds the image by prompt, and by seed if the layout records it, else by seed number."""
        return image_of(case, self._images)

    def _advice(self, case: Case, cases: Sequence[Case], used: Collection[str]) -> str:
        if (file := self.file_of(case)) is not None:
            return f"; looked for {self._names(file.file)[0]}"
        count = len(self._images.get(case.prompt.strip(), ()))
        return f"; images of this prompt: {count:,}, prompts with images: {len(self._images):,}"

    def generate(self, request: ImageRequest) -> Path | Image:
        """Returns the file, or the image from a grid or a parquet file.

        Raises FileNotFoundError if there is none, ValueError for a file outside the folder and a
        grid that can't be cut.
        """
        if request.case is None:
            raise UsageError("folder: holds images and can't make any", code="cannot-generate")
        location = self.file_of(request.case)
        if location is None:
            number = f"image {request.case.number + 1}"
            raise FileNotFoundError(f"{self.root} has no {number} of {request.case.prompt!r}")
        path = self._find(location.file)
        if location.row is not None:
            return self._from_table(path, location.row)
        return path if location.cell is None else cut_cell(open_image(path), *location.cell)

    def _names(self, name: str) -> list[str]:
        is_whole = Path(name).suffix.lower() in (*ENDINGS, ".parquet")
        return [name] if is_whole else [name + ending for ending in ENDINGS]

    def _from_table(self, path: Path, row: int) -> Image:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if row < count:
                table = file.read_row_group(group, columns=["image"])
                value = table["image"][row].as_py()
                data = value.get("bytes") if isinstance(value, dict) else value
                if not isinstance(data, bytes):
                    raise ValueError(f"{path.name} holds no bytes of an image")
                return open_image(BytesIO(data))
            row -= count
        raise ValueError(f"{path.name} has no such row")


def cut_cell(image: Image, cell: int, side: int) -> Image:
    """Cuts one cell of a square grid, by rows from 0. Raises ValueError for sides that don't
    divide."""
    width, height = image.size
    if width % side or height % side:
        raise ValueError(f"the image is {width} x {height}, not a grid of {side} x {side}")
    wide, high = width // side, height // side
    x, y = cell % side * wide, cell // side * high
    return image.crop((x, y, x + wide, y + high))


def _downloaded(repo: str, revision: str | None) -> tuple[Path, str]:
    import huggingface_hub

    try:
        path = huggingface_hub.snapshot_download(repo, repo_type="dataset", revision=revision)
    except (OSError, ValueError) as error:
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"folder: {repo} is neither a folder nor readable on the Hub: {message}",
            code="no-such-file",
        ) from None
    return Path(path), Path(path).name


def read_manifest(path: Path) -> dict[str, str]:
    """Reads case id -> file from a CSV, JSON or JSONL with the columns `case` and `file`.

    Raises DataError naming file and line for a missing column or a case that occurs twice.
    """
    files: dict[str, str] = {}
    for number, row in read_rows(path):
        case, file = row.get("case"), row.get("file")
        if not isinstance(case, str) or not isinstance(file, str) or not case or not file:
            raise DataError(f"{path}:{number}: needs `case` and `file`", code="missing-field")
        if case in files:
            raise DataError(f"{path}:{number}: {case} occurs twice", code="duplicate-id")
        files[case] = file
    return files
