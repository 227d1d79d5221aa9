"""Whatever puts images into words: one module an adapter, one line in `CAPTIONERS` each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from PIL.Image import Image

from ...errors import UsageError
from ...specs import Spec
from ..checkpoints.extras import open_adapter
from ..core import Caption, Captioner, CaptionRequest
from ..generators.python import python_identity, spec_identity
from ..judges import CallPlan

CAPTIONERS = {"hf-vlm": f"{__name__}.hf_vlm:LocalCaptioner"}
"""Kind of a spec -> ``module:Class``, imported when it is opened."""

PAID_CAPTIONERS = dict.fromkeys(
    ("anthropic", "chat-image", "openai", "scripted"), f"{__name__}.chat:ChatCaptioner"
)
"""Captioners that are paid by the call: their `from_spec` takes a call plan too."""

MAX_TOKENS = 512
"""Bound of a caption."""
MOST_TOKENS = 20_000
"""The largest bound that can be set."""


def open_captioner(text: str, plan: CallPlan | None = None) -> Captioner:
    """The captioner that a spec names: ``openai:MODEL``, ``hf-vlm:PATH``, ``python:mine:caption``.

    Raises UsageError for an unknown kind or option, a library that isn't installed, and a captioner
    of `PAID_CAPTIONERS` without a plan; BackendError for a missing key.
    """
    spec = Spec.parse(text)
    if spec.kind in PAID_CAPTIONERS and plan is None:
        raise UsageError(
            f"{spec.kind}: a captioner that is paid by the call needs a call plan",
            code="missing-option",
        )
    settings = (plan,) if spec.kind in PAID_CAPTIONERS else ()
    found = open_adapter({**CAPTIONERS, **PAID_CAPTIONERS}, spec, "captioner", *settings)
    return as_captioner(found, identity=spec_identity(spec))


def as_captioner(
    value: Any, plan: CallPlan | None = None, identity: Mapping[str, str] | str = ""
) -> Captioner:
    """A captioner from anything that can stand for one.

    A spec; an object of the protocol; or a function of an image and an instruction that returns a
    text or a `Caption`. `identity` says which version of code that is. Raises UsageError for
    anything else.
    """
    if isinstance(value, str):
        return open_captioner(value, plan)
    if isinstance(value, Captioner):
        return value
    if callable(value):
        return FunctionCaptioner(value, identity)
    raise UsageError(
        f"{value!r} is no captioner: give a spec, a function of an image and an instruction, or an "
        f"object with caption and identity",
        code="wrong-type",
    )


class FunctionCaptioner:
    """Writes what a function of an image and an instruction returns."""

    def __init__(
        self, function: Callable[[Image | None, str], Any], identity: Mapping[str, str] | str
    ) -> None:
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
            said = self._function(request.image, request.instruction)
        except Exception as error:  # the user's own code may raise anything
            return Caption(f"{type(error).__name__}: {error}", "error")
        if isinstance(said, Caption):
            return said
        if isinstance(said, str):
            return Caption(said)
        return Caption(f"a {type(said).__name__} is neither a text nor a Caption", "error")


def token_bound(spec: Spec) -> int:
    """The option `max_tokens` of a spec. Raises UsageError unless it is a whole number in range."""
    text = spec.options.get("max_tokens", str(MAX_TOKENS))
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_TOKENS):
        bounds = f"a whole number from 1 to {MOST_TOKENS}"
        raise UsageError(f"{spec.kind}: max_tokens is {bounds}, not {text!r}", code="out-of-range")
    return int(text)
