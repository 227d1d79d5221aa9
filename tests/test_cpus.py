import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from counterprior.cpus import available_cpus

INTERRUPTED_AT_ONCE = """
import os, signal
from counterprior.cpus import spawned
if __name__ == "__main__":
    with spawned(2) as pool:
        answers = [pool.submit(divmod, 7, divisor) for divisor in (2, 3)]
        try:
            os.killpg(0, signal.SIGINT)  # as a terminal does, while both processes still start
        except KeyboardInterrupt:
            print([answer.result() for answer in answers])
"""

STOPPED_AT_WORK = """
import threading, time
from counterprior.cpus import spawned
if __name__ == "__main__":
    pool = spawned(2)
    answers = [pool.submit(time.sleep, 600) for _ in range(3)]
    pool.shutdown(wait=False, cancel_futures=True)
    # One that still ends could close a pipe into which the end of this process writes.
    left = [type(thread).__name__ for thread in threading.enumerate()]
    print("the end", left.count("_ExecutorManagerThread"))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process")
def test_only_the_cpus_that_the_process_is_bound_to_count() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert available_cpus() == len(allowed)


@pytest.mark.slow
def test_interrupt_reaches_no_process_that_still_starts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED_AT_ONCE)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        start_new_session=True,
        # Tests that run in the background of a shell inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("[(3, 1), (2, 1)]\n", "")


def test_work_that_nobody_wants_is_not_waited_for(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(STOPPED_AT_WORK)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end 0\n", "")
