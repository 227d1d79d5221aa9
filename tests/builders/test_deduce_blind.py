"""The sheet from which a reader deduces what an image shows, and its grading."""

import json
import sys
from pathlib import Path

import pytest
from small_worlds import write_bank, write_worlds

from counterprior.release import iter_records

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from deduce_blind import grade, sheet

POINTS = ("point", "logic")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the small bank."""
    root = tmp_path_factory.mktemp("deduced")
    return write_worlds(write_bank(root / "bank"), root / "release")


def answer(folder: Path, letters: dict[str, str] | None = None) -> Path:
    """Answers as the key has them, but for `letters` by item."""
    key = json.loads((folder / "key.json").read_text())
    said = {number: item["right"] for number, item in key.items()} | (letters or {})
    (folder / "answers.txt").write_text("".join(f"{n}: {told}\n" for n, told in said.items()))
    return folder / "answers.txt"


def test_the_sheet_shows_both_worlds_and_neither_key_nor_outcome(
    release: Path, tmp_path: Path
) -> None:
    sheet(release, tmp_path)
    text, key = (
        (tmp_path / "sheet.txt").read_text(),
        json.loads((tmp_path / "key.json").read_text()),
    )
    worlds = [(item["group"], item["world"]) for item in key.values()]
    groups = {group for group, _ in worlds}
    assert sorted(worlds) == sorted((g, w) for g in groups for w in ("altered", "real"))
    half = len(worlds) // 2
    assert {group for group, _ in worlds[:half]} == groups  # never side by side
    assert "should" not in text and "altered" not in text.replace("[", "")
    rows = {(row["group"], row["level"]): row for row in iter_records(release, "altered_worlds")}
    for number, item in key.items():  # presence, and the two questions of its world
        level, kind = {"real": ("L1", "factual"), "altered": ("L3", "counterfactual")}[
            item["world"]
        ]
        row = rows[item["group"], level]
        assert f"[{number}] {row['prompt']}\n" in text
        own = {row["presence"], *(row[f"{p}_{kind}"]["text"] for p in POINTS)}
        right = zip(item["questions"], item["right"], strict=True)
        assert {one for one, letter in right if letter == "y"} == own
        assert len(item["questions"]) == 5 and all(one in text for one in item["questions"])


def test_names_each_different_answer_with_its_reason(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet(release, tmp_path)
    assert grade(tmp_path, answer(tmp_path)) == 0
    item = json.loads((tmp_path / "key.json").read_text())["1"]
    wrong = ("n" if item["right"][0] == "y" else "y") + item["right"][1:4] + "?"
    assert grade(tmp_path, answer(tmp_path, {"1": f"{wrong} | the hour is not told"})) == 2
    told = capsys.readouterr().out
    assert f"{item['group']}, {item['world']}: {item['right'][4]} but ?" in told
    assert "the hour is not told" in told and "in 1 groups" in told


@pytest.mark.parametrize("letters", ["", "yyn", "yynnx", "yynnyy"])
def test_an_item_without_five_letters_ends_the_program(
    release: Path, tmp_path: Path, letters: str
) -> None:
    sheet(release, tmp_path)
    with pytest.raises(SystemExit, match="not an answer"):
        grade(tmp_path, answer(tmp_path, {"2": letters}))


def test_an_item_without_a_line_is_named(release: Path, tmp_path: Path) -> None:
    sheet(release, tmp_path)
    lines = answer(tmp_path).read_text().splitlines()
    (tmp_path / "answers.txt").write_text("\n".join(lines[1:]))
    with pytest.raises(SystemExit, match="no line for item 1 and 0 more"):
        grade(tmp_path, tmp_path / "answers.txt")


def test_a_list_of_groups_restricts_the_sheet(release: Path, tmp_path: Path) -> None:
    sheet(release, tmp_path / "all")
    group = json.loads((tmp_path / "all" / "key.json").read_text())["1"]["group"]
    sheet(release, tmp_path / "one", frozenset([group]))
    key = json.loads((tmp_path / "one" / "key.json").read_text())
    assert [item["group"] for item in key.values()] == [group, group]
