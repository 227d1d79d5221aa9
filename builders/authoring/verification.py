"""A second model reads a bank's pairs: agreement is noted, a person decides on the others."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...agents.session import SessionSettings, open_session
from ...agents.verification import (
    VERIFIER,
    Claim,
    Verification,
    VerifierReliability,
    reliability,
    verify,
)
from ...progress import Progress, silent
from ...storage import write_json
from ..constrained import ConstrainedPair, read_pairs
from ..frames import FRAMES
from .folder import AuthoringReport, extend, refuse, remove, report, write_queue, written_bank

REVIEWER = "reviewer-model"


def verify_pairs(
    session: SessionSettings,
    base: Path,
    bank: Path,
    every: bool = False,
    progress: Progress = silent,
) -> AuthoringReport:
    """Checks the base's pairs that no second model has read, or with `every` all, into a bank.

    A pair is marked as reviewed if the model agrees, unless the model wrote it. If it doesn't
    agree, a pair that a model wrote moves to `review/pairs.yaml`; a curated one is listed there and
    stays in the bank.
    """
    refuse(base, bank)
    domains = read_pairs(base)
    chosen = {
        pair.id: (domain, pair)
        for domain, pairs in sorted(domains.items())
        for pair in pairs
        if pair.status != "retired" and (every or REVIEWER not in pair.review)
    }
    with open_session(session) as opened:
        caller = opened.author(VERIFIER.name)
        results = verify(caller, [_claim(pair) for _, pair in chosen.values()], progress)
        queue = []
        with written_bank(base, bank, without="") as folder:
            for result in results:
                domain, pair = chosen[result.claim.id]
                file = folder / "constrained" / f"{domain}.yaml"
                if result.agreement == "agreed":
                    if pair.author != caller.author:
                        extend(file, [_reviewed(pair)])
                    continue
                queue.append(_waiting(domain, pair, result))
                if pair.author != "curated":
                    remove(file, pair.id)
            read_pairs(folder)
            measured = reliability(results)
            write_json(folder / "archive" / "verification.json", _summary(measured))
            if queue:
                write_queue(folder / "review" / "pairs.yaml", queue)
        counts = {
            "pairs": measured.pairs,
            "agreed": measured.agreed,
            "contradicted": measured.contradicted,
            "undecided": measured.undecided,
            "failed": measured.failed,
        }
        return report(opened, bank, _headline(measured), counts)


def _claim(pair: ConstrainedPair) -> Claim:
    viewer = FRAMES[pair.frame].meaning
    return Claim(id=pair.id, left=pair.left, right=pair.right, setting=pair.context, viewer=viewer)


def _reviewed(pair: ConstrainedPair) -> dict[str, Any]:
    review = tuple(dict.fromkeys((*pair.review, REVIEWER)))
    changed = pair.model_copy(update={"review": review})
    return changed.model_dump(mode="json", exclude_defaults=True)


def _waiting(domain: str, pair: ConstrainedPair, result: Verification) -> dict[str, Any]:
    return {
        "id": pair.id,
        "domain": domain,
        "agreement": result.agreement,
        "as_stated": {"verdict": result.as_stated, "reason": result.reasons[0]},
        "mirrored": {"verdict": result.mirrored, "reason": result.reasons[1]},
        "calls": list(result.calls),
        "entry": pair.model_dump(mode="json", exclude_defaults=True),
    }


def _summary(measured: VerifierReliability) -> dict[str, Any]:
    return {**asdict(measured), "discard_rate": measured.discard_rate}


def _headline(r: VerifierReliability) -> str:
    def number(value: float | None) -> str:
        return "undefined" if value is None else f"{value:.3f}"

    return (
        f"the end of the pairs: kappa {number(r.kappa)}, accuracy {number(r.accuracy)}, "
        f"yes rate {number(r.yes_rate)} over {r.statements} statements, discard rate "
        f"{number(r.discard_rate)}"
    )
