"""`hps`: HPSv2.1 (Wu et al. 2023), a CLIP of open_clip tuned on people's choices.

``hps:REPO_OR_FOLDER?base=BASE``: the weights are one file in open_clip's layout; `base` has the
configuration and the tokenizer of the same model in that of transformers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..checkpoints.placement import Checkpoint
from .contrastive import ContrastiveScorer
from .local import LocalScorerOptions
from .transforms import normalized, padded

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

BASE = "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"
WEIGHTS = "HPS_v2.1_compressed.pt"

_LAYER = re.compile(r"transformer\.resblocks\.(\d+)\.(.+)")
_PARTS = {
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "attn.out_proj": "self_attn.out_proj",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
_OUTSIDE = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.ln_pre.weight": "vision_model.pre_layrnorm.weight",
    "visual.ln_pre.bias": "vision_model.pre_layrnorm.bias",
    "visual.ln_post.weight": "vision_model.post_layernorm.weight",
    "visual.ln_post.bias": "vision_model.post_layernorm.bias",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "ln_final.weight": "text_model.final_layer_norm.weight",
    "ln_final.bias": "text_model.final_layer_norm.bias",
    "logit_scale": "logit_scale",
}
_TURNED = {"visual.proj": "visual_projection.weight", "text_projection": "text_projection.weight"}
"""Matrices that open_clip multiplies from the other side."""


class HpsOptions(LocalScorerOptions):
    """Options of `hps`."""

    base: str = BASE
    """Folder or repository of the same CLIP in transformers' layout."""


class HumanPreferenceScore(ContrastiveScorer):
    """The cosine of image and prompt. The image is shown whole, on a black square."""

    KIND = "hps"
    MODEL = "xswu/HPSv2"
    MARKER = WEIGHTS
    options = HpsOptions

    def __init__(self, model: str, options: HpsOptions) -> None:
        super().__init__(model, options)
        self.base = Checkpoint.find(options.base, None, "config.json")

    def identity(self) -> dict[str, str]:
        # Not that of its parent: the pixels are its own.
        plain = super(ContrastiveScorer, self).identity()
        return {**plain, "weights": WEIGHTS, "base": f"{self.base.name} {self.base.version}"}

    @cached_property
    def model(self) -> Any:
        import torch
        from transformers import CLIPConfig, CLIPModel

        with self.loading():
            model = CLIPModel(self.base.load(CLIPConfig))
            file = self.checkpoint.file(WEIGHTS)
            saved = torch.load(file, map_location="cpu", weights_only=True)
            model.load_state_dict(from_open_clip(saved.get("state_dict", saved)))
            return self.placed(model)

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with self.loading():
            return self.base.load(AutoTokenizer)

    def pixels(self, images: Sequence[Image]) -> torch.Tensor:
        side = self.model.config.vision_config.image_size
        return normalized(padded(image, side) for image in images)

    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        return self.cosines(prompts, images)


def from_open_clip(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Renames the weights of open_clip's CLIP to transformers' names.

    Raises KeyError for a weight that CLIP does not have.
    """
    renamed: dict[str, torch.Tensor] = {}
    for name, value in weights.items():
        layer = _LAYER.fullmatch(name.removeprefix("visual."))
        if layer:
            side = "vision_model" if name.startswith("visual.") else "text_model"
            for weight_name, weight in _parts(layer[2], value):
                renamed[f"{side}.encoder.layers.{layer[1]}.{weight_name}"] = weight
        elif name in _TURNED:
            renamed[_TURNED[name]] = value.T.contiguous()
        elif name != "attn_mask":
            renamed[_OUTSIDE[name]] = value
    return renamed


def _parts(name: str, value: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields a weight of a layer unchanged, or cut into query, key and value."""
    module, _, kind = name.rpartition(".")
    if module == "attn" and kind.startswith("in_proj_"):
        for role, chunk in zip("qkv", value.chunk(3), strict=True):
            yield f"self_attn.{role}_proj.{kind.removeprefix('in_proj_')}", chunk.contiguous()
    else:
        yield f"{_PARTS[module]}.{kind}", value
