"""`command`: a program of the user's own that makes one image.

``command:./draw.sh {prompt} {seed} {output}?timeout=600``; an edit has ``{source}`` too. The words
are split as a shell would, and each placeholder is filled inside its word: no shell reads a prompt.
Options come after the first ``?``. Keys belong into the environment: the command is recorded.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from PIL.Image import Image

from ...errors import UsageError
from ...images import ImageError, open_image, plain_png
from ...specs import Spec
from ..checkpoints.extras import SpecAdapter
from ..core import GeneratorError, ImageRequest

DECLINED = 77
"""Exit status by which a command says that its model declined the request."""

SHOWN = 2000
"""Characters of a command's last words that an error quotes."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


class CommandGenerator(SpecAdapter):
    """Runs the command once an image."""

    def __init__(self, spec: Spec) -> None:
        """Raises UsageError for a command that can't be run or doesn't say where things go."""
        if unknown := set(spec.options) - {"timeout"}:
            raise UsageError(f"command: no option {sorted(unknown)[0]!r}")
        try:
            # Program and arguments, with placeholders.
            self._words = shlex.split(spec.argument)
            # Seconds before the command, and all that it started, is killed.
            self._timeout = float(spec.options.get("timeout", 600.0))
        except ValueError as error:
            raise UsageError(f"command: {spec.argument!r}: {error}") from None
        if not 0 < self._timeout < math.inf:
            raise UsageError("command: timeout is a number of seconds above 0")
        self._fields = {name for word in self._words for name in _PLACEHOLDER.findall(word)}
        if unknown := self._fields - {"prompt", "seed", "source", "output"}:
            raise UsageError(f"command: no placeholder {{{sorted(unknown)[0]}}}")
        if missing := {"prompt", "output"} - self._fields:
            raise UsageError(f"command: write {{{sorted(missing)[0]}}} where it belongs")
        if shutil.which(self._words[0]) is None:
            raise UsageError(f"command: {self._words[0]!r} is no program")

    def identity(self) -> dict[str, str]:
        """The command, and the digest of the files that it names: a changed script is another."""
        digest = hashlib.sha256()
        for word in self._words:
            # A program that is found on the path is not looked into: it is the system's.
            if (path := Path(word)).is_file() and (path.suffix or os.sep in word):
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        command = shlex.join(self._words)
        return {"kind": "command", "command": command, "files": digest.hexdigest()[:16]}

    def generate(self, request: ImageRequest) -> Image:
        if (request.source is not None) != ("source" in self._fields):
            needs = "has no {source}, and this is an edit" if request.source else "needs a source"
            raise GeneratorError(f"the command {needs}")
        with TemporaryDirectory(prefix="counterprior-") as name:
            folder = Path(name)
            output, source = folder / "output.png", folder / "source.png"
            if request.source is not None:
                source.write_bytes(plain_png(request.source))
            values = {"prompt": request.prompt, "seed": str(request.seed)}
            values |= {"source": str(source), "output": str(output)}
            # In one pass: a value is never read for placeholders itself.
            words = [_PLACEHOLDER.sub(lambda m: values[m[1]], word) for word in self._words]
            with (folder / "said").open("w+b") as said:
                status = _run(words, self._timeout, said)
                if status:
                    killed = f"was killed by {signal.Signals(-status).name}" if status < 0 else ""
                    ended = killed or f"ended with status {status}"
                    message = f"the command {ended}{_last_words(said)}"
                    raise GeneratorError(message, "refused" if status == DECLINED else "error")
                try:
                    return open_image(output)
                except ImageError as error:
                    raise GeneratorError(f"the image {error}{_last_words(said)}") from None


def _run(words: Sequence[str], timeout: float, said: IO[bytes]) -> int:
    """The exit status; below 0 the signal. Raises GeneratorError where it can't start or end."""
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
    except (OSError, ValueError) as error:  # ValueError: a prompt with a NUL
        raise GeneratorError(f"the command can't be started: {error}") from None
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        message = f"the command took more than {timeout:g} s{_last_words(said)}"
        raise GeneratorError(message) from None
    finally:
        if process.poll() is None:  # too long, or we are interrupted
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _last_words(said: IO[bytes]) -> str:
    """The end of what the command printed, without what the environment keeps secret."""
    end = said.seek(0, os.SEEK_END)
    said.seek(max(0, end - 4 * SHOWN))
    text = said.read().decode("utf-8", "replace")
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= 8:
            text = text.replace(value, f"[{name}]")
    text = text.strip()[-SHOWN:]
    return f": {text}" if text else ""
