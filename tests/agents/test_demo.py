"""The shipped demonstration ledger rebuilds its bank through the command line."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from counterprior.builders.constrained import read_pairs

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "agents" / "demo"
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_demonstration_is_rebuilt_twice_to_the_same_bytes(cli: Cli, tmp_path: Path) -> None:
    ledger = DEMO / "constrained.ledger.jsonl"
    banks = []
    for name in ("one", "two", "one"):
        command = ("author", "constrained", "--replay", "--ledger", ledger, "--bank", name)
        done = cli(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "10 entries" in done.stdout and "scripted:" in done.stdout
        banks.append(files(tmp_path / name))
    assert banks[0] == banks[1] == banks[2]
    pairs = read_pairs(tmp_path / "one")
    assert sum(map(len, pairs.values())) == 10
    rejected = [
        json.loads(content)["rejected"] for name, content in banks[0].items() if "r0" in name
    ]
    by = {r["by"] for round_ in rejected for r in round_}
    assert by == {"bank", "duplicate", "hygiene", "standard"}


def test_the_script_still_makes_the_demonstration(cli: Cli, tmp_path: Path) -> None:
    # Mend with the two commands of agents/demo/README.md.
    script = f"scripted:{DEMO / 'constrained.script.json'}"
    live = ("--backend", script, "--ledger", "l.jsonl", "--rounds", "3", "--target", "12")
    replay = ("--replay", "--ledger", DEMO / "constrained.ledger.jsonl")
    for name, options in (("live", live), ("replayed", replay)):
        done = cli("author", "constrained", *options, "--bank", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    for folder in ("constrained", "archive", "review"):
        assert files(tmp_path / "live" / folder) == files(tmp_path / "replayed" / folder)


def test_errors_are_one_line_and_an_exit_code(cli: Cli, tmp_path: Path) -> None:
    missing = cli("author", "constrained", "--ledger", "l", "--bank", "b", cwd=tmp_path)
    assert missing.returncode == 2 and "name a --backend" in missing.stderr
    absent = cli("author", "constrained", "--replay", "--ledger", "l", "--bank", "b", cwd=tmp_path)
    assert absent.returncode == 2 and "no such ledger" in absent.stderr
    options = ("--ledger", "l", "--bank", "b", "--backend", "openai:m@http://127.0.0.1:9/v1")
    capped = cli("author", "constrained", *options, "--max-usd", "1", cwd=tmp_path)
    assert capped.returncode == 1 and "no price is known for openai:m" in capped.stderr
    gone = cli("author", "constrained", *options[:-1], options[-1] + "?attempts=1", cwd=tmp_path)
    assert gone.returncode == 1 and "gave up after 1 attempts" in gone.stderr


def test_a_release_of_another_bank_is_checked_against_that(tmp_path: Path, cli: Cli) -> None:
    replay = ("author", "constrained", "--replay", "--ledger", DEMO / "constrained.ledger.jsonl")
    assert cli(*replay, "--bank", tmp_path / "bank").returncode == 0
    out = tmp_path / "release"
    build = ("build", "--bank", tmp_path / "bank", "--config", "t2i_correctness", "--out", out)
    assert cli(*build).returncode == 0
    assert cli("validate", out, "--bank", tmp_path / "bank").returncode == 0
    told = cli("validate", out)  # an entry of the shipped bank has the id of a written one
    assert told.returncode == 1 and "give it with --bank" in told.stdout
