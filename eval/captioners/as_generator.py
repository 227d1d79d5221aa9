"""`caption`: a captioner in a generator's place, which writes a text for each case.

``caption:CAPTIONER`` takes the captioner's spec as it is: ``caption:openai:MODEL?max_tokens=64``.
A case's source is captioned, with its prompt as the instruction; in a variant that is mirrored, the
mirror image is.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Self

from PIL import Image

from ...agents.budget import Budget, PriceTable
from ...images import ImageError, settle_image
from ...printable import without_surrogates
from ...scenes.scene import mirror_image
from ...specs import Options, Spec
from ..core import (
    OBSERVED,
    Caption,
    CaptionRequest,
    Case,
    GeneratedText,
    GeneratorError,
    ImageRequest,
    is_mirrored,
)
from ..judges import Answering, CallPlan
from . import CUT, as_captioner

LONGEST_SIDE = 1024
"""Longest side of an image as shown, pixels; larger images are scaled down."""
BATCHES = 8
"""Requests to a server in one call, for each that may be under way: the slowest of a call holds up
none of the others until its end."""


class CaptionerOptions(Options, extra="allow"):
    """Options of the captioner."""

    undeclared: ClassVar[str] = "options of the captioner"


class CaptionGenerator:
    """A captioner that stands where a generator stands."""

    argument: ClassVar[str] = "CAPTIONER"
    options: ClassVar[type[Options]] = CaptionerOptions

    def __init__(self, value: Any) -> None:
        """value: a captioner, or what can stand for one; one that is paid makes no call before
        `prepare`. Raises as `as_captioner`."""
        self._value = value
        self._captioner = as_captioner(value, _unpaid())
        self.batch_size = 1

    @classmethod
    def from_spec(cls, spec: Spec, options: CaptionerOptions) -> Self:
        """Raises UsageError for a bad spec of a captioner."""
        inner = Spec.parse(spec.argument)
        return cls(str(Spec(inner.kind, inner.argument, options.rest)))

    @property
    def is_served(self) -> bool:
        """Whether the captioner is behind a server, so that workers must not ask it."""
        return isinstance(self._captioner, Answering)

    def identity(self) -> dict[str, str]:
        inner = {
            f"{OBSERVED}inner_{name.removeprefix(OBSERVED)}"
            if name.startswith(OBSERVED)
            else f"inner_{name}": value
            for name, value in self._captioner.identity().items()
        }
        return {"kind": "caption", **inner}

    def prepare(self, folder: Path, plan: CallPlan) -> None:
        """As `Prepared.prepare`."""
        if self.is_served:
            self._captioner = as_captioner(self._value, plan)
            self.batch_size = BATCHES * plan.concurrency

    def check(self, cases: Sequence[Case]) -> None:
        """Raises BackendError for a server that wouldn't answer, UnpricedError under a cap."""
        if isinstance(self._captioner, Answering):
            self._captioner.check()

    def generate(self, request: ImageRequest) -> GeneratedText:
        """Raises GeneratorError for a caption that was refused or failed."""
        (output,) = self.generate_batch([request])
        if isinstance(output, GeneratorError):
            raise output
        return output

    def generate_batch(
        self, requests: Sequence[ImageRequest]
    ) -> list[GeneratedText | GeneratorError]:
        outputs: dict[str, GeneratedText | GeneratorError] = {}
        to_write: list[CaptionRequest] = []
        for request in requests:
            name = _name(request)
            try:
                to_write.append(CaptionRequest(name, request.prompt, shown_image(request)))
            except GeneratorError as error:
                outputs[name] = error
        for caption_request, caption in self._captioner.caption(iter(to_write)):
            outputs[caption_request.id] = _output(caption)
        return [outputs[_name(request)] for request in requests]


def shown_image(request: ImageRequest) -> Image.Image:
    """The image of a request as a captioner is shown it, RGB. Raises GeneratorError without one."""
    if request.source is None:
        raise GeneratorError("there is no image to caption", code="no-seed-image")
    try:
        image = settle_image(request.source)
    except ImageError as error:
        raise GeneratorError(f"the image {error}", code="unreadable-image") from None
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    image.info = {}  # a drawn image says there who stands where
    mirrored = request.case is not None and is_mirrored(request.case.variant)
    return mirror_image(image) if mirrored else image


def _name(request: ImageRequest) -> str:
    assert request.case is not None, "only cases of a run are captioned"
    return request.case.id


def _output(caption: Caption) -> GeneratedText | GeneratorError:
    if caption.status == "refused":
        return GeneratorError(caption.text or "refused", "refused", code="declined")
    if caption.status == "error":
        return GeneratorError(caption.text, code="bad-answer")
    return GeneratedText(without_surrogates(caption.text), CUT if caption.cut else "")


def _unpaid() -> CallPlan:
    """A plan under which nothing may be paid."""
    return CallPlan(Path(), Budget(PriceTable({}), Decimal(0)))
