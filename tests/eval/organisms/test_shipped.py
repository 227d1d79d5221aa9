"""The organisms that ship: small, what their cards say, and scored without anything else."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior import evaluate
from counterprior.cli.organism import train
from counterprior.eval.checkpoints.shipped import (
    ABOUT,
    MODEL,
    SHIPPED,
    find_organism,
    organism_prompts,
)
from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.data import read_rows
from counterprior.eval.generators import draw, open_generator
from counterprior.eval.methods import apply_methods
from counterprior.eval.organisms.data import CaptionShares
from counterprior.eval.organisms.organism import OrganismPlan, model_digest
from counterprior.eval.organisms.report import homogenization_row
from counterprior.parsing import read_json, write_rows
from counterprior.schema import T2IHomogenization

SUITE = "t2i_homogenization"
NAMES = ("biased", "even")


def trained_by(card: str) -> dict[str, str]:
    """Options of the command on a card; each must be one of `organism train`."""
    (line,) = re.findall(r"^\$ counterprior organism train (.*)$", card, re.MULTILINE)
    words = shlex.split(line)
    options = {
        n.removeprefix("--").replace("-", "_"): v
        for n, v in zip(words[::2], words[1::2], strict=True)
    }
    assert not {*options} - {*inspect.signature(train).parameters}
    return options


def test_both_are_small() -> None:
    assert tuple(sorted(path.parent.name for path in SHIPPED.glob(f"*/{ABOUT}"))) == NAMES
    sizes = [path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()]
    assert 5e6 < sum(sizes) < 25e6


@pytest.mark.parametrize("name", NAMES)
def test_the_command_and_the_digest_on_a_card_are_right(name: str) -> None:
    folder = SHIPPED / name
    about, card = read_json(folder / ABOUT), (folder / MODEL / "README.md").read_text()
    options = trained_by(card)
    shares = {n: float(v) for n, v in options.items() if n in CaptionShares.model_fields}
    parent = SHIPPED / "even" if "like" in options else None
    plan = OrganismPlan.of(
        CaptionShares(**shares),
        options["size"],
        int(options["seed"]),
        int(options["steps"]),
        parent,
    )
    assert {key: about[key] for key in plan.to_json()} == plan.to_json()
    assert about["model"] == model_digest(folder)
    assert f"Digest of the weights: `{model_digest(folder)}`" in card
    assert "an instrument, not a product" in card
    assert (f"the model `{about['like']}`" in card) == bool(parent)


def test_the_biased_one_is_the_even_one_tuned_with_other_captions() -> None:
    even, biased = (read_json(SHIPPED / name / ABOUT) for name in ("even", "biased"))
    assert biased["like"] == even["model"] != biased["model"] and not even["like"]
    differing = {key for key in even if even[key] != biased[key]}
    assert differing == {"captioning", "like", "loss", "model", "steps"}
    files = [sorted((SHIPPED / name / MODEL).rglob("*.json")) for name in NAMES]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[1]] and files[0]
    causes = even["captioning"].items() ^ biased["captioning"].items()
    assert causes == {("order_bias", 0.5), ("order_bias", 0.9)}


def test_prompts_are_the_pairs_that_nobody_was_trained_on() -> None:
    about = read_json(SHIPPED / "even" / ABOUT)
    held_out = {tuple(pair) for pair in about["held_out"]}
    for name, count in (("held_out", 12), ("trained", 54)):
        rows = read_rows(f"organism:{name}", SUITE).rows
        pairs = {(row.first.name, row.second.name) for row in rows}  # type: ignore[attr-defined]
        assert len(rows) == len(pairs) == count
        assert pairs == held_out if name == "held_out" else not pairs & held_out
    with raises("unknown-name", "organism:held-out", "organism:held_out or organism:trained"):
        organism_prompts("organism:held-out")


def test_a_wrong_name_lists_the_right_ones(tmp_path: Path) -> None:
    with raises("unknown-name", "'biassed'", "biased, even"):
        open_generator("organism:biassed")
    with raises("no-such-file", tmp_path, "organism train"):
        find_organism(str(tmp_path))
    with raises("missing-option", "organism:NAME_OR_FOLDER"):
        open_generator("organism:")


def test_prompts_of_other_things_are_refused_before_the_first_image(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    fields = homogenization_row("dog", "fox").model_dump(exclude={"id", "seeds"})
    fields |= {"prompt": "One dog and one owl.", "swapped_prompt": "One owl and one dog."}
    write_rows(prompts, [T2IHomogenization.model_validate(fields).model_dump()])
    with raises("unsupported", "'owl'", "--data organism:held_out"):
        evaluate(SUITE, "organism:even", ["pixels"], data=str(prompts), out=tmp_path / "run")
    assert not [*(tmp_path / "run").rglob("*.png")]


def test_the_identity_is_of_weights_and_settings_and_of_no_folder(tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere"
    shutil.copytree(SHIPPED / "biased", copied)
    identity = open_generator("organism:biased").identity()
    digest = model_digest(SHIPPED / "biased")
    assert identity["model"] == f"order_bias=0.9@{digest[:8]}"
    assert identity["num_inference_steps"] == "12" and identity["guidance_scale"] == "2.0"
    (copied / MODEL / "README.md").write_text("another card")
    assert open_generator(f"organism:{copied}").identity() == identity
    settings = copied / MODEL / "scheduler" / "scheduler_config.json"
    settings.write_text(settings.read_text().replace('"trailing"', '"leading"'))
    assert open_generator(f"organism:{copied}").identity()["revision"] != identity["revision"]
    others = [open_generator(s).identity() for s in ("organism:even", "organism:biased?guidance=1")]
    assert identity not in others and others[0]["model"] != identity["model"]


def test_diffusers_alone_draws_the_same_image() -> None:
    import torch
    from diffusers import DiffusionPipeline

    kind: Any = DiffusionPipeline
    pipeline = kind.from_pretrained(SHIPPED / "biased" / MODEL, local_files_only=True)
    alone = pipeline(
        "One cow and one dog.",
        num_inference_steps=2,
        guidance_scale=2,
        generator=torch.Generator().manual_seed(3),
    ).images[0]
    image = draw(open_generator("organism:biased?steps=2"), ImageRequest("One cow and one dog.", 3))
    assert alone.size == image.size == (40, 32)
    assert alone.tobytes() == image.tobytes()


@pytest.mark.parametrize(
    ("method", "suite", "data"),
    [
        ("switch:a2b?at=1", SUITE, "organism:held_out"),
        ("boxes:boxdiff?first=random&size=0", SUITE, "organism:held_out"),
    ],
)
def test_methods_act_on_it(method: str, suite: str, data: str, tmp_path: Path) -> None:
    for number, methods in enumerate(([], [method])):
        changed = apply_methods("organism:even?steps=2", methods)
        evaluate(suite, changed, ["pixels"], data=data, out=tmp_path / f"{number}", limit=1)
    images = [
        {path.name: path.read_bytes() for path in (tmp_path / n).rglob("*.png")} for n in "01"
    ]
    assert len(images[0]) == 2 and images[0].keys() == images[1].keys()
    assert all(images[0][name] != images[1][name] for name in images[0])


def order_effect(generator: str, seeds: int, limit: int | None, out: Path) -> Any:
    """The scores of a shipped organism on held-out pairs."""
    result = evaluate(
        SUITE, generator, ["pixels"], data="organism:held_out", seeds=seeds, limit=limit, out=out
    )
    assert result is not None
    return result.scores


@pytest.mark.slow
def test_one_follows_word_order_and_one_does_not(tmp_path: Path) -> None:
    biased = order_effect("organism:biased?steps=4", 1, 3, tmp_path / "biased")
    even = order_effect("organism:even?steps=4", 1, 3, tmp_path / "even")
    assert biased["order_effect"].value > 60 > abs(even["order_effect"].value)


@pytest.mark.lane
def test_their_intervals_are_apart(tmp_path: Path) -> None:
    scores = {name: order_effect(f"organism:{name}", 4, None, tmp_path / name) for name in NAMES}
    for of_one in scores.values():
        assert of_one["valid"].value > 80 and of_one["valid"].n == 96
    low = scores["biased"]["order_effect"].interval[0]
    high = scores["even"]["order_effect"].interval[1]
    assert low > high
