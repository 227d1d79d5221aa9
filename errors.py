"""Errors that a user can fix, with their exit code and their remedy.

The command line shows these as one line. Any other exception is a bug of the program and shows its
traceback.
"""

from __future__ import annotations

from typing import ClassVar


class CounterpriorError(Exception):
    """Something that a user can mend.

    >>> str(CounterpriorError("out: is a file", remedy="name a folder"))
    'out: is a file: name a folder'
    """

    exit_code: ClassVar[int] = 1
    """1: the thing that was checked or used is wrong; 2: the command was."""
    code: str = "failed"
    """Stable name of the problem, in kebab case: `unknown-option`, `duplicate-case-id`. Messages
    may be reworded; programs and tests match the code."""

    def __init__(self, message: str, remedy: str = "", *, code: str = "") -> None:
        """`remedy` says what to do, where the message does not say so already."""
        # `args` holds only the texts, and the instance its code: both survive pickling between
        # processes.
        super().__init__(*((message, remedy) if remedy else (message,)))
        if code:
            self.code = code

    def __str__(self) -> str:
        return ": ".join(self.args)


class UsageError(CounterpriorError, ValueError):
    """An argument, option, spec or setting that can't be used."""

    exit_code = 2
    code = "usage"


class DataError(CounterpriorError, ValueError):
    """A file whose content can't be used; the message names file, row and field."""

    exit_code = 2
    code = "data"


class InUseError(CounterpriorError, RuntimeError):
    """A folder or file that another process is writing."""

    code = "in-use"


class RunFailed(CounterpriorError, RuntimeError):
    """Work that could not be done: a server, a model or a budget stood against it."""

    code = "run-failed"


CODES = {
    "all-failed": "every item of a kind failed; the message holds the first cause",
    "ambiguous-file": "a file that fits several cases",
    "animated-image": "an image with more than one frame",
    "another-run": "a folder that holds another run, study or race, or one with other settings",
    "another-version": "a file or folder that another version of the package wrote",
    "bad-answer": "a server or a program answered, but not in the form that is needed",
    "bad-csv": "a file that is not CSV",
    "bad-encoding": "a text that is not UTF-8",
    "bad-entry": "an entry of a bank that breaks a rule of its file",
    "bad-format": "a readable file of another format than the one that is needed",
    "bad-json": "a file or line that is not JSON",
    "bad-name": "a name that can't be the name of a file",
    "bad-option": "an option whose value has not the form that is needed",
    "bad-request": "a request to the labeling page that it can't answer",
    "bad-spec": "a spec that is not written as `kind:argument?key=value`",
    "bad-value": "a field whose value can't be used",
    "bad-yaml": "a file or text that is not YAML",
    "base-not-done": "cells that draw by the answers of others, which are not done",
    "batch-failed": "a provider rejected a whole batch",
    "canary": "a release that lacks its canary, or a prompt that holds it",
    "cannot-edit": "a generator that makes images from texts only",
    "cannot-generate": "a source of ready images that was asked for others",
    "cannot-pickle": "an object that can't be sent to worker processes",
    "cannot-pool": "a table that pools what has no pooled score",
    "cannot-record": "a payment that could not be written down",
    "cannot-write": "a file that could not be written",
    "changed-call": "a recorded call is made again with another request",
    "changed-file": "a file that is not the recorded one any more",
    "cheaper-price": "a price is lower than earlier calls of the folder counted at",
    "conflicting-labels": "labels of one image that exclude each other",
    "conflicting-options": "options that exclude each other",
    "damaged-file": "a file whose content was cut off or altered",
    "damaged-log": "a log with a line that can't be read",
    "declined": "a model refused to answer or to make an image",
    "different-judges": "runs of different judges, whose scores can't be compared",
    "different-rows": "images, runs or labels of other rows than the ones that are needed",
    "different-workers": "workers whose libraries or devices differ",
    "diverged": "a training whose loss is not a number",
    "dropped-file": "a release that lacks a published file",
    "duplicate-id": "a name, id or key that is used twice",
    "duplicate-option": "an option that is given twice",
    "empty-bank": "a bank without entries",
    "empty-clip": "a clip without frames",
    "factory-failed": "the user's own code raised an error",
    "failed-checks": "rows that fail the checks of their config",
    "failed-shards": "shards of a corpus that failed",
    "folder-not-empty": "a folder that holds files of something else",
    "foreign-head": "a repository that somebody else changed since the last release",
    "generator-failed": "a generator that raised an error or made nothing",
    "head-moved": "a repository that somebody else changed during the push",
    "hub-refuses": "the Hub rejected the request",
    "hub-unreachable": "the Hub failed repeatedly",
    "image-too-large": "an image or clip with too many bytes, pixels, scans or frames",
    "image-too-small": "an image or clip below the smallest side",
    "in-use": "a folder or file that another process is writing",
    "incomplete-run": "a run that lacks images or verdicts",
    "invalid-folder": "a folder in which `validate` finds a problem",
    "judge-unchecked": "a judge that `judge-check` has not checked",
    "license-change": "a release that changes the license of published data",
    "load-failed": "a model whose files can't be loaded",
    "missing-column": "a table without a column that is needed",
    "missing-field": "a row or file without a field that is needed",
    "missing-library": "an optional library that is not installed",
    "missing-option": "an option or argument that is needed",
    "needs-run": "a method that works only in a run of a suite",
    "no-base-run": "cells of a method whose generator without it the study leaves out",
    "no-biased-case": "a run without any biased case",
    "no-device": "a device that this machine does not have",
    "no-frame": "a frame that a clip does not have",
    "no-gold": "a suite or release without gold images",
    "no-images": "a run that came without its images, as from a publication",
    "no-log-probabilities": "a judge that returns no log probabilities",
    "no-price": "a cap is set, but a price is not known",
    "no-repository": "a repository that does not exist or that the token can't see",
    "no-revision": "a folder or repository without the revision",
    "no-scene": "an image without the scene that the renderer writes",
    "no-seed-image": "a row without a seed image",
    "no-such-file": "a file or folder that does not exist",
    "no-such-module": "a Python module or attribute that does not exist",
    "no-table": "a study or recipe without a table",
    "no-token": "no token or key in the environment",
    "not-a-benchmark": "a dataset without `eval.yaml`",
    "not-a-file": "a link or pipe where a regular file is needed",
    "not-a-number": "a value that must be a number",
    "not-a-publication": "a folder or repository that `publish` did not make",
    "not-a-release": "a folder or repository that `build` did not make",
    "not-a-run": "a folder that is not a run",
    "not-a-study": "a folder that is not a study",
    "not-published": "a folder of runs that was not published",
    "not-recorded": "a call or detection that the record does not hold",
    "not-signed": "a release without the signature of somebody whom the reader knows",
    "not-validated": "a release that was not validated",
    "nothing-judged": "a run without verdicts",
    "nothing-to-do": "nothing is left to work on",
    "out-of-range": "a number outside its range",
    "outside-folder": "a path that leads out of its folder",
    "over-budget": "the next call could exceed `--max-usd`",
    "program-failed": "a command or worker of the user failed",
    "remote-code": "a model that would run code of its repository",
    "removed-name": "a command or spec that is gone; the remedy says what to use instead",
    "sampled-run": "a run of a sample where all rows are needed",
    "secret-found": "a secret in what would be published",
    "server-error": "a server answered with an error",
    "server-unreachable": "a server that can't be reached",
    "several-models": "a ledger in which several models answered",
    "several-sources": "an edit of several images by a model that takes one",
    "stage-missing": "a run of the miner that lacks an earlier stage",
    "still-clip": "a clip whose frames are all alike",
    "system-error": "the operating system refused: no space, no permission, no such file",
    "timed-out": "a server or program took too long",
    "too-deep": "YAML nested too deeply",
    "too-few-items": "fewer items than are needed",
    "too-few-raters": "judges and people too few to tell their errors from the truth",
    "too-many-files": "a commit of too many files",
    "unbalanced-bank": "a bank whose entries can't be balanced",
    "unequal-draw": "labels of a sample in which some images had more chances than others",
    "unknown-class": "a class that a detector does not know",
    "unknown-field": "a field or key that does not exist",
    "unknown-format": "a file of another format than the supported ones",
    "unknown-name": "a name that is not one of the choices",
    "unknown-option": "an option that a spec does not have",
    "unknown-reference": "an id of something that does not exist",
    "unreadable-file": "a file that can't be read as its format",
    "unreadable-image": "an image or clip that can't be read",
    "untrusted-code": "a file that names code to run, which nobody said is trusted",
    "unsupported": "what a model, method or suite can't do",
    "verification-failed": "readers get something else than was pushed",
    "version-not-above": "a version that is not above the released ones",
    "version-reused": "a tag that exists with other content",
    "version-too-small": "a version step that is smaller than the change",
    "visibility": "a repository that is public and must be private, or the reverse",
    "workers-died": "worker processes that died",
    "would-overwrite": "an output that would replace an input",
    "wrong-count": "two lists that must be equally long",
    "wrong-medium": "a clip where an image is needed, or the reverse",
    "wrong-model": "a model of another kind than the one that is needed",
    "wrong-size": "an image of another size",
    "wrong-suite": "a run of another suite than the one that is needed",
    "wrong-type": "a value of another type",
}
"""Every code of a raise site -> the problem that it names. One problem has one code everywhere."""
GENERIC = {error.code for error in (CounterpriorError, UsageError, DataError, RunFailed)}
"""Codes of errors that name no problem of their own."""
