"""A backend that answers from a script, for tests and the demo ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...specs import Spec
from ..chat import BackendError, ChatRequest, Completion, Permit, Usage, always

CHARACTERS_A_TOKEN = 4
"""Characters that count as one token in the usage that a script reports."""


class ScriptedBackend:
    """Answers with a function of the request.

    The function sees the request alone, not the number of calls before it, so that a resumed run
    gets the same answers as an uninterrupted one.
    """

    def __init__(self, script: Callable[[ChatRequest], str | Completion], name: str) -> None:
        self._script = script
        self._name = name

    @classmethod
    def from_spec(cls, spec: Spec) -> ScriptedBackend:
        """``scripted:FILE``: a JSON list of {role, contains, answer}; the first match answers.

        `contains` lists texts that must all occur in the request's user texts. Raises DataError.
        """
        path = Path(spec.argument)
        try:
            rules = [(r["role"], list(r["contains"]), r["answer"]) for r in _read(path)]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"{path}: no script of role, contains, answer ({error!r})", code="bad-format"
            ) from None

        def script(request: ChatRequest) -> str:
            prompt_text = "\n".join(content for content in request.user if isinstance(content, str))
            for role, contains, answer in rules:
                if role == request.role and all(text in prompt_text for text in contains):
                    return answer if isinstance(answer, str) else json.dumps(answer)
            raise BackendError(
                f"{path}: no line matches this request of {request.role}", code="not-recorded"
            )

        return cls(script, path.stem)

    def identity(self) -> dict[str, str]:
        return {"kind": "scripted", "model": self._name, "provider": "none"}

    def check(self) -> int:
        """Never fails: no server is needed."""
        return 0

    def complete(self, request: ChatRequest, permit: Permit = always) -> Completion:
        try:
            answer = self._script(request)
        except BackendError as error:
            for _ in range(error.lost_attempts - 1):
                permit()
            raise
        if isinstance(answer, Completion):
            for _ in range(answer.lost_attempts):
                permit()
            return answer
        prompt_text = request.system + "".join(p for p in request.user if isinstance(p, str))
        lengths = (len(text) // CHARACTERS_A_TOKEN for text in (prompt_text, answer))
        usage = Usage(*(max(1, tokens) for tokens in lengths))
        return Completion("ok", answer, usage, {"scripted": answer})


def _read(path: Path) -> list[dict[str, Any]]:
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, list):
        raise ValueError("not a list")
    return data
