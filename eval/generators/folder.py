"""`folder`: images that somebody made already, found by a name template or a manifest.

``folder:DIR[?template={row}-{variant}-{seed}|manifest=FILE][&name=WHOSE]``. That template is the
default; its fields are `row`, `variant`, `seed`, `number` (which of the row's seeds, from 0) and
`id` (all of the default). A name without an ending is tried with .png, .jpg, .jpeg and .webp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter

from ...errors import DataError, UsageError
from ...specs import Spec
from ...tables import read_rows
from ..core import Case, ImageRequest

ENDINGS = (".png", ".jpg", ".jpeg", ".webp")
"""Tried in this order where the template has none."""
FIELDS = ("id", "row", "variant", "seed", "number")
TEMPLATE = "{row}-{variant}-{seed}"


class ImageFolder:
    """A folder of images."""

    def __init__(
        self,
        root: Path,
        template: str = TEMPLATE,
        manifest: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        """template: file name with the fields of `FIELDS`; manifest: case id -> file, instead.

        Raises UsageError for a folder that isn't there or a template with unknown fields.
        """
        if not root.is_dir():
            raise UsageError(f"folder: {root} is no folder")
        try:
            named = {n for _, n, _, _ in Formatter().parse(template) if n is not None}
        except ValueError as error:
            raise UsageError(f"folder: template {template!r}: {error}") from None
        if unknown := named - set(FIELDS):
            raise UsageError(
                f"folder: template {template!r} has unknown fields {sorted(unknown)}: "
                f"choose from {', '.join(FIELDS)}"
            )
        self.root = root
        self.template = template
        self.manifest = manifest
        self.name = name or root.resolve().name

    @classmethod
    def from_spec(cls, spec: Spec) -> ImageFolder:
        """Raises UsageError for a wrong option, DataError for a bad manifest."""
        options = dict(spec.options)
        manifest = options.pop("manifest", "")
        if options.keys() - {"template", "name"} or not spec.argument:
            raise UsageError("folder: write folder:DIR?template=NAME or folder:DIR?manifest=FILE")
        files = read_manifest(Path(manifest)) if manifest else None
        return cls(Path(spec.argument), manifest=files, **options)

    def identity(self) -> dict[str, str]:
        """Kind and name: `?name=` says whose images they are."""
        return {"kind": "folder", "name": self.name}

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError where two cases get one file, or the manifest has unknown cases."""
        if unknown := sorted((self.manifest or {}).keys() - {case.id for case in cases}):
            raise UsageError(
                f"the manifest has {len(unknown):,} unknown cases, the first {unknown[0]!r}: "
                f"`counterprior prompts` writes the cases of a suite"
            )
        first: dict[str, Case] = {}
        for case in cases:
            file = self.file_of(case)
            if file is not None and (other := first.setdefault(file, case)) is not case:
                raise UsageError(
                    f"one image can't be of two cases: {file} would be of {other.id} "
                    f"({other.prompt!r}) and of {case.id} ({case.prompt!r}); name them apart, e.g. "
                    f"template={TEMPLATE}"
                )

    def file_of(self, case: Case) -> str | None:
        """The file name of a case; None where the manifest has none."""
        if self.manifest is not None:
            return self.manifest.get(case.id)
        return self.template.format(**{name: getattr(case, name) for name in FIELDS})

    def generate(self, request: ImageRequest) -> Path:
        """The file. Raises FileNotFoundError where there is none, ValueError for one outside."""
        if request.case is None:
            raise UsageError("folder: holds images and can't make any")
        name = self.file_of(request.case)
        if name is None:
            raise FileNotFoundError(f"the manifest has no {request.case.id}")
        whole = self.manifest is not None or Path(name).suffix.lower() in ENDINGS
        names = [name] if whole else [name + ending for ending in ENDINGS]
        for candidate in names:
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
                raise ValueError(f"{candidate} is no file")
            return path
        raise FileNotFoundError(f"{self.root} has no {names[0]}")


def read_manifest(path: Path) -> dict[str, str]:
    """Case id -> file, from a CSV, JSON or JSONL with the columns `case` and `file`.

    Raises DataError naming file and line for a missing column or a case that stands twice.
    """
    found: dict[str, str] = {}
    for number, row in read_rows(path):
        case, file = row.get("case"), row.get("file")
        if not isinstance(case, str) or not isinstance(file, str) or not case or not file:
            raise DataError(f"{path}:{number}: needs `case` and `file`")
        if case in found:
            raise DataError(f"{path}:{number}: {case} stands twice")
        found[case] = file
    return found
