"""Every test of a study begins with doubles that have done nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import study_doubles


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    study_doubles.reset()
    yield
    study_doubles.reset()
