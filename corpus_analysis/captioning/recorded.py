"""Captions that were written before, by people or by a captioner, in a generator's place."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import DataError, UsageError
from ...eval.core import Case, GeneratedText, GeneratorError, ImageRequest
from ...eval.suites.caption_order import MIRROR, PEOPLE, WORDINGS, CaptionOrderSuite, image_of
from ...parsing import read_rows
from ...printable import without_surrogates
from ...schema import CaptionOrder
from .people import HumanCaption

CaptionPlace = tuple[str, str]
"""Name of an image, and variant of the suite."""
KIND = "recorded"
"""Kind of the spec of captions in a file."""
NOT_WRITTEN = ("refused", "error")
"""Labels of a captioner's own failures, whose text says why."""


class RecordedCaptions:
    """The captions of one captioner, or of people, by image and variant."""

    def __init__(
        self,
        captions: Mapping[CaptionPlace, Sequence[GeneratedText | GeneratorError]],
        kind: str,
        name: str = "",
    ) -> None:
        """kind, name: of who wrote them."""
        self._captions = captions
        self._about = {"kind": kind, **({"name": name} if name else {})}

    @property
    def most(self) -> int:
        """Number of captions of the image that has most."""
        return max(map(len, self._captions.values()))

    def identity(self) -> dict[str, str]:
        texts = [[*place, *map(_text, texts)] for place, texts in sorted(self._captions.items())]
        digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:12]
        return {**self._about, "captions": digest}

    def cases(self, rows: Iterable[CaptionOrder]) -> Iterator[Case]:
        """Yields the cases of these images that have a caption."""
        suite = CaptionOrderSuite()
        for row in rows:
            for case in suite.cases(row, self.most):
                if case.number < len(self._captions.get((row.image, case.variant), ())):
                    yield case

    def generate(self, request: ImageRequest) -> GeneratedText:
        """Raises FileNotFoundError for a case without a caption, GeneratorError for one that the
        captioner refused or failed to write."""
        case = request.case
        place = ("", "") if case is None else (image_of(case), case.variant)
        captions = self._captions.get(place, ())
        if case is None or case.number >= len(captions):
            raise FileNotFoundError("there is no caption on record")
        caption = captions[case.number]
        if isinstance(caption, GeneratorError):
            raise caption
        return caption


def _text(caption: GeneratedText | GeneratorError) -> str:
    return caption.content if isinstance(caption, GeneratedText) else f"{caption.status}: {caption}"


def captions_of_people(captions: Iterable[HumanCaption]) -> RecordedCaptions:
    """People's captions, who were shown the images as they are."""
    by_place: dict[CaptionPlace, list[GeneratedText | GeneratorError]] = defaultdict(list)
    for caption in captions:
        text = GeneratedText(without_surrogates(caption.text))
        by_place[caption.image, PEOPLE].append(text)
    return RecordedCaptions(by_place, "people")


def read_recorded(path: Path) -> list[RecordedCaptions]:
    """Reads the captions of each captioner in a file of readings, in the order of the file.

    Rows have `captioner`, `image`, `wording`, `mirrored`, `caption`, and `label`, which counts if
    the captioner refused or failed. Raises UsageError for a missing file, DataError for any other,
    also for one whose last line was cut off: nobody would write it again.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file of captions", code="no-such-file")
    by_captioner: dict[str, dict[CaptionPlace, list[GeneratedText | GeneratorError]]] = {}
    for number, row in read_rows(path):
        fields = [row.get(name) for name in ("captioner", "image", "wording", "caption")]
        if not all(isinstance(value, str) for value in fields) or fields[2] not in WORDINGS:
            needed = "`captioner`, `image`, `wording`, `mirrored` and `caption`"
            raise DataError(f"{path}:{number}: a row needs {needed}", code="missing-field")
        captioner, image, wording, text = map(str, fields)
        if row.get("label") == "missing":
            continue
        caption: GeneratedText | GeneratorError = GeneratedText(without_surrogates(text))
        if row.get("label") in NOT_WRITTEN:
            caption = GeneratorError(text, row["label"], code="declined")
        variant = f"{MIRROR if row.get('mirrored') else ''}{wording}"
        by_captioner.setdefault(captioner, {}).setdefault((image, variant), []).append(caption)
    if not by_captioner:
        raise DataError(f"{path}: no caption", code="nothing-to-do")
    return [RecordedCaptions(captions, KIND, name) for name, captions in by_captioner.items()]
