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


ATTACK = "attack"
"""Name of a property of a report: a kind of attack, and whether it was survived."""


@pytest.fixture
def survived(request: pytest.FixtureRequest) -> Callable[[str, bool], None]:
    """Notes an attack of a kind, and whether it was survived; all are printed at the end."""

    def note(kind: str, well: bool) -> None:
        request.node.user_properties.append((ATTACK, (kind, well)))

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what was tried; a test that notes nothing is one attack, named by its file."""
    tried: dict[str, list[int]] = {}
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        folder, _, file = report.nodeid.partition("::")[0].rpartition("/")
        if report.when != "call" or not folder.endswith("attacks"):
            continue
        noted = [value for name, value in report.user_properties if name == ATTACK]
        name = file.removeprefix("test_").removesuffix(".py").replace("_", " ")
        for kind, well in noted or [(name, report.passed)]:
            counts = tried.setdefault(kind, [0, 0])
            counts[0] += 1
            counts[1] += well
    if tried:
        terminalreporter.section("attack -> tried -> survived")
        for kind, (count, well) in sorted(tried.items()):
            terminalreporter.write_line(f"{kind:<40} {count:>6} {well:>6}")
