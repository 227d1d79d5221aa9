"""`command`: the user's program that makes images or clips.

``command:./draw.sh {prompt} {seed} {output}?timeout=600`` runs once an image; an edit has
``{source}`` too, and every field of the row can be named (``{object_a}``, ``{relation}``). The
words are split as a shell would, and each placeholder is filled inside its word: no shell reads a
prompt. ``command:python draw.py?worker=1`` is started once, see `worker`. With ``ending=mp4`` the
output's name ends so, for programs that go by it. Options come after the first ``?``. Keys belong
into the environment: the command is recorded.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, ClassVar, Literal

from PIL.Image import Image

from ...clip_files import Clip, open_made
from ...errors import UsageError
from ...images import ImageError, plain_png
from ...specs import Options, Seconds, Spec, check_trusted
from ..core import Case, GeneratorError, ImageRequest
from .worker import SHOWN, WorkerProgram, without_secrets

DECLINED = 77
"""Exit status of a command whose model declined the request."""

OURS = ("prompt", "seed", "source", "output", "row", "variant", "number", "id")
"""Placeholders of every suite; a row's fields come besides."""

_PLACEHOLDER = re.compile(r"\{([a-z_0-9]+)\}")


class CommandOptions(Options):
    """Options of `command`."""

    timeout: Seconds = 600
    """Time after which the command and its subprocesses are killed."""
    worker: bool = False
    """Whether the program is started only once and reads requests as JSON lines."""
    ending: Literal["png", "jpg", "webp", "gif", "mp4", "webm"] = "png"
    """File ending of `{output}`. The format is read from the file's content."""


class CommandGenerator:
    """Runs the command once an image, or keeps it running as a worker."""

    argument: ClassVar[str] = "COMMAND"
    options: ClassVar[type[Options]] = CommandOptions

    def __init__(self, command: str, options: CommandOptions) -> None:
        """Raises UsageError for a command that can't be run or lacks a placeholder."""
        self._output = f"output.{options.ending}"
        self._timeout = options.timeout
        try:
            # Program and arguments, with placeholders.
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"command: {command!r}: {error}", code="bad-spec") from None
        self._fields = {name for word in self._words for name in _PLACEHOLDER.findall(word)}
        missing = {"prompt", "output"} - self._fields
        if options.worker:
            if self._fields or not self._words:
                raise UsageError(
                    "command: a worker is a program without placeholders: it reads requests as "
                    "JSON lines",
                    code="bad-spec",
                )
        elif missing:
            raise UsageError(
                f"command: write {{{sorted(missing)[0]}}} where it belongs", code="bad-spec"
            )
        if shutil.which(self._words[0]) is None:
            raise UsageError(
                f"command: no program {self._words[0]!r}: install it or give its path",
                code="no-such-file",
            )
        self._worker = WorkerProgram(self._words, self._timeout) if options.worker else None

    @classmethod
    def from_spec(cls, spec: Spec, options: CommandOptions) -> CommandGenerator:
        check_trusted(spec)
        return cls(spec.argument, options)

    def identity(self) -> dict[str, str]:
        """Command, and digest of the files that it names, so that a changed script differs."""
        digest = hashlib.sha256()
        for word in self._words:
            # A program that is found on the path is not looked into: it is the system's.
            if (path := Path(word)).is_file() and (path.suffix or os.sep in word):
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        command = shlex.join(self._words)
        identity = {"kind": "command", "command": command, "files": digest.hexdigest()[:16]}
        return {**identity, "worker": "1"} if self._worker else identity

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError for a placeholder that the rows have no field for."""
        for fields in {id(case.fields): case.fields for case in cases}.values():
            self._check_fields(fields)

    def _check_fields(self, fields: Mapping[str, str]) -> None:
        if unknown := sorted(self._fields - {*OURS, *fields}):
            placeholders = ", ".join(dict.fromkeys((*OURS, *fields)))
            raise UsageError(
                f"command: no placeholder {{{unknown[0]}}}: choose from {placeholders}",
                code="unknown-name",
            )

    def generate(self, request: ImageRequest) -> Image | Clip:
        """Runs the program. Raises GeneratorError, refused if the program declined; LoadError for a
        worker that can't be started."""
        if request.references:
            raise GeneratorError(
                "a command takes one source, and this edit has several", code="several-sources"
            )
        if self._worker is None and (request.source is not None) != ("source" in self._fields):
            needs = "has no {source}, and this is an edit" if request.source else "needs a source"
            raise GeneratorError(f"the command {needs}", code="program-failed")
        with TemporaryDirectory(prefix="counterprior-") as name:
            folder = Path(name)
            output, source = folder / self._output, folder / "source.png"
            if request.source is not None:
                source.write_bytes(plain_png(request.source))
            values = values_of(request)
            values["output"] = str(output)
            values["source"] = "" if request.source is None else str(source)
            if self._worker is not None:
                return self._worker.draw(values, output)
            self._check_fields(values)
            # In one pass: a value is never read for placeholders itself.
            words = [_PLACEHOLDER.sub(lambda m: values[m[1]], word) for word in self._words]
            with (folder / "said").open("w+b") as printed:
                status = _run(words, self._timeout, printed)
                if status:
                    killed = f"was killed by {signal.Signals(-status).name}" if status < 0 else ""
                    ended = killed or f"ended with status {status}"
                    message = f"the command {ended}{_last_words(printed)}"
                    raise GeneratorError(
                        message, "refused" if status == DECLINED else "error", code="program-failed"
                    )
                try:
                    return open_made(output)
                except ImageError as error:
                    raise GeneratorError(
                        f"the image {error}{_last_words(printed)}", code="unreadable-image"
                    ) from None


def values_of(request: ImageRequest) -> dict[str, str]:
    """Returns placeholder -> value of a request; its own values override fields of the row."""
    case = request.case
    values: dict[str, str] = {}
    if case is not None:
        values |= case.fields
        values |= {"row": case.row, "variant": case.variant, "id": case.id}
        values["number"] = str(case.number)
    return {**values, "prompt": request.prompt, "seed": str(request.seed)}


def _run(words: Sequence[str], timeout: float, printed: IO[bytes]) -> int:
    """Returns the exit status, the negative signal if killed.

    Raises GeneratorError for a program that can't be started, or runs too long.
    """
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True
        )
    except (OSError, ValueError) as error:  # ValueError: a prompt with a NUL
        raise GeneratorError(
            f"the command can't be started: {error}", code="program-failed"
        ) from None
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        message = f"the command took more than {timeout:g} s{_last_words(printed)}"
        raise GeneratorError(message, code="program-failed") from None
    finally:
        if process.poll() is None:  # too long, or we are interrupted
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _last_words(printed: IO[bytes]) -> str:
    """Returns the end of the command's output, without secrets of the environment."""
    end = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, end - 4 * SHOWN))
    return without_secrets(printed.read())
