"""`openai-image`: OpenAI's images API, and servers that speak it; from a text or as an edit.

``openai-image:MODEL[@BASE_URL][?size=1024x1024&quality=high&attempts=n&timeout=s]``. The API knows
no seed: images of one prompt differ by chance. ``seed=send`` is for servers that take one.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any

from PIL.Image import Image

from ...agents.backends.http import Wire
from ...agents.chat import Completion, Permit, always
from ...errors import UsageError
from ...images import ImageError, open_image, plain_png
from ...specs import Spec
from ..checkpoints.extras import SpecAdapter
from ..core import GeneratorError, ImageRequest
from . import REPORT, PaidByImage

HTTP = ("attempts", "timeout")
"""Options of the connection: they change no image."""
CALL = ("background", "input_fidelity", "moderation", "quality", "response_format", "size", "style")
"""Options that are sent as they are."""


class OpenAIImages(SpecAdapter, PaidByImage):
    """One model behind `POST /images/generations` and `/images/edits`; key: OPENAI_API_KEY."""

    def __init__(self, spec: Spec) -> None:
        """Raises UsageError for a wrong option, BackendError for a missing key."""
        import openai

        options = spec.options
        if unknown := sorted(set(options) - {*HTTP, *CALL, "seed"}):
            known = ", ".join([*CALL, *HTTP, "seed"])
            raise UsageError(f"{spec.kind}: no option {unknown[0]!r}: choose from {known}")
        if options.get("seed", "send") != "send":
            raise UsageError(f"{spec.kind}: seed is `send`, or left out")
        self._sends_seed = "seed" in options
        self._call = {name: options[name] for name in CALL if name in options}
        http = replace(spec, options={name: options[name] for name in HTTP if name in options})
        self._wire = Wire.open(http, openai, openai.OpenAI, "OPENAI_API_KEY")

    def identity(self) -> dict[str, str]:
        seed = "sent" if self._sends_seed else "unknown to the API"
        return {**self._wire.identity(), **self._call, "seed": seed}

    def generate(self, request: ImageRequest, permit: Permit = always) -> Image:
        """The image, with what the API said of it as JSON in ``info[REPORT]``.

        Raises GeneratorError, refused where a filter declined; BackendError where the server can't
        be used: then no further image can be had, and the same command goes on later; and what
        `permit` raises, asked before an attempt after one that may have been billed.
        """
        answer, lost = self._wire.ask(lambda: self._send(request), dict, permit)
        if isinstance(answer, Completion):
            refused = answer.outcome == "refused"
            raise GeneratorError(answer.text, "refused" if refused else "error", lost)
        made, image = _read(answer)
        report = {"usage": answer.get("usage"), "revised_prompt": made.get("revised_prompt")}
        report["lost_attempts"] = lost
        image.info[REPORT] = json.dumps({k: v for k, v in report.items() if v}, sort_keys=True)
        return image

    def _send(self, request: ImageRequest) -> Any:
        images: Any = self._wire.client.images.with_raw_response
        model = self._wire.settings.model
        body: dict[str, Any] = {"model": model, "prompt": request.prompt, **self._call}
        if self._sends_seed:
            body["extra_body"] = {"seed": request.seed}
        if request.source is None:
            return images.generate(**body)
        source = ("source.png", plain_png(request.source), "image/png")
        return images.edit(image=source, **body)


def _read(answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], Image]:
    """The first image's entry and the image. Raises GeneratorError where there is none."""
    try:
        made: Mapping[str, Any] = answer["data"][0]
        encoded = made.get("b64_json")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise GeneratorError("the answer holds no image") from None
    if not encoded:
        # An address may lead anywhere, also to this network's own machines: it is not followed.
        raise GeneratorError("the answer holds an address only: add response_format=b64_json")
    try:
        return made, open_image(BytesIO(base64.b64decode(encoded, validate=True)))
    except (ImageError, binascii.Error, TypeError, ValueError) as error:
        raise GeneratorError(f"the image {error}") from None
