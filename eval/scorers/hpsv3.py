"""`hpsv3`: HPSv3 (Ma et al. 2025), Qwen2-VL with a head that reads one token's state.

``hpsv3:REPO_OR_FOLDER?base=BASE``. Optional: the instruction that the model was tuned with is read
from the published package, which is never imported. `pip install --no-deps hpsv3==1.0.0` brings it
without its pins, which exclude today's transformers.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ..checkpoints.placement import Checkpoint
from ..checkpoints.processors import load_processor
from .local import LocalScorer, LocalScorerOptions

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

BASE = "Qwen/Qwen2-VL-7B-Instruct"
WEIGHTS = "HPSv3.safetensors"
REWARD = "<|Reward|>"
"""The token at which the head reads."""
PIXELS = 256 * 28 * 28
"""Approximate number of pixels of every image; its sides are multiples of `SIDE`."""
SIDE = 28
TEXTS = ("INSTRUCTION", "prompt_with_special_token")
"""Names in the published package of the instruction and of the text after the prompt."""


class HpsV3Options(LocalScorerOptions):
    """Options of `hpsv3`."""

    base: str = BASE
    """Folder or repository with the configuration and tokenizer of Qwen2-VL."""


class HPSv3(LocalScorer):
    """The mean of the score's distribution, as published; the second output is its spread."""

    KIND = "hpsv3"
    MODEL = "MizzenAI/HPSv3"
    MARKER = WEIGHTS
    options = HpsV3Options

    def __init__(self, model: str, options: HpsV3Options) -> None:
        super().__init__(model, options)
        self.base = Checkpoint.find(options.base, None, "config.json")
        self.instruction, self.end = published_texts()

    def identity(self) -> dict[str, str]:
        text = hashlib.sha256((self.instruction + self.end).encode()).hexdigest()[:12]
        base = f"{self.base.name} {self.base.version}"
        return {**super().identity(), "base": base, "instruction": text}

    @cached_property
    def processor(self) -> Any:
        with self.loading():
            processor: Any = load_processor(self.base.source, self.base.commit)
        processor.tokenizer.add_special_tokens({"additional_special_tokens": [REWARD]})
        processor.tokenizer.padding_side = "right"
        return processor

    @cached_property
    def model(self) -> Any:
        """Qwen2-VL without its language head, and the scoring head, which stays in float32."""
        from safetensors.torch import load_file
        from torch import nn
        from transformers import Qwen2VLConfig, Qwen2VLModel

        with self.loading():
            weights = load_file(self.checkpoint.file(WEIGHTS))
            config = self.base.load(Qwen2VLConfig)
            rows = weights["model.embed_tokens.weight"].shape[0]
            config.text_config.vocab_size = rows
            body = Qwen2VLModel(config)
            sizes = [weights[f"rm_head.{n}.weight"].shape for n in (0, 3, 5)]
            first, second, last = (nn.Linear(into, out) for out, into in sizes)
            # Number 2 is its dropout, which does nothing here.
            head = nn.Sequential(first, nn.ReLU(), nn.Identity(), second, nn.ReLU(), last)
            weights_of: dict[str, dict[str, torch.Tensor]] = {"body": {}, "head": {}}
            for name, value in weights.items():
                if place := _renamed(name):
                    weights_of[place[0]][place[1]] = value
            body.load_state_dict(weights_of["body"])
            head.load_state_dict(weights_of["head"])
            return nn.ModuleDict(
                {"body": self.placed(body), "head": head.to(self.placement.device).eval()}
            )

    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        import torch

        chats = [
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "image": image.resize(fitted(*image.size))},
                        {"type": "text", "text": self._text(prompt)},
                    ],
                }
            ]
            for prompt, image in zip(prompts, images, strict=True)
        ]
        inputs = self.processor.apply_chat_template(
            chats,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        ).to(self.placement.device, self.placement.torch_dtype)
        # It was tuned on a release of transformers that numbered all tokens in one row, those of
        # the image too.
        places = torch.arange(inputs["input_ids"].shape[1], device=self.placement.device)
        row = places.expand(3, len(chats), -1)
        states = self.model["body"](**inputs, position_ids=row).last_hidden_state
        token = self.processor.tokenizer.convert_tokens_to_ids(REWARD)
        read: torch.Tensor = states[inputs["input_ids"] == token]
        outputs: torch.Tensor = self.model["head"](read.float())
        return outputs[:, 0]

    def _text(self, prompt: str) -> str:
        return self.instruction.format(text_prompt=prompt) + self.end


def fitted(width: int, height: int) -> tuple[int, int]:
    """Returns width and height at which an image has about `PIXELS` pixels.

    Rounded up where it grows and down where it shrinks, as Qwen's own preparation does.
    """
    sides = [max(SIDE, round(side / SIDE) * SIDE) for side in (width, height)]
    if sides[0] * sides[1] == PIXELS:
        return sides[0], sides[1]
    factor = math.sqrt(PIXELS / (width * height))
    rounded = math.floor if sides[0] * sides[1] > PIXELS else math.ceil
    wide, high = (max(SIDE, rounded(side * factor / SIDE) * SIDE) for side in (width, height))
    return wide, high


def published_texts() -> tuple[str, str]:
    """Reads the instruction and the end of the question from the published package's source.

    Raises UsageError without the package.
    """
    package = importlib.util.find_spec("hpsv3")
    places = list(package.submodule_search_locations or ()) if package else []
    path = Path(places[0], "dataset", "data_collator_qwen.py") if places else None
    if path is None or not path.is_file():
        raise UsageError(
            "hpsv3 needs the instruction of its package: pip install --no-deps hpsv3==1.0.0",
            code="missing-library",
        )
    texts = {
        target.id: node.value.value
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if missing := [name for name in TEXTS if not isinstance(texts.get(name), str)]:
        raise UsageError(
            f"{path} has no {missing[0]}: pip install --no-deps hpsv3==1.0.0",
            code="missing-library",
        )
    return str(texts[TEXTS[0]]), str(texts[TEXTS[1]])


def _renamed(name: str) -> tuple[str, str] | None:
    """Where a published weight belongs, and its name there; None for the unused language head."""
    if name.startswith("rm_head."):
        return "head", name.removeprefix("rm_head.")
    if name.startswith("lm_head."):
        return None
    if name.startswith("visual."):
        return "body", name
    return "body", f"language_model.{name.removeprefix('model.')}"
