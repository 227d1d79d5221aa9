"""`generate`: every picture that a suite wants, made once, or found where somebody made it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock

from ...agents.budget import PriceTable
from ...agents.threads import in_threads
from ...images import encode_png
from ...schema import Row, SeededRow
from ...storage import write_whole
from ..core import Case
from ..generators import (
    REPORT,
    Gallery,
    Generator,
    GeneratorError,
    ImageRequest,
    PaidByPicture,
    open_images,
)
from ..generators.paid import USD, PaidGenerator
from ..suites import open_suite, source_image
from .data import Rows, read_rows, sample_rows
from .manifests import write_manifest
from .run import MadeImage, Run, RunHeader

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
    concurrency: int = 8
    """Pictures under way at a time, where a server makes them."""
    max_usd: float | None = None
    """Cap on what the run's pictures may cost, resumed ones included, in US dollars."""
    prices: Path | None = None
    """The user's own price table, see `agents.budget`."""


def generate(
    settings: GenerateSettings,
    progress: Progress = lambda stage, done, total: None,
    found: Rows | None = None,
) -> Run:
    """Makes what is not made yet; a picture that failed is tried again, a refused one is not.

    `found` are the rows, where they are not to be read from `settings.data`.

    Raises RunError where the folder is of another run, ValueError for a bad spec, ReleaseError for
    bad data, BudgetError where a cap ends the run.
    """
    suite = open_suite(settings.suite)
    generator = open_images(settings.generator)
    found = found or read_rows(settings.data, settings.suite, settings.revision)
    rows = {row.id: row for row in sample_rows(found.rows, settings.limit)}
    cases = [
        replace(case, source=_source(row))
        for row in rows.values()
        for case in suite.cases(row, settings.seeds)
    ]
    header = RunHeader(
        settings.suite, settings.data, found.digest, len(rows), settings.seeds, settings.limit,
        generator.identity(),
    )  # fmt: skip
    run = Run.start(settings.out, header, cases)
    _keep_sources(run, rows.values())
    done = {image.case for image in run.images().values() if image.status in ("made", "refused")}
    waiting = [case for case in cases if case.id not in done]
    several = 1
    if isinstance(generator, PaidByPicture):
        several = settings.concurrency
        prices = PriceTable.read(settings.prices)
        generator = PaidGenerator(generator, prices, settings.max_usd, run.attempts())
    one_at_a_time = Lock()

    def make(case: Case) -> None:
        image = _make(run, generator, rows[case.row], case)
        # By who made it: what is paid is recorded, whatever ends the run meanwhile.
        with one_at_a_time:
            log.append(asdict(image))

    made = in_threads(make, waiting, several)
    with run.image_log() as log, closing(made):
        progress("images", len(cases) - len(waiting), len(cases))
        for number, _ in enumerate(made, len(cases) - len(waiting) + 1):
            progress("images", number, len(cases))
    write_manifest(run, rows)
    return run


def _source(row: Row) -> str:
    if not isinstance(row, SeededRow) or row.seed_image is None:
        return ""
    return f"sources/{row.image_sha256}.png"


def _keep_sources(run: Run, rows: Iterable[Row]) -> None:
    """The pictures to edit, for who makes the edits elsewhere, and for the report."""
    for row in rows:
        if isinstance(row, SeededRow) and row.seed_image is not None:
            path = run.root / _source(row)
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                write_whole(path, row.seed_image.bytes)


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
        return MadeImage(case.id, error.status, message=str(error), usd=error.usd)
    except (OSError, ValueError) as error:
        return MadeImage(case.id, "error", message=str(error))
    name = f"images/{case.id}.png"
    (run.root / "images").mkdir(exist_ok=True)
    write_whole(run.root / name, data)
    digest = hashlib.sha256(data).hexdigest()
    report, usd = picture.info.get(REPORT, ""), picture.info.get(USD, "")
    return MadeImage(case.id, "made", name, digest, report=report, usd=usd)
