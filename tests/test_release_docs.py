"""docs/release.md is run: its commands here and on a loopback Hub, its Python, its table."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback_hub import LoopbackHub
from refusals import codes_of

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.holdout import MAKE_SALT

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "release.md").read_text()
CONSOLE = "\n".join(re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL))
COMMANDS = [
    shlex.split(line, comments=True)
    for line in re.findall(r"^\$ counterprior (.*)$", CONSOLE, re.MULTILINE)
]
SMALL = ["--config", "rule_decoupling", "--config", "t2i_correctness"]
REPOSITORY = "tester/bench"
DEMO = """
from PIL import Image

def white():
    return lambda prompt, seed: Image.new("RGB", (16, 16), "white")

def first():
    return lambda question: question.labels[0]
"""
DEMO_RUN = shlex.split(
    "eval --suite t2i_correctness --limit 2 --generator python:demo:white "
    "--judge python:demo:first --out runs/demo"
)

Run = Callable[..., subprocess.CompletedProcess[str]]


def on_the_hub(words: list[str]) -> bool:
    return words[0] == "push" or words[:2] == ["verify", "NAMESPACE/NAME"]


@pytest.mark.lane  # which `.ci/run` runs
def test_the_commands_run(tmp_path: Path, cli: Run) -> None:
    assert {words[0] for words in COMMANDS} == {
        "build",
        "validate",
        "diff",
        "push",
        "verify",
        "report",
    }
    shutil.copytree(DEFAULT_BANK, tmp_path / "mybank")
    salt = MAKE_SALT.replace("python", shlex.quote(sys.executable), 1)
    assert f"$ {MAKE_SALT}\n" in CONSOLE
    subprocess.run(salt, shell=True, cwd=tmp_path, check=True)
    for words in COMMANDS:
        if on_the_hub(words) or "--baselines" in words:  # of a published study: test_card.py
            continue
        if words[0] == "build":  # the whole release is built once, by its fixture
            words = [*words, *SMALL]
        if words[0] == "diff":
            shutil.copytree(tmp_path / "dist" / "counterprior", tmp_path / "dist" / "published")
        if words[0] == "report":
            (tmp_path / "demo.py").write_text(DEMO)
            made = cli(*DEMO_RUN, cwd=tmp_path)
            assert made.returncode == 0, made.stderr
            words = [word.replace("NAMESPACE/NAME", REPOSITORY) for word in words]
        done = cli(*words, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert "anybody can rebuild" not in done.stderr, "the bank is not the shipped one"


@pytest.mark.lane  # `test_release_flow` pushes and verifies by command too
def test_the_commands_and_the_python_run_on_a_hub(
    tmp_path: Path, cli: Run, loopback_hub: LoopbackHub
) -> None:
    hub = loopback_hub
    built = cli("build", "--out", tmp_path / "dist" / "counterprior", *SMALL)
    assert built.returncode == 0, built.stderr
    key = tmp_path / "key"
    if signs := shutil.which("ssh-keygen") is not None:
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(make, check=True)
        public = key.with_suffix(".pub").read_text()
        (tmp_path / "signers").write_text(f"maintainer {public}")
    for words in filter(on_the_hub, COMMANDS):
        if not signs and {"--sign", "--signed-by"} & {*words}:
            continue
        here = [word.replace("NAMESPACE/NAME", REPOSITORY) for word in words]
        here = [word.replace("~/.ssh/id_ed25519", str(key)) for word in here]
        done = cli(*here, cwd=tmp_path, env=hub.environment)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    code = code.replace("NAMESPACE/NAME", REPOSITORY) + "\nassert len(pairs) == 418"
    subprocess.run([sys.executable, "-c", code], env=hub.environment, cwd=tmp_path, check=True)


def test_every_refusal_is_explained() -> None:
    table = TEXT.partition("## What a refusal means")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+`) \| [^|]*\w[^|]* \|$", table, re.MULTILINE)
    told = [code for cell in cells for code in re.findall(r"`([\w-]+)`", cell)]
    refusals = set()
    for file in (ROOT / "cards").glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "HubError":
                refusals |= codes_of(call)
    assert sorted(told) == sorted(refusals)
