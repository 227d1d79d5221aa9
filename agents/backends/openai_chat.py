"""OpenAI's chat completions, and every server that speaks them (vLLM, llama.cpp, ...)."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...specs import Spec
from ..batch import BatchFailedError
from ..chat import CallOutcome, ChatRequest, Completion, ImagePart, Permit, always
from ..retry import UnreadableError
from .bounded import FILE
from .http import SHOWN, Wire, hide, read_body, read_or_fail, with_lost
from .usage import read_usage

if TYPE_CHECKING:
    import openai

OUTCOMES: dict[str, CallOutcome] = {
    "stop": "ok",
    "length": "truncated",
    "content_filter": "refused",
}
"""`finish_reason` -> outcome; any other is an error."""

SLACK = 0.01
"""Most that a log probability may lie above 0: servers round."""


class OpenAIChat:
    """One model behind `POST /chat/completions`; the key comes from OPENAI_API_KEY."""

    def __init__(self, wire: Wire[openai.OpenAI]) -> None:
        self._wire = wire
        self._client = wire.client

    @classmethod
    def from_spec(cls, spec: Spec) -> OpenAIChat:
        import openai

        return cls(Wire.open(spec, openai, openai.OpenAI, "OPENAI_API_KEY"))

    def identity(self) -> dict[str, str]:
        return self._wire.identity()

    def check(self) -> int:
        return self._wire.check(self._client.models.with_raw_response.list, "/chat/completions")

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        # Not `.parse`: it loses the response, and with it the bill, where validation fails.
        create = self._client.chat.completions.with_raw_response.create
        answer_and_lost = self._wire.ask(
            lambda: create(**self.body(request)), read_completion, permit
        )
        return with_lost(*answer_and_lost)

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The request as it goes over the wire."""
        body: dict[str, Any] = {
            "model": self._wire.endpoint.model,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": [_part(content) for content in request.user]},
            ],
            "max_completion_tokens": self._wire.endpoint.bound(request),
        }
        if request.schema is not None:
            schema = {"name": request.schema.name, "strict": True, "schema": request.schema.body}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        if self._wire.endpoint.options.temperature is not None:
            body["temperature"] = self._wire.endpoint.options.temperature
        return body

    def submit(self, requests: Mapping[str, ChatRequest]) -> str:
        lines = [
            json.dumps(
                {
                    "custom_id": name,
                    "method": "POST",
                    "url": "/v1/chat/completions",
                    "body": self.body(request),
                }
            )
            for name, request in requests.items()
        ]
        content = ("batch.jsonl", "\n".join(lines).encode() + b"\n")
        files, batches = self._client.files, self._client.batches
        file = self._wire.repeat(lambda: files.create(file=content, purpose="batch"))
        # Once only: a second try after a lost answer could send and bill the work twice.
        batch = self._wire.once(
            lambda: batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
        )
        return batch.id

    def finished(self, batch: str) -> bool:
        state = self._wire.repeat(lambda: self._client.batches.retrieve(batch))
        if state.status == "failed":
            reasons = hide(str(state.errors), self._wire.key)
            raise BatchFailedError(
                f"batch {batch} failed and was not billed: {reasons}", code="batch-failed"
            )
        return state.status in ("completed", "expired", "cancelled")

    def results(self, batch: str) -> Iterator[tuple[str, Completion]]:
        state = self._wire.repeat(lambda: self._client.batches.retrieve(batch))
        if state.output_file_id is None:
            return
        name: str = state.output_file_id
        content = self._wire.repeat(lambda: self._client.files.content(name), FILE).content
        for line in content.splitlines():
            # A line that can't be read is left open; a single call asks for it again.
            with suppress(UnreadableError):
                answer = read_body(line, self._wire.key)
                response = answer.get("response")
                if isinstance(response, dict) and response.get("status_code") == 200:
                    body = response.get("body") or {}
                    yield str(answer.get("custom_id")), read_or_fail(read_completion, body)


def _part(content: str | ImagePart) -> dict[str, Any]:
    if isinstance(content, str):
        return {"type": "text", "text": content}
    data = base64.b64encode(content.data).decode()
    url = f"data:{content.media_type};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url, "detail": "high"}}


def read_completion(raw: Mapping[str, Any]) -> Completion:
    """A response body as a completion. Raises UnreadableError if it is not a chat completion."""
    try:
        choice = raw["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        outcome = "refused" if refusal else OUTCOMES.get(choice["finish_reason"], "error")
        text = refusal or message.get("content") or ""
        usage = read_usage(raw.get("usage"))
        first = _first_token(choice.get("logprobs"))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise UnreadableError("the answer is not a chat completion") from None
    if not isinstance(text, str):
        raise UnreadableError("the answer's content is no text")
    return Completion(outcome, text, usage, raw, first)


def _first_token(logprobs: Mapping[str, Any] | None) -> tuple[tuple[str, float], ...]:
    tokens = (logprobs or {}).get("content") or []
    if not tokens:
        return ()
    alternatives = [(t["token"], t["logprob"]) for t in tokens[0]["top_logprobs"]]
    for token, logprob in alternatives:
        if not isinstance(token, str):
            raise UnreadableError(f"a token is {str(token)[:SHOWN]!r}, no text", retryable=False)
        if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or logprob > SLACK:
            reason = f"{str(logprob)[:SHOWN]!r} is no log probability"
            raise UnreadableError(reason, retryable=False)
    # A server may write an impossible token as minus infinity.
    return tuple((token, float(p)) for token, p in alternatives if math.isfinite(p))
