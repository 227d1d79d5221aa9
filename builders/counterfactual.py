"""The bank of counterfactual worlds: laws, each altered once, and scenes to show it (CF-World)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ..schema import EvaluationQuestion, Struct
from .bank import BankFaults, by_name, read_folder
from .phrases import sentence

WEIGHTS = {"visual": (1, 3), "point": (12, 16), "logic": (7, 9)}
"""Smallest and largest weight of a question on each dimension (CF-World 3.3)."""

QUESTIONS = (
    "visual",
    "point_factual",
    "point_counterfactual",
    "logic_factual",
    "logic_counterfactual",
)
"""Questions about a scene, `q_` fields without their prefix."""

SCENES_PER_LAW = 8
"""Scenes of a law at most."""

HINT = 5
"""Words in a row that, if outcome and premise share them, give the outcome away."""


class Denominalization(Struct):
    """Part of an outcome, and the same described instead of named (CF-World 5.3)."""

    replace: str
    """Text of the outcome that names the target."""
    by: str
    """Description without that name."""


class CounterfactualScene(Struct):
    """One group of three prompts."""

    id: str
    """Id of the law, then a slug; never changes."""
    scene: str
    """Completes `Draw ...`; holds no hint of the outcome."""
    factual: str
    """Outcome in our world."""
    counterfactual: str
    """Outcome in the altered world; closes the L2 prompt."""
    point_factual: str
    """Content that the image of L1 must show."""
    point_counterfactual: str
    """Content that the images of L2 and L3 must show."""
    q_visual: EvaluationQuestion
    """Visual integrity, all levels."""
    q_point_factual: EvaluationQuestion
    """Assessment point, L1."""
    q_point_counterfactual: EvaluationQuestion
    """Assessment point, L2 and L3."""
    q_logic_factual: EvaluationQuestion
    """Logic consistency, L1."""
    q_logic_counterfactual: EvaluationQuestion
    """Logic consistency, L2 and L3."""
    denominalized: Denominalization | None
    """Set if the outcome names a target that can be described instead."""
    status: Literal["new", "revised", "retired"] = "new"
    """Since the last release."""
    erratum: str = ""
    """Why it was revised or retired, one sentence; empty while it is new."""
    review: tuple[str, ...] = ()
    """Reviewers besides the author: `reviewer-model`, `human`."""
    author: str = "curated"
    """Author: `curated`, or the model, e.g. `openai:MODEL`."""
    calls: tuple[str, ...] = ()
    """Ledger ids of the model calls it was written with."""


class Law(Struct):
    """A law of our world, how it is altered, and scenes that show it."""

    id: str
    """Slug; never changes."""
    discipline: Literal["Physics", "Biology", "Chemistry", "Geography", "Sociology"]
    """School subject."""
    branch: str
    """Branch of the subject."""
    law: str
    """The law, one sentence."""
    altered: str
    """The premise: completes `If ..., draw ...`."""
    scenes: list[CounterfactualScene]
    """Groups of this law."""


def prompts(law: Law, scene: CounterfactualScene) -> dict[str, str]:
    """The three prompts of a group; L3 is L2 without the outcome (CF-World 3.1)."""
    deduced = sentence(f"if {law.altered}, draw {scene.scene}")
    return {
        "L1": sentence(f"draw {scene.scene}"),
        "L2": f"{deduced} {scene.counterfactual}",
        "L3": deduced,
    }


def denominalized_prompt(law: Law, scene: CounterfactualScene) -> str | None:
    """L2 with the target described instead of named; None if the bank has no description."""
    if scene.denominalized is None:
        return None
    outcome = scene.counterfactual.replace(scene.denominalized.replace, scene.denominalized.by, 1)
    return f"{prompts(law, scene)['L3']} {outcome}"


def read_laws(bank: Path) -> dict[str, list[Law]]:
    """Laws by file, every one checked. Raises BankError naming file and entry."""
    folder = bank / "counterfactual"
    faults = BankFaults()
    files = read_folder(folder, Law, faults)
    with faults.caught():
        by_name((law for laws in files.values() for law in laws), "id", str(folder), files)
    scenes = [scene for laws in files.values() for law in laws for scene in law.scenes]
    with faults.caught():
        by_name(scenes, "id", str(folder))
    for file, laws in files.items():
        for law in laws:
            for reason in law_faults(law):
                faults.add(f"{folder / file}.yaml, {law.id}: {reason}")
    faults.raise_any()
    return files


def law_faults(law: Law) -> Iterator[str]:
    """Yields the faults of a law and of its scenes."""
    if not 1 <= len(law.scenes) <= SCENES_PER_LAW:
        yield f"scenes: one to {SCENES_PER_LAW}, not {len(law.scenes)}"
    if law.altered.endswith(".") or law.altered != law.altered.strip():
        yield "altered: a clause without a period"
    for scene in law.scenes:
        if not scene.id.startswith(law.id + "-"):
            yield f"{scene.id}: id: must start with {law.id}-"
        yield from (f"{scene.id}: {reason}" for reason in _scene_faults(law, scene))


def _scene_faults(law: Law, scene: CounterfactualScene) -> Iterator[str]:
    if scene.scene.endswith(".") or scene.scene != scene.scene.strip():
        yield "scene: a phrase without a period"
    if (scene.status == "new") != (scene.erratum == ""):
        yield "erratum: given exactly where the status is revised or retired"
    if not scene.counterfactual.endswith("."):
        yield "counterfactual: a sentence with a period"
    for name in QUESTIONS:
        question: EvaluationQuestion = getattr(scene, f"q_{name}")
        low, high = WEIGHTS[name.split("_")[0]]
        if not low <= question.weight <= high:
            yield f"q_{name}: weight must be {low} to {high}, is {question.weight}"
        if not question.text.endswith("?"):
            yield f"q_{name}: must be a question"
    if scene.point_factual == scene.point_counterfactual:
        yield "point_counterfactual: must differ from the factual one"
    if shingles(scene.counterfactual, HINT) & shingles(law.altered, HINT):
        yield f"counterfactual: the premise already says {HINT} words of it in a row"
    if (change := scene.denominalized) is not None:
        if scene.counterfactual.count(change.replace) != 1:
            yield f"denominalized: {change.replace!r} must occur once in the outcome"
        if change.replace.lower() in change.by.lower():
            yield "denominalized: the description still holds the name"


def shingles(text: str, size: int) -> set[tuple[str, ...]]:
    """Runs of `size` words of the text, lower case, without punctuation."""
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def near_duplicates(texts: dict[str, str], threshold: float) -> list[tuple[str, str, float]]:
    """Pairs of names whose texts' three-word shingles have a Jaccard index above `threshold`.

    The result is exact; an index of shingles is fast enough for thousands of texts.
    """
    sets = {name: shingles(text, 3) for name, text in texts.items()}
    holders: dict[tuple[str, ...], list[str]] = {}
    shared: dict[tuple[str, str], int] = {}
    for name, mine in sets.items():
        for shingle in mine:
            for earlier in holders.setdefault(shingle, []):
                shared[earlier, name] = shared.get((earlier, name), 0) + 1
            holders[shingle].append(name)
    duplicates = []
    for (a, b), common in shared.items():
        index = common / (len(sets[a]) + len(sets[b]) - common)
        if index > threshold:
            duplicates.append((a, b, index))
    return sorted(duplicates, key=lambda item: (-item[2], item[:2]))
