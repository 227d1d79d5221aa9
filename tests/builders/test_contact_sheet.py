"""The contact sheet: what it prints of drawings with faults, and of names that nothing has."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from drawn_files import ALL, drawn

from counterprior.builders.bank import DEFAULT_BANK

TOOL = Path(__file__).parents[2] / "tools" / "contact_sheet.py"
FRANCE = "flags-and-heraldry-france-blue-red"


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """With one domain of depictions and no drawing of a world."""
    folder = tmp_path / "bank"
    shutil.copytree(DEFAULT_BANK, folder, ignore=shutil.ignore_patterns("*.svg"))
    for name in ("depictions", "world_drawings"):
        shutil.rmtree(folder / name)
    for name in ("flags_and_heraldry", "flags_and_heraldry.yaml"):
        source, copy = DEFAULT_BANK / "depictions" / name, folder / "depictions" / name
        copy.parent.mkdir(exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
    return folder


def sheet(bank: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, bank / "sheet.png", *names, "--bank", bank],
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_every_fault_is_printed_once(bank: Path) -> None:
    path = bank / "depictions" / "flags_and_heraldry" / "flag-france.svg"
    text = path.read_text()
    path.write_text(text.replace('label="white"', 'label="weiss"'))
    outcome = sheet(bank, FRANCE)
    assert outcome.returncode == 1 and outcome.stdout.count("\n") == 1
    assert outcome.stdout.startswith("depictions/flags_and_heraldry.yaml, flag-france: ")
    assert "'weiss'" in outcome.stdout and "blue, white, red" in outcome.stdout
    assert outcome.stderr == "no sheet: mend these faults first\n"


@pytest.mark.slow
def test_a_name_that_nothing_has_is_printed(bank: Path) -> None:
    outcome = sheet(bank, FRANCE, "flags-and-heraldry-atlantis")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines() == [
        "1 rows",
        "flags-and-heraldry-atlantis: no drawing has a file, pair or group of this name",
    ]
    assert (bank / "sheet.png").exists()


@pytest.mark.slow
def test_a_drawing_of_an_unknown_group_is_a_fault(bank: Path) -> None:
    folder = bank / "world_drawings"
    (folder / "all").mkdir(parents=True)
    (folder / "all.yaml").write_text("- group: nothing\n")
    box = f"<rect {ALL} fill='red'/>"
    (folder / "all" / "nothing.svg").write_text(drawn({"real": box}))
    outcome = sheet(bank, "nothing")
    assert outcome.stdout.splitlines() == [
        "world_drawings/all.yaml, nothing: group: is not a group of the bank",
        "0 rows",
    ]
