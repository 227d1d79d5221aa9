"""Requirements of questions and edits, whether the game or a person wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..hygiene import text_fault

TEN = 10
"""Questions about the picture: five similarities, five differences."""

EDITS = 3
"""Edits, with two questions each about the edited image."""

ASKED = TEN + 2 * EDITS
"""All questions: the ten, then those of the edits."""

YES = range(4, 7)
"""How many of the ten are answered yes, so that always saying yes scores about half."""

LONGEST = 240
"""Longest question or edit, in characters."""


def material_faults(
    questions: Sequence[str], answers: Sequence[bool], edits: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yields the faults of one image's material: `questions`, `answers` or `edits`, and why."""
    counts = (len(questions), len(answers), len(edits))
    if counts != (ASKED, ASKED, EDITS):
        yield "questions", f"{counts} questions, answers, edits; must be {ASKED}, {ASKED}, {EDITS}"
        return
    for field, texts in (("questions", questions), ("edits", edits)):
        for number, text in enumerate(texts, 1):
            if fault := text_fault(text, LONGEST):
                yield field, f"{number} {fault}"
            elif field == "questions" and not text.endswith("?"):
                yield field, f"{number} has no question mark: {text}"
    if len({question.casefold() for question in questions}) < ASKED:
        yield "questions", "two are the same"
    if (yes := sum(answers[:TEN])) not in YES:
        yield "answers", f"{yes} of the first ten are true, must be {YES[0]} to {YES[-1]}"
    for number in range(TEN, ASKED, 2):
        if answers[number] == answers[number + 1]:
            yield "answers", f"{number + 1} and {number + 2}: an edit has one true and one false"
