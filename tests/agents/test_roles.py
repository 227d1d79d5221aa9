"""Prompt files, schema files and answer types say the same."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from pydantic import create_model

from counterprior.agents.roles import PROBLEMS, PROMPTS, SCHEMAS, Role, describe_prompts, unfenced

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "write_role_files.py"))
ROLES = TOOL["ROLES"]


def test_schemas_keep_to_what_both_providers_enforce() -> None:
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

    def check(node: Any, role: str) -> None:
        assert set(node) <= allowed, (role, node)
        if node.get("type") == "object":
            assert node["additionalProperties"] is False, role
            assert node["required"] == list(node["properties"]), role
        children = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
        for child in [*children, *([node["items"]] if "items" in node else [])]:
            check(child, role)

    for role in ROLES:
        check(role.schema.body, role.name)


def test_prompts_name_every_field_of_their_schema() -> None:
    # Some servers enforce no schema, or don't show it to the model.
    def names(node: Any) -> set[str]:
        children = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
        children += [node["items"]] if "items" in node else []
        return set(node.get("properties", {})).union(*map(names, children))

    for role in ROLES:
        missing = [name for name in names(role.schema.body) if name not in role.system]
        assert not missing, role.name


def test_every_role_file_belongs_to_a_role() -> None:
    assert {str(p.relative_to(PROMPTS).with_suffix("")) for p in PROMPTS.rglob("*.md")} == {
        role.name for role in ROLES
    }
    assert {str(p.relative_to(SCHEMAS).with_suffix("")) for p in SCHEMAS.rglob("*.json")} == {
        role.name for role in ROLES
    }


def test_schema_files_and_versions_are_those_that_the_tool_writes() -> None:
    # Mend with: python tools/write_role_files.py
    for path, text in TOOL["files"]():
        assert path.read_text("utf-8") == text, path
    assert all(role.name in describe_prompts() for role in ROLES)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "{" * 3000, '"x"', '{"a": \ud800}'])
def test_garbage_is_a_message_not_a_crash(text: str) -> None:
    for role in ROLES:
        with pytest.raises(ValueError) as caught:
            role.read(text)
        assert 0 < len(str(caught.value)) < 2000, role.name


def test_a_fenced_answer_is_read() -> None:
    assert json.loads(unfenced('```json\n{"a": 1}\n```\n')) == {"a": 1}
    assert unfenced("``` not\na fence") == "``` not\na fence"


@pytest.mark.parametrize("count", [PROBLEMS, PROBLEMS + 3])
def test_a_bad_answer_names_the_first_problems_and_counts_the_rest(count: int) -> None:
    wide = create_model("Wide", **{f"field{n:02}": (int, ...) for n in range(count)})
    role = Role("constrained/scout", wide, 100)
    with pytest.raises(ValueError) as caught:
        role.read("{}")
    listed = str(caught.value).split("; ")
    assert [f"field{n:02}" in listed[n] for n in range(PROBLEMS)] == [True] * PROBLEMS
    assert listed[PROBLEMS:] == (["and 3 more"] if count > PROBLEMS else [])
