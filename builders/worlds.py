"""The second edition of the altered worlds: what it adds to each group of the bank.

The texts and questions of a group stay in `bank/counterfactual/`; `bank/worlds/` holds one complete
entry for each group that the second edition has. `docs/write-worlds.md` is the writer's guide.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..schema import LogicKind, Phrasing, Struct
from .bank import BankError, by_name, read_folder
from .clip import clip_length
from .counterfactual import CounterfactualScene, Law
from .lemmas import content, lemma, synonyms
from .phrases import sentence, wrong_article

FOLDER = "worlds"
"""Folder of the bank; `worlds/STEM.yaml` has entries for groups of `counterfactual/STEM.yaml`."""

TOKENS = 70
"""A prompt has fewer CLIP tokens: of the 77 that encoders read, two are marks, and a generator may
add words of its own."""

PHRASINGS: dict[Phrasing, str] = {
    "template": "If {altered}, draw {scene}.",
    "imperative": "Draw {scene}, as if {altered}.",
    "narrative": "Suppose {altered}. Here we see {scene}.",
}
"""Ways to tell a premise and a scene; CF-World has the first. The outcome follows."""

TELL_REAL: tuple[Phrasing, ...] = ("template", "narrative")
"""Phrasings that can tell a law that holds: "as if" says of what follows that it does not."""

_PLACED = frozenset("At Away By In On Under When Where Without".split())
"""First words of laws that say where or when they hold: "If in soccer, players may" is no prose."""

_NAMES = frozenset(("Earth", "English"))
"""First words of laws that keep their capital inside a sentence."""

KEYED = ("point_factual", "logic_factual", "point_counterfactual", "logic_counterfactual")
"""Questions, `q_` fields without their prefix, whose right answer is yes in their own world and no
in the other, so that asking all four of an image balances the keys."""

_NEGATION = re.compile(
    r"\b(no|not|without|none|nothing|nobody|nowhere|never|neither|free of|clear of|empty of|absent|"
    r"missing(?= from|\?)|lack\w*|devoid)\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(r"\b(there|visible|shown|seen)\b.*\band\b", re.IGNORECASE)
_AFTER_PREDICATE = re.compile(r"(, |\band )(\w+ ){0,4}$")
_UNCHANGED = re.compile(
    r"^(?!.*\b(while|but)\b).*\bstill (?!water|air|lake|sea|pond)", re.IGNORECASE
)
_QUESTION = re.compile(r"(?:Is|Are|Do|Does|Has|Have|Can)\b.*\?")
_PAST = (
    r"(?:\w+[^e]ed|been|begun|blown|broken|brought|come|cut|drawn|driven|dug|eaten|fallen|flown|"
    r"frozen|given|gone|grown|held|hit|hung|kept|laid|lain|left|let|lit|lost|made|met|put|risen|"
    r"run|seen|set|shrunk|slid|split|spread|stood|struck|sunk|taken|thrown|torn|wound)"
)
"""A past participle; a form like "need" is none."""
_SPAN = (
    r"(?:(?:(?:an?|one|half|whole|quarter|of) )+(?:second|minute|hour|day|night|week|month|year|"
    r"century)|(?:(?!at |by |each |every |from |in |on |the |to |with )\w+ ){0,3}"
    r"(?:seconds|minutes|hours|days|nights|weeks|months|years|centuries))(?!-)"
)
"""How long; "for each day" and "for a rainy day" are no span."""
_TIME = re.compile(
    r"\b(?:ago|had|later|last week(?! of)|now|overnight|since|until|was|were|yesterday|"
    rf"(?:has|have) (?:not |\w+ly |just |ever |never |long )?{_PAST}|"
    rf"(?:just|then) (?:being )?{_PAST}(?! of\b)|"
    r"after (?!another|the (?:last|other)|new moon|full moon|sun(?:set|rise)|dark)|"
    rf"for {_SPAN}|from {_SPAN} in|{_SPAN} into|by (?:days|weeks|months|years|centuries) of|"
    r"all (?:morning|afternoon|night)|(?:once|twice) an? (?:minute|hour|day|week|month|year)|"
    r"(?:that|(?<!in |on |to |of )which|who|he|she|it|they|someone|nobody|which (?:an?|the) \w+) "
    r"(?:\w+[^e]ed|came|drew|fell|hung|lay|ran|stood|took|went|wore))\b",
    re.IGNORECASE,
)
"""A past or perfect tense, a moment before, an event that is over, or how long something lasted."""


class ShortForm(Struct):
    """Shorter texts, used in every prompt of the second edition; an empty one stays as it is."""

    altered: str = ""
    """The premise: completes `If ..., draw ...`."""
    scene: str = ""
    """Completes `Draw ...`."""
    counterfactual: str = ""
    """The outcome, one sentence."""


class DescribedOutcome(Struct):
    """The outcome told without the noun that names it (CF-World 5.3)."""

    noun: str
    """One word of the outcome: the thing that the altered world shows. No form of it, and no
    synonym, is left in the prompt."""
    counterfactual: str
    """The outcome by appearance: shape, color, size, place."""
    altered: str = ""
    """The premise without the noun; empty if it never had it."""
    scene: str = ""
    """The scene without the noun; empty if it never had it."""


class WorldEntry(Struct):
    """Additions of the second edition to one group. Fields without a default are required."""

    id: str
    """Id of the group."""
    presence: str
    """Question: are the things of the scene there? Answered yes in both worlds."""
    chain: Annotated[list[str], Field(min_length=1, max_length=5)]
    """The deduction: first the premise applied to the scene, last what is seen; each sentence after
    the first uses a law or fact that the premise does not tell, and names it."""
    control: str
    """Id of a law of `controls.yaml` that, altered, leaves the scene as it is (L0)."""
    phrasing: Phrasing
    """How it is told; kept here, so that a group that retires leaves the others as they were."""
    naive_outcome: bool
    """Whether a naive image of the scene already shows the altered world."""
    logic_kind: LogicKind
    """What the logic questions ask about. Could somebody who knows only the answer to the point
    question, with the noun exchanged, answer them? Then an `instance`, else a `consequence`; a
    `restatement` if not even the noun differs."""
    described: DescribedOutcome | None
    """None if the outcome is no thing that can be described instead."""
    short: ShortForm | None = None
    """Given exactly where the group's own texts make too long a prompt."""

    @property
    def depth(self) -> int:
        """Steps from the premise to what is seen: 0 if the premise says it, 1, 2 or more."""
        return len(self.chain) - 1


class ControlLaw(Struct):
    """A law so narrow that altering it leaves most scenes as they are."""

    law: str
    """Its id."""


def premise(law: Law, scene: CounterfactualScene, phrasing: Phrasing = "template") -> str:
    """Premise and scene, as L3 has them."""
    text = PHRASINGS[phrasing].format(altered=law.altered, scene=scene.scene)
    return sentence(text)


def shortened(
    law: Law, scene: CounterfactualScene, form: ShortForm | DescribedOutcome | None
) -> tuple[Law, CounterfactualScene]:
    """Law and scene with the texts of a form in place of their own."""
    fields = form.model_dump() if form else {}
    texts = {name: fields[name] for name in ("scene", "counterfactual") if fields.get(name)}
    altered = {"altered": fields["altered"]} if fields.get("altered") else {}
    return law.model_copy(update=altered), scene.model_copy(update=texts)


def world_prompts(
    law: Law, scene: CounterfactualScene, entry: WorldEntry, control: Law | None
) -> dict[str, str]:
    """Every prompt of a group, by level and phrasing: `L0/template`, `L1`, `L2/narrative`,
    `described`."""
    law, scene = shortened(law, scene, entry.short)
    prompts = {"L1": sentence(f"draw {scene.scene}")}
    for name in PHRASINGS:
        if control is not None:
            prompts[f"L0/{name}"] = premise(control, scene, name)
        prompts[f"L3/{name}"] = premise(law, scene, name)
        prompts[f"L2/{name}"] = f"{premise(law, scene, name)} {scene.counterfactual}"
    if entry.described is not None:
        law, scene = shortened(law, scene, entry.described)
        prompts["described"] = f"{premise(law, scene)} {scene.counterfactual}"
    return prompts


def real_law_prompt(law: Law, scene: CounterfactualScene, entry: WorldEntry) -> str:
    """The scene with its own law as the premise, as the group is told; empty where it can't be.

    It can't be after "as if", for a law that begins with where or when it holds, and where the
    prompt would be too long.
    """
    first = re.split(r"\W", law.law, maxsplit=1)[0]
    if entry.phrasing not in TELL_REAL or first in _PLACED:
        return ""
    start = law.law[0] if first in _NAMES else law.law[0].lower()
    real = law.model_copy(update={"altered": (start + law.law[1:]).removesuffix(".")})
    prompt = premise(real, shortened(law, scene, entry.short)[1], entry.phrasing)
    return prompt if clip_length(prompt) < TOKENS else ""


def time_clause(scene: str) -> bool:
    """Whether a scene, as a prompt tells it, says what went before the moment of the image.

    It does so by a tense ("that has lain"), a word of time ("ago", "just lifted", "after a shower")
    or a span ("for an hour"); not by a date, a time of day or a participle alone ("a cut melon").
    """
    return _TIME.search(scene) is not None


def read_worlds(bank: Path) -> dict[str, WorldEntry]:
    """Entries by group; none where the bank has no second edition. Raises BankError."""
    folder = bank / FOLDER
    entries = (entry for some in read_folder(folder, WorldEntry).values() for entry in some)
    return by_name(entries, "id", str(folder))


def draw_control(law: Law, scene: CounterfactualScene, controls: Mapping[str, Law]) -> str:
    """A control for a group, drawn by its id from those that `control_faults` lets pass.

    Raises BankError if none does.
    """
    fitting = [name for name, c in controls.items() if not list(control_faults(law, scene, c))]
    if not fitting:
        raise BankError(
            f"controls.yaml: no law fits {scene.id}; add one of another discipline",
            code="too-few-items",
        )
    return min(fitting, key=lambda name: hashlib.sha256(f"{scene.id}/{name}".encode()).digest())


def entry_faults(
    law: Law, scene: CounterfactualScene, entry: WorldEntry, controls: Mapping[str, Law]
) -> Iterator[tuple[str, str]]:
    """Yields the faults of a group of the second edition, as (field, message): of its entry and of
    the texts and questions of the bank that it uses."""
    if scene.status == "retired":
        yield "id", "the group is retired: remove the entry"
    yield from _presence_faults(scene, entry)
    yield from _chain_faults(scene, entry)
    if entry.control in controls:
        yield from control_faults(law, scene, controls[entry.control])
    else:
        yield "control", f"{entry.control!r} is not in controls.yaml"
    yield from _short_faults(law, scene, entry)
    yield from _described_faults(law, scene, entry)
    yield from question_faults(scene)
    prompts = world_prompts(law, scene, entry, controls.get(entry.control))
    for name in (
        "L0/narrative",
        "L2/narrative",
        "described",
    ):  # the longest phrasing stands for the others
        if (length := clip_length(prompts.get(name, ""))) >= TOKENS:
            field = "described" if name == "described" else "short"
            yield field, f"{name} has {length} CLIP tokens, must have fewer than {TOKENS}"
    for name, prompt in prompts.items():
        if (wrong := wrong_article(prompt)) is not None:
            yield name, f"has the wrong article in {wrong!r}"


def question_faults(scene: CounterfactualScene) -> Iterator[tuple[str, str]]:
    """Yields the faults of a group's questions that code can find, as (field, message)."""
    texts = {name: getattr(scene, f"q_{name}").text for name in KEYED}
    for name, text in texts.items():
        if not _QUESTION.fullmatch(text):
            yield f"q_{name}", f"must be a yes/no question: {text!r}"
        yield from _absence_faults(f"q_{name}", text)
        if _UNCHANGED.search(text):
            yield f"q_{name}", f"asks for what both worlds show ('still'): {text!r}"
        group_texts = f"{scene.scene} {scene.factual} {scene.counterfactual}"
        if extra := set(re.findall(r"\d+", text)) - set(re.findall(r"\d+", group_texts)):
            yield f"q_{name}", f"has a number that no prompt asks for: {', '.join(sorted(extra))}"
    for world in ("factual", "counterfactual"):
        if set(content(texts[f"point_{world}"])) == set(content(texts[f"logic_{world}"])):
            yield f"q_logic_{world}", "asks the same as the point question"
    for dimension in ("point", "logic"):
        if texts[f"{dimension}_factual"] == texts[f"{dimension}_counterfactual"]:
            yield f"q_{dimension}_counterfactual", "is the question of the real world"


def control_faults(law: Law, scene: CounterfactualScene, control: Law) -> Iterator[tuple[str, str]]:
    """Yields why an altered law can't be a group's control: it may change what the image shows."""
    if control.discipline == law.discipline:
        yield "control", f"{control.id!r} is of {law.discipline} too: choose another discipline"
    about = f"{scene.scene} {scene.factual} {scene.counterfactual}"
    if shared := set(content(control.altered)) & set(content(about)) - _COMMON:
        yield "control", f"{control.id!r} speaks of {', '.join(sorted(shared))}, as the group does"


_COMMON = frozenset("lie stand world thing side large small white hour".split())
"""Words that a control may share with a scene."""


def _absence_faults(field: str, text: str) -> Iterator[tuple[str, str]]:
    """An absence alone is true of an empty image: something visible must be told first."""
    if (negation := _NEGATION.search(text)) is None:
        return
    before = text[: negation.start()]
    plain = negation.group(0).lower() in ("without", "no", "not", "none", "nothing")
    acts = re.match(r"Do|Has|Have|Can", text) is not None and negation.group(0) == "without"
    affirms = plain and (acts or _AFTER_PREDICATE.search(before)) and len(set(content(before))) > 1
    if not (affirms or _PRESENT.search(before)):
        ask = "ask 'Is X there and without Y?'"
        yield field, f"asks for an absence ({negation.group(0)!r}) alone, {ask}: {text!r}"


def _presence_faults(scene: CounterfactualScene, entry: WorldEntry) -> Iterator[tuple[str, str]]:
    if not _QUESTION.fullmatch(entry.presence):
        yield "presence", f"must be a yes/no question: {entry.presence!r}"
    if _NEGATION.search(entry.presence):
        yield "presence", "must not ask for an absence"
    outcomes = {*content(scene.factual), *content(scene.counterfactual)}
    scene_words = set(content(scene.scene))
    if early := set(content(entry.presence)) & outcomes - scene_words:
        words = ", ".join(sorted(early))
        yield "presence", f"asks for the outcome: {words} (not in the scene)"


def _chain_faults(scene: CounterfactualScene, entry: WorldEntry) -> Iterator[tuple[str, str]]:
    for number, step in enumerate(entry.chain, 1):
        if not re.fullmatch(r"[A-Z].*[^.]\.", step) or step != " ".join(step.split()):
            yield "chain", f"step {number} must be one sentence with a period: {step!r}"
    if len(set(entry.chain)) < len(entry.chain):
        yield "chain", "a step stands twice"
    if not _related(entry.chain[-1], scene.counterfactual):
        yield "chain", "the last step does not say what is seen: it shares no word with the outcome"


def _related(text: str, other_text: str) -> bool:
    first = set(content(text))
    return any({word, *synonyms(word)} & first for word in content(other_text))


def _short_faults(
    law: Law, scene: CounterfactualScene, entry: WorldEntry
) -> Iterator[tuple[str, str]]:
    if entry.short is None:
        return
    unshortened = entry.model_copy(update={"short": None, "described": None})
    if clip_length(world_prompts(law, scene, unshortened, None)["L2/narrative"]) < TOKENS:
        yield "short", "is not needed: the group's own texts are short enough"
    yield from _text_faults("short", entry.short)
    if entry.short == ShortForm():
        yield "short", "has no text"


def _described_faults(
    law: Law, scene: CounterfactualScene, entry: WorldEntry
) -> Iterator[tuple[str, str]]:
    described = entry.described
    if described is None:
        return
    if not re.fullmatch(r"[a-z]+", described.noun):
        yield "described", f"noun: one lower-case word, not {described.noun!r}"
    noun = lemma(described.noun)
    outcome_words = set(content(scene.counterfactual))
    if noun not in outcome_words:
        yield "described", f"noun: {described.noun!r} is not in the outcome"
    elif described.noun not in shortened(law, scene, entry.short)[1].counterfactual.lower():
        yield "described", f"noun: not spelled as in the outcome of L2: {described.noun!r}"
    yield from _text_faults("described", described)
    prompt = world_prompts(law, scene, entry, None)["described"]
    for message in naming(prompt, described.noun, f"{scene.scene} {scene.counterfactual}"):
        yield "described", f"{message} in {prompt!r}"


def naming(prompt: str, noun: str, group: str) -> Iterator[str]:
    """Yields how a prompt still names a noun: by a form of it, or by a synonym.

    A synonym that the group needs in another meaning stands in its own texts, `group`, too.
    """
    words, root = set(content(prompt)), lemma(noun)
    if root in words or re.search(rf"\b{noun}", prompt, re.IGNORECASE):
        yield f"still names {noun!r}"
    if same := synonyms(root, "noun") & words - set(content(group)):
        yield f"has a synonym of {noun!r}: {', '.join(sorted(same))}"


def _text_faults(field: str, form: ShortForm | DescribedOutcome) -> Iterator[tuple[str, str]]:
    for name in ("altered", "scene"):
        text: str = getattr(form, name)
        if text.endswith(".") or text != " ".join(text.split()):
            yield field, f"{name}: a phrase without a period: {text!r}"
    outcome = form.counterfactual
    if outcome and not re.fullmatch(r"[A-Z0-9].*[^.]\.", outcome):
        yield field, f"counterfactual: a sentence with a period: {outcome!r}"


def controls_by_id(listed: Iterable[ControlLaw], laws: Iterable[Law]) -> dict[str, Law]:
    """The laws that `controls.yaml` names. Raises KeyError for an id that no law has."""
    laws_by_id = {law.id: law for law in laws}
    return {control.law: laws_by_id[control.law] for control in listed}
