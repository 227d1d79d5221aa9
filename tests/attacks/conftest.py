"""What attacks are made of."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image


@pytest.fixture(scope="session")
def scan_bomb() -> bytes:
    """A progressive JPEG of 2,010 scans, most of them some ten bytes."""
    buffer = io.BytesIO()
    Image.effect_noise((256, 256), 40).convert("RGB").save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    last = data[data.rfind(b"\xff\xda") : -2]
    return data[:-2] + last * 2000 + b"\xff\xd9"


TRIED = pytest.StashKey[dict[str, list[int]]]()


@pytest.fixture
def survived(request: pytest.FixtureRequest) -> Callable[[str, bool], None]:
    """Notes an attack of a kind, and whether it was survived; all are printed at the end."""
    tried = request.config.stash.setdefault(TRIED, {})

    def note(kind: str, well: bool) -> None:
        counts = tried.setdefault(kind, [0, 0])
        counts[0] += 1
        counts[1] += well

    return note


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    tried = config.stash.get(TRIED, {})
    if tried:
        terminalreporter.section("attack -> tried -> survived")
        for kind, (count, well) in sorted(tried.items()):
            terminalreporter.write_line(f"{kind:<24} {count:>6} {well:>6}")
