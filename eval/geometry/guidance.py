"""The loss that PSG minimizes, on attention maps with gradients (PSE paper, Eq. 6, 8 and 9).

Ties count, as in the authors' program. A map is of shape (..., H, W).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .boxes import (
    DISTANCES,
    FORWARD,
    RELATIONS,
    SIDEWAYS,
    Convention,
    Relation,
    check_convention,
    check_relation,
)
from .pos import VECTORS, places_along, places_before

if TYPE_CHECKING:
    from torch import Tensor


def _pos_tensor(a: Tensor, b: Tensor) -> Tensor:
    """P(X >= Y) of non-negative weights (..., n); 0, not NaN, where one is empty."""
    p, q = (weights / weights.sum(-1, keepdim=True).clamp(min=1e-12) for weights in (a, b))
    return (p * q.cumsum(-1)).sum(-1)


def _sides(a: Tensor, b: Tensor, relation: str) -> tuple[Tensor, Tensor]:
    """PoS the asked way and the wrong way round, ties counted, of maps (..., H, W)."""
    check_relation(relation, (*VECTORS,))
    if relation not in RELATIONS:
        x, y = VECTORS[relation]
        return _pos_along(a, b, (x, y)), _pos_along(a, b, (-x, -y))
    axis = -2 if relation in SIDEWAYS else -1
    p, q = a.sum(axis), b.sum(axis)
    first, second = (p, q) if relation in FORWARD else (q, p)
    return _pos_tensor(second, first), _pos_tensor(first, second)


def _pos_along(a: Tensor, b: Tensor, vector: tuple[float, float]) -> Tensor:
    """P(X >= Y) along any vector."""
    import torch

    index, places = places_along(a.shape[-2], a.shape[-1], vector)
    where = torch.as_tensor(index, device=a.device)
    p, q = (
        weights.new_zeros(*weights.shape[:-2], len(places)).index_add(
            -1, where, weights.flatten(-2)
        )
        for weights in (a, b)
    )
    return _pos_tensor(p, q)


def _separation(a: Tensor, b: Tensor, gap: float) -> Tensor:
    """PoS of distance: P(X > Y + gap) summed over the four sides, in [0, 2]."""
    import numpy as np
    import torch

    total = a.new_zeros(a.shape[:-2])
    for axis in (-2, -1):
        weights = [w.sum(axis) for w in (a, b)]
        p, q = (w / w.sum(-1, keepdim=True).clamp(min=1e-12) for w in weights)
        before = places_before(np.arange(p.shape[-1], dtype=float), gap)
        index = torch.as_tensor(before, device=a.device)
        for first, second in ((p, q), (q, p)):
            sums = torch.cat([second.new_zeros(*second.shape[:-1], 1), second.cumsum(-1)], -1)
            total = total + (first * sums[..., index]).sum(-1)
    return total


def pos_tensor(a: Tensor, b: Tensor, relation: str, gap: float = 0) -> Tensor:
    """PoS of "A is `relation` of B", shape (...), in [0, 1]; for near and far the PoS of distance,
    beyond `gap` positions, in [0, 2]."""
    if relation in DISTANCES:
        return _separation(a, b, gap)
    return _sides(a, b, relation)[0]


def pse_tensor(a: Tensor, b: Tensor, relation: Relation) -> Tensor:
    """PSE of maps (..., H, W), shape (...), with gradients; equals `pse`."""
    right, wrong = _sides(a, b, relation)
    return (right - wrong).clamp(min=0)


def guidance_loss(
    a: Tensor, b: Tensor, relation: str, convention: Convention = "paper", gap: float = 0
) -> Tensor:
    """The loss that PSG minimizes, for attention maps (..., H, W): shape (...).

    paper: -PoS² of the asked order; authors: PoS² of the wrong order. Not the same gradient. Far:
    -PoS² of the distance beyond `gap` positions; near: its PoS².
    """
    check_convention(convention)
    if relation in DISTANCES:
        apart = _separation(a, b, gap).square()
        return -apart if relation == "far" else apart
    right, wrong = _sides(a, b, relation)
    return -right.square() if convention == "paper" else wrong.square()
