"""How long-running work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is in all.

The first report of a resumed stage may already be above 0.
"""


def silent(stage: str, done: int, total: int) -> None:
    """Reports to nobody."""
