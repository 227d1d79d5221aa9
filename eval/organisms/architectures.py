"""What an organism's denoiser is built as, how it learns, and the pipeline that it makes.

`unet`: cross-attention, diffusion with v-prediction, a `StableDiffusionPipeline`. `joint`: joint
attention and rectified flow as in SD3 (Esser et al. 2024), a `StableDiffusion3Pipeline`. `gligen`:
a trained `unet` that is given a layout (Li et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...errors import UsageError
from ..methods.grounding import PlacedThing, grounding, phrase_features
from . import networks
from .data import ENTITIES, HEIGHT, WIDTH
from .networks import FACTOR, SIZES, TEXT_WIDTH

if TYPE_CHECKING:
    from torch import Tensor

TIMES = 1000
"""Time of pure noise, of the flow."""
UNUSED = 256
"""Text tokens that SD3's pipeline takes from T5, its default `max_sequence_length`: here zeros."""
HEAD = 32
"""Channels of an attention head of the transformer."""


@dataclass(frozen=True)
class JointSize:
    """How large a transformer is."""

    heads: int
    layers: int
    patch: int
    """Places of the latents for one position of the transformer, each way."""


JOINT_SIZES = {
    "tiny": JointSize(1, 2, 2),
    "smallest": JointSize(4, 4, 2),
    "small": JointSize(4, 4, 2),
}
"""Transformers by the names of `SIZES`."""


class Architecture:
    """The trained parts of a pipeline but its decoder: text encoders and denoiser."""

    name: ClassVar[str]
    parts: ClassVar[dict[str, tuple[str, str]]]
    """Module and class of each part by its folder, the denoiser first."""
    halved: ClassVar[tuple[str, ...]]
    """Parts whose files are in half precision."""
    begins_as: ClassVar[str] = ""
    """Architecture of a trained organism that it adds layers to; empty if it is whole."""

    def __init__(self, modules: dict[str, Any]) -> None:
        """modules: those of `parts`, by the same names."""
        self.modules = modules
        self._features: dict[str, Tensor] = {}

    @classmethod
    def settings(cls, size: str) -> dict[str, Any]:
        """What decides the weights of a size and is not in `SIZES`."""
        return {}

    @classmethod
    def new(cls, size: str, tokens: Any) -> Self:
        """Untrained parts of a size of `SIZES`, from torch's global random numbers."""
        raise NotImplementedError

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The parts of a pipeline's folder, in single precision."""
        modules = {}
        for part, (module, kind) in cls.parts.items():
            loaded = getattr(import_module(module), kind).from_pretrained(folder, subfolder=part)
            modules[part] = loaded.float()
        return cls(modules)

    @property
    def vocabulary(self) -> int:
        """Tokens that its text encoders know."""
        return int(self.modules["text_encoder"].config.vocab_size)

    def read_anew(self, tokens: Any) -> None:
        """Gives it untrained text encoders for another tokenizer."""
        for part, module in self.modules.items():
            if part.startswith("text_encoder"):
                projected = hasattr(module, "text_projection")
                self.modules[part] = networks.text_encoder(tokens, projected)

    @property
    def parameters(self) -> list[Any]:
        """Weights that are trained, in the order that checkpoints have them in."""
        return [p for module in self.modules.values() for p in module.parameters()]

    def prepare(self, device: str) -> None:
        """Makes the parts ready to be trained on a device."""
        for module in self.modules.values():
            module.to(device).train()

    def noisy(self, clean: Tensor, noise: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns noisy latents, what is to be predicted from them, and the denoiser's time.

        clean, noise: (batch, channels, height, width). share: (batch), how far toward pure noise,
        in [0, 1].
        """
        raise NotImplementedError

    def predict(
        self,
        noisy: Tensor,
        times: Tensor,
        captions: Tensor,
        things: Sequence[Sequence[PlacedThing]] = (),
    ) -> Tensor:
        """The prediction from noisy latents.

        captions: tokens, (batch, TOKENS). things: layout of each image, for those that see one.
        """
        raise NotImplementedError

    def pipeline(self, vae: Any, tokens: Any) -> Any:
        """All parts as a pipeline of diffusers."""
        raise NotImplementedError


class UNet(Architecture):
    """A UNet that predicts v (Salimans and Ho 2022)."""

    name = "unet"
    parts: ClassVar = {
        "unet": ("diffusers", "UNet2DConditionModel"),
        "text_encoder": ("transformers", "CLIPTextModel"),
    }
    halved = ("unet", "text_encoder")

    def __init__(self, modules: dict[str, Any]) -> None:
        super().__init__(modules)
        self._signal = networks.scheduler().alphas_cumprod

    @classmethod
    def new(cls, size: str, tokens: Any) -> Self:
        encoder = networks.text_encoder(tokens)
        return cls({"unet": networks.denoiser(SIZES[size]), "text_encoder": encoder})

    def prepare(self, device: str) -> None:
        import torch

        super().prepare(device)
        self.modules["unet"].to(memory_format=torch.channels_last)

    def noisy(self, clean: Tensor, noise: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        times = (share * len(self._signal)).long().clamp(max=len(self._signal) - 1)
        signal = self._signal[times][:, None, None, None]
        noisy = signal.sqrt() * clean + (1 - signal).sqrt() * noise
        target = signal.sqrt() * noise - (1 - signal).sqrt() * clean
        return noisy, target, times

    def predict(
        self,
        noisy: Tensor,
        times: Tensor,
        captions: Tensor,
        things: Sequence[Sequence[PlacedThing]] = (),
    ) -> Tensor:
        import torch

        text = self.modules["text_encoder"](captions).last_hidden_state
        noisy = noisy.contiguous(memory_format=torch.channels_last)
        more = self._cross_attention(things)
        unet = self.modules["unet"]
        predicted: Tensor = unet(noisy, times, text, cross_attention_kwargs=more).sample
        return predicted

    def _cross_attention(self, things: Sequence[Sequence[PlacedThing]]) -> dict[str, Any] | None:
        """Further arguments of the UNet's attention."""
        return None

    def pipeline(self, vae: Any, tokens: Any) -> Any:
        return networks.pipeline(vae, self.modules["text_encoder"], tokens, self.modules["unet"])


class Grounded(UNet):
    """A trained UNet with GLIGEN's layers, which are all that is trained."""

    name = "gligen"
    begins_as = UNet.name

    @classmethod
    def load(cls, folder: Path) -> Self:
        from transformers import CLIPTokenizer

        model = super().load(folder)
        model.modules["unet"] = networks.gated(model.modules["unet"])
        tokens = CLIPTokenizer.from_pretrained(folder, subfolder="tokenizer")
        encoder = model.modules["text_encoder"]
        model._features = phrase_features(encoder, tokens, ENTITIES)
        return model

    def read_anew(self, tokens: Any) -> None:
        raise UsageError(
            "--architecture gligen trains no words: give the --language of --like",
            code="conflicting-options",
        )

    @property
    def parameters(self) -> list[Any]:
        named = self.modules["unet"].named_parameters()
        return [p for name, p in named if ".fuser." in name or name.startswith("position_net.")]

    def prepare(self, device: str) -> None:
        super().prepare(device)
        for module in self.modules.values():
            module.requires_grad_(False)
        for parameter in self.parameters:
            parameter.requires_grad_(True)

    def _cross_attention(self, things: Sequence[Sequence[PlacedThing]]) -> dict[str, Any] | None:
        device = self.parameters[0].device
        of_images = grounding(things, self._features)
        return {"gligen": {name: tensor.to(device) for name, tensor in of_images.items()}}


class Joint(Architecture):
    """A transformer with joint attention that predicts the flow from image to noise, as SD3's.

    CLIP alone reads its captions. A pipeline of SD3 can do without T5, but its folder is then
    refused by diffusers unless the caller says so; so there is one, and it is `mute`.
    """

    name = "joint"
    parts: ClassVar = {
        "transformer": ("diffusers", "SD3Transformer2DModel"),
        "text_encoder": ("transformers", "CLIPTextModelWithProjection"),
        "text_encoder_2": ("transformers", "CLIPTextModelWithProjection"),
    }
    # transformers opens a file in its own precision, diffusers in single; the pipeline takes one.
    halved = ("transformer",)

    @classmethod
    def settings(cls, size: str) -> dict[str, Any]:
        return {"transformer": asdict(JOINT_SIZES[size])}

    @classmethod
    def new(cls, size: str, tokens: Any) -> Self:
        encoders = [networks.text_encoder(tokens, projected=True) for _ in range(2)]
        modules = [transformer(size), *encoders]
        return cls(dict(zip(cls.parts, modules, strict=True)))

    def noisy(self, clean: Tensor, noise: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        part = share[:, None, None, None]
        return (1 - part) * clean + part * noise, noise - clean, share * TIMES

    def predict(
        self,
        noisy: Tensor,
        times: Tensor,
        captions: Tensor,
        things: Sequence[Sequence[PlacedThing]] = (),
    ) -> Tensor:
        import torch

        encoders = self.modules["text_encoder"], self.modules["text_encoder_2"]
        texts = [encoder(captions, output_hidden_states=True) for encoder in encoders]
        tokens = torch.cat([text.hidden_states[-2] for text in texts], -1)
        with _last_token_counts(UNUSED):
            predicted: Tensor = self.modules["transformer"](
                hidden_states=noisy,
                encoder_hidden_states=torch.nn.functional.pad(tokens, (0, 0, 0, 1)),
                pooled_projections=torch.cat([text.text_embeds for text in texts], -1),
                timestep=times,
            ).sample
        return predicted

    def pipeline(self, vae: Any, tokens: Any) -> Any:
        from diffusers import FlowMatchEulerDiscreteScheduler, StableDiffusion3Pipeline

        scheduler = FlowMatchEulerDiscreteScheduler(TIMES)  # type: ignore[no-untyped-call]
        encoder, third = mute()
        return StableDiffusion3Pipeline(  # type: ignore[no-untyped-call]
            vae=vae,
            scheduler=scheduler,
            tokenizer=tokens,
            tokenizer_2=tokens,
            tokenizer_3=third,
            text_encoder_3=encoder,
            **self.modules,
        )


ARCHITECTURES: dict[str, type[Architecture]] = {kind.name: kind for kind in (UNet, Joint, Grounded)}
"""Architectures by name."""


def transformer(size: str) -> Any:
    """An `SD3Transformer2DModel` that begins as the identity: its gates are closed."""
    import torch
    from diffusers import SD3Transformer2DModel

    shape, latents = JOINT_SIZES[size], SIZES[size].latents
    longest = max(HEIGHT, WIDTH) // FACTOR
    model: Any = SD3Transformer2DModel(  # type: ignore[no-untyped-call]
        sample_size=longest,
        patch_size=shape.patch,
        in_channels=latents,
        out_channels=latents,
        num_layers=shape.layers,
        attention_head_dim=HEAD,
        num_attention_heads=shape.heads,
        joint_attention_dim=2 * TEXT_WIDTH,
        caption_projection_dim=HEAD * shape.heads,
        pooled_projection_dim=2 * TEXT_WIDTH,
        pos_embed_max_size=longest // shape.patch,
        qk_norm="rms_norm",
    )
    blocks = model.transformer_blocks
    norms = [*(b.norm1 for b in blocks), *(b.norm1_context for b in blocks), model.norm_out]
    for layer in (*(norm.linear for norm in norms), model.proj_out):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    return model


def mute() -> tuple[Any, Any]:
    """A T5 encoder without layers whose every token is zeros, as if it were left out, and a
    tokenizer that knows no word."""
    import torch
    from transformers import T5Config, T5EncoderModel, T5Tokenizer

    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -9.0), ("\u2581", -1.0)]
    config = T5Config(
        vocab_size=len(pieces), d_model=2 * TEXT_WIDTH, d_kv=8, d_ff=8, num_layers=0, num_heads=1
    )
    encoder: Any = T5EncoderModel(config)
    torch.nn.init.zeros_(encoder.encoder.final_layer_norm.weight)
    return encoder, T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=UNUSED)


@contextmanager
def _last_token_counts(times: int) -> Iterator[None]:
    """Within it, joint attention counts the last token so many times.

    Equal tokens without places stay equal from layer to layer, and weigh as much as one of them
    that every softmax counts as often. So one is computed, and not hundreds.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    attention = torch.nn.functional.scaled_dot_product_attention

    class Counting(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if func is attention:
                query, key = args[:2]
                bias = query.new_zeros(key.shape[-2])
                bias[-1] = math.log(times)
                kwargs = {**kwargs, "attn_mask": bias.expand(query.shape[-2], -1)}
            return func(*args, **kwargs)

    with Counting():
        yield
