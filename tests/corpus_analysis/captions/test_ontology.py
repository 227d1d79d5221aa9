"""The ontology: what is an entity, under which names."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.taxonomy import Taxonomy
from counterprior.corpus_analysis.captions.ontology import (
    CATEGORIES,
    Ontology,
    OntologyError,
    distinct,
    plural,
)
from counterprior.eval.detectors.loading import COCO

ONTOLOGY = Ontology.read()


def small_bank(folder: Path) -> None:
    """Writes a bank of a few names: all files that are read, in a hundredth of the time."""
    for category in CATEGORIES:
        (folder / f"{category}.yaml").write_text(f"- {{name: {category.replace('_', ' ')}}}\n")
    (folder / "animals.yaml").write_text("- {name: animal}\n- {name: dog}\n- {name: giraffe}\n")
    (folder / "not_visual.yaml").write_text("- {name: boxing ring}\n")
    (folder / "other_kinds.txt").write_text("dog rose\n")
    (folder / "spellings.txt").write_text("giraffee = giraffe\n")


def test_the_ontology_holds_the_benchmark_and_more() -> None:
    assert set(Taxonomy.read(DEFAULT_BANK).entities) <= set(ONTOLOGY.entities)
    single = [e for e in ONTOLOGY.entities if not e.startswith(("male ", "female "))]
    assert len(single) >= 1500
    assert {e.category for e in ONTOLOGY.entities.values()} == set(CATEGORIES)
    assert len(CATEGORIES) == 7


def test_every_class_of_coco_is_a_name() -> None:
    # A class that no name means would leave its boxes out of the control.
    assert {
        name: ONTOLOGY.surface.get(name) for name in COCO if not ONTOLOGY.surface.get(name)
    } == {}


def test_longest_name_comes_first() -> None:
    lengths = [len(f.before) for f in ONTOLOGY.by_last["dog"]]
    assert lengths == sorted(lengths, reverse=True) and lengths[-1] == 0 < lengths[0]
    assert ONTOLOGY.surface["hot dogs"] is ONTOLOGY.entities["hot dog"]
    assert ONTOLOGY.surface["boxing ring"] is None


def test_a_kind_of_a_thing_is_not_distinct_from_it() -> None:
    e = ONTOLOGY.entities
    assert not distinct(e["polar bear"], e["bear"])
    assert not distinct(e["girl"], e["person"])
    assert not distinct(e["female nurse"], e["nurse"])
    assert distinct(e["female nurse"], e["male nurse"])
    assert distinct(e["cat"], e["dog"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fly", "flies"), ("toy", "toys"), ("box", "boxes"), ("snowman", "snowmen"), ("cup", "cups")],
)
def test_plurals(name: str, expected: str) -> None:
    assert plural(name) == expected


@pytest.mark.parametrize(
    ("line", "code", "facts"),
    [
        ("- {name: dog}", "duplicate-id", ("'dog'",)),
        ("- {name: Yeti}", "bad-entry", ("animals.yaml", "'Yeti'", "lower-case")),
        ("- {name: yeti, is: ghost}", "unknown-reference", ("animals.yaml, yeti:", "'ghost'")),
        ("- {name: yeti, color: white}", "bad-entry", ("animals.yaml, entry 4", "color")),
        ("- yeti", "bad-entry", ("animals.yaml, entry 4 (yeti):",)),
    ],
)
def test_a_bad_bank_file_is_named(
    tmp_path: Path, line: str, code: str, facts: tuple[str, ...]
) -> None:
    small_bank(tmp_path)
    with (tmp_path / "animals.yaml").open("a") as file:
        file.write(line + "\n")
    with raises(code, tmp_path, *facts, error=OntologyError):
        Ontology.read(tmp_path)


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("dog = cat", ("'dog'",)),
        ("snarck = snark", ("'snark'",)),
        ("snarck: dog", (", line 2:", "'snarck: dog'")),
        ("Giraff = giraffe", (", line 2:", "'Giraff = giraffe'")),
    ],
)
def test_a_bad_spelling_is_named(tmp_path: Path, line: str, facts: tuple[str, ...]) -> None:
    small_bank(tmp_path)
    with (tmp_path / "spellings.txt").open("a") as file:
        file.write(line + "\n")
    with raises("bad-entry", tmp_path / "spellings.txt", *facts, error=OntologyError):
        Ontology.read(tmp_path)


def test_spellings_name_what_they_mean_and_have_plurals() -> None:
    surface, entities = ONTOLOGY.surface, ONTOLOGY.entities
    assert surface["giraffee"] is surface["giraffees"] is entities["giraffe"]
    assert surface["skiis"] is entities["ski"] and surface["tooth brush"] is entities["toothbrush"]
    assert "giraffee" not in entities


def test_digest_follows_the_content(tmp_path: Path) -> None:
    for name in ("first", "same", "other"):
        (tmp_path / name).mkdir()
        small_bank(tmp_path / name)
    with (tmp_path / "other" / "animals.yaml").open("a") as file:
        file.write("- {name: snark}\n")
    first, same, other = (Ontology.read(tmp_path / name) for name in ("first", "same", "other"))
    assert first.surface.keys() > {"dogs", "giraffee", "boxing ring", "dog roses"}
    assert first.digest == same.digest and len({first.digest, other.digest, ONTOLOGY.digest}) == 3


def test_animacy_and_countability() -> None:
    e = ONTOLOGY.entities
    assert e["lemur"].animate and e["novelist"].animate and not e["lawn mower"].animate
    assert not e["whiskey"].countable and e["meatball"].countable
    assert ONTOLOGY.surface["top dog"] is None  # no dog, by WordNet
    assert ONTOLOGY.surface["dirt bikes"] is e["dirt bike"]
    assert "motorcycle" in e["dirt bike"].kinds and "bicycle" not in e["dirt bike"].kinds
