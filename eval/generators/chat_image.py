"""`chat-image`: a model that answers in a chat with an image, from a text or as an edit.

``chat-image:MODEL[@BASE_URL][?aspect_ratio=1:1&image_size=1K&seed=none]``: Gemini's image models
through OpenRouter and other servers of OpenAI's chat API. The image is in the answer's `images`, in
its content, or as a data address within its text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from PIL.Image import Image

from ...agents.chat import Completion, Permit, always
from ...images import plain_png
from ...specs import Options, Spec
from ..core import GeneratorError, ImageRequest
from . import REPORT, PaidByImage
from .served import SEED, ServedModel, ServedOptions, decode_image, fetch_image

CONFIG = ("aspect_ratio", "image_size")
"""Options that OpenRouter takes within `image_config`."""
MODALITIES = "image,text"
"""Default modalities of an answer."""

REFUSALS = frozenset(
    "content_filter safety image_safety prohibited_content image_prohibited_content blocklist spii "
    "recitation image_recitation refusal".split()
)
"""Finish reasons, the server's or the model's own, of a declined answer."""
SHOWN = 300
"""Characters of an answer's text that an error quotes."""

_DATA = re.compile(r"data:image/[\w.+-]+;base64,([A-Za-z0-9+/=\s]+)")


class ChatImageOptions(ServedOptions):
    """Options of `chat-image`."""

    aspect_ratio: str | None = None
    """Width to height, such as `1:1`."""
    image_size: str | None = None
    """Size as the server names it, such as `1K`."""
    max_tokens: int | None = None
    """Longest answer, in tokens."""
    modalities: str | None = None
    """Modalities of an answer, comma-separated; `image,text` by default."""
    temperature: float | None = None
    """Sent only if set."""
    top_p: float | None = None
    """Sent only if set."""


class ChatImages(PaidByImage):
    """One model behind `POST /chat/completions`; key: OPENAI_API_KEY."""

    argument: ClassVar[str] = "MODEL[@URL]"
    options: ClassVar[type[Options]] = ChatImageOptions

    def __init__(self, served: ServedModel) -> None:
        self._served = served

    @classmethod
    def from_spec(cls, spec: Spec, options: ChatImageOptions) -> ChatImages:
        """Raises BackendError for a missing key."""
        return cls(ServedModel(spec, options))

    def identity(self) -> dict[str, str]:
        return self._served.identity()

    def generate(self, request: ImageRequest, permit: Permit = always) -> Image:
        """Returns the image, with usage and text of the answer as JSON in ``info[REPORT]``.

        Raises GeneratorError: refused if the model or a filter declines, an error for a text
        without an image; BackendError if the server can't be used; and the error of `permit`, which
        is called before an attempt after one that may have been billed.
        """
        answer, lost = self._served.wire.ask(lambda: self._send(request), dict, permit)
        if isinstance(answer, Completion):
            raise self._served.failure(answer, lost)
        try:
            message, reasons = read_message(answer)
            addresses = list(images_of(message))
            if not addresses:
                raise _without_image(message, reasons)
            image = _open(addresses[0])
        except GeneratorError as error:
            error.lost_attempts = lost
            raise
        report = {"usage": answer.get("usage"), "text": text_of(message)[:SHOWN]}
        report |= {"images": len(addresses) if len(addresses) > 1 else 0, "lost_attempts": lost}
        image.info[REPORT] = json.dumps({k: v for k, v in report.items() if v}, sort_keys=True)
        return image

    def _send(self, request: ImageRequest) -> Any:
        create: Any = self._served.wire.client.chat.completions.with_raw_response.create
        sources = () if request.source is None else (request.source, *request.references)
        content: list[dict[str, Any]] = [{"type": "text", "text": request.prompt}]
        content += [{"type": "image_url", "image_url": {"url": _data(image)}} for image in sources]
        call = dict(self._served.call)
        call["modalities"] = call.get("modalities", MODALITIES).split(",")
        if config := {name: call.pop(name) for name in CONFIG if name in call}:
            call["image_config"] = config
        if self._served.sends_seed:
            call[SEED] = request.seed
        return create(
            model=self._served.wire.endpoint.model,
            messages=[{"role": "user", "content": content}],
            extra_body=call,
        )


def read_message(answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], set[str]]:
    """Returns the first choice's message and its finish reasons in lower case.

    Raises GeneratorError for an answer that is not a chat completion.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        reasons = {choice.get("finish_reason"), choice.get("native_finish_reason")}
    except (KeyError, IndexError, TypeError, AttributeError):
        error = answer.get("error")
        quoted = f": {json.dumps(error)[:SHOWN]}" if error else ""
        raise GeneratorError(
            f"the answer is not a chat completion{quoted}", code="bad-answer"
        ) from None
    if not isinstance(message, Mapping):
        raise GeneratorError("the answer is not a chat completion", code="bad-answer")
    return message, {str(reason).lower() for reason in reasons if reason}


def images_of(message: Mapping[str, Any]) -> Iterator[str]:
    """Yields the addresses of a message's images, data or other, from `images`, content and
    text."""
    content = message.get("content")
    pieces = [*_list(message.get("images")), *_list(content)]
    for piece in pieces:
        url = piece.get("image_url") if isinstance(piece, Mapping) else None
        url = url.get("url") if isinstance(url, Mapping) else url
        if isinstance(url, str) and url:
            yield url
    yield from (match[0] for match in _DATA.finditer(text_of(message)))


def text_of(message: Mapping[str, Any]) -> str:
    """Returns the text of a message.

    >>> text_of({"content": [{"type": "text", "text": "Here"}, {"type": "image_url"}]})
    'Here'
    """
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (piece.get("text") for piece in _list(content) if isinstance(piece, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def _without_image(message: Mapping[str, Any], reasons: set[str]) -> GeneratorError:
    refusal = message.get("refusal")
    words = refusal if isinstance(refusal, str) and refusal else text_of(message)
    quoted = f": {words[:SHOWN]!r}" if words else ""
    if refusal or reasons & REFUSALS:
        why = ", ".join(sorted(reasons & REFUSALS)) or "refusal"
        return GeneratorError(f"declined ({why}){quoted}", "refused", code="declined")
    cut = " and was cut off" if "length" in reasons else ""
    return GeneratorError(f"the answer holds no image{cut}{quoted}", code="bad-answer")


def _open(url: str) -> Image:
    if match := _DATA.fullmatch(url.strip()):
        return decode_image("".join(match[1].split()))
    if url.startswith("data:"):
        raise GeneratorError(
            f"the answer's image is not in base64: {url[:40]!r}...", code="bad-answer"
        )
    return fetch_image(url)


def _data(image: Image) -> str:
    return f"data:image/png;base64,{base64.b64encode(plain_png(image)).decode()}"


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []
