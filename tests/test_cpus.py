import os

import pytest

from counterprior.cpus import available_cpus


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process")
def test_only_the_cpus_that_the_process_is_bound_to_count() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert available_cpus() == len(allowed)
