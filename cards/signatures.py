"""Signs a release by an SSH key and checks who signed it, by OpenSSH's own program.

The signature is of `checksums.json`, which has the digests of all other files, in the format that
git uses for commits (`ssh-keygen -Y`). It stands beside that file and is the one not listed there.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..errors import UsageError
from ..printable import printable
from ..release import CHECKSUMS, SIGNATURE_FILE, ReleaseError

NAMESPACE = "counterprior"
"""Keeps a signature made for another purpose, such as a git commit, from counting as ours."""

REPEATABLE = ("ED25519", "RSA")
"""Kinds of keys that sign the same bytes alike each time: a repeated push must repeat its bytes."""


def sign(root: Path, key: Path) -> None:
    """Writes the signature of a release folder.

    key: private SSH key, or the public one of a key that the SSH agent holds. A passphrase is asked
    for by ssh-keygen itself. Raises UsageError if the key can't be used.
    """
    described = _ssh_keygen("-l", "-f", str(key))
    kind = described.stdout.strip().rpartition("(")[2].rstrip(")")
    if described.returncode != 0 or kind not in REPEATABLE:
        why = f"is a key of kind {kind}" if kind else "is no SSH key"
        raise UsageError(
            f"{key}: {why}",
            "sign with an Ed25519 or RSA key: `ssh-keygen -t ed25519 -f KEY` makes one",
            code="bad-value",
        )
    signed = _ssh_keygen("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(root / CHECKSUMS))
    if signed.returncode != 0:
        raise UsageError(
            f"{key}: ssh-keygen does not sign with it ({_reason(signed)})",
            "name a private key, or the public one of a key that ssh-agent holds",
            code="bad-value",
        )


def signer(root: Path, allowed: Path) -> str:
    """Who signed a release folder, by the names in a file of allowed signers.

    allowed: lines of a name and a public key, as `ssh-keygen` reads them (ALLOWED SIGNERS in its
    manual). Raises ReleaseError if the release has no signature or one of somebody else, or if it
    was changed after it was signed; UsageError if there is no such file.
    """
    if not allowed.is_file():
        raise UsageError(
            f"{allowed}: no such file",
            "write a line for each signer: a name, a space, and the public key",
            code="no-such-file",
        )
    signature = root / SIGNATURE_FILE
    if not signature.is_file():
        raise ReleaseError(
            f"{SIGNATURE_FILE}: there is none: the release is not signed; leave out --signed-by "
            "or ask its makers",
            code="not-signed",
        )
    names = _ssh_keygen("-Y", "find-principals", "-s", str(signature), "-f", str(allowed))
    name = next(iter(names.stdout.splitlines()), "").partition(",")[0]
    if names.returncode != 0 or not name:
        raise ReleaseError(
            f"{SIGNATURE_FILE}: is of no key that {allowed} lists ({_reason(names)}): don't use "
            "the release unless you know the key",
            code="not-signed",
        )
    text = (root / CHECKSUMS).read_bytes()
    checked = _ssh_keygen(
        *("-Y", "verify", "-f", str(allowed), "-I", name, "-n", NAMESPACE, "-s", str(signature)),
        text=text,
    )
    if checked.returncode != 0:
        raise ReleaseError(
            f"{SIGNATURE_FILE}: does not fit {CHECKSUMS} ({_reason(checked)}): the release was "
            "changed after it was signed; don't use it",
            code="not-signed",
        )
    return printable(name)


def _ssh_keygen(*arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Runs ssh-keygen. Raises UsageError if it is not installed."""
    try:
        done = subprocess.run(["ssh-keygen", *arguments], input=text, capture_output=True)
    except FileNotFoundError:
        raise UsageError(
            "signatures are made and checked by ssh-keygen, which is not installed",
            "install OpenSSH",
            code="missing-library",
        ) from None
    return subprocess.CompletedProcess(
        done.args,
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that ssh-keygen wrote about a failure."""
    lines = (done.stderr + done.stdout).strip().splitlines()
    return printable(lines[-1]) if lines else f"exit code {done.returncode}"
