"""Seed images: each row is described as its own image shows it."""

import random
from typing import Any

import pytest
from PIL import Image

from counterprior.builders import seeds
from counterprior.builders.build import suite_faults
from counterprior.builders.seeds import draw_seeds
from counterprior.builders.suite import SHIPPED as BANKS
from counterprior.builders.suites import SUITES
from counterprior.errors import UsageError
from counterprior.eval.core import ImageRequest
from counterprior.scenes.looks import look
from counterprior.schema import SeededRow

CONFIGS = ["i2i_homogenization", "i2i_correctness"]


def some_rows(config: str) -> list[SeededRow]:
    rows = SUITES[config].build(BANKS, random.Random(f"0/{config}"))
    return random.Random(1).sample(rows, 4)


def drawn(rows: list[SeededRow], generator: str = "render:") -> list[SeededRow]:
    return draw_seeds(rows, generator, 1, lambda count: None)


def faulty_fields(config: str, rows: list[SeededRow]) -> set[str]:
    return {fault.field for fault in suite_faults(config, rows, BANKS, whole=False)}


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_carry_the_look_that_the_renderer_draws(config: str) -> None:
    bare = some_rows(config)
    made = drawn(bare)
    for row, before in zip(made, bare, strict=True):
        assert row.left.look == look(row.left.name) != before.left.look
        assert row.right.look == look(row.right.name) != before.right.look
        assert (row.id, row.seeds, row.seed_source) == (before.id, before.seeds, "render")
    assert faulty_fields(config, made) == set()


@pytest.mark.parametrize("config", CONFIGS)
def test_a_look_that_is_not_the_drawn_one_is_a_fault(config: str) -> None:
    bare = some_rows(config)
    undressed = [
        row.model_copy(update={"left": before.left})
        for row, before in zip(drawn(bare), bare, strict=True)
    ]
    assert faulty_fields(config, undressed) == {"left"}
    assert faulty_fields(config, [row.model_copy(update={"seed_source": "x"}) for row in bare]) == (
        set()
    )


class Blank:
    """A generator that is not the renderer."""

    def generate(self, request: ImageRequest) -> Image.Image:
        return Image.new("RGB", (32, 32), "white")

    def identity(self) -> dict[str, str]:
        return {"kind": "blank"}


def test_images_of_another_generator_keep_the_look_of_the_bank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeds, "open_generator", lambda spec: Blank())
    bare = some_rows("i2i_homogenization")
    made = drawn(bare, "blank:")
    assert [(row.left, row.right) for row in made] == [(row.left, row.right) for row in bare]
    assert {row.seed_source for row in made} == {"blank"}


def test_an_entity_that_the_renderer_lacks_is_named() -> None:
    row: Any = some_rows("i2i_homogenization")[0]
    unknown = row.left.model_copy(update={"name": "unicorn"})
    with pytest.raises(UsageError, match="no drawing of 'unicorn'"):
        drawn([row.model_copy(update={"left": unknown})])
