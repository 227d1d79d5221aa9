"""A library that isn't installed is named with the extra that brings it."""

import json
import sys
from pathlib import Path

import pytest
from refusals import raises

from counterprior.eval.engine.costs import Cost
from counterprior.eval.generators import open_generator
from counterprior.eval.judges import open_judge
from counterprior.extras import EXTRAS, install_command, named_extras


@pytest.mark.parametrize(
    ("spec", "library", "extra"),
    [
        ("openai:m", "openai", "agents"),
        ("anthropic:m", "anthropic", "agents"),
        ("openai-image:m", "openai", "agents"),
        ("diffusers:{here}", "diffusers", "models"),
        ("organism:even", "diffusers", "models"),
        ("hf-vlm:{here}", "torch", "models"),
    ],
)
def test_a_missing_library_is_one_line(
    spec: str, library: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("config.json", "model_index.json"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setitem(sys.modules, library, None)
    with raises("missing-library", f"needs {library}", install_command(extra)):
        if spec.startswith(("diffusers", "organism", "openai-image")):
            open_generator(spec.format(here=tmp_path))
        else:
            open_judge(spec.format(here=tmp_path), Cost().plan(tmp_path))


def test_a_fault_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ModuleNotFoundError), named_extras("pixels"):
        import counterprior.no_such_module  # noqa: F401


def test_every_extra_is_one_of_the_package() -> None:
    import tomllib

    data = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    extras = data["project"]["optional-dependencies"]
    for library, extra in EXTRAS.items():
        assert library in extras[extra]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'counterprior[agents]'"),
        (
            {"url": "file:///home/a%20b/checkout", "dir_info": {"editable": True}},
            "pip install -e '/home/a b/checkout[agents]'",
        ),
        (
            {"url": "file:///dist/counterprior.whl", "archive_info": {}},
            "pip install 'counterprior[agents] @ file:///dist/counterprior.whl'",
        ),
        (
            {"url": "https://host/repo", "vcs_info": {"vcs": "git", "commit_id": "5e1f"}},
            "pip install 'counterprior[agents] @ git+https://host/repo@5e1f'",
        ),
    ],
)
def test_an_extra_comes_from_where_the_package_came(
    origin: object, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr("counterprior.extras.metadata.distribution", lambda name: Installed())
    assert install_command("agents") == command
