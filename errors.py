"""What a user can mend: errors that carry their exit code; everything else is a bug.

The command line shows these as one line. Any other exception is a fault of the program and shows
its traceback.
"""

from __future__ import annotations

from typing import ClassVar


class CounterpriorError(Exception):
    """Something that a user can mend; the message says what and how."""

    exit_code: ClassVar[int] = 1
    """1: the thing that was checked or used is wrong; 2: the command was."""


class UsageError(CounterpriorError, ValueError):
    """An argument, option, spec or setting that can't be used."""

    exit_code = 2


class DataError(CounterpriorError, ValueError):
    """A file whose content can't be used; the message names file, row and field."""

    exit_code = 2


class InUseError(CounterpriorError, RuntimeError):
    """A folder or file that another process is writing."""


class RunFailed(CounterpriorError, RuntimeError):
    """Work that could not be done: a server, a model or a budget stood against it."""
