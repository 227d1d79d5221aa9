"""Progress tells done, total, rate and time left, and a resumed stage does not distort them."""

import os
import pty
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterprior.cli import progress
from counterprior.cli.progress import Pace, plain_lines


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A time that tests set."""
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


def test_lines_come_each_tenth_and_after_a_silent_minute(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    show = plain_lines()
    for done in range(1701):
        clock[0] = done / 3.1
        show("images", done, 1700)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["images: 0/1700", "images: 170/1700, 3.1/s, 8 min left"]
    assert lines[-1] == "images: 1700/1700, 3.1/s"
    assert len(lines) == 11

    for done in range(4):
        clock[0] += 45
        show("verdicts", done, 10_000)
    assert capsys.readouterr().err.splitlines() == [
        "verdicts: 0/10000",
        "verdicts: 2/10000, 1.3/min, 5 d 5 h left",
    ]


def test_resumed_items_do_not_count_toward_the_rate(clock: list[float]) -> None:
    assert Pace(done=900, now=0).text(done=900, total=1000, now=60) == ""
    ran_through = Pace(done=1, now=0)
    for done in range(900):
        ran_through.report(done + 1, now=done / 1000)
    for done in range(901, 911):
        ran_through.report(done, now=10.0 * (done - 900))
    assert ran_through.text(done=910, total=1000, now=100) == "6.1/min, 15 min left"


def test_the_rate_is_that_of_the_last_minute() -> None:
    slowed = Pace(done=0, now=0)
    for second in range(1, 100):
        slowed.report(10 * second, now=second)
    for second in range(100, 200):
        slowed.report(990 + second - 99, now=second)
    assert slowed.text(done=1090, total=1150, now=199) == "1.0/s, 1 min left"


def test_a_stage_that_starts_again_has_a_new_rate() -> None:
    pace = Pace(done=0, now=0)
    for second in range(10):
        pace.report(100 * second, now=second)
    pace.report(0, now=10)
    assert pace.text(done=0, total=900, now=10) == ""
    pace.report(5, now=15)
    assert pace.text(done=5, total=905, now=15) == "1.0/s, 15 min left"


@given(
    steps=st.lists(st.tuples(st.integers(0, 50), st.floats(0, 100)), min_size=1),
    first=st.integers(0, 1000),
)
def test_rate_never_exceeds_the_items_done(steps: list[tuple[int, float]], first: int) -> None:
    now, done, pace, fastest = 0.0, first, Pace(first, 0), 0.0
    for more, seconds in steps:
        now, done = now + seconds, done + more
        pace.report(done, now)
        text = pace.text(done, total=done + 10, now=now)
        if text:
            rate, unit = text.split(",")[0].split("/")
            fastest = max(fastest, float(rate) / (60 if unit == "min" else 1))
    assert fastest <= max(0.1, done - first) + 0.05


SHOWS = """
from counterprior.cli import progress

seconds = iter((0, 0.7, 1.4, 2.1))
progress.monotonic = lambda: next(seconds)
with progress.progress_bar() as show:
    for done in range(4):
        show("images", 100 + done, 103)
"""


def test_a_terminal_gets_a_bar() -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", SHOWS], stderr=follower, env=environment, check=True)
    printed = os.read(leader, 100_000).decode()
    os.close(leader)
    os.close(follower)
    last = printed.split("images")[-1]
    assert "━" in last and "103/103" in last and "/s" in last
