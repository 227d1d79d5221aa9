"""Generators that are paid by the picture: what each cost, and a cap that none passes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal

from PIL.Image import Image

from ...agents.budget import Budget, PriceTable, UnpricedError
from ..engine.run import MadeImage
from . import REPORT, GeneratorError, ImageRequest, PaidByPicture

USD = "usd"
"""Key of a picture's `info`: what it cost, US dollars as text; empty where nobody knows."""


class PaidGenerator:
    """Another generator under a cap; safe to use from threads."""

    def __init__(
        self,
        inner: PaidByPicture,
        prices: PriceTable,
        max_usd: float | None,
        attempts: Iterable[MadeImage] = (),
    ) -> None:
        """`attempts` are those of the run so far: what a resumed run has paid counts.

        Raises UnpricedError under a cap where the user gives no price.
        """
        self.inner = inner
        identity = inner.identity()
        self._price = prices.image(identity)
        if self._price is None and max_usd is not None:
            model = f"{identity['kind']}:{identity['model']}"
            raise UnpricedError(
                f"no price is known for {model}, so --max-usd can't hold: give a price table with "
                f"`{model}: {{image: ..., edit: ...}}` in USD each (--prices FILE), or drop the "
                f"cap"
            )
        self._budget = Budget(prices, None if max_usd is None else Decimal(str(max_usd)))
        # One that was made without a price table costs what the table now says, at most.
        self._budget.restore_amounts(Decimal(made.usd or self._most()) for made in attempts)

    def identity(self) -> dict[str, str]:
        return self.inner.identity()

    def generate(self, request: ImageRequest) -> Image:
        """The picture, its cost in ``info[USD]``; GeneratorError has one too.

        A refusal counts in full, and so does each lost attempt: either may have been billed. Raises
        BudgetError where the next picture, or the next attempt at it, may pass the cap.
        """
        if self._price is None:
            return self.inner.generate(request)
        price = self._price.image if request.source is None else self._price.edit
        self._budget.hold(price, "picture")
        held = price

        def permit() -> None:
            nonlocal held
            self._budget.hold(price, "attempt at a picture")
            held += price

        def pay(lost_attempts: int) -> str:
            cost = price * (1 + lost_attempts)
            self._budget.pay(held, cost)
            return str(cost)

        try:
            picture = self.inner.generate(request, permit)
        except GeneratorError as error:
            error.usd = pay(error.lost_attempts)
            raise
        except BaseException:
            self._budget.release(held)
            raise
        picture.info[USD] = pay(json.loads(picture.info.get(REPORT, "{}")).get("lost_attempts", 0))
        return picture

    def _most(self) -> Decimal:
        return max(self._price.image, self._price.edit) if self._price else Decimal(0)
