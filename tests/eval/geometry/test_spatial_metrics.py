"""PSE, VISOR, T2I-CompBench, HRS and GenEval: against their definitions, and as properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import raises
from scipy.stats import mannwhitneyu

from counterprior.eval.geometry import compbench, geneval, hrs
from counterprior.eval.geometry.boxes import RELATIONS, Box, boxes, iou, ious
from counterprior.eval.geometry.pse import (
    guidance_loss,
    projections,
    pse,
    pse_3d,
    pse_binary,
    pse_tensor,
)
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
