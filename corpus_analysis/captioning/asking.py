"""Asking a captioner: each image and its mirror image, with an instruction in several wordings."""

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
        """What its caption is recorded under."""
        return caption_key(self.id, WORDINGS[self.wording], self.things.digest)


def asks(images: Sequence[TwoThings], wordings: Sequence[str]) -> list[Ask]:
    """Every image, found and mirrored, in every wording. Raises UsageError for an unknown one."""
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
    """What a captioner has written about some images."""

    captions: Mapping[str, Caption | None]
    """Id of an `Ask` -> its caption; None where the image could not be read."""
    asked: Counter[str]
    """New captions of this run by status."""


def ask(wanted: Sequence[Ask], log: CaptionLog, progress: Progress) -> WrittenCaptions:
    """Asks for what isn't recorded yet; run again after any end, it goes on.

    A captioner's own failure (`error`) is asked again, all else once. Raises as `CaptionLog.ask`.
    """
    stage, total = f"captions by {log.name}", len(wanted)
    new = [one for one in wanted if log.needs(one.key)]
    done = total - len(new)
    progress(stage, done, total)
    asked: Counter[str] = Counter()
    for caption in log.ask(_shown(new)):
        asked[caption.status] += 1
        done += 1
        progress(stage, done, total)
    return WrittenCaptions({one.id: log.find(one.key) for one in wanted}, asked)


def _shown(wanted: Sequence[Ask]) -> Iterator[tuple[str, CaptionRequest]]:
    """Keys and requests; images that can't be read are passed over."""
    current, image = None, None
    for one in wanted:
        if one.things is not current:
            current = one.things
            try:
                image = current.open()
                image.info = {}  # a renderer's scene would tell what is shown
            except ImageError:
                image = None
        if image is not None:
            shown = ImageOps.mirror(image) if one.mirrored else image
            yield one.key, CaptionRequest(one.id, WORDINGS[one.wording], shown)
