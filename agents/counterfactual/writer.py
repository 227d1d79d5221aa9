"""From curated laws to groups: write, review on four criteria, ask, describe (CF-World 3)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...progress import Progress, silent
from ...schema import Struct
from ..caller import Answer, Call, Caller
from ..hygiene import one_line, skeleton, text_fault
from ..roles import Role
from .answers import Draft, Questions, Renaming, Review, SceneDraft, SceneQuestions, SceneVerdict

WRITER = Role("counterfactual/writer", Draft, 6_000)
REVIEWER = Role("counterfactual/reviewer", Review, 3_000)
QUESTIONER = Role("counterfactual/questioner", Questions, 6_000)
DENOMINALIZER = Role("counterfactual/denominalizer", Renaming, 500)

TEXTS = {
    "scene": 300,
    "factual": 300,
    "counterfactual": 400,
    "point_factual": 200,
    "point_counterfactual": 200,
}
"""Texts of a scene, and their longest length in characters."""

QUESTION = 300
"""Longest question, in characters."""

CRITERIA = ("unambiguous", "deduced", "safe", "valid")
ASKED = ("visual", "point_factual", "point_counterfactual", "logic_factual", "logic_counterfactual")

A = TypeVar("A", bound=Struct)


@dataclass(frozen=True)
class LawSheet:
    """A curated law to write scenes for."""

    id: str
    """Its slug."""
    file: str
    """The bank file that holds it, without suffix."""
    law: str
    """The law of our world, one sentence."""
    altered: str
    """Completes "If ..., draw ..."."""
    scenes: tuple[str, ...]
    """Scenes that the bank has already."""
    ids: tuple[str, ...] = ()
    """Their ids."""


@dataclass(frozen=True)
class LawContract:
    """Access of the writer to the bank; made by the room that owns the bank."""

    laws: tuple[LawSheet, ...]
    """Laws to write for."""
    faults: Callable[[LawSheet, Mapping[str, Any]], list[str]]
    """Returns the faults of a scene of a law."""
    alike: Callable[[LawSheet, Mapping[str, Any], Mapping[str, Mapping[str, Any]]], str | None]
    """The id of an accepted scene that is almost the same, or None."""


@dataclass(frozen=True)
class SceneRejected:
    """A scene that was dropped."""

    law: str
    """Its law."""
    scene: str
    """Its text, cleaned and shortened."""
    by: str
    """`hygiene`, `reviewer`, `bank`, `duplicate`, or the role that gave no usable answer."""
    why: str
    """The reason."""


@dataclass
class WrittenScenes:
    """Results of a run."""

    entries: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """Law -> scene id -> entry as the bank stores it."""
    rejected: list[SceneRejected] = field(default_factory=list)
    """Everything else."""

    def count(self) -> int:
        """Number of accepted scenes."""
        return sum(map(len, self.entries.values()))


@dataclass
class _Work:
    """One law on its way through the stages."""

    law: LawSheet
    calls: list[str]
    drafts: list[SceneDraft]
    questions: dict[int, SceneQuestions] = field(default_factory=dict)


class CounterfactualWriter:
    """One run: stage after stage, with all laws of a stage in parallel."""

    def __init__(
        self, author: Caller, reviewer: Caller, contract: LawContract, per_law: int
    ) -> None:
        self._author = author
        self._reviewer = reviewer
        self._contract = contract
        self._per_law = per_law
        self._result = WrittenScenes()

    def run(self, progress: Progress = silent) -> WrittenScenes:
        """Takes every law through every stage."""
        work = self._write(progress)
        self._review(work, progress)
        self._ask(work, progress)
        self._accept(work)
        self._describe(progress)
        return self._result

    def _write(self, progress: Progress) -> list[_Work]:
        laws = sorted(self._contract.laws, key=lambda law: law.id)
        calls = [_call(f"law/{law.id}/writer", WRITER, self._order(law)) for law in laws]
        work = []
        answers = self._author.call_many(calls, "scenes", progress)
        for law, answer in zip(laws, answers, strict=True):
            if answer.value is None:
                self._failed(law, "", WRITER, answer)
                continue
            drafts = list(self._sound(law, answer.value.scenes[: self._per_law]))
            work.append(_Work(law, list(answer.calls), drafts))
        return [w for w in work if w.drafts]

    def _order(self, law: LawSheet) -> str:
        there = "".join(f"\n- {scene}" for scene in law.scenes)
        return (
            f"Write {self._per_law} scenes.\n<data>\nLaw: {law.law}\n"
            f"Alteration: If {law.altered}, draw ...\n"
            f"Scenes that are there, not to repeat:{there or ' none'}\n</data>"
        )

    def _sound(self, law: LawSheet, drafts: Sequence[SceneDraft]) -> Iterator[SceneDraft]:
        for draft in drafts:
            fault = _fault((name, getattr(draft, name), limit) for name, limit in TEXTS.items())
            if fault:
                self._reject(law, draft, "hygiene", fault)
            else:
                yield draft

    def _review(self, work: list[_Work], progress: Progress) -> None:
        calls = [
            _call(f"law/{w.law.id}/reviewer", REVIEWER, _sheet(w), _complete(len(w.drafts)))
            for w in work
        ]
        answers = self._reviewer.call_many(calls, "review", progress)
        for w, answer in zip(work, answers, strict=True):
            w.calls += answer.calls
            if answer.value is None:
                self._all_failed(w, REVIEWER, answer)
                continue
            verdicts = {v.scene: v for v in answer.value.verdicts}
            passed = []
            for number, draft in enumerate(w.drafts, 1):
                if why := _objections(verdicts[number]):
                    self._reject(w.law, draft, "reviewer", why)
                else:
                    passed.append(draft)
            w.drafts = passed

    def _ask(self, work: list[_Work], progress: Progress) -> None:
        with_drafts = [w for w in work if w.drafts]
        calls = [
            _call(
                f"law/{w.law.id}/questioner", QUESTIONER, _sheet(w), _questions_check(len(w.drafts))
            )
            for w in with_drafts
        ]
        answers = self._author.call_many(calls, "questions", progress)
        for w, answer in zip(with_drafts, answers, strict=True):
            w.calls += answer.calls
            if answer.value is None:
                self._all_failed(w, QUESTIONER, answer)
            else:
                w.questions = {q.scene: q for q in answer.value.scenes}

    def _accept(self, work: list[_Work]) -> None:
        for w in work:
            accepted = self._result.entries.setdefault(w.law.id, {})
            for number, draft in enumerate(w.drafts, 1):
                taken = {*accepted, *w.law.ids}
                entry = self._entry(w, draft, w.questions[number], taken)
                questions = ((n, entry[f"q_{n}"]["text"], QUESTION) for n in ASKED)
                if fault := _fault(questions):
                    self._reject(w.law, draft, "hygiene", fault)
                elif faults := self._contract.faults(w.law, entry):
                    self._reject(w.law, draft, "bank", "; ".join(faults))
                elif twin := self._contract.alike(w.law, entry, self._all()):
                    self._reject(w.law, draft, "duplicate", f"almost repeats {twin}")
                else:
                    accepted[entry["id"]] = entry

    def _entry(
        self, w: _Work, draft: SceneDraft, questions: SceneQuestions, taken: Collection[str]
    ) -> dict[str, Any]:
        entry: dict[str, Any] = {"id": _scene_id(w.law, draft, taken), **draft.model_dump()}
        for name in ASKED:
            entry[f"q_{name}"] = getattr(questions, name).model_dump()
        entry["denominalized"] = None
        # A model's review of its own work does not count.
        if self._reviewer.author != self._author.author:
            entry["review"] = ["reviewer-model"]
        return entry | {"author": self._author.author, "calls": list(w.calls)}

    def _describe(self, progress: Progress) -> None:
        entries = [e for _, scenes in sorted(self._result.entries.items()) for e in scenes.values()]
        calls = [
            _call(
                call_id=f"scene/{e['id']}/denominalizer",
                role=DENOMINALIZER,
                text=f"<data>\n{e['counterfactual']}\n</data>",
                check=_once(e["counterfactual"]),
            )
            for e in entries
        ]
        answers = self._author.call_many(calls, "descriptions", progress)
        for entry, answer in zip(entries, answers, strict=True):
            if answer.value is not None and answer.value.suitable:
                change = {"replace": answer.value.replace, "by": answer.value.by}
                entry |= {"denominalized": change, "calls": [*entry["calls"], *answer.calls]}

    def _all(self) -> dict[str, dict[str, Any]]:
        return {name: e for scenes in self._result.entries.values() for name, e in scenes.items()}

    def _reject(self, law: LawSheet, draft: SceneDraft, by: str, why: str) -> None:
        rejected = SceneRejected(law.id, one_line(draft.scene, 120), by, one_line(why, 300))
        self._result.rejected.append(rejected)

    def _all_failed(self, w: _Work, role: Role[Any], answer: Answer[Any]) -> None:
        """Drops the scenes of a law for which a role gave no usable answer."""
        for draft in w.drafts:
            self._failed(w.law, draft.scene, role, answer)
        w.drafts = []

    def _failed(self, law: LawSheet, scene: str, role: Role[Any], answer: Answer[Any]) -> None:
        why = f"{answer.status}: {one_line(answer.problem, 300)}"
        self._result.rejected.append(SceneRejected(law.id, one_line(scene, 120), role.short, why))


def _call(
    call_id: str, role: Role[A], text: str, check: Callable[[A], None] = lambda answer: None
) -> Call[A]:
    """A call whose answer is read by its role and then checked."""

    def validate(text: str) -> A:
        answer = role.read(text)
        check(answer)
        return answer

    return Call(call_id, role.request(text), validate)


def _sheet(w: _Work) -> str:
    """A law and its numbered scenes."""
    scenes = [
        f"{number}. {json.dumps(draft.model_dump(), ensure_ascii=False)}"
        for number, draft in enumerate(w.drafts, 1)
    ]
    law = [f"Law: {w.law.law}", f"Alteration: If {w.law.altered}, draw ..."]
    return "\n".join(["<data>", *law, *scenes, "</data>"])


def _complete(count: int) -> Callable[[Review], None]:
    def check(review: Review) -> None:
        _numbers([v.scene for v in review.verdicts], count)

    return check


def _questions_check(count: int) -> Callable[[Questions], None]:
    def check(questions: Questions) -> None:
        _numbers([q.scene for q in questions.scenes], count)
        for scene in questions.scenes:
            for name in ASKED:
                if not getattr(scene, name).text.endswith("?"):
                    raise ValueError(f"scene {scene.scene}, {name}: must end with a question mark")

    return check


def _numbers(scenes: list[int], count: int) -> None:
    if sorted(scenes) != list(range(1, count + 1)):
        raise ValueError(f"answer for each of the scenes 1 to {count} once, not for {scenes}")


def _once(outcome: str) -> Callable[[Renaming], None]:
    def check(answer: Renaming) -> None:
        if not answer.suitable:
            return
        if fault := _fault([("replace", answer.replace, 200), ("by", answer.by, 300)]):
            raise ValueError(fault)
        if outcome.count(answer.replace) != 1:
            raise ValueError("replace: must occur exactly once in the sentence")
        if answer.replace.lower() in answer.by.lower():
            raise ValueError("by: still holds the name")

    return check


def _objections(verdict: SceneVerdict) -> str:
    failed = [name for name in CRITERIA if not getattr(verdict, name)]
    return f"not {', '.join(failed)}: {verdict.reason}" if failed else ""


def _fault(texts: Any) -> str:
    for name, text, limit in texts:
        if (fault := text_fault(text, limit)) is not None:
            return f"{name}: {fault}"
    return ""


def _scene_id(law: LawSheet, draft: SceneDraft, taken: Collection[str]) -> str:
    """The law's id and the scene's first words, numbered if that is taken."""
    words = skeleton(draft.scene).encode("ascii", "ignore").decode()
    tail = "-".join(re.findall(r"[a-z0-9]+", words)[:4]) or "scene"
    stem = f"{law.id}-{tail}"
    number = 1
    while (candidate := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return candidate
