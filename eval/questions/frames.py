"""Texts for judges about the frame in which a constrained pair should be seen.

They state the viewer's place, not what follows for left and right: that is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...schema import Frame

VIEWS: Mapping[Frame, str] = {
    "facing": "from the front: what is shown faces the viewer",
    "behind": "from behind: the viewer looks the way that what is shown faces",
    "seat": "from the place of the person who uses or plays it",
    "above": "from above, its front at the top",
    "below": "from below or from the feet, its front at the top",
    "left-side": "in profile, from its port side",
    "right-side": "in profile, from its starboard side",
    "north-up": "as a map or plan with north at the top",
    "south-up": "as a map or plan with south at the top",
    "sky-north-up": "as a chart of the sky with north at the top",
    "sky-south-up": "as a chart of the sky with south at the top",
    "looking-south": "by an observer who looks south",
    "looking-north": "by an observer who looks north",
    "obverse": "on its obverse, the front",
    "reverse": "on its reverse, the back",
    "upright": "straight on and upright",
    "turned": "straight on, turned by half a turn against its usual position",
    "mirrored": "from its back and upright",
    "ltr": "straight on and upright",
    "rtl": "straight on and upright",
}
"""Frame -> text that completes "The scene should be seen ..."."""
