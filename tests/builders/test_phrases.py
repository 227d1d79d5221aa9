"""Articles, spatial words and prompts' grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterprior.builders.phrases import (
    SPATIAL_WORDS,
    article,
    sentence,
    side_word,
    spatial_word,
    wrong_article,
)


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("apple", "an"),
        ("elephant", "an"),
        ("umbrella", "an"),
        ("hourglass", "an"),
        ("owl", "an"),
        ("cat", "a"),
        ("unicycle", "a"),
        ("uniform", "a"),
        ("female architect", "a"),
        ("airplane", "an"),
        ("oven", "an"),
        ("x-ray", "an"),
        ("xylophone", "a"),
    ],
)
def test_articles_follow_the_sound(noun: str, expected: str) -> None:
    assert article(noun) == expected


@pytest.mark.parametrize("word", SPATIAL_WORDS)
def test_every_spatial_word_is_found_whole_and_in_any_case(word: str) -> None:
    word = word.replace("_", " ")
    assert spatial_word(f"One cat {word.upper()} one dog.") == word.upper()
    assert spatial_word(f"One cat x{word}x one dog.") is None


@pytest.mark.parametrize("text", ["on the left", "Right-hand side", "the leftmost key"])
def test_words_that_name_a_side_are_found(text: str) -> None:
    assert side_word(text)


@pytest.mark.parametrize("text", ["a bright light", "copyright", "upright", "cleft"])
def test_words_that_only_look_like_a_side_are_not(text: str) -> None:
    assert side_word(text) is None


def test_wrong_articles_are_found() -> None:
    assert wrong_article("A photo of a apple.") == "a apple"
    assert wrong_article("One cat and an dog.") == "an dog"
    assert wrong_article("The A key and an owl on a map.") is None
    assert wrong_article("A US map, an FDI chart and a U-shaped tube.") is None


@given(st.text(alphabet="abc ", min_size=1).filter(str.strip))
def test_a_sentence_has_one_full_stop_and_stays_a_sentence(text: str) -> None:
    once = sentence(text)
    assert once.endswith(".")
    assert sentence(once) == once
