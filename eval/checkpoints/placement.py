"""A model that runs here: which files it is, and where and how precisely it computes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import RunFailed, UsageError
from ...specs import Options

if TYPE_CHECKING:
    import torch

Dtype = Literal["float32", "bfloat16", "float16"]


class DeviceOptions(Options):
    """Where a model computes."""

    device: str | None = None
    """Device as torch names it, such as `cpu` or `cuda:1`; by default a GPU if there is one."""


class ModelOptions(DeviceOptions):
    """Options of a model that runs here."""

    revision: str | None = None
    """Branch, tag or commit on the Hub. The run records the commit."""
    dtype: Dtype | None = None
    """Number format of the computation; by default float32 on the CPU and bfloat16 elsewhere."""


class LoadError(RunFailed):
    """A model whose files can't be loaded: it ends the run, as no item can be done without it."""


@dataclass(frozen=True)
class Checkpoint:
    """A folder, or a repository of the Hub at one commit."""

    source: str
    """Argument of `from_pretrained`: a folder or a repository."""
    commit: str | None
    """Commit of a repository; None for a folder."""
    version: str
    """The commit, or the digest of a folder's files."""
    marker: str = ""
    """The file by which it was found."""

    @classmethod
    def find(cls, model: str, revision: str | None, marker: str) -> Checkpoint:
        """Resolves a branch or tag to its current commit.

        marker: file at the top that tells what the model is, e.g. ``model_index.json``. Raises
        UsageError where there is neither such a folder nor such a repository.
        """
        if not model:
            raise UsageError(
                "name a model: a folder, or NAMESPACE/NAME on the Hub", code="missing-option"
            )
        folder = Path(model)
        if folder.is_dir():
            if revision:
                raise UsageError(
                    f"{model} is a folder and has no revision {revision!r}", code="no-revision"
                )
            if not (folder / marker).is_file():
                raise UsageError(f"{model} holds no {marker}", code="no-such-file")
            return cls(str(folder), None, f"sha256:{_digest(folder)[:16]}", marker)
        import huggingface_hub

        try:
            path = huggingface_hub.hf_hub_download(model, marker, revision=revision)
        except (OSError, ValueError) as error:
            problem = f"neither a folder nor readable on the Hub: {first_line(error)}"
            raise UsageError(f"{model}: {problem}", code="wrong-model") from None
        commit = Path(path).parent.name
        return cls(model, commit, commit, marker)

    @property
    def name(self) -> str:
        """The repository, or the folder's own name without its path."""
        return self.source if self.commit else Path(self.source).resolve().name

    def load(self, loader: Any, **options: Any) -> Any:
        """Loads exactly these files by ``loader.from_pretrained``."""
        return loader.from_pretrained(self.source, revision=self.commit, **options)

    def file(self, name: str) -> Path:
        """The path of one of its files, downloaded where it is not there yet."""
        if self.commit is None:
            return Path(self.source) / name
        import huggingface_hub

        return Path(huggingface_hub.hf_hub_download(self.source, name, revision=self.commit))


def first_line(error: Exception) -> str:
    """The first line of an error, without the advice that libraries append."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _digest(folder: Path) -> str:
    """SHA-256 over names and contents of a folder's files, hidden ones left out."""
    total = hashlib.sha256()
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    for name in sorted(n for n in names if not any(part.startswith(".") for part in n.parts)):
        with (folder / name).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{name.as_posix()} {content}\n".encode())
    return total.hexdigest()


def find_device(name: str | None) -> str:
    """The device of that name; without one, a GPU if there is one.

    Raises UsageError for a device that is not there.
    """
    import torch

    device = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise UsageError(
            f"device {device!r} is not available; try device=cpu", code="no-device"
        ) from None
    return device


@dataclass(frozen=True)
class Placement:
    """Where a model computes, and in which numbers; both can change a result."""

    device: str
    """As torch names it: `cpu`, `cuda`, `cuda:1`, `mps`."""
    dtype: Dtype
    """Numbers that it computes in."""

    @classmethod
    def find(cls, device: str | None = None, dtype: Dtype | None = None) -> Placement:
        """Placement on the best device, by default in bfloat16, on the CPU in float32.

        Raises UsageError for a device that is not there.
        """
        device = find_device(device)
        return cls(device, dtype or ("float32" if device == "cpu" else "bfloat16"))

    @property
    def torch_dtype(self) -> torch.dtype:
        import torch

        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

    def identity(self) -> dict[str, str]:
        """Device (without its number), numbers, and the version of torch."""
        import torch

        device = self.device.partition(":")[0]
        return {"device": device, "dtype": self.dtype, "torch": torch.__version__}
