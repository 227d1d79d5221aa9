"""Workers: real processes that work, die, and end with their parent."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from piecework import Squares
from refusals import raises

from counterprior.agents.retry import GaveUpError
from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.workers.farm import Scale, farm, visible_devices
from counterprior.eval.workers.on_ray import actor_resources

TWO = Scale(workers=2)


def pids(folder: Path) -> set[int]:
    """Of every worker that was ever started."""
    return {int(path.stem) for path in folder.glob("*.worker")}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def await_end(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while any(map(is_running, pids(folder))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids(folder) if is_running(pid)]


@pytest.mark.slow
def test_a_dead_worker_costs_the_pieces_that_it_had(tmp_path: Path) -> None:
    task = Squares(tmp_path, kills=(7,), kills_once=(3,))
    scale = Scale(workers=2, devices=("5", "6"))
    found = dict(farm(task, range(12), scale))
    assert found.pop(7) == "3 died"
    assert {piece: text.split()[0] for piece, text in found.items()} == {
        n: str(n**2) for n in range(12) if n != 7
    }
    assert {text.split()[-1] for text in found.values()} == {"5", "6"}
    assert 5 <= len(pids(tmp_path)) <= 6  # two, and one for each of the four that died
    await_end(tmp_path)


@pytest.mark.slow
def test_workers_that_die_at_once_end_the_work(tmp_path: Path) -> None:
    deaths: list[int] = []
    task = Squares(tmp_path, dies_at_once=True)
    with raises("workers-died", "4 times in a row", "2 pieces of work"):
        list(farm(task, range(3), Scale(1, ("0",)), on_death=deaths.append))
    assert len(pids(tmp_path)) == 4 and deaths == [1, 2, 3]


def test_work_is_taken_as_it_is_needed_and_errors_end_it(tmp_path: Path) -> None:
    taken = []

    def work() -> Iterator[int]:
        for number in [*range(20), -4, *range(1000)]:
            taken.append(number)
            yield number

    with (
        closing(farm(Squares(tmp_path), work(), TWO)) as found,
        raises("run-failed", "4", error=LoadError) as raised,
    ):
        next(found)
        assert len(taken) < 20
        list(found)
    assert "piecework.py" in "".join(raised.value.__notes__)
    assert len(taken) < 40
    await_end(tmp_path)


def test_what_cannot_be_sent_is_refused_in_one_line(tmp_path: Path) -> None:
    class Local(Squares):
        pass

    with raises("cannot-pickle", "can't be sent to worker processes", "python:MODULE"):
        list(farm(Local(tmp_path), range(3), TWO))


def test_a_server_that_gave_up_keeps_its_facts_between_processes() -> None:
    error = GaveUpError("gone", 3, 6, code="server-unreachable")
    sent = pickle.loads(pickle.dumps(error))
    assert vars(sent) == vars(error) and str(sent) == str(error)


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from piecework import Squares\n"
        "from counterprior.eval.workers.farm import Scale, farm\n"
        "task = Squares(pathlib.Path(sys.argv[1]), seconds=60)\n"
        "list(farm(task, range(9), Scale(2)))"
    )
    path = os.pathsep.join(filter(None, sys.path))
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}
    )
    deadline = time.monotonic() + 60
    while len(pids(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(pids(tmp_path)) == 2 and all(map(is_running, pids(tmp_path)))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    await_end(tmp_path)


def test_devices_are_those_that_this_process_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-8f")
    assert visible_devices() == ("2", "GPU-8f")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_devices() == ()


@pytest.mark.parametrize(
    ("wrong", "code", "fact"),
    [
        ({"workers": 0}, "out-of-range", "workers=0"),
        ({"shard": (3, 2)}, "out-of-range", "shard (3, 2)"),
        ({"engine": "magic"}, "unknown-name", "'magic'"),
        ({"engine": "ray", "devices": ("0",)}, "conflicting-options", "--devices"),
    ],
)
def test_refuses_impossible_scales(wrong: dict, code: str, fact: str) -> None:
    with raises(code, fact):
        Scale(**wrong)


def test_sends_no_bundle_ahead_where_pieces_take_long(tmp_path: Path) -> None:
    # Worker 0 works on piece 0 until the others are done: if one of them waited behind it, both
    # would wait.
    task = Squares(tmp_path, bundle=1, first_waits_for=3)
    began = time.monotonic()
    assert len(dict(farm(task, range(4), TWO, ahead=1))) == 4
    assert time.monotonic() - began < 20


def test_actors_reserve_shares_on_which_all_have_room() -> None:
    cluster = {"CPU": 8.0, "GPU": 2.0}
    assert actor_resources(cluster, 2, gpus=True) == {"num_gpus": 1}
    assert actor_resources(cluster, 3, gpus=True) == {"num_gpus": 0.5}  # 2 / 3 has room for two
    assert actor_resources({"CPU": 8.0}, 3, gpus=True) == {"num_gpus": 0}
    assert actor_resources(cluster, 8, gpus=False) == {"num_cpus": 1}
    assert actor_resources(cluster, 9, gpus=False) == {"num_cpus": 0.5}


def test_a_script_needs_no_guard_but_what_it_defines_cannot_be_sent(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import pathlib, sys\n"
        "from piecework import Squares\n"
        "from counterprior.eval.workers.farm import Scale, farm\n"
        "class Mine(Squares): pass\n"
        "for kind in (Squares, Mine):\n"
        "    print(sorted(farm(kind(pathlib.Path(sys.argv[1])), range(3), Scale(2, ('7',)))))\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "[(0, '0 on 7'), (1, '1 on 7'), (2, '4 on 7')]\n"
    assert "UsageError: workers can't import this from __main__" in done.stderr
