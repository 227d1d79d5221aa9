"""Errors that stop a run of the miner."""

from __future__ import annotations

from ..errors import RunFailed


class CorpusError(RunFailed):
    """A run that can't continue; the message says what to do."""
