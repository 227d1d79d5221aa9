"""The recipe of a LoRA, with the defaults of OTS-Bench (Table 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....errors import UsageError

LINEAR = (
    "to_q",
    "to_k",
    "to_v",
    "to_out.0",
    "add_q_proj",
    "add_k_proj",
    "add_v_proj",
    "to_add_out",
    "net.0.proj",
    "net.2",
    "proj_mlp",
    "proj_out",
)
"""Linear layers of attention and feed-forward blocks, by the end of their names."""
CONV = ("conv1", "conv2")
"""Convolutions of a UNet's residual blocks; FLUX, Qwen-Image and SD3.5 have none."""
OPTIMIZERS = ("adamw8bit", "adamw")


@dataclass(frozen=True)
class LoraRecipe:
    """Settings of a LoRA's training."""

    rank: int = 32
    """Rank for linear layers."""
    alpha: int = 32
    """Alpha for linear layers; the update's factor is alpha / rank."""
    conv_rank: int = 16
    """Rank for convolutions, if the denoiser has some."""
    conv_alpha: int = 16
    """Alpha for convolutions."""
    steps: int = 10_000
    """Updates."""
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    optimizer: str = "adamw8bit"
    """One of `OPTIMIZERS`; without bitsandbytes, the 8-bit one falls back to torch's."""
    guidance: float = 1.0
    """Guidance of guidance-distilled models (FLUX.1-dev)."""
    clip: float = 1.0
    """Maximum norm of the gradient."""
    size: int = 512
    """Images have about the area of a square of this side, pixels."""
    mirrored: bool = True
    """Whether the mirrored half is trained on; the ablation trains on the originals alone."""
    held_out: int = 50
    """Pairs that are not trained on, for the validation curve."""
    seed: int = 0
    """Seed of initial weights, order of examples, times and noise."""

    def __post_init__(self) -> None:
        """Raises UsageError for numbers below their minimum."""
        for name in ("rank", "alpha", "conv_rank", "conv_alpha", "steps", "size"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"tune: {name} must be at least 1, is {getattr(self, name)}",
                    code="out-of-range",
                )
        if self.held_out < 0 or self.learning_rate <= 0 or self.weight_decay < 0:
            raise UsageError(
                "tune: held_out, learning_rate and weight_decay can't be negative",
                code="out-of-range",
            )
        if self.optimizer not in OPTIMIZERS:
            raise UsageError(
                f"tune: no optimizer {self.optimizer!r}: {', '.join(OPTIMIZERS)}",
                code="unknown-name",
            )

    def adapter(self, model: Any) -> Any:
        """The `LoraConfig` for a denoiser. Raises UsageError where it has no layer to change."""
        import torch
        from peft import LoraConfig

        linear, conv = set(), set()
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear):
                linear |= {end for end in LINEAR if f".{name}".endswith(f".{end}")}
            elif isinstance(module, torch.nn.Conv2d):
                conv |= {end for end in CONV if f".{name}".endswith(f".{end}")}
        if not linear:
            raise UsageError(
                f"tune: {type(model).__name__} has no attention layer to change", code="wrong-model"
            )
        pattern = r".*\.conv[12]$"
        return LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            init_lora_weights="gaussian",
            target_modules=sorted(linear | conv),
            rank_pattern={pattern: self.conv_rank} if conv else {},
            alpha_pattern={pattern: self.conv_alpha} if conv else {},
        )


def open_optimizer(recipe: LoraRecipe, parameters: Any) -> tuple[Any, str]:
    """The optimizer, and which one it is."""
    import torch

    settings: dict[str, Any] = {
        "lr": recipe.learning_rate,
        "weight_decay": recipe.weight_decay,
    }
    if recipe.optimizer == "adamw8bit":
        try:
            from bitsandbytes.optim import AdamW8bit
        except ImportError:
            pass
        else:
            return AdamW8bit(parameters, **settings), "adamw8bit"
    return torch.optim.AdamW(parameters, **settings), "adamw"
