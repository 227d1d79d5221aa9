"""What counts as an answer of a language model, and what doesn't."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterprior.eval.judges.chat import parse_answer

ALLOWED = {"1": "first_left", "2": "first_right", "3": "invalid"}

THOUGHTS = [
    "<think>A is left. Or 2? No: 1.</think>",
    "<thinking>\n2\n</thinking>\n",
    "the template opened the tag; 2 is wrong</think>",
    "<think></think><think>2</think> ",
]

NO_ANSWER = [
    "",
    " \n",
    "It is 1.",
    "1.",
    "1 or 2",
    "12",
    "1\n2",
    "not 1",
    "zwei",
    "二",
    "\u0661",
    "\uff11",
    "4",
    "0",
    "-1",
    "1,",
    "**1**",
    "Antwort: 1",
    "<think>1",
    "1<think>so 2",
    "1<think>2</think>",
    "2<think>hm</think>1",
    "<think>a</think>1<think>b</think>2",
    "<think>1</think>",
    "\u0967",
    "1\ufe0f\u20e3",
]


@pytest.mark.parametrize("thought", ["", *THOUGHTS])
@pytest.mark.parametrize("answer", ["1", " 2\n", "\t3 "])
def test_one_digit_is_an_answer_after_any_thought(thought: str, answer: str) -> None:
    assert parse_answer(thought + answer, ALLOWED) == answer.strip()


@pytest.mark.parametrize("text", NO_ANSWER)
def test_everything_else_is_none(text: str) -> None:
    assert parse_answer(text, ALLOWED) is None


@given(text=st.text(alphabet="12 \n.<>/abthinkthink", max_size=60))
def test_an_answer_is_always_the_end_of_the_text(text: str) -> None:
    found = parse_answer(text, ALLOWED)
    if found is not None:
        head = text.rstrip()[:-1]
        assert text.rstrip()[-1] == found
        assert not head.strip() or head.rstrip().endswith((">",))


def test_long_thoughts_are_read_in_no_time() -> None:
    assert parse_answer("<think>" + "so " * 200_000 + "</think>1", ALLOWED) == "1"
    assert parse_answer("so " * 200_000, ALLOWED) is None
