"""Writes the schema file of every role, and the versions of the prompt files.

Run it after a type of answers or a prompt changed: `python tools/write_role_files.py`. A test
compares what it would write with what is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterprior.agents import relations, verification
from counterprior.agents.consistency import game
from counterprior.agents.constrained import loop
from counterprior.agents.counterfactual import rules, writer
from counterprior.agents.roles import PROMPTS, SCHEMAS, Role, read_versions
from counterprior.schema import Struct
from counterprior.storage import write_whole

ROLES = [
    role
    for module in (loop, writer, rules, game, verification, relations)
    for role in vars(module).values()
    if isinstance(role, Role)
]
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


def files() -> Iterator[tuple[Path, str]]:
    """Every file that this writes, with its content."""
    for role in ROLES:
        body = json.dumps(strict_schema(role.answer), indent=1)
        yield SCHEMAS / f"{role.name}.json", body + "\n"
    versions = json.dumps(current_versions(), indent=1)
    yield PROMPTS / "versions.json", versions + "\n"


if __name__ == "__main__":
    for path, text in files():
        if not path.exists() or path.read_text("utf-8") != text:
            write_whole(path, text)
            print(path)
