"""`publish`: a study, or some runs, as the folder of a dataset; the Hub is another module's.

Images are streamed into shards, one row group in memory at a time. Every text is scrubbed of what
belongs to this machine alone. The same runs and settings give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...clip_files import clip_frames, encode_mp4, ending_of
from ...errors import DataError, UsageError
from ...images import ImageError, open_image, pixels_digest
from ...progress import Progress, silent
from ...release import (
    CHECKSUMS,
    ReleaseError,
    foreign_files,
    means_folder,
    read_checksums,
    sha256_file,
    verify,
)
from ...schema import canonical
from ...storage import whole_folder, write_whole
from ..core import Score, without_nan
from ..engine.run import HEADER, CaseResult, Run, RunError
from ..results.judge_check import CHECK
from ..results.scoring import JudgedRun, ScoreSettings, score_run
from ..store.verdicts import Answered
from ..suites import open_suite
from .card import write_card
from .members import Publishable, find_members, study_file
from .publication import (
    HOLDOUT,
    PUBLICATION,
    STUDY,
    Publication,
    PublishedHeadline,
    PublishedJudge,
    PublishedRun,
    read_publication,
    write_publication,
)
from .scrubbing import Scrubber
from .shards import Shards, image_sizes, shard_rows

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class PublishSettings:
    """License and image format of a publication."""

    license: str
    """Identifier of the Hub, e.g. `cc-by-4.0`."""
    image_format: str = "png"
    """`png`: the judged files, byte for byte; `webp`: encoded anew."""
    quality: int | None = None
    """Quality of WebP, 1 to 100; None: lossless, no pixel changes."""

    def check(self, members: Sequence[Publishable]) -> None:
        """Raises UsageError for a missing license, an unknown format and a wrong quality."""
        if not self.license:
            generators = {
                m.generator: f"{m.generator} ({m.run.header.generator['kind']})" for m in members
            }
            raise UsageError(
                f"say with --license under which license the images may be shared, e.g. cc-by-4.0. "
                f"It must be one that the licenses of the generators permit: read those of "
                f"{', '.join(generators.values())}",
                code="missing-option",
            )
        if not re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", self.license):
            raise UsageError(
                f"--license {self.license!r}: write the Hub's identifier, e.g. cc-by-4.0, "
                f"openrail or other",
                code="bad-option",
            )
        if self.image_format not in ("png", "webp"):
            raise UsageError(
                f"--format {self.image_format!r}: choose png or webp", code="unknown-name"
            )
        if self.quality is not None and (
            self.image_format != "webp" or not 1 <= self.quality <= 100
        ):
            raise UsageError(
                "--quality is of --format webp, 1 to 100; without it no pixel is changed",
                code="out-of-range",
            )


def build_publication(
    roots: Sequence[Path],
    out: Path,
    settings: PublishSettings,
    progress: Progress = silent,
) -> Publication:
    """Writes the publication of some runs to a folder, unless the same is already there.

    Raises RunError for runs not judged to the end or without their images, and images changed
    since; DataError for secrets of this machine in an image; UsageError for bad settings.
    """
    members = find_members(roots)
    settings.check(members)
    for member in members:
        member.run.check_files()
    study = study_file(roots)
    _claim(out)
    with ExitStack() as locks:
        for member in members:
            locks.enter_context(member.run.lock())
        made_from = _made_from(members, study, settings)
        if (existing := _same(out, made_from)) is not None:
            return existing
        with whole_folder(out) as folder:
            scrubber = Scrubber([*roots, *(member.run.root for member in members)])
            writer = _Writer(folder, settings, scrubber, progress)
            publication = writer.write(members, made_from)
            if study is not None:
                write_whole(folder / STUDY, scrubber.text(study.read_text("utf-8")))
            write_publication(publication, folder)
            write_card(publication, folder)
            _check_texts(folder, scrubber)
    return publication


def _claim(out: Path) -> None:
    """Raises RunError for a folder with anything but a publication."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        digest = read_checksums(out)["files"].get(PUBLICATION, {}).get("sha256")
        is_publication = (out / PUBLICATION).is_file() and sha256_file(out / PUBLICATION) == digest
    except (ReleaseError, OSError, AttributeError):
        is_publication = False
    foreign = foreign_files(out) if is_publication else []
    if not is_publication or foreign:
        problem = f"also holds {foreign[0]}" if foreign else "is not empty, and not a publication"
        raise RunError(f"{out} {problem}: choose another --out", code="folder-not-empty")


def _made_from(
    members: Sequence[Publishable], study: Path | None, settings: PublishSettings
) -> str:
    """Digest of everything that a publication is made from."""
    digest = hashlib.sha256(canonical([asdict(settings), _versions()]))
    for member in members:
        root = member.run.root
        logs = [root / HEADER, root / "cases.jsonl", *sorted(root.glob("images*.jsonl"))]
        files = [*logs, *sorted(root.glob("verdicts/*/*.json*")), *root.glob(CHECK)]
        for path in files:
            digest.update(canonical([member.name, path.relative_to(root).as_posix()]))
            digest.update(bytes.fromhex(sha256_file(path)))
    if study is not None:
        digest.update(bytes.fromhex(sha256_file(study)))
    return digest.hexdigest()


def _same(out: Path, made_from: str) -> Publication | None:
    """Returns the publication in the folder if it is intact and made from the same."""
    try:
        existing = read_publication(out)
        return existing if existing.made_from == made_from and not verify(out) else None
    except ReleaseError:
        return None


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in ("counterprior", "pillow", "pyarrow")}


def _check_texts(folder: Path, scrubber: Scrubber) -> None:
    """Raises DataError for a text file with secrets of this machine."""
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".json", ".md", ".yaml")):
        if path.name != CHECKSUMS and (secret := scrubber.leak(path.read_bytes())):
            raise DataError(
                f"{path.name} would publish {secret}; nothing was published", code="secret-found"
            )


class _Writer:
    """Writes the tables of one publication."""

    def __init__(
        self, folder: Path, settings: PublishSettings, scrubber: Scrubber, progress: Progress
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.scrubber = scrubber
        self.progress = progress

    def write(self, members: Sequence[Publishable], made_from: str) -> Publication:
        """Writes every parquet file; returns the facts."""
        sizes = [size for member in members for size in image_sizes(member.run)]
        total = len(sizes)
        with ExitStack() as stack:
            tables = (("images", shard_rows(sizes)), ("verdicts", [0]), ("scores", [0]))
            shards = []
            for name, rows in tables:
                shards.append(Shards(self.folder, name, rows))
                stack.callback(shards[-1].abandon)
            return self._write(members, made_from, shards, total)

    def _write(
        self, members: Sequence[Publishable], made_from: str, shards: Sequence[Shards], total: int
    ) -> Publication:
        """total: images of all members."""
        images, verdicts, scores = shards
        runs, done = [], 0
        for member in members:
            judged = score_run(member.run.root, ScoreSettings())
            digest, statuses = hashlib.sha256(), Counter[str]()
            for row in self._image_rows(member):
                images.add(row, member.name)
                judged_columns = {k: v for k, v in row.items() if k not in ENCODING}
                digest.update(canonical(_digested(judged_columns)) + b"\n")
                statuses[row["status"]] += 1
                done += 1
                self.progress("images into shards", done, total)
            judges = [self._judge(member, judged_run, verdicts, scores) for judged_run in judged]
            runs.append(self._run(member, judges, digest.hexdigest(), statuses))
        return Publication(
            license=self.settings.license,
            image_format=self.settings.image_format,  # type: ignore[arg-type]
            quality=self.settings.quality,
            made_with=_versions(),
            made_from=made_from,
            runs=runs,
            files=[*images.end(), *verdicts.end(), *scores.end()],
        )

    def _image_rows(self, member: Publishable) -> Iterator[dict[str, Any]]:
        """Yields every case with its image or text, or the reason of its failure."""
        results, present = member.run.images(), member.run.present()
        for case in member.run.cases():
            image = results.get(case.id) or CaseResult(case.id, "missing")
            row = {
                "suite": member.suite,
                "generator": member.generator,
                "case": case.id,
                "prompt": case.prompt,
                "image": None,
                "status": image.status,
                "message": self.scrubber.text(image.message),
                "sha256": image.sha256,
                "pixels_sha256": "",
                "width": None,
                "height": None,
                "row": case.row,
                "variant": case.variant,
                "seed": case.seed,
                "number": case.number,
                "clusters": list(case.clusters),
                "groups": _json(case.groups),
                "weights": _json(case.weights),
                "source": case.source,
                "report": self.scrubber.text(image.report),
                "video": None,
                "frames": image.frames or None,
                "rate": image.fps or None,
                "text": None,
                "right_labels": _json(case.key) if case.key else None,
            }
            if case.id in present:
                row |= self._encoded(member.run, image)
            yield row

    def _encoded(self, run: Run, image: CaseResult) -> dict[str, Any]:
        """The judged image, clip or text as it is published.

        Raises RunError where it isn't the judged one any more, DataError where it holds what must
        not leave this machine.
        """
        try:
            data = run.image_path(image).read_bytes()
        except OSError as error:
            raise RunError(
                f"{run.root}, {image.case}: its image can't be read ({error})",
                code="unreadable-image",
            ) from None
        if hashlib.sha256(data).hexdigest() != image.sha256:
            raise RunError(
                f"{run.root}, {image.case}: its image is not the judged one any more; run "
                f"`counterprior judge {run.root}` again",
                code="changed-file",
            )
        if image.is_text:
            return self._encoded_text(run, image, data)
        try:
            if image.frames:
                return self._encoded_clip(image, data)
            opened = open_image(BytesIO(data))
        except ImageError as error:
            raise DataError(
                f"{run.root}, {image.case}: its image {error}", code="unreadable-image"
            ) from None
        if self.settings.image_format == "webp":
            data = _webp(opened, self.settings.quality)
        elif secret := self.scrubber.leak(data) or self.scrubber.leak(_metadata_texts(data)):
            raise DataError(
                f"{run.root}, {image.case}: the metadata of its image hold {secret}: publish with "
                f"--format webp, which leaves metadata out",
                code="secret-found",
            )
        return {
            "image": {"bytes": data, "path": f"{image.case}{_ending(data)}"},
            "pixels_sha256": pixels_digest(opened),
            "width": opened.width,
            "height": opened.height,
        }

    def _encoded_text(self, run: Run, image: CaseResult, data: bytes) -> dict[str, Any]:
        """Returns a text unchanged, so that its digest stays that of the judged text."""
        place = f"{run.root}, {image.case}"
        if secret := self.scrubber.leak(data):
            raise DataError(
                f"{place}: its text holds {secret}: name only other runs to publish them",
                code="secret-found",
            )
        try:
            return {"text": data.decode()}
        except UnicodeDecodeError as error:
            raise DataError(
                f"{place}: its text is no UTF-8 ({error.reason})", code="bad-encoding"
            ) from None

    def _encoded_clip(self, image: CaseResult, data: bytes) -> dict[str, Any]:
        """An MP4 as it is; any other clip, and one whose metadata tell too much, encoded anew.

        Raises ClipError for one that can't be decoded.
        """
        first = next(clip_frames(data))
        if ending_of(data) != ".mp4" or self.scrubber.leak(data):
            data = encode_mp4(list(clip_frames(data)), image.fps).data
        return {
            "video": {"bytes": data, "path": f"{image.case}.mp4"},
            "width": first.width,
            "height": first.height,
        }

    def _judge(
        self, member: Publishable, judged: JudgedRun, verdicts: Shards, scores: Shards
    ) -> PublishedJudge:
        """Writes the verdicts and scores of one judge of a run; what the facts say of it."""
        result, log = judged.result, judged.log
        whose = {
            "suite": member.suite,
            "generator": member.generator,
            "judge": self.scrubber.text(result.judge),
            "judge_id": log.root.name,
        }
        digests = {name: hashlib.sha256() for name in ("verdicts", "scores")}
        answered = sorted(log.present(member.run.present()), key=_sort_key)
        for answer in answered:
            row = {**whose, **self._verdict(answer)}
            digests["verdicts"].update(canonical(_digested(row)) + b"\n")
            verdicts.add(row, member.name)
        for score in result.scores:
            row = {**whose, **score_columns(score, result.cases)}
            digests["scores"].update(canonical(row) + b"\n")
            scores.add(row, member.name)
        return PublishedJudge(
            name=whose["judge"],
            id=log.root.name,
            identity=self.scrubber.value(log.identity),
            card=self.scrubber.value(without_nan(result.card)),
            verdicts=len(answered),
            verdicts_sha256=digests["verdicts"].hexdigest(),
            scores_sha256=digests["scores"].hexdigest(),
            headline=_headline(member.suite, judged),
            notes=[self.scrubber.text(note) for note in result.notes],
            check={} if judged.check is None else self.scrubber.value(asdict(judged.check)),
        )

    def _verdict(self, answered: Answered) -> dict[str, Any]:
        verdict = answered.verdict
        # The judge's words as they are; what a program wrote in place of them names its files.
        cleaned = self.scrubber.text if verdict.failed else self.scrubber.answer
        raw = cleaned(verdict.raw).encode("utf-8", "backslashreplace").decode()
        shares = verdict.probabilities
        return {
            "case": answered.case,
            "image_sha256": answered.image,
            "question": answered.question,
            "probe": answered.probe,
            "label": verdict.label,
            "raw": raw,
            "number": verdict.number,
            "probabilities": "" if shares is None else _json(shares),
            "mass": verdict.mass,
            "labels": list(answered.labels),
            "answers": _json(answered.answers),
            "sided": answered.sided,
            "key": answered.key,
            "usd": verdict.usd,
            "frame": answered.frame,
        }

    def _run(
        self, member: Publishable, judges: list[PublishedJudge], digest: str, statuses: Counter[str]
    ) -> PublishedRun:
        header = member.run.header
        data, release = release_of(header.data)
        results = member.run.images().values()
        return PublishedRun(
            suite=member.suite,
            generator=member.generator,
            identity=self.scrubber.value(header.generator),
            data=data,
            release=release,
            rows_sha256=header.rows_sha256,
            rows=header.rows,
            seeds=header.seeds,
            limit=header.limit,
            images=dict(sorted(statuses.items())),
            images_sha256=digest,
            judges=judges,
            clips=sum(image.frames > 0 for image in results),
            texts=sum(image.is_text for image in results),
            where=self.scrubber.text(header.where),
        )


_OPTIONAL = ("frames", "rate", "frame", "text", "right_labels")
"""Columns of clips, texts and known answers: no digest counts them where there is none."""
ENCODING = ("image", "video", "pixels_sha256", "width", "height")
"""Columns that depend on the published format, or follow from the image's digest."""


def _digested(row: Mapping[str, Any]) -> dict[str, Any]:
    """Columns that the digest of a row covers."""
    return {k: v for k, v in row.items() if v is not None or k not in _OPTIONAL}


def score_columns(score: Score, cases: int) -> dict[str, Any]:
    """A score as the columns of `scores`; None where a number is undefined."""
    row: dict[str, Any] = {
        "score": score.name,
        "group": score.group,
        "value": score.value,
        "low": score.interval.low,
        "high": score.interval.high,
        "unit": score.unit,
        "n": score.n,
        "excluded": _json(score.excluded),
        "cases": cases,
        "null": score.null,
        "wide_low": score.wide.low,
        "wide_high": score.wide.high,
        "these_items_low": score.these_items.low,
        "these_items_high": score.these_items.high,
        "effective_n": score.effective,
        "bounds_low": score.bounds.low,
        "bounds_high": score.bounds.high,
        "p_value": score.p_value,
        "warning": score.warning,
    }
    plain: dict[str, Any] = without_nan(row)
    return plain


def release_of(data: str) -> tuple[str, dict[str, str]]:
    """Where a run's rows are for everybody, and what the release's own manifest says of itself.

    A folder of this machine is named by its manifest alone, which may be gone by now.
    """
    root = Path(data)
    if not root.is_dir():
        return ("" if means_folder(data) else data), {}
    try:
        manifest = json.loads((root / "manifest.json").read_text("utf-8"))
        changes, bank = manifest["changes"], manifest["bank_sha256"]
        release = {"version": str(changes[0]["version"]), "bank_sha256": str(bank)}
        secret = bool((manifest.get("holdout") or {}).get("private"))
        return "", release | ({HOLDOUT: "private"} if secret else {})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return "", {}


def _headline(suite: str, judged: JudgedRun) -> PublishedHeadline:
    headline = open_suite(suite).headline
    score = judged.whole[headline.score]
    return PublishedHeadline(
        score=score.name,
        better=headline.better,
        value=without_nan(score.value),
        low=without_nan(score.interval.low),
        high=without_nan(score.interval.high),
        unit=score.unit,
        n=score.n,
        excluded=dict(score.excluded),
        marks=list(score.marks),
    )


def _sort_key(answered: Answered) -> tuple[str, str, str, int]:
    """Sort key of a verdict in its table."""
    return answered.case, answered.question, answered.probe, answered.frame or 0


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), sort_keys=True, ensure_ascii=False)


def _webp(image: Image, quality: int | None) -> bytes:
    buffer = BytesIO()
    how = {"lossless": True, "exact": True} if quality is None else {"quality": quality}
    image.save(buffer, "WEBP", method=4, **how)
    return buffer.getvalue()


def _metadata_texts(data: bytes) -> bytes:
    """The texts in an image's metadata, also compressed ones."""
    from PIL import Image

    with Image.open(BytesIO(data)) as image:
        texts = [value if isinstance(value, bytes) else str(value) for value in image.info.values()]
    return b"\n".join(v if isinstance(v, bytes) else v.encode("utf-8", "replace") for v in texts)


def _ending(data: bytes) -> str:
    """The ending of an image's file name, by its content."""
    from PIL import Image

    with Image.open(BytesIO(data)) as image:
        return {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}.get(image.format or "", "")
