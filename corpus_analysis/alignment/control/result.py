"""The result of the control, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from ....eval.core import without_nan
from ....eval.report.single_page import single_page, table
from ....eval.stats.estimate import Estimate
from ..page import identity_text, interval, percent
from .judge_bias import JudgeBias
from .subsets import SUBSETS, SubsetRate

_MEASURES = {
    "by_judge": "first-mentioned on the left, by the judge",
    "by_boxes": "the same pairs, by the boxes",
    "bias": "how much the judge adds",
    "four_probes": "how much the mean of its four probes adds",
    "agrees": "agrees with the boxes",
    "left_if_left": "answers left where it is left",
    "left_if_right": "answers left where it is right",
    "unboxed": "images without boxes, by the judge",
    "corrected": "all images, corrected by the boxes (PPI++)",
}


@dataclass(frozen=True)
class BoxControl:
    """The result of a run."""

    funnel: dict[str, int]
    """Counts from captions to pairs with boxes, and of pairs without by reason."""
    matched: dict[str, int]
    """Boxes of pairs by how they were chosen, see `boxed_pairs.How`."""
    subsets: dict[str, SubsetRate]
    """The rate of every subset of `subsets.SUBSETS`."""
    groups: dict[str, dict[str, SubsetRate]]
    """Rates of pairs whose boxes the words single out, by properties of the caption."""
    model: str
    """spaCy model and version."""
    boxes: str
    """Digest of the boxes."""
    judge: JudgeBias | None
    """The judge beside the boxes; None without one."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(asdict(replace(self, judge=None)))
        plain["judge"] = self.judge.to_json() if self.judge is not None else None
        plain["says"] = {name: subset.says for name, subset in SUBSETS.items()}
        return plain

    def to_html(self, title: str) -> str:
        """The page; names from files are escaped."""
        rates = {SUBSETS[name].says: rate for name, rate in self.subsets.items()}
        sections = [
            f"<h1>{escape(title)}: do people name the left one first?</h1>",
            "<p>Captions and boxes by people, without a language model. Without an order effect, "
            "half of the first-mentioned would be on the left. The rate depends on which pairs "
            "count and which box a word gets, so read all of these together.</p>",
            _rates_table(rates),
            "<h2>By properties of the caption, boxes that the words single out</h2>",
            *(
                f"<h3>{escape(name)}</h3>{_rates_table(group)}"
                for name, group in self.groups.items()
            ),
            "<h2>From captions to boxes</h2>",
            table(("stage", "count"), self.funnel.items()),
            "<h2>How boxes were chosen</h2>",
            table(("way", "boxes"), self.matched.items()),
            '<p class="undefined">single: the only one of its class; group: all, as the words are '
            "plural; touching: the only one that touches the other thing; largest: a guess.</p>",
        ]
        if self.judge is not None:
            sections += ["<h2>A judge on the same images</h2>", _judge_tables(self.judge)]
        return single_page(title, sections)


def _rates_table(rates: Mapping[str, SubsetRate]) -> str:
    these, others = "95 %, these items (by image)", "95 %, other items (by entity pair)"
    header = ("pairs", "left", "n", "images", these, others, "guesses", "level")
    rows = [
        (
            name,
            percent(rate.rate),
            rate.n,
            rate.images,
            interval(rate.by_image),
            interval(rate.by_pair),
            rate.guessed,
            rate.level,
        )
        for name, rate in rates.items()
    ]
    return table(header, rows)


def _judge_tables(judge: JudgeBias) -> str:
    measures: dict[str, Estimate] = {text: getattr(judge, n) for n, text in _MEASURES.items()}
    rows = [(text, percent(m.value), m.n, interval(m.interval)) for text, m in measures.items()]
    gate = [
        (boxes, decision, count)
        for boxes, counts in judge.gate.items()
        for decision, count in counts.items()
    ]
    gate += [("no side", label, count) for label, count in judge.failed.items()]
    return (
        f"<p>Judge: {escape(identity_text(judge.judge))}.</p>"
        + table(("measure", "value", "n", "95 %, these items (by image)"), rows)
        + table(("boxes", "judge", "pairs"), gate)
    )
