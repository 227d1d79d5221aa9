"""`generate`: every picture that a suite wants, made once, or found where somebody made it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..schema import Row
from .cases import Case
from .data import Rows, read_rows, sample_rows
from .generators import (
    REPORT,
    Gallery,
    Generator,
    GeneratorError,
    ImageRequest,
    encode_png,
    open_images,
)
from .runs import MadeImage, Run, RunHeader, write_atomically
from .suites import open_suite, source_image

Progress = Callable[[str, int, int], None]
"""Told stage, done and total."""


@dataclass(frozen=True)
class GenerateSettings:
    """What to generate."""

    suite: str
    """Config."""
    generator: str
    """Spec."""
    data: str
    """Release folder or repository."""
    out: Path
    """Folder of the run."""
    revision: str | None = None
    """Tag or commit of the repository."""
    seeds: int = 1
    """Pictures of each prompt, 1 to 4."""
    limit: int | None = None
    """Rows to sample; None for all."""


def generate(
    settings: GenerateSettings,
    progress: Progress = lambda stage, done, total: None,
    found: Rows | None = None,
) -> Run:
    """Makes what is not made yet; a picture that failed is tried again, a refused one is not.

    `found` are the rows, where they are not to be read from `settings.data`.

    Raises RunError where the folder is of another run, ValueError for a bad spec, ReleaseError for
    bad data.
    """
    suite = open_suite(settings.suite)
    generator = open_images(settings.generator)
    found = found or read_rows(settings.data, settings.suite, settings.revision)
    rows = {row.id: row for row in sample_rows(found.rows, settings.limit)}
    cases = [case for row in rows.values() for case in suite.cases(row, settings.seeds)]
    header = RunHeader(
        settings.suite, settings.data, found.digest, len(rows), settings.seeds, settings.limit,
        generator.identity(),
    )  # fmt: skip
    run = Run.start(settings.out, header, cases)
    done = {image.case for image in run.images().values() if image.status in ("made", "refused")}
    waiting = [case for case in cases if case.id not in done]
    with run.image_log() as log:
        for number, case in enumerate(waiting):
            progress("images", len(cases) - len(waiting) + number, len(cases))
            image = _make(run, generator, rows[case.row], case)
            log.append({name: getattr(image, name) for name in MadeImage.__dataclass_fields__})
    progress("images", len(cases), len(cases))
    return run


def _make(run: Run, generator: Generator | Gallery, row: Row, case: Case) -> MadeImage:
    try:
        if isinstance(generator, Gallery):
            path = generator.find(case)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return MadeImage(case.id, "made", str(path.resolve()), digest)
        request = ImageRequest(case.prompt, case.seed, source_image(row))
        picture = generator.generate(request)
        data = encode_png(picture)
    except FileNotFoundError as error:
        return MadeImage(case.id, "missing", message=str(error))
    except GeneratorError as error:
        return MadeImage(case.id, error.status, message=str(error))
    except (OSError, ValueError) as error:
        return MadeImage(case.id, "error", message=str(error))
    name = f"images/{case.id}.png"
    (run.root / "images").mkdir(exist_ok=True)
    write_atomically(run.root / name, data)
    report = picture.info.get(REPORT, "")
    return MadeImage(case.id, "made", name, hashlib.sha256(data).hexdigest(), report=report)
