"""`gap`: the relation holds if the best boxes do not even overlap along its axis."""

from __future__ import annotations

from .boxes import FORWARD, SIDEWAYS, Convention, Relation
from .detections import MISSING, Measurement, Sighting


def measure(sighting: Sighting, relation: Relation, convention: Convention) -> Measurement:
    """1 if the one box ends before the other begins, else 0; a missing subject scores 0."""
    if not sighting.has_both:
        return MISSING
    a, b = sighting.boxes
    first, second = (a, b) if relation in FORWARD else (b, a)
    holds = first.x2 < second.x1 if relation in SIDEWAYS else first.y2 < second.y1
    return Measurement(holds, float(holds))
