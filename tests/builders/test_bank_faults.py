"""Faults that `validate --bank` finds in texts and gold layouts, planted one at a time."""

import json
import shutil
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.bank_faults import PARTS, bank_faults, layout_faults
from counterprior.builders.depictions import Drawable
from counterprior.builders.suite import SHIPPED, Banks
from counterprior.cli.release import validate

FRANCE = "flags-and-heraldry-france-blue-red"


def bank_with(**tables: Any) -> Banks:
    """The shipped bank with other pairs, laws or drawables; none of those that are not named."""
    banks = Banks(DEFAULT_BANK)
    read = {name: getattr(SHIPPED, name) for name in PARTS}
    banks.__dict__.update(read | {"pairs": {}, "laws": {}, "drawables": {}} | tables)
    return banks


@pytest.mark.slow
def test_shipped_bank_has_no_faults() -> None:
    assert list(bank_faults(SHIPPED)) == []


@pytest.mark.parametrize(
    ("field", "text", "fault"),
    [
        ("left", "the \u0430 key", "CYRILLIC"),
        ("right", "the\u200b key", "U+200B"),
        ("context", "x" * 161, "161 characters"),
        ("rationale", "le\u00adft", "U+00AD"),
        ("tell_left", "x" * 301, "301 characters"),
        ("tell_right", "a\nkey", "one line"),
        ("scope", "", "one line"),
    ],
)
def test_names_the_text_of_a_pair(field: str, text: str, fault: str) -> None:
    pair = SHIPPED.drawables[FRANCE].pair.model_copy(update={field: text})
    (named,) = bank_faults(bank_with(pairs={"flags": [pair]}))
    assert named.startswith(f"constrained/flags.yaml, {FRANCE}, {field}: ") and fault in named


@pytest.mark.parametrize("field", ["scene", "factual", "counterfactual", "point_factual"])
def test_names_the_text_of_a_scene(field: str) -> None:
    file, law = next((file, laws[0]) for file, laws in SHIPPED.laws.items())
    scene = law.scenes[0].model_copy(update={field: "a  ball"})
    bad = law.model_copy(update={"scenes": [scene]})
    (named,) = bank_faults(bank_with(laws={file: [bad]}))
    assert named.startswith(f"counterfactual/{file}.yaml, {scene.id}, {field}: ")


@dataclass(frozen=True)
class Misdrawn(Drawable):
    """Draws one layout in place of another."""

    layout: Any = ""
    drawn: Any = ""

    def image(self, layout: Any, style: Any, seed: int) -> Any:
        return super().image(self.drawn if layout == self.layout else layout, style, seed)


@pytest.mark.parametrize(
    ("layout", "drawn", "fault"),
    [
        ("right", "swapped", "must be left of"),
        ("right", "missing", "must show each thing once"),
        ("swapped", "right", "must be left of"),
        ("swapped", "doubled", "must show each thing once"),
        ("missing", "right", "shows the two things [1, 1] times, not [0, 1]"),
        ("doubled", "right", "shows the two things [1, 1] times, not [1, 2]"),
        ("above", "right", "one thing must be above the other"),
        ("above", "missing", "must show each thing once"),
    ],
)
def test_names_the_layout_of_a_gold_image(layout: str, drawn: str, fault: str) -> None:
    right = SHIPPED.drawables[FRANCE]
    assert not list(layout_faults(right))
    values = {field.name: getattr(right, field.name) for field in fields(right)}
    wrong = Misdrawn(**values, layout=layout, drawn=drawn)
    (named,) = bank_faults(bank_with(drawables={FRANCE: wrong}))
    assert named.startswith(f"{right.entry}, {FRANCE}: {layout}: ") and fault in named


def edited(bank: Path, file: str, old: str, new: str) -> None:
    text = (bank / file).read_text(encoding="utf-8")
    assert old in text
    (bank / file).write_text(text.replace(old, new, 1), encoding="utf-8")


def test_all_faults_of_a_bank_are_named_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several files and entries, by the command, and before a gold image is drawn."""
    bank = tmp_path / "bank"
    shutil.copytree(DEFAULT_BANK, bank)
    pairs = sorted((bank / "constrained").glob("*.yaml"))[:2]
    for path in pairs:
        edited(bank, f"constrained/{path.name}", "context:", "contextt:")
    text = pairs[0].read_text(encoding="utf-8")
    pairs[0].write_text(text + text[text.rindex("\n- ") + 1 :], encoding="utf-8")
    laws = min((bank / "counterfactual").glob("*.yaml"))
    edited(bank, f"counterfactual/{laws.name}", 'altered: "', 'altered: " ')
    edited(bank, "rules.yaml", "- id:", "- name:")
    with (
        patch("counterprior.builders.census.drawn_rows", side_effect=AssertionError("drawn")),
        pytest.raises(SystemExit),
    ):
        validate(None, bank=bank, json=True)
    faults = "\n".join(json.loads(capsys.readouterr().out)["faults"])
    for path in pairs:
        assert f"{path}, entry 1 (" in faults
    assert "is used twice" in faults
    assert f"{laws}, " in faults and "rules.yaml, entry 1 " in faults


@pytest.mark.parametrize("as_json", [False, True])
def test_command_says_that_there_is_no_fault(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        patch("counterprior.builders.bank_faults.bank_faults", return_value=[]),
        patch("counterprior.builders.census.worlds_census"),
        patch("counterprior.builders.census.bank_census"),
        patch("counterprior.cli.release.print_census"),
    ):
        validate(None, json=as_json)
    assert ("the shipped bank: no fault" in capsys.readouterr().err) is not as_json


@pytest.mark.parametrize("as_json", [False, True])
def test_command_names_faults_and_exits_with_1(
    as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = SHIPPED.drawables[FRANCE].pair.model_copy(update={"left": "a  key"})
    pairs = SHIPPED.pairs | {"flags_and_heraldry": [pair]}
    monkeypatch.setitem(SHIPPED.__dict__, "pairs", pairs)
    for table in ("drawables", "world_looks"):
        monkeypatch.setitem(SHIPPED.__dict__, table, {})
    with pytest.raises(SystemExit) as ended:
        validate(None, json=as_json)
    printed = capsys.readouterr()
    assert ended.value.code == 1
    named = f"constrained/flags_and_heraldry.yaml, {FRANCE}, left: is not one line"
    assert named in printed.err and (named in printed.out) == as_json
