"""Pipelines of diffusers: which class draws from which files, what it takes, and loading it."""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin

from ...errors import UsageError
from .placement import Checkpoint, LoadError, Placement, first_line
from .processors import pipeline_processor
from .schedulers import SchedulerChoice

INDEX = "model_index.json"
MODULAR_INDEX = "modular_model_index.json"
REMOTE_CODE = "modular_config.json"
"""File in which a repository of modular blocks names the code of its own that they need."""
LORA_FILE = "pytorch_lora_weights.safetensors"
"""The weights' usual name."""
REMEMBERED = 8
"""Calls of a text encoder whose outputs are kept: prompts of some rows, and the negative one."""

Scalar = bool | int | float | str
DECIDED = (
    "prompt",
    "image",
    "generator",
    "output_type",
    "return_dict",
    "num_images_per_prompt",
)
"""Arguments that a request decides."""
ARRAYS = ("image_latents", "latents", "timesteps", "sigmas", "resized_image", "mask_image")
"""Inputs of modular pipelines that no text can give."""


@dataclass(frozen=True)
class PipelineClass:
    """A class of diffusers that draws from a checkpoint."""

    kind: Any
    """Subclass of `DiffusionPipeline` or `ModularPipeline`."""
    blocks: Any = None
    """Blocks of a modular pipeline; None for a classic one."""

    @classmethod
    def find(cls, checkpoint: Checkpoint, name: str = "") -> Self:
        """The class that the checkpoint names, or another one of diffusers for the same weights.

        Raises UsageError for one that diffusers doesn't have: code that comes with a model is not
        run.
        """
        import diffusers

        index: Mapping[str, Any] = {}
        if checkpoint.marker == MODULAR_INDEX:
            _refuse_remote_code(checkpoint)
            index = diffusers.ModularPipeline.load_config(
                checkpoint.source, revision=checkpoint.commit
            )
        elif not name:
            index = diffusers.DiffusionPipeline.load_config(
                checkpoint.source, revision=checkpoint.commit
            )
        class_name = name or index.get("_class_name")
        kind = getattr(diffusers, class_name, None) if isinstance(class_name, str) else None
        bases = (diffusers.DiffusionPipeline, diffusers.ModularPipeline)
        if not (inspect.isclass(kind) and issubclass(kind, bases)):
            raise UsageError(
                f"{checkpoint.name}: diffusers {diffusers.__version__} has no pipeline "
                f"{class_name!r}; code that comes with a model is not run",
                code="remote-code",
            )
        if not issubclass(kind, diffusers.ModularPipeline):
            return cls(kind)
        wanted = index.get("_blocks_class_name") or kind.default_blocks_name
        blocks = getattr(diffusers, wanted, None) if isinstance(wanted, str) else None
        if not getattr(blocks, "block_classes", None):
            # diffusers would silently take the class's usual blocks instead.
            raise UsageError(
                f"{checkpoint.name}: diffusers {diffusers.__version__} has no blocks {wanted!r}; "
                "code that comes with a model is not run",
                code="remote-code",
            )
        built_blocks = blocks()  # type: ignore[misc]
        if "images" not in built_blocks.output_names:
            raise UsageError(
                f"{checkpoint.name}: {kind.__name__} makes no images", code="wrong-model"
            )
        return cls(kind, built_blocks)

    @property
    def name(self) -> str:
        """Name of the class."""
        return str(self.kind.__name__)

    @cached_property
    def inputs(self) -> Mapping[str, set[type]]:
        """Every argument of a call, with the scalar types that it takes."""
        if self.blocks is not None:
            return {p.name: _types(p.type_hint, p.default, p.name) for p in self.blocks.inputs}
        parameters = inspect.signature(self.kind.__call__).parameters
        return {name: _annotated(p.annotation) for name, p in parameters.items()}

    @property
    def options(self) -> dict[str, set[type]]:
        """Arguments of a call that a spec can give, each with the types that it takes."""
        inputs = self.inputs.items()
        return {name: types for name, types in inputs if types and name not in DECIDED}

    def default(self, name: str) -> Any:
        """Default of an argument of a call; None if it has none."""
        if self.blocks is not None:
            return next((p.default for p in self.blocks.inputs if p.name == name), None)
        parameter = inspect.signature(self.kind.__call__).parameters.get(name)
        has_default = parameter is not None and parameter.default is not inspect.Parameter.empty
        return parameter.default if parameter is not None and has_default else None

    @property
    def edits(self) -> bool:
        """Whether it takes an image."""
        return "image" in self.inputs

    def editor(self) -> str:
        """Name of the class that edits with the same weights; empty where diffusers has none."""
        from diffusers.pipelines import auto_pipeline

        edits = auto_pipeline.AUTO_IMAGE2IMAGE_PIPELINES_MAPPING
        for model, kind in auto_pipeline.AUTO_TEXT2IMAGE_PIPELINES_MAPPING.items():
            if kind is self.kind and model in edits:
                return str(edits[model].__name__)
        return ""


def find_files(model: str, revision: str | None) -> Checkpoint:
    """A pipeline's files, a classic one's or a modular one's. Raises UsageError for neither."""
    try:
        return Checkpoint.find(model, revision, INDEX)
    except UsageError as error:
        if not model:
            raise
        try:
            return Checkpoint.find(model, revision, MODULAR_INDEX)
        except UsageError:
            raise error from None


@dataclass(frozen=True)
class LoraFile:
    """Low-rank weights that are added to a pipeline's own."""

    source: str
    """Folder, or repository of the Hub."""
    file: str
    """Name of the file."""
    commit: str | None
    """Commit of a repository; None for a folder."""
    version: str
    """The commit, or the digest of the file."""
    scale: float = 1.0
    """Factor of the low-rank weights."""

    @classmethod
    def find(cls, lora: str, file: str, revision: str | None, scale: float) -> Self:
        """Raises UsageError where there is no such file or repository."""
        path = Path(lora)
        if path.is_file():
            path, file = path.parent, path.name
        if path.is_dir() and lora:
            weights = path / file
            if revision:
                raise UsageError(
                    f"{lora} is a folder and has no revision {revision!r}", code="no-revision"
                )
            if not weights.is_file():
                raise UsageError(
                    f"{lora} holds no {file}: name it with lora_file=", code="no-such-file"
                )
            with weights.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            return cls(str(path), file, None, f"sha256:{digest[:16]}", scale)
        checkpoint = Checkpoint.find(lora, revision, file)
        return cls(checkpoint.source, file, checkpoint.commit, checkpoint.version, scale)

    def identity(self) -> dict[str, str]:
        name = self.source if self.commit else self.file
        identity = {"lora": name, "lora_revision": self.version}
        return identity if self.scale == 1 else {**identity, "lora_scale": f"{self.scale:g}"}

    def add(self, pipeline: Any) -> None:
        """Raises LoadError where weights don't fit: diffusers only warns, and draws without."""
        if not hasattr(pipeline, "load_lora_weights"):
            raise LoadError(f"{type(pipeline).__name__} takes no LoRA", code="wrong-model")
        with _warnings() as warnings:
            pipeline.load_lora_weights(
                self.source, weight_name=self.file, revision=self.commit, adapter_name="lora"
            )
        added = [
            adapters for adapters in pipeline.get_list_adapters().values() if "lora" in adapters
        ]
        unfit = [text for text in warnings if "unexpected keys" in text.lower()]
        if unfit or not added:
            reason = first_line(ValueError(unfit[0])) if unfit else "none of its weights fits"
            raise LoadError(
                f"the LoRA {self.file} is not of {type(pipeline).__name__}: {reason}",
                code="wrong-model",
            )
        pipeline.set_adapters("lora", self.scale)


@dataclass(frozen=True)
class Loading:
    """How a pipeline is loaded."""

    placement: Placement
    """Where it computes, and in which numbers."""
    offload: str = "false"
    """`true`: parts that are not in use wait in main memory; `sequential`: layers do, too."""
    compile: bool = False
    """Whether the denoiser is compiled: faster after the first image, and other last digits."""
    lora: LoraFile | None = None
    """Weights to add."""
    scheduler: SchedulerChoice | None = None
    """Scheduler in place of the checkpoint's; None for its own."""

    def load(self, checkpoint: Checkpoint, drawing: PipelineClass) -> Any:
        """The pipeline, ready to be called. Raises LoadError."""
        try:
            make = self._classic if drawing.blocks is None else self._modular
            pipeline = make(checkpoint, drawing)
            _silence(pipeline)
            if self.scheduler is not None:
                self.scheduler.apply(pipeline)
            if self.lora is not None:
                self.lora.add(pipeline)
            remember_texts(pipeline)  # before hooks of offloading, which put themselves around it
            if self.compile:
                for name in ("transformer", "transformer_2", "unet"):
                    if (denoiser := getattr(pipeline, name, None)) is not None:
                        denoiser.compile()
            return self._placed(pipeline, drawing)
        except LoadError:
            raise
        except Exception as error:  # whatever its files or the device make of it
            raise LoadError(
                f"{checkpoint.name} can't be loaded: {error}", code="load-failed"
            ) from error

    def _classic(self, checkpoint: Checkpoint, drawing: PipelineClass) -> Any:
        processor = pipeline_processor(checkpoint.source, checkpoint.commit)
        dtype = self.placement.torch_dtype
        return checkpoint.load(drawing.kind, dtype=dtype, **processor)

    def _modular(self, checkpoint: Checkpoint, drawing: PipelineClass) -> Any:
        # Not `from_pretrained`: that looks for code in the repository, and may ask a person.
        pipeline = drawing.kind(
            blocks=drawing.blocks,
            pretrained_model_name_or_path=checkpoint.source,
            revision=checkpoint.commit,
        )
        commits = component_commits(checkpoint, pipeline)
        with _warnings() as warnings:
            pipeline.load_components(dtype=self.placement.torch_dtype, revision=commits)
        if missing := [name for name in commits if getattr(pipeline, name, None) is None]:
            why = next((line for text in warnings for line in text.splitlines()[::-1] if line), "")
            raise LoadError(
                f"{checkpoint.name}: {missing[0]} can't be loaded: {why}", code="load-failed"
            )
        return pipeline

    def _placed(self, pipeline: Any, drawing: PipelineClass) -> Any:
        device = self.placement.device
        if self.offload == "false":
            return pipeline.to(device)
        if drawing.blocks is not None:
            from diffusers import ComponentsManager

            manager: Any = ComponentsManager()  # type: ignore[no-untyped-call]
            manager.enable_auto_cpu_offload(device=device)
            for name, component in pipeline.components.items():
                manager.add(name, component)
        elif self.offload == "sequential":
            pipeline.enable_sequential_cpu_offload(device=device)
        else:
            pipeline.enable_model_cpu_offload(device=device)
        return pipeline


def _silence(pipeline: Any) -> None:
    """Draws no progress bars, in nested blocks neither."""
    if hasattr(pipeline, "set_progress_bar_config"):
        pipeline.set_progress_bar_config(disable=True)
    for block in getattr(getattr(pipeline, "_blocks", pipeline), "sub_blocks", {}).values():
        _silence(block)


def component_commits(checkpoint: Checkpoint, pipeline: Any) -> dict[str, str | None]:
    """Part of a modular pipeline -> the commit that it is loaded at; None for files in a folder.

    Parts may be in other repositories, and their index need not say at which commit.
    """
    commits: dict[str, str | None] = {}
    for name in pipeline.pretrained_component_names:
        spec = pipeline.get_component_spec(name)
        where = spec.pretrained_model_name_or_path
        if not where:
            continue
        if where == checkpoint.source:
            commits[name] = checkpoint.commit
        elif Path(where).is_dir():
            commits[name] = None
        else:
            commits[name] = _commit_of(where, spec.revision, spec.subfolder)
    return commits


def _commit_of(repo: str, revision: str | None, subfolder: str | None) -> str:
    import huggingface_hub

    pattern = f"{subfolder}/*.json" if subfolder else "*.json"
    path = huggingface_hub.snapshot_download(repo, revision=revision, allow_patterns=[pattern])
    return Path(path).name


def _refuse_remote_code(checkpoint: Checkpoint) -> None:
    try:
        Checkpoint.find(checkpoint.source, checkpoint.commit, REMOTE_CODE)
    except UsageError:
        return
    raise UsageError(
        f"{checkpoint.name}: code that comes with a model is not run", code="remote-code"
    )


def remember_texts(pipeline: Any) -> None:
    """Makes text encoders give the same outputs to the same inputs without computing them again.

    Four seeds of a prompt then encode it once. The outputs are those that were computed, so no
    image changes.
    """
    import torch

    for name, component in pipeline.components.items():
        if name.startswith("text_encoder") and isinstance(component, torch.nn.Module):
            component.forward = _remembering(component.forward)


def _remembering(forward: Callable[..., Any]) -> Callable[..., Any]:
    outputs: OrderedDict[str, Any] = OrderedDict()

    @wraps(forward)
    def remembered(*args: Any, **kwargs: Any) -> Any:
        key = _key((args, kwargs))
        if key is None:
            return forward(*args, **kwargs)
        if key not in outputs:
            outputs[key] = forward(*args, **kwargs)
            while len(outputs) > REMEMBERED:
                outputs.popitem(last=False)
        outputs.move_to_end(key)
        return _copied(outputs[key])

    return remembered


def _key(value: Any) -> str | None:
    """The digest of a call's arguments; None where one of them is no plain value or tensor."""
    digest = hashlib.sha256()
    return digest.hexdigest() if _feed(digest, value) else None


def _feed(digest: Any, value: Any) -> bool:
    import torch

    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            return False
        plain = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(f"{value.dtype}{tuple(value.shape)}{value.device}".encode())
        digest.update(plain.numpy().tobytes())
        return True
    if isinstance(value, Mapping):
        return all(_feed(digest, element) for item in sorted(value.items()) for element in item)
    if isinstance(value, list | tuple):
        digest.update(f"{len(value)}[".encode())
        return all(_feed(digest, element) for element in value)
    digest.update(f"{value!r};".encode())
    return value is None or isinstance(value, bool | int | float | str)


def _copied(value: Any) -> Any:
    """The output with tensors of its own: what a pipeline changes in place stays its own."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, Mapping):  # an output of transformers
        return type(value)(**{name: _copied(element) for name, element in value.items()})
    if isinstance(value, list | tuple):
        return type(value)(_copied(element) for element in value)
    return value


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collects the warnings of diffusers instead of printing them."""
    messages: list[str] = []
    logger = logging.getLogger("diffusers")
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    handlers, logger.handlers = logger.handlers, [handler]
    try:
        yield messages
    finally:
        logger.handlers = handlers


def _annotated(annotation: Any) -> set[type]:
    either = get_origin(annotation) in (Union, UnionType)
    return {*get_args(Scalar)} & {*(get_args(annotation) if either else (annotation,))}


def _types(hint: Any, default: Any, name: str) -> set[type]:
    """Types of an input that need not say its type: that of its default, or any."""
    if hint is not None:
        return _annotated(hint)
    if default is not None:
        may_be_part = type(default) is int and not name.startswith("num_")
        return _annotated(type(default)) | ({float} if may_be_part else set())
    return set() if name in ARRAYS or name is None else {*get_args(Scalar)}
