"""Local vision-language judges: real classes and the real loading path, tiny random weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises
from tiny_vlm import VLMS

from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.core import Question
from counterprior.eval.judges import open_judge
from counterprior.eval.judges.hf_vlm import LocalJudge

Ask = Callable[..., Question]
KINDS = pytest.mark.parametrize("kind", sorted(VLMS))


def noise(seed: int, size: tuple[int, int] = (64, 48)) -> Image.Image:
    import random

    return Image.frombytes("RGB", size, random.Random(seed).randbytes(size[0] * size[1] * 3))


def open_local(folder: Path, options: str = "min_mass=0") -> LocalJudge:
    judge = open_judge(f"hf-vlm:{folder}?device=cpu&{options}")
    assert isinstance(judge, LocalJudge)
    return judge


def published_inputs(judge: LocalJudge, question: Question) -> Any:
    """As a model card asks: by chat template, PaliGemma by its form for visual questions."""
    if judge.processor.chat_template is None:
        text = "<image>" * len(question.images) + f"answer en {question.prompt}"
        inputs = judge.processor(images=[[*question.images]], text=[text], return_tensors="pt")
        del inputs["labels"]
        return inputs
    content: list[dict[str, Any]] = [{"type": "image", "image": i} for i in question.images]
    content.append({"type": "text", "text": question.prompt})
    return judge.processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )


@pytest.fixture
def questions(ask: Ask) -> list[Question]:
    """Of several lengths, images and orders of answers; one shows two images."""
    plain = [
        replace(ask("a"), images=(noise(1),)),
        replace(ask("b", answers=("1", "3", "2"), prompt="left?"), images=(noise(2),)),
        replace(ask("c", prompt="who is left? " * 9), images=(noise(3, (80, 40)),)),
    ]
    return [*plain, replace(ask("d"), images=(noise(4), noise(5)))]


@KINDS
def test_a_published_layout_loads_and_answers(
    checkpoint: Callable[[str], Path], kind: str, questions: list[Question]
) -> None:
    judge = open_local(checkpoint(kind))
    for question, verdict in judge.judge(questions):
        assert verdict.probabilities is not None and verdict.mass is not None
        assert list(verdict.probabilities) == list(question.answers.values())
        assert sum(verdict.probabilities.values()) == pytest.approx(1)
        assert verdict.label == max(verdict.probabilities, key=verdict.probabilities.__getitem__)
        assert question.answers[verdict.raw] == verdict.label
        assert 0 < verdict.mass < 1


@KINDS
def test_probabilities_equal_constrained_generation(
    checkpoint: Callable[[str], Path], kind: str, questions: list[Question]
) -> None:
    import torch

    judge = open_local(checkpoint(kind))
    for question, verdict in judge.judge(questions):
        answers = list(question.answers)
        tokens = judge.answer_tokens(question, answers)
        assert [judge.processor.tokenizer.decode([t]) for t in tokens] == answers
        inputs = published_inputs(judge, question)
        written = judge.model.generate(
            **inputs,
            max_new_tokens=1,
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            prefix_allowed_tokens_fn=lambda batch, ids, t=tokens: t,
        )
        shares = written.scores[0][0].softmax(-1)
        assert judge.processor.tokenizer.decode(written.sequences[0, -1:]) == verdict.raw
        expected = {question.answers[a]: float(shares[t]) for a, t in zip(answers, tokens)}  # noqa: B905
        assert verdict.probabilities == pytest.approx(expected, abs=1e-6)
        with torch.inference_mode():
            everything = judge.model(**inputs).logits[0, -1].softmax(-1)
        assert verdict.mass == pytest.approx(float(everything[tokens].sum()), abs=1e-6)


@KINDS
def test_a_batch_changes_no_answer(
    checkpoint: Callable[[str], Path], kind: str, questions: list[Question]
) -> None:
    one, four = (
        {
            q.case: v
            for q, v in open_local(checkpoint(kind), f"min_mass=0&batch={n}").judge(questions)
        }
        for n in (1, 4)
    )
    assert list(one) == list(four) == ["a", "b", "c", "d"]
    for name in one:
        assert one[name].probabilities == pytest.approx(four[name].probabilities, abs=1e-5)


@KINDS
def test_images_and_words_decide(checkpoint: Callable[[str], Path], kind: str, ask: Ask) -> None:
    judge = open_local(checkpoint(kind))
    asked = [
        replace(ask("a"), images=(noise(1),)),
        replace(ask("b"), images=(Image.new("RGB", (64, 48)),)),
        replace(ask("c", prompt="cat?"), images=(noise(1),)),
    ]
    first, other_image, other_words = (v.probabilities for _, v in judge.judge(asked))
    assert first != other_image and first != other_words


def test_a_model_that_would_write_something_else_is_unparsed(
    checkpoint: Callable[[str], Path], questions: list[Question]
) -> None:
    for _, verdict in open_local(checkpoint("llava"), "min_mass=0.5").judge(questions):
        assert verdict.label == "unparsed" and verdict.raw not in ("1", "2", "3")
        assert verdict.mass is not None and verdict.mass < 0.5 and verdict.probabilities


def test_an_answer_of_several_tokens_is_an_error_of_its_own(
    checkpoint: Callable[[str], Path], questions: list[Question]
) -> None:
    wordy = replace(questions[0], case="w", answers={"left": "first_left", "no": "invalid"})
    judge = open_local(checkpoint("llava"), "min_mass=0&batch=5")
    found = {q.case: v for q, v in judge.judge([*questions, wordy])}
    assert found["w"].label == "error" and "'left' is not one token" in found["w"].raw
    assert "error" not in {found[name].label for name in "abcd"}


def test_one_bad_image_costs_the_others_nothing(
    checkpoint: Callable[[str], Path], questions: list[Question]
) -> None:
    bad = replace(questions[0], case="bad", images=(Image.new("RGB", (1, 900)),))
    judge = open_local(checkpoint("qwen3-vl"), "min_mass=0&batch=3")
    found = {q.case: v for q, v in judge.judge([questions[0], bad, questions[1]])}
    assert found["bad"].label == "error" and "aspect ratio" in found["bad"].raw
    plain = {q.case: v for q, v in judge.judge(questions[:2])}
    for name in "ab":
        assert found[name].probabilities == pytest.approx(plain[name].probabilities, abs=1e-5)


def test_a_checkpoint_in_the_old_file_layout_loads(
    checkpoint: Callable[[str], Path], tmp_path: Path, questions: list[Question]
) -> None:
    # As the published Qwen-VL folders are: the image processor in a file of its own, by the name
    # that it had when torchvision was a must.
    folder = tmp_path / "published"
    shutil.copytree(checkpoint("qwen3-vl"), folder)
    config = json.loads((folder / "processor_config.json").read_text())
    images = config.pop("image_processor") | {"image_processor_type": "Qwen2VLImageProcessorFast"}
    (folder / "processor_config.json").unlink()
    (folder / "preprocessor_config.json").write_text(
        json.dumps(images | {"processor_class": "Qwen3VLProcessor"})
    )
    new, old = (
        [v.probabilities for _, v in open_local(path).judge(questions)]
        for path in (checkpoint("qwen3-vl"), folder)
    )
    assert new == old


def test_the_identity_tells_weights_apart(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    identity = open_local(checkpoint("llava"), "batch=2").identity()
    assert identity["kind"] == "hf-vlm" and identity["model"] == "checkpoint-llava"
    assert identity["batch"] == "2" and identity["min_mass"] == "0.5"
    assert identity["dtype"] == "float32" and identity["device"] == "cpu"
    assert identity["image_processor"].startswith("CLIPImageProcessor")
    assert {"torch", "transformers"} <= set(identity)
    assert all(isinstance(value, str) for value in identity.values())
    other = tmp_path / "checkpoint-llava"
    shutil.copytree(checkpoint("llava"), other)
    assert open_local(other, "batch=2").identity() == identity
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    changed = open_local(other, "batch=2").identity()
    assert changed["revision"] != identity["revision"]


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_files_that_cannot_be_loaded_end_the_run(
    checkpoint: Callable[[str], Path], tmp_path: Path, ask: Ask, file: str
) -> None:
    folder = tmp_path / "torn"
    shutil.copytree(checkpoint("llava"), folder)
    (folder / file).write_bytes((folder / file).read_bytes()[:1000])
    with raises("load-failed", "torn", error=LoadError):
        list(open_local(folder).judge([ask()]))


def test_bfloat16_is_an_option(
    checkpoint: Callable[[str], Path], questions: list[Question]
) -> None:
    judge = open_local(checkpoint("llava"), "min_mass=0&dtype=bfloat16")
    assert "error" not in {v.label for _, v in judge.judge(questions)}
    assert judge.identity()["dtype"] == "bfloat16" and str(judge.model.dtype) == "torch.bfloat16"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("hf-vlm:", ("missing-option", "hf-vlm:PATH_OR_REPO")),
        ("hf-vlm:/nowhere/at/all", ("wrong-model", "/nowhere/at/all", "Hub")),
        ("hf-vlm:nobody/nothing", ("wrong-model", "nobody/nothing", "Hub")),
        ("hf-vlm:{llava}?revision=main", ("no-revision", "main")),
        ("hf-vlm:{empty}", ("no-such-file", "config.json")),
        ("hf-vlm:{llava}?temperature=0", ("unknown-option", "temperature")),
        ("hf-vlm:{llava}?batch=0", ("bad-option", "batch", "'0'")),
        (
            "hf-vlm:{llava}?batch=few",
            ("bad-option", "batch", "'few'"),
        ),
        ("hf-vlm:{llava}?min_mass=2", ("bad-option", "min_mass", "0 to 1", "'2'")),
        ("hf-vlm:{llava}?dtype=int8", ("bad-option", "dtype", "'int8'")),
        ("hf-vlm:{llava}?device=cuda:7", ("no-device", "cuda:7")),
        ("hf-vlm:{llava}?device=abacus", ("no-device", "abacus")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    checkpoint: Callable[[str], Path], tmp_path: Path, spec: str, reason: tuple[str, ...]
) -> None:
    with raises(*reason):
        open_judge(spec.format(llava=checkpoint("llava"), empty=tmp_path))


def test_a_repository_is_pinned_to_the_commit_that_a_branch_stands_for(
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    questions: list[Question],
) -> None:
    # The Hub's own cache, as a download leaves it.
    import huggingface_hub.constants as hub

    commit = "8f" * 20
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(checkpoint("llava"), repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    judge = open_judge("hf-vlm:someone/tiny?device=cpu&min_mass=0")
    assert isinstance(judge, LocalJudge)
    assert judge.identity()["model"] == "someone/tiny" and judge.identity()["revision"] == commit
    local = open_local(checkpoint("llava"))
    assert [v for _, v in judge.judge(questions)] == [v for _, v in local.judge(questions)]
