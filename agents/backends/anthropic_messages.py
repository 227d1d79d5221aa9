"""Anthropic's messages API."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...specs import Spec
from ..chat import CallOutcome, ChatRequest, Completion, ImagePart, Permit, always
from ..retry import UnreadableError
from .bounded import FILE
from .http import Wire, read_body, read_or_fail, with_lost
from .usage import read_usage

if TYPE_CHECKING:
    import anthropic

OUTCOMES: dict[str, CallOutcome] = {
    "end_turn": "ok",
    "stop_sequence": "ok",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}
"""`stop_reason` -> outcome; any other is an error."""

LONGEST = 20_000
"""Longest answer, in tokens, that the SDK allows without streaming."""


class AnthropicMessages:
    """One model behind `POST /v1/messages`; the key comes from ANTHROPIC_API_KEY."""

    def __init__(self, wire: Wire[anthropic.Anthropic]) -> None:
        self._wire = wire

    @classmethod
    def from_spec(cls, spec: Spec) -> AnthropicMessages:
        import anthropic

        return cls(Wire.open(spec, anthropic, anthropic.Anthropic, "ANTHROPIC_API_KEY"))

    def identity(self) -> dict[str, str]:
        return self._wire.identity()

    def check(self) -> int:
        return self._wire.check(self._wire.client.models.with_raw_response.list, "/v1/messages")

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        """Raises UsageError for what this API lacks: log probabilities, very long answers."""
        if request.top_logprobs:
            raise UsageError(
                "anthropic: returns no log probabilities; don't ask for them", code="unsupported"
            )
        if self._wire.endpoint.bound(request) > LONGEST:
            raise UsageError(
                f"anthropic: an answer has at most {LONGEST} tokens; add ?max_tokens={LONGEST}",
                code="out-of-range",
            )
        # Not `.parse`: it loses the response, and with it the bill, where validation fails.
        create = self._wire.client.messages.with_raw_response.create
        answer_and_lost = self._wire.ask(
            lambda: create(**self.body(request)), read_completion, permit
        )
        return with_lost(*answer_and_lost)

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The request as it goes over the wire."""
        # The system prompt is the same in all calls of a role: later ones read it from the cache.
        system = {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
        body: dict[str, Any] = {
            "model": self._wire.endpoint.model,
            "max_tokens": self._wire.endpoint.bound(request),
            "system": [system],
            "messages": [{"role": "user", "content": [_part(content) for content in request.user]}],
        }
        if request.schema is not None:
            schema = {"type": "json_schema", "schema": request.schema.body}
            body["output_config"] = {"format": schema}
        if self._wire.endpoint.options.temperature is not None:
            body["extra_body"] = {"temperature": self._wire.endpoint.options.temperature}
        return body

    def submit(self, requests: Mapping[str, ChatRequest]) -> str:
        listed = [
            {"custom_id": name, "params": self._params(request)}
            for name, request in requests.items()
        ]
        # Once only: a second try after a lost answer could send and bill the work twice.
        create: Any = self._batches.create
        return str(self._wire.once(lambda: create(requests=listed)).id)

    def finished(self, batch: str) -> bool:
        status = self._wire.repeat(lambda: self._batches.retrieve(batch))
        return status.processing_status == "ended"

    def results(self, batch: str) -> Iterator[tuple[str, Completion]]:
        for line in self._wire.repeat(lambda: list(self._batches.results(batch)), FILE):
            # A line that can't be read is left open; a single call asks for it again.
            with suppress(UnreadableError):
                answer = read_body(line.to_json().encode("utf-8", "replace"), self._wire.key)
                if answer["result"]["type"] == "succeeded":
                    message = answer["result"]["message"]
                    yield answer["custom_id"], read_or_fail(read_completion, message)

    @property
    def _batches(self) -> anthropic.resources.messages.Batches:
        return self._wire.client.messages.batches

    def _params(self, request: ChatRequest) -> dict[str, Any]:
        """The request as a batch holds it: extra fields of a call are plain fields there."""
        body = self.body(request)
        extra: dict[str, Any] = body.pop("extra_body", {})
        return body | extra


def _part(content: str | ImagePart) -> dict[str, Any]:
    if isinstance(content, str):
        return {"type": "text", "text": content}
    data = base64.b64encode(content.data).decode()
    source = {"type": "base64", "media_type": content.media_type, "data": data}
    return {"type": "image", "source": source}


def read_completion(raw: Mapping[str, Any]) -> Completion:
    """A response body as a completion. Raises UnreadableError if it is not a message."""
    try:
        outcome = OUTCOMES.get(raw["stop_reason"], "error")
        text = "".join(block["text"] for block in raw["content"] if block["type"] == "text")
        usage = read_usage(raw.get("usage"))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UnreadableError("the answer is no message") from None
    return Completion(outcome, text, usage, raw)
