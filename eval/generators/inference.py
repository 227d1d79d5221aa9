"""`inference`: models behind Hugging Face's inference providers, from a text or as an edit.

``inference:PROVIDER/NAMESPACE/NAME[?num_inference_steps=28&guidance_scale=3.5&seed=none]``. The
token is that of `hf auth login`, or HF_TOKEN: a token of Hugging Face, or the provider's own key.
Some providers answer with the address of an image. It is fetched by our own fetcher, which
connects to public addresses only, not by the client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from PIL import Image

from ...agents.backends.bounded import IMAGE_BYTES, answer_within, time_network
from ...agents.backends.http import DECLINED, SHOWN, hide, is_about_settings, retry_after
from ...agents.chat import BackendError, Permit, always
from ...agents.retry import RETRIED, RetryPolicy, TransientError
from ...errors import UsageError
from ...fetching import Downloader, FetchError, TooLarge
from ...images import ImageError, plain_png, settle_image
from ...specs import Options, Spec, is_secret
from ..core import Case, GeneratorError, ImageRequest
from . import REPORT, PaidByImage, served
from .served import SEED, ServedOptions

if TYPE_CHECKING:
    import httpx2

DRAWING = ("fal-ai", "hf-inference", "nscale", "replicate", "together", "wavespeed", "zai-org")
EDITING = ("fal-ai", "hf-inference", "replicate", "together", "wavespeed")
"""Providers that make images from texts, and from images (huggingface_hub 2.4)."""
KNOWN = ("guidance_scale", "height", "negative_prompt", "num_inference_steps", "scheduler", "width")
"""Options that are arguments of the client's `text_to_image`."""
DRAWING_ONLY = ("height", "scheduler", "width")
"""Options that an edit takes otherwise, or not."""

_ASKING: ContextVar[bool] = ContextVar("asking", default=False)


class InferenceOptions(ServedOptions):
    """Options of `inference`."""

    not_sent: ClassVar[frozenset[str]] = ServedOptions.not_sent | {"bill_to"}

    bill_to: str | None = None
    """Organization on Hugging Face to which calls are billed."""
    guidance_scale: float | None = None
    """How closely the image follows the prompt."""
    height: int | None = None
    """Height in pixels."""
    negative_prompt: str | None = None
    """Description of what the image should not show."""
    num_inference_steps: int | None = None
    """Denoising steps."""
    scheduler: str | None = None
    """Name of a scheduler that the provider knows."""
    width: int | None = None
    """Width in pixels."""


class HostedModel(PaidByImage):
    """One model at one provider."""

    argument: ClassVar[str] = "PROVIDER/NAMESPACE/NAME"
    options: ClassVar[type[Options]] = InferenceOptions

    def __init__(self, model: str, options: InferenceOptions, call: Mapping[str, Any]) -> None:
        """model: `PROVIDER/NAMESPACE/NAME`. call: fields that are sent with each request.

        Raises UsageError for an unknown provider, BackendError for a missing token.
        """
        self._provider, _, self._model = model.partition("/")
        if self._provider not in DRAWING or self._model.count("/") != 1:
            providers = ", ".join(DRAWING)
            raise UsageError(
                f"inference: {model!r} names no model at a known provider",
                f"write inference:{self.argument}, of {providers}",
                code="unknown-name",
            )
        self._call = call
        self._sends_seed = options.seed != "none"
        self._retry = RetryPolicy(options.attempts)
        self._client = self._open(options.timeout, options.bill_to)

    @classmethod
    def from_spec(cls, spec: Spec, options: InferenceOptions) -> HostedModel:
        """Raises UsageError for an unknown provider, BackendError for a missing token."""
        return cls(spec.argument, options, options.sent(spec))

    def _open(self, timeout: float, bill_to: str | None) -> Any:
        import huggingface_hub

        self._token: str = huggingface_hub.get_token() or ""
        if not self._token:
            raise BackendError(
                "set HF_TOKEN in the environment, or run `hf auth login`", code="no-token"
            )
        provider: Any = self._provider
        return huggingface_hub.InferenceClient(
            provider=provider, token=self._token, timeout=timeout, bill_to=bill_to
        )

    def identity(self) -> dict[str, str]:
        call = {
            n: v if isinstance(v, str) else json.dumps(v)
            for n, v in self._call.items()
            if not is_secret(n)
        }
        return {
            **call,
            "kind": "inference",
            "model": f"{self._provider}/{self._model}",
            "provider": self._provider,
            SEED: "sent" if self._sends_seed else "not sent",
        }

    def check(self, cases: Sequence[Case]) -> None:
        """Raises UsageError for edits at a provider that only draws."""
        if self._provider not in EDITING and any(case.source for case in cases):
            providers = ", ".join(EDITING)
            raise UsageError(
                f"inference: {self._provider} edits no images: choose from {providers}",
                code="cannot-edit",
            )

    def generate(self, request: ImageRequest, permit: Permit = always) -> Image.Image:
        """Returns the image, with the lost attempts as JSON in ``info[REPORT]``.

        Raises GeneratorError, refused if a filter declined; BackendError if provider, model or
        token can't be used; and the error of `permit`, which is called before an attempt after one
        that may have been billed.
        """
        if request.references:
            raise GeneratorError(
                "inference takes one source, and this edit has several", code="several-sources"
            )
        result, lost = self._retry.run(lambda: self._asked(request), permit)
        if isinstance(result, GeneratorError):
            result.lost_attempts = lost
            raise result
        if lost:
            result.info[REPORT] = json.dumps({"lost_attempts": lost})
        return result

    def _asked(self, request: ImageRequest) -> Image.Image | GeneratorError:
        """Returns the image, or the error that ends this request.

        Raises TransientError, BackendError.
        """
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError, InferenceTimeoutError

        try:
            with _fetching_safely():
                return settle_image(self._send(request))
        except TooLarge as error:
            return GeneratorError(f"the answer has {error}", code="image-too-large")
        except FetchError as error:
            return GeneratorError(
                f"the image's address can't be fetched: {error.reason}", code="server-unreachable"
            )
        except (ImageError, Image.DecompressionBombError) as error:
            return GeneratorError(f"the image {error}", code="unreadable-image")
        except (HfHubHTTPError, httpx2.HTTPStatusError) as error:
            return self._rejected(error.response)
        except (InferenceTimeoutError, httpx2.TransportError, TimeoutError) as error:
            raise TransientError(f"no answer: {self._hidden(error)}", billed=True) from None
        except (LookupError, TypeError, AttributeError, OSError, SyntaxError) as error:
            reason = f"{type(error).__name__}: {self._hidden(error)}"
            return GeneratorError(f"the answer holds no image ({reason})", code="bad-answer")
        except ValueError as error:
            if "support" in str(error) or "mapping" in str(error):  # of provider, model and task
                raise BackendError(self._hidden(error), code="server-error") from None
            return GeneratorError(
                f"the answer holds no image ({self._hidden(error)})", code="bad-answer"
            )

    def _send(self, request: ImageRequest) -> Image.Image:
        call = dict(self._call)
        if self._sends_seed:
            call[SEED] = request.seed
        if request.source is not None:
            size = {name: call.pop(name) for name in DRAWING_ONLY if name in call}
            if {"width", "height"} <= size.keys():
                call["target_size"] = {name: size[name] for name in ("width", "height")}
            source = plain_png(request.source)
            image = self._client.image_to_image(source, request.prompt, model=self._model, **call)
        else:
            named = {name: call.pop(name) for name in (*KNOWN, SEED) if name in call}
            image = self._client.text_to_image(
                request.prompt, model=self._model, extra_body=call, **named
            )
        return image  # type: ignore[no-any-return]

    def _rejected(self, response: httpx2.Response) -> GeneratorError:
        status, text = response.status_code, hide(response.text, self._token)
        message = f"{self._provider}: HTTP {status}: {text[:SHOWN]}"
        if status in RETRIED:
            raise TransientError(message, retry_after(response.headers))
        if is_about_settings(status, text) or status < 400:
            raise BackendError(message, code="server-error")
        return GeneratorError(
            message, "refused" if any(c in text for c in DECLINED) else "error", code="server-error"
        )

    def _hidden(self, error: Exception) -> str:
        text: str = hide(str(error), self._token)[:SHOWN]
        return text


@contextmanager
def _fetching_safely() -> Iterator[None]:
    """Keeps huggingface_hub's client in this thread from opening a stranger's address."""
    from huggingface_hub.utils._http import get_session

    _guard(get_session())
    token = _ASKING.set(True)
    try:
        yield
    finally:
        _ASKING.reset(token)


def _guard(session: Any) -> None:
    """Makes a client fetch by our own fetcher what it asks for without a token.

    Only what the SDK itself addresses has one: the call and the question for its result. Such a
    request is bounded, and not redirected. What an answer names as the image's address
    has none.
    """
    import httpx2
    from huggingface_hub import constants

    if getattr(session, "guarded", False):
        return
    send = session.send
    time_network(session)

    @wraps(send)
    def guarded(request: httpx2.Request, **options: Any) -> httpx2.Response:
        is_api_call = str(request.url).startswith(f"{constants.ENDPOINT}/api/")
        if not _ASKING.get() or is_api_call:
            return send(request, **options)  # type: ignore[no-any-return]
        if request.method == "POST" or "authorization" in request.headers:
            return answer_within(send, request, IMAGE_BYTES, follow=False, **options)
        body, _ = Downloader(served.FETCHING).download(str(request.url))
        return httpx2.Response(200, content=body, request=request)

    session.send, session.guarded = guarded, True
