"""Citations: links and BibTeX for the card, references for CITATION.cff, all from one list."""

from __future__ import annotations

import re
from importlib import resources

import yaml
from pydantic import TypeAdapter

from ..parsing import load_yaml
from ..schema import Struct
from .manifest import Manifest


class Paper(Struct):
    """A paper whose suites the release re-implements."""

    name: str
    """Name of its benchmark, as the `source` of a config has it."""
    title: str
    """In full."""
    authors: str
    """As CITATION.cff names them."""
    arxiv: str
    """Identifier on arXiv, `YYMM.NUMBER`."""

    @property
    def url(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}"

    @property
    def year(self) -> str:
        return f"20{self.arxiv[:2]}"


PAPERS = TypeAdapter(tuple[Paper, ...]).validate_python(
    load_yaml(
        resources.files(__package__).joinpath("templates", "papers.yaml").read_text("utf-8"),
        "papers.yaml",
    )
)
"""In the order of the card."""


def cited(manifest: Manifest) -> dict[Paper, list[str]]:
    """Each paper that a config comes from -> these configs."""
    named = {
        paper: [c.name for c in manifest.configs if re.search(rf"\b{paper.name}\b", c.source)]
        for paper in PAPERS
    }
    return {paper: configs for paper, configs in named.items() if configs}


def paper_links(manifest: Manifest) -> str:
    """A list in Markdown: each paper, and the configs that come from it."""
    return "\n".join(
        f"* {paper.name}: [{paper.title}]({paper.url}) "
        f"([on the Hub](https://huggingface.co/papers/{paper.arxiv})): "
        + ", ".join(f"`{name}`" for name in configs)
        for paper, configs in cited(manifest).items()
    )


def bibtex(manifest: Manifest, title: str) -> str:
    """The dataset and its papers, as BibTeX."""
    entries = [
        _entry(
            "counterprior",
            title=f"{title}: does an image generator follow the prompt, or its prior?",
            author="The counterprior maintainers",
            year=manifest.date[:4],
            version=manifest.version,
            url=manifest.url,
        )
    ]
    entries += [
        _entry(
            re.sub(r"\W", "", paper.name).lower(),
            title=paper.title,
            author=paper.authors,
            year=paper.year,
            eprint=paper.arxiv,
            archivePrefix="arXiv",
            url=paper.url,
        )
        for paper in cited(manifest)
    ]
    return "\n\n".join(entries)


def _entry(key: str, **fields: str) -> str:
    """One entry; title and authors in double braces keep their capitals and stay one name."""
    lines = []
    for name, value in fields.items():
        text = f"{{{value}}}" if name in ("title", "author") else value
        lines.append(f"  {name:<13} = {{{text}}},")
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def cff_references(manifest: Manifest) -> str:
    """The papers as `references` of CITATION.cff; empty if no config comes from one."""
    papers = [
        {
            "type": "article",
            "title": paper.title,
            "authors": [{"name": paper.authors}],
            "url": paper.url,
        }
        for paper in cited(manifest)
    ]
    return yaml.safe_dump({"references": papers}, sort_keys=False, width=200) if papers else ""
