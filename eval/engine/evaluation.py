"""The one flow: case, image, questions, verdicts, records; what is there is never made again.

A generator on a suite in a run folder. Everything that makes or judges images (`eval`, races, the
self-test) is a loop around `make` and `ask`.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from threading import Lock as ThreadLock
from typing import Any, Self

from PIL import Image

from ...agents.threads import in_threads
from ...errors import DataError, RunFailed, UsageError
from ...images import ImageError, encode_png, opened
from ...parsing import write_rows
from ...progress import Progress, silent
from ...schema import Row, SeededRow
from ...storage import write_whole
from ..clips.frames import USUAL
from ..clips.together import FrameVerdicts, clip_verdicts
from ..core import (
    ORIGINAL,
    Case,
    CaseGenerator,
    GeneratorError,
    Judge,
    Outcome,
    Verdict,
    probes_of,
)
from ..generators import ENCODED, Checked, MadeForRows, PaidByImage, is_served
from ..generators.paid import PaidGenerator
from ..judges import Answering
from ..methods import Method
from ..store.shards import RunLock, RunShard
from ..store.spool import ChosenRows, RowIndex
from ..store.verdicts import Answered, OpenQuestion, Tally, VerdictLog, judging_identity
from ..suites import open_suite
from ..suites.base import Suite
from ..workers.farm import IN_PROCESS, Scale, farm
from .asking import Asking, AskJudge, CaseToJudge, unreadable
from .data import RowChoice, Rows, in_random_order, only_cases, read_rows, row_fields, sample_rows
from .making import (
    CaseToMake,
    ImageStore,
    MakeImages,
    batch_of,
    found_image,
    make_batch,
    make_images,
    read_source,
)
from .run import LEDGERS, REPLACED, CaseResult, Run, RunError, RunHeader

MANIFEST = "manifest.jsonl"
_NO_FRAMES: FrameVerdicts = {}


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run: suite, data, folder and sample."""

    suite: str
    """Config."""
    data: str
    """Release folder or repository."""
    out: Path
    """Folder of the run."""
    revision: str | None = None
    """Tag or commit of the repository."""
    seeds: int | tuple[int, ...] = 1
    """Images of each prompt, 1 to 4, or the seeds that all prompts have in common."""
    limit: int | None = None
    """Rows to sample; None for all."""
    variants: tuple[str, ...] = ()
    """Variants of the suite that the generator makes; all if empty."""
    where: str = ""
    """Name of the subset of cases that a new run has; all if empty."""
    cases: frozenset[str] | None = None
    """The ids of these cases; None for all."""
    shuffled: bool = False
    """Whether a new run has its cases cluster by cluster in random order, see `studies.running`."""
    only: Sequence[str] | None = None
    """The rows or prompts that a new run has, see `data.RowChoice`; None for all."""


def check_identity(noun: str, identity: Mapping[str, str]) -> None:
    """Raises UsageError for an identity without a kind, before anything is made or asked."""
    if not identity.get("kind"):
        raise UsageError(
            f"the identity of the {noun} has no `kind`: {dict(identity)}",
            "let `identity()` return it, such as {'kind': 'mine', 'version': '1'}",
            code="missing-field",
        )


@dataclass
class Evaluation:
    """An open run: holds its folder until it is closed."""

    run: Run
    """The folder."""
    suite: Suite[Any]
    """The suite, which has the cases and words the questions."""
    rows: Mapping[str, Row]
    """Rows by id."""
    cases: Sequence[Case]
    """In the order of the config; of a shard, its own."""
    lock: RunLock | None
    """Keeps other processes out; None for a look at a run, which writes nothing."""

    @classmethod
    def start(
        cls,
        settings: RunSettings,
        generator: Mapping[str, str],
        rows: Rows | None = None,
        shard: RunShard | None = None,
    ) -> Evaluation:
        """A new run of a generator with this identity, or the one that is there.

        `rows` are used instead of those of `settings.data`; `shard` is the share of the cases that
        this process makes and judges. Raises RunError for a folder of another run,
        InUseError for one that another process writes.
        """
        check_identity("generator", generator)
        rows = rows or read_rows(settings.data, settings.suite, settings.revision)
        suite, row_index, cases = plan_cases(settings, rows)
        header = _header(settings, rows, row_index, generator)
        lock = RunLock(settings.out, shard)
        try:
            run = Run(settings.out, header, shard)
            with run.starting() if shard else nullcontext():
                run = Run.start(settings.out, header, cases, shard)
                evaluation = cls(run, suite, row_index, run.own_cases(), lock)
                evaluation._keep_sources()
        except BaseException:
            lock.release()
            raise
        return evaluation

    @classmethod
    def open(
        cls,
        root: Path,
        revision: str | None = None,
        rows: Rows | None = None,
        shard: RunShard | None = None,
    ) -> Evaluation:
        """A run that is there, to be judged. Raises RunError unless its images, or those of the
        shard, are all there, and where its release has other rows by now."""
        run = Run.open(root, shard)
        run.check_complete()
        run.check_files()
        header = run.header
        suite = open_suite(header.suite)
        rows = rows or read_rows(header.data, header.suite, revision)
        if rows.digest != header.rows_sha256:
            raise RunError(
                f"{header.data}, {header.suite}: the rows are not those that {root} was started "
                f"with; judge it with the release of that time",
                code="different-rows",
            )
        limit = None if header.where.startswith("only ") else header.limit
        row_index = RowIndex(sample_rows(rows.rows, limit, suite.together))
        lock = run.lock()
        try:
            # Read now that nobody else adds anything.
            evaluation = cls(Run.open(root, shard), suite, row_index, run.own_cases(), lock)
            evaluation._look_again()
        except BaseException:
            lock.release()
            raise
        return evaluation

    @classmethod
    def look(cls, settings: RunSettings, rows: Rows, run: Run | None = None) -> Evaluation:
        """A run as it would be started, without starting it: nothing is written or locked.

        run: what is there of it.
        """
        suite, row_index, cases = plan_cases(settings, rows)
        if run is None:
            run = Run(settings.out, _header(settings, rows, row_index, {}))
        return cls(run, suite, row_index, list(cases), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.lock is not None:
            self.lock.release()

    def check_sources(self) -> None:
        """Raises RunError where no row to edit has a seed image."""
        if self.rows and all(row.lacks_source for row in self.rows.values()):
            raise RunError(
                f"{self.run.header.data}, {self.run.header.suite}: no row has a seed image; use a "
                f"release that was built with them",
                code="no-seed-image",
            )

    def check_generator(self, generator: CaseGenerator) -> None:
        """Raises UsageError where a generator can't tell two cases apart, or has others, and where
        a method can't work on the rows of this suite."""
        if isinstance(generator, Method) and len(self.cases):
            generator.check_request(self._store().request(self._full(self.cases[0])))
        self.check_cases(generator, self.run.cases())

    def check_cases(self, generator: CaseGenerator, cases: Iterable[Case]) -> None:
        """Raises UsageError where a generator can't tell two of the cases apart, or has others."""
        if isinstance(generator, MadeForRows):
            generator.check_rows(self.run.header.suite, self.run.header.rows_sha256)
        if isinstance(generator, Checked):
            generator.check([self._full(case) for case in cases])

    def make(
        self,
        generator: CaseGenerator,
        cases: Sequence[Case] | None = None,
        concurrency: int = 1,
        progress: Progress = silent,
        scale: Scale = IN_PROCESS,
        spec: Any = None,
    ) -> None:
        """Makes what is not made yet; an image that failed is tried again, a refused one is not.

        Files elsewhere are looked at again: a replaced one is a new image. A generator behind a
        server is asked `concurrency` times at once, from threads here; any other makes its images
        in the workers of `scale`, who open `spec` or get the generator itself; a captioner behind a
        server is asked from here. Raises BudgetError
        where a cap ends the run.
        """
        cases = self.cases if cases is None else cases
        # Numbers, not cases: a run may have more than fit into memory.
        replaced = self.run.replacement()
        open_ones = (n for n, case in enumerate(cases) if not self._is_settled(case, replaced))
        waiting = array("Q", open_ones)
        unmade = (self._full(cases[n]) for n in waiting)
        one_at_a_time = ThreadLock()
        images, results = self.run.images(), self.run.results

        def record(image: CaseResult) -> None:
            with one_at_a_time:
                if image != images.get(image.case):
                    results.append(image)

        served = isinstance(generator, (PaidByImage, PaidGenerator))
        here = scale.in_process or is_served(generator)
        recorded: Iterator[None]
        done = len(cases) - len(waiting)
        with results:
            for case in cases:
                if self.rows[case.row].lacks_source:
                    record(CaseResult(case.id, "missing", message="its row has no seed image"))
            if served or concurrency > 1:
                recorded = self._in_threads(generator, unmade, concurrency, record)
            elif here or not waiting:
                store = self._store()
                recorded = map(record, make_images(generator, store, unmade, images.get))
            else:
                recorded = map(record, self._by_workers(generator, unmade, scale, spec))
            progress("images", done, len(cases))
            for number, _ in enumerate(recorded, done + 1):
                progress("images", number, len(cases))
        # Now, so that who only looks at the run later has nothing to write.
        made = self.run.replacement()
        for case in cases:
            if (image := images.get(case.id)) is not None and image.stamp is None:
                made(image)
        made.keep()

    def ask(
        self,
        judge: Judge,
        controls: Iterable[str] = (),
        persona: str = "standard",
        cases: Sequence[Case] | None = None,
        progress: Progress = silent,
        scale: Scale = IN_PROCESS,
        spec: Any = None,
        ledgers: Path | None = None,
        frames: str = USUAL,
    ) -> tuple[VerdictLog, Tally]:
        """Asks what has no verdict yet and records each verdict as it comes.

        frames: choice of frames of a clip, as text of a `FrameChoice`.

        A verdict is known by question, image and judge: an image that was made anew is judged anew,
        and no question is asked twice. Failures of the judge itself (`error`) are asked again. A
        judge behind a server is asked from here; any other judges in the workers of `scale`, who
        open `spec`, with what it keeps beside `ledgers`, or get the judge itself.
        """
        root = self.run.root.resolve()
        together = bool(getattr(judge, "takes_clips", False))
        probes = probes_of(controls)
        asking = Asking(root, self.suite.name, persona, probes, frames, together)
        identity = judge.identity()
        check_identity("judge", identity)
        log = self.run.judge(judging_identity(identity, persona, asking.choice.text))
        cases = self.cases if cases is None else cases
        tally = Tally()
        todo = self._to_judge(asking, log, cases, tally, progress)
        if scale.in_process or isinstance(getattr(judge, "inner", judge), Answering):
            suite = asking.open_suite()

            def open_questions() -> Iterator[OpenQuestion]:
                """Questions without a verdict, with the images of one case in memory at a time."""
                for piece in todo:
                    try:
                        yield from asking.questions(suite, piece)
                    except ImageError as error:
                        self._record(unreadable(piece.case, error))

            for _ in log.ask(judge, open_questions(), tally):
                pass
        else:
            bundle = max(1, getattr(judge, "batch", 1))
            task = AskJudge(
                asking,
                judge if spec is None else spec,
                identity=identity,
                bundle=bundle,
                ledgers=(ledgers or root / LEDGERS).resolve(),
            )
            sent = (replace(piece, row=_without_image(piece.row)) for piece in todo)
            with log.answers, closing(farm(task, sent, scale)) as results:
                for _, result in results:
                    if isinstance(result, CaseResult):
                        self._record(result)
                        continue
                    for answered in result:
                        log.add(answered, tally)
        progress("verdicts", len(cases), len(cases))
        return log, tally

    def _to_judge(
        self,
        asking: Asking,
        log: VerdictLog,
        cases: Sequence[Case],
        tally: Tally,
        progress: Progress,
    ) -> Iterator[CaseToJudge]:
        """The images with open questions."""
        suite, images = asking.open_suite(), self.run.images()
        for number, case in enumerate(cases):
            progress("verdicts", number, len(cases))
            image = images.get(case.id)
            if image is None or image.status != "made":
                continue
            row = self.rows[case.row]
            open_questions, answered_count = asking.unanswered(suite, row, case, image, log)
            tally.recorded += answered_count
            if open_questions:
                yield CaseToJudge(row, case, image, frozenset(q.id for q in open_questions))

    def _in_threads(
        self,
        generator: CaseGenerator,
        cases: Iterable[Case],
        concurrency: int,
        record: Callable[[CaseResult], None],
    ) -> Iterator[None]:
        store = self._store()

        def make_one(case: Case) -> None:
            (output,) = make_batch(generator, [store.request(case)])
            # By who made it: what is paid is recorded, whatever ends the run meanwhile.
            record(store.keep(case, output, self.run.images().get(case.id)))
            if isinstance(output, GeneratorError) and output.ends_run:
                raise RunFailed(
                    f"{output}: every further image would fail alike, so none was asked for",
                    code="all-failed",
                )

        with closing(in_threads(make_one, cases, concurrency)) as done:
            yield from done

    def _by_workers(
        self, generator: CaseGenerator, cases: Iterable[Case], scale: Scale, spec: Any
    ) -> Iterator[CaseResult]:
        opens = generator if spec is None else spec
        root = self.run.root.resolve()
        task = MakeImages(root, opens, generator.identity(), batch_of(generator))
        images = self.run.images()
        work = (CaseToMake(case, images.get(case.id)) for case in cases)
        with closing(farm(task, work, scale)) as results:
            for _, image in results:
                yield image

    def expected(self) -> Iterator[tuple[Case, CaseResult]]:
        """Every case of which judges will see an image, with its fields and that image.

        The image has no digest where it is yet to be made. A file that a generator found counts as
        made while it is the recorded one.
        """
        replaced, images = self.run.replacement(), self.run.images()
        for case in self.cases:
            image = images.get(case.id)
            if self.rows[case.row].lacks_source or (image and image.status == "refused"):
                continue
            settled = self._is_settled(case, replaced) or (
                image is not None and image.stamp is not None and not replaced(image)
            )
            is_made = image is not None and image.status == "made" and settled
            yield self._full(case), image if is_made and image else CaseResult(case.id, "made")

    def open_cases(self) -> Iterator[Case]:
        """The cases that nothing is made of yet, with the fields of their rows."""
        replaced = self.run.replacement()
        return (self._full(case) for case in self.cases if not self._is_settled(case, replaced))

    def _full(self, case: Case) -> Case:
        """A case as a generator gets it: with the fields of its row, which are not recorded."""
        return replace(case, fields=row_fields(self.rows[case.row]))

    def _record(self, image: CaseResult) -> None:
        self.run.results.append(image)

    def write_manifest(self) -> None:
        """Lists every image that `spatial detect` and `audit` can read, also missing ones."""
        if next(self._manifest(self.run), None) is None:
            return
        if self.run.shard is None:
            write_rows(self.run.root / MANIFEST, self._manifest(self.run))
            return
        with self.run.starting():  # so that the last shard to end has seen the others' images
            run = Run.open(self.run.root)
            write_rows(run.root / MANIFEST, self._manifest(run))

    def _manifest(self, run: Run) -> Iterator[dict[str, Any]]:
        images = run.images()
        for case in run.cases():
            about = self.suite.manifest(self.rows[case.row], case)
            if about is not None:
                image = images.get(case.id)
                file = (image.file if image else "") or f"images/{case.file}"
                yield {"sample_id": case.id, "file": file, "prompt": case.prompt, **about}

    def _is_settled(self, case: Case, replaced: Callable[[CaseResult], bool]) -> bool:
        if self.rows[case.row].lacks_source:
            return True
        image = self.run.images().get(case.id)
        if image is None or image.stamp is not None:
            return False
        if image.status == "made":
            return self.run.image_path(image).exists() and not replaced(image)
        return image.status == "refused"

    def _store(self) -> ImageStore:
        """The run's images, made in this process."""
        return ImageStore(self.run.root, self.grade if self.suite.has_right_images else None)

    def grade(self, case: Case, image: Image.Image, judge: Judge) -> float:
        """How right an image of a case is, also one that the run does not keep as its own.

        In [0, 1], of a suite with right and wrong images; NaN where the judge can't tell. A judge
        that measures is taken at its numbers. Verdicts are recorded as `ask` does, so that an image
        is judged once.
        """
        source = read_source(self.run.root, case)
        images = [image.convert("RGB")] if source is None else [source, image.convert("RGB")]
        digest = hashlib.sha256(image.info.get(ENCODED) or encode_png(image)).hexdigest()
        log = self.run.judge(judging_identity(judge.identity(), self.suite.persona))
        questions = [
            OpenQuestion(question, digest)
            for question in self.suite.questions(self.rows[case.row], case, images, ORIGINAL)
        ]
        for _ in log.ask(judge, [item for item in questions if log.needs(item)], Tally()):
            pass
        newest = log.of(case.id)
        verdicts = {
            (item.question.name, item.question.probe): newest[item.key].verdict
            for item in questions
        }
        numbers = [verdict.number for verdict in verdicts.values() if verdict.number is not None]
        if len(numbers) == len(verdicts):
            return sum(numbers) / len(numbers)
        return self.suite.correctness(Outcome(case, verdicts))

    def _look_again(self) -> None:
        """Hashes files elsewhere again: a replaced one is a new image. In place of an own one there
        is none: nobody knows who made what lies there now."""
        images = self.run.images()
        replaced = {*self.run.replaced()}
        with self.run.results as results:
            for case in self.cases:
                image = images[case.id]
                if image.status == "made" and image.stamp is not None:
                    try:
                        now = found_image(case, self.run.image_path(image), image)
                    except FileNotFoundError as error:
                        now = CaseResult(case.id, "missing", message=str(error))
                    except (OSError, ValueError) as error:
                        now = CaseResult(case.id, "error", message=str(error))
                    if now != image:
                        results.append(now)
                elif case.id in replaced:
                    text = f"{image.file} {REPLACED}: make it again by what made the run"
                    results.append(CaseResult(case.id, "error", message=text))

    def _keep_sources(self) -> None:
        """The images to edit, for who makes the edits elsewhere, and for the report."""
        for row in self.rows.values():
            if (image := row.source_image) is not None:
                path = self.run.root / source_name(row)
                if not path.exists():
                    write_whole(path, image.bytes)


def outcomes(run: Run, log: VerdictLog, cases: Sequence[Case] | None = None) -> list[Outcome]:
    """Every case with what one judge said of its present image, by case id.

    An image that was never made, and one whose file was replaced since, is `missing`.
    """
    present = run.present(cases)
    return outcomes_of(run, log.present(present), present, cases)


def outcomes_of(
    run: Run,
    answers: Iterable[Answered],
    present: Mapping[str, str],
    cases: Sequence[Case] | None = None,
) -> list[Outcome]:
    """As `outcomes`, of a judge's answers about the images that are present."""
    images = run.images()
    of_images: dict[str, dict[tuple[str, str], Verdict]] = {}
    of_clips: dict[str, dict[int, dict[tuple[str, str], Verdict]]] = {}
    asked: dict[tuple[str, str], tuple[str, str]] = {}
    for answered in answers:
        if answered.frame is None:
            verdicts = of_images.setdefault(answered.case, {})
        else:
            verdicts = of_clips.setdefault(answered.case, {}).setdefault(answered.frame, {})
        question = answered.question, answered.probe
        verdicts[asked.setdefault(question, question)] = answered.verdict  # each tuple once
    results = []
    named = [(case.id, case) for case in (run.cases() if cases is None else cases)]
    for name, case in sorted(named, key=itemgetter(0)):
        status = images[name].status if name in images else "missing"
        if status == "made" and name not in present:
            status = "missing"
        frames = of_clips.get(name, _NO_FRAMES)
        verdicts = of_images.get(name) or clip_verdicts(frames)
        results.append(Outcome(case, verdicts, status, frames))
    return results


def plan_cases(
    settings: RunSettings, rows: Rows, asked: tuple[str, str] = ("--where", "--ids")
) -> tuple[Suite[Any], RowIndex, Iterator[Case]]:
    """The suite of a run, the rows that it samples, and their cases.

    asked: where the user chooses rows, see `RowChoice`. Raises UsageError where the choice fits no
    row, or names an unknown field or id, and DataError for a file of ids that can't be read.
    """
    suite = open_suite(settings.suite)
    suite.check_variants(settings.variants)
    only = RowChoice.of(settings.only, asked)
    sampled = sample_rows(only.rows(rows), settings.limit, suite.together)
    if settings.shuffled:
        sampled = in_random_order(sampled, partial(_cluster_of, suite))
    row_index = RowIndex(sampled)
    cases: Iterator[Case] = (
        replace(case, source=source)
        for row in row_index.values()
        for source in (source_name(row),)
        for case in _cases_of(suite, row, settings.seeds)
        if suite.draws(case.variant, settings.variants)
        if settings.cases is None or case.id in settings.cases
    )
    if only.file is not None:
        chosen = only_cases(only.file, settings.limit, cases, only.asked[1])
        chosen_rows = {case.row for case in chosen}
        numbers = (number for number, row in enumerate(row_index) if row in chosen_rows)
        row_index, cases = RowIndex(ChosenRows(sampled, numbers)), iter(chosen)
    return suite, row_index, cases


def _cases_of(suite: Suite[Any], row: Row, seeds: int | tuple[int, ...]) -> Iterator[Case]:
    if isinstance(seeds, int):
        return suite.cases(row, seeds)
    return suite.cases(row.model_copy(update={"seeds": list(seeds)}), len(seeds))


def _cluster_of(suite: Suite[Any], row: Row) -> str:
    """The cluster of a row's cases; empty for a row without any."""
    return next((case.clusters[0] for case in suite.cases(row, 1)), "")


def _header(
    settings: RunSettings, rows: Rows, row_index: RowIndex, generator: Mapping[str, str]
) -> RunHeader:
    return RunHeader(
        suite=settings.suite,
        data=settings.data,
        rows_sha256=rows.digest,
        rows=len(row_index),
        added=sum(name in row_index for name in rows.added_ids),
        seeds=settings.seeds if isinstance(settings.seeds, int) else len(settings.seeds),
        limit=settings.limit,
        generator=dict(generator),
        where=" ".join(filter(None, (RowChoice.of(settings.only).name, settings.where))),
        common_seeds=() if isinstance(settings.seeds, int) else settings.seeds,
        commit=rows.commit,
    )


def source_image(row: Row) -> Image.Image | None:
    """The image that a row's edits start from, RGB; None for text-to-image.

    Raises UsageError for a row that lost its image.
    """
    if row.lacks_source:
        raise UsageError(
            f"{row.id} has no seed image: use a release that was built with them",
            code="no-seed-image",
        )
    if (encoded := row.source_image) is None:
        return None
    try:
        with opened(BytesIO(encoded.bytes)) as image:
            image.load()
    except ImageError as error:
        raise DataError(f"the seed image of {row.id} {error}", code="unreadable-image") from None
    return image


def _without_image(row: Row) -> Row:
    """The row for a worker, who reads the source from the run."""
    return row.model_copy(update={"seed_image": None}) if isinstance(row, SeededRow) else row


def source_name(row: Row) -> str:
    """Where a run keeps the image that a row's edits start from; empty where there is none."""
    if (image := row.source_image) is None:
        return ""
    # By the bytes themselves: what a row says of them decides no file.
    return f"sources/{hashlib.sha256(image.bytes).hexdigest()}.png"
