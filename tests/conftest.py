"""Shared fixtures: a network that ends at loopback, and releases built once for all workers."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from forking import ForkingCommand, keep_parser, rarely_collect, without_waiting
from hypothesis import HealthCheck, settings

pytest_plugins = ["checkpoints", "loopback_hub", "wire"]

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
LANES = ROOT / "tests" / "lanes"


# A busy machine is slow now and then, and the first text of a run builds Hypothesis' tables:
# neither is a fault. The same examples every time, so that a failure is everybody's.
settings.register_profile(
    "counterprior",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("counterprior")


# What a shell starts in the background ignores interrupts, and our commands would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Every worker and command that starts from here would compile the package and these tests again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# Several processes share the cores: more threads in each would only wait for each other. Read when
# NumPy and torch are imported.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    keep_parser()
    # huggingface_hub and datasets read these when they are imported.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share that of the process that began them
        cache = tempfile.mkdtemp(prefix="counterprior-cache-")
        os.environ["COUNTERPRIOR_CACHE"] = cache
        config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))


# What is lost when the power fails, no test can see: none waits for the disk.
os.fsync = without_waiting
rarely_collect()


@pytest.fixture(autouse=True, scope="session")
def loopback_only() -> Iterator[None]:
    """No test reaches beyond this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkingCommand]:
    """Runs the command as a user does, each time in a process of its own."""
    command = ForkingCommand(
        tmp_path_factory.mktemp("printed"), shared=_shared_folder(tmp_path_factory)
    )
    yield command
    command.close()


COMMAND = (str(Path(sys.executable).with_name("counterprior")),)
FEW_SEEDS = (sys.executable, "-c", "import few_seeds; few_seeds.main()")


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that all xdist workers of a run have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if base.name.startswith("popen-") else base


def _built_once(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    *options: str,
    command: Sequence[str] = COMMAND,
    forked: ForkingCommand | None = None,
) -> Path:
    """A release that all xdist workers share; built by the first that needs it.

    forked: builds it in the place of a process that begins anew.
    """
    shared = _shared_folder(tmp_path_factory)
    out = shared / name
    with (shared / f"{name}.building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists() and forked is not None:
            built = forked("build", "--out", out, *options)
            assert built.returncode == 0, built.stderr
        elif not out.exists():
            path = os.pathsep.join(filter(None, sys.path))
            done = subprocess.run(
                [*command, "build", "--out", str(out), *options],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": path},
            )
            assert done.returncode == 0, done.stderr
    return out


def _required() -> list[str]:
    from counterprior.builders.suites import SUITES

    return [f"--config={name}" for name, suite in SUITES.items() if not suite.optional]


def _build_full_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # One job: starting other processes takes longer than they save.
    return _built_once(tmp_path_factory, "full", "--jobs=1", *_required(), command=FEW_SEEDS)


@pytest.fixture(scope="session")
def full_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every config that a bank must have, as `counterprior build` makes it, but for most of the
    seed images: see `few_seeds`. Read only."""
    return _build_full_release(tmp_path_factory)


@pytest.fixture(scope="session")
def drawn_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with all seed images, for lanes; read only."""
    return _built_once(tmp_path_factory, "drawn", *_required())


@pytest.fixture(scope="session")
def text_release(tmp_path_factory: pytest.TempPathFactory, cli: ForkingCommand) -> Path:
    """Three text configs; read only."""
    names = ("t2i_homogenization", "t2i_correctness", "spatial_uc")
    options = [word for name in names for word in ("--config", name)]
    return _built_once(tmp_path_factory, "text", *options, forked=cli)


@pytest.fixture(autouse=True)
def fresh_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """`datasets` caches in a folder of the test's own, which is there once it does."""
    import datasets

    cache = tmp_path_factory.getbasetemp() / "datasets_caches" / uuid.uuid4().hex
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    yield


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The folder of lanes is not imported where none of them runs or is named."""
    named = any(LANES.name in argument for argument in config.args)
    return (collection_path == LANES and _leaves_out_lanes(config) and not named) or None


def _leaves_out_lanes(config: pytest.Config) -> bool:
    """Whether the marks that tests are chosen by leave out all lanes."""
    return "not lane" in config.option.markexpr


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if LANES in item.path.parents and not item.get_closest_marker("lane"):
            raise pytest.UsageError(f"{item.nodeid}: it never runs there without the mark `lane`")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts to build the full release beside the first tests: the other worker would wait for
    it."""
    _leave_out_of_collections()
    needed = any("full_release" in getattr(item, "fixturenames", ()) for item in session.items)
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw0" and needed:
        factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        factory.getbasetemp()  # makes the folder, which two threads at once fail at
        threading.Thread(target=_build_full_release, args=(factory,), daemon=True).start()


@pytest.fixture(autouse=True, scope="module")
def small_collections() -> Iterator[None]:
    """Garbage is looked for among what a module's own tests made.

    With the libraries loaded there are a million objects, and going through them at each collection
    takes a quarter of the time of all tests.
    """
    yield
    _leave_out_of_collections()


def _leave_out_of_collections() -> None:
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says after a run of lanes how long the tests of each file took, with their fixtures."""
    config = terminalreporter.config
    if "lane" not in config.option.markexpr or _leaves_out_lanes(config):
        return
    seconds, tests = Counter[str](), Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.location[0]
                seconds[file] += report.duration
                tests[file] += report.when == "call"
    if seconds:
        terminalreporter.section("seconds, tests, lane")
    for file, took in seconds.most_common():
        terminalreporter.write_line(f"{took:8.1f} {tests[file]:5} {file}")


@pytest.fixture
def shared_data() -> Path:
    """Real data beside the checkout; skips where it is missing."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("no real data beside the checkout")
    return data
