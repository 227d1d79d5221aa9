"""`openai-image`: OpenAI's images API, and servers that speak it; from a text or as an edit.

``openai-image:MODEL[@BASE_URL][?size=1024x1024&quality=high&attempts=n&timeout=s]``. The API knows
no seed: pictures of one prompt differ by chance. ``seed=send`` is for servers that take one.
"""

from __future__ import annotations

import base64
import binascii
import json
import weakref
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

from PIL.Image import Image

from ...agents.backends.http import HttpSettings, failed_status, read_body, read_key
from ...agents.chat import Completion
from ...agents.retry import TransientError
from ...specs import Spec
from ..images import ImageError, open_image, plain_png
from . import REPORT, GeneratorError, ImageRequest

if TYPE_CHECKING:
    import openai

HTTP = ("attempts", "timeout")
"""Options of the connection: they change no picture."""
CALL = ("background", "input_fidelity", "moderation", "quality", "response_format", "size", "style")
"""Options that are sent as they are."""


class OpenAIImages:
    """One model behind `POST /images/generations` and `/images/edits`; key: OPENAI_API_KEY."""

    def __init__(
        self,
        settings: HttpSettings,
        call: Mapping[str, str],
        sends_seed: bool,
        client: openai.OpenAI,
        key: str,
    ) -> None:
        self._settings = settings
        self._call = call
        self._sends_seed = sends_seed
        self._client = client
        # Its sockets are closed with the backend, not when the collector finds them.
        weakref.finalize(self, client.close)
        self._key = key

    @classmethod
    def from_spec(cls, spec: Spec) -> OpenAIImages:
        """Raises ValueError for a wrong option, BackendError for a missing key."""
        import openai

        http = {name: spec.options[name] for name in HTTP if name in spec.options}
        call = {name: spec.options[name] for name in CALL if name in spec.options}
        if unknown := sorted(set(spec.options) - {*HTTP, *CALL, "seed"}):
            known = ", ".join([*CALL, *HTTP, "seed"])
            raise ValueError(f"{spec.kind}: no option {unknown[0]!r}: choose from {known}")
        if spec.options.get("seed", "send") != "send":
            raise ValueError(f"{spec.kind}: seed is `send`, or left out")
        settings = HttpSettings.from_spec(replace(spec, options=http))
        key = read_key("OPENAI_API_KEY", settings.base_url)
        client = openai.OpenAI(
            api_key=key, base_url=settings.base_url, timeout=settings.timeout, max_retries=0
        )
        return cls(settings, call, "seed" in spec.options, client, key)

    def identity(self) -> dict[str, str]:
        seed = "sent" if self._sends_seed else "unknown to the API"
        return {
            **self._settings.identity("openai-image", str(self._client.base_url)),
            **self._call,
            "seed": seed,
        }

    def generate(self, request: ImageRequest) -> Image:
        """The picture, with what the API said of it as JSON in ``info[REPORT]``.

        Raises GeneratorError, refused where a filter declined; BackendError where the server can't
        be used: then no further picture can be had, and the same command goes on later.
        """
        answer, lost = self._settings.retry.run(lambda: self._attempt(request))
        if isinstance(answer, Completion):
            refused = answer.outcome == "refused"
            raise GeneratorError(answer.text, "refused" if refused else "error", lost)
        made, image = _read(answer)
        report = {"usage": answer.get("usage"), "revised_prompt": made.get("revised_prompt"),
                  "lost_attempts": lost}  # fmt: skip
        image.info[REPORT] = json.dumps({k: v for k, v in report.items() if v}, sort_keys=True)
        return image

    def _attempt(self, request: ImageRequest) -> dict[str, Any] | Completion:
        """The response's body, or what became of a rejected request."""
        import openai

        images: Any = self._client.images.with_raw_response
        body: dict[str, Any] = {
            "model": self._settings.model,
            "prompt": request.prompt,
            **self._call,
        }
        if self._sends_seed:
            body["extra_body"] = {"seed": request.seed}
        try:
            if request.source is None:
                response = images.generate(**body)
            else:
                source = ("source.png", plain_png(request.source), "image/png")
                response = images.edit(image=source, **body)
        except openai.APIConnectionError as error:
            raise TransientError(f"no answer: {error.__cause__ or error}", billed=True) from None
        except openai.APIStatusError as error:
            return failed_status(error.response, self._key)
        return read_body(response.http_response.content, self._key)


def _read(answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], Image]:
    """The first picture's entry and the picture. Raises GeneratorError where there is none."""
    try:
        made: Mapping[str, Any] = answer["data"][0]
        encoded = made.get("b64_json")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise GeneratorError("the answer holds no picture") from None
    if not encoded:
        # An address may lead anywhere, also to this network's own machines: it is not followed.
        raise GeneratorError("the answer holds an address only: add response_format=b64_json")
    try:
        return made, open_image(BytesIO(base64.b64decode(encoded, validate=True)))
    except (ImageError, binascii.Error, TypeError, ValueError) as error:
        raise GeneratorError(f"the picture {error}") from None
