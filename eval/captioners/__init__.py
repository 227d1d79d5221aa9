"""Whatever puts images into words: one module an adapter, one line in `CAPTIONERS` each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any

from PIL.Image import Image
from pydantic import Field

from ...specs import Unit
from ..checkpoints.registry import Identity, Registry, RegistryEntry, python_identity
from ..core import Caption, Captioner, CaptionRequest
from ..judges import CallPlan

MAX_TOKENS = 512
"""Bound of a caption."""
CUT = json.dumps(
    {"note": "some texts were cut at the most tokens of their model: raise max_tokens"}
)
"""Report of a text that goes on after the most tokens of its captioner."""
CaptionTokens = Annotated[int, Field(ge=1, le=20_000), Unit("tokens")]


class FunctionCaptioner:
    """Writes what a function of an image and an instruction returns."""

    def __init__(self, function: Callable[[Image | None, str], Any], identity: Identity) -> None:
        self._function = function
        self._identity = python_identity(function, identity)

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def caption(
        self, requests: Iterable[CaptionRequest]
    ) -> Iterator[tuple[CaptionRequest, Caption]]:
        for request in requests:
            yield request, self._caption(request)

    def _caption(self, request: CaptionRequest) -> Caption:
        try:
            result = self._function(request.image, request.instruction)
        except Exception as error:  # the user's own code may raise anything
            return Caption(f"{type(error).__name__}: {error}", "error")
        if isinstance(result, Caption):
            return result
        if isinstance(result, str):
            return Caption(result)
        return Caption(f"a {type(result).__name__} is neither a text nor a Caption", "error")


_CHAT = RegistryEntry(f"{__name__}.chat:ChatCaptioner", paid=True, argument="MODEL[@URL]")

CAPTIONERS: Registry[Captioner] = Registry(
    "captioner",
    {
        "anthropic": _CHAT,
        "chat-image": RegistryEntry(f"{__name__}.chat:DrawingModel", paid=True),
        "hf-vlm": f"{__name__}.hf_vlm:LocalCaptioner",
        "openai": _CHAT,
        "scripted": replace(_CHAT, argument="FILE"),
    },
    protocol=Captioner,
    wrappers={Callable: FunctionCaptioner},
    accepts="a function of an image and an instruction that returns a text or a `Caption`, or an "
    "object with caption and identity",
)
"""Each `from_spec` takes a `CallPlan` too, which may be None for a captioner that isn't paid."""


def as_captioner(value: Any, plan: CallPlan | None = None, identity: Identity = "") -> Captioner:
    """A captioner from anything that can stand for one; raises as `Registry.adapt`."""
    return CAPTIONERS.adapt(value, plan, identity=identity)
