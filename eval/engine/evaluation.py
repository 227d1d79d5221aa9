"""The one flow: case, image, questions, verdicts, records; what is there is never made again.

A generator on a suite in a run folder. Everything that makes or judges images (`eval`, races, the
self-test) is a loop around `make` and `ask`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from threading import Lock as ThreadLock
from typing import Any, Self

from PIL import Image

from ...agents.threads import in_threads
from ...errors import UsageError
from ...images import FORMATS, ImageError, encode_png, open_image
from ...progress import Progress, silent
from ...schema import Row, SeededRow
from ...storage import Lock, write_whole
from ...tables import write_rows
from ..core import (
    Case,
    Generator,
    GeneratorError,
    ImageRequest,
    Judge,
    Outcome,
    Question,
    probes_of,
)
from ..generators import ENCODED, REPORT, Checked, MadeForRows
from ..generators.paid import USD
from ..suites import open_suite
from ..suites.base import Suite
from .data import Rows, read_rows, row_fields, sample_rows
from .run import LOCK, MadeImage, Run, RunError, RunHeader, stamp_of
from .verdicts import OpenQuestion, Tally, VerdictLog

MANIFEST = "manifest.jsonl"
_BLANK = Image.new("RGB", (1, 1))


@dataclass(frozen=True)
class RunSettings:
    """What a run is of."""

    suite: str
    """Config."""
    data: str
    """Release folder or repository."""
    out: Path
    """Folder of the run."""
    revision: str | None = None
    """Tag or commit of the repository."""
    seeds: int = 1
    """Images of each prompt, 1 to 4."""
    limit: int | None = None
    """Rows to sample; None for all."""


@dataclass
class Evaluation:
    """An open run: holds its folder until it is closed."""

    run: Run
    """The folder."""
    suite: Suite[Any]
    """What is evaluated."""
    rows: Mapping[str, Row]
    """By id."""
    cases: Sequence[Case]
    """In the order of the config."""
    lock: Lock
    """Keeps other processes out."""

    @classmethod
    def start(
        cls, settings: RunSettings, generator: Mapping[str, str], found: Rows | None = None
    ) -> Evaluation:
        """A new run of a generator with this identity, or the one that is there.

        `found` are the rows, where they are not to be read from `settings.data`. Raises RunError
        for a folder of another run, InUseError for one that another process writes.
        """
        suite = open_suite(settings.suite)
        found = found or read_rows(settings.data, settings.suite, settings.revision)
        rows = {r.id: r for r in sample_rows(found.rows, settings.limit, suite.together)}
        cases = [
            replace(case, source=_source_name(row), fields=fields)
            for row in rows.values()
            for fields in [row_fields(row)]  # one for all of its cases
            for case in suite.cases(row, settings.seeds)
        ]
        header = RunHeader(
            suite=settings.suite,
            data=settings.data,
            rows_sha256=found.digest,
            rows=len(rows),
            seeds=settings.seeds,
            limit=settings.limit,
            generator=dict(generator),
        )
        lock = Lock(settings.out / LOCK, f"the run {settings.out}")
        try:
            evaluation = cls(Run.start(settings.out, header, cases), suite, rows, cases, lock)
            evaluation._keep_sources()
        except BaseException:
            lock.release()
            raise
        return evaluation

    @classmethod
    def open(cls, root: Path, revision: str | None = None, found: Rows | None = None) -> Evaluation:
        """A run that is there, to be judged. Raises RunError unless its images are all there, and
        where its release has other rows by now."""
        run = Run.open(root)
        run.check_complete()
        header = run.header
        suite = open_suite(header.suite)
        found = found or read_rows(header.data, header.suite, revision)
        if found.digest != header.rows_sha256:
            raise RunError(
                f"{header.data}, {header.suite}: the rows are not those that {root} was started "
                f"with; judge it with the release of that time"
            )
        rows = {r.id: r for r in sample_rows(found.rows, header.limit, suite.together)}
        evaluation = cls(run, suite, rows, run.cases(), run.lock())
        evaluation._look_again()
        return evaluation

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    def check_sources(self) -> None:
        """Raises RunError where a row to edit has no seed image."""
        for row in self.rows.values():
            if isinstance(row, SeededRow) and row.seed_image is None:
                raise RunError(
                    f"{self.run.header.data}, {self.run.header.suite}: row {row.id} has no seed "
                    f"image; use a release that was built with them"
                )

    def check_generator(self, generator: Generator) -> None:
        """Raises UsageError where a generator can't tell two cases apart, or has others."""
        if isinstance(generator, MadeForRows):
            generator.check_rows(self.run.header.suite, self.run.header.rows_sha256)
        if isinstance(generator, Checked):
            generator.check(self.cases)

    def make(
        self,
        generator: Generator,
        cases: Sequence[Case] | None = None,
        concurrency: int = 1,
        progress: Progress = silent,
    ) -> None:
        """Makes what is not made yet; an image that failed is tried again, a refused one is not.

        Files elsewhere are looked at again: a replaced one is a new image. Raises BudgetError where
        a cap ends the run.
        """
        cases = self.cases if cases is None else cases
        waiting = [case for case in cases if not self._is_settled(case)]
        one_at_a_time = ThreadLock()

        def make_one(case: Case) -> None:
            image = self._made(generator, case)
            # By who made it: what is paid is recorded, whatever ends the run meanwhile.
            with one_at_a_time:
                if image != self.run.images().get(case.id):
                    self.run.add(log, image)

        done = len(cases) - len(waiting)
        with (
            self.run.image_log() as log,
            closing(in_threads(make_one, waiting, concurrency)) as made,
        ):
            progress("images", done, len(cases))
            for number, _ in enumerate(made, done + 1):
                progress("images", number, len(cases))

    def ask(
        self,
        judge: Judge,
        controls: Iterable[str] = (),
        persona: str = "standard",
        cases: Sequence[Case] | None = None,
        progress: Progress = silent,
    ) -> tuple[VerdictLog, Tally]:
        """Asks what has no verdict yet and records each verdict as it comes.

        A verdict is known by question, image and judge: an image that was made anew is judged anew,
        and no question is asked twice. Failures of the judge itself (`error`) are asked again.
        """
        probes = probes_of(controls)
        suite = open_suite(self.suite.name, persona)
        log = self.run.judge({**judge.identity(), "persona": persona})
        cases = self.cases if cases is None else cases
        tally = Tally()

        def open_questions() -> Iterator[OpenQuestion]:
            """What has no verdict yet, the images of one case in memory at a time."""
            for number, case in enumerate(cases):
                progress("verdicts", number, len(cases))
                image = self.run.images().get(case.id)
                if image is None or image.status != "made":
                    continue
                # What is asked does not depend on the pixels, so only what is needed is decoded.
                planned = _questions(suite, self.rows[case.row], case, [_BLANK] * 2, probes)
                if any(log.needs(OpenQuestion(q, image.sha256)) for q in planned):
                    yield from self._open_questions(
                        suite, log, case=case, image=image, probes=probes, tally=tally
                    )
                else:
                    tally.known += len(planned)

        for _ in log.ask(judge, open_questions(), tally):
            pass
        progress("verdicts", len(cases), len(cases))
        return log, tally

    def write_manifest(self) -> None:
        """Lists every image of a suite that `detect` and `audit` can read, missing ones too."""
        entries = []
        for case in self.cases:
            about = self.suite.manifest(self.rows[case.row], case)
            if about is not None:
                image = self.run.images().get(case.id)
                file = (image.file if image else "") or f"images/{case.file}"
                entries.append({"sample_id": case.id, "file": file, "prompt": case.prompt, **about})
        if entries:
            write_rows(self.run.root / MANIFEST, entries)

    def _open_questions(
        self,
        suite: Suite[Any],
        log: VerdictLog,
        case: Case,
        image: MadeImage,
        probes: Sequence[str],
        tally: Tally,
    ) -> Iterator[OpenQuestion]:
        row = self.rows[case.row]
        try:
            opened = open_image(self.run.image_path(image))
        except ImageError as error:  # it was an image when it was made
            with self.run.image_log() as images_log:
                self.run.add(images_log, MadeImage(case.id, "error", message=f"the image {error}"))
            return
        source = source_image(row)
        images = (opened,) if source is None else (source, opened)
        for question in _questions(suite, row, case, images, probes):
            asked = OpenQuestion(question, image.sha256)
            if log.needs(asked):
                yield asked
            else:
                tally.known += 1

    def _is_settled(self, case: Case) -> bool:
        image = self.run.images().get(case.id)
        if image is None or image.stamp is not None:
            return False
        if image.status == "made":
            return self.run.image_path(image).exists()
        return image.status == "refused"

    def _made(self, generator: Generator, case: Case) -> MadeImage:
        """What becomes of a case's image. Raises only what ends the run."""
        request = ImageRequest(case.prompt, case.seed, source_image(self.rows[case.row]), case)
        try:
            made = generator.generate(request)
            if isinstance(made, Path):
                return self._found(case, made)
            data = made.info.get(ENCODED) or encode_png(made)
        except FileNotFoundError as error:
            return MadeImage(case.id, "missing", message=str(error))
        except GeneratorError as error:
            return MadeImage(case.id, error.status, message=str(error), usd=error.usd)
        except (OSError, ValueError) as error:
            return MadeImage(case.id, "error", message=str(error))
        name = f"images/{case.file}"
        write_whole(self.run.root / name, data)
        return MadeImage(
            case=case.id,
            status="made",
            file=name,
            sha256=hashlib.sha256(data).hexdigest(),
            report=made.info.get(REPORT, ""),
            usd=made.info.get(USD, ""),
        )

    def _found(self, case: Case, path: Path) -> MadeImage:
        """A file elsewhere, decoded unless its bytes are known to be an image."""
        stamp = stamp_of(path)
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        known = self.run.images().get(case.id)
        if known is None or known.status != "made" or known.sha256 != digest:
            try:
                open_image(BytesIO(data))
            except ImageError as error:
                raise ImageError(f"{path} {error}") from None
        return MadeImage(case.id, "made", str(path.resolve()), digest, stamp=stamp)

    def _look_again(self) -> None:
        """Hashes files elsewhere again: a replaced one is a new image."""
        with self.run.image_log() as log:
            for case in self.cases:
                image = self.run.images()[case.id]
                if image.status == "made" and image.stamp is not None:
                    try:
                        now = self._found(case, self.run.image_path(image))
                    except FileNotFoundError as error:
                        now = MadeImage(case.id, "missing", message=str(error))
                    except (OSError, ValueError) as error:
                        now = MadeImage(case.id, "error", message=str(error))
                    if now != image:
                        self.run.add(log, now)

    def _keep_sources(self) -> None:
        """The images to edit, for who makes the edits elsewhere, and for the report."""
        for row in self.rows.values():
            if isinstance(row, SeededRow) and row.seed_image is not None:
                path = self.run.root / _source_name(row)
                if not path.exists():
                    write_whole(path, row.seed_image.bytes)


def outcomes(run: Run, log: VerdictLog, cases: Sequence[Case] | None = None) -> list[Outcome]:
    """Every case with what one judge said of its present image, by case id.

    An image that was never made, and one whose file was replaced since, is `missing`.
    """
    images, present = run.images(), run.present(cases)
    said: dict[str, dict[tuple[str, str], Any]] = {}
    for answered in log.present(present):
        of_case = said.setdefault(answered.case, {})
        of_case[answered.question, answered.probe] = answered.verdict
    found = []
    for case in sorted(run.cases() if cases is None else cases, key=lambda case: case.id):
        made = images[case.id].status if case.id in images else "missing"
        status = "missing" if made == "made" and case.id not in present else made
        found.append(Outcome(case, said.get(case.id, {}), status))
    return found


def source_image(row: Row) -> Image.Image | None:
    """The image that a row's edits start from, RGB; None for text-to-image.

    Raises UsageError for a row that lost its image.
    """
    if not isinstance(row, SeededRow):
        return None
    if row.seed_image is None:
        raise UsageError(f"{row.id} has no seed image: use a release that was built with them")
    image = Image.open(BytesIO(row.seed_image.bytes), formats=FORMATS)
    image.load()
    return image


def _questions(
    suite: Suite[Any], row: Row, case: Case, images: Sequence[Image.Image], probes: Sequence[str]
) -> list[Question]:
    shown = [image.convert("RGB") for image in images]
    return [q for probe in probes for q in suite.questions(row, case, shown, probe)]


def _source_name(row: Row) -> str:
    if not isinstance(row, SeededRow) or row.seed_image is None:
        return ""
    return f"sources/{row.image_sha256}.png"
