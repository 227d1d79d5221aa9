"""The rows that `corpus mine` writes: one per pair, with everything that a reader needs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...schema import canonical
from ..captions.miner import Mined

if TYPE_CHECKING:
    import pyarrow as pa


def pair_schema() -> pa.Schema:
    """Arrow schema of the pair rows, which `datasets` reads as it is."""
    import pyarrow as pa

    mention = pa.struct(
        [
            ("name", pa.string()),
            ("category", pa.string()),
            ("head", pa.string()),
            ("phrase", pa.string()),
            ("quantifier", pa.string()),
            ("start", pa.int32()),
            ("end", pa.int32()),
        ]
    )
    return pa.schema(
        [
            ("id", pa.string()),
            ("source", pa.string()),
            ("row", pa.int64()),
            ("uid", pa.string()),
            ("url", pa.string()),
            ("image", pa.string()),
            ("similarity", pa.float64()),
            ("caption", pa.string()),
            ("text", pa.string()),
            ("width", pa.int64()),
            ("height", pa.int64()),
            ("first", mention),
            ("second", mention),
            ("pattern", pa.string()),
            ("relation", pa.string()),
            ("sentence", pa.string()),
            ("spatial_words", pa.list_(pa.string())),
            ("tokens", pa.int32()),
            ("pairs_in_caption", pa.int32()),
        ]
    )


def pair_rows(source: str, row: dict[str, Any], mined: Mined) -> Iterator[dict[str, Any]]:
    """Yields the rows of one caption; offsets refer to `text`, the normalized caption."""
    for pair in mined.pairs:
        spans = (pair.first.start, pair.second.start, pair.pattern, pair.relation)
        yield {
            "id": pair_id(source, row["row"], mined.text, *spans),
            "source": source,
            "row": row["row"],
            "uid": row.get("uid"),
            "url": row["url"],
            "image": row.get("image"),
            "similarity": row.get("similarity"),
            "caption": row["caption"],
            "text": mined.text,
            "width": row.get("width"),
            "height": row.get("height"),
            "first": asdict(pair.first),
            "second": asdict(pair.second),
            "pattern": pair.pattern,
            "relation": pair.relation,
            "sentence": pair.sentence,
            "spatial_words": list(mined.spatial),
            "tokens": mined.tokens,
            "pairs_in_caption": len(mined.pairs),
        }


def pair_id(source: str, row: int, text: str, *place: object) -> str:
    """Content hash of a pair, unique in a run: by file and row, caption and words.

    source: name of the file; row: number of its row; text: caption; place: where in the text.
    """
    return f"pair-{hashlib.sha256(canonical([source, row, text, *place])).hexdigest()[:16]}"
