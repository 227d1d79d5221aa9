"""Images of `best-of` that other runs of a study have drawn already.

The first candidates of every number of seeds, and of every judge that chooses, are the same images,
and the very first is the image without the method: 16 images make the best of 1, 2, 4, 8 and 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...images import ImageError
from ..core import CaseGenerator
from ..engine.run import Run, recorded_bytes
from ..methods.candidates import EarlierImages, Searching, drawn_candidate
from .folder import Study
from .spec import Cell


def reuse_candidates(study: Study, cell: Cell, generator: CaseGenerator) -> None:
    """Lets a generator with `best-of` take the images that other runs of the same generator and
    suite have drawn; any other generator stays as it is."""
    if not isinstance(generator, Searching):
        return
    inner, model = cell.methods[:-1], _without_method(generator.inner.identity())
    plain: Run | None = None
    searched: list[Path] = []
    for other in {c.folder: c for c in study.cells}.values():
        if (other.suite, other.spec) != (cell.suite, cell.spec) or other.folder == cell.folder:
            continue
        run = None if other.start else study.run_of(other)
        if run is None or _without_method(run.header.generator) != model:
            continue
        if other.methods == inner:
            plain = run
        elif other.methods[:-1] == inner:
            searched.append(run.root)  # without candidates if its last method is another
    generator.earlier = _images_of(plain, searched)


def _without_method(identity: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in identity.items() if name != "method"}


def _images_of(plain: Run | None, searched: list[Path]) -> EarlierImages:
    candidates = [drawn_candidate(root) for root in searched]

    def image_of(case: str, number: int) -> bytes | None:
        image = plain.images().get(case) if plain is not None and number == 0 else None
        is_picture = image is not None and image.status == "made" and not image.frames
        if plain is not None and image is not None and is_picture and not image.is_text:
            with suppress(ImageError):  # replaced or gone: drawn again
                return recorded_bytes(plain.root, image)
        return next((data for find in candidates if (data := find(case, number))), None)

    return image_of
