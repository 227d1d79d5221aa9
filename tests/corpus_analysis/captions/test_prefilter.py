"""The text that prefilter and parser read, and which captions may hold a pair."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_captions import MADE_CAPTIONS, prefilter
from refusals import raises

from counterprior.corpus_analysis.captions.extract import spatial_words
from counterprior.corpus_analysis.captions.ontology import FOLDER, Ontology
from counterprior.corpus_analysis.captions.prefilter import Prefilter, triggered
from counterprior.corpus_analysis.captions.text import DIRTY, hard, hard_rows, normalize


@given(MADE_CAPTIONS | st.text(max_size=60))
def test_clean_captions_are_left_alone(caption: str) -> None:
    if not re.search(DIRTY, caption):
        assert normalize(caption) == caption
    assert "  " not in normalize(caption)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("cat&amp;dog", "cat & dog"),
        ("cat+dog", "cat + dog"),
        ("c\u200bat", "cat"),
        ("\uff43at", "cat"),
        ("black&notebook", "black & notebook"),
        (" a\u00a0cat\n", "a cat"),
        ("R&B 7+1", "R & B 7+1"),
    ],
)
def test_normalize(raw: str, expected: str) -> None:
    assert normalize(raw) == expected


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("a cat and a dog", True),
        ("a cat, a dog", False),  # no list
        ("a cat, a dog and more", True),
        ("a cat sleeps while, behold, a dog and more", False),  # no neighbors in a list
        ("a cat" + 14 * " so" + " and dog", True),
        ("a cat" + 15 * " so" + " and dog", False),
        ("a cat and" + 6 * " so" + " dog", True),
        ("a cat and" + 7 * " so" + " dog", False),  # too long a phrase
        ("a cat with long hair for dogs", False),
        ("a cat with hair for show and a dog", True),
        ("a cat with him is looking at a dog", False),
        ("a cat is with a dog", True),
        ("cat/dog", True),
        ("a cat / big dog", True),
        ("a cat asleep / dog", False),  # a slash joins what is beside it
        ("a cat left of a dog", True),
        ("a cat left a dog", False),
        ("a cat in a new top, dog and more", True),
        ("a house by dogs", False),
        ("a house by the dog", True),
        ("a house surrounded by dogs", True),
        ("person and groom", True),  # CC3M's name of somebody
        ("people and persons", False),
        ("cat dog", False),
        ("cat | dog", False),
        ("and a cat dog", False),
        ("a cat and a cat", False),
        ("a cat and cats", False),
        ("a bear and other animals", True),  # a kind of the other, and yet both may be there
        ("a bear and a polar bear", True),
        ("a bear and a teddy bear", True),
        ("a cat and more - a dog", False),  # another field of alt text
        ("an ice - cream and a dog", True),
        ("a pencil case and a rock star", True),
        ("a case and a star", False),  # last words of names, but no names
        ("cats in front of a house", True),
        ("photo of a cat", False),
        ("_dog_ & cat", True),
        ("dogma and cattery", False),
    ],
)
def test_prefilter(text: str, passes: bool) -> None:
    assert prefilter().may_hold_pair(text) is passes


@pytest.mark.slow
@given(MADE_CAPTIONS | st.text(max_size=60))
@settings(max_examples=400)
def test_re2_passes_all_that_the_exact_test_passes(caption: str) -> None:
    column = pa.array([caption])
    if prefilter().may_hold_pair(normalize(caption)):
        hard_row = hard_rows(column)[0].as_py()
        assert hard_row or prefilter().candidates(column)[0].as_py()


def test_re2_drops_what_nothing_links() -> None:
    captions = ["a cat, a dog", "a cat - dog", "A cat, a dog, a pig", "A CAT WITH A DOG", "cat/dog"]
    found = prefilter().candidates(pa.array(captions)).to_pylist()
    assert found == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("caption", "is_hard"),
    [
        ("caf\u00e9 \u2013 \u201ccat\u201d", False),
        ("猫", False),
        ("\u212a", True),
        ("İ", True),
        ("cafe\u0301", True),
        ("\uff43at", True),
        ("a\u200bb", True),
        ("x &amp; y", True),
        ("a  b\n", False),
        ("½", False),
    ],
)
def test_hard_captions_go_to_the_python_path(caption: str, is_hard: bool) -> None:
    assert hard_rows(pa.array([caption]))[0].as_py() is is_hard


@given(
    st.lists(st.none() | MADE_CAPTIONS | st.text("a &;#1\u00e9\u200b\u0301\u732b", max_size=8)),
    st.integers(0, 3),
    st.sampled_from((pa.string(), pa.large_string())),
)
def test_hard_rows_are_those_that_the_pattern_matches(
    captions: list[str | None], start: int, kind: pa.DataType
) -> None:
    column = pa.array(captions, kind).slice(start)
    assert hard_rows(column).equals(pc.match_substring_regex(column, hard()).fill_null(False))


@given(st.characters())
def test_harmless_characters_add_no_ascii_letter(char: str) -> None:
    if not pc.match_substring_regex(pa.array([char]), hard())[0].as_py():
        for around in (f"cat{char}dog", f"cat {char} dog", char):
            pattern = r"[a-z]+|[,;&+/]"
            assert re.findall(pattern, normalize(around).lower()) == re.findall(
                pattern, around.lower() if char.isascii() else around
            )


def test_an_entity_must_not_be_a_trigger(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    everyday = tmp_path / "everyday.yaml"
    everyday.write_text(everyday.read_text() + "- {name: top}\n")
    with raises("bad-entry", "'top'"):
        Prefilter(Ontology.read(tmp_path))


def test_spatial_words() -> None:
    assert spatial_words("Left, left and leftover; next to it") == ["left", "next to"]


@given(st.text(alphabet="abdn ,|;&+/-", max_size=12))
def test_triggered(text: str) -> None:
    words = re.findall(r"[a-z]+|[,;&+/]", text)
    field = bool(re.search(r"\||\s-\s", text))
    marks = [word for word in words if not word.isalpha()]
    mark = len(marks) == 1 and len(words) <= 5 and (marks != ["/"] or words[0] == "/")
    assert triggered(text, " and") == (not field and ("and" in words or mark))
    assert triggered(text) == (not field and ("and" in words or (mark and marks != [","])))


PIECES = (
    "cat dog person groom and with by a the parked so , , / & - | . old green t aged for front of"
).split(" ")


@given(st.lists(st.sampled_from(PIECES), max_size=24).map(" ".join))
@settings(max_examples=400)
def test_the_prefilter_passes_whatever_two_things_are_linked(text: str) -> None:
    heads = list(re.finditer(r"\b(?:cat|dog|person|groom)\b", text))
    linked = any(
        first[0] != second[0]
        and triggered(text[first.end() : second.start()], text[second.end() :], second[0])
        for first, second in itertools.combinations(heads, 2)
    )
    passes = prefilter().may_hold_pair(text)
    assert passes or not linked
    assert passes is linked or "front" in text  # before both things, as in "front cat of a dog"
