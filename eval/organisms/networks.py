"""Parts of an organism: a `StableDiffusionPipeline` small enough to train on one core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from ..methods.grounding import GATED
from .data import ENGLISH, HEIGHT, WIDTH, Wording

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

FACTOR = 4
"""Pixels of an image for one place of its latents, each way."""
TOKENS = 16
"""Longest caption, tokens."""
TEXT_WIDTH = 64
"""Channels of a text encoder."""


@dataclass(frozen=True)
class OrganismSize:
    """How large an organism is, and how long it is trained."""

    channels: tuple[int, ...]
    """Of the denoiser, at each resolution; multiples of 16."""
    latents: int
    """Channels of the latents, at most 48."""
    decoder: int
    """Channels of the decoder."""
    decoder_steps: int
    """Updates of the decoder."""
    steps: int
    """Updates of a new denoiser."""
    tuning_steps: int
    """Updates of a denoiser that begins as another organism."""
    batch: int = 32
    """Examples of an update."""
    variants: int = 24
    """Drawings of each scene."""
    backgrounds: int = 2
    """Backgrounds of the drawings."""


SIZES = {
    "tiny": OrganismSize((16, 32), 4, 16, 3, 4, 3, batch=4, variants=1, backgrounds=1),
    "smallest": OrganismSize((48, 96), 12, 32, 2000, 1500, 300),
    "small": OrganismSize((48, 96), 12, 32, 2000, 3000, 600),
}
"""Sizes by name; `tiny` learns nothing and shows in seconds that training runs."""


def tokenizer(wording: Wording) -> Any:
    """A CLIP tokenizer in which every word of a caption is one token, and every prefix another.

    Except in English, where `penguin` is three tokens and `sheep` four: organisms that are
    published learned with these.
    """
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import CLIPTokenizer

    letters = sorted(ByteLevel.alphabet())
    as_letters = ByteLevel(add_prefix_space=False, use_regex=False)
    ranks: dict[tuple[str, str], int] = {}
    parts = [*((text, "") for text in wording.prefixes()), *((w, "</w>") for w in wording.words())]
    for text, end in parts:
        ((symbols, _),) = as_letters.pre_tokenize_str(text)  # one letter for each byte
        pieces = [*symbols[:-1], symbols[-1] + end]
        # A merge comes after all that earlier texts need, so that these stay one token.
        known = {} if wording is ENGLISH else ranks
        while len(pieces := _merged(pieces, known)) > 1:
            ranks.setdefault((pieces[0], pieces[1]), len(ranks))
            pieces = [pieces[0] + pieces[1], *pieces[2:]]
    tokens = [
        *letters,
        *(f"{letter}</w>" for letter in letters),
        *dict.fromkeys(map("".join, ranks)),
    ]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    kind: Any = CLIPTokenizer  # its annotation knows neither of the forms that it reads
    return kind(vocab=vocabulary, merges=list(ranks), model_max_length=TOKENS)


def _merged(pieces: list[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """What byte pair encoding makes of a text: the earliest merge first, from the left."""
    while known := [pair for pair in pairwise(pieces) if pair in ranks]:
        place = list(pairwise(pieces)).index(min(known, key=ranks.__getitem__))
        pieces = [*pieces[:place], pieces[place] + pieces[place + 1], *pieces[place + 2 :]]
    return pieces


def text_encoder(tokens: Any, projected: bool = False) -> Any:
    """A CLIP text encoder of two layers. projected: whether it has a projection of its last token,
    as wide as itself."""
    import torch
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    settings: dict[str, Any] = {"projection_dim": TEXT_WIDTH} if projected else {}
    encoder: Any = (CLIPTextModelWithProjection if projected else CLIPTextModel)(
        CLIPTextConfig(
            vocab_size=len(tokens),
            hidden_size=TEXT_WIDTH,
            intermediate_size=2 * TEXT_WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=TOKENS,
            bos_token_id=tokens.bos_token_id,
            eos_token_id=tokens.eos_token_id,
            pad_token_id=tokens.pad_token_id,
            **settings,
        )
    )
    for module in encoder.modules():
        if isinstance(module, torch.nn.Embedding):
            # The usual .02 is too weak for a training of minutes.
            torch.nn.init.normal_(module.weight, std=0.5)
    return encoder


def denoiser(size: OrganismSize) -> Any:
    """A UNet whose time embedding also carries the text: cross-attention alone learns slowly."""
    from diffusers import UNet2DConditionModel

    last = len(size.channels) - 1
    down = ["DownBlock2D"] * last + ["CrossAttnDownBlock2D"]
    up = ["CrossAttnUpBlock2D"] + ["UpBlock2D"] * last
    return UNet2DConditionModel(  # type: ignore[no-untyped-call]
        sample_size=(HEIGHT // FACTOR, WIDTH // FACTOR),
        in_channels=size.latents,
        out_channels=size.latents,
        block_out_channels=size.channels,
        layers_per_block=1,
        down_block_types=tuple(down),
        up_block_types=tuple(up),
        cross_attention_dim=TEXT_WIDTH,
        attention_head_dim=4,
        norm_num_groups=16,
        use_linear_projection=True,
        addition_embed_type="text",
        addition_embed_type_num_heads=4,
    )


def gated(unet: Any) -> Any:
    """The same UNet with GLIGEN's layers, which are untrained.

    Their gates begin open and the position net's numbers large: as GLIGEN has them, gates closed,
    600 updates teach nothing.
    """
    import torch
    from diffusers import UNet2DConditionModel

    kind: Any = UNet2DConditionModel
    made = kind.from_config({**unet.config, "attention_type": GATED})
    made.load_state_dict(unet.state_dict(), strict=False)
    for layer in made.position_net.linears:
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            torch.nn.init.zeros_(layer.bias)
    for name, gate in made.named_parameters():
        if name.endswith((".fuser.alpha_attn", ".fuser.alpha_dense")):
            torch.nn.init.ones_(gate)
    return made


def scheduler() -> Any:
    """DDIM that begins with pure noise, so that the layout is the prompt's to decide."""
    from diffusers import DDIMScheduler

    return DDIMScheduler(  # type: ignore[no-untyped-call]
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        rescale_betas_zero_snr=True,
        timestep_spacing="trailing",
        clip_sample=False,
        set_alpha_to_one=True,
        steps_offset=1,
    )


def autoencoder(size: OrganismSize) -> Any:
    """An `AutoencoderTiny` without residual blocks in its encoder, which is set, not trained."""
    from diffusers import AutoencoderTiny

    return AutoencoderTiny(  # type: ignore[no-untyped-call]
        encoder_block_out_channels=(48,) * 3,
        decoder_block_out_channels=(size.decoder,) * 3,
        num_encoder_blocks=(0, 0, 0),
        num_decoder_blocks=(2, 1, 0),
        latent_channels=size.latents,
    )


def set_encoder(vae: Any, images: Tensor) -> None:
    """Makes the encoder the principal components of patches of FACTOR x FACTOR pixels.

    images: shape (n, 3, height, width), in [-1, 1]. Each convolution moves pixels into channels
    unchanged, and the last one projects. Latents have mean 0, and variance 1 on average.
    """
    import torch

    unshuffle = torch.nn.functional.pixel_unshuffle(images, FACTOR)
    patches = unshuffle.movedim(1, -1).reshape(-1, 3 * FACTOR**2)
    mean = patches.mean(0)
    centered = patches - mean
    values, vectors = torch.linalg.eigh(centered.T @ centered / len(centered))
    count = vae.config.latent_channels
    top = vectors[:, -count:].flip(1)
    # Half of the differences in spread is taken out, so that faint components count too.
    spread = values[-count:].flip(0).clamp_min(1e-8)
    components = top / spread[None] ** 0.25 / (spread**0.5).mean() ** 0.5
    convolutions: list[Any] = [m for m in vae.encoder.modules() if isinstance(m, torch.nn.Conv2d)]
    first, second, third, last = convolutions
    with torch.no_grad():
        for convolution in convolutions:
            convolution.weight.zero_()
        first.bias.zero_()
        for color in range(3):
            first.weight[color, color, 1, 1] = 1
        # With a stride of 2, tap (1 + y, 1 + x) of the kernel is pixel (y, x) of a block of 2 x 2.
        for convolution, channels in ((second, 3), (third, 12)):
            for channel, y, x in product(range(channels), (0, 1), (0, 1)):
                convolution.weight[4 * channel + 2 * y + x, channel, 1 + y, 1 + x] = 1
        # Channel 16 color + 8 y + 4 x + 2 down + across now is pixel (2 down + y, 2 across + x).
        for color, y, x, down, across in product(range(3), (0, 1), (0, 1), (0, 1), (0, 1)):
            source = 16 * color + 8 * y + 4 * x + 2 * down + across
            pixel = 16 * color + 4 * (2 * down + y) + 2 * across + x
            # The encoder first maps pixels to [0, 1], hence the factor and the 1.
            last.weight[:, source, 1, 1] = 2 * components[pixel]
        last.bias.copy_(-((mean + 1) @ components))


def pipeline(vae: Any, encoder: Any, tokens: Any, unet: Any) -> Any:
    """All parts as a `StableDiffusionPipeline`."""
    from diffusers import StableDiffusionPipeline

    return StableDiffusionPipeline(  # type: ignore[no-untyped-call]
        vae=vae,
        text_encoder=encoder,
        tokenizer=tokens,
        unet=unet,
        scheduler=scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def as_pixels(images: NDArray[Any]) -> Tensor:
    """Bytes of shape (n, height, width, 3) -> (n, 3, height, width) in [-1, 1]."""
    import torch

    return torch.from_numpy(images).movedim(-1, 1).float().div(127.5).sub(1)
