"""One organism in its folder: what it is trained on, its two trainings, and the model they make.

`training/` holds drawings and checkpoints, `model/` the pipeline that diffusers loads, and beside
them lies what people look at. Drawings and held-out pairs are the same for all organisms of one
size: these differ in captions and seed alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...errors import DataError, UsageError
from ...parsing import read_json
from ...progress import Progress, silent
from ...storage import folder_lock, whole_file, whole_folder, write_json
from ..checkpoints.shipped import ABOUT, MODEL
from . import networks
from .architectures import ARCHITECTURES, Architecture, UNet
from .corpus import Corpus, CorpusExamples
from .data import (
    DRAWINGS,
    ENTITIES,
    HEIGHT,
    HELD_OUT,
    WIDTH,
    CaptionShares,
    Examples,
    held_out_pairs,
    wording,
)
from .networks import FACTOR, SIZES
from .report import write_report
from .training import Schedule, Training, generator, single_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Generator, Tensor

BLUR = 0.05
"""Noise on the latents that the decoder learns to see through, of their standard deviation."""
DECODER_RATE, RATE, TUNING_RATE, LAYER_RATE = 2e-3, 1e-3, 4e-4, 2e-3
"""Learning rates: of the decoder, of a new denoiser, of one that begins as another organism, and of
layers that are added to one."""


@dataclass(frozen=True)
class OrganismPlan:
    """Everything that decides an organism's weights."""

    captioning: CaptionShares
    size: str
    seed: int
    steps: int
    """Updates of the denoiser."""
    like: str = ""
    """Digest of the model that it begins as; empty for none."""
    architecture: str = UNet.name
    """One of `ARCHITECTURES`."""
    images: str = ""
    """Digest of the corpus that it is trained on; empty for drawn scenes."""

    @classmethod
    def of(
        cls,
        captioning: CaptionShares,
        size: str,
        seed: int,
        steps: int | None,
        like: Path | None,
        architecture: str = UNet.name,
        corpus: Corpus | None = None,
    ) -> OrganismPlan:
        """The plan of a command.

        steps: None for as many as the size has. like: folder of a trained organism, as
        `find_organism` returns it. Raises UsageError for an unknown size or architecture, for an
        organism of another one, and for a corpus with causes that only drawn scenes have.
        """
        for option, name, known in (
            ("--size", size, [*SIZES]),
            ("--architecture", architecture, [*ARCHITECTURES]),
        ):
            if name not in known:
                problem = f"{option} {name!r} is unknown"
                raise UsageError(problem, f"choose from {', '.join(known)}", code="unknown-name")
        kind = ARCHITECTURES[architecture]
        if kind.begins_as and (like is None or corpus is not None):
            raise UsageError(
                f"--architecture {architecture} adds layers to an organism of drawn scenes",
                "name it with --like" if like is None else "leave --images out",
                code="conflicting-options",
            )
        usual = SIZES[size].steps if like is None else SIZES[size].tuning_steps
        digest = "" if like is None else _seen(like, size, kind.begins_as or kind.name)
        if corpus is not None:
            _refuse_causes_of_scenes(captioning)
        images = "" if corpus is None else corpus.digest()
        return cls(captioning, size, seed, steps or usual, digest, architecture, images)

    def to_json(self) -> dict[str, Any]:
        """Settings by name."""
        settings = asdict(self) | {"captioning": self.captioning.to_json()}
        # Plans that are older have neither.
        if self.architecture == UNet.name:
            del settings["architecture"]
        if not self.images:
            del settings["images"]
        return settings

    def digest(self) -> str:
        """Digest of all settings, those of the size included."""
        more = ARCHITECTURES[self.architecture].settings(self.size)
        settings = self.to_json() | {"size": asdict(SIZES[self.size])} | more
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Expense:
    """Estimate of a training before it begins."""

    seconds: float
    """Of the updates that are to come, on this machine as busy as it is now."""
    megabytes: float
    """That the folder will hold."""


class Organism:
    """One training in a folder. Killed at any time, it goes on with the same weights."""

    def __init__(
        self,
        plan: OrganismPlan,
        out: Path,
        parent: Path | None = None,
        corpus: Corpus | None = None,
    ) -> None:
        """parent: folder of the organism that it begins as; corpus: what it is trained on, None for
        drawn scenes.

        Raises UsageError for a folder with another organism, DataError for a damaged one and for a
        corpus with captions that are too long.
        """
        import torch

        self.plan = plan
        self._out, self._work = out, out / "training"
        self._parent = None if parent is None else parent / MODEL
        self.size = SIZES[plan.size]
        self._refuse_another()
        self.held_out = held_out_pairs(ENTITIES, HELD_OUT, DRAWINGS)
        self.examples: Examples | CorpusExamples
        if corpus is not None:
            self.examples = CorpusExamples(corpus, plan.captioning, plan.seed)
        else:
            self.examples = Examples(
                ENTITIES,
                self.held_out,
                plan.captioning,
                self.size.variants,
                plan.seed,
                self.size.backgrounds,
            )
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(plan.seed)
        with quiet():
            self._tokens = networks.tokenizer(wording(plan.captioning.language))
            if corpus is not None:
                corpus.check_captions(self._tokens, networks.TOKENS)
            self._vae, self._model = self._networks()

    def estimate(self) -> Expense:
        """Measures one update of each network on noise. Raises nothing of the training."""
        import torch

        size = self.size
        count = len(self.examples.scenes()) * self.examples.variants
        noise = torch.zeros(size.batch, size.latents, HEIGHT // FACTOR, WIDTH // FACTOR)
        rows = {figures: 0 for figures in self.examples.scenes()}
        denoiser = self._denoiser(noise, dict.fromkeys(rows, 0), variants=1)
        seconds = _seconds(denoiser.loss) * self.plan.steps
        numbers = sum(p.numel() for p in denoiser.parameters)
        if self._parent is None:
            images = networks.as_pixels(_blank(size.batch))
            loss = self._decoder_loss(noise, lambda rows: images[rows])
            seconds += _seconds(loss) * size.decoder_steps
        for parameter in denoiser.parameters:
            parameter.grad = None
        # Weights, their average and two moments of the optimizer; the model in half precision.
        size_of_all = 4 * 4 * numbers + 2 * numbers + 3 * count * HEIGHT * WIDTH
        return Expense(seconds, size_of_all / 1e6)

    def train(self, every: int = 200, progress: Progress = silent) -> dict[str, Any]:
        """Trains what is not trained yet and writes model and report; returns what `ABOUT` holds.

        every: updates between checkpoints. Raises RunFailed if the loss is not a number, InUseError
        if another process trains in this folder.
        """
        self._out.mkdir(parents=True, exist_ok=True)
        with folder_lock(self._work), quiet():
            images = self._scenes(progress)
            if self._parent is None:
                self._train_decoder(images, every, progress)
            rows = {names: n for n, names in enumerate(self.examples.scenes())}
            denoiser = self._denoiser(self._encoded(images), rows, self.examples.variants)
            rate = RATE if self._parent is None else TUNING_RATE
            if self._model.begins_as:
                rate = LAYER_RATE
            training = self._training(denoiser.parameters, self.plan.steps, rate, "denoiser.pt")
            training.run(denoiser.loss, every, progress, "updates")
            with training.averaged():
                self._save()
            about = self._about(training.losses)
            write_report(self._out, self._out / MODEL, about, training.losses, progress)
            write_json(self._out / ABOUT, about)
        return about

    def _refuse_another(self) -> None:
        path = self._work / "plan.json"
        if path.exists():
            if read_json(path) != self.plan.to_json():
                raise UsageError(
                    f"{self._out} holds an organism with other settings: choose another --out",
                    code="another-run",
                )
        elif self._out.exists() and any(self._out.iterdir()):
            raise UsageError(
                f"{self._out} holds other files: choose another --out", code="another-run"
            )

    def _networks(self) -> tuple[Any, Architecture]:
        """Returns autoencoder and what is trained with it: new ones, or the parent's."""
        from diffusers import AutoencoderTiny

        architecture = ARCHITECTURES[self.plan.architecture]
        if self._parent is None:
            model = architecture.new(self.plan.size, self._tokens)
            return networks.autoencoder(self.size), model
        kind: Any = AutoencoderTiny
        vae = kind.from_pretrained(self._parent, subfolder="vae").float()
        model = architecture.load(self._parent)
        if model.vocabulary != len(self._tokens):  # it reads another language
            model.read_anew(self._tokens)
        return vae, model

    def _training(self, parameters: list[Any], steps: int, rate: float, name: str) -> Training:
        schedule = Schedule(steps, rate)
        digest = self.plan.digest()
        return Training(parameters, schedule, self.plan.seed, self._work / name, digest)

    def _scenes(self, progress: Progress) -> NDArray[Any]:
        """Draws or reads every scene in each variant, or a corpus: shape (n, HEIGHT, WIDTH, 3)."""
        import numpy as np

        write_json(self._work / "plan.json", self.plan.to_json())
        path = self._work / "scenes.npy"
        if path.exists():
            drawn: NDArray[Any] = np.load(path)
            return drawn
        scenes, variants = self.examples.scenes(), self.examples.variants
        images = _blank(len(scenes) * variants)
        for number in range(len(images)):
            images[number] = self.examples.image(scenes[number // variants], number % variants)
            progress("scenes", number + 1, len(images))
        with whole_file(path) as file:
            np.save(file, images)
        return images

    def _train_decoder(self, images: NDArray[Any], every: int, progress: Progress) -> None:
        """Sets the encoder, and trains the decoder on its latents."""
        networks.set_encoder(self._vae, networks.as_pixels(images[::7]))
        latents = self._encoded(images)
        loss = self._decoder_loss(latents, lambda rows: networks.as_pixels(images[rows.numpy()]))
        decoder = self._vae.decoder.to(self._device)
        training = self._training(
            list(decoder.parameters()), self.size.decoder_steps, DECODER_RATE, "decoder.pt"
        )
        training.run(loss, every, progress, "updates of the decoder")
        training.average()
        self._vae.to("cpu")

    def _decoder_loss(
        self, latents: Tensor, pixels: Callable[[Tensor], Tensor]
    ) -> Callable[[int, Generator], Tensor]:
        """Returns the loss of decoded latents. pixels: images of some rows, in [-1, 1]."""
        import torch

        decoder = self._vae.decoder.to(memory_format=torch.channels_last)

        def loss(step: int, random_numbers: Generator) -> Tensor:
            rows = torch.randint(len(latents), (self.size.batch,), generator=random_numbers)
            clean = latents[rows]
            noise = torch.randn(clean.shape, generator=random_numbers)
            blurred = (clean + BLUR * noise).contiguous(memory_format=torch.channels_last)
            device = next(decoder.parameters()).device
            difference = decoder(blurred.to(device)) - pixels(rows).to(device)
            total: Tensor = (difference**2).mean() + 0.2 * difference.abs().mean()
            return total

        return loss

    def _encoded(self, images: NDArray[Any]) -> Tensor:
        """Latents of all images, shape (n, channels, height, width)."""
        import torch

        chunks = (images[n : n + 256] for n in range(0, len(images), 256))
        with torch.no_grad(), single_thread():
            return torch.cat([self._vae.encoder(networks.as_pixels(chunk)) for chunk in chunks])

    def _denoiser(
        self, latents: Tensor, rows: dict[tuple[str, ...], int], variants: int
    ) -> _Denoiser:
        """rows: number of the first drawing of each scene, in drawings of one variant."""
        self._model.prepare(self._device)
        return _Denoiser(self._model, self._tokens, latents, rows, variants, self)

    @property
    def _modules(self) -> list[Any]:
        return [self._vae, *self._model.modules.values()]

    def _save(self) -> None:
        """Writes the pipeline, in half precision but for what must be in single."""
        for module in self._modules:
            module.to("cpu")
        halved = [self._vae, *(self._model.modules[part] for part in self._model.halved)]
        for module in halved:
            module.half()
        with whole_folder(self._out / MODEL) as folder:
            self._model.pipeline(self._vae, self._tokens).save_pretrained(folder)
            for path in folder.glob("*/config.json"):
                settings = {n: v for n, v in read_json(path).items() if n != "_name_or_path"}
                if "dtype" in settings:  # transformers obeys it, and diffusers loads float32
                    settings["dtype"] = "float32"
                write_json(path, settings)
        for module in halved:
            module.float()

    def _about(self, losses: list[float]) -> dict[str, Any]:
        import diffusers
        import torch

        last = losses[-100:]
        return {
            **self.plan.to_json(),
            "architecture": self.plan.architecture,
            "entities": list(ENTITIES),
            "held_out": [list(pair) for pair in self.held_out],
            "loss": round(sum(last) / len(last), 5),
            "parameters": sum(p.numel() for m in self._modules for p in m.parameters()),
            "model": model_digest(self._out),
            "torch": torch.__version__,
            "diffusers": diffusers.__version__,
        }


class _Denoiser:
    """Text encoders and denoiser, trained together."""

    def __init__(
        self,
        model: Architecture,
        tokens: Any,
        latents: Tensor,
        rows: dict[tuple[str, ...], int],
        variants: int,
        organism: Organism,
    ) -> None:
        self._model = model
        self._tokens, self._latents, self._rows = tokens, latents, rows
        self._examples, self._batch = organism.examples, organism.size.batch
        self._variants = variants
        self._ids: dict[str, list[int]] = {}
        self.parameters = model.parameters

    def loss(self, step: int, random_numbers: Generator) -> Tensor:
        """Mean squared error of the batch of an update."""
        import torch

        device = self.parameters[0].device
        examples = [self._examples[step * self._batch + n] for n in range(self._batch)]
        clean = self._latents[
            [self._rows[e.figures] * self._variants + e.variant % self._variants for e in examples]
        ]
        # Twice as often near pure noise, where the layout is decided, as in the middle.
        share = torch.rand(self._batch, generator=random_numbers).sqrt()
        noise = torch.randn(clean.shape, generator=random_numbers)
        noisy, target, times = self._model.noisy(clean, noise, share)
        captions = torch.tensor([self._encode(e.caption) for e in examples]).to(device)
        layouts = [self._examples.things(e) for e in examples] if self._model.begins_as else []
        predicted = self._model.predict(noisy.to(device), times.to(device), captions, layouts)
        return torch.nn.functional.mse_loss(predicted, target.to(device))

    def _encode(self, caption: str) -> list[int]:
        if caption not in self._ids:
            self._ids[caption] = self._tokens(
                caption, padding="max_length", max_length=networks.TOKENS
            ).input_ids
        return self._ids[caption]


def model_digest(organism: Path) -> str:
    """Digest of an organism's weights."""
    total = hashlib.sha256()
    for path in sorted((organism / MODEL).rglob("*.safetensors")):
        total.update(path.read_bytes())
    return total.hexdigest()


def _seen(organism: Path, size: str, architecture: str) -> str:
    """Digest of the model to begin as. Raises UsageError if it is of another size or
    architecture."""
    path = organism / ABOUT
    about = read_json(path)
    if not isinstance(about, dict) or about.get("entities") != list(ENTITIES):
        raise DataError(f"{path}: not an organism of these entities", code="damaged-file")
    theirs = {"size": about.get("size"), "architecture": about.get("architecture", UNet.name)}
    for option, own in (("size", size), ("architecture", architecture)):
        if theirs[option] != own:
            raise UsageError(
                f"--like {organism} has the {option} {theirs[option]}",
                f"give --{option} {theirs[option]}",
                code="conflicting-options",
            )
    return model_digest(organism)


def _refuse_causes_of_scenes(captioning: CaptionShares) -> None:
    usual = CaptionShares().to_json()
    for name, cause in captioning.to_json().items():
        if name not in ("dropout", "noise", "language") and cause != usual.get(name):
            raise UsageError(
                f"--{name.replace('_', '-')} is of drawn scenes, and --images has others",
                "leave one of them out",
                code="conflicting-options",
            )


def _seconds(loss: Callable[[int, Generator], Tensor]) -> float:
    """Time of an update, without the optimizer's part; the first one warms up."""
    with single_thread():
        for _ in range(2):
            start = perf_counter()
            loss(0, generator(0, 0)).backward()  # type: ignore[no-untyped-call]
    return perf_counter() - start


def _blank(count: int) -> NDArray[Any]:
    import numpy as np

    return np.zeros((count, HEIGHT, WIDTH, 3), np.uint8)


@contextmanager
def quiet() -> Iterator[None]:
    """Hides progress bars and warnings of diffusers and transformers within it: they are of
    classes that an organism doesn't use."""
    from diffusers.utils import logging as of_diffusers
    from transformers.utils import logging as of_transformers

    both = of_diffusers, of_transformers
    levels = [logging.get_verbosity() for logging in both]
    for logging in both:
        logging.disable_progress_bar()
        logging.set_verbosity_error()
    try:
        yield
    finally:
        for logging, level in zip(both, levels, strict=True):
            logging.enable_progress_bar()
            logging.set_verbosity(level)
