"""`openai`, `anthropic`, `scripted`: captioners that are models behind a server.

``openai:MODEL[@BASE_URL][?max_tokens=n]``, and the backend's own options. Every call goes through a
ledger, so that a run that was killed pays for no caption twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from ...agents.backends import open_chat
from ...agents.backends.http import ConnectionOptions
from ...agents.caller import Answer, Call, Caller
from ...agents.chat import ChatBackend, ChatRequest, ImagePart, without_thoughts
from ...agents.ledger import spec_hash
from ...agents.outage import Fuse
from ...images import plain_png
from ...specs import Options, Spec
from ..core import Caption, CaptionRequest
from ..judges import CallPlan
from . import MAX_TOKENS, CaptionTokens

SYSTEM = "You describe images."
"""Says nothing about what comes first; Anthropic's API takes no empty system prompt."""


class ChatCaptionerOptions(ConnectionOptions):
    """Options of a captioner behind a server."""

    temperature: Annotated[float, Field(ge=0)] | None = None
    """Sent only if set; several newer models reject it."""
    max_tokens: CaptionTokens = MAX_TOKENS
    """Longest caption, in tokens."""


class DrawingModelOptions(ConnectionOptions, extra="allow"):
    """Options of the captioner `chat-image`."""

    undeclared: ClassVar[str] = "options of the generator of the same spec"

    max_tokens: CaptionTokens = MAX_TOKENS
    """Longest caption, in tokens."""


class ChatCaptioner:
    """A model that is shown an image and an instruction, and answers with a caption."""

    options: ClassVar[type[Options]] = ChatCaptionerOptions

    def __init__(self, backend: ChatBackend, plan: CallPlan, max_tokens: int) -> None:
        self._backend = Fuse(backend)
        self._plan = plan
        self._max_tokens = max_tokens

    @classmethod
    def from_spec(cls, spec: Spec, options: Any, plan: CallPlan) -> Self:
        """Raises BackendError for a missing key."""
        backend = open_chat(spec, ("timeout", "attempts", "temperature"))
        return cls(backend, plan, options.max_tokens)

    def identity(self) -> dict[str, str]:
        settings = {"system": SYSTEM, "max_tokens": str(self._max_tokens)}
        return {**self._backend.identity(), **settings}

    def caption(
        self, requests: Iterable[CaptionRequest]
    ) -> Iterator[tuple[CaptionRequest, Caption]]:
        calls = ((request, self._call(request)) for request in requests)
        for request, answer in self._caller.stream(calls):
            yield request, _caption(answer)

    def check(self) -> None:
        """Raises BackendError, and UnpricedError where a cap is set and no price is known."""
        self._plan.check(self._backend, ChatRequest("captioner", SYSTEM, ("?",), self._max_tokens))

    @cached_property
    def _caller(self) -> Caller:
        prefix = f"captions-{self._backend.identity()['kind']}"
        identity = self.identity()
        return self._plan.caller(self._backend, prefix=prefix, identity=identity, holder=self)

    def _call(self, request: CaptionRequest) -> Call[str]:
        images = () if request.image is None else (ImagePart(plain_png(request.image)),)
        chat_request = ChatRequest(
            role="captioner",
            system=SYSTEM,
            user=(*images, request.instruction),
            max_tokens=self._max_tokens,
            may_be_cut=True,
        )
        # The content is part of the id: another image of the same name is a new call, not a drift.
        content = spec_hash(self._backend.identity(), chat_request)[:16]
        return Call(f"{request.id}/{content}", chat_request, without_thoughts)


class DrawingModel(ChatCaptioner):
    """A model that draws behind the same API, and captions images too."""

    argument = "MODEL[@URL]"
    options = DrawingModelOptions

    @classmethod
    def from_spec(cls, spec: Spec, options: Any, plan: CallPlan) -> Self:
        """Raises BackendError for a missing key."""
        return cls(open_chat(spec, ("timeout", "attempts"), "openai"), plan, options.max_tokens)


def _caption(answer: Answer[str]) -> Caption:
    text = answer.completion.text if answer.completion else ""
    if answer.status == "refused":
        return Caption(text, "refused")
    if answer.value is None or answer.completion is None:
        return Caption(answer.problem, "error")
    return Caption(answer.value, cut=answer.completion.outcome == "truncated")
