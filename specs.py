"""Specs: ``kind:argument[?key=value&key=value]``, the one way to name a generator or a judge.

`Options` declares what may stand behind the ``?``: names, types, units, defaults and help.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, get_args, get_origin
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

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
    """Name of the adapter; a key of the room's table, e.g. ``GENERATORS``."""
    argument: str
    """Model, path or address that the adapter opens; may be empty."""
    options: dict[str, str] = field(default_factory=dict)
    """Settings of the adapter, as text; its `Options` convert and refuse them."""

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


@dataclass(frozen=True)
class Unit:
    """Unit of an option's number: ``Annotated[float, Unit("seconds")]``."""

    name: str


@dataclass(frozen=True)
class TextForm:
    """How the text of an option looks, where its type doesn't say it."""

    text: str


@dataclass(frozen=True)
class DefaultText:
    """The default of an option in words, if it is not that of its field."""

    text: str


Seconds = Annotated[float, Field(gt=0), Unit("seconds")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class OptionRow(NamedTuple):
    """An option as tables and messages show it."""

    name: str
    form: str
    """Form of its text, e.g. `a whole number from 1`."""
    default: str
    """As a spec writes it; empty if the option has none or is required."""
    required: bool
    """Whether every spec must have the option."""
    help: str
    """One sentence."""


class Options(BaseModel):
    """The options of an adapter: each field is one, with its type, default, and docstring as help.

    Parsing, error messages, `identity` and the tables of the documentation come from these fields.
    """

    model_config = ConfigDict(
        frozen=True,
        allow_inf_nan=False,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    undeclared: ClassVar[str] = ""
    """Description of options besides the fields, for messages and tables; a subclass that sets it
    takes ``extra="allow"`` and finds their texts in `rest`."""

    @classmethod
    def takes(cls, name: str) -> bool:
        """Whether an option that is no field is one of the `undeclared` ones."""
        return bool(cls.undeclared)

    @classmethod
    def read(cls, spec: Spec) -> Self:
        """The options of a spec.

        Raises UsageError with the code `unknown-option`, `bad-option` or `missing-option`.
        """
        forms = {row.name: row.form for row in cls.declared()}
        for name in spec.options:
            if name not in forms and not cls.takes(name):
                choices = [*forms, *([cls.undeclared] if cls.undeclared else [])]
                hint = choose_from(name, choices) if choices else "it takes no options"
                raise UsageError(f"{spec.kind}: no option {name!r}", hint, code="unknown-option")
        try:
            return cls.model_validate(spec.options)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            if first["type"] == "missing":
                remedy = f"add {name}=, {forms[name]}"
                problem = f"{spec.kind}: the option {name} is missing"
                raise UsageError(problem, remedy, code="missing-option") from None
            problem = f"{spec.kind}: {name} must be {forms[name]}, not {spec.options[name]!r}"
            raise UsageError(problem, code="bad-option") from None

    @property
    def rest(self) -> dict[str, str]:
        """Name -> text of the `undeclared` options, in the order of the spec."""
        return dict(self.model_extra or {})

    def texts(self, changed: bool = False) -> dict[str, str]:
        """Name -> text of every field as a spec writes it; only of the `changed` ones.

        >>> Options().texts()
        {}
        """
        values = {_name(name, field): (getattr(self, name), field) for name, field in _fields(self)}
        return {
            name: _text(value)
            for name, (value, field) in values.items()
            if not (changed and value == field.default)
        }

    @classmethod
    def declared(cls) -> list[OptionRow]:
        """One row for each field, in their order."""
        return [
            OptionRow(
                name=_name(name, field),
                form=_form(field),
                default=_default(field),
                required=field.is_required(),
                help=" ".join((field.description or "").split()),
            )
            for name, field in cls.model_fields.items()
        ]


def choose_from(name: str, choices: Iterable[str]) -> str:
    """Returns what to write instead of an unknown name: the nearest choice, and all of them."""
    choices = list(choices)
    near = get_close_matches(name, choices, n=1)
    return (f"did you mean {near[0]}? " if near else "") + f"choose from {', '.join(choices)}"


def _fields(options: Options) -> list[tuple[str, FieldInfo]]:
    return list(type(options).model_fields.items())


def _name(name: str, field: FieldInfo) -> str:
    return field.alias or name


def _text(value: object) -> str:
    """A value as a spec writes it; empty for None."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}


def _form(field: FieldInfo) -> str:
    """Form of an option's text, from its type, unit and bounds."""
    kind, marks = _unwrapped(field.annotation)
    marks += field.metadata
    if forms := [mark.text for mark in marks if isinstance(mark, TextForm)]:
        return forms[-1]
    if get_origin(kind) is Literal:
        *first, last = map(_text, get_args(kind))
        return f"{', '.join(first)} or {last}" if first else last
    form = _NOUNS.get(kind, "text")
    form += "".join(f" of {mark.name}" for mark in marks if isinstance(mark, Unit))
    bounds = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
    for attribute, word in bounds.items():
        form += "".join(
            f" {word} {getattr(m, attribute):,g}" for m in marks if hasattr(m, attribute)
        )
    return form


def _default(field: FieldInfo) -> str:
    """Text of a field's default, or its `DefaultText`; empty if it has none."""
    if texts := [mark.text for mark in field.metadata if isinstance(mark, DefaultText)]:
        return texts[-1]
    return "" if field.is_required() else _text(field.default)


def _unwrapped(kind: Any) -> tuple[Any, list[Any]]:
    """A type without None, and the marks that `Annotated` puts on it."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(member for member in get_args(kind) if member is not NoneType)
    if get_origin(kind) is not Annotated:
        return kind, []
    kind, *marks = get_args(kind)
    inner, inner_marks = _unwrapped(kind)
    for mark in marks:
        inner_marks += mark.metadata if isinstance(mark, FieldInfo) else [mark]
    return inner, inner_marks


def without_secrets(text: str) -> str:
    """A spec, or a text with one, as files and tables may show it: no user and password in a URL,
    no value of an option that is a secret by its name.

    >>> without_secrets("openai:m@http://me:secret@gpu-1:8000/v1?timeout=5&extra.api_key=k")
    'openai:m@http://gpu-1:8000/v1?timeout=5&extra.api_key=[hidden]'
    """
    return _SECRET_OPTION.sub(rf"\1{HIDDEN}", _USER.sub("://", text))


def is_secret(option: str) -> bool:
    """Whether an option is a secret by its name.

    >>> [name for name in ("extra.api_key", "max_tokens", "X-Auth") if is_secret(name)]
    ['extra.api_key', 'X-Auth']
    """
    return re.fullmatch(_SECRET_NAME, option, re.IGNORECASE) is not None


HIDDEN = "[hidden]"
"""In place of a secret."""
_USER = re.compile(r"://[^/?#\s]*@")
"""User and password of a URL."""
_SECRET_NAME = (
    r"(?:[\w.-]*(?:key|token|secret|signature|password|passwd|credentials?|auth|authorization)|sig)"
)
_SECRET_OPTION = re.compile(rf"([?&;]{_SECRET_NAME}=)[^&\s'\"#]+", re.IGNORECASE)


_FILE: ContextVar[str] = ContextVar("file", default="")

UNTRUSTED = "untrusted-code"
"""Code of the error of a spec that would run code and is not trusted."""


@contextmanager
def without_code(file: str) -> Iterator[None]:
    """Within it, no spec runs code: they stand in a file that nobody vouches for."""
    token = _FILE.set(file)
    try:
        yield
    finally:
        _FILE.reset(token)


def check_trusted(spec: Spec) -> None:
    """Raises UsageError for a spec that runs code within `without_code`."""
    if file := _FILE.get():
        raise UsageError(
            f"{file} would run {without_secrets(str(spec))}",
            "read it, and the code that it names, and add --trust",
            code=UNTRUSTED,
        )


def load_factory(spec: Spec) -> object:
    """Calls a factory in the user's own code, for ``python:MODULE:FACTORY?option=value``.

    The factory is called with the options as keyword arguments, all of them text. Modules in the
    current folder are found, as with ``python -m``. Raises UsageError if it is not trusted, if the
    module, the factory or an option is missing or unknown, and where importing or calling it raises
    an error.
    """
    check_trusted(spec)
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
    value: object = module
    for segment in name.split("."):
        if not hasattr(value, segment):
            raise UsageError(
                f"module {module.__name__!r} ({module.__file__}) has no {name!r}",
                code="no-such-module",
            )
        value = getattr(value, segment)
    return value


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
def _blaming(failure: str) -> Iterator[None]:
    """Turns an error of the user's code into a UsageError that names its line."""
    try:
        yield
    except CounterpriorError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"{failure}: {reason} ({place.filename}:{place.lineno})", code="factory-failed"
        ) from error
