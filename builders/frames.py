"""Frames of reference: how a thing's own coordinate becomes the viewer's left and right.

A fact (`facts`) holds places along one axis of the thing itself: to its own right, forward, to the
east. A frame says which axis the viewer sees as the horizontal one, and which way it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ..schema import Frame

OwnAxis = Literal["right", "forward", "east", "fly", "across", "reading"]


@dataclass(frozen=True)
class View:
    """One frame of the closed vocabulary."""

    axis: OwnAxis
    """The thing's own axis that the viewer sees as the horizontal one."""
    sign: Literal[1, -1]
    """1 where that axis grows to the viewer's right, -1 where it grows to the left."""
    meaning: str
    """Viewpoint, and where the axis then runs; one sentence."""
    phrases: tuple[str, ...]
    """Words of a prompt that say this frame; empty if a prompt need not say it."""


FRAMES: dict[Frame, View] = {
    "facing": View(
        "right",
        -1,
        "The subject faces the viewer, or the viewer is on the far side of a board: its own right "
        "is at the viewer's left.",
        (
            *("facing the viewer", "faces the viewer", "facing the camera", "faces the camera"),
            *("anterior view", "from the front", "toward the viewer"),
        ),
    ),
    "behind": View(
        "right",
        1,
        "The viewer is behind the subject and looks its way: its own right is the viewer's.",
        ("from behind", "posterior view", "behind them", "in the direction of travel"),
    ),
    "seat": View(
        "right",
        1,
        "The viewer is in the user's or player's own place, whose right is the viewer's.",
        ("'s seat", "'s chair", "'s bench", "seen by the diner", "seen by the user"),
    ),
    "above": View(
        "right",
        1,
        "Seen from above with the front at the top: the subject's own right is the viewer's.",
        ("straight overhead", "from above"),
    ),
    "below": View(
        "right",
        -1,
        "Seen from below or from the feet, front at the top: its own right is the viewer's left.",
        ("from below", "axial"),
    ),
    "left-side": View(
        "forward",
        -1,
        "The viewer sees the subject's left side, so its front points to the viewer's left.",
        (),
    ),
    "right-side": View(
        "forward",
        1,
        "The viewer sees the subject's right side, so its front points to the viewer's right.",
        (),
    ),
    "north-up": View(
        "east",
        1,
        "Map or plan with north at the top, so east is at the viewer's right.",
        ("north-up",),
    ),
    "south-up": View(
        "east",
        -1,
        "Map or plan with south at the top, so east is at the viewer's left.",
        ("south at the top",),
    ),
    "sky-north-up": View(
        "east",
        -1,
        "Chart of the sky seen from inside with north up, so east is at the viewer's left.",
        ("celestial north at the top",),
    ),
    "sky-south-up": View(
        "east",
        1,
        "Chart of the sky seen from inside with south up, so east is at the viewer's right.",
        ("celestial south at the top",),
    ),
    "looking-south": View(
        "east",
        -1,
        "The observer looks south, so east is at the left hand.",
        ("facing south",),
    ),
    "looking-north": View(
        "east",
        1,
        "The observer looks north, so east is at the right hand.",
        ("facing north",),
    ),
    "obverse": View(
        "fly", 1, "Front of a flag or note: the hoist is at the viewer's left.", ("obverse",)
    ),
    "reverse": View("fly", -1, "Back of a flag: the hoist is at the viewer's right.", ("reverse",)),
    "upright": View("across", 1, "The viewer looks straight at it, the right way up.", ()),
    "turned": View("across", -1, "The viewer looks straight at it, turned by half a turn.", ()),
    "mirrored": View("across", -1, "Seen from its back, the right way up.", ("bottom-view",)),
    "ltr": View(
        "reading", 1, "The order of reading, time or a scale runs to the viewer's right.", ()
    ),
    "rtl": View(
        "reading",
        -1,
        "The order of reading or a scale runs to the viewer's left.",
        ("Hebrew", "Arabic", "manga"),
    ),
}
"""Every frame by name."""

PLAIN: frozenset[Frame] = frozenset({"upright", "ltr"})
"""Frames assumed for a prompt that does not state a view."""

FLIPPED: dict[Frame, Frame] = {
    **{"facing": "behind", "behind": "facing", "seat": "facing", "above": "below"},
    **{"below": "above", "left-side": "right-side", "right-side": "left-side"},
    **{"north-up": "south-up", "south-up": "north-up", "sky-north-up": "sky-south-up"},
    **{"sky-south-up": "sky-north-up", "looking-south": "looking-north"},
    **{"looking-north": "looking-south", "obverse": "reverse", "reverse": "obverse"},
    **{"upright": "turned", "turned": "upright", "mirrored": "upright", "ltr": "rtl"},
    **{"rtl": "ltr"},
}
"""The frame in which the same thing is seen the other way round."""


def mentions(text: str, phrase: str) -> bool:
    """Whether a text holds a phrase as whole words, whatever their case.

    >>> mentions("The 10 key", "0"), mentions("the star (*) key", "*")
    (False, True)
    """
    if phrase.casefold() not in text.casefold():
        return False  # most phrases; no pattern is compiled for them
    return _whole_words(phrase).search(text) is not None


@cache
def _whole_words(phrase: str) -> re.Pattern[str]:
    start = r"(?<!\w)" if phrase[:1].isalnum() else ""
    end = r"(?!\w)" if phrase[-1:].isalnum() else ""
    return re.compile(start + re.escape(phrase) + end, re.IGNORECASE)


def stated_frames(text: str, frames: Mapping[Frame, Iterable[str]]) -> set[Frame]:
    """Returns the frames, among `frames`, that the words of a prompt state.

    Words special to a fact go before those of the vocabulary: `seen from the audience` faces a
    drummer, but means the audience's own place where a fact says so.
    """
    special = {f for f, phrases in frames.items() if any(mentions(text, p) for p in phrases)}
    return special or {f for f in frames if any(mentions(text, p) for p in FRAMES[f].phrases)}


def frame_fault(text: str, frame: Frame, frames: Mapping[Frame, Iterable[str]]) -> str | None:
    """Returns why a prompt does not fit a frame: it must state it alone; None if it fits."""
    stated = stated_frames(text, frames)
    contrary = sorted(f for f in stated if FRAMES[f].sign != FRAMES[frame].sign)
    if contrary:
        return f"the prompt says {contrary[0]!r}, the entry {frame!r}"
    if frame not in stated and frame not in PLAIN:
        return f"the prompt does not say {frame!r}: use words such as {_words(frame, frames)}"
    return None


def _words(frame: Frame, frames: Mapping[Frame, Iterable[str]]) -> str:
    phrases = [*frames.get(frame, ()), *FRAMES[frame].phrases]
    return ", ".join(map(repr, phrases[:3])) or "those of its fact"
