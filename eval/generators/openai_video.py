"""`openai-video`: servers that speak OpenAI's videos API; a clip from a text, or from an image.

``openai-video:MODEL[@BASE_URL][?size=832x480&seconds=4&num_frames=81&fps=16&seed=none&poll=5
&patience=3600]``. Fields of the request that servers know go by their own name, any other as
``extra.NAME=VALUE``. A clip is ordered, asked for every `poll` seconds, and fetched.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

from ...agents.backends.http import DECLINED, read_body
from ...agents.chat import BackendError, Completion, Permit, always
from ...agents.retry import UnreadableError
from ...clips import Clip, ClipError, read_clip
from ...errors import UsageError
from ...images import plain_png
from ...specs import Spec
from ..checkpoints.extras import SpecAdapter
from ..core import GeneratorError, ImageRequest
from . import REPORT, PaidByImage
from .served import SEED, ServedModel

KNOWN: dict[str, type] = {
    "boundary_ratio": float,
    "flow_shift": float,
    "fps": int,
    "guidance_scale": float,
    "guidance_scale_2": float,
    "height": int,
    "negative_prompt": str,
    "num_frames": int,
    "num_inference_steps": int,
    "seconds": str,
    "size": str,
    "width": int,
}
"""Option -> type of what is sent."""
WAITS = {"poll": 5.0, "patience": 3600.0}
"""Seconds between two questions whether a clip is ready, and until it counts as lost."""
RAW = {"X-Stainless-Raw-Response": "true"}
"""Header by which the SDK gives a response as it came. It has no videos of its own: OpenAI ended
its service in 2026, and other servers speak on what it spoke."""
UNDER_WAY = ("queued", "in_progress")


class OpenAIVideos(SpecAdapter, PaidByImage):
    """One model behind `POST /videos`; key: OPENAI_API_KEY."""

    def __init__(self, spec: Spec) -> None:
        """Raises UsageError for a wrong option, BackendError for a missing key."""
        sent = {name: text for name, text in spec.options.items() if name not in WAITS}
        self._poll, self._patience = (_seconds(spec, name) for name in WAITS)
        self._served = ServedModel(replace(spec, options=sent), KNOWN)

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
            data = self._fetched(f"/videos/{quote(job['id'], safe='')}/content")
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
        form = {"model": wire.settings.model, "prompt": request.prompt, **self._served.call}
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
        told = error if isinstance(error, Mapping) else {}
        why = told.get("message") or f"its status is {job.get('status')!r}"
        refused = told.get("code") in DECLINED
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

    def _fetched(self, path: str) -> bytes:
        """What a GET is answered with. Raises BackendError."""
        wire, options = self._served.wire, cast(Any, {"headers": RAW})
        answer: Any = wire.repeat(lambda: wire.client.get(path, cast_to=object, options=options))
        content: bytes = answer.http_response.content
        return content


def _seconds(spec: Spec, name: str) -> float:
    text = spec.options.get(name, str(WAITS[name]))
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise UsageError(
            f"{spec.kind}: {name} is a number of seconds above 0, not {text!r}", code="out-of-range"
        )
    return found
