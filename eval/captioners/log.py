"""The captions of one captioner: what was written is read, what is asked is recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...errors import RunFailed
from ...parsing import parse_as
from ..core import OBSERVED, Caption, Captioner, CaptionRequest, describe, identity_digest
from ..store.answers import AnswerLog, keep_identity

HEADER = "captioner.json"


@dataclass(frozen=True)
class RecordedCaption:
    """A caption with what it answers."""

    key: str
    """See `caption_key`."""
    id: str
    """Id of the request."""
    text: str
    """As `Caption.text`."""
    status: Literal["ok", "refused", "error"]
    """As `Caption.status`."""
    cut: bool
    """As `Caption.cut`."""

    @property
    def caption(self) -> Caption:
        """What was written."""
        return Caption(self.text, self.status, self.cut)

    def to_record(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> RecordedCaption:
        """The inverse of `to_record`. Raises DataError for anything else."""
        return parse_as(cls, record, place)


def caption_key(name: str, instruction: str, image: str) -> str:
    """Of what a captioner is asked: another image (by a digest) or instruction is another key."""
    words = json.dumps([name, instruction, image])
    return hashlib.sha256(words.encode()).hexdigest()[:24]


class CaptionLog:
    """The captions of one captioner, in `captioner.json` and `captions.jsonl`."""

    def __init__(self, root: Path, captioner: Captioner) -> None:
        """Makes its folder if there is none. Raises DataError for a damaged log."""
        self.captioner = captioner
        self.identity = captioner.identity()
        fixed = {n: v for n, v in self.identity.items() if not n.startswith(OBSERVED)}
        digest = hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:12]
        self.root = root / f"{self.identity['kind']}-{digest}"
        keep_identity(self.root / HEADER, self.identity)
        by = identity_digest(fixed)
        self._answers = AnswerLog(self.root, "captions", RecordedCaption, by=by, in_memory=True)
        len(self._answers)  # read now: a damaged log is named before anything is asked

    @property
    def name(self) -> str:
        """The captioner in a few words."""
        return describe(self.identity)

    def find(self, key: str) -> Caption | None:
        """What was written, a failure too; None where it was never asked."""
        recorded = self._answers.get(key)
        return None if recorded is None else recorded.caption

    def needs(self, key: str) -> bool:
        """Whether there is no caption yet, or only a failure of the captioner itself."""
        recorded = self._answers.get(key)
        return recorded is None or recorded.status == "error"

    def ask(self, asked: Iterable[tuple[str, CaptionRequest]]) -> Iterator[Caption]:
        """Asks for every key and records each caption as it comes, in any order.

        Raises RunFailed, with the first cause, where there is no caption but failures.
        """
        keys: dict[str, str] = {}

        def requests() -> Iterator[CaptionRequest]:
            for key, request in asked:
                keys[request.id] = key
                yield request

        failed: list[Caption] = []
        with self._answers as answers:
            for request, caption in self.captioner.caption(requests()):
                answers.append(RecordedCaption(keys.pop(request.id), request.id, **vars(caption)))
                if caption.status == "error":
                    failed.append(caption)
                yield caption
        if failed and all(recorded.status == "error" for recorded in self._answers.values()):
            raise RunFailed(
                f"{self.name}: all {len(failed):,} captions failed; the first: {failed[0].text}",
                code="all-failed",
            )
