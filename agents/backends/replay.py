"""A backend that is only ever read back from a ledger: it says who answered, and asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...specs import Spec
from ..chat import ChatRequest, Completion, NotRecordedError, Permit, always
from ..ledger import Ledger


class ReplayBackend:
    """Stands for the model that a ledger recorded; a call that it doesn't hold can't be made."""

    def __init__(self, identity: Mapping[str, str]) -> None:
        self._identity = dict(identity)

    @classmethod
    def from_spec(cls, spec: Spec) -> ReplayBackend:
        """``replay:LEDGER[?role=ROLE]``."""
        if unknown := set(spec.options) - {"role"}:
            raise ValueError(f"replay: no option {sorted(unknown)[0]!r}")
        with Ledger(Path(spec.argument), read_only=True) as ledger:
            return cls.of(ledger, spec.options.get("role"))

    @classmethod
    def of(cls, ledger: Ledger, role: str | None = None) -> ReplayBackend:
        """The model that answered `role`, or every role.

        A role that was never asked (its run ended before) is answered by any: it won't be asked
        now. Raises ValueError unless exactly one model is left.
        """
        found = ledger.identities(role) or ledger.identities()[:1]
        if len(found) != 1:
            who = f"role {role}" if role else "its calls"
            raise ValueError(
                f"{ledger.path}: {len(found)} models answered {who}; replay needs exactly one"
            )
        return cls(found[0])

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def check(self) -> None:
        """Asks nobody, so nothing can be missing."""

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        raise NotRecordedError(
            f"the ledger doesn't hold this call of {request.role}, and a replay makes none: "
            "go on with the backend that recorded it"
        )
