"""What a user can mend: errors that carry their exit code and their remedy.

The command line shows these as one line. Any other exception is a bug of the program and shows its
traceback.
"""

from __future__ import annotations

from typing import ClassVar


class CounterpriorError(Exception):
    """Something that a user can mend.

    >>> str(CounterpriorError("out: is a file", remedy="name a folder"))
    'out: is a file: name a folder'
    """

    exit_code: ClassVar[int] = 1
    """1: the thing that was checked or used is wrong; 2: the command was."""
    code: str = "failed"
    """Stable name of the problem, in kebab case: `unknown-option`, `duplicate-case-id`. Messages
    may be reworded; programs and tests match the code."""

    def __init__(self, message: str, remedy: str = "", *, code: str = "") -> None:
        """`remedy` says what to do, where the message does not say so already."""
        # `args` holds only the texts, and the instance its code: both survive pickling between
        # processes.
        super().__init__(*((message, remedy) if remedy else (message,)))
        if code:
            self.code = code

    def __str__(self) -> str:
        return ": ".join(self.args)


class UsageError(CounterpriorError, ValueError):
    """An argument, option, spec or setting that can't be used."""

    exit_code = 2
    code = "usage"


class DataError(CounterpriorError, ValueError):
    """A file whose content can't be used; the message names file, row and field."""

    exit_code = 2
    code = "data"


class InUseError(CounterpriorError, RuntimeError):
    """A folder or file that another process is writing."""

    code = "in-use"


class RunFailed(CounterpriorError, RuntimeError):
    """Work that could not be done: a server, a model or a budget stood against it."""

    code = "run-failed"
