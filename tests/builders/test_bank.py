"""Bank files: what ships is right, and what is wrong is named by file, entry and field."""

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import ROOT
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK, BankError
from counterprior.builders.build_result import read_changes
from counterprior.builders.constrained import ConstrainedPair, pair_faults, read_pairs
from counterprior.builders.counterfactual import Law, law_faults, near_duplicates, prompts
from counterprior.builders.suite import SHIPPED as BANKS
from counterprior.builders.suite import Banks
from counterprior.builders.taxonomy import GROUP_SIZES, Taxonomy


def test_the_taxonomy_has_the_papers_counts() -> None:
    taxonomy = BANKS.taxonomy
    assert Counter(e.kind for e in taxonomy.entities.values()) == {
        "human": 64,
        "animal": 25,
        "object": 49,
    }
    assert len(taxonomy.actions) == 172
    assert {k: sum(g.values()) for k, g in GROUP_SIZES.items()} == {
        "human": 35,
        "animal": 55,
        "object": 82,
    }


def test_every_entity_has_actions_that_contrast() -> None:
    taxonomy = BANKS.taxonomy
    for entity in taxonomy.entities.values():
        contrasting = [a for a in taxonomy.single_actions(entity) if a.contrast]
        assert len(contrasting) >= 3, entity.name


def test_no_phrase_of_the_taxonomy_names_a_gender_or_a_place() -> None:
    banned = re.compile(r"\b(he|she|his|her|him|left|right|next to|beside|above|below)\b")
    for action in BANKS.taxonomy.actions.values():
        texts = [action.participle, action.clause]
        texts += [x for p in action.pair or () for x in (p.participle, p.clause)]
        if action.directed:
            texts += [action.directed.active, action.directed.passive]
        for text in filter(None, texts):
            assert not banned.search(text), (action.id, text)


def test_coco_ids_of_the_taxonomy_are_coco_ids() -> None:
    known = {entry.id: entry.label for entry in BANKS.coco}
    assert len(known) == 80
    for file in ("animals.yaml", "objects.yaml"):
        for thing in yaml.safe_load((DEFAULT_BANK / file).read_text()):
            coco = thing["grounding"]["coco"]
            if coco is not None:
                label = known[coco]
                assert (
                    thing["name"] in label
                    or label in thing["name"]
                    or (
                        (thing["name"], label)
                        in {("table", "dining table"), ("television", "tv"), ("ski", "skis")}
                    )
                ), (thing["name"], label)


def test_grounding_ids_have_the_form_of_their_kind() -> None:
    for file in ("animals.yaml", "objects.yaml"):
        for thing in yaml.safe_load((DEFAULT_BANK / file).read_text()):
            assert re.fullmatch(r"n\d{8}", thing["grounding"]["imagenet"] or "n00000000")
    for occupation in yaml.safe_load((DEFAULT_BANK / "occupations.yaml").read_text()):
        assert re.fullmatch(r"\d\d-\d{4}", occupation["soc_2018"] or "00-0000")


def test_constrained_pairs_cover_ten_domains_at_least() -> None:
    pairs = BANKS.pairs
    assert sum(map(len, pairs.values())) >= 60
    assert len(pairs) >= 10


def test_most_pairs_are_derived_by_code() -> None:
    pairs = [p for domain in BANKS.pairs.values() for p in domain]
    assert sum(p.basis(BANKS.facts) == "code-derived" for p in pairs) >= 0.7 * len(pairs)


def test_no_standard_is_registered_twice() -> None:
    named = [(s.title.casefold(), s.at, s.publisher) for s in BANKS.standards.values()]
    assert len(set(named)) == len(named)


def test_counterfactual_groups_are_hardly_ever_alike() -> None:
    texts = {
        scene.id: prompts(law, scene)["L2"]
        for laws in BANKS.laws.values()
        for law in laws
        for scene in law.scenes
    }
    alike = near_duplicates(texts, 0.4)
    assert len({name for a, b, _ in alike for name in (a, b)}) <= 0.02 * len(texts), alike[:5]


def test_near_duplicates_are_found_and_others_are_not() -> None:
    text = "a cat sleeps on a warm stone in the morning sun"
    texts = {"a": text, "b": text.replace("cat", "dog"), "c": "water boils in a kettle on a stove"}
    assert [(a, b) for a, b, _ in near_duplicates(texts, 0.4)] == [("a", "b")]


SCENE: dict[str, Any] = {
    "id": "physics-ice-cube",
    "scene": "a glass of water with an ice cube",
    "factual": "The cube floats.",
    "counterfactual": "The cube should lie on the bottom of the glass.",
    "point_factual": "A cube at the surface.",
    "point_counterfactual": "A cube on the bottom.",
    "q_visual": {"weight": 2, "text": "Is one glass drawn clearly?"},
    "q_point_factual": {"weight": 14, "text": "Is the cube at the surface?"},
    "q_point_counterfactual": {"weight": 14, "text": "Is the cube on the bottom?"},
    "q_logic_factual": {"weight": 8, "text": "Is the water level?"},
    "q_logic_counterfactual": {"weight": 8, "text": "Does no ice float?"},
    "denominalized": None,
}


def law_with(altered: str = "ice were denser than liquid water", **scene: Any) -> Law:
    return Law.model_validate(
        {
            "id": "physics-ice",
            "discipline": "Physics",
            "branch": "thermodynamics",
            "law": "Ice is less dense than water.",
            "altered": altered,
            "scenes": [SCENE | scene],
        }
    )


def test_a_sound_law_has_no_fault_and_three_prompts() -> None:
    law = law_with()
    assert list(law_faults(law)) == []
    assert prompts(law, law.scenes[0]) == {
        "L1": "Draw a glass of water with an ice cube.",
        "L2": "If ice were denser than liquid water, draw a glass of water with an ice cube. "
        "The cube should lie on the bottom of the glass.",
        "L3": "If ice were denser than liquid water, draw a glass of water with an ice cube.",
    }


@pytest.mark.parametrize(
    ("law", "field"),
    [
        (law_with("ice sank."), "altered"),
        (law_with("ice should lie on the bottom of the glass"), "counterfactual"),
        (law_with(id="physics-cube"), "id"),
        (law_with(scene="a glass."), "scene"),
        (law_with(counterfactual="The cube should sink"), "counterfactual"),
        (law_with(q_visual={"weight": 4, "text": "Is it?"}), "q_visual"),
        (law_with(q_point_factual={"weight": 14, "text": "It is."}), "q_point_factual"),
        (law_with(point_counterfactual="A cube at the surface."), "point_counterfactual"),
        (law_with(denominalized={"replace": "plate", "by": "flat dish"}), "denominalized"),
        (law_with(denominalized={"replace": "cube", "by": "frozen cube"}), "denominalized"),
    ],
)
def test_a_faulty_law_is_named_by_its_field(law: Law, field: str) -> None:
    assert any(f"{field}:" in fault for fault in law_faults(law)), list(law_faults(law))


def test_every_rule_varies_in_the_papers_proportions() -> None:
    rules = BANKS.rules
    assert len(rules) == 33
    assert sum(len(rule.variants) for rule in rules) == 198


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("factual: true", "factual: false", ("fall:", "1-2 factual", "4-5 counterfactual")),
        ("      surface: floor", "      wall: floor", ("fall, down:", "['direction', 'surface']")),
        (
            "surface: ceiling of",
            "surface: floor of",
            ("fall, down:", "'The red ball rests against the floor of the room, in its middle.'"),
        ),
    ],
)
def test_a_faulty_rule_is_named(bank: Path, old: str, new: str, facts: tuple[str, ...]) -> None:
    edit(bank / "rules.yaml", old, new)
    with raises("bad-entry", "rules.yaml", *facts, error=BankError):
        _ = Banks(bank).rules


def test_sequences_can_fill_their_setting() -> None:
    triples = sum(
        len(s.items) * (len(s.items) - 1) * (len(s.items) - 2) // 6 for s in BANKS.sequences
    )
    assert triples >= 100


def test_the_newest_version_comes_first() -> None:
    changes = read_changes(DEFAULT_BANK)
    versions = [tuple(map(int, c.version.split("."))) for c in changes]
    assert versions == sorted(versions, reverse=True)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", c.date) for c in changes)


PAIR: dict[str, Any] = {
    "id": "keyboards-q-p",
    "left": "the Q key",
    "right": "the P key",
    "context": "on a standard US QWERTY keyboard seen from the typist's seat",
    "frame": "seat",
    "fact": "qwerty",
    "family": "qwerty",
    "text_bound": True,
    "standards": ["known"],
    "rationale": "Q opens the row.",
    "tell_left": "legend Q",
    "tell_right": "legend P",
    "mirror_safe": False,
    "scope": "universal",
}


def faults_of(**changes: Any) -> list[str]:
    known: Any = {"known": None}
    return pair_faults(
        ConstrainedPair.model_validate(PAIR | changes), "keyboards", known, BANKS.facts
    )


def test_a_sound_pair_has_no_fault() -> None:
    assert faults_of() == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": "maps-q-p"}, "id"),
        ({"id": "keyboards-Q"}, "id"),
        ({"standards": []}, "standards"),
        ({"standards": ["folklore"]}, "standards"),
        ({"status": "revised"}, "erratum"),
        ({"erratum": "It was wrong."}, "erratum"),
        ({"left": "the left Q key"}, "left"),
        ({"context": "on the right half of a board seen from the typist's seat"}, "context"),
        ({"right": "the P key."}, "right"),
        ({"right": "", "fact": ""}, "right"),
        ({"left": "the P key", "right": "the Q key"}, "left"),
        ({"left": "the ! key"}, "fact"),
        ({"fact": "heart"}, "fact"),
        ({"family": "two words"}, "family"),
        ({"context": "on a standard US QWERTY keyboard"}, "frame"),
        ({"tell_left": "the key at the start of the row"}, "tell_left"),
        ({"tell_right": "key labeled P"}, "tell_right"),
    ],
)
def test_a_faulty_pair_is_named_by_its_field(changes: dict[str, Any], field: str) -> None:
    assert [fault.split(":")[0] for fault in faults_of(**changes)] == [field]


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEFAULT_BANK, tmp_path / "bank"))


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_an_entity_too_few_is_named(bank: Path) -> None:
    edit(bank / "animals.yaml", "category: bird", "category: medium_mammal")
    with raises("unbalanced-bank", "animal", "needs 5", "of 5", error=BankError):
        Taxonomy.read(bank)


def test_a_wrong_type_names_file_entry_and_field(bank: Path) -> None:
    edit(bank / "animals.yaml", "size: small", "size: tiny")
    with raises("bad-entry", "animals.yaml", error=BankError):
        Taxonomy.read(bank)


def test_an_unknown_field_is_named(bank: Path) -> None:
    edit(bank / "objects.yaml", "  size:", "  color: red\n  size:")
    with raises("bad-entry", "objects.yaml", "entry 1", error=BankError):
        Taxonomy.read(bank)


def test_an_action_for_an_unknown_entity_is_named(bank: Path) -> None:
    actions = yaml.safe_load((bank / "actions.yaml").read_text())
    actions[0]["suits"]["entities"] = ["unicorn"]
    (bank / "actions.yaml").write_text(yaml.safe_dump(actions, sort_keys=False))
    with raises("unknown-reference", "actions.yaml", "suits.entities", "unicorn", error=BankError):
        Taxonomy.read(bank)


def test_a_repeated_pair_is_found_in_either_order(bank: Path) -> None:
    file = sorted((bank / "constrained").glob("*.yaml"))[0]
    entries = yaml.safe_load(file.read_text())
    twin = entries[0] | {
        "id": entries[0]["id"] + "-again",
        "left": entries[0]["right"],
        "right": entries[0]["left"],
        "fact": "",
    }
    file.write_text(yaml.safe_dump([*entries, twin], sort_keys=False))
    with raises("duplicate-id", f"{entries[0]['id']}-again:", entries[0]["id"], error=BankError):
        read_pairs(bank)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\n  frame:", "\n   frame:", "LINE: not YAML: mapping values are not allowed"),
        ("keyboards-z-m", "keyboards-qwerty-q-p", "id 'keyboards-qwerty-q-p' is used twice"),
        ("fact: qwerty", "fact: qwety", "fact: 'qwety' is unknown: did you mean qwerty"),
        (
            "left: the Z key                  # code checks the sides\n  right: the M key",
            "left: the M key\n  right: the Z key",
            "left: qwerty seen seat has 'the Z key' on the left",
        ),
    ],
)
def test_a_mistake_in_the_pair_of_the_first_row_is_named(
    old: str, new: str, said: str, bank: Path
) -> None:
    """The pair is that of the page, so that its reader meets these messages."""
    page = (ROOT / "docs" / "first-row.md").read_text()
    pair = page.split("```yaml\n")[1].split("```")[0]
    assert old in pair
    file = bank / "constrained" / "keyboards.yaml"
    before = file.read_text()
    file.write_text(before + pair)
    read_pairs(bank)
    file.write_text(before + pair.replace(old, new, 1))
    with pytest.raises(BankError) as refused:
        read_pairs(bank)
    lines = before.count("\n") + pair[: pair.index(old)].count("\n") + 2
    text = str(refused.value)
    assert str(file) in text and said.replace("LINE", f"{file}:{lines}") in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("content", "code"),
    [("a: 1", "wrong-type"), ("{}", "wrong-type"), ("- [", "bad-yaml"), (None, "no-such-file")],
)
def test_rejects_files_that_are_not_banks(bank: Path, content: str | None, code: str) -> None:
    file = bank / "coco.yaml"
    file.unlink()
    if content is not None:
        file.write_text(content)
    with raises(code, file, error=BankError):
        _ = Banks(bank).coco


def test_a_file_that_was_edited_is_read_anew(bank: Path) -> None:
    file = bank / "coco.yaml"
    before = Banks(bank).coco
    file.write_text(file.read_text().replace("label: person", "label: human", 1))
    after = Banks(bank).coco
    assert [(a.label, b.label) for a, b in zip(before, after, strict=True) if a != b] == [
        ("person", "human")
    ]
    after.clear()
    assert Banks(bank).coco
