"""Generators that are paid by the image: what each cost, and a cap that none passes."""

from __future__ import annotations

import threading
from functools import partial

from PIL.Image import Image

from ...agents.budget import Budget
from ...agents.chat import BackendError
from ...agents.spending import Charge
from ...clip_files import Clip
from ..core import GeneratorError, ImageRequest
from . import USD, PaidByImage

PATIENCE = 3
"""Images in a row that may fail alike before any was made, each paid for."""


class PaidGenerator:
    """Another generator under a cap; safe to use from threads.

    What fails so that no repetition can mend it ends the run with the first image, and the first
    image goes alone: else all of a run would be paid for, and none kept.
    """

    def __init__(self, inner: PaidByImage, budget: Budget, source: str = "images") -> None:
        """`source` names where its images are recorded, in the spending log.

        Raises UnpricedError under a cap where the user gives no price.
        """
        self.inner = inner
        self._budget = budget
        self._source = source
        self._identity = {name: inner.identity()[name] for name in ("kind", "model")}
        budget.check_price(self._charge("image"))
        self._lock = threading.Lock()
        self._failures: list[str] | None = []  # before the first image
        self._hopeless = ""

    def identity(self) -> dict[str, str]:
        return self.inner.identity()

    def generate(self, request: ImageRequest) -> Image | Clip:
        """The image or clip, its cost in ``info[USD]``; GeneratorError has one too.

        A refusal counts in full: it may have been billed. So may each lost attempt, which stays
        open in the spending log. Raises BudgetError where the next image, or the next attempt at
        it, may pass the cap, BackendError once every further image would fail.
        """
        cost = self._charge("image" if request.source is None else "edit")
        case = "" if request.case is None else request.case.id
        first = self._failures is not None
        asked = partial(self._budget.hold, cost, identity=self._identity, call=case)
        holds = [asked("image", self._source, first_alone=first)]
        if self._hopeless:
            self._budget.release(holds)
            raise BackendError(self._hopeless, code="all-failed")

        def permit() -> None:
            self._budget.lose(holds)
            holds.append(asked("attempt at an image", self._source))

        def pay() -> str:
            *lost, answered = holds
            self._budget.lose(lost)
            self._budget.settle([answered], self._source, cost)
            return "" if cost.usd is None else str(cost.usd)

        try:
            image = self.inner.generate(request, permit)
        except GeneratorError as error:
            self._note(error)
            error.usd = pay()
            raise
        except BackendError as error:
            self._budget.lose(holds[: error.lost_attempts])
            self._budget.release(holds[error.lost_attempts :])
            raise
        except BaseException:
            self._budget.lose(holds)
            raise
        self._failures = None
        image.info[USD] = pay()
        return image

    def _note(self, error: GeneratorError) -> None:
        """Ends the run where all images would fail like this one."""
        with self._lock:
            if self._failures is not None and error.status == "error":
                self._failures.append(str(error))
                if self._failures[-PATIENCE:] == [str(error)] * PATIENCE:
                    error.ends_run = True
            if error.ends_run:
                self._hopeless = (
                    f"{error} (every further image would be paid for and fail alike: none was "
                    f"asked for)"
                )

    def _charge(self, kind: str) -> Charge:
        price = self._budget.prices.image(self._identity)
        if price is None:
            return Charge(None, self._identity, image=kind)
        return Charge(price.of(kind))
