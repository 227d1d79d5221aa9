"""Actions and states that a picture can show: the words that name them, and what is drawn.

A text means the pose whose longest trigger it holds. Poses that contrast in the taxonomy differ
clearly in the picture.
"""

from __future__ import annotations

from dataclasses import dataclass

from .people import Limb, Posture

_DOWN: Limb = (14, 6)
_LEG: Limb = (6, 2)


@dataclass(frozen=True)
class Pose:
    """How one action or state is drawn."""

    name: str
    """Key in `POSES`."""
    triggers: tuple[str, ...] = ()
    """Lower-case phrases that name it."""
    near: Limb = _DOWN
    """A person's arm away from where it faces; it holds the prop."""
    far: Limb = _DOWN
    """A person's arm on the side where it faces."""
    legs: tuple[Limb, Limb] = (_LEG, _LEG)
    """A person's legs, in the same order."""
    head: float = 0
    """Tilt of a person's head, degrees."""
    lean: float = 0
    """Turn of a whole person, degrees, backwards positive."""
    turn: float = 0
    """Turn of an animal or object, degrees, front up positive."""
    stretch: tuple[float, float] = (1, 1)
    """Width and height of an animal or object relative to the usual."""
    lift: float = 0
    """Height above the ground, share of the picture's height."""
    shade: int = 100
    """Brightness in percent."""
    behind: tuple[str, ...] = ()
    """Effects drawn before the figure."""
    over: tuple[str, ...] = ()
    """Effects drawn after it."""

    def posture(self) -> Posture:
        """A person's joints, facing the viewer's right."""
        return Posture((self.near, self.far), self.legs, self.head)


def _pose(name: str, *triggers: str, **drawn: object) -> Pose:
    return Pose(name, triggers, **drawn)  # type: ignore[arg-type]


_UP: Limb = (172, 178)
_SQUAT: Limb = (80, -5)

PEOPLE = (
    _pose("standing", "standing up straight", "standing on all fours", "standing upright"),
    _pose("raising hand", "raising one hand", far=_UP),
    _pose("waving", "waving one hand", far=(115, 165), over=("wag",)),
    _pose("pointing", "pointing with", "pointing at", "pointed at", far=(90, 90)),
    _pose("clapping", "clapping", near=(48, -75), far=(48, -75), over=("rays",)),
    _pose("saluting", "salut", far=(105, 228)),
    _pose("arms crossed", "arms crossed", near=(22, -95), far=(22, -95)),
    _pose("arms spread", "arms spread", near=(90, 90), far=(90, 90)),
    _pose("hands on hips", "hands on the hips", near=(58, -52), far=(58, -52)),
    _pose("hands on head", "hands on the head", near=(125, 232), far=(125, 232)),
    _pose("leaning forward", "leaning forward", lean=-24),
    _pose("leaning backward", "leaning backward", lean=24),
    _pose("bowing", "bowing", "bowed to", lean=-58),
    _pose("stretching up", "stretching both arms", near=_UP, far=_UP),
    _pose("stepping", "long step forward", legs=((30, 10), (52, 8))),
    _pose("kneeling", "kneeling", legs=((5, 92), (72, 0))),
    _pose("squatting", "squatting", legs=(_SQUAT, _SQUAT)),
    _pose("sitting on the floor", "sitting on the floor", legs=((78, 84), (78, 84))),
    _pose("lifting leg", "one leg with the other leg lifted", legs=(_LEG, (82, 12))),
    _pose("jumping", "jumping", near=(140, 160), far=(140, 160), legs=((42, 20), (42, 20)),
          lift=0.13, over=("up motion",)),
    _pose("dancing", "dancing", near=(150, 175), far=(85, 150), legs=(_LEG, (62, -30)),
          over=("notes",)),
    _pose("running", "running", near=(60, -50), far=(70, 130), legs=((40, 75), (58, -12)),
          turn=-8, behind=("motion",), over=("dust",)),
    _pose("scolding", "scold", far=(90, 165), over=("speech",)),
    _pose("patting", "patting", "patted", far=(105, 66)),
    _pose("examining", "magnifying glass", "examining", "examined", far=(75, 60), over=("lens",)),
    _pose("photographing", "photograph", near=(50, -120), far=(50, -120), over=("flash",)),
    _pose("instructing", "pointer and a wall chart", "instructing", "instructed", "teaching",
          far=(115, 115), over=("chart",)),
    _pose("whispering", "whisper", far=(62, 200), over=("waves",)),
    _pose("shaking hands", "shaking hands", far=(72, 80)),
    _pose("high five", "high five", far=(140, 150)),
    _pose("looking up", "looking up", head=12, turn=20, over=("gaze up",)),
    _pose("looking down", "looking down", head=-12, over=("gaze down",)),
    _pose("laughing", "laughing with", near=(90, 150), far=(90, 150), over=("notes",)),
    _pose("crying", "crying", over=("drops",)),
)  # fmt: skip

ANIMALS = (
    _pose("sitting", "sitting on its haunches", turn=26),
    _pose("lying", "lying down", stretch=(1.15, 0.55)),
    _pose("crouching", "crouching", stretch=(1.06, 0.74)),
    _pose("turning head", "turning its head", over=("arcs",)),
    _pose("tilting head", "tilting its head", turn=-16),
    _pose("sniffing", "sniffing", turn=-14, over=("steam",)),
    _pose("raising tail", "raising its tail", over=("tail",)),
    _pose("curling tail", "curling its tail", over=("arcs",)),
    _pose("lowering head", "lowering its head", turn=-26, over=("gaze down",)),
    _pose("opening mouth", "opening its mouth", over=("teeth",)),
    _pose("tongue out", "sticking its tongue", over=("tongue",)),
    _pose("raising paw", "raising one front paw", over=("paw",)),
    _pose("stretching", "stretching its front legs", turn=-16, stretch=(1.25, 0.78)),
    _pose("scratching", "scratching", turn=14, over=("scratch",)),
    _pose("grooming", "grooming", over=("tongue", "sparkles")),
    _pose("walking", "walking", over=("dust",)),
    _pose("rolling over", "rolling over", turn=180, over=("wag",)),
    _pose("flying", "flying", lift=0.24, behind=("wings",)),
    _pose("swimming", "swimming", over=("water",)),
    _pose("hopping", "hopping", lift=0.08, over=("up motion",)),
    _pose("balancing", "balancing on its hind legs", turn=52, over=("wag",)),
    _pose("curled up", "curled up", stretch=(0.85, 0.66), turn=24, over=("zzz",)),
    _pose("nibbling", "nibbling", over=("leaf",)),
    _pose("digging", "digging", turn=-22, over=("mud", "dust")),
    _pose("rearing", "rearing", turn=48, over=("up motion",)),
    _pose("kicking", "kicking", turn=-36, behind=("motion",)),
    _pose("baring teeth", "baring its teeth", over=("teeth", "waves")),
    _pose("carrying stick", "carrying a stick", over=("stick",)),
    _pose("wallowing", "wallowing", stretch=(1.1, 0.75), over=("mud",)),
    _pose("stomping", "stomping", over=("paw", "dust")),
    _pose("charging", "charging at full speed", turn=-18, behind=("motion",), over=("dust",)),
    _pose("on hind legs", "standing tall on its hind legs", turn=58),
    _pose("stretching neck", "stretching its neck", stretch=(0.82, 1.28)),
    _pose("bucking", "bucking", turn=-48, lift=0.05, over=("up motion",)),
    _pose("taking flight", "taking flight", lift=0.1, behind=("wings",), over=("up motion",)),
    _pose("diving", "diving", turn=-75, lift=0.2, behind=("wings",), over=("down motion",)),
    _pose("flapping wings", "flapping its wings", behind=("wings",), over=("wag",)),
    _pose("wings folded", "wings folded", over=("zzz",)),
    _pose("on one leg", "standing on one leg", turn=9, lift=0.02),
    _pose("lunging", "lunging", behind=("motion",), over=("teeth",)),
    _pose("coiled", "coiled", stretch=(0.8, 0.8), over=("arcs",)),
    _pose("in its shell", "hiding inside its shell", stretch=(1, 0.72), shade=62),
    _pose("puffing throat", "puffing out its throat", over=("puff",)),
    _pose("basking", "basking", behind=("slab",), stretch=(1.08, 0.8)),
    _pose("touching noses", "touching noses", turn=-8),
    _pose("nuzzling", "nuzzl", turn=-12, over=("wag",)),
    _pose("mirrored", "mirrored poses", turn=10),
    _pose("howling", "howling", turn=26, over=("waves",)),
    _pose("paw on", "placing a paw", "paw placed", over=("paw",)),
    _pose("chasing", "chasing", "chased", turn=-8, behind=("motion",)),
)  # fmt: skip

OBJECTS = (
    _pose("tilted", "tilting on one edge", "tilted", turn=28),
    _pose("tipping over", "tipping over", turn=58, over=("wag",)),
    _pose("leaning on a wall", "leaning against", turn=-18, over=("wall",)),
    _pose("sliding", "sliding", turn=-16, lift=0.05, behind=("ramp", "motion")),
    _pose("floating", "floating on water", over=("water",)),
    _pose("falling", "falling", turn=32, lift=0.24, over=("down motion",)),
    _pose("rising", "rising into", turn=14, lift=0.24, over=("up motion",)),
    _pose("glowing", "glowing", behind=("glow",), over=("rays",)),
    _pose("screen lit", "screen brightly lit", behind=("glow",), over=("screen",)),
    _pose("screen black", "screen completely black", over=("dark screen",)),
    _pose("screen cracked", "screen cracked", over=("dark screen", "cracks")),
    _pose("headlights on", "headlights on", over=("beam",)),
    _pose("headlights off", "headlights off", shade=55),
    _pose("breaking apart", "breaking apart", turn=8, over=("shards", "rays")),
    _pose("clean", "spotlessly clean", over=("sparkles",)),
    _pose("dirty", "covered in dirt", over=("dirt",)),
    _pose("intact", "perfectly intact"),
    _pose("broken", "broken into pieces", turn=12, over=("shards",)),
    _pose("new", "brand new", over=("tag",)),
    _pose("worn", "badly worn", over=("wear",), shade=84),
    _pose("empty", "completely empty", over=("hollow",)),
    _pose("filled", "filled to the brim", over=("milk",)),
    _pose("open", "wide open", "lid propped open", over=("opening",)),
    _pose("closed", "fully closed", over=("strap",)),
    _pose("lid closed", "lid closed", stretch=(1, 0.42)),
    _pose("lid open", "lid open", over=("sparkles",)),
    _pose("occupied", "occupied by", over=("teddy",)),
    _pose("unoccupied", "completely unoccupied"),
    _pose("folded", "folded flat", stretch=(0.34, 1)),
    _pose("unfolded", "fully unfolded", over=("arrows out",)),
    _pose("taken apart", "taken apart", turn=20, over=("shards", "arrows out")),
    _pose("covered", "white sheet", over=("sheet",)),
    _pose("soapy", "soap foam", over=("foam",)),
    _pose("steaming", "steam rising", over=("steam",)),
    _pose("rusty", "covered in rust", over=("rust",)),
    _pose("charging cable", "charging cable", over=("bolt",)),
    _pose("half buried", "half buried", over=("sand",)),
    _pose("stickers", "colorful stickers", over=("stickers",)),
    _pose("on the wall", "mounted flat on a wall", lift=0.2, behind=("frame",)),
    _pose("crashed", "dented in a crash", turn=10, over=("cracks",)),
    _pose("burning", "engulfed in flames", over=("flames",)),
    _pose("in its case", "open case", behind=("case",)),
    _pose("dripping", "dripping wet", over=("drops",)),
    _pose("ribbon", "red ribbon", over=("ribbon",)),
    _pose("spilled", "tipped over with its contents", turn=-95, over=("liquid",)),
    _pose("stained", "stained", over=("stain",)),
    _pose("wrecked", "completely wrecked", turn=18, over=("shards", "smoke")),
    _pose("smoking", "smoke pouring", over=("smoke",)),
    _pose("being played", "being played", over=("hands", "notes")),
    _pose("inside out", "inside out", turn=180),
    _pose("torn", "pages torn", turn=8, over=("shards",)),
    _pose("at noon", "twelve o'clock", over=("noon",)),
    _pose("without hands", "hands missing", over=("no hands",)),
    _pose("fresh flowers", "fresh flowers", behind=("flowers",)),
    _pose("wilted flowers", "wilted flowers", over=("wilted",)),
    _pose("parked", "parked", behind=("runway",)),
    _pose("capsized", "capsized", turn=180, over=("water",)),
    _pose("made", "neatly made", over=("sparkles",)),
    _pose("unmade", "rumpled sheets", over=("rumpled",)),
)  # fmt: skip

POSES: dict[str, Pose] = {pose.name: pose for pose in (*PEOPLE, *ANIMALS, *OBJECTS)}
"""Every pose by name."""


def find_pose(text: str) -> str | None:
    """Name of the pose that the text asks for, or None.

    >>> find_pose("is kneeling on one knee")
    'kneeling'
    """
    lowered = text.lower()
    found = [
        (len(trigger), pose.name)
        for pose in POSES.values()
        for trigger in pose.triggers
        if trigger in lowered
    ]
    return max(found)[1] if found else None
