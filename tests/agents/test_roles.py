"""Prompt files, schema files and answer types say the same."""

import json
from typing import Any

import pytest

from counterprior.agents import relations, verification
from counterprior.agents.consistency import game
from counterprior.agents.constrained import loop
from counterprior.agents.counterfactual import rules, writer
from counterprior.agents.roles import (
    PROMPTS,
    SCHEMAS,
    Role,
    current_versions,
    describe_prompts,
    read_versions,
    strict_schema,
    unfenced,
)

ROLES = [
    role
    for module in (loop, writer, rules, game, verification, relations)
    for role in vars(module).values()
    if isinstance(role, Role)
]
EACH = pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)


@EACH
def test_the_schema_file_is_the_types(role: Any) -> None:
    assert role.schema.body == strict_schema(role.answer)


@EACH
def test_the_schema_keeps_to_what_both_providers_enforce(role: Any) -> None:
    allowed = {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "description",
        "anyOf",
        "const",
    }

    def check(node: Any) -> None:
        assert set(node) <= allowed, node
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        children = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
        for child in [*children, *([node["items"]] if "items" in node else [])]:
            check(child)

    check(role.schema.body)


@EACH
def test_the_prompt_names_every_field(role: Any) -> None:
    # Some servers enforce no schema, or don't show it to the model.
    def names(node: Any) -> set[str]:
        children = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
        children += [node["items"]] if "items" in node else []
        return set(node.get("properties", {})).union(*map(names, children))

    for name in names(role.schema.body):
        assert name in role.system, name


def test_no_file_is_left_over() -> None:
    assert {str(p.relative_to(PROMPTS).with_suffix("")) for p in PROMPTS.rglob("*.md")} == {
        role.name for role in ROLES
    }
    assert {str(p.relative_to(SCHEMAS).with_suffix("")) for p in SCHEMAS.rglob("*.json")} == {
        role.name for role in ROLES
    }


def test_a_changed_prompt_file_has_a_new_version() -> None:
    # Mend with: write `current_versions()` to prompts/versions.json.
    assert read_versions() == current_versions()
    assert all(role.name in describe_prompts() for role in ROLES)


@EACH
@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "{" * 3000, '"x"', '{"a": \ud800}'])
def test_garbage_is_a_message_not_a_crash(role: Any, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        role.read(text)
    assert 0 < len(str(caught.value)) < 2000


def test_a_fenced_answer_is_read() -> None:
    assert json.loads(unfenced('```json\n{"a": 1}\n```\n')) == {"a": 1}
    assert unfenced("``` not\na fence") == "``` not\na fence"
