"""How many CPUs a process may use."""

from __future__ import annotations

import os


def available_cpus() -> int:
    """CPUs that this process may use, at least 1: fewer than the machine has e.g. under Slurm."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
