"""`openai-video`: servers that speak OpenAI's videos API; a clip from a text, or from an image.

``openai-video:MODEL[@BASE_URL][?size=832x480&seconds=4&num_frames=81&fps=16&seed=none&poll=5
&patience=3600]``. Fields of the request that servers know go by their own name, any other as
``extra.NAME=VALUE``. A clip is ordered, asked for every `poll` seconds, and fetched.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, ClassVar, cast
from urllib.parse import quote

from ...agents.backends.bounded import FILE
from ...agents.backends.http import DECLINED, read_body
from ...agents.chat import BackendError, Completion, Permit, always
from ...agents.retry import UnreadableError
from ...clip_files import Clip, ClipError, read_clip
from ...fetching import Limits
from ...images import plain_png
from ...specs import Options, Seconds, Spec
from ..core import GeneratorError, ImageRequest
from . import REPORT, PaidByImage
from .served import SEED, ServedModel, ServedOptions

RAW = {"X-Stainless-Raw-Response": "true"}
"""Header by which the SDK gives a response as it came. It has no videos of its own: OpenAI ended
its service in 2026, and other servers speak on what it spoke."""
UNDER_WAY = ("queued", "in_progress")


class VideoApiOptions(ServedOptions):
    """Options of `openai-video`: fields of the request by their own names, and how long to wait."""

    not_sent: ClassVar[frozenset[str]] = ServedOptions.not_sent | {"poll", "patience"}

    poll: Seconds = 5
    """Time between two requests that ask whether a clip is ready."""
    patience: Seconds = 3600
    """Time after which a clip counts as lost."""
    size: str | None = None
    """Width and height in pixels, such as `832x480`."""
    seconds: str | None = None
    """Length of the clip."""
    num_frames: int | None = None
    """Frames of the clip."""
    fps: int | None = None
    """Frames a second."""
    height: int | None = None
    """Height in pixels."""
    width: int | None = None
    """Width in pixels."""
    num_inference_steps: int | None = None
    """Denoising steps."""
    guidance_scale: float | None = None
    """Guidance of the first denoiser, if a model has two."""
    guidance_scale_2: float | None = None
    """Guidance of the second denoiser."""
    boundary_ratio: float | None = None
    """Share of the steps after which the second denoiser takes over."""
    flow_shift: float | None = None
    """Shift of the scheduler."""
    negative_prompt: str | None = None
    """Description of what the clip should not show."""


class OpenAIVideos(PaidByImage):
    """One model behind `POST /videos`; key: OPENAI_API_KEY."""

    argument: ClassVar[str] = "MODEL[@URL]"
    options: ClassVar[type[Options]] = VideoApiOptions

    def __init__(self, served: ServedModel, poll: float = 5, patience: float = 3600) -> None:
        """poll, patience: seconds between two questions, and until a clip counts as lost."""
        self._served = served
        self._poll, self._patience = poll, patience

    @classmethod
    def from_spec(cls, spec: Spec, options: VideoApiOptions) -> OpenAIVideos:
        """Raises BackendError for a missing key."""
        return cls(ServedModel(spec, options), options.poll, options.patience)

    def identity(self) -> dict[str, str]:
        return self._served.identity()

    def generate(self, request: ImageRequest, permit: Permit = always) -> Clip:
        """The clip, with what the API said of it as JSON in ``info[REPORT]``.

        Raises GeneratorError, refused where a filter declined; BackendError where the server can't
        be used, with the order counted as one that may have been billed; and what `permit` raises,
        asked before an attempt after one that may have been billed.
        """
        wire = self._served.wire
        order, lost = wire.ask(lambda: self._order(request), dict, permit)
        if isinstance(order, Completion):
            raise self._served.failure(order, lost)
        try:
            job = self._finished(order)
            data = self._fetched(f"/videos/{quote(job['id'], safe='')}/content", FILE)
        except BackendError as error:
            raise BackendError(str(error), lost_attempts=lost + 1, code="server-error") from None
        try:
            clip = read_clip(data)
        except ClipError as error:
            raise GeneratorError(
                f"the clip {error}", lost_attempts=lost, code="unreadable-image"
            ) from None
        report = {name: job.get(name) for name in ("size", "seconds", "usage")}
        report["lost_attempts"] = lost
        clip.info[REPORT] = json.dumps({k: v for k, v in report.items() if v}, sort_keys=True)
        return clip

    def _order(self, request: ImageRequest) -> Any:
        if request.references:
            raise GeneratorError(
                "a clip starts from one source, and this has several", code="several-sources"
            )
        wire = self._served.wire
        form = {"model": wire.endpoint.model, "prompt": request.prompt, **self._served.call}
        if self._served.sends_seed:
            form[SEED] = str(request.seed)
        # As all servers take it; a form has texts only.
        form = {n: v if isinstance(v, str) else json.dumps(v) for n, v in form.items()}
        source = request.source and ("source.png", plain_png(request.source), "image/png")
        return wire.client.post(
            "/videos",
            cast_to=object,
            body=form,
            files={"input_reference": source} if source else None,
            options={"headers": {**RAW, "Content-Type": "multipart/form-data"}},
        )

    def _finished(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """The order once its clip is there. Raises GeneratorError where there will be none."""
        until = time.monotonic() + self._patience
        while job.get("status") in UNDER_WAY and time.monotonic() < until:
            time.sleep(self._poll)
            job = self._asked(str(job.get("id")))
        if job.get("status") == "completed" and isinstance(job.get("id"), str):
            return job
        if job.get("status") in UNDER_WAY:
            raise GeneratorError(
                f"the clip is not there after {self._patience:g} s", code="timed-out"
            )
        error = job.get("error")
        details = error if isinstance(error, Mapping) else {}
        why = details.get("message") or f"its status is {job.get('status')!r}"
        refused = details.get("code") in DECLINED
        raise GeneratorError(
            f"the server made no clip: {why}",
            "refused" if refused else "error",
            code="server-error",
        )

    def _asked(self, job: str) -> Mapping[str, Any]:
        answer = self._fetched(f"/videos/{quote(job, safe='')}")
        try:
            return {"id": job, **read_body(answer, self._served.wire.key)}
        except UnreadableError as error:
            raise GeneratorError(
                f"the clip's order can't be read: {error}", code="bad-answer"
            ) from None

    def _fetched(self, path: str, limits: Limits | None = None) -> bytes:
        """Returns the body of the answer to a GET. Raises BackendError."""
        wire, options = self._served.wire, cast(Any, {"headers": RAW})
        answer: Any = wire.repeat(
            lambda: wire.client.get(path, cast_to=object, options=options), limits
        )
        content: bytes = answer.http_response.content
        return content
