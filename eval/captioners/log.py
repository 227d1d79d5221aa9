"""One captioner's captions in a folder: what was written is known, what is asked is recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import RunFailed
from ...storage import RecordLog, read_records, write_json
from ...tables import parse_as
from ..core import (
    BY,
    OBSERVED,
    Caption,
    Captioner,
    CaptionRequest,
    check_by,
    describe,
    identity_digest,
)

HEADER = "captioner.json"
CAPTIONS = "captions.jsonl"


@dataclass(frozen=True)
class Captioned:
    """A recorded caption."""

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


def caption_key(name: str, instruction: str, image: str) -> str:
    """Of what a captioner is asked: another image (by a digest) or instruction is another key."""
    words = json.dumps([name, instruction, image])
    return hashlib.sha256(words.encode()).hexdigest()[:24]


class CaptionLog:
    """The captions of one captioner, in `captioner.json` and `captions.jsonl`."""

    def __init__(self, root: Path, captioner: Captioner) -> None:
        """Made where it isn't there. Raises DataError for a damaged one."""
        self.captioner = captioner
        self.identity = captioner.identity()
        fixed = {n: v for n, v in self.identity.items() if not n.startswith(OBSERVED)}
        self._digest = identity_digest(fixed)
        digest = hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:12]
        self.root = root / f"{self.identity['kind']}-{digest}"
        if not (self.root / HEADER).exists():
            write_json(self.root / HEADER, self.identity)
        self._known: dict[str, Captioned] = {}
        for number, record in enumerate(read_records(self.root / CAPTIONS), 1):
            place = f"{self.root / CAPTIONS}:{number}"
            check_by(record, self._digest, place)
            found = parse_as(Captioned, record, place)
            self._known[found.key] = found

    @property
    def name(self) -> str:
        """The captioner in a few words."""
        return describe(self.identity)

    def find(self, key: str) -> Caption | None:
        """What was written, a failure too; None where it was never asked."""
        found = self._known.get(key)
        return None if found is None else found.caption

    def needs(self, key: str) -> bool:
        """Whether there is no caption yet, or only a failure of the captioner itself."""
        found = self._known.get(key)
        return found is None or found.status == "error"

    def ask(self, asked: Iterable[tuple[str, CaptionRequest]]) -> Iterator[Caption]:
        """Asks for every key and records each caption as it comes, in any order.

        Raises RunFailed, with the first cause, where there is no caption but failures.
        """
        keys: dict[str, str] = {}

        def taken() -> Iterator[CaptionRequest]:
            for key, request in asked:
                keys[request.id] = key
                yield request

        failed: list[Caption] = []
        with RecordLog(self.root / CAPTIONS) as log:
            for request, caption in self.captioner.caption(taken()):
                found = Captioned(keys.pop(request.id), request.id, **vars(caption))
                log.append({**vars(found), BY: self._digest})
                self._known[found.key] = found
                if caption.status == "error":
                    failed.append(caption)
                yield caption
        if failed and all(found.status == "error" for found in self._known.values()):
            first = failed[0].text
            raise RunFailed(f"{self.name}: all {len(failed):,} captions failed; the first: {first}")
