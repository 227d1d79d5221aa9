"""Helpers of all commands: errors with their exit codes, notes, and tables."""

from __future__ import annotations

import errno
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
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from .. import __version__
from ..errors import GENERIC, CounterpriorError
from ..printable import printable, unwrapped, wrapped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STDOUT = 1

WRONG = 1
USAGE = 2
UNPROVEN = 3
"""Nothing wrong was seen, and what would show that all is right is missing: a digest from outside
of a release, or rows of a comparison."""
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
"""Remedies for failures of the operating system; a missing file is handled in `_mendable`."""

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
    with printing():
        yield from _failing()


@contextmanager
def printing() -> Iterator[None]:
    """Within it, everything that is printed is `printable`; only our own tables have colors."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast(Any, (wrapped(streams[0]), wrapped(streams[1])))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _failing() -> Iterator[None]:
    try:
        with _terminable():
            yield
            if sys.stdout is not None:  # closed by the parent process
                sys.stdout.flush()
    except KeyboardInterrupt:
        _stop("interrupted; run the same command again to continue", INTERRUPTED)
    except CounterpriorError as error:
        _stop(_with_code(error), error.exit_code)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _reader_has_gone():
            _end_quietly()
        if isinstance(error, OSError) and (mended := _mendable(error)):
            _discard_output()
            sys.unraisablehook = _ignore_os_errors
            _stop(str(mended), mended.exit_code)
        if isinstance(error, MemoryError):
            _stop(f"out of memory: {REMEDIES[errno.ENOMEM]}", WRONG)
        traceback.print_exc()
        _stop(f"this is a bug in version {__version__}: please report it with the lines above", BUG)


def _with_code(error: CounterpriorError) -> str:
    """Returns the message, followed by the code in brackets unless the code is generic."""
    return str(error) if error.code in GENERIC else f"{error} [{error.code}]"


def print_note(text: str) -> None:
    """Prints what a reader should know though nothing is wrong; on stderr, beside the results."""
    from ..specs import without_secrets

    print(f"counterprior: {without_secrets(text)}", file=sys.stderr)


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
    """Returns the error with a remedy; None for an error that only a bug causes."""
    path, remedy = error.filename2 or error.filename, REMEDIES.get(error.errno or 0, "")
    reason = (error.strerror or "").lower()
    if path is None:
        error_without_file = CounterpriorError(reason, remedy, code="system-error")
        return error_without_file if error.errno in WITHOUT_FILE else None
    file = Path(os.fsdecode(path))
    if error.errno == errno.ENOENT and _named(file):
        remedy = "check the path"
    return CounterpriorError(f"{file}: {reason}", remedy, code="system-error") if remedy else None


def _ignore_os_errors(unraisable: Any) -> None:
    """Ignores the OSErrors of destructors: the command's error already reports the full disk."""
    if not issubclass(unraisable.exc_type, OSError):
        sys.__unraisablehook__(unraisable)


def _named(file: Path) -> bool:
    """Whether a missing file is one that the user named: a relative path, or below an argument."""
    words = {piece for word in sys.argv[1:] for piece in re.split("[=:?@]", word) if piece}
    named = {Path(word).absolute() for word in words}
    return not file.is_absolute() or not named.isdisjoint((file, *file.parents))


def _reader_has_gone() -> bool:
    """Whether the reader of stdout has gone."""
    poll = select.poll()
    poll.register(STDOUT, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _end_quietly() -> NoReturn:
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


def new_table(*titles: str, numbers: Collection[str] = (), title: str = "") -> Table:
    """Returns an empty table; the columns named in `numbers` are aligned to the right.

    Long names are folded, as two of them could begin alike.
    """
    from rich.table import Table

    table = Table(title=title)
    for name in titles:
        justify: Literal["left", "right"] = "right" if name in numbers else "left"
        table.add_column(name, justify=justify, overflow="fold")
    return table


def console(width: int) -> Console:
    """Console that is as wide as the terminal, or has `width` columns without one."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return safe_console(width=None if terminal else width)


def safe_console(stderr: bool = False, width: int | None = None) -> Console:
    """Console on which texts of strangers are texts: no markup, no emoji, no escapes."""
    from rich.console import Console
    from rich.text import Text

    class Safe(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            options |= {"emoji": False, "markup": False}
            return super().render_str(printable(text), **options)

    stream = sys.stderr if stderr else sys.stdout
    file = None if stream is None else unwrapped(stream)
    return Safe(file=file, width=width, emoji=False, markup=False)
