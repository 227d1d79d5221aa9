"""What all commands share: errors with their exit codes, notes, and tables."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import select
import signal
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .. import __version__
from ..errors import GENERIC, CounterpriorError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STDOUT = 1

WRONG = 1
USAGE = 2
BUG = 70
"""EX_SOFTWARE of sysexits.h."""
INTERRUPTED = 130

REMEDIES = {
    errno.ENOSPC: "free some space and run the same command again",
    errno.EDQUOT: "free some space and run the same command again",
    errno.EROFS: "choose a folder that can be written",
    errno.EACCES: "change its permissions or choose another path",
    errno.EPERM: "change its permissions or choose another path",
    errno.EISDIR: "name a file",
    errno.ENOTDIR: "name a folder",
    errno.EEXIST: "choose another path or remove it",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EADDRINUSE: "choose another port",
    errno.EFBIG: "choose a disk that holds larger files, or raise `ulimit -f`",
    errno.EIO: "check the disk and run the same command again",
    errno.ELOOP: "remove the loop of links",
    errno.EMFILE: "raise `ulimit -n` and run the same command again",
    errno.ENFILE: "close other programs and run the same command again",
    errno.ENOMEM: "free some memory and run the same command again",
    errno.EBADF: "give the command a place to write to",
}
"""What a user does about a failure of the operating system; a missing file is judged apart."""

WITHOUT_FILE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EADDRINUSE, errno.EFBIG, errno.EIO, errno.EMFILE),
    *(errno.ENFILE, errno.ENOMEM, errno.EBADF),
}
"""Failures that a user can mend though the error names no file."""


@contextmanager
def failing() -> Iterator[None]:
    """Ends the command as its error asks: exit codes 1, 2, 70 for a bug and 130 for an interrupt.

    SIGTERM counts as an interrupt. A reader of stdout that has gone ends the command quietly, with
    exit code 1.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # half an emoji of a model is shown as its escape
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _terminable():
            yield
            if sys.stdout is not None:  # closed by who started the command
                sys.stdout.flush()
    except KeyboardInterrupt:
        _stop("interrupted; run the same command again to continue", INTERRUPTED)
    except CounterpriorError as error:
        _stop(_with_code(error), error.exit_code)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _unread():
            _quiet()
        if isinstance(error, OSError) and (mended := _mendable(error)):
            _discard_output()
            sys.unraisablehook = _unless_told
            _stop(str(mended), mended.exit_code)
        if isinstance(error, MemoryError):
            _stop(f"out of memory: {REMEDIES[errno.ENOMEM]}", WRONG)
        traceback.print_exc()
        _stop(f"this is a bug in version {__version__}: please report it with the lines above", BUG)


def _with_code(error: CounterpriorError) -> str:
    """The message, with the error's code in brackets where it has one of its own."""
    return str(error) if error.code in GENERIC else f"{error} [{error.code}]"


def print_note(text: str) -> None:
    """Prints what a reader should know though nothing is wrong; on stderr, beside the results."""
    print(f"counterprior: {text}", file=sys.stderr)


def _stop(message: str, code: int) -> NoReturn:
    print_note(message)
    raise SystemExit(code)


@contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM raise KeyboardInterrupt in this process, but not in one forked from it."""
    here = os.getpid()

    def stop(number: int, frame: object) -> None:
        if os.getpid() == here:
            raise KeyboardInterrupt
        os._exit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _mendable(error: OSError) -> CounterpriorError | None:
    """The error as a user can mend it; None for one that only a bug causes."""
    path, remedy = error.filename2 or error.filename, REMEDIES.get(error.errno or 0, "")
    reason = (error.strerror or "").lower()
    if path is None:
        error_without_file = CounterpriorError(reason, remedy, code="system-error")
        return error_without_file if error.errno in WITHOUT_FILE else None
    file = Path(os.fsdecode(path))
    if error.errno == errno.ENOENT and _named(file):
        remedy = "check the path"
    return CounterpriorError(f"{file}: {reason}", remedy, code="system-error") if remedy else None


def _unless_told(unraisable: Any) -> None:
    """What a destructor can't write to a full disk is told by the command's own error."""
    if not issubclass(unraisable.exc_type, OSError):
        sys.__unraisablehook__(unraisable)


def _named(file: Path) -> bool:
    """Whether a missing file is one that the user named: a relative path, or below an argument."""
    words = {part for word in sys.argv[1:] for part in re.split("[=:?@]", word) if part}
    named = {Path(word).absolute() for word in words}
    return not file.is_absolute() or not named.isdisjoint((file, *file.parents))


def _unread() -> bool:
    """Whether the reader of stdout has gone."""
    poll = select.poll()
    poll.register(STDOUT, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _quiet() -> NoReturn:
    _discard_output()
    raise SystemExit(WRONG)


def _discard_output() -> None:
    """Drops what can't be written: it would fail again, with a complaint, when Python ends."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def print_json(value: Any) -> None:
    """Prints a value as indented JSON, for a machine to read."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(*titles: str, numbers: Collection[str] = (), title: str = "") -> Table:
    """An empty table; the columns named in `numbers` are aligned to the right."""
    from rich.table import Table

    made = Table(title=title)
    for name in titles:
        made.add_column(name, justify="right" if name in numbers else "left")
    return made


def console(width: int) -> Console:
    """Where tables are printed: as wide as the terminal, or `width` columns where there is none."""
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    return Console(width=None if terminal else width)
