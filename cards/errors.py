"""Errors that stop a push or a request to the Hub."""

from __future__ import annotations

from ..errors import RunFailed


class HubError(RunFailed):
    """A push that is refused or stopped, or a repository that can't be read.

    Its code says which (see `counterprior.errors.CODES`): `hub-unreachable` may pass if tried
    again; `verification-failed` leaves a commit without a tag. With every other code, nothing has
    been released.
    """
