"""Words by which the rules of extraction tell things from what only looks or sounds like them."""

from __future__ import annotations

QUANTITIES = frozenset(
    "pair couple group bunch herd flock pack crowd row line stack pile set team trio dozen dozens "
    "number lot lots variety hundreds thousands handful pairs groups rows stacks piles bunches "
    "heap slice slices piece pieces kind kinds type types selection assortment collection array "
    "plenty family".split()
)
"""Before "of X" they quantify X and are not entities: "a couple of dogs" shows dogs."""

DEPICTIONS = frozenset(
    "photo photograph picture image portrait painting drawing sketch illustration shot view "
    "snapshot closeup print".split()
)
"""Before "of X" they depict X: in "photo of a cat and a dog", the parser joins photo and dog."""

FIGURES = frozenset("statue sculpture figurine figure model bust replica silhouette".split())
"""Before "of X" they are a thing that looks like X."""

STUFFED = frozenset(("stuffed", "plush"))

TOYS = frozenset(("toy", "toys"))

FAKE = frozenset(
    "plastic model rubber inflatable wooden metal bronze stone marble clay ceramic porcelain paper "
    "cardboard origami knitted crocheted felt lego fake miniature carved sculpted".split()
)
"""Before the name of something that lives or drives, they make it a thing of its own kind."""

OFFSPRING = frozenset(("baby", "child", "mother", "father", "parent"))
"""Of an animal, where the words say so: "a cow with its baby"."""

LINKS = frozenset(("to", "of", "from"))
"""Last words of multiword prepositions, after the place word."""

SURROUNDING = frozenset(("surrounded", "flanked", "accompanied"))
"""Participles whose agent stands beside their subject: "surrounded by trees"."""

WATCHING = frozenset(
    "look looks looking looked gaze gazes gazing stare stares staring watch watches watching "
    "smile smiles smiling focus focused".split()
)
"""Verbs whose preposition says where eyes go, not where things are."""

POSTURES = frozenset(
    "sit sits sitting sat stand stands standing stood lie lies lying lay laying lays rest resting "
    "rests sleep sleeping sleeps asleep perched perching curled".split()
)

PUTTING = frozenset(
    "put puts putting place places placing placed throw throws throwing cook cooks cooking pour "
    "pours pouring breathe breathes breathing spread spreads spreading cut cuts cutting drop drops "
    "dropping serve serves serving draw draws drawing paint paints painting".split()
)
"""Verbs whose object is on something, rather than who does it."""

SCREENS = frozenset(
    ("cell phone", "telephone", "television", "radio", "computer", "laptop", "camera", "microphone")
)
"""Nobody stands on them: "a girl on her phone"."""

IMPRINTS = frozenset(
    "stock royalty photo photos photograph photographs photography image images picture pictures "
    "vector vectors illustration illustrations wallpaper editorial".split()
)
"""After a name in a title, they speak of the image and not of a thing."""

PLAYED = frozenset("play plays played playing".split())

GAMES = frozenset("football soccer basketball baseball volleyball".split())
