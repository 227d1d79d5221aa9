"""Graph models of TensorFlow.js, run by torch: a JSON of nodes beside a file of weights.

Only what convolutional detectors are made of; any other operation is refused when the file is read.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from counterprior.eval.detectors import DetectorError

if TYPE_CHECKING:
    from torch import Tensor

Node = Mapping[str, Any]
MISSING = "is not among the operations here"


class GraphModel:
    """A graph of one input, with the weights that stand beside it."""

    def __init__(self, path: Path) -> None:
        """Raises DetectorError for a file that is no such graph, or needs an unknown operation."""
        try:
            graph = json.loads(path.read_text("utf-8"))
            nodes = graph["modelTopology"]["node"]
            (group,) = graph["weightsManifest"]
            data = b"".join((path.parent / name).read_bytes() for name in group["paths"])
            self._weights = _weights(group["weights"], data)
            self._outputs = [one["name"] for one in graph["signature"]["outputs"].values()]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DetectorError(
                f"{path} is not a graph of TensorFlow.js ({error!r})", code="no-such-file"
            ) from None
        self._nodes = [node for node in nodes if node["op"] != "Const"]
        if unknown := sorted({node["op"] for node in self._nodes} - {"Placeholder", *OPERATIONS}):
            raise DetectorError(f"{path} needs {unknown[0]}, which {MISSING}", code="unsupported")
        self.digest = hashlib.sha256(path.read_bytes() + data).hexdigest()

    def run(self, pixels: Tensor) -> list[Tensor]:
        """The outputs for an input, as the signature lists them."""
        import torch

        known: dict[str, Any] = dict(self._weights)
        with torch.inference_mode():
            for node in self._nodes:
                inputs = [_value(known, name) for name in node.get("input", ())]
                known[node["name"]] = OPERATIONS[node["op"]](node, *inputs) if inputs else pixels
        return [_value(known, name) for name in self._outputs]


def _value(known: Mapping[str, Any], name: str) -> Any:
    """What ``NODE`` or ``NODE:INDEX`` names; only a split has more than one output."""
    node, _, index = name.partition(":")
    found = known[node]
    return found[int(index or 0)] if isinstance(found, tuple) else found


def _weights(entries: Sequence[Mapping[str, Any]], data: bytes) -> dict[str, Tensor]:
    """Name -> tensor; half precision on disk becomes single. Raises ValueError for a short file."""
    import torch

    found, start = {}, 0
    for entry in entries:
        stored = entry.get("quantization", {}).get("dtype", entry["dtype"])
        if stored not in ("float16", "float32", "int32"):
            raise ValueError(f"weights of {stored}")
        count = int(np.prod(entry["shape"]))
        values = np.frombuffer(data, stored, count, start).reshape(entry["shape"])
        found[entry["name"]] = torch.from_numpy(values.astype(entry["dtype"]))
        start += values.nbytes
    return found


def _pair(node: Node, name: str) -> list[int]:
    """Rows and columns of an attribute that has a number for each axis of (N, H, W, C)."""
    return [int(number) for number in node["attr"][name]["list"]["i"]][1:3]


def _unpadded(node: Node) -> None:
    """Raises DetectorError unless images are (N, H, W, C) and padded by nodes of their own."""
    said = [b64decode(node["attr"][name]["s"]) for name in ("padding", "data_format")]
    if said != [b"VALID", b"NHWC"]:
        raise DetectorError(f"{node['name']}: {said} {MISSING}", code="unsupported")


def _through_torch(name: str, images: Tensor, *more: Any, **options: Any) -> Tensor:
    """An operation of ``torch.nn.functional`` on images (N, H, W, C)."""
    import torch

    operation = getattr(torch.nn.functional, name)
    made: Tensor = operation(images.permute(0, 3, 1, 2), *more, **options)
    return made.permute(0, 2, 3, 1)


def _convolved(node: Node, images: Tensor, kernels: Tensor) -> Tensor:
    _unpadded(node)
    steps = {"stride": _pair(node, "strides"), "dilation": _pair(node, "dilations")}
    return _through_torch("conv2d", images, kernels.permute(3, 2, 0, 1), **steps)


def _pooled(node: Node, images: Tensor) -> Tensor:
    _unpadded(node)
    return _through_torch("max_pool2d", images, _pair(node, "ksize"), _pair(node, "strides"))


def _resized(node: Node, images: Tensor, size: Tensor) -> Tensor:
    if not node["attr"]["half_pixel_centers"]["b"]:
        raise DetectorError(
            f"{node['name']}: corners are not among the operations here", code="unsupported"
        )
    return _through_torch("interpolate", images, size.tolist(), mode="bilinear")


def _padded(node: Node, values: Tensor, widths: Tensor, filling: float = 0.0) -> Tensor:
    from torch.nn.functional import pad

    # torch counts from the last axis.
    return pad(values, widths.flip(0).flatten().tolist(), value=float(filling))


def _concatenated(node: Node, *parts: Tensor) -> Tensor:
    import torch

    return torch.cat(parts[:-1], dim=int(parts[-1]))


def _dense(node: Node, where: Tensor, shape: Tensor, values: Tensor, default: Tensor) -> Tensor:
    dense = default.expand(shape.tolist()).clone()
    dense[tuple(where.long().T)] = values
    return dense


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda node, a, b: a + b,
    "AddV2": lambda node, a, b: a + b,
    "ConcatV2": _concatenated,
    "Conv2D": _convolved,
    "Identity": lambda node, values: values,
    "LeakyRelu": lambda node, x: x.where(x > 0, x * node["attr"]["alpha"]["f"]),
    "MaxPool": _pooled,
    "Pad": _padded,
    "PadV2": _padded,
    "Reshape": lambda node, values, shape: values.reshape(shape.tolist()),
    "ResizeBilinear": _resized,
    "Sigmoid": lambda node, values: values.sigmoid(),
    "SparseToDense": _dense,
    "SplitV": lambda node, values, sizes, axis: values.split(sizes.tolist(), int(axis)),
    "Transpose": lambda node, values, order: values.permute(order.tolist()),
}
"""Name in the graph -> function of its node and inputs."""
