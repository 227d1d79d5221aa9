"""Neutral prompts: two of their kind, without a name that says which is which."""

import pytest

from counterprior.builders.neutral import neutral_prompt
from counterprior.builders.suite import SHIPPED


@pytest.mark.parametrize("action", ["chasing a cat", "sniffing two cats", "following a man"])
def test_an_action_that_names_somebody_is_left_out(action: str) -> None:
    first, second = ("dog", action), ("cow", "sleeping")
    assert neutral_prompt(SHIPPED.taxonomy, first, second) == "Two animals."


def test_other_actions_are_kept_whichever_is_mentioned_first() -> None:
    first, second = ("dog", "jumping"), ("cow", "sleeping")
    prompt = neutral_prompt(SHIPPED.taxonomy, first, second)
    assert prompt == neutral_prompt(SHIPPED.taxonomy, second, first)
    assert sorted(prompt.removesuffix(".").split(", ")[1].split(" and ")) == [
        "one jumping",
        "one sleeping",
    ]
