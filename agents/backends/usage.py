"""Usage as servers report it: the one place that reads tokens, in every provider's words.

Nothing that a server writes here costs an answer: what is missing or can't be read becomes 0, which
the budget counts at its worst case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..chat import Usage

MOST_TOKENS = 100_000_000
"""Most tokens of one call; a server that reports more has miscounted."""

INPUT = ("prompt_tokens", "input_tokens")
OUTPUT = ("completion_tokens", "output_tokens")
"""Names of a field by provider: OpenAI's chat completions; Anthropic, and OpenAI's responses."""


def read_usage(report: Any) -> Usage | None:
    """Tokens that are billed, as an upper bound; None if a report says nothing about them.

    Some servers count reasoning beside the answer (xAI, Gemini behind gateways), others within it
    (OpenAI). The total tells which; without a total they count beside it. A part that is missing,
    0 or no number of tokens is 0.

    >>> read_usage({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 51}).output_tokens
    42
    """
    if not isinstance(report, Mapping):
        return None
    prompt, answer = _first(report, INPUT), _first(report, OUTPUT)
    read = _tokens(report.get("cache_read_input_tokens"))
    written = _tokens(report.get("cache_creation_input_tokens"))
    if prompt and "prompt_tokens" not in report:
        prompt += read + written  # Anthropic's `input_tokens` leave out what the cache took
    details = _mapping(report, "prompt_tokens_details", "input_tokens_details")
    read = read or _tokens(details.get("cached_tokens"))
    written = written or _tokens(details.get("cache_write_tokens"))
    reasoning = _tokens(
        _mapping(report, "completion_tokens_details", "output_tokens_details").get(
            "reasoning_tokens"
        )
    )
    if total := _tokens(report.get("total_tokens")):
        # Of a total without a prompt all may be answer.
        answer = max(answer, total - prompt, reasoning)
    elif answer or reasoning:
        answer += reasoning
    if not prompt and not answer:
        return None
    read = min(read, prompt)
    return Usage(prompt, answer, read, min(written, prompt - read))


def _first(report: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return max(_tokens(report.get(name)) for name in names)


def _mapping(report: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found = (report.get(name) for name in names)
    return next((details for details in found if isinstance(details, Mapping)), {})


def _tokens(value: Any) -> int:
    """A number of tokens; 0 for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if 0 <= value <= MOST_TOKENS and value == int(value) else 0
