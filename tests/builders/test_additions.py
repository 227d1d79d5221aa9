"""A bank that only grew: `docs/first-row.md` as written gives new rows and displaces none."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import raises

from counterprior.builders.bank import BankError
from counterprior.builders.bank_faults import bank_faults
from counterprior.builders.build import rebuilt
from counterprior.builders.suite import SHIPPED, Banks
from counterprior.builders.suites import SUITES

Cli = Callable[..., subprocess.CompletedProcess[str]]
PAGE = Path(__file__).parents[2] / "docs" / "first-row.md"
BLOCK = re.compile(r"to `mybank/([\w/]+\.yaml)`[^`]*?:\n\n```yaml\n(.*?)```", re.I | re.S)
ADDED = {
    "t2i_correctness": 1,
    "altered_worlds": 4,
    "counterfactual": 3,
    "rule_decoupling": 6,
    "t2i_homogenization": 44,
}
"""Config -> rows that the page's pair, group, rule and occupation give."""
DRAWN = ("t2i_correctness_gold", "altered_worlds_gold", "real_gold", "spatial_visor")
"""Configs that nothing on the page can change, and that take long."""


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the bank with the entries of the page."""
    root = Path(shutil.copytree(SHIPPED.root, tmp_path_factory.mktemp("bank") / "mybank"))
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(blocks) == 5
    for name, text in blocks:
        with (root / name).open("a", encoding="utf-8") as file:
            file.write(text)
    return root


def test_an_addition_displaces_no_row_of_any_config(bank: Path) -> None:
    before, after = rebuilt(None), rebuilt(bank)
    added = {}
    for config in SUITES:
        if config in DRAWN:
            continue
        old, new = before(config, 0) or [], after(config, 0) or []
        assert new[: len(old)] == old, config
        added[config] = len(new) - len(old)
        assert all(SUITES[config].beyond(row, Banks.at(bank)) for row in new[len(old) :])
    assert {config: count for config, count in added.items() if count} == ADDED


def test_rows_of_an_occupation_stay_when_another_joins(bank: Path, tmp_path: Path) -> None:
    grown = Path(shutil.copytree(bank, tmp_path / "grown"))
    with (grown / "occupations.yaml").open("a", encoding="utf-8") as file:
        file.write(
            "- {occupation: archer, plural: archers, category: services, look: 'bow in hand', "
            "soc_2018: null, soc_level: null, confusable: []}\n"
        )
    old, new = (rebuilt(root)("t2i_homogenization", 0) or [] for root in (bank, grown))
    kept = [row for row in new if "archer" not in row.prompt]  # type: ignore[attr-defined]
    assert kept == old and len(new) == len(old) + 44


def edited(bank: Path, root: Path, file: str, old: str, new: str) -> Path:
    """A copy of the bank in which one text of a file is another."""
    copy = Path(shutil.copytree(bank, root / "edited"))
    text = (copy / file).read_text("utf-8")
    assert text.count(old) == 1
    (copy / file).write_text(text.replace(old, new), encoding="utf-8")
    return copy


def test_validate_and_build_refuse_a_pair_of_a_full_family(
    bank: Path, tmp_path: Path, cli: Cli
) -> None:
    crowded = edited(
        bank, tmp_path, "constrained/keyboards.yaml", "qwerty-bottom-row  ", "qwerty  "
    )
    file = crowded / "constrained" / "keyboards.yaml"
    entry = file.read_text("utf-8").partition("- id: keyboards-z-m")
    second = entry[2].replace("Z", "X").replace("M", "N")
    file.write_text("".join(entry) + "- id: keyboards-x-n" + second, encoding="utf-8")
    fault = next(bank_faults(Banks(crowded)))
    assert "constrained/keyboards.yaml, keyboards-z-m: family: qwerty has 3 rows already" in fault
    out = ("--config", "t2i_correctness", "--bank", crowded, "--out", tmp_path / "out")
    built = cli("build", *out)
    assert built.returncode == 1 and "qwerty has 4 rows, at most 3" in built.stderr


def test_an_occupation_of_no_category_is_refused(bank: Path, tmp_path: Path) -> None:
    old = 'category: services\n  look: "white overalls'
    other = edited(bank, tmp_path, "occupations.yaml", old, old.replace("services", "hobbies"))
    with raises("unknown-name", "beekeeper", "'hobbies'", "services", error=BankError):
        _ = Banks(other).taxonomy


def test_without_a_frozen_draw_a_rule_too_many_is_refused_by_both(
    bank: Path, tmp_path: Path, cli: Cli
) -> None:
    copy = Path(shutil.copytree(bank, tmp_path / "copy"))
    (copy / "frozen.yaml").unlink()
    assert any("rules.yaml: has 34 rules" in fault for fault in bank_faults(Banks(copy)))
    built = cli("build", "--config", "rule_decoupling", "--bank", copy, "--out", tmp_path / "out")
    assert built.returncode == 1 and "34 rules, must be 198 on 33" in built.stderr


@pytest.mark.lane
def test_the_commands_of_the_page_make_a_minor(bank: Path, tmp_path: Path, cli: Cli) -> None:
    configs = [word for name in ADDED if name != "counterfactual" for word in ("--config", name)]
    for folder, options in (("old", ()), ("new", ("--bank", bank))):
        done = cli("build", *configs, *options, "--out", tmp_path / folder)
        assert done.returncode == 0, done.stderr
    checked = cli("validate", tmp_path / "new", "--bank", bank)
    assert checked.returncode == 0, checked.stderr
    said = cli("diff", tmp_path / "old", tmp_path / "new").stdout
    assert "0 published rows are displaced and 0 edited; the version bump is MINOR" in said
    assert "The Z key and the M key on a standard US QWERTY" in said
