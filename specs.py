"""Specs: ``kind:argument[?key=value&key=value]``, the one way to name a generator or a judge."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from urllib.parse import parse_qsl, urlencode

from .errors import CounterpriorError, UsageError


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
        """Raises UsageError for a missing kind, a repeated option or one without a value."""
        head, _, query = text.partition("?")
        kind, _, argument = head.partition(":")
        if not kind:
            raise UsageError(
                f"spec {text!r} has no kind", "write kind:argument?key=value", code="bad-spec"
            )
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
        except ValueError:
            raise UsageError(
                f"spec {text!r}: every option is written key=value", code="bad-spec"
            ) from None
        options = dict(pairs)
        if len(options) != len(pairs):
            raise UsageError(f"spec {text!r} gives an option twice", code="duplicate-option")
        return cls(kind, argument, options)

    def __str__(self) -> str:
        """The text that parses to this spec.

        >>> str(Spec("render", "", {"order_bias": "0.4"}))
        'render:?order_bias=0.4'
        """
        options = f"?{urlencode(self.options, safe='/:@,')}" if self.options else ""
        return f"{self.kind}:{self.argument}{options}"


def without_password(text: str) -> str:
    """A spec as files and tables may show it: no user and password in a URL.

    >>> without_password("openai:m@http://me:secret@gpu-1:8000/v1?timeout=5")
    'openai:m@http://gpu-1:8000/v1?timeout=5'
    """
    return _USER.sub("://", text)


_USER = re.compile(r"://[^/?#\s]*@")
"""User and password of a URL."""


def load_factory(spec: Spec) -> object:
    """What a factory in the user's own code returns, for ``python:MODULE:FACTORY?option=value``.

    The factory is called with the options as keyword arguments, all of them text. Modules in the
    current folder are found, as with ``python -m``. Raises UsageError where the module, the factory
    or an option is missing or unknown, and where importing or calling it raises an error.
    """
    module, _, name = spec.argument.partition(":")
    if not (module and name):
        raise UsageError(
            f"spec {str(spec)!r}", remedy="write python:MODULE:FACTORY", code="bad-spec"
        )
    factory = _attribute(_module(module), name)
    if not callable(factory):
        kind = type(factory).__name__
        raise UsageError(
            f"{module}:{name} is not callable but {kind}",
            remedy="name a function",
            code="wrong-type",
        )
    _check_options(factory, f"{module}:{name}", spec.options)
    with _blaming(f"{module}:{name} failed"):
        return factory(**spec.options)


def _module(name: str) -> ModuleType:
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())
    importlib.invalidate_caches()
    with _blaming(f"module {name!r} can't be imported"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise _missing(name, error.name or "") from error


def _missing(name: str, missing: str) -> UsageError:
    """Why the import of `name` ended at `missing`: itself, its package, or what it imports."""
    if name == missing or name.startswith(f"{missing}."):
        remedy = "run in the folder that holds it, or install it"
        return UsageError(f"no module {missing!r} for {name!r}", remedy, code="no-such-module")
    return UsageError(
        f"module {name!r} needs {missing!r}, which is not installed", code="missing-library"
    )


def _attribute(module: ModuleType, name: str) -> object:
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(
                f"module {module.__name__!r} ({module.__file__}) has no {name!r}",
                code="no-such-module",
            )
        found = getattr(found, part)
    return found


def _check_options(factory: Callable[..., object], name: str, options: dict[str, str]) -> None:
    try:
        signature = inspect.signature(factory)
    except ValueError:  # some builtins have none; calling them will tell
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise UsageError(
            f"{name}: {error}", remedy=f"it takes {signature}", code="factory-failed"
        ) from None


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Turns an error of the user's code into a UsageError that names its line."""
    try:
        yield
    except CounterpriorError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"{what}: {reason} ({place.filename}:{place.lineno})", code="factory-failed"
        ) from error
