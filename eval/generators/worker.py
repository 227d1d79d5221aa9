"""A program that is started once and makes many images: requests in, paths out, as JSON lines.

Each line on its standard input is an object with all that a command can name: `prompt`, `seed`,
`output` (where to write the image), `source` (the image to edit, or empty), the row's fields, and
`request`, its number. It answers with one line on standard output that repeats the number, so that
no answer is taken for that of another request: `{"request": N, "output": PATH}`, or `refused` or
`error` with the reason instead of `output`. Lines that are no such object are passed over, so a
library may print. It ends when its input ends, which it does with us, whatever ends us.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL.Image import Image

from ...clip_files import Clip, open_made
from ...images import ImageError
from ..checkpoints.placement import LoadError
from ..core import GeneratorError

SHOWN = 2000
"""Characters of a program's last words that an error quotes."""
ANSWERS = ("output", "refused", "error")
SETTLES = 1.0
"""Seconds in which a process that closed its output ends, and its last words are read."""

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


class WorkerProgram:
    """The program, started with the first request and again where it died."""

    def __init__(self, words: Sequence[str], timeout: float) -> None:
        """timeout: seconds for one image; for the first, loading a model is in them."""
        self._words = words
        self._timeout = timeout
        self._process: _Process | None = None
        self._asked = 0
        self._answered = False
        self._one_at_a_time = threading.Lock()

    def draw(self, values: Mapping[str, str], output: Path) -> Image | Clip:
        """The image of one request; asked again of a new process, once, if the process dies.

        Raises GeneratorError, refused where the program says so; LoadError where the program ends
        before it has answered anything.
        """
        with self._one_at_a_time:
            for last in (False, True):
                self._asked += 1
                process = self._process = self._process or _Process(self._words)
                try:
                    answer = process.ask({**values, "request": self._asked}, self._timeout)
                except BaseException:  # late, astray, or we are interrupted
                    self._process = None
                    process.end()
                    raise
                if answer is not None:
                    self._answered = True
                    return _image(answer, output, process)
                self._process = None
                problem = f"the worker {process.end(SETTLES)}{process.last_words()}"
                if last:
                    raise (
                        GeneratorError(problem, code="program-failed")
                        if self._answered
                        else LoadError(problem, code="program-failed")
                    )
        raise AssertionError("unreachable")


class _Process:
    """One process, with threads that read its output: a full pipe would stop it."""

    def __init__(self, words: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise LoadError(
                f"the worker can't be started: {error}", code="program-failed"
            ) from None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._printed: deque[bytes] = deque(maxlen=200)
        self._threads = [
            threading.Thread(target=read, args=(stream, self._answers, self._printed), daemon=True)
            for read, stream in (
                (_read_answers, self._process.stdout),
                (_read_words, self._process.stderr),
            )
        ]
        for thread in self._threads:
            thread.start()
        # Not when the collector finds us: also where nobody closes a generator.
        self._finalize = weakref.finalize(self, _kill, self._process)

    def ask(self, values: Mapping[str, Any], timeout: float) -> dict[str, Any] | None:
        """Returns the answer; None if the process is gone.

        Raises GeneratorError for a late answer, or one to another request.
        """
        assert self._process.stdin is not None
        line = json.dumps(values, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with suppress(OSError):  # gone: there is no answer either
            self._process.stdin.write(line)
            self._process.stdin.flush()
        try:
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            words = self.last_words()
            raise GeneratorError(
                f"the worker took more than {timeout:g} s{words}", code="timed-out"
            ) from None
        if answer is not None and answer.get("request") != values["request"]:
            raise GeneratorError(
                f"the worker answered request {answer.get('request')!r} and was asked "
                f"{values['request']}: repeat the request's number in the answer",
                code="bad-answer",
            )
        return answer

    def last_words(self) -> str:
        """Returns the end of its output."""
        return without_secrets(b"".join(list(self._printed)))

    def end(self, seconds: float = 0) -> str:
        """Kills it and its children unless it ends by itself; returns how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        status = self._process.poll()
        self._finalize()
        for thread in self._threads:
            thread.join(SETTLES)
        if status is None:
            return "closed its output"
        killed = f"was killed by {signal.Signals(-status).name}" if status < 0 else ""
        return killed or f"ended with status {status}"


def _read_answers(stream: Any, answers: queue.Queue[Any], printed: deque[bytes]) -> None:
    with stream:
        for line in stream:
            try:
                answer = json.loads(line)
            except ValueError:
                answer = None
            if isinstance(answer, dict) and any(name in answer for name in ANSWERS):
                answers.put(answer)
            else:
                printed.append(line[-4 * SHOWN :])
    answers.put(None)


def _read_words(stream: Any, _: object, printed: deque[bytes]) -> None:
    with stream:
        while piece := stream.read1(4 * SHOWN):
            printed.append(piece)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]


def _image(answer: Mapping[str, Any], output: Path, process: _Process) -> Image | Clip:
    for status in ("refused", "error"):
        if status in answer:
            reason = without_secrets(str(answer[status]).encode()) or ": without a reason"
            raise GeneratorError(f"the worker says {status}{reason}", status, code="program-failed")
    path = answer["output"]
    if not isinstance(path, str):
        raise GeneratorError(
            f"the worker's output must be a path, not {json.dumps(path)[:SHOWN]}", code="bad-answer"
        )
    try:
        return open_made(Path(path) if path else output)
    except (ImageError, ValueError) as error:
        raise GeneratorError(
            f"the image {path} {error}{process.last_words()}", code="unreadable-image"
        ) from None


def without_secrets(printed: bytes) -> str:
    """Returns the end of a program's output, without secrets of the environment."""
    text = printed.decode("utf-8", "replace")
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= 8:
            text = text.replace(value, f"[{name}]")
    text = text.strip()[-SHOWN:]
    return f": {text}" if text else ""
