"""Registries: the kinds of specs that a room opens, and the class behind each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from ...errors import UsageError
from ...extras import named_extras
from ...specs import Options, Spec, choose_from, load_factory, without_secrets

T = TypeVar("T")

PYTHON = "python"
"""Kind of a spec that names code of the user's own."""
UNVERSIONED = "unversioned"
"""Version of code or images for which the caller gave no identity."""

Identity = Mapping[str, str] | str
"""Facts of somebody's own code, or its version alone."""


@dataclass(frozen=True)
class RegistryEntry:
    """The class that a kind of spec opens."""

    place: str
    """``package.module:Class``, imported when a spec names it."""
    paid: bool = False
    """Whether it is billed by the call or image."""
    argument: str | None = None
    """Form of the argument, if it is not that of every kind that the class opens."""


class Registry(Mapping[str, RegistryEntry], Generic[T]):
    """Kind of a spec -> the class that it opens.

    A class may declare

    * ``argument``: the form of what stands between ``:`` and ``?``, such as `MODEL[@URL]`, or
      `[MODEL]` where it may be left out. Without it there must be none.
    * ``options``: a subclass of `Options`. Without it there are none. A class that is itself a
      subclass of `Options` is its own.
    * ``from_spec(spec, options, *context)``, which makes the adapter. Without it the class is
      called without arguments. `context` is what every `open` of the room is given besides.
    """

    def __init__(
        self,
        noun: str,
        entries: Mapping[str, str | RegistryEntry],
        *,
        protocol: type[Any] = object,
        wrappers: Mapping[Any, Callable[[Any, Identity], T]] | None = None,
        accepts: str = "",
        removed: Mapping[str, str] | None = None,
    ) -> None:
        """noun: name of the classes in messages. protocol: Python values that have it are adapters
        as they are. wrappers: type of other Python values -> class that makes an adapter of one and
        its identity. accepts: the values that can be adapters besides specs, in messages. removed:
        old kind -> what to do instead.
        """
        self.noun = noun
        self._entries = {
            kind: RegistryEntry(entry) if isinstance(entry, str) else entry
            for kind, entry in entries.items()
        }
        self._protocol = protocol
        self._wrappers = wrappers or {}
        self._accepts = accepts
        self._removed = removed or {}

    def __getitem__(self, kind: str) -> RegistryEntry:
        return self._entries[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def paid(self) -> frozenset[str]:
        """Kinds that are billed by the call or image."""
        return frozenset(kind for kind, entry in self.items() if entry.paid)

    def load(self, kind: str) -> Any:
        """The class of a kind, imported now.

        Raises UsageError with the code `unknown-name` or `removed-name`.
        """
        if kind in self._removed:
            problem = f"there is no {self.noun} {kind!r} any more"
            raise UsageError(problem, self._removed[kind], code="removed-name")
        if kind not in self:
            kinds = sorted([*self, PYTHON])
            problem = f"no {self.noun} {kind!r}"
            raise UsageError(problem, choose_from(kind, kinds), code="unknown-name")
        module, _, name = self[kind].place.partition(":")
        with named_extras(kind):
            return getattr(import_module(module), name)

    def argument(self, kind: str) -> str:
        """Form of a kind's argument, such as `MODEL[@URL]`; empty where there is none."""
        adapter, form = self.load(kind), self[kind].argument
        argument: str = getattr(adapter, "argument", "") if form is None else form
        return argument

    def options(self, kind: str) -> type[Options]:
        """Options of a kind."""
        adapter = self.load(kind)
        if not issubclass(adapter, Options):
            adapter = getattr(adapter, "options", Options)
        return cast(type[Options], adapter)

    def open(self, text: str, *context: Any) -> T:
        """The adapter that a spec names: ``KIND:ARGUMENT?option=value`` or
        ``python:MODULE:FACTORY?option=value``.

        Raises UsageError for an unknown kind, a wrong argument or option, and a library that isn't
        installed, and what the adapter raises.
        """
        spec = Spec.parse(text)
        if spec.kind == PYTHON:
            return self.adapt(load_factory(spec), identity=spec_identity(spec))
        adapter, options = self.load(spec.kind), self.read(spec)
        if self[spec.kind].paid and None in context:
            problem = f"a {self.noun} that is paid by the call needs a call plan"
            raise UsageError(f"{spec.kind}: {problem}", code="missing-option")
        if isinstance(options, adapter):
            return cast(T, options)
        with named_extras(spec.kind):
            if hasattr(adapter, "from_spec"):
                return cast(T, adapter.from_spec(spec, options, *context))
            return cast(T, adapter())

    def read(self, spec: Spec) -> Options:
        """The options of a spec. Raises UsageError as `open`, for argument and options alone."""
        form = self.argument(spec.kind)
        if spec.argument and not form:
            problem = f"{spec.kind}: takes no argument, not {spec.argument!r}"
            raise UsageError(problem, code="bad-spec")
        if form and not spec.argument and not form.startswith("["):
            remedy = f"write {spec.kind}:{form}"
            raise UsageError(f"{spec.kind}: the argument is missing", remedy, code="missing-option")
        return self.options(spec.kind).read(spec)

    def adapt(self, value: Any, *context: Any, identity: Identity = "") -> T:
        """An adapter from anything that can stand for one: a spec, or a Python value.

        identity: says which version of the user's code or images that is. Raises UsageError for
        anything else.
        """
        if isinstance(value, str):
            return self.open(value, *context)
        if isinstance(value, self._protocol):
            return cast(T, value)
        for kind, wrapper in self._wrappers.items():
            if isinstance(value, kind):
                return wrapper(value, identity)
        problem = f"{value!r} can't be used as a {self.noun}"
        raise UsageError(problem, f"pass a spec, {self._accepts}", code="wrong-type")


def python_identity(value: Any, identity: Identity) -> dict[str, str]:
    """The qualified name of a Python value with what the caller says of its version.

    >>> python_identity(len, "2026-11")
    {'kind': 'python', 'name': 'builtins.len', 'version': '2026-11'}
    """
    named = value if hasattr(value, "__qualname__") else type(value)
    facts = {"version": identity or UNVERSIONED} if isinstance(identity, str) else dict(identity)
    return {"kind": PYTHON, "name": f"{named.__module__}.{named.__qualname__}", **facts}


def spec_identity(spec: Spec) -> dict[str, str]:
    """The identity of what a ``python:`` spec opens, where that has none of its own.

    Options are part of it, without their secrets: another option is another adapter.

    >>> spec_identity(Spec.parse("python:mine:flux?steps=4"))
    {'name': 'mine:flux?steps=4', 'version': 'unversioned'}
    """
    return {
        "name": without_secrets(str(spec)).removeprefix(f"{spec.kind}:"),
        "version": UNVERSIONED,
    }
