"""PSE, VISOR, T2I-CompBench, HRS and GenEval: against their definitions, and as properties."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from refusals import raises
from scipy.stats import mannwhitneyu

from counterprior.eval.geometry import compbench, depth_centers, geneval, hrs
from counterprior.eval.geometry.boxes import RELATIONS, Box, boxes, iou, ious
from counterprior.eval.geometry.detections import Detection, Sighting
from counterprior.eval.geometry.guidance import guidance_loss, pos_tensor, pse_tensor
from counterprior.eval.geometry.pos import (
    VECTORS,
    between,
    far,
    inside,
    pos,
    projections,
    pse_vector,
    separation,
)
from counterprior.eval.geometry.pse import pse, pse_3d, pse_binary
from counterprior.eval.geometry.visor import relation_holds

MASKS = arrays(np.bool_, (7, 9))
FULL = arrays(np.bool_, (7, 9)).filter(lambda mask: mask.any())
OPPOSITE = {"left_of": "right_of", "right_of": "left_of", "above": "below", "below": "above"}


def block(x1: int, y1: int, x2: int, y2: int, size: tuple[int, int] = (40, 60)) -> np.ndarray:
    mask = np.zeros(size, bool)
    mask[y1:y2, x1:x2] = True
    return mask


@given(FULL, FULL, st.sampled_from(RELATIONS))
def test_pse_is_twice_the_area_under_the_curve_less_one(a, b, relation) -> None:
    axis = 1 if relation in ("left_of", "right_of") else 0
    x, y = np.nonzero(a)[axis], np.nonzero(b)[axis]
    area = mannwhitneyu(x, y).statistic / (len(x) * len(y))
    signed = 2 * area - 1
    expected = max(0.0, -signed if relation in ("left_of", "above") else signed)
    assert float(pse(a, b, relation)) == pytest.approx(expected, abs=1e-12)


@given(FULL, FULL)
def test_pse_is_the_double_sum(a, b) -> None:
    p, q = a.sum(0) / a.sum(), b.sum(0) / b.sum()
    over = sum(p[i] * q[j] for i in range(9) for j in range(9) if i > j)
    under = sum(p[i] * q[j] for i in range(9) for j in range(9) if i < j)
    assert float(pse(a, b, "right_of")) == pytest.approx(max(0, over - under), abs=1e-12)


@given(MASKS, MASKS, st.sampled_from(RELATIONS))
def test_flips_swaps_scales_and_transposes(a, b, relation) -> None:
    score = float(pse(a, b, relation))
    assert 0 <= score <= 1
    assert score == pytest.approx(float(pse(b, a, OPPOSITE[relation])), abs=1e-12)
    flip = (lambda m: m[:, ::-1]) if relation in ("left_of", "right_of") else (lambda m: m[::-1])
    assert score == pytest.approx(float(pse(flip(a), flip(b), OPPOSITE[relation])), abs=1e-12)
    big = [np.kron(m, np.ones((3, 3), bool)) for m in (a, b)]
    assert score == pytest.approx(float(pse(*big, relation)), abs=1e-12)
    turned = {"left_of": "above", "above": "left_of", "right_of": "below", "below": "right_of"}
    assert score == pytest.approx(float(pse(a.T, b.T, turned[relation])), abs=1e-12)
    moved = [np.pad(m, ((2, 0), (5, 1))) for m in (a, b)]
    assert score == pytest.approx(float(pse(*moved, relation)), abs=1e-12)
    assert min(score, float(pse(a, b, OPPOSITE[relation]))) == 0


@given(MASKS, st.sampled_from(RELATIONS))
def test_a_missing_object_scores_zero_and_never_nan(a, relation) -> None:
    nothing = np.zeros_like(a)
    with np.errstate(all="raise"):
        for first, second in ((a, nothing), (nothing, a), (nothing, nothing)):
            assert float(pse(first, second, relation)) == 0
            assert float(pse_3d(first, second, np.ones(a.shape), "behind")) == 0


def test_batches_are_the_single_scores_and_types_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 3, 4, 30, 50)) < 0.1
    whole = pse(a, b, "above")
    assert whole.shape == (3, 4)
    assert whole[1, 2] == pytest.approx(float(pse(a[1, 2], b[1, 2], "above")), abs=1e-15)
    bytes_ = a.astype(np.uint8) * 255
    assert pse(bytes_, b.astype(float), "above") == pytest.approx(whole, abs=1e-12)
    assert projections(np.full((300, 300), 255, np.uint8), "x")[0] == 300 * 255


@pytest.mark.parametrize("bad", [np.full((3, 3), -1.0), np.full((3, 3), np.nan)])
def test_weights_that_are_none_are_refused(bad) -> None:
    with pytest.raises(ValueError, match="negative or non-finite"):
        pse(bad, np.ones((3, 3)), "above")


def test_other_bad_input_is_named() -> None:
    mask = np.ones((3, 3), bool)
    with raises("unknown-name", "beside"):
        pse(mask, mask, "beside")
    with pytest.raises(ValueError, match="do not fit"):
        pse(mask, np.ones((3, 4), bool), "left_of")
    with raises("unknown-name", "ours"):
        pse_binary([1, 0], "ours")


def test_centers_decide_what_hardly_any_pixel_does() -> None:
    """Table 9 of the PSE paper: a chair whose center is 3 pixels left of a TV's, PSE 0.01."""
    chair, tv = (block(left, 0, left + 610, 1, (1, 1024)) for left in (203, 206))
    assert relation_holds([[203, 0, 813, 1]], [[206, 0, 816, 1]], "left_of")
    assert float(pse(chair, tv, "left_of")) == pytest.approx(0.01, abs=0.001)


WEIGHTS = arrays(np.float64, (4, 5), elements=st.floats(0, 3)).filter(lambda mask: mask.sum() > 0.1)
DIRECTIONS = st.sampled_from([*VECTORS.values(), (2, 1), (-1, 3)])


def pixels(mask: np.ndarray, vector: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Places of a mask's pixels along a vector, times its length, and their weights."""
    rows, columns = np.indices(mask.shape)
    return (columns * vector[0] + rows * vector[1]).ravel(), (mask / mask.sum()).ravel()


@given(WEIGHTS, WEIGHTS, DIRECTIONS, st.sampled_from([0, 0.4, 1.3, 2]))
def test_pos_is_a_count_over_pairs_of_pixels(a, b, vector, gap) -> None:
    (x, p), (y, q) = pixels(a, vector), pixels(b, vector)
    apart = (x[:, None] - y[None, :]) / math.hypot(*vector) - gap
    share = np.outer(p, q)
    strict, ties = (float(share[apart > least].sum()) for least in (1e-6, -1e-6))
    assert float(pos(a, b, vector, gap)) == pytest.approx(strict, abs=1e-12)
    assert float(pos(a, b, vector, gap, "authors")) == pytest.approx(ties, abs=1e-12)
    signed = [float(pos(a, b, v) - pos(b, a, v)) for v in (vector, (-vector[0], -vector[1]))]
    assert signed[0] == pytest.approx(-signed[1], abs=1e-12)  # antisymmetric
    assert float(pse_vector(a, b, vector)) == pytest.approx(max(0, signed[0]), abs=1e-12)


@given(WEIGHTS, WEIGHTS, st.integers(0, 5))
def test_separation_is_a_count_over_pairs_and_falls_with_the_gap(a, b, gap) -> None:
    total = 0.0
    for vector in ((1, 0), (0, 1)):
        (x, p), (y, q) = pixels(a, vector), pixels(b, vector)
        total += float(np.outer(p, q)[abs(x[:, None] - y[None, :]) > gap].sum())
    assert float(separation(a, b, gap)) == pytest.approx(total, abs=1e-12)
    assert float(separation(b, a, gap)) == pytest.approx(total, abs=1e-12)
    assert float(separation(a, b, gap + 1)) <= total + 1e-12
    assert float(far(a, b, gap)) == pytest.approx(min(1, total), abs=1e-12)


@given(WEIGHTS, WEIGHTS)
def test_inside_is_a_count_over_triples_of_pixels(a, b) -> None:
    signed = []
    for vector in ((1, 0), (0, 1)):
        (x, p), (y, q) = pixels(a, vector), pixels(b, vector)

        def flanked(x, p, y, q) -> float:
            low = x[:, None, None] > y[None, :, None]
            high = x[:, None, None] < y[None, None, :]
            return 2 * float(np.einsum("i,j,k->ijk", p, q, q)[low & high].sum())

        signed.append(2 * (flanked(x, p, y, q) - flanked(y, q, x, p)))
    assert float(inside(a, b)) == pytest.approx(max(0, min(signed)), abs=1e-12)
    assert float(inside(b, a)) == pytest.approx(max(0, -max(signed)), abs=1e-12)


@given(WEIGHTS, WEIGHTS, WEIGHTS)
def test_between_is_a_count_over_triples_of_pixels(a, b, c) -> None:
    centers = [
        np.array([pixels(m, v)[0] @ pixels(m, v)[1] for v in ((1, 0), (0, 1))]) for m in (b, c)
    ]
    vector = centers[1] - centers[0]
    if math.hypot(*vector) < 0.05:
        return
    (x, p), (y, q), (z, r) = (pixels(m, tuple(vector / math.hypot(*vector))) for m in (a, b, c))
    weights = np.einsum("i,j,k->ijk", p, q, r)
    x, y, z = x[:, None, None], y[None, :, None], z[None, None, :]
    least = 1e-8
    ordered = weights[(x - y > least) & (z - x > least)].sum()
    reverse = weights[(y - x > least) & (x - z > least)].sum()
    assert between(a, b, c) == pytest.approx(max(0, ordered - reverse), abs=1e-12)
    assert between(a, c, b) == pytest.approx(between(a, b, c), abs=1e-12)


def test_relations_of_blocks() -> None:
    corner, middle, other = block(50, 0, 60, 10), block(25, 15, 35, 25), block(0, 30, 10, 40)
    frame = block(15, 5, 45, 35) & ~block(20, 10, 40, 30)
    assert float(pse_vector(corner, other, VECTORS["upper_right"])) == 1
    assert float(pse_vector(corner, other, VECTORS["lower_left"])) == 0
    assert between(middle, corner, other) == 1 and between(corner, middle, other) == 0
    assert float(inside(middle, frame)) > 0.6 > 0 == float(inside(frame, middle))
    assert float(inside(other, frame)) == 0 == float(inside(frame, frame))
    assert float(far(corner, other)) == 1 and float(far(middle, middle)) == 0
    nothing = np.zeros_like(middle)
    with np.errstate(all="raise"):
        for a, b in ((middle, nothing), (nothing, middle), (nothing, nothing)):
            assert float(inside(a, b)) == float(far(a, b)) == 0
            assert float(pos(a, b, (1, 1))) == between(a, b, middle) == between(a, middle, b) == 0
    with pytest.raises(ValueError, match="no length"):
        pos(middle, middle, (0, 0))
    with pytest.raises(ValueError, match="negative"):
        separation(middle, middle, -1)
    with pytest.raises(ValueError, match="do not fit"):
        pos(middle, middle[1:], (1, 1))
    with pytest.raises(ValueError, match="negative or non-finite"):
        pos(-1.0 * middle, middle, (1, 1))


@pytest.mark.parametrize("relation", [*VECTORS, "near", "far"])
def test_guidance_has_the_right_gradient(relation: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    a, b = (torch.tensor(rng.random((2, 4, 5)), requires_grad=True) for _ in range(2))
    for convention in ("paper", "authors"):
        loss = partial(guidance_loss, relation=relation, convention=convention, gap=1)
        assert torch.autograd.gradcheck(loss, (a, b))
    scores = pos_tensor(a, b, relation, 1).detach().numpy()
    masks = [m.detach().numpy() for m in (a, b)]
    ours = (
        separation(*masks, 1)
        if relation in ("near", "far")
        else pos(*masks, VECTORS[relation], convention="authors")
    )
    assert scores == pytest.approx(ours, abs=1e-12)


@pytest.mark.parametrize(("relation", "grows"), [("far", True), ("near", False)])
def test_guidance_moves_centers_apart_or_together(relation: str, grows: bool) -> None:
    """Two blobs of attention on 16 x 16 positions with the gap of the paper."""
    torch = pytest.importorskip("torch")
    rows, columns = torch.meshgrid(*[torch.arange(16.0)] * 2, indexing="ij")
    centers = torch.tensor([[5.0, 7.0], [10.0, 8.0]])
    distances = [float((centers[0] - centers[1]).norm())]
    for _ in range(5):
        centers.requires_grad_(True)
        maps = [torch.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 8) for x, y in centers]
        (gradient,) = torch.autograd.grad(guidance_loss(*maps, relation, "paper", 5), centers)
        centers = (centers - gradient).detach()
        distances.append(float((centers[0] - centers[1]).norm()))
    assert distances == sorted(distances, reverse=not grows)
    assert abs(distances[-1] - distances[0]) > 0.3


def test_depth_counts_what_is_nearer_and_the_authors_lose_the_farthest_pixels() -> None:
    a, b = block(0, 0, 30, 40), block(30, 0, 60, 40)
    depth = np.where(a, 9.0, 3.0)
    assert float(pse_3d(a, b, depth, "in_front_of")) == 1
    assert float(pse_3d(a, b, depth, "behind")) == 0
    # All of b lies at the joint minimum: in the authors' program it vanishes.
    assert float(pse_3d(a, b, depth, "in_front_of", "authors")) == 0
    depth[0, 59] = 1.0
    assert float(pse_3d(a, b, depth, "in_front_of", "authors")) == 1
    assert float(pse_3d(a, b, np.ones_like(depth), "in_front_of")) == 0
    # Depth 0 is background to them: the minimum, which vanishes too, is the least above it.
    depth = np.where(a, 5.0, 3.0)
    depth[:20, 30:] = 0
    assert float(pse_3d(a, b, depth, "in_front_of")) == 1
    assert float(pse_3d(a, b, depth, "in_front_of", "authors")) == 0
    with pytest.raises(ValueError, match="not finite"):
        pse_3d(a, b, depth * np.nan, "behind")


@given(FULL, FULL, arrays(np.float64, (7, 9), elements=st.floats(0, 10)), st.floats(0.5, 4))
def test_depth_is_signed_and_has_no_unit(a, b, depth, factor) -> None:
    front = float(pse_3d(a, b, depth, "in_front_of"))
    assert front == pytest.approx(float(pse_3d(b, a, depth, "behind")), abs=1e-12)
    doubled = float(pse_3d(a, b, 2 * depth, "in_front_of"))
    assert front == pytest.approx(doubled, abs=1e-12)
    assert 0 <= front <= 1


def test_where_a_score_counts_as_right() -> None:
    assert pse_binary([0.5, 0.499, 0.02]).tolist() == [True, False, False]
    assert pse_binary([0.5, 0.02, 0.01], "authors").tolist() == [True, True, False]


def test_tensors_have_the_same_score_and_a_gradient_that_moves_it() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    maps = rng.random((2, 5, 16, 16))
    a, b = (torch.tensor(m, requires_grad=True) for m in maps)
    for relation in RELATIONS:
        ours = pse(*maps, relation)
        assert pse_tensor(a, b, relation).detach().numpy() == pytest.approx(ours, abs=1e-12)
    for convention in ("paper", "authors"):
        logits = torch.zeros(1, 16, 16, requires_grad=True, dtype=torch.float64)
        fixed = torch.ones(1, 16, 16, dtype=torch.float64)
        before = guidance_loss(logits.exp(), fixed, "left_of", convention)
        before.sum().backward()
        assert logits.grad[0, :, 0].min() != 0
        stepped = (logits - 50 * logits.grad).detach()
        assert guidance_loss(stepped.exp(), fixed, "left_of", convention) < before
        assert float(pse_tensor(stepped.exp(), fixed, "left_of")) > 0
    assert float(pse_tensor(a[0].detach() * 0, b[0].detach(), "above")) == 0


CORNER = st.tuples(*[st.integers(0, 400)] * 2, *[st.integers(5, 110)] * 2)
BOXES = CORNER.map(lambda t: [t[0], t[1], t[0] + t[2], t[1] + t[3]])


@given(BOXES, BOXES)
def test_overlap_of_arrays_is_that_of_the_checker(a, b) -> None:
    one = iou(Box(*a), Box(*b))
    assert float(ious(boxes(a), boxes(b))) == pytest.approx(one, abs=1e-12)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [([1, 2, 3], "last axis"), ([0, 0, math.nan, 1], "not finite"), ([5, 0, 1, 1], "ends before")],
)
def test_boxes_that_are_none_are_refused(bad, reason) -> None:
    with pytest.raises(ValueError, match=reason):
        boxes(bad)


def test_visor_holds_if_any_two_instances_do() -> None:
    a, b = [[0, 0, 10, 10], [90, 0, 100, 10]], [[40, 0, 50, 10]]
    assert relation_holds(a, b, "left_of") and relation_holds(a, b, "right_of")
    assert not relation_holds(a, b, "above")  # level with it: strict
    assert not relation_holds([], b, "left_of")


def test_compbench_position_score() -> None:
    left, right = [0, 0, 10, 10], [50, 5, 60, 15]
    assert float(compbench.position(left, right, "left_of")) == 1
    assert float(compbench.position(left, right, "right_of")) == 0
    assert float(compbench.position(left, right, "above")) == 0  # more across than along
    assert float(compbench.position(left, [5, 50, 15, 60], "above")) == 1
    overlapping = float(compbench.position([0, 0, 10, 10], [5, 0, 15, 10], "left_of"))
    assert overlapping == pytest.approx(0.1 / (1 / 3))
    far = float(compbench.position([0, 0, 10, 10], [300, 400, 310, 410], "near"))
    assert far == pytest.approx(150 / 400)
    assert float(compbench.position(left, right, "near")) == 1
    assert float(compbench.position(left, [5, 50, 15, 60], "on_top_of")) == 1
    assert float(compbench.position(left, [5, 50, 15, 60], "on_top_of", "authors")) == 0


def test_compbench_scores() -> None:
    assert float(compbench.score_2d(0.8, 0.6, 1)) == pytest.approx(0.85)
    assert float(compbench.score_2d(0.8, 0.6, 0)) == 0
    assert float(compbench.score_2d(1, 0, 1)) == 0  # a missing object
    assert float(compbench.score_3d(0.8, 0.6, 0)) == pytest.approx(0.35)
    assert float(compbench.score_3d(0.8, 0, 1)) == pytest.approx(0.2)
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        compbench.score_2d(math.nan, 1, 1)


def test_compbench_depth_reads_the_map_and_the_authors_its_transpose() -> None:
    near_first = np.zeros((100, 100))
    near_first[0:40, 60:100] = 9
    a, b = [60, 0, 100, 40], [60, 20, 100, 60]
    assert float(ious(boxes(a), boxes(b))) == pytest.approx(1 / 3)
    score = compbench.depth_position(a, b, near_first, "in_front_of")
    assert score == pytest.approx((1 / 3) / 0.5)
    assert compbench.depth_position(a, b, near_first, "behind") == 0
    assert compbench.depth_position(a, b, near_first, "in_front_of", "authors") == 0
    assert compbench.depth_position(a, b, near_first.T, "in_front_of", "authors") == pytest.approx(
        score
    )
    half = [60, 0, 100, 80]
    assert compbench.depth_position(a, half, near_first, "in_front_of") == 1
    assert compbench.depth_position(a, half, near_first.T, "in_front_of", "authors") == 0
    assert compbench.depth_position(a, [0, 0, 10, 10], near_first, "in_front_of") == 0


def test_hrs_edges() -> None:
    a, b = [0, 0, 10, 50], [5, 10, 15, 20]
    assert hrs.relation_holds(a, b, "left_of") and not hrs.relation_holds(a, b, "right_of")
    # A reaches both higher and lower: the authors' program says above and below at once.
    assert hrs.relation_holds(a, b, "above", "authors")
    assert hrs.relation_holds(a, b, "below", "authors")
    assert not hrs.relation_holds(a, b, "above") and not hrs.relation_holds(a, b, "below")


def test_geneval_has_slack_and_diagonals() -> None:
    a = [0, 0, 10, 10]
    assert geneval.relations(a, [50, 0, 60, 10]) == {"left_of"}
    assert geneval.relations(a, [50, 50, 60, 60]) == {"left_of", "above"}
    assert geneval.relations(a, [1.9, 0, 11.9, 10]) == set()
    assert geneval.relations(a, [5, 5, 15, 15]) == set()  # slack eats 4 of 10 along each axis
    assert geneval.relations(a, a) == set()


@given(BOXES, BOXES)
def test_box_metrics_are_symmetric(a, b) -> None:
    assert {OPPOSITE[r] for r in geneval.relations(a, b)} == geneval.relations(b, a)
    mirror = [[512 - box[2], box[1], 512 - box[0], box[3]] for box in (a, b)]
    for score in (compbench.position, hrs.relation_holds):
        assert float(score(a, b, "left_of")) == pytest.approx(
            float(score(*mirror, "right_of")), abs=1e-9
        )
    assert relation_holds([a], [b], "left_of") == relation_holds([b], [a], "right_of")


@given(arrays(np.int64, (6, 8), elements=st.integers(0, 3)), st.integers(0, 4), st.integers(1, 4))
def test_centers_in_depth_by_counted_pixels(depth: np.ndarray, left: int, width: int) -> None:
    places = Box(0, 0, 4, 6), Box(left, 0, left + width, 6)
    seen = [[Detection(n, 0.9, box)] for n, box in zip("ab", places, strict=True)]
    sighting = Sighting(Image.new("RGB", (8, 6)), *seen, estimate_depth=lambda *_: depth)
    total, other = (
        sum(int(depth[y, x]) for y in range(6) for x in range(int(b.x1), int(b.x2))) for b in places
    )
    a, b = total * width, other * 4  # means in whole numbers
    columns = len(set(range(4)) & set(range(left, left + width)))
    near = 5 * columns <= 4 + width - columns  # IoU at most 1 / 5
    for relation, held in (("in_front_of", a > b), ("behind", a < b), ("hidden_by", a < b)):
        measured = depth_centers.measure(sighting, relation, "paper")
        assert measured[:2] == (held, float(held))
        apart = depth_centers.measure_apart(sighting, relation, "paper")
        assert apart[:2] == (held and near, float(held and near))


def test_centers_in_depth_without_an_order() -> None:
    box, image = Box(0, 0, 2, 2), Image.new("RGB", (4, 4))
    thing, empty = Detection("a", 0.9, box), Detection("a", 0.9, box, np.zeros((4, 4), bool))
    for measure in (depth_centers.measure, depth_centers.measure_apart):
        for a, b in (([thing], []), ([], [thing]), ([empty], [thing])):
            sighting = Sighting(image, a, b, estimate_depth=lambda *_: np.ones((4, 4)))
            assert measure(sighting, "behind", "paper") == (None, 0.0, "missing")
    flat = Sighting(image, [thing], [thing], estimate_depth=lambda *_: np.ones((4, 4)))
    for relation in ("in_front_of", "behind"):
        assert depth_centers.measure(flat, relation, "paper") == (False, 0.0, "equal depth")
    with pytest.raises(ValueError, match="finite"):
        depth_centers.depth_center(np.ones((4, 4)), np.full((4, 4), np.nan))
