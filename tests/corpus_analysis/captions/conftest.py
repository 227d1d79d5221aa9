"""The two miners that must find the same pairs, loaded once by each worker."""

from __future__ import annotations

import pytest

from counterprior.corpus_analysis.captions.miner import Miner
from counterprior.corpus_analysis.captions.parser import ModelMissing


def _loaded(prefilter: bool, fast: bool) -> Miner:
    try:
        return Miner(prefilter=prefilter, fast=fast)
    except ModelMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def miner() -> Miner:
    return _loaded(prefilter=True, fast=True)


@pytest.fixture(scope="session")
def reference() -> Miner:
    """Plain spaCy over everything."""
    return _loaded(prefilter=False, fast=False)
