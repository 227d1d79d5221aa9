"""Opt-in: the port of ImageReward against the published code itself, with random weights.

The package wants timm 0.6, fairscale, torchvision and a transformers of 2022. Only its two model
files and its head are run, with the few functions of those libraries that they import.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from tiny_scorers import BERT, REWARD, SIDE, image_reward_weights

from counterprior.eval.scorers.image_reward import build, rewards

pytestmark = [pytest.mark.lane, pytest.mark.online]
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

PACKAGE = "image-reward==1.5"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published package, unpacked and not installed."""
    import subprocess

    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", PACKAGE]
    done = subprocess.run([*command, "--dest", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{PACKAGE} can't be had: {done.stderr.strip()[-200:]}")
    (file,) = folder.glob("*.whl")
    with ZipFile(file) as archive:
        archive.extractall(folder / "code")
    return folder / "code" / "ImageReward"


class PatchEmbed(torch.nn.Module):  # type: ignore[misc]
    """What timm's class of this name does."""

    def __init__(self, img_size: int, patch_size: int, in_chans: int, embed_dim: int) -> None:
        super().__init__()
        self.num_patches = (img_size // patch_size) ** 2
        self.proj = torch.nn.Conv2d(in_chans, embed_dim, patch_size, stride=patch_size)

    def forward(self, x: Any) -> Any:
        return self.proj(x).flatten(2).transpose(1, 2)


def module(monkeypatch: pytest.MonkeyPatch, name: str, **values: Any) -> None:
    """A module of that name that holds these values, with the packages above it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules:
            made = types.ModuleType(path)
            made.__path__ = []
            monkeypatch.setitem(sys.modules, path, made)
    for key, value in values.items():
        monkeypatch.setattr(sys.modules[name], key, value, raising=False)


def loaded(path: Path, name: str, **changed: str) -> Any:
    """A file of the package as a module; changed: text -> what stands there instead."""
    code = path.read_text()
    for old, new in changed.items():
        code = code.replace(old, new)
    made = types.ModuleType(name)
    exec(compile(code, str(path), "exec"), made.__dict__)
    return made


@pytest.fixture
def original(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], Any]:
    """ImageReward of the published code, of the tiny size, with given weights."""
    import transformers.modeling_utils
    from transformers.pytorch_utils import apply_chunking_to_forward

    nothing: Callable[..., Any] = lambda *a, **k: None  # noqa: E731
    module(monkeypatch, "timm.models.vision_transformer", _cfg=nothing, PatchEmbed=PatchEmbed)
    module(monkeypatch, "timm.models.registry", register_model=nothing)
    module(
        monkeypatch,
        "timm.models.layers",
        trunc_normal_=torch.nn.init.trunc_normal_,
        DropPath=torch.nn.Identity,
    )
    module(monkeypatch, "timm.models.helpers", named_apply=nothing, adapt_input_conv=nothing)
    module(
        monkeypatch,
        "fairscale.nn.checkpoint.checkpoint_activations",
        checkpoint_wrapper=nothing,
    )
    for name, value in {
        "apply_chunking_to_forward": apply_chunking_to_forward,
        "find_pruneable_heads_and_indices": nothing,
        "prune_linear_layer": nothing,
    }.items():
        monkeypatch.setattr(transformers.modeling_utils, name, value, raising=False)
    module(monkeypatch, "transformers.file_utils", ModelOutput=transformers.utils.ModelOutput)
    module(
        monkeypatch,
        "torchvision.transforms",
        **dict.fromkeys(("Compose", "Resize", "CenterCrop", "ToTensor", "Normalize"), nothing),
        InterpolationMode=types.SimpleNamespace(BICUBIC=3),
    )
    module(monkeypatch, "models.BLIP.blip_pretrain", BLIP_Pretrain=nothing)
    vit = loaded(wheel / "models/BLIP/vit.py", "vit")
    med = loaded(wheel / "models/BLIP/med.py", "med")
    reward = loaded(wheel / "ImageReward.py", "reward", **{"from .models": "from models"})

    def make(weights: dict[str, Any]) -> Any:
        from functools import partial

        made = reward.ImageReward.__new__(reward.ImageReward)
        torch.nn.Module.__init__(made)
        made.device = "cpu"
        made.mean, made.std = 0.16717362830052426, 1.0333394966054072
        made.blip = torch.nn.Module()
        made.blip.visual_encoder = vit.VisionTransformer(
            img_size=SIDE,
            patch_size=REWARD["patch"],
            embed_dim=REWARD["width"],
            depth=REWARD["depth"],
            num_heads=REWARD["width"] // 64,
            mlp_ratio=REWARD["inner"] / REWARD["width"],
            norm_layer=partial(torch.nn.LayerNorm, eps=1e-6),
        )
        settings = med.BertConfig(**BERT)
        settings.chunk_size_feed_forward = 0
        settings.encoder_width = REWARD["width"]
        # What later versions of transformers took out of their base class.
        for name, value in {
            "get_head_mask": lambda self, mask, layers: [None] * layers,
            "init_weights": nothing,
            "invert_attention_mask": lambda self, mask: (1.0 - mask[:, None, None].float()) * -1e38,
        }.items():
            setattr(med.BertModel, name, value)
        made.blip.text_encoder = med.BertModel(config=settings, add_pooling_layer=False)
        made.mlp = reward.MLP(BERT["hidden_size"])
        unused = ("blip.vision_proj.", "blip.text_proj.")
        known = {n: w for n, w in weights.items() if not n.startswith(unused)}
        made.load_state_dict(known)
        return made.eval()

    return make


def test_the_port_gives_the_very_numbers_of_the_published_code(
    original: Callable[[dict[str, Any]], Any],
) -> None:
    weights = image_reward_weights()
    theirs, ours = original(weights), build(weights, BERT)
    generator = torch.Generator().manual_seed(5)
    largest = 0.0
    for length in (3, 12, 35):
        pixels = torch.randn(1, 3, SIDE, SIDE, generator=generator)
        tokens = torch.randint(5, 60, (1, 35), generator=generator)
        mask = (torch.arange(35) < length).long()[None]
        with torch.inference_mode():
            expected = theirs.score_gard(tokens, mask, pixels)[:, 0]
            found = rewards(ours, tokens, mask, pixels)
        largest = max(largest, float((expected - found).abs().max()))
    assert largest == 0.0
