"""Facts and frames: which of two things is left, what bad tables get, and the mutation test."""

from collections.abc import Callable
from typing import Any

import pytest
from refusals import raises

from counterprior.builders.bank import BankError
from counterprior.builders.census import bank_census
from counterprior.builders.constrained import (
    ConstrainedPair,
    layout_faults,
    twin_fault,
    unordered_faults,
)
from counterprior.builders.facts import Fact, FactError, FactTables
from counterprior.builders.frames import FLIPPED, FRAMES, frame_fault, mentions
from counterprior.builders.suite import SHIPPED as BANKS

FACTS = BANKS.facts
AFRICA = "maps-africa-horn-bulge-south-up"
SIGN = "navigation-lights-and-signs-uk-sign-615"


@pytest.fixture(scope="module")
def pairs() -> dict[str, ConstrainedPair]:
    every = (pair for listed in BANKS.pairs.values() for pair in listed)
    return {pair.id: pair for pair in every if pair.status != "retired"}


@pytest.mark.parametrize(
    ("fact", "frame", "left", "right"),
    [
        ("qwerty", "seat", "the Tab key", "the Backspace key"),
        ("azerty", "seat", "the A key", "the Z key"),
        ("qwertz", "seat", "the Y key", "the X key"),
        ("numpad", "seat", "the 7 key", "the 9 key"),
        ("clock", "upright", "the numeral 11", "the Roman numeral III"),
        ("clock-1-50", "upright", "the minute hand", "the hour hand"),
        ("chess-squares", "facing", "square h1", "square a8"),
        ("dartboard", "upright", "the number 11", "the number 6"),
        ("compass", "north-up", "the W", "the NE"),
        ("compass", "south-up", "the NE", "the W"),
        ("periodic-table", "upright", "iron", "copper"),
        ("number-line", "ltr", "the label -7", "the label -2"),
        ("number-line", "ltr", "the label 1/3", "the label 0.5"),
        ("history", "ltr", "the label 490 BC", "the Wright Flyer"),
        ("facing-pages", "rtl", "page 13", "page 12"),
        ("earth", "north-up", "Lisbon", "Rome"),
        ("world-map-pacific", "north-up", "Japan", "California"),
        ("world-map-greenwich", "north-up", "California", "Japan"),
        ("un-emblem", "upright", "North America", "Asia"),
        ("stars", "sky-north-up", "Betelgeuse", "Bellatrix"),
        ("stars", "looking-north", "Rigel", "Saiph"),
        ("abdomen", "facing", "the liver", "the spleen"),
        ("abdomen", "behind", "the spleen", "the liver"),
        ("fdi-teeth", "facing", "tooth 48", "tooth 38"),
        ("flag-france", "obverse", "the blue band", "the red band"),
        ("flag-france", "reverse", "the red band", "the blue band"),
        ("ne555", "mirrored", "the pin VCC", "the ground pin"),
        ("spreadsheet-columns", "rtl", "column AA", "column Z"),
    ],
)
def test_a_fact_and_a_frame_give_the_left_thing(
    fact: str, frame: Any, left: str, right: str
) -> None:
    for phrases in ((left, right), (right, left)):
        assert FACTS.order(fact, frame, "universal", phrases) == (left, right)


def test_a_rule_of_the_road_turns_with_its_country() -> None:
    things = ("the steering wheel", "the glove compartment")
    assert FACTS.order("car-inside", "behind", "country: US", things) == things
    assert FACTS.order("car-inside", "behind", "country: GB", things) == things[::-1]
    with raises("bad-entry", "car-inside", "universal", error=FactError):
        FACTS.order("car-inside", "behind", "universal", things)


@pytest.mark.parametrize(
    ("fact", "frame", "phrases", "reason"),
    [
        ("heart", "facing", ("a", "b"), ("unknown-reference", "heart")),
        ("qwerty", "reverse", ("the Q key", "the P key"), ("bad-entry", "seat", "reverse")),
        ("qwerty", "seat", ("the ? key", "the P key"), ("unknown-reference", "no part", "qwerty")),
        ("qwerty", "seat", ("the keys Q and W", "P"), ("unknown-reference", "['Q', 'W']")),
        ("clock", "upright", ("the 12", "the 6"), ("bad-entry", "clock", "the 12", "the 6")),
        (
            "periodic-table",
            "upright",
            ("hydrogen", "lithium"),
            ("bad-entry", "hydrogen", "lithium"),
        ),
        ("number-line", "ltr", ("one", "2"), ("bad-value", "one", "names 0")),
        ("number-line", "ltr", ("1/0", "2"), ("out-of-range", "1/0")),
    ],
)
def test_rejects_orders_that_facts_do_not_give(
    fact: str, frame: Any, phrases: tuple[str, str], reason: tuple[str, ...]
) -> None:
    with raises(*reason, error=FactError):
        FACTS.order(fact, frame, "universal", phrases)


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"frames": {"facing": [], "north-up": []}}, ("frames:",)),
        ({"standards": []}, ("standards:",)),
        ({"row": []}, ("no part",)),
        ({"grid": ["a b"], "shift": [0, 1]}, ("shift:",)),
        ({"names": {"x": ["y"]}}, ("names:", "'x'")),
    ],
)
def test_a_table_that_contradicts_itself_is_named(
    changes: dict[str, Any], facts: tuple[str, ...]
) -> None:
    fields = {"id": "f", "title": "t", "standards": ["s"], "frames": {"ltr": []}, "row": ["p", "q"]}
    with raises("bad-entry", "fact f:", *facts, error=BankError):
        FactTables({"f": Fact.model_validate(fields | changes)})


def test_a_prompt_says_its_frame_and_no_other() -> None:
    both: dict[Any, list[str]] = {"facing": ["from the hall"], "behind": []}
    assert frame_fault("a liver in a person facing the viewer", "facing", both) is None
    assert "does not say" in str(frame_fault("a liver", "facing", both))
    assert "says 'behind'" in str(frame_fault("a person seen from behind", "facing", both))
    # Words that are special to a fact go before those of the vocabulary.
    assert frame_fault("a stage from the hall, from behind the fence", "facing", both) is None
    assert frame_fault("a clock", "upright", {"upright": []}) is None
    assert mentions("the decimal-point key", "decimal-point") and not mentions("the 10 key", "0")


def test_every_frame_has_one_that_shows_the_same_from_the_other_side() -> None:
    assert set(FLIPPED) == set(FRAMES)
    for frame, other in FLIPPED.items():
        assert FRAMES[frame].axis == FRAMES[other].axis
        assert FRAMES[frame].sign == -FRAMES[other].sign


def test_the_census_counts_the_bank_and_what_a_release_takes(
    pairs: dict[str, ConstrainedPair],
) -> None:
    found = bank_census(BANKS)
    whole, taken = found.bank["all"], found.release["all"]
    assert whole.pairs == len(pairs) == sum(c.pairs for n, c in found.bank.items() if n != "all")
    assert whole.families == len({pair.family for pair in pairs.values()})
    assert whole.text_bound == sum(pair.text_bound for pair in pairs.values())
    assert taken.pairs + found.missing == found.planned and taken.turned < taken.derived
    assert all(n.families <= found.domain_families for d, n in found.release.items() if d != "all")
    assert taken.twins >= 100 and taken.unordered >= 150
    assert taken.drawn + sum(found.undrawn.values()) == taken.pairs and taken.drawn >= 380
    for cited in (found.registry, found.cited):
        exact = cited.sections + cited.addresses
        assert max(cited.sections, cited.addresses) <= cited.standards - cited.titles <= exact
    assert found.registry.standards == len(BANKS.standards) > found.cited.standards
    assert sum(c.pairs for n, c in found.release.items() if n != "all") == taken.pairs


def domain_of(pair: str) -> list[ConstrainedPair]:
    return next(d for d in BANKS.pairs.values() if pair in {one.id for one in d})


@pytest.mark.parametrize(
    ("pair", "change", "reason"),
    [
        (AFRICA, {"twin": "maps-peru-brazil"}, "rests on another fact or family"),
        (AFRICA, {"twin": "maps-nowhere"}, "is not a pair of this file"),
        (AFRICA, {"frame": "north-up"}, "is seen the same way round"),
        (AFRICA, {"left": "the rounded bulge", "right": "the pointed horn"}, "turned round"),
        ("maps-peru-brazil", {"twin": "maps-africa-bulge-horn"}, "has a twin already"),
        (SIGN, {"scope": "country: DE"}, "is seen the same way round"),
    ],
)
def test_rejects_pairs_that_are_not_twins(
    pairs: dict[str, ConstrainedPair], pair: str, change: dict[str, str], reason: str
) -> None:
    changed = [one for one in domain_of(pair) if one.id != pair]
    wrong = pairs[pair].model_copy(update=change)
    assert twin_fault(pairs[pair], [*changed, pairs[pair]], FACTS) == ""
    assert reason in twin_fault(wrong, [*changed, wrong], FACTS)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("The coast of Africa with its bulge on a map with south at the top.", "'bulge'"),
        ("The coast of Africa from the left on a map with south at the top.", "'left'"),
        ("First the coast of Africa on a map with south at the top.", "an order with 'first'"),
        ("The coast of Africa on a map.", "does not say 'south-up'"),
        ("the coast of Africa on a map with south at the top", "one sentence with a period"),
    ],
)
def test_a_prompt_without_order_names_neither_thing(
    pairs: dict[str, ConstrainedPair], prompt: str, reason: str
) -> None:
    (fault,) = unordered_faults(
        pairs[AFRICA].model_copy(update={"unordered_prompt": prompt}), FACTS
    )
    assert reason in fault


def names_exchanged(pair: ConstrainedPair) -> ConstrainedPair:
    return pair.model_copy(update={"left": pair.right, "right": pair.left})


def sides_exchanged(pair: ConstrainedPair) -> ConstrainedPair:
    tells = {"tell_left": pair.tell_right, "tell_right": pair.tell_left}
    return names_exchanged(pair).model_copy(update=tells)


def frame_flipped(pair: ConstrainedPair) -> ConstrainedPair:
    return pair.model_copy(update={"frame": FLIPPED[pair.frame]})


def two_errors(pair: ConstrainedPair) -> ConstrainedPair:
    """What cancels out unless the prompt is held to the frame."""
    return frame_flipped(sides_exchanged(pair))


@pytest.mark.parametrize(
    "mutate",
    [sides_exchanged, names_exchanged, frame_flipped, two_errors],
    ids=lambda f: f.__name__,
)
def test_mutated_pairs_are_caught(
    pairs: dict[str, ConstrainedPair], mutate: Callable[[ConstrainedPair], ConstrainedPair]
) -> None:
    derived = [pair for pair in pairs.values() if pair.basis(FACTS) == "code-derived"]
    escaped = [pair.id for pair in derived if not layout_faults(mutate(pair), FACTS)]
    assert len(derived) > 350
    assert len(escaped) <= 0.05 * len(derived), escaped


def test_the_pair_whose_two_errors_cancelled_fails_as_it_was(
    pairs: dict[str, ConstrainedPair],
) -> None:
    pair = pairs["musical-instruments-and-scores-violins-cellos-players"]
    assert (pair.frame, layout_faults(pair, FACTS)) == ("behind", [])
    assert {f.split(":")[0] for f in layout_faults(frame_flipped(pair), FACTS)} == {"frame", "left"}
    # Its check had the cellos at the players' own right and saw them from the front.
    orchestra = FACTS.facts["orchestra"]
    points = {name: (-x, y) for name, (x, y) in orchestra.points.items()}
    wrong = FactTables({"orchestra": orchestra.model_copy(update={"points": points})})
    (fault,) = layout_faults(frame_flipped(pair), wrong)
    assert fault.startswith("frame: the prompt says 'behind'")


def test_rejects_a_short_table_in_viewer_order_as_derivation(
    pairs: dict[str, ConstrainedPair],
) -> None:
    bases = {name: pair.basis(FACTS) for name, pair in pairs.items()}
    assert bases["architecture-and-plumbing-faucet-hot-cold"] == "stated"
    assert bases["architecture-and-plumbing-third-angle-symbol"] == "code-derived"
    assert bases["vehicle-controls-clutch-accelerator"] == "stated"
    assert bases["keyboards-phone-1-3"] == bases["games-snooker-far-end"] == "code-derived"
    assert bases["musical-instruments-and-scores-crescendo"] == "stated"
