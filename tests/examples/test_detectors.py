"""The detectors of examples/, opened by specs: NanoDet on a small graph with known answers."""

import json
import math
from base64 import b64encode
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grid import distinct
from nanodet import SIDE, STEPS, STRIDES, decode
from open_images_ssd import anchors
from open_images_ssd import decode as decode_offsets
from PIL import Image
from refusals import raises
from tfjs import OPERATIONS, GraphModel

from counterprior.eval.detectors import Detection, DetectorError, Request, open_detector
from counterprior.eval.detectors.loading import COCO
from counterprior.eval.geometry.boxes import Box

torch = pytest.importorskip("torch")

NANODET = "python:nanodet:open_nanodet"
TEXT = {"padding": "VALID", "data_format": "NHWC"}


class Graph:
    """Builds a graph and the file of its weights."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"name": "in", "op": "Placeholder"}]
        self.weights: list[dict[str, Any]] = []
        self.data = b""

    def constant(self, values: Any, half: bool = False) -> str:
        array, name = np.asarray(values), f"w{len(self.weights)}"
        array = array.astype("float32" if array.dtype.kind == "f" else "int32")
        entry = {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)}
        if half:
            array, entry["quantization"] = array.astype("float16"), {"dtype": "float16"}
        self.nodes.append({"name": name, "op": "Const"})
        self.weights.append(entry)
        self.data += array.tobytes()
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op}{len(self.nodes)}"
        attr = {k: {"list": {"i": v}} for k, v in attributes.items() if isinstance(v, list)}
        attr |= {k: v for k, v in attributes.items() if isinstance(v, dict)}
        if op in ("Conv2D", "MaxPool"):
            attr |= {k: {"s": b64encode(v.encode()).decode()} for k, v in TEXT.items()}
        self.nodes.append({"name": name, "op": op, "input": list(inputs), "attr": attr})
        return name

    def write(self, path: Path, *outputs: str) -> Path:
        signature = {"outputs": {name: {"name": f"{name}:0"} for name in outputs}}
        group = {"paths": [path.with_suffix(".bin").name], "weights": self.weights}
        graph = {"modelTopology": {"node": self.nodes}, "signature": signature}
        path.write_text(json.dumps(graph | {"weightsManifest": [group]}))
        path.with_suffix(".bin").write_bytes(self.data)
        return path


def test_every_operation_is_what_it_is_called(tmp_path: Path) -> None:
    graph, rng = Graph(), np.random.default_rng(0)
    picture = rng.normal(size=(1, 2, 5, 6)).astype("float32")
    kernels = rng.normal(size=(2, 3, 2, 4)).astype("float16").astype("float32")
    nhwc, nchw = graph.constant([0, 2, 3, 1]), graph.constant([0, 3, 1, 2])
    edges = graph.constant([[0, 0], [0, 0], [1, 0], [2, 1]])
    padded = graph.node("Pad", "in", edges)
    low = graph.node("PadV2", "in", edges, graph.constant(-9.0))
    strides = ["1", "2", "1", "1"]
    turned = graph.node("Transpose", padded, nhwc)
    made = graph.node(
        "Conv2D", turned, graph.constant(kernels, half=True), strides=strides, dilations=["1"] * 4
    )
    pooled = graph.node(
        "MaxPool", graph.node("Transpose", low, nhwc), strides=strides, ksize=["1", "2", "3", "1"]
    )
    leaky = graph.node("LeakyRelu", made, alpha={"f": 0.1})
    larger = graph.node(
        "ResizeBilinear", leaky, graph.constant([6, 14]), half_pixel_centers={"b": True}
    )
    joined = graph.node("ConcatV2", leaky, pooled, graph.constant(3))
    parts = graph.node("SplitV", joined, graph.constant([5, 1]), graph.constant(3))
    last = graph.node("Sigmoid", f"{parts}:1")
    nothing = (
        graph.constant(np.zeros((0, 1), int)),
        graph.constant([2]),
        graph.constant(np.zeros(0, int)),
        graph.constant(3),
    )
    shape = graph.node("AddV2", graph.node("SparseToDense", *nothing), graph.constant([0, 4]))
    flat = graph.node("Reshape", graph.node("Identity", last), shape)
    twice = graph.node("Add", flat, flat)
    path = graph.write(
        tmp_path / "g.json", leaky, pooled, larger, twice, graph.node("Transpose", leaky, nchw)
    )
    assert {n["op"] for n in graph.nodes} - {"Placeholder", "Const"} == set(OPERATIONS)
    outputs = [one.numpy() for one in GraphModel(path).run(torch.from_numpy(picture))]

    wide = np.pad(picture, ((0, 0), (0, 0), (1, 0), (2, 1))).transpose(0, 2, 3, 1)[0]
    expected = np.empty((3, 7, 4))
    for row in range(3):
        for column in range(7):
            window = wide[2 * row : 2 * row + 2, column : column + 3]
            expected[row, column] = np.tensordot(window, kernels, 3)
    expected = np.where(expected > 0, expected, 0.1 * expected)
    assert outputs[0][0] == pytest.approx(expected, abs=1e-5)
    assert outputs[4][0] == pytest.approx(expected.transpose(2, 0, 1), abs=1e-5)
    deep = np.pad(picture, ((0, 0), (0, 0), (1, 0), (2, 1)), constant_values=-9)[0]
    most = [
        [deep[:, 2 * r : 2 * r + 2, c : c + 3].max(axis=(1, 2)) for c in range(7)] for r in range(3)
    ]
    assert outputs[1][0] == pytest.approx(np.array(most))
    assert outputs[2].shape == (1, 6, 14, 4)
    # Twice as large, middles of pixels a quarter apart: the first row is the first row.
    between = 0.75 * expected[:, :-1] + 0.25 * expected[:, 1:]
    assert outputs[2][0, 0, 1:-1:2] == pytest.approx(between[0], abs=1e-5)
    chances = 1 / (1 + np.exp(-np.array(most)[..., 1]))
    assert outputs[3] == pytest.approx(2 * chances, abs=1e-5)


def test_graphs_that_are_none_are_named(tmp_path: Path) -> None:
    graph = Graph()
    strange = graph.write(tmp_path / "s.json", graph.node("Einsum", "in"))
    with raises("unsupported", "Einsum", error=DetectorError):
        GraphModel(strange)
    graph = Graph()
    graph.constant(np.zeros((2, 2)))
    short = graph.write(tmp_path / "t.json", "in")
    short.with_suffix(".bin").write_bytes(b"\0" * 12)
    for path in (short, tmp_path / "gone.json"):
        with raises("no-such-file", path.name, error=DetectorError):
            GraphModel(path)
    with raises("no-such-file", "nanodet", "gone.json"):
        open_detector(f"{NANODET}?weights={tmp_path}/gone.json")
    with raises("unknown-option", "nanodet", "'size'"):
        open_detector(f"{NANODET}?weights=x&size=3")
    with raises("bad-option", "nanodet", "threshold", "'2'"):
        open_detector(f"{NANODET}?weights=x&threshold=2")
    with raises("factory-failed", "nanodet:open_nanodet", "weights"):
        open_detector(NANODET)


def test_a_box_is_where_its_distributions_say() -> None:
    cells = SIDE // 32
    sides = torch.full((cells * cells, 4, STEPS), -40.0)
    sides[:, :, 2] = 40.0  # two cells to every side
    here = 3 * cells + 5
    sides[here, 0, 1] = 40.0  # left: between one and two cells
    boxes = decode(sides.flatten(1), 32)
    assert boxes[here].tolist() == pytest.approx([4 / 13, 1.5 / 13, 7.5 / 13, 5.5 / 13])
    assert boxes[0].tolist() == pytest.approx([-1.5 / 13, -1.5 / 13, 2.5 / 13, 2.5 / 13])


def stand_in() -> tuple[Graph, list[str]]:
    """A graph that puts out the same boxes for every image, and the names of its outputs."""
    graph, outputs = Graph(), []
    for stride in STRIDES:
        count = (SIDE // stride) ** 2
        scores = np.zeros((1, count, len(COCO)))
        sides = np.full((1, count, 4, STEPS), -40.0)
        sides[..., 2] = 40
        if stride == 32:
            scores[0, 3 * 13 + 5, COCO.index("cup")] = 0.75
            scores[0, 3 * 13 + 6, COCO.index("cup")] = 0.5  # the same cup once more
            scores[0, 12 * 13 + 12, COCO.index("cup")] = 0.5
            scores[0, 12 * 13, COCO.index("tv")] = 0.25
        for values in (scores, sides.reshape(1, count, -1)):
            outputs.append(graph.node("Identity", graph.constant(values, half=True)))
    return graph, outputs


def test_the_detector_from_its_graph_to_boxes(tmp_path: Path) -> None:
    graph, outputs = stand_in()
    path = graph.write(tmp_path / "n.json", *outputs)
    detector = open_detector(f"{NANODET}?weights={path}&threshold=0.4")
    picture = Image.new("RGB", (260, 130))
    (found,) = detector.detect([Request(picture, ("Cup", "tv"))])
    assert [(d.label, d.score, tuple(map(round, d.box))) for d in found] == [
        ("Cup", 0.75, (70, 15, 150, 55)),
        ("Cup", 0.5, (210, 105, 260, 130)),
    ]
    with raises("unknown-class", "unicorn", "its 80", error=DetectorError):
        detector.detect([Request(picture, ("unicorn",))])
    identity = detector.identity()
    assert len(identity.pop("weights_sha256")) == 64
    assert identity == {"kind": "nanodet", "threshold": "0.4"}
    other = open_detector(f"{NANODET}?weights={graph.write(tmp_path / 'o.json', *outputs[2:])}")
    with raises("wrong-model", "(2704, 80)", error=DetectorError):
        other.detect([Request(picture, ("cup",))])


def test_one_thing_is_found_once() -> None:
    cat, dog = Detection("cat", 0.5, Box(0, 0, 10, 10)), Detection("dog", 0.4, Box(0, 0, 10, 10))
    surer = Detection("cat", 0.9, Box(0, 0, 10, 9))
    apart = Detection("cat", 0.3, Box(0, 0, 10, 4.4))
    assert distinct([cat, dog, apart, surer]) == [surer, dog, apart]


def test_the_anchors_of_the_ssd_and_their_decoding() -> None:
    grid = anchors()
    assert grid.shape == (1917, 4)
    assert grid[0] == pytest.approx((0.5 / 19, 0.5 / 19, 0.1, 0.1))
    assert grid[1] == pytest.approx((0.5 / 19, 0.5 / 19, 0.2 * 2**0.5, 0.2 / 2**0.5))
    assert grid[-1] == pytest.approx((0.5, 0.5, 0.95**0.5, 0.95**0.5))
    assert grid[1083 + 5] == pytest.approx((0.05, 0.05, *[(0.35 * 0.5) ** 0.5] * 2))
    still = decode_offsets(np.zeros((1917, 4)), grid)
    assert (still[:, 2:] - still[:, :2]) == pytest.approx(grid[:, 2:])
    assert still[-1] == pytest.approx([0.5 - 0.95**0.5 / 2] * 2 + [0.5 + 0.95**0.5 / 2] * 2)
    moved = decode_offsets(np.array([[10.0, 0, 0, 5]]), np.array([[0.5, 0.5, 0.2, 0.1]]))
    assert moved[0] == pytest.approx((0.5 - 0.1 * math.e, 0.55, 0.5 + 0.1 * math.e, 0.65))


def test_the_ssd_needs_its_file(tmp_path: Path) -> None:
    with pytest.raises(DetectorError) as caught:
        open_detector(f"python:open_images_ssd:open_ssd?weights={tmp_path / 'gone'}")
    missing = find_spec("ai_edge_litert") is None
    assert caught.value.code == ("missing-library" if missing else "no-such-file")
    assert ("ai-edge-litert" if missing else "gone") in str(caught.value)
