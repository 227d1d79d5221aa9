"""Reading a language model's answer: exactly one of the allowed ones, or nothing.

A judge that is generous here scores its own guess: "1 or 2", "neither 1 nor 2" and "not 1" all hold
a digit. What isn't read is `unparsed`, and the share of it stands on the judge's card.
"""

from __future__ import annotations

import re
from collections.abc import Container

_THOUGHT = re.compile(r"\s*(?:<think(?:ing)?>)?(?:(?!<think).)*?</think(?:ing)?>", re.DOTALL)
"""A block of thoughts at the start; its opening tag may have been in the chat template."""


def parse_answer(text: str, allowed: Container[str]) -> str | None:
    """The answer, where it is all that the model wrote after its thoughts; else None.

    >>> parse_answer("<think>Is it 1? No.</think>\\n2\\n", {"1", "2"})
    '2'
    >>> [parse_answer(text, {"1", "2"}) for text in ("It is 2.", "1 2", "", "zwei", "<think>2")]
    [None, None, None, None, None]
    """
    while thought := _THOUGHT.match(text):
        text = text[thought.end() :]
    answer = text.strip()
    return answer if answer and answer in allowed else None
