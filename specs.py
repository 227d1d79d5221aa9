"""Specs: ``kind:argument[?key=value&key=value]``, the one way to name a generator or a judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl


@dataclass(frozen=True)
class Spec:
    """A parsed spec.

    >>> Spec.parse("render:?order_bias=0.4")
    Spec(kind='render', argument='', options={'order_bias': '0.4'})
    >>> Spec.parse("openai:gpt-image@http://localhost:8000/v1").argument
    'gpt-image@http://localhost:8000/v1'
    """

    kind: str
    """Which adapter; a key of the room's table, e.g. ``GENERATORS``."""
    argument: str
    """What the adapter opens: a model name, a path; may be empty."""
    options: dict[str, str] = field(default_factory=dict)
    """Settings of the adapter, as text; the adapter converts and rejects them."""

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Raises ValueError for a missing kind, a repeated option or one without a value."""
        head, _, query = text.partition("?")
        kind, _, argument = head.partition(":")
        if not kind:
            raise ValueError(f"spec {text!r} has no kind: write kind:argument?key=value")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
        except ValueError:
            raise ValueError(f"spec {text!r}: every option is written key=value") from None
        options = dict(pairs)
        if len(options) != len(pairs):
            raise ValueError(f"spec {text!r} gives an option twice")
        return cls(kind, argument, options)
