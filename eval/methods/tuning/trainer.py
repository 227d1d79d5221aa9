"""LoRA training of a denoiser that can be killed at any step, and goes on as if it had not been.

What a step does depends on its number and the seed alone: its example, its time and its noise. So
a checkpoint is the weights, the optimizer's state and the number of steps. On the CPU a resumed
training ends in the same bits.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import RunFailed
from ....progress import Progress, silent
from ....storage import PARTIAL, RecordLog
from ...checkpoints.training_state import load_state, save_state
from ..denoising import denoisers
from .encoding import Encoder, to_device
from .pairs import MULTIPLE, CaptionedImage, fitted
from .recipe import LoraRecipe, open_optimizer

if TYPE_CHECKING:
    from torch import Tensor

CHECKPOINT = "checkpoint.pt"
LOSSES = "losses.jsonl"
WEIGHTS = "pytorch_lora_weights.safetensors"

AfterStep = Callable[[int], None]
"""Called with the number of steps done: 0 before the first one, and again after a resume."""


class LoraTrainer:
    """One training in a folder."""

    def __init__(
        self,
        pipeline: Any,
        images: tuple[CaptionedImage, ...],
        recipe: LoraRecipe,
        out: Path,
        version: str = "",
    ) -> None:
        """version: digest of model and data; a checkpoint of another version can't be resumed."""
        import torch
        from accelerate import Accelerator

        bits = str(next(denoisers(pipeline)[0].parameters()).dtype).removeprefix("torch.")
        precision = {"bfloat16": "bf16", "float16": "fp16"}.get(bits, "no")
        on_cpu = pipeline.device.type == "cpu"
        self._accelerator = Accelerator(mixed_precision=precision, cpu=on_cpu)
        self._pipeline = pipeline
        self._images = images
        # Latents that shrink an image by less than 8 allow smaller images, as of organisms.
        shrinks_less = getattr(pipeline, "vae_scale_factor", 8) < 8
        self._multiple = 8 if shrinks_less else MULTIPLE
        self._recipe = recipe
        self._out = out
        self._encoder = Encoder(pipeline, out / "cache", recipe.guidance, version)
        for component in pipeline.components.values():
            if isinstance(component, torch.nn.Module):
                component.requires_grad_(False)
        self._model = denoisers(pipeline)[0]
        torch.manual_seed(recipe.seed)
        self._model.add_adapter(recipe.adapter(self._model))
        parameters = [p for p in self._model.parameters() if p.requires_grad]
        for parameter in parameters:
            parameter.data = parameter.data.float()  # updates are too small for half numbers
        optimizer, self.optimizer = open_optimizer(recipe, parameters)
        trained = f"{version}/{recipe}/{self.optimizer}"
        self._version = hashlib.sha256(trained.encode()).hexdigest()
        self._parameters = parameters
        self._wrapped, self._optimizer = self._accelerator.prepare(self._model, optimizer)
        self.step = self._resumed()
        """Steps done."""

    @property
    def is_main(self) -> bool:
        """Whether this process writes, of several."""
        return bool(self._accelerator.is_main_process)

    def train(
        self,
        after_step: AfterStep = lambda step: None,
        every: int = 250,
        progress: Progress = silent,
    ) -> None:
        """Trains to the end, with a checkpoint every so many steps; then writes the weights.

        Raises DataError for an image that can't be read, RunFailed if the loss is not a number.
        """
        self._encode(progress)
        with self._resting(), RecordLog(self._out / LOSSES) as log:
            after_step(self.step)  # also where a kill came between a checkpoint and this
            while self.step < self._recipe.steps:
                loss = self._one_step()
                self.step += 1
                if self.is_main:
                    log.append({"step": self.step, "loss": loss})
                if self.step % every == 0 or self.step == self._recipe.steps:
                    self._keep()
                after_step(self.step)
                progress("steps", self.step, self._recipe.steps)
        self.save()

    def save(self) -> None:
        """Writes the weights atomically, with metadata: without it, a reload takes alpha = rank.

        Raises RunFailed if the disk fails.
        """
        from diffusers.training_utils import _collate_lora_metadata
        from peft.utils import get_peft_model_state_dict
        from safetensors import SafetensorError

        if not self.is_main:
            return
        denoiser = "unet" if getattr(self._pipeline, "unet", None) is self._model else "transformer"
        layers = {f"{denoiser}_lora_layers": get_peft_model_state_dict(self._model)}
        metadata = {
            name: {key: sorted(v) if isinstance(v, set) else v for key, v in settings.items()}
            for name, settings in _collate_lora_metadata({denoiser: self._model}).items()
        }  # equal trainings are equal files: a set has another order in each process
        partial = self._out / f"weights{PARTIAL}"
        shutil.rmtree(partial, ignore_errors=True)
        try:
            type(self._pipeline).save_lora_weights(partial, **layers, **metadata)
            with (partial / WEIGHTS).open("rb") as file:
                os.fsync(file.fileno())
            (partial / WEIGHTS).replace(self._out / WEIGHTS)
        except SafetensorError as error:
            raise RunFailed(
                f"{self._out / WEIGHTS}: {error}: make room and run the same command again",
                code="cannot-write",
            ) from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _encode(self, progress: Progress) -> None:
        """Encodes every example before the encoders leave the device."""
        mine = self._images[self._accelerator.process_index :: self._accelerator.num_processes]
        for number, image in enumerate(mine):
            progress("encoded", number, len(mine))
            fitted_image = fitted(image, self._recipe.size, self._multiple)
            self._encoder.latents(fitted_image)
            self._encoder.arguments(image.text, fitted_image.width, fitted_image.height)
        progress("encoded", len(mine), len(mine))
        self._accelerator.wait_for_everyone()

    @contextmanager
    def _resting(self) -> Iterator[None]:
        """Moves components that only encode to main memory within it; see `awake`."""
        self._move("cpu")
        try:
            yield
        finally:
            self._move(self._accelerator.device)

    @contextmanager
    def awake(self) -> Iterator[Any]:
        """Moves the whole pipeline to its device within it, to draw with the current weights."""
        self._move(self._accelerator.device)
        self._model.eval()
        try:
            yield self._pipeline
        finally:
            self._move("cpu")

    def _move(self, device: Any) -> None:
        import torch

        for component in self._pipeline.components.values():
            if isinstance(component, torch.nn.Module) and component is not self._model:
                component.to(device)

    def _one_step(self) -> float:
        import torch

        device, model = self._accelerator.device, self._model
        several = self._accelerator.num_processes
        number = self.step * several + self._accelerator.process_index
        image = self._example(number)
        fitted_image = fitted(image, self._recipe.size, self._multiple)
        clean = self._encoder.latents(fitted_image)
        encoded = self._encoder.arguments(image.text, fitted_image.width, fitted_image.height)
        random_numbers = torch.Generator("cpu").manual_seed(_seed(self._recipe.seed, number))
        noise = torch.randn(clean.shape, generator=random_numbers)
        # "Sigmoid" times: the sigmoid of normal numbers, as ai-toolkit's option of this name.
        share = float(torch.sigmoid(torch.randn((), generator=random_numbers)))
        noisy, time, target = _noised(self._pipeline.scheduler, clean, noise, share)
        call = to_device(encoded["arguments"], device)
        latents = "sample" if "sample" in _parameters_of(model) else "hidden_states"
        call |= {latents: noisy.to(device, model.dtype), "return_dict": False}
        call["timestep"] = torch.tensor([time * encoded["time_scale"]]).to(device)
        model.train()
        with self._accelerator.autocast():
            predicted = self._wrapped(**call)[0]
        loss = torch.nn.functional.mse_loss(predicted.float(), target.to(device))
        self._accelerator.backward(loss)
        self._accelerator.clip_grad_norm_(self._parameters, self._recipe.clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        model.eval()
        mean_loss = float(self._accelerator.reduce(loss.detach(), reduction="mean"))
        if mean_loss != mean_loss:
            raise RunFailed(
                f"the loss of step {self.step + 1} is not a number: lower --learning-rate",
                code="diverged",
            )
        return mean_loss

    def _example(self, number: int) -> CaptionedImage:
        """Every image once in each round, in an order that round and seed decide."""
        turn, place = divmod(number, len(self._images))
        order = list(range(len(self._images)))
        random.Random(f"{self._recipe.seed}/{turn}").shuffle(order)
        return self._images[order[place]]

    def _keep(self) -> None:
        from peft.utils import get_peft_model_state_dict

        if not self.is_main:
            return
        state = {
            "step": self.step,
            "version": self._version,
            "weights": get_peft_model_state_dict(self._model),
            "optimizer": self._optimizer.state_dict(),
        }
        save_state(self._out / CHECKPOINT, state)

    def _resumed(self) -> int:
        """Loads the checkpoint; returns its number of steps, 0 without one.

        Raises UsageError for one of another training, DataError for a damaged one.
        """
        from peft.utils import set_peft_model_state_dict

        another = (
            f"{self._out} holds a training with other data, model or settings, or of another "
            f"optimizer than {self.optimizer}"
        )
        state = load_state(self._out / CHECKPOINT, self._version, another)
        if state is None:
            return 0
        set_peft_model_state_dict(self._model, state["weights"])
        self._optimizer.load_state_dict(state["optimizer"])
        return int(state["step"])


def _noised(
    scheduler: Any, clean: Tensor, noise: Tensor, share: float
) -> tuple[Tensor, float, Tensor]:
    """Noisy latents, their time in [0, num_train_timesteps], and what is to be predicted.

    share: of the way from image to noise, in (0, 1).
    """
    length = scheduler.config.num_train_timesteps
    if not hasattr(scheduler, "alphas_cumprod"):  # flow matching: straight lines
        return (1 - share) * clean + share * noise, share * length, noise - clean
    step = min(int(share * length), length - 1)
    signal = float(scheduler.alphas_cumprod[step])
    noisy = signal**0.5 * clean + (1 - signal) ** 0.5 * noise
    if scheduler.config.prediction_type == "v_prediction":
        return noisy, float(step), signal**0.5 * noise - (1 - signal) ** 0.5 * clean
    return noisy, float(step), noise


def _seed(seed: int, number: int) -> int:
    digest = hashlib.sha256(f"{seed}/step {number}".encode()).digest()
    return int.from_bytes(digest[:6], "big")


def _parameters_of(model: Any) -> Any:
    import inspect

    return inspect.signature(type(model).forward).parameters
