"""Tables of options for the site, from what the adapters declare.

`tools/docs_site.py` puts a table in the place of each ``<!-- options of NOUN -->`` and of
``<!-- metrics -->`` in a page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from counterprior.eval.captioners import CAPTIONERS
from counterprior.eval.checkpoints.registry import Registry
from counterprior.eval.detectors import DETECTORS
from counterprior.eval.detectors.depth import DEPTHS
from counterprior.eval.generators import GENERATORS
from counterprior.eval.geometry.metrics import METRICS
from counterprior.eval.judges import JUDGES
from counterprior.eval.methods import METHODS
from counterprior.eval.scorers import SCORERS
from counterprior.eval.scorers.features import EXTRACTORS
from counterprior.specs import Options

REGISTRIES: dict[str, Registry] = {
    f"{registry.noun}s": registry
    for registry in (
        *(GENERATORS, JUDGES, CAPTIONERS, SCORERS, EXTRACTORS, METHODS, DETECTORS, DEPTHS),
    )
}
_MARKER = re.compile(r"<!-- (?:options of (?P<nouns>[a-z ]+)|metrics) -->\n")


def option_tables(registry: Registry) -> Iterator[str]:
    """Lines of a heading and a table for each set of options, and of the kinds that have none."""
    kinds: dict[type[Options], list[str]] = defaultdict(list)
    for kind in sorted(registry):
        kinds[registry.options(kind)].append(f"`{kind}:{registry.argument(kind)}`")
    plain = [spec for options, specs in kinds.items() if not _rows(options) for spec in specs]
    for options, specs in kinds.items():
        if rows := list(_rows(options)):
            yield from (f"### {', '.join(specs)}", "")
            yield from table("option", "value", "default", "meaning")
            yield from (*rows, "")
    if plain:
        yield from (f"Without options: {', '.join(plain)}.", "")


def _rows(options: type[Options]) -> list[str]:
    rows = []
    for option in options.declared():
        default = f"`{option.default}`" if option.default else "required" * option.required
        name = f"`{option.name}`{{ .flag }}"  # code that a narrow cell does not break
        rows.append(row(name, option.form, default, option.help))
    if options.undeclared:
        rows.append(row("others", options.undeclared, "", ""))
    return rows


def metric_table() -> Iterator[str]:
    """Lines of the table of metrics, each of which is a judge by rule."""
    yield from table("rule", "needs", "number, in [0, 1]", "relations", "detector if none is named")
    for metric in METRICS.values():
        relations = ", ".join(f"`{relation}`" for relation in metric.relations)
        detector = f"`{metric.detector}`" if metric.detector else ""
        yield row(f"`{metric.name}`", metric.needs, metric.unit, relations, detector)
    yield ""


def table(*columns: str) -> tuple[str, str]:
    """The first two lines of a table."""
    return row(*columns), row(*["---"] * len(columns))


def row(*cells: str) -> str:
    return "".join(f"| {cell.replace('|', '&#124;')} " if cell else "| " for cell in cells) + "|"


def with_tables(text: str) -> str:
    """Return a page with a table in the place of each marker."""

    def tables(marker: re.Match[str]) -> str:
        nouns = marker["nouns"]
        return "\n".join(option_tables(REGISTRIES[nouns]) if nouns else metric_table())

    return _MARKER.sub(tables, text)
