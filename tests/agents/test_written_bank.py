"""A bank that models write starts as a copy of another; what the disk refuses is said."""

import errno
import shutil
from pathlib import Path

import pytest

from counterprior.builders.authoring.folder import written_bank
from counterprior.builders.bank import DEFAULT_BANK


def test_a_full_disk_is_the_first_files_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    (base / "facts").mkdir(parents=True)
    for name in ("a.yaml", "b.yaml"):
        (base / "facts" / name).write_text("[]")

    def full(source: str, target: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", target)

    monkeypatch.setattr(shutil, "copy2", full)
    with (
        pytest.raises(OSError, match="No space left") as refused,
        written_bank(base, tmp_path / "bank", without="constrained"),
    ):
        pass
    assert refused.value.errno == errno.ENOSPC
    assert not (tmp_path / "bank").exists()


def test_it_starts_with_all_shipped_files_but_those_to_write(tmp_path: Path) -> None:
    def files(bank: Path) -> dict[str, bytes]:
        return {str(p.relative_to(bank)): p.read_bytes() for p in bank.rglob("*") if p.is_file()}

    with written_bank(None, tmp_path / "bank", without="counterfactual") as folder:
        copied = files(folder)
    shipped = files(DEFAULT_BANK)
    left_out = {name for name in shipped if name.startswith("counterfactual/")}
    assert left_out and copied == {n: shipped[n] for n in shipped.keys() - left_out}
