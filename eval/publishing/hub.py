"""`hub`: images of a publication, to be judged again by somebody else.

``hub:NAMESPACE/NAME@TAG[?generator=NAME][&rows=any]``, or a folder in place of the repository. An
image is found by its case, which is row, variant and seed. The rows must be those that the images
were made for, by the config's digest; ``rows=any`` compares prompts and source images alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal, NamedTuple

from PIL.Image import Image

from ...clip_files import Clip, ClipError, read_clip
from ...errors import DataError, UsageError
from ...images import ImageError, open_image
from ...specs import Options, Spec
from ..core import Case, GeneratedText, GeneratorError, ImageRequest
from ..generators import ENCODED, REPORT
from .publication import Publication, PublishedRun, fetch_publication

PNG = b"\x89PNG\r\n\x1a\n"
_INDEXED = ["suite", "generator", "case", "prompt", "source", "status", "message", "sha256"]


class _Place(NamedTuple):
    """Where a published image lies, and what it was made for."""

    file: str
    group: int
    """Row group of the file."""
    row: int
    """In the row group."""
    prompt: str
    source: str
    status: str
    message: str
    sha256: str


class PublishedOptions(Options):
    """Options of `hub`."""

    generator: str = ""
    """Name of the generator; optional if there is only one."""
    rows: Literal["same", "any"] = "same"
    """`any` accepts other rows with the same prompts and source images."""


class PublishedImages:
    """The images of one generator in a publication; a row group at a time is in memory."""

    argument: ClassVar[str] = "NAMESPACE/NAME@TAG or FOLDER"
    options: ClassVar[type[Options]] = PublishedOptions

    def __init__(
        self, root: Path, publication: Publication, generator: str = "", any_rows: bool = False
    ) -> None:
        """generator: its name, which may be empty if there is only one.

        Raises UsageError for an unknown name, ReleaseError for an unreadable file.
        """
        generators = sorted({run.generator for run in publication.runs})
        if not generator and len(generators) == 1:
            (generator,) = generators
        if generator not in generators:
            raise UsageError(
                f"hub: name the generator with ?generator=: choose from {', '.join(generators)}",
                code="missing-option",
            )
        self.root = root
        self.publication = publication
        self.name = generator
        self.any_rows = any_rows
        self.runs = {run.suite: run for run in publication.runs if run.generator == generator}
        self._places: dict[str, _Place] = {}
        self._group: tuple[str, int] = ("", -1)
        self._images: list[Any] = []
        self._lock = Lock()
        for file in publication.of("images"):
            if any(run.name in file.runs for run in self.runs.values()):
                self._index(file.file)

    @classmethod
    def from_spec(cls, spec: Spec, options: PublishedOptions) -> PublishedImages:
        """Raises UsageError for an unknown generator, ReleaseError for anything but a
        publication."""
        root, publication = fetch_publication(spec.argument, options.generator)
        return cls(root, publication, options.generator, any_rows=options.rows == "any")

    def identity(self) -> dict[str, str]:
        """Generator of the images, and the publication's version, or its digest before a push."""
        runs = sorted(self.runs.values(), key=lambda run: run.suite)
        inner = runs[0].identity if all(run.identity == runs[0].identity for run in runs) else {}
        published = self.publication
        return {
            "kind": "hub",
            "name": self.name,
            "publication": published.address or published.made_from[:12],
            "images": " ".join(run.images_sha256[:12] for run in runs),
            "format": published.image_format + (f" {published.quality}" if published.lossy else ""),
            **({"rows": "any"} if self.any_rows else {}),
            **{f"inner_{name}": value for name, value in inner.items()},
        }

    def check_rows(self, suite: str, digest: str) -> None:
        """Raises UsageError if the images of a suite were made for other rows."""
        run = self._run(suite)
        if run.rows_sha256 != digest and not self.any_rows:
            release = run.data or " ".join(run.release.values()) or "a folder of the publisher's"
            raise UsageError(
                f"the images of {run.name} were made for rows with digest {run.rows_sha256[:12]} "
                f"(release: {release}), yours have {digest[:12]}: use that release, or say "
                f"rows=any to judge those whose prompts are the same",
                code="different-rows",
            )

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError for an image of another prompt, or if no case has an image."""
        published_cases = [case for case in cases if case.id in self._places]
        if cases and not published_cases:
            raise UsageError(
                f"none of the {len(cases):,} cases is among the published images of {self.name}, "
                f"which are of {', '.join(sorted(self.runs))}",
                code="different-rows",
            )
        for case in published_cases:
            place = self._places[case.id]
            for field_name, mine, theirs in (
                ("prompt", case.prompt, place.prompt),
                ("source image", case.source, place.source),
            ):
                if mine != theirs:
                    raise UsageError(
                        f"{case.id}: the {field_name} is {mine!r}, the published image was made "
                        f"for {theirs!r}: use the release that it was made with",
                        code="different-rows",
                    )

    def generate(self, request: ImageRequest) -> Image | Clip | GeneratedText:
        """Returns the published image, clip or text.

        Raises FileNotFoundError for a missing one, GeneratorError for a published failure, and for
        bytes that differ from the published ones.
        """
        if request.case is None:
            raise UsageError("hub: holds images and can't make any", code="cannot-generate")
        place = self._places.get(request.case.id)
        if place is None or place.status == "missing":
            raise FileNotFoundError(f"the publication has no image of {request.case.id}")
        if place.status == "refused":
            raise GeneratorError(
                place.message or "refused, as published", "refused", code="declined"
            )
        if place.status != "made":
            raise GeneratorError(
                place.message or f"{place.status}, as published", code="generator-failed"
            )
        with self._lock:
            row = self._read(place)
        if (clip := row.get("video")) is not None:
            return _clip(clip["bytes"], place.sha256)
        text: str | None = row.get("text")
        data: bytes = (row["image"] or {}).get("bytes", b"") if text is None else text.encode()
        as_judged = text is not None or self.publication.image_format == "png"
        if as_judged and hashlib.sha256(data).hexdigest() != place.sha256:
            raise GeneratorError(
                "what is published is not what its digest names", code="changed-file"
            )
        if text is not None:
            return GeneratedText(text)
        try:
            image = open_image(BytesIO(data))
        except ImageError as error:
            raise GeneratorError(f"the published image {error}", code="unreadable-image") from None
        if data.startswith(PNG):
            image.info[ENCODED] = data
        return image

    def _run(self, suite: str) -> PublishedRun:
        if suite not in self.runs:
            raise UsageError(
                f"{self.name} has no published images of {suite}: there are those of "
                f"{', '.join(sorted(self.runs))}",
                code="nothing-to-do",
            )
        return self.runs[suite]

    def _index(self, file: str) -> None:
        """Notes where each image of a file lies, without reading an image."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.root / file) as opened:
                for group in range(opened.num_row_groups):
                    rows = opened.read_row_group(group, columns=_INDEXED).to_pylist()
                    for number, row in enumerate(rows):
                        if row["generator"] == self.name:
                            columns = (row[name] for name in _INDEXED[3:])
                            self._places[row["case"]] = _Place(file, group, number, *columns)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise DataError(
                f"{self.root / file}: not a readable parquet file ({error})", code="unreadable-file"
            ) from None

    def _read(self, place: _Place) -> dict[str, Any]:
        """Returns the content of a row; the cases of a run come group by group."""
        import pyarrow.parquet as pq

        if self._group != (place.file, place.group):
            with pq.ParquetFile(self.root / place.file) as opened:
                table = opened.read_row_group(place.group, columns=["image", "video", "text"])
            self._images = table.to_pylist()
            self._group = place.file, place.group
        row: dict[str, Any] = self._images[place.row]
        return row


def _clip(data: bytes, judged: str) -> Clip:
    """A published clip; judged: SHA-256 of the file that its verdicts are of.

    Raises GeneratorError for bytes that are none.
    """
    try:
        clip = read_clip(data)
    except ClipError as error:
        raise GeneratorError(f"the published clip {error}", code="unreadable-image") from None
    if hashlib.sha256(data).hexdigest() != judged:
        note = "clips were encoded anew as MP4 when they were published"
        clip.info[REPORT] = json.dumps({"note": note})
    return clip
