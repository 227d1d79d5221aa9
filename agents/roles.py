"""A role: a prompt file, a JSON schema file, and the type of its answers.

The schema file is what a provider enforces: all properties required, no others allowed, no bounds.
It is stored in the repository because the schema that pydantic derives changes with its version,
and recorded calls would drift. The type checks bounds.
"""

from __future__ import annotations

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
        """Returns the request of the role for these texts and images."""
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
    fence = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", text, re.DOTALL)
    return fence.group(1) if fence else text


def _reasons(error: ValidationError) -> str:
    reasons = [f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors()]
    remainder = [f"and {len(reasons) - PROBLEMS} more"] if len(reasons) > PROBLEMS else []
    return "; ".join(reasons[:PROBLEMS] + remainder)


def describe_prompts() -> str:
    """Every prompt file with its version and SHA-256, as `author --show-prompts` prints them."""
    versions = read_versions()
    sections = []
    for path in sorted(PROMPTS.rglob("*.md")):
        name = str(path.relative_to(PROMPTS).with_suffix(""))
        version = versions[name]
        text = path.read_text(encoding="utf-8").strip()
        sections.append(
            f"=== {name}, version {version['version']}, {version['sha256'][:12]}\n\n{text}"
        )
    return "\n\n".join(sections)


def read_versions() -> dict[str, Any]:
    """Version and SHA-256 of every prompt file; a test compares them with the files."""
    versions: dict[str, Any] = json.loads((PROMPTS / "versions.json").read_text(encoding="utf-8"))
    return versions
