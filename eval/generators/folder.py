"""`folder`: pictures that somebody made already, found by a name template or a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Formatter

from ...specs import Spec
from ...tables import read_rows
from ..core import Case
from . import Gallery

ENDINGS = (".png", ".jpg", ".jpeg", ".webp")
"""Tried in this order where the template has none."""
FIELDS = ("id", "row", "variant", "seed", "number")
TEMPLATE = "{row}-{variant}-{seed}"


class PictureFolder(Gallery):
    """A folder of pictures."""

    def __init__(
        self, root: Path, template: str = TEMPLATE, manifest: Mapping[str, str] | None = None
    ) -> None:
        """template: file name with the fields of `FIELDS`; manifest: case id -> file, instead.

        Raises ValueError for a folder that isn't there or a template with unknown fields.
        """
        if not root.is_dir():
            raise ValueError(f"folder: {root} is no folder")
        unknown = {name for _, name, _, _ in Formatter().parse(template) if name} - set(FIELDS)
        if unknown:
            raise ValueError(
                f"folder: template {template!r} has unknown fields {sorted(unknown)}: "
                f"choose from {', '.join(FIELDS)}"
            )
        self.root = root
        self.template = template
        self.manifest = manifest

    @classmethod
    def from_spec(cls, spec: Spec) -> PictureFolder:
        """From ``folder:DIR?template={row}_{number}.png`` or ``folder:DIR?manifest=FILE``."""
        unknown = set(spec.options) - {"template", "manifest", "name"}
        if unknown or not spec.argument:
            raise ValueError("folder: write folder:DIR?template=NAME or folder:DIR?manifest=FILE")
        manifest = spec.options.get("manifest")
        folder = cls(
            Path(spec.argument),
            spec.options.get("template", TEMPLATE),
            read_manifest(Path(manifest)) if manifest else None,
        )
        folder.name = spec.options.get("name", folder.root.resolve().name)
        return folder

    name = ""

    def identity(self) -> dict[str, str]:
        """Kind and name: `?name=` says whose pictures they are."""
        return {"kind": "folder", "name": self.name or self.root.resolve().name}

    def find(self, case: Case) -> Path:
        if self.manifest is not None:
            if case.id not in self.manifest:
                raise FileNotFoundError(f"the manifest has no {case.id}")
            return self._inside(self.manifest[case.id])
        number = case.number
        name = self.template.format(
            id=case.id, row=case.row, variant=case.variant, seed=case.seed, number=number
        )
        names = [name] if Path(name).suffix.lower() in ENDINGS else [name + e for e in ENDINGS]
        for candidate in names:
            try:
                return self._inside(candidate)
            except FileNotFoundError:
                continue
        raise FileNotFoundError(f"{self.root} has no {names[0]}")

    def _inside(self, name: str) -> Path:
        """The file, which must lie in the folder, also after links are followed."""
        path = self.root / name
        try:
            resolved = path.resolve(strict=True)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{self.root} has no {name}") from None
        except (OSError, RuntimeError):
            raise ValueError(f"{name}: a loop of links") from None
        if not resolved.is_relative_to(self.root.resolve()):
            raise ValueError(f"{name} lies outside {self.root}")
        if not resolved.is_file():
            raise ValueError(f"{name} is no file")
        return path


def read_manifest(path: Path) -> dict[str, str]:
    """Case id -> file, from a CSV, JSON or JSONL with the columns `case` and `file`.

    Raises ValueError naming file and line for a missing column or a case that stands twice.
    """
    found: dict[str, str] = {}
    for number, row in read_rows(path):
        case, file = row.get("case"), row.get("file")
        if not isinstance(case, str) or not isinstance(file, str) or not case or not file:
            raise ValueError(f"{path}:{number}: needs `case` and `file`")
        if case in found:
            raise ValueError(f"{path}:{number}: {case} stands twice")
        found[case] = file
    return found
