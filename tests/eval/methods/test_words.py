"""Things are guided where the prompt names them as words, in the relation that it states."""

from __future__ import annotations

import pytest
from steered import Opened, kinds

from counterprior.eval.methods.attention import token_places
from counterprior.eval.methods.words import place_claims

BESIDE = [
    (f"a {a} {phrase} a {b}", a, b)
    for a, b in (("carrot", "car"), ("hot dog", "dog"), ("teddy bear", "bear"))
    for phrase in ("to the left of", "to the right of", "above", "below")
]
"""The prompts of spatial_visor in which one thing's name holds the other's."""
SHARING = [
    *BESIDE,
    ("A photo of a teddy bear to the left of a bear.", "teddy bear", "bear"),
    ("A photo of a teddy bear above a bear.", "teddy bear", "bear"),
    ("A carrot below a potted plant and the potted plant above a car.", "carrot", "car"),
]
"""All such prompts of spatial_visor, spatial_uc and spatial_multi."""
OWN = ("a woman to the left of a man", "woman", "man")


@pytest.mark.parametrize(
    ("prompt", "a", "b"), [*SHARING, OWN, ("a dog below a hot dog", "dog", "hot dog")]
)
def test_a_name_within_another_name_is_not_guided(prompt: str, a: str, b: str) -> None:
    ((first, _, second),) = place_claims(prompt, [(a, "left_of", b)])
    assert prompt[first.start : first.end] == a and first.start == prompt.index(f" {a} ") + 1
    assert prompt[second.start : second.end] == b and second.end == len(prompt.rstrip("."))


@pytest.mark.parametrize(
    ("prompt", "claims", "starts"),
    [
        (
            "A cat to the left of a dog and the dog above an orange.",
            [("cat", "left_of", "dog"), ("dog", "above", "orange")],
            [(2, 23), (35, 48)],
        ),
        (
            "A cat and a dog, the cat to the left of the dog.",
            [("cat", "left_of", "dog")],
            [(21, 44)],
        ),
        (
            "a balloon on the bottom of a chicken and on the left of a lamp",
            [("balloon", "below", "chicken"), ("balloon", "left_of", "lamp")],
            [(2, 29), (2, 58)],
        ),
        ("Two dogs above one cat", [("dog", "above", "cat")], [(4, 19)]),
    ],
)
def test_the_occurrence_that_the_relation_is_stated_of(prompt, claims, starts) -> None:
    placed = place_claims(prompt, claims)
    assert [(a.start, b.start) for a, _, b in placed] == starts


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("a womanly man", "'woman' is not in the prompt"),
        ("a policeman and a woman", "'man' is not in the prompt"),
        ("an x-man above a woman", "'man' is not in the prompt"),
    ],
)
def test_parts_of_words_are_not_names(prompt: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        place_claims(prompt, [("woman", "above", "man")])


def test_refuses_things_with_the_same_words() -> None:
    with pytest.raises(ValueError, match=r"'dog' and 'hot dog' are the same.*guided apart"):
        place_claims(
            "a hot dog above a cat", [("hot dog", "above", "cat"), ("dog", "above", "cat")]
        )


@pytest.mark.parametrize("kind", kinds("flux", "pixart", "qwen-image", "sd15", "sd3", "sdxl"))
def test_tokens_spell_each_thing_and_no_other(opened: Opened, kind: str) -> None:
    pipeline = opened(kind).pipeline
    for prompt, a, b in [*SHARING, OWN]:
        ((first, _, second),) = place_claims(prompt, [(a, "left_of", b)])
        tokens = [token_places(pipeline, prompt, word) for word in (first, second)]
        assert not tokens[0].keys() & tokens[1].keys(), prompt
        for name, places in zip((a, b), tokens, strict=True):
            texts = [text.strip().lower() for text in places.values()]
            assert all(text in name for text in texts), (prompt, texts)
            assert {*"".join(texts)} >= {*name.replace(" ", "")}, (prompt, texts)
