"""The shipped demonstration ledger rebuilds its bank through the command line."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import assert_refused

from counterprior.builders.constrained import read_pairs

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "agents" / "demo"
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


REPLAY = ("author", "constrained", "--replay", "--ledger", DEMO / "constrained.ledger.jsonl")


@pytest.fixture(scope="module")
def replayed(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bank of the demonstration; read only."""
    bank = tmp_path_factory.mktemp("demo") / "bank"
    done = cli(*REPLAY, "--bank", bank)
    assert done.returncode == 0, done.stderr
    assert "10 entries" in done.stdout and "scripted:" in done.stdout
    return bank


@pytest.mark.slow
def test_the_demonstration_is_rebuilt_to_the_same_bytes(
    cli: Cli, replayed: Path, tmp_path: Path
) -> None:
    first = files(replayed)
    for _ in range(2):  # anew, and over what is there
        assert cli(*REPLAY, "--bank", tmp_path / "bank").returncode == 0
        assert files(tmp_path / "bank") == first
    assert sum(map(len, read_pairs(replayed).values())) == 10
    rejected = [json.loads(content)["rejected"] for name, content in first.items() if "r0" in name]
    by = {r["by"] for round_ in rejected for r in round_}
    assert by == {"bank", "duplicate", "hygiene", "standard"}


def test_the_script_still_makes_the_demonstration(cli: Cli, replayed: Path, tmp_path: Path) -> None:
    # Mend with the two commands of agents/demo/README.md.
    script = f"scripted:{DEMO / 'constrained.script.json'}"
    live = ("--backend", script, "--ledger", "l.jsonl", "--rounds", "3", "--target", "12")
    live += ("--proposals", "20")
    done = cli("author", "constrained", *live, "--bank", "live", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for folder in ("constrained", "review"):
        assert files(tmp_path / "live" / folder) == files(replayed / folder)
    recorded, live_archive = files(replayed / "archive"), files(tmp_path / "live" / "archive")
    assert set(recorded) == set(live_archive)
    flags = 0
    for name, content in live_archive.items():
        round_ = json.loads(content)
        entries = round_["rejected"]
        round_["rejected"] = [r for r in entries if r["by"] != "critic"]
        flags += len(entries) - len(round_["rejected"])
        assert round_ == json.loads(recorded[name])
    assert flags == 1  # the recorded run is older than the entries for what the Critic flags
    ledger = (tmp_path / "l.jsonl").read_text()
    assert "the Critic: nothing fixes its layout" in ledger and "in earlier rounds" in ledger


@pytest.mark.slow
def test_errors_are_one_line_and_an_exit_code(cli: Cli, tmp_path: Path) -> None:
    missing = cli("author", "constrained", "--ledger", "l", "--bank", "b", cwd=tmp_path)
    assert_refused(missing, "missing-option", "--backend", "--replay")
    absent = cli("author", "constrained", "--replay", "--ledger", "l", "--bank", "b", cwd=tmp_path)
    assert_refused(absent, "no-such-file", "l: ", "--replay")
    options = ("--ledger", "l", "--bank", "b", "--backend", "openai:m@http://127.0.0.1:9/v1")
    capped = cli("author", "constrained", *options, "--max-usd", "1", cwd=tmp_path)
    assert_refused(capped, "no-price", "openai:m", "--max-usd", exit_code=1)
    gone = cli("author", "constrained", *options[:-1], options[-1] + "?attempts=1", cwd=tmp_path)
    assert_refused(gone, "server-unreachable", "1 attempts", exit_code=1)


@pytest.mark.slow
def test_a_release_of_another_bank_is_checked_against_that(
    replayed: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "release"
    build = ("build", "--bank", replayed, "--config", "t2i_correctness", "--out", out)
    assert cli(*build).returncode == 0
    # With --bank: `test_a_release_is_the_same_with_any_cache`.
    told = cli("validate", out)  # an entry of the shipped bank has the id of a written one
    assert told.returncode == 1 and "give it with --bank" in told.stdout
