"""A server that is down is left alone, not asked thousands of times."""

from __future__ import annotations

from .chat import BackendError, ChatBackend, ChatRequest, Completion, Permit, always

PATIENCE = 8
"""Calls in a row that a server may fail, each after its retries, before it is left alone."""


class Fuse:
    """A backend that stops asking a server which has failed `PATIENCE` calls in a row.

    Else a run of thousands of questions waits for thousands of time-outs.
    """

    def __init__(self, backend: ChatBackend) -> None:
        self._backend = backend
        self._failed = 0

    def identity(self) -> dict[str, str]:
        return self._backend.identity()

    def check(self) -> int:
        return self._backend.check()

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        if self._failed >= PATIENCE:
            raise BackendError(
                f"not asked: the server failed {PATIENCE} calls in a row", code="server-unreachable"
            )
        try:
            completion = self._backend.complete(request, permit)
        except BackendError:
            self._failed += 1
            raise
        self._failed = 0
        return completion
