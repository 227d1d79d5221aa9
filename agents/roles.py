"""A role: a prompt file, a JSON schema file, and the type of its answers.

The schema file is what a provider enforces: all properties required, no others allowed, no bounds.
It is stored in the repository because the schema that pydantic derives changes with its version,
and recorded calls would drift. The type checks bounds.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from ..schema import Struct
from .chat import ChatRequest, ImagePart, JsonSchema

A = TypeVar("A", bound=Struct)

HERE = Path(__file__).parent
PROMPTS = HERE / "prompts"
SCHEMAS = HERE / "schemas"

PROBLEMS = 8
"""Faults of an answer that the second attempt lists."""


@dataclass(frozen=True)
class Role(Generic[A]):
    """One role of a loop."""

    name: str
    """`LOOP/ROLE`, e.g. `constrained/scout`: the names of its two files."""
    answer: type[A]
    """Type of its answers."""
    max_tokens: int
    """Longest answer, in tokens."""

    @cached_property
    def system(self) -> str:
        """The prompt file's text."""
        return (PROMPTS / f"{self.name}.md").read_text(encoding="utf-8").strip()

    @cached_property
    def schema(self) -> JsonSchema:
        """The schema file."""
        body = json.loads((SCHEMAS / f"{self.name}.json").read_text(encoding="utf-8"))
        return JsonSchema(self.name.replace("/", "_"), body)

    def request(self, *user: str | ImagePart) -> ChatRequest:
        """What is sent when the role is given these texts and images."""
        return ChatRequest(self.name, self.system, user, self.max_tokens, self.schema)

    @property
    def short(self) -> str:
        """The name without its loop, as call ids hold it."""
        return self.name.rpartition("/")[2]

    def read(self, text: str) -> A:
        """The answer's value. Raises ValueError saying what the model must correct."""
        try:
            return self.answer.model_validate(json.loads(unfenced(text)))
        except ValidationError as error:
            raise ValueError(_reasons(error)) from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not JSON: {error}") from None


def unfenced(text: str) -> str:
    """The text without a Markdown fence around all of it, which some models add."""
    found = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", text, re.DOTALL)
    return found.group(1) if found else text


def _reasons(error: ValidationError) -> str:
    found = [f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors()]
    more = [f"and {len(found) - PROBLEMS} more"] if len(found) > PROBLEMS else []
    return "; ".join(found[:PROBLEMS] + more)


_UNSUPPORTED = frozenset(
    "title default minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems "
    "maxItems pattern format multipleOf uniqueItems".split()
)


def strict_schema(model: type[Struct]) -> dict[str, Any]:
    """The schema of a type in the subset that both providers enforce, to write schema files."""
    derived = model.model_json_schema()
    definitions = derived.pop("$defs", {})

    def strict(node: Any) -> Any:
        if isinstance(node, list):
            return [strict(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            target = definitions[node["$ref"].rpartition("/")[2]]
            return strict({**target, **{k: v for k, v in node.items() if k != "$ref"}})
        kept = {k: v for k, v in node.items() if k not in _UNSUPPORTED}
        if "properties" in node:
            properties = {name: strict(value) for name, value in node["properties"].items()}
            kept |= {"properties": properties, "required": list(properties)}
            kept["additionalProperties"] = False
            return kept
        return {k: strict(v) for k, v in kept.items()}

    result: dict[str, Any] = strict(derived)
    return result


def describe_prompts() -> str:
    """Every prompt file with its version and SHA-256, as `author --show-prompts` prints them."""
    versions = read_versions()
    parts = []
    for path in sorted(PROMPTS.rglob("*.md")):
        name = str(path.relative_to(PROMPTS).with_suffix(""))
        known = versions[name]
        text = path.read_text(encoding="utf-8").strip()
        parts.append(f"=== {name}, version {known['version']}, {known['sha256'][:12]}\n\n{text}")
    return "\n\n".join(parts)


def read_versions() -> dict[str, Any]:
    """Version and SHA-256 of every prompt file; a test compares them with the files."""
    found: dict[str, Any] = json.loads((PROMPTS / "versions.json").read_text(encoding="utf-8"))
    return found


def current_versions() -> dict[str, Any]:
    """The right content of `versions.json`; a changed file gets the next version."""
    known = read_versions() if (PROMPTS / "versions.json").exists() else {}
    found = {}
    for path in sorted(PROMPTS.rglob("*.md")):
        name = str(path.relative_to(PROMPTS).with_suffix(""))
        sha = hashlib.sha256(path.read_bytes()).hexdigest()
        before = known.get(name, {"version": 0, "sha256": ""})
        step = before["sha256"] != sha
        found[name] = {"version": before["version"] + step, "sha256": sha}
    return found
