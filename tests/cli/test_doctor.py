"""What `counterprior doctor` says of a machine."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import assert_refused

from counterprior.cli.doctor import doctor
from counterprior.eval.checkpoints import machine
from counterprior.eval.checkpoints.machine import examine_machine
from counterprior.extras import install_command

Run = Callable[..., subprocess.CompletedProcess[str]]
SECRET = "sk-very-secret-0123456789"


def test_specs_are_tried_and_no_key_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    doctor(["render:"], ["pixels", "openai:m"])
    with pytest.raises(SystemExit) as ended:
        doctor(["render:?order_bias=much"], ["anthropic:m"], json=True)
    assert ended.value.code == 1
    text, _, data = capsys.readouterr().out.partition("\n{")
    assert [line.split()[2] for line in text.splitlines() if line.startswith("spec:")] == [
        "opens"
    ] * 3
    told = json.loads("{" + data)
    assert told["keys"]["OPENAI_API_KEY"] and not told["keys"]["ANTHROPIC_API_KEY"]
    assert "order_bias" in told["specs"]["render:?order_bias=much"]
    assert "set ANTHROPIC_API_KEY" in told["specs"]["anthropic:m"]
    assert SECRET not in text + data


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    requires = ["numpy>=2", 'torch; extra == "models"', 'no-such-library>1; extra == "models"']
    monkeypatch.setattr(machine.metadata, "requires", lambda package: requires)
    found = examine_machine({})
    assert found.missing == {"models": ["no-such-library"]}
    assert found.extras["models"]["torch"]
    doctor()
    assert f"no-such-library missing; {install_command('models')}" in capsys.readouterr().out


def test_the_folder_and_the_machine_are_two_questions(tmp_path: Path, cli: Run) -> None:
    """What is about a folder needs one, and what is about the machine takes none."""
    for words in (("--worst",), ("--billed", "1"), ("--repair",)):
        assert_refused(cli("doctor", *words), "missing-option", words[0], "FOLDER")
    for words in (("--selftest",), ("--judge", "pixels")):
        assert_refused(cli("doctor", tmp_path, *words), "conflicting-options", words[0], tmp_path)
    assert_refused(cli("doctor", tmp_path / "gone"), "no-such-file", tmp_path / "gone")
