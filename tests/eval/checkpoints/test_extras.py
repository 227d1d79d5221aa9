"""A library that isn't installed is named with the extra that brings it."""

import sys
from pathlib import Path

import pytest
from refusals import raises

from counterprior.eval.checkpoints.extras import EXTRAS, named_extras
from counterprior.eval.engine.costs import Cost
from counterprior.eval.generators import open_generator
from counterprior.eval.judges import open_judge


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
    with raises("missing-library", f"needs {library}", f"counterprior[{extra}]"):
        if spec.startswith(("diffusers", "organism", "openai-image")):
            open_generator(spec.format(here=tmp_path))
        else:
            open_judge(spec.format(here=tmp_path), Cost().plan(tmp_path))


def test_a_fault_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ModuleNotFoundError), named_extras("pixels"):
        import counterprior.no_such_module  # noqa: F401


def test_every_extra_is_one_of_the_package() -> None:
    import tomllib

    data = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    extras = data["project"]["optional-dependencies"]
    for library, extra in EXTRAS.items():
        assert library in extras[extra]
