"""Generators that are paid by the image: what each cost, and a cap that none passes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal

from PIL.Image import Image

from ...agents.budget import Budget, UnpricedError
from ..core import GeneratorError, ImageRequest
from . import REPORT, PaidByImage

USD = "usd"
"""Key of an image's `info`: what it cost, US dollars as text; empty where nobody knows."""


class PaidGenerator:
    """Another generator under a cap; safe to use from threads."""

    def __init__(
        self, inner: PaidByImage, budget: Budget, paid: Iterable[str] = (), source: str = ""
    ) -> None:
        """`paid` is what each image of the run `source` cost so far, as recorded; it counts once.

        Raises UnpricedError under a cap where the user gives no price.
        """
        self.inner = inner
        self._budget = budget
        identity = inner.identity()
        self._price = budget.prices.image(identity)
        if self._price is None and budget.max_usd is not None:
            model = f"{identity['kind']}:{identity['model']}"
            raise UnpricedError(
                f"no price is known for {model}, so --max-usd can't be kept: give a price table "
                f"with `{model}: {{image: ..., edit: ...}}` in USD each (--prices FILE), or drop "
                f"the cap"
            )
        # One that was made without a price table costs what the table now says, at most.
        most = max(self._price.image, self._price.edit) if self._price else Decimal(0)
        budget.restore_amounts((Decimal(usd or most) for usd in paid), source)

    def identity(self) -> dict[str, str]:
        return self.inner.identity()

    def generate(self, request: ImageRequest) -> Image:
        """The image, its cost in ``info[USD]``; GeneratorError has one too.

        A refusal counts in full, and so does each lost attempt: either may have been billed. Raises
        BudgetError where the next image, or the next attempt at it, may pass the cap.
        """
        if self._price is None:
            return self.inner.generate(request)
        price = self._price.image if request.source is None else self._price.edit
        self._budget.hold(price, "image")
        held = price

        def permit() -> None:
            nonlocal held
            self._budget.hold(price, "attempt at an image")
            held += price

        def pay(lost_attempts: int) -> str:
            cost = price * (1 + lost_attempts)
            self._budget.pay(held, cost)
            return str(cost)

        try:
            image = self.inner.generate(request, permit)
        except GeneratorError as error:
            error.usd = pay(error.lost_attempts)
            raise
        except BaseException:
            self._budget.release(held)
            raise
        image.info[USD] = pay(json.loads(image.info.get(REPORT, "{}")).get("lost_attempts", 0))
        return image
