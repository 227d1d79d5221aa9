"""Images of cases: made or found, encoded and written, and told as records; nothing is recorded.

The generator goes on while images are encoded and written, so that a GPU does not wait for a PNG.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image

from ...clip_files import Clip, ending_of, read_clip
from ...errors import CounterpriorError, DataError
from ...images import ImageError, check_size, encode_png, open_image, opened
from ...storage import write_whole
from ..core import (
    Case,
    CaseGenerator,
    GeneratedText,
    Generator,
    GeneratorError,
    ImageRequest,
    Judge,
)
from ..generators import ENCODED, REPORT, USD, BatchGenerator, as_generator
from ..store.answers import moved
from ..workers.tasks import Numbered, check_same
from .run import REPLACED, TEXTS, CaseResult, stamp_of

Made = Image.Image | Clip | Path | GeneratedText | Exception
"""Output of a generator for a request, or the exception by which this image failed."""

LONGEST = 300
"""Characters of a model's own exception that are kept."""
ENCODERS = 2
"""Threads that encode and write images."""
UNWRITTEN = 4
"""Images a thread that may wait to be written: what a killed worker loses."""

FAILURES = (FileNotFoundError, GeneratorError, OSError, ValueError)
"""Exceptions that fail one image as they are."""
ENDINGS = (CounterpriorError, MemoryError)
"""Those that end the run, unless they are among the former; all others are a model's own."""

GradeImage = Callable[[Case, Image.Image, Judge], float]
"""How right an image of a case is by a judge, in [0, 1]."""

T = TypeVar("T")


def batch_of(generator: CaseGenerator) -> int:
    """Requests that a generator takes in one call."""
    return max(1, generator.batch_size) if isinstance(generator, BatchGenerator) else 1


def make_batch(generator: CaseGenerator, requests: Sequence[ImageRequest]) -> list[Made]:
    """Returns the output for each request; one failed request, or batch, fails no other image."""
    if len(requests) > 1 and isinstance(generator, BatchGenerator):
        try:
            outputs: list[Made] = list(generator.generate_batch(requests))
            if len(outputs) == len(requests):
                return outputs
        except FAILURES:
            pass  # one by one, to see which request fails
        except ENDINGS:
            raise
        except Exception:
            pass
    return [_make_one(generator, request) for request in requests]


def _make_one(generator: CaseGenerator, request: ImageRequest) -> Made:
    try:
        return generator.generate(request)
    except FAILURES as error:
        return error
    except ENDINGS:
        raise
    except Exception as error:  # a checkpoint, pipeline or function that raises
        first = next(iter(str(error).splitlines()), "")
        message = f"{type(error).__name__}: {first}"[:LONGEST]
        return GeneratorError(message, code="program-failed")


class ImageStore:
    """The files of a run that hold its images and clips."""

    def __init__(self, root: Path, grade: GradeImage | None = None) -> None:
        """grade: how methods ask a judge of an image; None where images are made elsewhere."""
        self.root = root
        self._grade = grade

    def request(self, case: Case) -> ImageRequest:
        """Returns the request that a generator gets, with the source of an edit."""
        return ImageRequest(
            case.prompt,
            case.seed,
            source=read_source(self.root, case),
            case=case,
            fields=case.fields,
            grade=None if self._grade is None else partial(self._grade, case),
        )

    def keep(self, case: Case, output: Made, previous: CaseResult | None = None) -> CaseResult:
        """Writes a case's image or clip, or looks at the file that was found, and says what became
        of it.

        previous: its newest recorded result, so that a file of the same bytes is not decoded again.
        """
        try:
            if isinstance(output, Path):
                return found_image(case, output, previous)
            if isinstance(output, Exception):
                raise output
            if isinstance(output, GeneratedText):
                return self._keep_text(case, output)
            film = output if isinstance(output, Clip) else None
            data = output.data if isinstance(output, Clip) else _png(output)
        except FileNotFoundError as error:
            return CaseResult(case.id, "missing", message=str(error))
        except GeneratorError as error:
            return CaseResult(case.id, error.status, message=str(error), usd=error.usd)
        except (OSError, ValueError) as error:
            return CaseResult(case.id, "error", message=str(error))
        file = Path(case.file).with_suffix(film.ending) if film else case.file
        name = f"images/{file}"
        self._write(name, data)
        return CaseResult(
            case=case.id,
            status="made",
            file=name,
            sha256=hashlib.sha256(data).hexdigest(),
            report=output.info.get(REPORT, ""),
            usd=output.info.get(USD, ""),
            frames=film.frames if film else 0,
            fps=film.fps if film else 0.0,
        )

    def _write(self, name: str, data: bytes) -> None:
        """Writes a file of the run. Raises RunFailed where the run was moved meanwhile."""
        if self.root.is_dir():
            with suppress(FileNotFoundError, FileExistsError):  # moved right now
                write_whole(self.root / name, data)
                return
        raise moved(self.root)

    def _keep_text(self, case: Case, text: GeneratedText) -> CaseResult:
        data = text.content.encode("utf-8", "backslashreplace")
        name = f"{TEXTS}/{case.id}.txt"
        self._write(name, data)
        digest = hashlib.sha256(data).hexdigest()
        return CaseResult(case.id, "made", name, digest, report=text.report)


def _png(image: Image.Image) -> bytes:
    """The PNG that an image was read from, or a new one.

    Raises ImageError for a large image, ValueError for what is none.
    """
    if not isinstance(image, Image.Image):
        raise ValueError(f"the model gave no image, but {type(image).__name__}")
    check_size(image)  # which no judge would be shown
    encoded: bytes | None = image.info.get(ENCODED)
    return encoded or encode_png(image)


def found_image(case: Case, path: Path, previous: CaseResult | None) -> CaseResult:
    """A file elsewhere, an image or a clip, decoded unless its bytes are known to be one.

    Raises FileNotFoundError and ImageError.
    """
    stamp = stamp_of(path)
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    file = str(path.resolve())
    film: Clip | CaseResult | None = None
    if previous is not None and previous.status == "made" and previous.sha256 == digest:
        film = previous
    else:
        try:
            if ending_of(data):
                film = read_clip(data)
            else:
                open_image(BytesIO(data))
        except ImageError as error:
            raise ImageError(f"{path} {error}", code="unreadable-image") from None
    frames, fps = (film.frames, film.fps) if film else (0, 0.0)
    return CaseResult(case.id, "made", file, digest, stamp=stamp, frames=frames, fps=fps)


def read_source(root: Path, case: Case) -> Image.Image | None:
    """The image that a case edits, as the run keeps it; None for text-to-image."""
    if not case.source:
        return None
    path = root / case.source
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != path.stem:
            raise ImageError(f"{REPLACED}: remove it", code="changed-file")
        with opened(BytesIO(data)) as image:
            image.load()
    except FileNotFoundError:
        raise DataError(
            f"{path} does not exist: run `counterprior generate` again", code="no-such-file"
        ) from None
    except ImageError as error:
        raise DataError(
            f"{path} {error}, and run `counterprior generate` again", code="unreadable-image"
        ) from None
    return image


class Encoders:
    """A few threads with a short queue: results come in the order given, a little later."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(ENCODERS)
        self._due: deque[Future[Any]] = deque()

    def put(self, work: Callable[[], T]) -> None:
        """Starts a piece of work, or queues it."""
        self._due.append(self._pool.submit(work))

    def ready(self) -> Iterator[Any]:
        """Results that are there; where too many are due, it waits for some."""
        most = ENCODERS * UNWRITTEN
        while self._due and (self._due[0].done() or len(self._due) > most):
            yield self._next()

    def rest(self) -> Iterator[Any]:
        """All results that are due."""
        while self._due:
            yield self._next()

    def _next(self) -> Any:
        wait([self._due[0]])  # an interrupt while it waits leaves the result due
        return self._due.popleft().result()

    def close(self) -> None:
        self._pool.shutdown()


def make_images(
    generator: CaseGenerator,
    store: ImageStore,
    cases: Iterable[Case],
    previous: Callable[[str], CaseResult | None],
) -> Iterator[CaseResult]:
    """Makes the images of cases in this process, one call of the generator after the other."""
    waiting = iter(cases)
    size = batch_of(generator)
    encoders = Encoders()
    try:
        while batch := list(islice(waiting, size)):
            outputs = make_batch(generator, [store.request(case) for case in batch])
            for case, output in zip(batch, outputs, strict=True):
                encoders.put(lambda c=case, m=output: store.keep(c, m, previous(c.id)))  # type: ignore[misc]
            yield from encoders.ready()
        yield from encoders.rest()
    except (Exception, KeyboardInterrupt):  # what was made is recorded, whatever ends the run
        yield from encoders.rest()
        raise
    finally:
        encoders.close()


@dataclass(frozen=True)
class CaseToMake:
    """A case for a worker."""

    case: Case
    """The case."""
    previous: CaseResult | None
    """Its newest recorded result."""


@dataclass(frozen=True)
class MakeImages:
    """The task of workers that make images."""

    root: Path
    """Folder of the run, absolute."""
    generator: Any
    """Spec, or the generator itself."""
    identity: dict[str, str]
    """Identity of the generator."""
    bundle: int
    """Cases in one call."""

    def open(self) -> ImageWorker:
        """Raises UsageError where the generator is another one in a worker."""
        generator = as_generator(self.generator)
        check_same(self.identity, generator.identity(), "generator")
        return ImageWorker(generator, ImageStore(self.root))

    def lost(self, piece: CaseToMake, deaths: int) -> CaseResult:
        """An image on which that many workers died."""
        return CaseResult(piece.case.id, "error", message=f"{deaths} workers died making it")


class ImageWorker:
    """Makes images in a worker; those of earlier bundles are written meanwhile."""

    def __init__(self, generator: Generator, store: ImageStore) -> None:
        self._generator = generator
        self._store = store
        self._encoders = Encoders()

    def do(self, work: Sequence[Numbered[CaseToMake]]) -> Iterator[Numbered[CaseResult]]:
        requests = [self._store.request(piece.case) for _, piece in work]
        for (number, piece), output in zip(
            work, make_batch(self._generator, requests), strict=True
        ):
            self._encoders.put(
                lambda n=number, p=piece, m=output: (n, self._store.keep(p.case, m, p.previous))  # type: ignore[misc]
            )
        yield from self._encoders.ready()

    def finish(self) -> Iterator[Numbered[CaseResult]]:
        yield from self._encoders.rest()
