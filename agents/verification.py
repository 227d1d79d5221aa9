"""A second model checks pairs by mirrored statements, so that always saying yes scores chance.

Each pair gives two statements in separate calls: that its left thing is left of its right one, and
the reverse. The model agrees with the bank only if it affirms the first and denies the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..progress import Progress, silent
from ..schema import Struct
from .caller import Answer, Call, Caller
from .hygiene import one_line
from .roles import Role

Said = Literal["true", "false", "unsure", "failed"]
ClaimOutcome = Literal["agreed", "contradicted", "undecided", "failed"]


class StatementCheck(Struct):
    """The verifier's answer to one statement."""

    reason: str
    """One sentence; it comes first, so that the verdict follows from it."""
    verdict: Literal["true", "false", "unsure"]
    """Whether the statement holds."""


VERIFIER = Role("verification/verifier", StatementCheck, 600)


@dataclass(frozen=True)
class Claim:
    """A pair to check."""

    id: str
    """Id of the entry."""
    left: str
    """Left thing, according to the bank."""
    right: str
    """Right thing, according to the bank."""
    setting: str
    """Context, as in the prompt."""
    viewer: str
    """Observer and frame of reference."""


@dataclass(frozen=True)
class Verification:
    """The result for one pair."""

    claim: Claim
    """The pair."""
    as_stated: Said
    """Verdict on the bank's statement."""
    mirrored: Said
    """Verdict on its reverse."""
    reasons: tuple[str, str]
    """The verifier's reason for each verdict."""
    calls: tuple[str, ...]
    """Ledger ids."""

    @property
    def agreement(self) -> ClaimOutcome:
        """`agreed` for true and false, `contradicted` for false and true, else `undecided`."""
        if "failed" in (self.as_stated, self.mirrored):
            return "failed"
        if (self.as_stated, self.mirrored) == ("true", "false"):
            return "agreed"
        if (self.as_stated, self.mirrored) == ("false", "true"):
            return "contradicted"
        return "undecided"


def verify(
    caller: Caller,
    claims: Iterable[Claim],
    progress: Progress = silent,
) -> list[Verification]:
    """Both statements of every claim, in parallel; results in the order of the claims."""
    listed = list(claims)
    calls = [call for claim in listed for call in _statements(claim)]
    answers = caller.call_many(calls, "statements", progress)
    pairs = zip(listed, answers[::2], answers[1::2], strict=True)
    return [
        Verification(
            claim=claim,
            as_stated=_as_said(stated),
            mirrored=_as_said(mirrored),
            reasons=(_reason(stated), _reason(mirrored)),
            calls=(*stated.calls, *mirrored.calls),
        )
        for claim, stated, mirrored in pairs
    ]


def _statements(claim: Claim) -> tuple[Call[StatementCheck], Call[StatementCheck]]:
    def call(name: str, first: str, second: str) -> Call[StatementCheck]:
        # The setting names the two in the same order in both statements: it must not tell.
        things = " and ".join(sorted((claim.left, claim.right)))
        text = (
            f"<data>\nSetting: {things} {claim.setting}.\nViewer: {claim.viewer}\n"
            f"Statement: {first} is to the left of {second}.\n</data>"
        )
        return Call(f"verify/{claim.id}/{name}", VERIFIER.request(text), VERIFIER.read)

    return call("stated", claim.left, claim.right), call("mirrored", claim.right, claim.left)


def _as_said(answer: Answer[StatementCheck]) -> Said:
    return answer.value.verdict if answer.value else "failed"


def _reason(answer: Answer[StatementCheck]) -> str:
    return one_line(answer.value.reason if answer.value else answer.problem, 300)


@dataclass(frozen=True)
class VerifierReliability:
    """Agreement of the verifier with the bank over all pairs."""

    pairs: int
    """Pairs checked."""
    agreed: int
    """Pairs with both statements answered as in the bank."""
    contradicted: int
    """Pairs with both answered the other way round."""
    undecided: int
    """Pairs with yes to both, no to both, or unsure."""
    failed: int
    """Pairs with no usable answer to one of them."""
    statements: int
    """Statements answered true or false."""
    accuracy: float | None
    """Share of these answered as in the bank; 0.5 if all are answered true. None without any."""
    kappa: float | None
    """Cohen's kappa of bank and verifier over these statements; None if undefined."""
    yes_rate: float | None
    """Share of these answered true; 0.5 for a verifier without a bias."""

    @property
    def discard_rate(self) -> float | None:
        """Share of pairs without agreement; None without pairs."""
        return 1 - self.agreed / self.pairs if self.pairs else None


def reliability(results: Sequence[Verification]) -> VerifierReliability:
    """Counts, accuracy and chance-corrected agreement.

    >>> claim = Claim(id="i", left="a", right="b", setting="c", viewer="d")
    >>> yes = [Verification(claim, "true", "true", ("", ""), ())] * 10
    >>> found = reliability(yes)
    >>> found.accuracy, found.kappa, found.discard_rate
    (0.5, 0.0, 1.0)
    """
    agreements = [r.agreement for r in results]
    key = [(True, r.as_stated) for r in results] + [(False, r.mirrored) for r in results]
    table = [(holds, answer == "true") for holds, answer in key if answer in ("true", "false")]
    n = len(table)
    accuracy = sum(holds == answer for holds, answer in table) / n if n else None
    yes_rate = sum(answer for _, answer in table) / n if n else None
    return VerifierReliability(
        pairs=len(results),
        agreed=agreements.count("agreed"),
        contradicted=agreements.count("contradicted"),
        undecided=agreements.count("undecided"),
        failed=agreements.count("failed"),
        statements=n,
        accuracy=accuracy,
        kappa=kappa_of(table),
        yes_rate=yes_rate,
    )


def kappa_of(answers: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Cohen's kappa of pairs of labels; None without any, or if only one label occurs.

    >>> kappa_of([("yes", "yes"), ("no", "no"), ("yes", "no"), ("no", "no")])
    0.5
    """
    n = len(answers)
    first, second = Counter(a for a, _ in answers), Counter(b for _, b in answers)
    expected = sum(first[label] * second[label] for label in first)
    observed = n * sum(a == b for a, b in answers)
    return (observed - expected) / (n * n - expected) if expected < n * n else None
