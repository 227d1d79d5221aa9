"""Models behind servers, scripts and ledgers: one module per kind, and one line in `BACKENDS`."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...errors import UsageError
from ...specs import Spec
from ..chat import ChatBackend


def _openai(spec: Spec) -> ChatBackend:
    from .openai_chat import OpenAIChat

    return OpenAIChat.from_spec(spec)


def _anthropic(spec: Spec) -> ChatBackend:
    from .anthropic_messages import AnthropicMessages

    return AnthropicMessages.from_spec(spec)


def _systemone(spec: Spec) -> ChatBackend:
    from .systemone import SystemOne

    return SystemOne.from_spec(spec)


def _scripted(spec: Spec) -> ChatBackend:
    from .scripted import ScriptedBackend

    return ScriptedBackend.from_spec(spec)


def _replay(spec: Spec) -> ChatBackend:
    from .replay import ReplayBackend

    return ReplayBackend.from_spec(spec)


BACKENDS: dict[str, Callable[[Spec], ChatBackend]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "scripted": _scripted,
    "systemone": _systemone,
    "replay": _replay,
}


def open_chat(spec: Spec, option_names: Collection[str], kind: str = "") -> ChatBackend:
    """Opens the backend of an adapter that has options of its own.

    option_names: options of the spec that are the backend's. kind: kind of the backend, if it is
    not the adapter's. Raises as `open_backend`.
    """
    options = {name: text for name, text in spec.options.items() if name in option_names}
    backend = Spec(kind or spec.kind, spec.argument, options)
    return BACKENDS[backend.kind](backend)


def open_backend(text: str) -> ChatBackend:
    """The backend that a spec names: ``openai:MODEL@BASE_URL``, ``anthropic:MODEL``, ...

    Raises UsageError for an unknown kind or option, BackendError for a missing key.
    """
    spec = Spec.parse(text)
    if spec.kind not in BACKENDS:
        raise UsageError(
            f"no backend {spec.kind!r}: choose from {', '.join(sorted(BACKENDS))}",
            code="unknown-name",
        )
    return BACKENDS[spec.kind](spec)
