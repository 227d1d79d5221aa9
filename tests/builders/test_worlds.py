"""The second edition of the altered worlds: what ships is right, and each fault is named."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK, BankError
from counterprior.builders.clip import clip_length
from counterprior.builders.counterfactual import CounterfactualScene, Law
from counterprior.builders.lemmas import content, lemma, synonyms
from counterprior.builders.likeness import nearest
from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites import counterfactual_denominalized
from counterprior.builders.suites.counterfactual import groups
from counterprior.builders.worlds import (
    TOKENS,
    WorldEntry,
    entry_faults,
    naming,
    real_law_prompt,
    time_clause,
    world_prompts,
)
from counterprior.builders.worlds_report import sheets, worlds_files

GUIDE = Path(__file__).parents[2] / "docs" / "write-worlds.md"
PAGE = GUIDE.with_name("worlds.md")

SCENE = {
    "id": "dense-ice-glass",
    "scene": "a glass of water with three ice cubes",
    "factual": "The cubes float at the surface.",
    "counterfactual": "The cubes should lie on the bottom of the glass beside a round coin.",
    "point_factual": "Floating cubes.",
    "point_counterfactual": "Sunken cubes.",
    "q_visual": {"weight": 2, "text": "Is a glass drawn clearly?"},
    "q_point_factual": {"weight": 13, "text": "Do the cubes float at the surface?"},
    "q_logic_factual": {"weight": 8, "text": "Does ice stick out of the water?"},
    "q_point_counterfactual": {"weight": 13, "text": "Do the cubes lie on the bottom?"},
    "q_logic_counterfactual": {"weight": 8, "text": "Is the surface visible and without ice?"},
    "denominalized": None,
}
LAW = {
    "id": "dense-ice",
    "discipline": "Physics",
    "branch": "heat",
    "law": "Ice is less dense than water.",
    "altered": "ice were denser than water",
    "scenes": [SCENE],
}
ENTRY: dict[str, Any] = {
    "id": "dense-ice-glass",
    "presence": "Are a glass of water and three ice cubes visible?",
    "chain": ["The ice is denser than the water.", "What is denser sinks, so cubes lie below."],
    "control": "thumb",
    "phrasing": "template",
    "naive_outcome": False,
    "logic_kind": "consequence",
    "described": {
        "noun": "coin",
        "counterfactual": "The cubes should lie on the bottom beside a small, flat metal disk.",
    },
}
CONTROL = LAW | {
    "id": "thumb",
    "discipline": "Sociology",
    "law": "A raised thumb means approval.",
    "altered": "a raised thumb were a sign of anger",
    "scenes": [],
}


def faults(scene: dict[str, Any], entry: dict[str, Any], altered: str = "") -> list[str]:
    law = Law.model_validate(LAW | ({"altered": altered} if altered else {}))
    found = entry_faults(
        law,
        CounterfactualScene.model_validate(SCENE | scene),
        WorldEntry.model_validate(ENTRY | entry),
        {
            "thumb": Law.model_validate(CONTROL),
            "spin": Law.model_validate(CONTROL | {"id": "spin", "discipline": "Physics"}),
        },
    )
    return [f"{field}: {message}" for field, message in found]


def question(text: str) -> dict[str, Any]:
    return {"weight": 8, "text": text}


def test_a_right_entry_has_no_fault() -> None:
    assert faults({}, {}) == []


@pytest.mark.parametrize(
    ("scene", "entry", "expected"),
    [
        ({"status": "retired", "erratum": "Twice."}, {}, "id: the group is retired"),
        ({}, {"presence": "A glass of water"}, "presence: must be a yes/no question"),
        ({}, {"presence": "Is a glass without ice visible?"}, "presence: must not ask"),
        ({}, {"presence": "Are floating ice cubes visible?"}, "presence: asks for the outcome"),
        ({}, {"chain": ["no period", *ENTRY["chain"]]}, "chain: step 1 must be one sentence"),
        ({}, {"chain": ["The cubes lie.", "The cubes lie."]}, "chain: a step stands twice"),
        ({}, {"chain": ["Some liquids are warm."]}, "chain: the last step does not say"),
        ({}, {"control": "unknown"}, "control: 'unknown' is not in controls.yaml"),
        ({}, {"control": "spin"}, "control: 'spin' is of Physics too"),
        ({"factual": "A thumb is seen."}, {}, "control: 'thumb' speaks of thumb"),
        ({}, {"short": {"scene": "a glass"}}, "short: is not needed"),
        (
            {"scene": SCENE["scene"] + " in water" * 20},
            {"described": None},
            "short: L2/narrative has 7",
        ),
        (
            {},
            {"described": ENTRY["described"] | {"noun": "puddle"}},
            "described: noun: 'puddle' is not in the outcome",
        ),
        (
            {},
            {"described": ENTRY["described"] | {"noun": "coins"}},
            "described: noun: not spelled as in the outcome of L2: 'coins'",
        ),
        (
            {},
            {"described": {"noun": "coin", "counterfactual": "Two coins should lie there."}},
            "described: still names 'coin'",
        ),
        (
            {"counterfactual": "The cubes should lie in a puddle."},
            {"described": {"noun": "puddle", "counterfactual": "Cubes should lie in a pool."}},
            "described: has a synonym of 'puddle': pool",
        ),
        (
            {"q_logic_counterfactual": question("Is the surface free of ice?")},
            {},
            "q_logic_counterfactual: asks for an absence ('free of') alone",
        ),
        (
            {"q_point_counterfactual": question("Is the surface without ice?")},
            {},
            "q_point_counterfactual: asks for an absence ('without') alone",
        ),
        (
            {"q_logic_factual": question("Is the glass still clear?")},
            {},
            "q_logic_factual: asks for what both worlds show",
        ),
        (
            {"q_logic_factual": question("Are 7 cubes at the surface?")},
            {},
            "q_logic_factual: has a number that no prompt asks for: 7",
        ),
        (
            {"q_logic_factual": question("Do cubes float at the surface?")},
            {},
            "q_logic_factual: asks the same as the point question",
        ),
        (
            {"q_logic_counterfactual": SCENE["q_logic_factual"]},
            {},
            "q_logic_counterfactual: is the question of the real world",
        ),
    ],
)
def test_a_fault_is_named(scene: dict[str, Any], entry: dict[str, Any], expected: str) -> None:
    (found,) = faults(scene, entry)
    assert found.startswith(expected)


@pytest.mark.parametrize(
    ("prompt", "group", "expected"),
    [
        ("Suppose puddles dry at once. Draw a wet floor.", "", ["still names 'puddle'"]),
        ("Draw a wet floor beside a pool.", "", ["has a synonym of 'puddle': pool"]),
        # The word stands in the group's own texts, in another meaning.
        ("Draw a wet floor beside a pool table.", "a pool table", []),
        ("Draw a wet floor.", "", []),
    ],
)
def test_a_noun_is_nowhere_in_the_prompt_that_describes_it(
    prompt: str, group: str, expected: list[str]
) -> None:
    assert list(naming(prompt, "puddle", group)) == expected


def test_a_prompt_has_fewer_than_70_tokens() -> None:
    def told(padding: int) -> list[str]:
        # Tokens of the narrative L2 with its outcome: 35, and one for each `very`.
        outcome = SCENE["counterfactual"].replace("round", "very " * padding + "round")
        return faults({"counterfactual": outcome}, {})

    assert told(34) == []
    assert told(35) == ["short: L2/narrative has 70 CLIP tokens, must have fewer than 70"]


@pytest.mark.parametrize(
    "text",
    [
        "Is the surface visible and without ice?",
        "Is the plate dry, with no puddle of juice?",
        "Do the rings surround the ball without touching it?",
        "Is still water in the pond?",
    ],
)
def test_a_question_may_add_an_absence_to_what_is_there(text: str) -> None:
    assert faults({"q_logic_counterfactual": question(text)}, {}) == []


def test_prompts_tell_one_premise_in_three_ways() -> None:
    law = Law.model_validate(LAW)
    entry = WorldEntry.model_validate(ENTRY | {"short": {"scene": "a glass with ice"}})
    made = world_prompts(law, law.scenes[0], entry, Law.model_validate(CONTROL))
    assert made["L0/template"] == "If a raised thumb were a sign of anger, draw a glass with ice."
    assert made["L1"] == "Draw a glass with ice."
    assert made["L3/imperative"] == "Draw a glass with ice, as if ice were denser than water."
    assert made["L2/narrative"] == (
        "Suppose ice were denser than water. Here we see a glass with ice. "
        "The cubes should lie on the bottom of the glass beside a round coin."
    )
    assert "coin" not in made["described"] and "flat metal disk" in made["described"]


@pytest.mark.parametrize(
    ("real", "phrasing", "prompt"),
    [
        ("Ice floats.", "template", "If ice floats, draw a glass."),
        ("Earth is round.", "narrative", "Suppose Earth is round. Here we see a glass."),
        ("Ice floats.", "imperative", ""),
        ("In soccer, players may not.", "template", ""),
        ("Ice " + "always " * TOKENS + "floats.", "template", ""),
    ],
    ids=["if", "suppose a name", "as if", "placed", "long"],
)
def test_the_real_law_is_stated_where_that_makes_a_sentence(
    real: str, phrasing: Any, prompt: str
) -> None:
    law = Law.model_validate(LAW | {"law": real})
    entry = WorldEntry.model_validate(ENTRY | {"phrasing": phrasing, "short": {"scene": "a glass"}})
    assert real_law_prompt(law, law.scenes[0], entry) == prompt


@pytest.mark.slow
def test_the_shipped_entries_have_no_fault_and_the_guide_quotes_one() -> None:
    files = worlds_files(DEFAULT_BANK)
    assert [fault for file in files for fault in file.faults] == []
    entries = {name: entry for file in files for name, entry in file.entries.items()}
    quoted = GUIDE.read_text().split("```yaml\n")[1].split("```")[0]
    (example,) = yaml.safe_load(quoted)
    assert entries[example["id"]] == WorldEntry.model_validate(example)


def bank_of(folder: Path, entries: list[dict[str, Any]]) -> Path:
    for name in ("counterfactual", "worlds"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    laws = [LAW, CONTROL | {"scenes": [SCENE | {"id": "thumb-glass"}]}]
    (folder / "counterfactual" / "ice.yaml").write_text(yaml.safe_dump(laws))
    (folder / "worlds" / "ice.yaml").write_text(yaml.safe_dump(entries))
    listed = [{"law": "thumb"}, {"law": "dense-ice"}]
    (folder / "controls.yaml").write_text(yaml.safe_dump(listed))
    return folder


def test_a_command_counts_what_is_filled_and_names_each_fault(tmp_path: Path, cli: Any) -> None:
    wrong = {name: value for name, value in ENTRY.items() if name != "presence"}
    bank = bank_of(tmp_path, [ENTRY, ENTRY, wrong, ENTRY | {"id": "nobody"}])
    result = cli("author", "worlds", "--bank", bank, "--json")
    assert result.returncode == 1, result.stderr
    found = yaml.safe_load(result.stdout)
    counts = found["files"]["ice"]
    assert (counts["groups"], counts["filled"], counts["depth 1"], counts["faults"]) == (2, 1, 1, 3)
    assert [(f["file"], f["group"], f["field"]) for f in found["faults"]] == [
        ("worlds/ice.yaml", "dense-ice-glass", "id"),
        ("worlds/ice.yaml", "dense-ice-glass", ""),
        ("worlds/ice.yaml", "nobody", "id"),
    ]
    assert "presence: Field required" in found["faults"][1]["message"]
    (bank / "worlds" / "other.yaml").write_text("[]")
    with raises("no-such-file", "other.yaml", error=BankError):
        worlds_files(bank)


def test_a_sheet_asks_for_every_group_without_an_entry(tmp_path: Path) -> None:
    bank = bank_of(tmp_path, [])
    laws = yaml.safe_load((bank / "counterfactual" / "ice.yaml").read_text())
    laws[1]["scenes"][0] |= {
        "scene": "a bowl of soup",
        "factual": "It steams.",
        "counterfactual": "It should boil over.",
    }
    (bank / "counterfactual" / "ice.yaml").write_text(yaml.safe_dump(laws))
    asked = yaml.safe_load(sheets(bank))
    assert [(a["id"], a["control"], a["phrasing"]) for a in asked] == [
        ("dense-ice-glass", "thumb", "template"),
        ("thumb-glass", "dense-ice", "imperative"),
    ]
    (bank / "worlds" / "ice.yaml").write_text(yaml.safe_dump(asked))
    (file,) = worlds_files(bank)
    assert file.entries == {}
    assert len(file.faults) == 2  # nothing that is left open passes for an answer
    (bank / "worlds" / "ice.yaml").write_text(yaml.safe_dump([ENTRY]))
    (asked,) = yaml.safe_load(sheets(bank))
    assert (asked["id"], asked["phrasing"]) == ("thumb-glass", "imperative")  # the rarest


def test_a_scene_that_no_control_leaves_alone_is_named(tmp_path: Path) -> None:
    # The other law alters ice, and the scene has ice in it.
    with raises("too-few-items", "thumb-glass", error=BankError):
        sheets(bank_of(tmp_path, [ENTRY]))


@pytest.mark.parametrize(
    ("text", "tokens"),
    # By the tokenizer that OpenCLIP 3.3.0 ships.
    [
        ("a photo of a cat", 5),
        ("hello world!", 3),
        ("discombobulated", 5),
        ("café 2025 it's naïve", 10),
        ("日本 mississippi", 4),
    ],
)
def test_clip_tokens_are_those_of_the_encoder(text: str, tokens: int) -> None:
    assert clip_length(text) == tokens


@given(st.lists(st.sampled_from("a glass of water with three ice cubes".split()), max_size=9))
def test_tokens_add_up_by_word(words: list[str]) -> None:
    assert clip_length(" ".join(words)) == sum(map(clip_length, words))
    assert TOKENS < 75


def test_words_have_lemmas_and_synonyms() -> None:
    assert [lemma(w) for w in "cubes hooves swimming dresses glass red wings".split()] == [
        *"cube hoof swim dress glass red wing".split()
    ]
    assert list(content("The leaves should lie flat, without any juice.")) == [
        *"leaf lie flat juice".split()
    ]
    assert "pool" in synonyms("puddle", "noun") and "rock" in synonyms("stone")


@given(st.randoms(use_true_random=False))
def test_likeness_goes_by_meaning_and_not_by_order(shuffler: random.Random) -> None:
    texts = {
        "iced-tea": "a glass of tea with ice cubes that lie on the bottom of the glass",
        "water": "a tumbler of water whose cube of ice rests on the bottom",
        "puddle": "a puddle in front of a barn",
        "pool": "a pool before a shed",
        "globe": "a globe with Africa at the top",
    }
    names = list(texts)
    shuffler.shuffle(names)
    pairs = nearest({name: texts[name] for name in names}, 2)
    assert {frozenset(pair[:2]) for pair in pairs} == {
        frozenset(("iced-tea", "water")),
        frozenset(("puddle", "pool")),
    }
    assert all(0 < pair.likeness <= 1 for pair in pairs)


@pytest.mark.parametrize(
    ("scene", "timed"),
    [
        ("slices that were salted", True),
        ("a bowl after a night in the cold", True),
        ("a nail that has lain in salt water", True),
        ("a chair out in the sun for three whole summer weeks", True),
        ("a pot left for a quarter of an hour on a stove", True),
        ("a magnet just lifted out of a box of nails", True),
        ("an oak into whose bark she carved a heart", True),
        ("a block of ice put into a pool yesterday", True),
        ("a bottle closed on a boat and now held by a diver", True),
        ("a clock on the wall at noon on a sunny day in the second row", False),
        ("a second train half an hour after sunset", False),
        ("a box with a compartment for each day", False),
        ("a family dressed for a rainy day", False),
        ("bulbs wired one after another just left of a lamp", False),
        ("a magnet just above a dish of nails", False),
        ("people who need a bed by night", False),
        ("a ball that rolls off a table", False),
        ("a cut melon with six day-old chicks", False),
    ],
)
def test_finds_earlier_events_by_tense_or_time_word(scene: str, timed: bool) -> None:
    assert time_clause(scene) is timed


def test_the_page_says_why_described_groups_give_no_row() -> None:
    """The page on worlds counts them as the bank does."""
    released = {row.group for row in counterfactual_denominalized.build(SHIPPED, random.Random(0))}
    entries = {scene.id: SHIPPED.worlds[scene.id] for _, _, scene in groups(SHIPPED)}
    described = {i: e.described for i, e in entries.items() if e.described is not None}
    elsewhere = {i for i, d in described.items() if d.altered or d.scene}
    said = re.search(
        r"the (\d+) groups whose entry has `described`, (\d+) give .* In (\d+) others, .* In the "
        r"remaining (\d+), no scored",
        " ".join(PAGE.read_text().split()),
    )
    assert said is not None and released <= described.keys() and not released & elsewhere
    kinds = len(described), len(released), len(elsewhere), len(described.keys() - released)
    assert tuple(map(int, said.groups())) == (*kinds[:3], kinds[3] - kinds[2])
