"""Requests to models and their completions: one request, one completion, no conversation.

Every role of every loop and every judge that is a language model uses these types, so that ledger,
budget and backends handle one shape.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from ..errors import RunFailed

CallOutcome = Literal["ok", "refused", "truncated", "error"]
"""How a paid call ended.

`ok`: the model stopped by itself; `refused`: it or a filter declined; `truncated`: it reached
`max_tokens`; `error`: the server rejected this request, or stopped for another reason.
"""


@dataclass(frozen=True)
class ImagePart:
    """An image in a request."""

    data: bytes
    """The encoded file."""
    media_type: str = "image/png"
    """`image/png`, `image/jpeg` or `image/webp`."""


@dataclass(frozen=True)
class JsonSchema:
    """The JSON schema of an answer.

    It has only what both providers enforce in strict mode: all properties required, no others
    allowed, no bounds. The validator checks bounds.
    """

    name: str
    """Letters, digits, `_` and `-`."""
    body: Mapping[str, Any]
    """The schema itself."""

    @cached_property
    def text(self) -> str:
        """Name and schema as canonical JSON."""
        return json.dumps({"name": self.name, "body": self.body}, sort_keys=True)


@dataclass(frozen=True)
class ChatRequest:
    """The whole input of a call."""

    role: str
    """Role that asks (`scout`, `judge`, ...); used in the accounts, not sent."""
    system: str
    """The standing instructions."""
    user: tuple[str | ImagePart, ...]
    """Texts and images, in order."""
    max_tokens: int
    """Longest answer, in tokens; with the prompt it bounds what the call can cost."""
    schema: JsonSchema | None = None
    """If set, the answer must be JSON of this shape."""
    top_logprobs: int = 0
    """Alternatives of the first token whose log probabilities are returned, 0 to 20."""
    may_be_cut: bool = False
    """Whether an answer that reached `max_tokens` is valid, as with one-token verdicts."""
    choices: tuple[str, ...] = ()
    """All allowed answers, for a server that decides among them and writes nothing."""

    def spec(self) -> dict[str, Any]:
        """The request as plain data for hashing and diffing; images by their SHA-256."""
        return {
            "role": self.role,
            "system": self.system,
            "user": [_part_spec(content) for content in self.user],
            "max_tokens": self.max_tokens,
            "schema": {"name": self.schema.name, "body": self.schema.body} if self.schema else None,
            "top_logprobs": self.top_logprobs,
            "may_be_cut": self.may_be_cut,
            **({"choices": [*self.choices]} if self.choices else {}),
        }


def _part_spec(content: str | ImagePart) -> Any:
    if isinstance(content, str):
        return content
    return {"image": hashlib.sha256(content.data).hexdigest(), "media_type": content.media_type}


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as billed; a part that the server didn't report is 0."""

    input_tokens: int
    """All of the prompt, cached or not."""
    output_tokens: int
    """All that was generated, including hidden reasoning."""
    cache_read_tokens: int = 0
    """Input tokens read from the provider's cache."""
    cache_write_tokens: int = 0
    """Input tokens written to the provider's cache."""


@dataclass(frozen=True)
class Completion:
    """Response to one call."""

    outcome: CallOutcome
    """How it ended."""
    text: str
    """The answer verbatim; for `refused` and `error`, what the server said instead."""
    usage: Usage | None
    """None if the server did not report it; no tokens at all if it rejected the request unpaid."""
    raw: Mapping[str, Any]
    """The response body."""
    first_token: tuple[tuple[str, float], ...] = ()
    """Alternatives of the first token with their natural-log probabilities, if requested."""
    lost_attempts: int = 0
    """Earlier attempts that timed out or were cut off, and may have been billed."""


_THOUGHT = re.compile(r"\s*(?:<think(?:ing)?>)?(?:(?!<think).)*?</think(?:ing)?>", re.DOTALL)
"""A block of thoughts at the start; its opening tag may have been in the chat template."""


def without_thoughts(text: str) -> str:
    """Returns a model's text after its thoughts, stripped.

    >>> without_thoughts("<think>A dog?</think>\\n<think>No.</think> A cat.\\n")
    'A cat.'
    """
    while thought := _THOUGHT.match(text):
        text = text[thought.end() :]
    return text.strip()


class BackendError(RunFailed):
    """The server can't be used: unreachable after all retries, or it rejects key or model.

    Nothing was recorded, so the same command resumes the run.
    """

    def __init__(self, message: str, lost_attempts: int = 0, *, code: str = "") -> None:
        super().__init__(message, code=code)
        self.lost_attempts = lost_attempts
        """Attempts that timed out or were cut off, and may have been billed."""


class UnusableModelError(BackendError):
    """The server rejects model, key or account: every call would fail alike, so none goes on."""


class NotRecordedError(BackendError):
    """A replay reached a call that its ledger doesn't hold."""


Permit = Callable[[], None]
"""Called before an attempt that follows a possibly billed one; raises to forbid it."""


def always() -> None:
    """Permits every attempt."""


class ChatBackend(Protocol):
    """A model behind a server."""

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        """One answer, from any thread.

        Raises BackendError if the server can't be used, and what `permit` raises.
        """
        ...

    def check(self) -> int:
        """Makes sure, at no cost, that the server answers before a long run starts.

        Returns the number of attempts that were made again. Raises BackendError saying why it does
        not answer.
        """
        ...

    def identity(self) -> dict[str, str]:
        """Returns the answerer: `kind`, `model`, `provider`, `server` if it is not the vendor's,
        and settings; part of every call's specification."""
        ...
