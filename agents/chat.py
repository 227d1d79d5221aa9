"""What is asked of a model and what comes back: one request, one completion, no conversation.

Every role of every loop, and every judge that is a language model, speaks in these types, so that
ledger, budget and backends know one shape.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from ..errors import RunFailed

CallOutcome = Literal["ok", "refused", "truncated", "error"]
"""How a paid call ended.

`ok`: the model stopped by itself; `refused`: it or a filter declined; `truncated`: it ran into
`max_tokens`; `error`: the server rejected this very request, or stopped for another reason.
"""


@dataclass(frozen=True)
class ImagePart:
    """A picture in a request."""

    data: bytes
    """The encoded file."""
    media_type: str = "image/png"
    """`image/png`, `image/jpeg` or `image/webp`."""


@dataclass(frozen=True)
class JsonSchema:
    """The JSON that an answer must be.

    Only what both providers enforce in strict mode: every property required, no further ones, no
    bounds. Bounds are the validator's.
    """

    name: str
    """Letters, digits, `_` and `-`."""
    body: Mapping[str, Any]
    """The schema itself."""

    @cached_property
    def text(self) -> str:
        """Name and schema in one spelling."""
        return json.dumps({"name": self.name, "body": self.body}, sort_keys=True)


@dataclass(frozen=True)
class ChatRequest:
    """One call's whole input."""

    role: str
    """Who asks (`scout`, `judge`, ...): for the accounts, not sent."""
    system: str
    """The standing instructions."""
    user: tuple[str | ImagePart, ...]
    """Texts and pictures, in order."""
    max_tokens: int
    """Bound of the answer, in tokens; with the prompt it bounds what the call can cost."""
    schema: JsonSchema | None = None
    """Where set, the answer is asked for as JSON of this shape."""
    top_logprobs: int = 0
    """Where above 0, log probabilities of so many alternatives of the first token (at most 20)."""
    may_be_cut: bool = False
    """Whether an answer that ran into `max_tokens` is one, as with one-token verdicts."""

    def spec(self) -> dict[str, Any]:
        """The request as plain data for hashing and diffing; pictures by their SHA-256."""
        return {
            "role": self.role,
            "system": self.system,
            "user": [_part_spec(part) for part in self.user],
            "max_tokens": self.max_tokens,
            "schema": {"name": self.schema.name, "body": self.schema.body} if self.schema else None,
            "top_logprobs": self.top_logprobs,
            "may_be_cut": self.may_be_cut,
        }


def _part_spec(part: str | ImagePart) -> Any:
    if isinstance(part, str):
        return part
    return {"image": hashlib.sha256(part.data).hexdigest(), "media_type": part.media_type}


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as billed."""

    input_tokens: int
    """All of the prompt, cached or not."""
    output_tokens: int
    """All that was generated, hidden reasoning included."""
    cache_read_tokens: int = 0
    """Of the input: read from the provider's cache."""
    cache_write_tokens: int = 0
    """Of the input: written to it."""


@dataclass(frozen=True)
class Completion:
    """What came back from one call."""

    outcome: CallOutcome
    """How it ended."""
    text: str
    """The answer verbatim; for `refused` and `error` what the server said instead."""
    usage: Usage | None
    """None where the server did not report it; 0 tokens where it rejected the request."""
    raw: Mapping[str, Any]
    """The response body."""
    first_token: tuple[tuple[str, float], ...] = ()
    """Alternatives of the first token with their natural-log probabilities, where asked for."""
    lost_attempts: int = 0
    """Attempts before this one that timed out or were cut, and may have been billed."""


class BackendError(RunFailed):
    """The server can't be used: unreachable after all retries, or it rejects key or model.

    Nothing was recorded, so the same command resumes the run.
    """

    def __init__(self, message: str, lost_attempts: int = 0) -> None:
        super().__init__(message)
        self.lost_attempts = lost_attempts
        """Attempts that timed out or were cut off, and may have been billed."""


class NotRecordedError(BackendError):
    """A replay came to a call that its ledger doesn't hold."""


Permit = Callable[[], None]
"""Asked before an attempt that follows one which may have been billed; raises to forbid it."""


def always() -> None:
    """Forbids no attempt."""


class ChatBackend(Protocol):
    """A model behind some server."""

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        """One answer, from any thread.

        Raises BackendError where the server can't be used, and what `permit` raises.
        """
        ...

    def check(self) -> None:
        """Makes sure, at no cost, that the server answers before a long run starts.

        Raises BackendError saying why it does not.
        """
        ...

    def identity(self) -> dict[str, str]:
        """What answers (`kind`, `model`, `provider`, settings); part of every call's spec."""
        ...
