"""Processors of vision-language models, without their video half.

transformers' video processors need torchvision even where no video is shown; torchvision's wheel is
linked to CUDA and breaks every import of transformers on a machine without it. The image half runs
on Pillow.
"""

from __future__ import annotations

from typing import Any

VIDEO = "video_processor"


def load_processor(source: str, revision: str | None = None) -> Any:
    """Loads a processor; only its image half if the whole one needs torchvision."""
    from transformers import AutoConfig, AutoProcessor
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    config = AutoConfig.from_pretrained(source, revision=revision)
    kind: Any = PROCESSOR_MAPPING.get(type(config), None)
    loader = AutoProcessor if kind is None or not needs_torchvision(kind) else image_only(kind)
    return loader.from_pretrained(source, revision=revision)


def pipeline_processor(source: str, revision: str | None = None) -> dict[str, Any]:
    """The `processor` component of a diffusers pipeline, where it must be the image half alone.

    Empty for every other pipeline: `DiffusionPipeline.from_pretrained` then loads its own.
    """
    import transformers
    from diffusers import DiffusionPipeline

    components: Any = DiffusionPipeline.load_config(source, revision=revision)
    library, name = components.get("processor") or (None, "")
    if library != "transformers" or not needs_torchvision(kind := getattr(transformers, name)):
        return {}
    loader = image_only(kind)
    return {"processor": loader.from_pretrained(source, subfolder="processor", revision=revision)}


def needs_torchvision(kind: Any) -> bool:
    """Whether this processor class has a video half that can't be loaded here."""
    from transformers.utils.import_utils import is_torchvision_available

    return VIDEO in kind.get_attributes() and not is_torchvision_available()


def image_only(kind: Any) -> Any:
    """The processor class without its video half; saves and loads under the class's own name.

    The video half must be the last part that the class is made of, as it is with Qwen-VL, InternVL,
    GLM-V, SmolVLM and LLaVA-OneVision.
    """

    class ImageOnly(kind):  # type: ignore[misc]
        @classmethod
        def get_attributes(cls) -> list[str]:
            # transformers loads, checks and saves the parts that this names.
            return [name for name in super().get_attributes() if name != VIDEO]

    ImageOnly.__name__ = ImageOnly.__qualname__ = kind.__name__
    ImageOnly.__module__ = kind.__module__
    return ImageOnly
