"""`scene`: the known truth of the renderer's images, read from their metadata.

It never looks at pixels. With it, studies of worlds and of constrained pairs run offline and their
scores are what the renderer was set to do.
"""

from __future__ import annotations

from ...errors import DataError
from ...scenes.scene import Scene
from ..core import Question, Verdict
from ..questions.asking import Stated
from ..questions.truth import STANDING, WorldAspect, scene_label
from . import OneByOne

FIRST = {
    "horizontal": "left_of",
    "vertical": "above",
    "depth": "in_front_of",
    "occlusion": "hidden_by",
    "falling": "upper_left",
    "rising": "lower_left",
    "distance": "near",
    "middle": "between",
}
"""Axis that the scene decides -> relation of a subject that comes first on it."""


class SceneJudge(OneByOne):
    """Answers what the scene of an image says about order, arrangement and worlds."""

    tasks = frozenset(("order", "arrangement", "yes_no"))
    """Tasks of the questions that it can answer."""

    def identity(self) -> dict[str, str]:
        return {"kind": "scene", "version": "1"}

    def verdict(self, question: Question) -> Verdict:
        try:
            scene = Scene.of(question.images[-1])
        except (DataError, IndexError) as error:
            return Verdict("error", f"scene: {error}")
        label = _label(question, scene)
        if not label:
            return Verdict("error", "scene: what the image records does not decide this question")
        return Verdict(label, scene.world or " ".join(scene.left_to_right()))


def _label(question: Question, scene: Scene) -> str:
    """The true label of a question; empty if the scene doesn't decide it."""
    if question.task == "yes_no":
        if "aspect" not in question.facts:
            return ""
        return WorldAspect(question.facts["aspect"], question.facts["world"]).answer(scene)
    if question.task not in ("order", "arrangement") or scene.world:
        return ""
    axis = question.facts.get("axis", "horizontal")
    if axis not in FIRST:
        return ""
    if axis == "horizontal" and STANDING & {*scene.faults}:
        return question.labels[2]
    claim = Stated(question.subjects[0], FIRST[axis], question.subjects[1])
    first, second, invalid = question.labels
    return {"holds": first, "opposite": second}.get(scene_label(scene, claim), invalid)
