"""A backend whose answers are all read back from a ledger; it makes no call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...errors import DataError
from ...specs import Options, Spec
from ..chat import ChatRequest, Completion, NotRecordedError, Permit, always
from ..ledger import Ledger


class ReplayOptions(Options):
    """Options of `replay`."""

    role: str | None = None
    """Role whose answers are read; by default those of every role."""


class ReplayBackend:
    """Stands in for a recorded model; a call that the ledger doesn't hold can't be made."""

    def __init__(self, identity: Mapping[str, str]) -> None:
        self._identity = dict(identity)

    @classmethod
    def from_spec(cls, spec: Spec) -> ReplayBackend:
        """``replay:LEDGER[?role=ROLE]``."""
        options = ReplayOptions.read(spec)
        with Ledger(Path(spec.argument), read_only=True) as ledger:
            return cls.of(ledger, options.role)

    @classmethod
    def of(cls, ledger: Ledger, role: str | None = None) -> ReplayBackend:
        """The model that answered `role`, or every role if None.

        For a role that was never asked (the run ended before) any model will do: it won't be asked
        now. Raises DataError unless exactly one model answered.
        """
        identities = ledger.identities(role) or ledger.identities()[:1]
        if len(identities) != 1:
            who = f"role {role}" if role else "its calls"
            raise DataError(
                f"{ledger.path}: {len(identities)} models answered {who}; "
                "a replay needs exactly one",
                code="several-models",
            )
        return cls(identities[0])

    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    def check(self) -> int:
        """Never fails: no server is needed."""
        return 0

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        raise NotRecordedError(
            f"the ledger doesn't hold this call of {request.role}, and a replay makes none: "
            "continue with the backend that recorded it",
            code="not-recorded",
        )
