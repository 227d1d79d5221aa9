"""What ends a command, what the user is told, and with which exit code."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from counterprior import __version__
from counterprior.cli import console
from counterprior.errors import CounterpriorError, DataError, RunFailed, UsageError

COMMAND = str(Path(sys.executable).with_name("counterprior"))


def ended(work: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """The exit code that a command would end with, and what it would print on stderr."""
    with pytest.raises(SystemExit) as end, console.failing():
        work()
    return end.value.code, capsys.readouterr().err


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (RunFailed("no answer"), 1, "no answer"),
        (DataError("rows.csv:3: no `id`"), 2, "rows.csv:3: no `id`"),
        (UsageError("--seeds 5", remedy="give at most 4"), 2, "--seeds 5: give at most 4"),
        (KeyboardInterrupt(), 130, "interrupted; run the same command again to continue"),
    ],
)
def test_user_errors_are_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(raising(error), capsys) == (code, f"counterprior: {line}\n")


@pytest.mark.parametrize("error", [KeyError("boxes"), ValueError("boxes"), OSError("boxes")])
def test_a_bug_shows_its_traceback(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = ended(raising(error), capsys)
    assert code == 70
    assert printed.startswith("Traceback") and "in work" in printed and "boxes" in printed
    assert f"this is a bug in version {__version__}: please report it" in printed


def write_on_a_full_disk() -> None:
    Path("/dev/full").write_text("x")


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (lambda: Path("folder").read_text(), "folder: is a directory: name a file"),
        (lambda: Path("file/x").read_text(), "file/x: not a directory: name a folder"),
        (lambda: Path("folder").mkdir(), "folder: file exists: choose another path or remove it"),
        (lambda: Path("file").rename("folder"), "folder: is a directory: name a file"),
        (lambda: Path("n" * 300).touch(), f"{'n' * 300}: file name too long: choose a shorter"),
        (lambda: Path("absent").read_text(), "absent: no such file or directory: check the path"),
        (write_on_a_full_disk, "no space left on device: free some space and run the same command"),
    ],
    ids=["read-folder", "below-file", "in-the-way", "onto-folder", "long-name", "absent", "full"],
)
def test_a_failure_of_the_system_names_file_and_remedy(
    work: Callable[[], object],
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    code, printed = ended(work, capsys)
    assert code == 1
    assert printed.startswith(f"counterprior: {line}") and printed.count("\n") == 1


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_a_path_that_refuses_is_named(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = ended(raising(OSError(number, os.strerror(number), "out/run.json")), capsys)
    assert code == 1
    assert printed.startswith("counterprior: out/run.json: ") and "Traceback" not in printed


@pytest.mark.parametrize("word", ["{}", "folder:{}?x=1", "a={}", "--out={}"])
def test_a_missing_file_is_the_users_only_where_the_user_named_it(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "run" / "run.json"
    monkeypatch.setattr(sys, "argv", ["counterprior", "score", "elsewhere"])
    assert ended(missing.read_text, capsys)[0] == 70
    monkeypatch.setattr(sys, "argv", ["counterprior", "score", word.format(missing.parent)])
    code, printed = ended(missing.read_text, capsys)
    assert (code, "Traceback" in printed) == (1, False)
    assert f"{missing}: no such file or directory" in printed


def test_termination_counts_as_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    code, printed = ended(lambda: os.kill(os.getpid(), signal.SIGTERM), capsys)
    assert (code, "interrupted" in printed) == (130, True)
    assert signal.getsignal(signal.SIGTERM) is before


FORKS = """
import os, signal, sys, time
from counterprior.cli.console import failing

with failing():
    child = os.fork()
    if not child:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_worker_is_ended_without_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")


PRINTS = "from counterprior.cli.console import failing\nwith failing(): print('x', flush=True)"
POWER = ("study", "power", "--rate", "0.7", "--rate", "0.8", "--json")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param((sys.executable, "-c", PRINTS), id="a line"),
        pytest.param((COMMAND, *POWER), id="a command", marks=pytest.mark.slow),
    ],
)
def test_ignores_a_closed_pipe(command: tuple[str, ...]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, text=True)
    os.close(writes)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_broken_pipe_elsewhere_is_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    error = BrokenPipeError(errno.EPIPE, "Broken pipe")
    assert ended(raising(error), capsys)[0] == 70


def test_an_error_survives_pickling() -> None:
    import pickle

    error = CounterpriorError("out: is a file", remedy="name a folder")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "out: is a file: name a folder"


def test_long_names_in_a_table_are_folded_and_not_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    score_names = ("accuracy_unconditional", "accuracy_unconditional_if_seen")
    table = console.new_table("score", "value", numbers=["value"])
    for name in score_names:
        table.add_row(name, "38.3 (30.4 to 59.5)")
    console.console(width=40).print(table)
    printed = capsys.readouterr().out
    assert "…" not in printed
    lines = [line for line in printed.splitlines() if line.startswith("│")]
    cells = [line.split("│")[1].strip() for line in lines]
    assert "".join(cells) == "".join(score_names)
