"""Actions and states that an image can show: the words that name them, and what is drawn.

A text asks for the pose with the longest trigger that it contains. Poses that contrast in the
taxonomy clearly differ in the image.
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
    """The arm of a person on the side away from where it faces; it holds the prop."""
    far: Limb = _DOWN
    """The arm of a person on the side where it faces."""
    legs: tuple[Limb, Limb] = (_LEG, _LEG)
    """A person's legs, in the same order."""
    head: float = 0
    """Tilt of a person's head, degrees."""
    lean: float = 0
    """Rotation of a whole person, degrees, backward positive."""
    turn: float = 0
    """Rotation of an animal or object, degrees, front up positive."""
    stretch: tuple[float, float] = (1, 1)
    """Factors on the width and height of an animal or object."""
    lift: float = 0
    """Height above the ground, share of the image's height."""
    shade: int = 100
    """Brightness in percent."""
    behind: tuple[str, ...] = ()
    """Effects drawn before the figure."""
    over: tuple[str, ...] = ()
    """Effects drawn after it."""

    def posture(self) -> Posture:
        """A person's joints, facing the viewer's right."""
        return Posture((self.near, self.far), self.legs, self.head)


_UP: Limb = (172, 178)
_SQUAT: Limb = (80, -5)

PEOPLE = (
    Pose("standing", ("standing up straight", "standing on all fours", "standing upright")),
    Pose("raising hand", ("raising one hand",), far=_UP),
    Pose("waving", ("waving one hand",), far=(115, 165), over=("wag",)),
    Pose("pointing", ("pointing with", "pointing at", "pointed at"), far=(90, 90)),
    Pose("clapping", ("clapping",), near=(48, -75), far=(48, -75), over=("rays",)),
    Pose("saluting", ("salut",), far=(105, 228)),
    Pose("arms crossed", ("arms crossed",), near=(22, -95), far=(22, -95)),
    Pose("arms spread", ("arms spread",), near=(90, 90), far=(90, 90)),
    Pose("hands on hips", ("hands on the hips",), near=(58, -52), far=(58, -52)),
    Pose("hands on head", ("hands on the head",), near=(125, 232), far=(125, 232)),
    Pose("leaning forward", ("leaning forward",), lean=-24),
    Pose("leaning backward", ("leaning backward",), lean=24),
    Pose("bowing", ("bowing", "bowed to"), lean=-58),
    Pose("stretching up", ("stretching both arms",), near=_UP, far=_UP),
    Pose("stepping", ("long step forward",), legs=((30, 10), (52, 8))),
    Pose("kneeling", ("kneeling",), legs=((5, 92), (72, 0))),
    Pose("squatting", ("squatting",), legs=(_SQUAT, _SQUAT)),
    Pose("sitting on the floor", ("sitting on the floor",), legs=((78, 84), (78, 84))),
    Pose("lifting leg", ("one leg with the other leg lifted",), legs=(_LEG, (82, 12))),
    Pose(
        "jumping",
        ("jumping",),
        near=(140, 160),
        far=(140, 160),
        legs=((42, 20), (42, 20)),
        lift=0.13,
        over=("up motion",),
    ),
    Pose(
        "dancing",
        ("dancing",),
        near=(150, 175),
        far=(85, 150),
        legs=(_LEG, (62, -30)),
        over=("notes",),
    ),
    Pose(
        "running",
        ("running",),
        near=(60, -50),
        far=(70, 130),
        legs=((40, 75), (58, -12)),
        turn=-8,
        behind=("motion",),
        over=("dust",),
    ),
    Pose("scolding", ("scold",), far=(90, 165), over=("speech",)),
    Pose("patting", ("patting", "patted"), far=(105, 66)),
    Pose("examining", ("magnifying glass", "examining", "examined"), far=(75, 60), over=("lens",)),
    Pose("photographing", ("photograph",), near=(50, -120), far=(50, -120), over=("flash",)),
    Pose(
        "instructing",
        ("pointer and a wall chart", "instructing", "instructed", "teaching"),
        far=(115, 115),
        over=("chart",),
    ),
    Pose("whispering", ("whisper",), far=(62, 200), over=("waves",)),
    Pose("shaking hands", ("shaking hands",), far=(72, 80)),
    Pose("high five", ("high five",), far=(140, 150)),
    Pose("looking up", ("looking up",), head=12, turn=20, over=("gaze up",)),
    Pose("looking down", ("looking down",), head=-12, over=("gaze down",)),
    Pose("laughing", ("laughing with",), near=(90, 150), far=(90, 150), over=("notes",)),
    Pose("crying", ("crying",), over=("drops",)),
)

ANIMALS = (
    Pose("sitting", ("sitting on its haunches",), turn=26),
    Pose("lying", ("lying down",), stretch=(1.15, 0.55)),
    Pose("crouching", ("crouching",), stretch=(1.06, 0.74)),
    Pose("turning head", ("turning its head",), over=("arcs",)),
    Pose("tilting head", ("tilting its head",), turn=-16),
    Pose("sniffing", ("sniffing",), turn=-14, over=("steam",)),
    Pose("raising tail", ("raising its tail",), over=("tail",)),
    Pose("curling tail", ("curling its tail",), over=("arcs",)),
    Pose("lowering head", ("lowering its head",), turn=-26, over=("gaze down",)),
    Pose("opening mouth", ("opening its mouth",), over=("teeth",)),
    Pose("tongue out", ("sticking its tongue",), over=("tongue",)),
    Pose("raising paw", ("raising one front paw",), over=("paw",)),
    Pose("stretching", ("stretching its front legs",), turn=-16, stretch=(1.25, 0.78)),
    Pose("scratching", ("scratching",), turn=14, over=("scratch",)),
    Pose("grooming", ("grooming",), over=("tongue", "sparkles")),
    Pose("walking", ("walking",), over=("dust",)),
    Pose("rolling over", ("rolling over",), turn=180, over=("wag",)),
    Pose("flying", ("flying",), lift=0.24, behind=("wings",)),
    Pose("swimming", ("swimming",), over=("water",)),
    Pose("hopping", ("hopping",), lift=0.08, over=("up motion",)),
    Pose("balancing", ("balancing on its hind legs",), turn=52, over=("wag",)),
    Pose("curled up", ("curled up",), stretch=(0.85, 0.66), turn=24, over=("zzz",)),
    Pose("nibbling", ("nibbling",), over=("leaf",)),
    Pose("digging", ("digging",), turn=-22, over=("mud", "dust")),
    Pose("rearing", ("rearing",), turn=48, over=("up motion",)),
    Pose("kicking", ("kicking",), turn=-36, behind=("motion",)),
    Pose("baring teeth", ("baring its teeth",), over=("teeth", "waves")),
    Pose("carrying stick", ("carrying a stick",), over=("stick",)),
    Pose("wallowing", ("wallowing",), stretch=(1.1, 0.75), over=("mud",)),
    Pose("stomping", ("stomping",), over=("paw", "dust")),
    Pose("charging", ("charging at full speed",), turn=-18, behind=("motion",), over=("dust",)),
    Pose("on hind legs", ("standing tall on its hind legs",), turn=58),
    Pose("stretching neck", ("stretching its neck",), stretch=(0.82, 1.28)),
    Pose("bucking", ("bucking",), turn=-48, lift=0.05, over=("up motion",)),
    Pose("taking flight", ("taking flight",), lift=0.1, behind=("wings",), over=("up motion",)),
    Pose("diving", ("diving",), turn=-75, lift=0.2, behind=("wings",), over=("down motion",)),
    Pose("flapping wings", ("flapping its wings",), behind=("wings",), over=("wag",)),
    Pose("wings folded", ("wings folded",), over=("zzz",)),
    Pose("on one leg", ("standing on one leg",), turn=9, lift=0.02),
    Pose("lunging", ("lunging",), behind=("motion",), over=("teeth",)),
    Pose("coiled", ("coiled",), stretch=(0.8, 0.8), over=("arcs",)),
    Pose("in its shell", ("hiding inside its shell",), stretch=(1, 0.72), shade=62),
    Pose("puffing throat", ("puffing out its throat",), over=("puff",)),
    Pose("basking", ("basking",), behind=("slab",), stretch=(1.08, 0.8)),
    Pose("touching noses", ("touching noses",), turn=-8),
    Pose("nuzzling", ("nuzzl",), turn=-12, over=("wag",)),
    Pose("mirrored", ("mirrored poses",), turn=10),
    Pose("howling", ("howling",), turn=26, over=("waves",)),
    Pose("paw on", ("placing a paw", "paw placed"), over=("paw",)),
    Pose("chasing", ("chasing", "chased"), turn=-8, behind=("motion",)),
)

OBJECTS = (
    Pose("tilted", ("tilting on one edge", "tilted"), turn=28),
    Pose("tipping over", ("tipping over",), turn=58, over=("wag",)),
    Pose("leaning on a wall", ("leaning against",), turn=-18, over=("wall",)),
    Pose("sliding", ("sliding",), turn=-16, lift=0.05, behind=("ramp", "motion")),
    Pose("floating", ("floating on water",), over=("water",)),
    Pose("falling", ("falling",), turn=32, lift=0.24, over=("down motion",)),
    Pose("rising", ("rising into",), turn=14, lift=0.24, over=("up motion",)),
    Pose("glowing", ("glowing",), behind=("glow",), over=("rays",)),
    Pose("screen lit", ("screen brightly lit",), behind=("glow",), over=("screen",)),
    Pose("screen black", ("screen completely black",), over=("dark screen",)),
    Pose("screen cracked", ("screen cracked",), over=("dark screen", "cracks")),
    Pose("headlights on", ("headlights on",), over=("beam",)),
    Pose("headlights off", ("headlights off",), shade=55),
    Pose("breaking apart", ("breaking apart",), turn=8, over=("shards", "rays")),
    Pose("clean", ("spotlessly clean",), over=("sparkles",)),
    Pose("dirty", ("covered in dirt",), over=("dirt",)),
    Pose("intact", ("perfectly intact",)),
    Pose("broken", ("broken into pieces",), turn=12, over=("shards",)),
    Pose("new", ("brand new",), over=("tag",)),
    Pose("worn", ("badly worn",), over=("wear",), shade=84),
    Pose("empty", ("completely empty",), over=("hollow",)),
    Pose("filled", ("filled to the brim",), over=("milk",)),
    Pose("open", ("wide open", "lid propped open"), over=("opening",)),
    Pose("closed", ("fully closed",), over=("strap",)),
    Pose("lid closed", ("lid closed",), stretch=(1, 0.42)),
    Pose("lid open", ("lid open",), over=("sparkles",)),
    Pose("occupied", ("occupied by",), over=("teddy",)),
    Pose("unoccupied", ("completely unoccupied",)),
    Pose("folded", ("folded flat",), stretch=(0.34, 1)),
    Pose("unfolded", ("fully unfolded",), over=("arrows out",)),
    Pose("taken apart", ("taken apart",), turn=20, over=("shards", "arrows out")),
    Pose("covered", ("white sheet",), over=("sheet",)),
    Pose("soapy", ("soap foam",), over=("foam",)),
    Pose("steaming", ("steam rising",), over=("steam",)),
    Pose("rusty", ("covered in rust",), over=("rust",)),
    Pose("charging cable", ("charging cable",), over=("bolt",)),
    Pose("half buried", ("half buried",), over=("sand",)),
    Pose("stickers", ("colorful stickers",), over=("stickers",)),
    Pose("on the wall", ("mounted flat on a wall",), lift=0.2, behind=("frame",)),
    Pose("crashed", ("dented in a crash",), turn=10, over=("cracks",)),
    Pose("burning", ("engulfed in flames",), over=("flames",)),
    Pose("in its case", ("open case",), behind=("case",)),
    Pose("dripping", ("dripping wet",), over=("drops",)),
    Pose("ribbon", ("red ribbon",), over=("ribbon",)),
    Pose("spilled", ("tipped over with its contents",), turn=-95, over=("liquid",)),
    Pose("stained", ("stained",), over=("stain",)),
    Pose("wrecked", ("completely wrecked",), turn=18, over=("shards", "smoke")),
    Pose("smoking", ("smoke pouring",), over=("smoke",)),
    Pose("being played", ("being played",), over=("hands", "notes")),
    Pose("inside out", ("inside out",), turn=180),
    Pose("torn", ("pages torn",), turn=8, over=("shards",)),
    Pose("at noon", ("twelve o'clock",), over=("noon",)),
    Pose("without hands", ("hands missing",), over=("no hands",)),
    Pose("fresh flowers", ("fresh flowers",), behind=("flowers",)),
    Pose("wilted flowers", ("wilted flowers",), over=("wilted",)),
    Pose("parked", ("parked",), behind=("runway",)),
    Pose("capsized", ("capsized",), turn=180, over=("water",)),
    Pose("made", ("neatly made",), over=("sparkles",)),
    Pose("unmade", ("rumpled sheets",), over=("rumpled",)),
)

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
