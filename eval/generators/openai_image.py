"""`openai-image`: OpenAI's images API, and servers that speak it; from a text or as an edit.

``openai-image:MODEL[@BASE_URL][?size=1024x1024&quality=high&num_inference_steps=28&seed=none]``.
Fields of the request that servers know go by their own name, any other as ``extra.NAME=VALUE``.
Every request carries its seed, unless the API is known to have none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from PIL.Image import Image

from ...agents.chat import Completion, Permit, always
from ...images import plain_png
from ...specs import Options, Spec
from ..core import GeneratorError, ImageRequest
from . import REPORT, PaidByImage
from .served import SEED, ServedModel, ServedOptions, decode_image, fetch_image

OPENAI = tuple(
    "background input_fidelity moderation output_format quality response_format size style".split()
)
"""Options that are arguments of OpenAI's SDK."""


class ImageApiOptions(ServedOptions):
    """Options of `openai-image`: fields of the request by their own names."""

    background: str | None = None
    """OpenAI: `transparent`, `opaque` or `auto`."""
    input_fidelity: str | None = None
    """OpenAI, for edits: `high` or `low`."""
    moderation: str | None = None
    """OpenAI: `low` or `auto`."""
    output_format: str | None = None
    """OpenAI: `png`, `jpeg` or `webp`."""
    quality: str | None = None
    """OpenAI: quality, such as `high`."""
    response_format: str | None = None
    """`b64_json` asks for the image itself instead of its address. Public addresses are fetched."""
    size: str | None = None
    """Width and height in pixels, such as `1024x1024`."""
    style: str | None = None
    """OpenAI's older models: `vivid` or `natural`."""
    output_compression: int | None = None
    """OpenAI: compression of a JPEG or WebP, percent."""
    guidance_scale: float | None = None
    """Guidance scale, for vLLM-Omni and SGLang."""
    height: int | None = None
    """Height in pixels, for vLLM-Omni and SGLang."""
    max_sequence_length: int | None = None
    """Number of tokens of the prompt that are read, for vLLM-Omni and SGLang."""
    negative_prompt: str | None = None
    """Description of what the image should not show, for vLLM-Omni and SGLang."""
    num_inference_steps: int | None = None
    """Denoising steps, for vLLM-Omni and SGLang."""
    strength: float | None = None
    """How much an edit changes the source image, for vLLM-Omni and SGLang."""
    true_cfg_scale: float | None = None
    """Scale of true classifier-free guidance, for vLLM-Omni and SGLang."""
    width: int | None = None
    """Width in pixels, for vLLM-Omni and SGLang."""


class OpenAIImages(PaidByImage):
    """One model behind `POST /images/generations` and `/images/edits`; key: OPENAI_API_KEY."""

    argument: ClassVar[str] = "MODEL[@URL]"
    options: ClassVar[type[Options]] = ImageApiOptions

    def __init__(self, served: ServedModel) -> None:
        self._served = served

    @classmethod
    def from_spec(cls, spec: Spec, options: ImageApiOptions) -> OpenAIImages:
        """Raises BackendError for a missing key."""
        return cls(ServedModel(spec, options))

    def identity(self) -> dict[str, str]:
        return self._served.identity()

    def generate(self, request: ImageRequest, permit: Permit = always) -> Image:
        """Returns the image, with the API's report as JSON in ``info[REPORT]``.

        Raises GeneratorError, refused if a filter declined; BackendError if the server can't be
        used, which ends the run until the same command is repeated; and the error of `permit`,
        which is called before an attempt after one that may have been billed.
        """
        answer, lost = self._served.wire.ask(lambda: self._send(request), dict, permit)
        if isinstance(answer, Completion):
            raise self._served.failure(answer, lost)
        entry, image = _read(answer)
        report = {"usage": answer.get("usage"), "revised_prompt": entry.get("revised_prompt")}
        report["lost_attempts"] = lost
        image.info[REPORT] = json.dumps({k: v for k, v in report.items() if v}, sort_keys=True)
        return image

    def _send(self, request: ImageRequest) -> Any:
        images: Any = self._served.wire.client.images.with_raw_response
        call = dict(self._served.call)
        if self._served.sends_seed:
            call[SEED] = request.seed
        body: dict[str, Any] = {
            "model": self._served.wire.endpoint.model,
            "prompt": request.prompt,
        }
        body |= {name: call.pop(name) for name in OPENAI if name in call}
        if request.source is None:
            return images.generate(**body, extra_body=call)
        # A form has no objects.
        form = {n: json.dumps(v) if isinstance(v, dict | list) else v for n, v in call.items()}
        sources = (request.source, *request.references)
        files = [(f"source{n or ''}.png", plain_png(s), "image/png") for n, s in enumerate(sources)]
        return images.edit(image=files if len(files) > 1 else files[0], **body, extra_body=form)


def _read(answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], Image]:
    """Returns the first image's entry and the image, fetched where the server gives its address.

    Raises GeneratorError without an image.
    """
    try:
        entry: Mapping[str, Any] = answer["data"][0]
        encoded, url = entry.get("b64_json"), entry.get("url")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise GeneratorError("the answer holds no image", code="bad-answer") from None
    if encoded:
        return entry, decode_image(encoded)
    if not isinstance(url, str) or not url:
        raise GeneratorError("the answer holds no image", code="bad-answer")
    try:
        return entry, fetch_image(url)
    except GeneratorError as error:
        error.args = (
            f"{error}; a server that can send the image itself does so with the option "
            "response_format=b64_json",
        )
        raise
