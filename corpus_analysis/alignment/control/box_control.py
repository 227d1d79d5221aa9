"""Run of the control: from captions to pairs, boxes and rates, with a judge beside them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ....errors import UsageError
from ....eval.core import Judge
from ....eval.engine.costs import Cost
from ....eval.geometry.instances import BoxedImage, Instances
from ....eval.judges import Answering, open_judge
from ....progress import Progress, silent
from ....storage import Lock, write_json, write_whole
from ...captioning.people import HumanCaption, read_people
from ...captions.miner import Mined, Miner
from ...captions.parser import installed_model
from ..layout_judge import PairToJudge, open_log, verify
from ..rates import JudgedPair
from .boxed_pairs import UNBOXED, BoxedPair, ImagePair, match
from .judge_bias import JudgeBias, measure_bias
from .result import BoxControl
from .subsets import group_rates, subset_rates

RESULT = "control.json"
PAIRS = "pairs.jsonl"
PAGE = "index.html"
JUDGMENTS = "judgments"
LOCK = ".lock"
BATCH = 5_000
"""Captions mined between two reports of progress."""
FILES = (".jpg", ".jpeg", ".png", ".webp")


def run_control(
    boxes: Path,
    captions: Path,
    out: Path,
    *,
    cost: Cost,
    judge_spec: str = "",
    images: Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> BoxControl:
    """Mines the captions, matches their boxes, asks the judge and writes the result.

    boxes: people's boxes, in COCO's instances format. captions: people's captions of the same
    images, in COCO's format or as rows with `image` and `caption`. judge_spec: a judge to
    compare with the boxes, which needs the folder of the photographs, `images`; photographs without
    boxes are judged too. limit: maximum number of pairs to judge, chosen by digest. seed: chooses
    the caption of an image in subsets where only one counts. A second run resumes and asks no
    question twice.

    Raises UsageError for bad settings, InUseError if another run writes to the folder, DataError
    for bad files, ModelMissing without spaCy, RunFailed if the judge can't answer at all.
    """
    installed_model()
    if judge_spec and images is None:
        raise UsageError(
            "a judge needs the photographs: name their folder with --images", code="missing-option"
        )
    with Lock(out / LOCK, str(out)), cost.plan(out) as plan:
        judge = None
        if judge_spec:
            judge = open_judge(judge_spec, plan)
            if isinstance(judge, Answering):
                judge.check()
        instances = Instances.read(boxes)
        image_by_id = {image.id: image for image in instances.images}
        human_captions = read_people(captions, _ids(instances, images))
        mined_captions, model = _mine(human_captions.captions, progress)
        funnel: Counter[str] = Counter(
            captions=len(human_captions.captions) + human_captions.of_other_images,
            of_images=len(human_captions.captions),
        )
        classes = {name for image in instances.images for name in {*image.boxes, *image.crowds}}
        boxed: list[BoxedPair] = []
        without_boxes: list[ImagePair] = []
        for number, (caption, mined_caption) in enumerate(
            zip(human_captions.captions, mined_captions, strict=True)
        ):
            pairs = mined_caption.pairs if mined_caption else ()
            image = image_by_id.get(caption.image)
            if image is None:
                without_boxes += [ImagePair(caption.image, number, pair) for pair in pairs]
                continue
            funnel["with_boxes"] += 1
            funnel["errors"] += bool(mined_caption and mined_caption.error)
            funnel["with_pair"] += bool(pairs)
            funnel["pairs"] += len(pairs)
            for pair in pairs:
                boxes_or_reason = match(pair, image, classes)
                if isinstance(boxes_or_reason, str):
                    funnel[boxes_or_reason] += 1
                elif mined_caption is not None:
                    funnel["boxed"] += 1
                    boxed.append(
                        BoxedPair(image.id, number, pair, mined_caption.spatial, *boxes_or_reason)
                    )
        _write_pairs(out / PAIRS, boxed, human_captions.captions)
        judge_bias = None
        if judge is not None and images is not None:
            candidates = _candidates(boxed, without_boxes, image_by_id, images, seed, limit)
            judge_bias = _judge(judge, out, candidates, boxed, without_boxes, progress)
        stages = "captions of_images with_boxes errors with_pair pairs".split()
        result = BoxControl(
            funnel={name: funnel[name] for name in (*stages, *UNBOXED, "boxed")},
            matched=dict(
                sorted(Counter(h.how for p in boxed for h in (p.first, p.second)).items())
            ),
            subsets=subset_rates(boxed, seed),
            groups=group_rates(boxed),
            model=model,
            boxes=instances.digest,
            judge=judge_bias,
        )
        write_json(out / RESULT, result.to_json())
        write_whole(out / PAGE, result.to_html(out.name))
        return result


def _ids(boxes: Instances, folder: Path | None) -> dict[str, str]:
    """Maps every name that captions may use for an image to its id: its file name without boxes."""
    ids: dict[str, str] = {}
    if folder is not None:
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder of images", code="no-such-file")
        ids = {path.name: path.name for path in folder.iterdir() if path.suffix.lower() in FILES}
    for image in boxes.images:
        file_names = (name.rpartition("/")[2] for name in image.names)
        ids |= dict.fromkeys((image.id, *image.names, *file_names), image.id)
    return ids


def _mine(captions: Sequence[HumanCaption], progress: Progress) -> tuple[list[Mined | None], str]:
    """Mines every caption by the miner's rules, without its quality gate."""
    import pyarrow as pa

    miner = Miner()
    mined: list[Mined | None] = []
    for start in range(0, len(captions), BATCH):
        progress("captions", start, len(captions))
        mined += miner(pa.array([c.text for c in captions[start : start + BATCH]], pa.string()))
    progress("captions", len(captions), len(captions))
    return mined, miner.parser.model


def _write_pairs(path: Path, boxed: Sequence[BoxedPair], captions: Sequence[HumanCaption]) -> None:
    rows = (
        {
            "id": pair.id,
            "caption": captions[pair.caption].text,
            "relation": pair.pair.relation,
            "first": {"name": pair.pair.first.name, **asdict(pair.first)},
            "second": {"name": pair.pair.second.name, **asdict(pair.second)},
        }
        for pair in boxed
    )
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _candidates(
    boxed: Sequence[BoxedPair],
    without_boxes: Sequence[ImagePair],
    image_by_id: dict[str, BoxedImage],
    folder: Path,
    seed: int,
    limit: int | None,
) -> dict[str, PairToJudge]:
    """Returns pairs to judge by id: those whose boxes the words single out, or without boxes."""
    pairs: list[ImagePair] = [pair for pair in boxed if not pair.guessed]
    pairs += without_boxes
    # By digest: a limit takes a random part of both, as PPI++ asks.
    pairs.sort(key=lambda pair: hashlib.sha256(f"{seed}/{pair.id}".encode()).hexdigest())
    candidates: dict[str, PairToJudge] = {}
    for pair in pairs[:limit]:
        image = image_by_id.get(pair.image)
        name = image.names[0].rpartition("/")[2] if image else pair.image
        path = folder / name
        data = path.read_bytes() if path.is_file() else b""
        row = {
            "id": pair.id,
            "url": name,
            "image": name,
            "first": {"name": pair.pair.first.name},
            "second": {"name": pair.pair.second.name},
        }
        candidates[pair.id] = PairToJudge(row, path, hashlib.sha256(data).hexdigest())
    return candidates


def _judge(
    judge: Judge,
    out: Path,
    candidates: dict[str, PairToJudge],
    boxed: Sequence[BoxedPair],
    without_boxes: Sequence[ImagePair],
    progress: Progress,
) -> JudgeBias:
    """Asks the judge about the candidates and measures its bias."""
    log = open_log(out / JUDGMENTS, judge)
    answers = verify(list(candidates.values()), judge, log, progress)
    judged = {
        key: JudgedPair(candidate.pair, answers[key]) for key, candidate in candidates.items()
    }
    return measure_bias(
        dict(log.identity),
        [(pair, judged[pair.id]) for pair in boxed if pair.id in judged],
        [judged[pair.id] for pair in without_boxes if pair.id in judged],
    )
