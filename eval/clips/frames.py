"""Choice of the frames of a clip that are judged, by name, number, count or rate."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ...errors import UsageError

USUAL = "first,middle,last"
"""Frames of a clip that are judged by default."""
NAMES = {"first": 0.0, "middle": 0.5, "last": 1.0}
"""Name -> place in the clip, in [0, 1]."""

_NUMBER = re.compile(r"-?\d{1,6}")
_COUNT = re.compile(r"count=([1-9]\d{0,3})")
_RATE = re.compile(r"rate=(\d{1,4}(?:\.\d{1,4})?)")


@dataclass(frozen=True)
class FrameChoice:
    """Frames of every clip of a run."""

    text: str = USUAL
    """Text of the option."""

    def __post_init__(self) -> None:
        """Raises UsageError for a text that names no frames."""
        words = self.text.split(",")
        by_word = all(word in NAMES or _NUMBER.fullmatch(word) for word in words)
        rate = _RATE.fullmatch(self.text)
        if not (by_word or _COUNT.fullmatch(self.text) or (rate and float(rate[1]) > 0)):
            raise UsageError(
                f"frames {self.text!r}: write numbers and names (first,middle,last or 0,12,-1), "
                f"count=8 for so many from first to last, or rate=2 for so many a second",
                code="bad-option",
            )

    def of(self, frames: int, fps: float) -> tuple[int, ...]:
        """Numbers of the chosen frames of a clip, from 0, ascending, none twice.

        frames: number of frames of the clip; fps: frames a second. A clip with fewer frames than a
        count or a rate asks for gives all of them. Raises UsageError for a number outside the clip.

        >>> FrameChoice("first,middle,last").of(9, 8), FrameChoice("rate=2").of(9, 8)
        ((0, 4, 8), (0, 4, 8))
        >>> FrameChoice("count=4").of(10, 8), FrameChoice("-1,0").of(10, 8)
        ((0, 3, 6, 9), (0, 9))
        """
        if (match := _COUNT.fullmatch(self.text)) is not None:
            count = int(match[1])
            places = [number / max(1, count - 1) for number in range(count)]
            return _at(places, frames)
        if (match := _RATE.fullmatch(self.text)) is not None:
            step = max(1.0, fps / float(match[1]))
            count = math.floor((frames - 1) / step + 1e-9) + 1
            return tuple(_nearest(number * step) for number in range(count))
        numbers = set()
        for word in self.text.split(","):
            if word in NAMES:
                numbers |= {*_at([NAMES[word]], frames)}
                continue
            number = int(word) + (frames if word.startswith("-") else 0)
            if not 0 <= number < frames:
                raise UsageError(
                    f"no frame {word} in a clip of {frames}: choose frames that every clip has",
                    code="no-frame",
                )
            numbers.add(number)
        return tuple(sorted(numbers))


def _at(places: list[float], frames: int) -> tuple[int, ...]:
    """The frames nearest to places in a clip, in [0, 1]."""
    return tuple(sorted({_nearest(place * (frames - 1)) for place in places}))


def _nearest(number: float) -> int:
    """The nearest whole number, the earlier one of two as near."""
    return math.ceil(number - 0.5)
