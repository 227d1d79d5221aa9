"""PSE on torch tensors, with gradients: what guidance minimizes. Only methods of the tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .boxes import FORWARD, SIDEWAYS, Convention, Relation, check_convention, check_relation

if TYPE_CHECKING:
    from torch import Tensor

_TINY = 1e-12


def _pos(a: Tensor, b: Tensor) -> Tensor:
    """P(X >= Y) of non-negative weights (..., n); 0, not NaN, where one is empty."""
    p, q = (one / one.sum(-1, keepdim=True).clamp(min=_TINY) for one in (a, b))
    return (p * q.cumsum(-1)).sum(-1)


def _sides(a: Tensor, b: Tensor, relation: Relation) -> tuple[Tensor, Tensor]:
    """PoS the asked way and the wrong way round, ties counted, of maps (..., H, W)."""
    check_relation(relation)
    axis = -2 if relation in SIDEWAYS else -1
    p, q = a.sum(axis), b.sum(axis)
    return (_pos(q, p), _pos(p, q)) if relation in FORWARD else (_pos(p, q), _pos(q, p))


def pse_tensor(a: Tensor, b: Tensor, relation: Relation) -> Tensor:
    """PSE of maps (..., H, W), shape (...), with gradients; equals `pse.pse`."""
    right, wrong = _sides(a, b, relation)
    return (right - wrong).clamp(min=0)


def guidance_loss(
    a: Tensor, b: Tensor, relation: Relation, convention: Convention = "paper"
) -> Tensor:
    """What PSG minimizes, for attention maps (..., H, W): shape (...).

    paper: -PoS² of the asked order; authors: PoS² of the wrong order. Not the same gradient.
    """
    check_convention(convention)
    right, wrong = _sides(a, b, relation)
    return -right.square() if convention == "paper" else wrong.square()
