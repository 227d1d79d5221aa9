"""Retries: which failures pass by themselves, and how long to wait before the next attempt."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from .chat import BackendError, Permit, always

T = TypeVar("T")

RETRIED = frozenset({408, 409, 429, *range(500, 600)})
"""HTTP statuses that may pass: timeout, conflict, rate limit, server error (529 is overload)."""


class TransientError(Exception):
    """One attempt failed in a way that may pass."""

    def __init__(self, reason: str, retry_after: float | None = None, billed: bool = False) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        """Seconds that the server asks the client to wait."""
        self.billed = billed
        """Whether the server may have done the work: a timeout, a cut connection, torn JSON."""


class UnreadableError(TransientError):
    """An answer that arrived and was billed, but is not what an answer looks like."""

    def __init__(self, reason: str, retryable: bool = True) -> None:
        super().__init__(reason, billed=True)
        self.retryable = retryable
        """Whether asking again may help, as with an answer that was torn."""


class UnreadableAnswerError(BackendError):
    """The server answers, but not so that it can be read; the failure is this request's own."""


class GaveUpError(BackendError):
    """No attempt succeeded, and each failed in a way that may pass."""

    def __init__(
        self, message: str, lost_attempts: int = 0, attempts: int = 0, *, code: str = ""
    ) -> None:
        super().__init__(message, lost_attempts, code=code)
        self.attempts = attempts
        """Attempts that were made."""


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


@dataclass(frozen=True)
class RetryPolicy:
    """How often to try, and how long to wait in between."""

    attempts: int = 6
    """Attempts of a call before the run stops."""
    first_delay: float = 0.5
    """Seconds before the second attempt, doubled each time."""
    longest_delay: float = 60.0
    """Most seconds between two attempts, unless the server asks for more."""
    unreadable: int = 3
    """Answers that can't be read, after which it is the request's own failure."""
    longest_asked: float = 300.0
    """Longest retry-after, in seconds, that is honored; beyond it the run stops."""

    def run(self, attempt: Callable[[], T], permit: Permit = always) -> tuple[T, int]:
        """The attempt's result, and the number of earlier attempts that may have been billed.

        Raises UnreadableAnswerError if answers can't be read, else GaveUpError after the last
        attempt; and what `permit` raises.
        """
        lost = unreadable = 0
        for number in range(1, self.attempts + 1):
            try:
                return attempt(), lost
            except TransientError as error:
                lost += error.billed
                if isinstance(error, UnreadableError):
                    unreadable += 1
                    if not error.retryable or unreadable == self.unreadable:
                        raise UnreadableAnswerError(
                            str(error), lost_attempts=lost, code="bad-answer"
                        ) from None
                requested = error.retry_after or 0.0
                if number == self.attempts or requested > self.longest_asked:
                    bill = f"; {lost} attempts may have been billed" if lost else ""
                    gave_up = f"gave up after {number} attempts: {error}{bill}"
                    raise GaveUpError(gave_up, lost, number, code="server-unreachable") from None
                if error.billed:
                    permit()
                _sleep(max(requested, self._backoff(number)))
        raise ValueError("a retry policy needs at least one attempt")

    def _backoff(self, number: int) -> float:
        # Jitter keeps parallel callers from coming back together; it changes no result.
        delay = self.first_delay * 2.0 ** (number - 1)
        return min(delay, self.longest_delay) * random.uniform(0.75, 1.0)
