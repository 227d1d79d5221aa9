"""What can go wrong in a run of the miner that a user can mend."""

from __future__ import annotations

from ..errors import RunFailed


class CorpusError(RunFailed):
    """Shown as one line; the message says what to do."""
