"""`openai`, `anthropic`, `scripted`: captioners that are models behind a server.

``openai:MODEL[@BASE_URL][?max_tokens=n]``, and the backend's own options. Every call goes through a
ledger, so that a run that was killed pays for no caption twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from ...agents.backends import BACKENDS
from ...agents.caller import Answer, Call, Caller
from ...agents.chat import ChatBackend, ChatRequest, ImagePart, without_thoughts
from ...agents.ledger import spec_hash
from ...agents.outage import Fuse
from ...images import plain_png
from ...specs import Spec
from ..core import Caption, CaptionRequest
from ..judges import CallPlan
from . import token_bound

HTTP = ("attempts", "timeout")
"""Options of the connection."""
DRAWS = "chat-image"
"""Kind of models that draw behind the same API, and put images into words too."""
SYSTEM = "You describe images."
"""Says nothing about what comes first; Anthropic's API takes no empty system prompt."""


class ChatCaptioner:
    """A model that is shown an image and an instruction, and answers with a caption."""

    def __init__(self, backend: ChatBackend, plan: CallPlan, max_tokens: int) -> None:
        self._backend = Fuse(backend)
        self._plan = plan
        self._max_tokens = max_tokens

    @classmethod
    def from_spec(cls, spec: Spec, plan: CallPlan) -> ChatCaptioner:
        """Raises UsageError for a wrong option, BackendError for a missing key."""
        rest = {name: text for name, text in spec.options.items() if name != "max_tokens"}
        kind = spec.kind
        if kind == DRAWS:  # what it says of images is for the generator of the same spec
            kind, rest = "openai", {name: text for name, text in rest.items() if name in HTTP}
        backend = BACKENDS[kind](replace(spec, kind=kind, options=rest))
        return cls(backend, plan, token_bound(spec))

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
        trial = ChatRequest("captioner", SYSTEM, ("?",), self._max_tokens)
        self._plan.budget.check(self._backend.identity(), trial)
        self._backend.check()

    @cached_property
    def _caller(self) -> Caller:
        prefix = f"captions-{self._backend.identity()['kind']}"
        identity = self.identity()
        return self._plan.caller(self._backend, prefix=prefix, identity=identity, holder=self)

    def _call(self, request: CaptionRequest) -> Call[str]:
        shown = () if request.image is None else (ImagePart(plain_png(request.image)),)
        asked = ChatRequest(
            role="captioner",
            system=SYSTEM,
            user=(*shown, request.instruction),
            max_tokens=self._max_tokens,
            may_be_cut=True,
        )
        # The content is part of the id: another image of the same name is a new call, not a drift.
        content = spec_hash(self._backend.identity(), asked)[:16]
        return Call(f"{request.id}/{content}", asked, without_thoughts)


def _caption(answer: Answer[str]) -> Caption:
    said = answer.completion.text if answer.completion else ""
    if answer.status == "refused":
        return Caption(said, "refused")
    if answer.value is None or answer.completion is None:
        return Caption(answer.problem, "error")
    return Caption(answer.value, cut=answer.completion.outcome == "truncated")
