"""Requests to a captioner: each image and its mirror image, in several wordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from PIL import ImageOps

from ...errors import UsageError
from ...eval.captioners.log import CaptionLog, caption_key
from ...eval.core import Caption, CaptionRequest
from ...images import ImageError
from ...progress import Progress
from .things import TwoThings

WORDINGS = {
    "describe": "Describe this image.",
    "caption": "Write a caption for this image.",
    "shows": "What does this image show?",
    "sees": "What do you see in this image?",
    "tell": "Tell somebody who can't see this image what is in it.",
}
"""The instruction in five wordings, none of which says what comes first, where things are or how
many there are."""


@dataclass(frozen=True)
class Ask:
    """One caption to ask for."""

    things: TwoThings
    """The image."""
    wording: str
    """One of `WORDINGS`."""
    mirrored: bool
    """Whether its mirror image is shown."""

    @property
    def id(self) -> str:
        """Unique in a run."""
        return f"{self.things.id}/{self.wording}/{'mirror' if self.mirrored else 'found'}"

    @property
    def key(self) -> str:
        """Key under which its caption is recorded."""
        return caption_key(self.id, WORDINGS[self.wording], self.things.digest)


def asks(images: Sequence[TwoThings], wordings: Sequence[str]) -> list[Ask]:
    """Requests every image, original and mirrored, in every wording.

    Raises UsageError for an unknown wording.
    """
    if unknown := sorted(set(wordings) - set(WORDINGS)):
        raise UsageError(
            f"no wording {unknown[0]!r}: choose from {', '.join(WORDINGS)}", code="unknown-name"
        )
    return [
        Ask(things, wording, mirrored)
        for things in images
        for mirrored in (False, True)
        for wording in wordings
    ]


@dataclass(frozen=True)
class WrittenCaptions:
    """Captions by a captioner of some images."""

    captions: Mapping[str, Caption | None]
    """Id of an `Ask` -> its caption; None for an unreadable image."""
    new_by_status: Counter[str]
    """New captions of this run by status."""


def ask(requests: Sequence[Ask], log: CaptionLog, progress: Progress) -> WrittenCaptions:
    """Asks for captions without a record; a second run resumes.

    Requests that ended in `error` are repeated, all others made once. Raises as `CaptionLog.ask`.
    """
    stage, total = f"captions by {log.name}", len(requests)
    unrecorded = [request for request in requests if log.needs(request.key)]
    done = total - len(unrecorded)
    progress(stage, done, total)
    new_by_status: Counter[str] = Counter()
    for caption in log.ask(_images_to_caption(unrecorded)):
        new_by_status[caption.status] += 1
        done += 1
        progress(stage, done, total)
    return WrittenCaptions(
        {request.id: log.find(request.key) for request in requests}, new_by_status
    )


def _images_to_caption(requests: Sequence[Ask]) -> Iterator[tuple[str, CaptionRequest]]:
    """Yields keys and requests, without unreadable images."""
    current, image = None, None
    for request in requests:
        if request.things is not current:
            current = request.things
            try:
                image = current.open()
                image.info = {}  # a renderer's scene would tell what is shown
            except ImageError:
                image = None
        if image is not None:
            variant = ImageOps.mirror(image) if request.mirrored else image
            yield request.key, CaptionRequest(request.id, WORDINGS[request.wording], variant)
