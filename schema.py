"""The row of every config: its fields, Arrow schema, id and digest.

A config is one pydantic model; the sentence under each field becomes the column's description in
Croissant. Ids hash what identifies an item and survive reordering, additions and errata; digests
hash everything.
"""

from __future__ import annotations

import hashlib
import json
import types
import typing
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

CANARY = "counterprior-canary-6b1f0c52-9d0e-4f6e-8d55-2f1c4f7a9e30"
"""In every row and in CANARY.md; found in a training corpus, it shows that the test has leaked."""

SPLIT = "test"
"""The one split of every config."""

SEEDS_PER_ITEM = 4
"""Published seeds per row; suites with one image per prompt use the first."""

Phrasing = Literal["template", "imperative", "narrative"]
"""How the premise of an altered world is told."""
LogicKind = Literal["consequence", "instance", "restatement"]
"""What the logic questions of an altered world ask about."""
PairType = Literal["H-H", "A-A", "O-O", "H-A", "H-O", "A-O"]
"""Kinds of the two entities: human, animal, object."""


Frame = Literal[
    "facing",
    "behind",
    "seat",
    "above",
    "below",
    "left-side",
    "right-side",
    "north-up",
    "south-up",
    "sky-north-up",
    "sky-south-up",
    "looking-south",
    "looking-north",
    "obverse",
    "reverse",
    "upright",
    "turned",
    "mirrored",
    "ltr",
    "rtl",
]
"""Frames of reference of constrained pairs; `builders.frames` says what each means."""

Basis = Literal["code-derived", "stated"]
"""Whether code derives a pair's left thing from a fact table, or the entry states it."""

Sources = Literal["located", "stated"]
"""Whether all sources of a row say where in them to look."""

GoldLayout = Literal["right", "swapped", "missing", "doubled", "above"]
"""Layout of a gold image of a constrained pair: both things where they belong, exchanged, one of
them missing, one of them twice, or one above the other."""
Shown = Literal["there", "merged", "absent", "unsettled"]
"""What readers agree on about a named thing in an image."""
Settled = Literal["A", "B", "same", "none", "unsettled"]
"""What readers agree on about which of two things comes first; `none` unless both are there."""
World = Literal["real", "altered"]
"""World that an image of a scene shows: ours, or one with an altered law."""


class Struct(BaseModel):
    """A frozen record whose fields are documented by the string under each."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, defer_build=True
    )


class Provenance(Struct):
    """Where a row comes from."""

    bank: str
    """Bank files that the row was made from, relative to `builders/bank/`, separated by a space."""
    entry: str
    """Ids of the bank entries, separated by a comma."""
    author: str
    """Who wrote the row: `rules` (seeded sampling from the bank), `curated`, or `openai:MODEL`."""
    calls: list[str]
    """Ledger ids of the model calls that wrote it; empty if no model was called."""


class EncodedImage(Struct):
    """An image as `datasets` stores it."""

    bytes: bytes
    """The encoded file, PNG."""
    path: str
    """A bare file name; the bytes are in this record."""


class Entity(Struct):
    """One of the 138 entities, as a row mentions it."""

    name: str
    """The entity as named in prompts, e.g. `female nurse`."""
    kind: Literal["human", "animal", "object"]
    """Kind of the entity."""
    category: str
    """Category in the taxonomy, e.g. `healthcare`."""
    look: str
    """How a judge recognizes it in an image."""


class Row(Struct):
    """A row of a config, with the columns that all configs share."""

    KEY: ClassVar[tuple[str, ...]] = ()
    """Fields that identify the item; changing any other field is an edit of the same item."""

    id: str = ""
    """Content hash: stable under reordering and additions."""
    suite: str
    """Name of the config, so that rows keep their origin when configs are concatenated."""
    status: Literal["new", "revised", "retired"] = "new"
    """`new`; `revised` since an earlier release; or `retired`, i.e. no longer scored."""
    review: list[str]
    """What checked the row: `code` (validators), `reviewer-model` (a second model), `human`; of an
    image `reviewer-model-on-images` (a model that saw it without its key)."""
    provenance: Provenance
    """Where the row comes from."""
    seeds: list[int] = []
    """Seeds to generate with, four per row, in order."""
    license: str = "CC-BY-4.0"
    """SPDX license expression of the row."""
    canary: str = CANARY
    """Constant marker; never part of a prompt."""

    @field_validator("id")
    @classmethod
    def _not_empty(cls, value: str) -> str:  # a default is not validated
        if not value:
            raise ValueError("is empty: leave the field out, and it is made of the content")
        return value

    @field_validator("seeds")
    @classmethod
    def _usable(cls, value: list[int]) -> list[int]:
        if not value:
            raise ValueError("is empty: leave the field out, and they are made of the id")
        if min(value) < 0:
            raise ValueError(f"{min(value)} is negative: a seed is 0 or more")
        return value

    @model_validator(mode="after")
    def _identify(self) -> Self:
        expected = item_id(self.suite, *self.key())
        if not self.id:
            object.__setattr__(self, "id", expected)
        elif self.id != expected:
            raise ValueError(f"id is {self.id!r}, the hash of the content is {expected!r}")
        if not self.seeds:
            object.__setattr__(self, "seeds", item_seeds(self.id))
        return self

    def key(self) -> tuple[Any, ...]:
        """The values that `id` hashes."""
        return tuple(getattr(self, name) for name in self.KEY)

    @property
    def source_image(self) -> EncodedImage | None:
        """The image that a case starts from; None for text-to-image, and for a row without it."""
        return None

    @property
    def lacks_source(self) -> bool:
        """Whether its cases start from an image that isn't there."""
        return False


class T2IHomogenization(Row):
    """A neutral prompt on two entities, and the same with mention order swapped.

    OTS-Bench, T2I homogenization: 1,700 rows.
    """

    KEY = ("prompt",)
    suite: Literal["t2i_homogenization"] = "t2i_homogenization"
    pair_type: PairType
    """Kinds of the two entities, in the paper's order (not the order of mention)."""
    first: Entity
    """The entity that `prompt` mentions first."""
    second: Entity
    """The entity that `prompt` mentions second."""
    first_action: str
    """Action or state of the first entity; empty in rows without actions."""
    second_action: str
    """Action or state of the second entity; empty in rows without actions."""
    prompt: str
    """The neutral prompt, without spatial words."""
    swapped_prompt: str
    """The same content with the second entity mentioned first."""
    neutral_prompt: str
    """The same scene without names and order (`Two people.`): the same for both prompts."""


class TranslatedRow(Row):
    """A row of an English config in one language, in both mention orders.

    Entities stay English, and so does what a judge is asked.
    """

    KEY = ("source_id", "language")
    source_id: str
    """Id of the English row, whose seeds this row has too."""
    language: str
    """BCP 47 code; `en` rows are the source's own prompts."""
    direction: Literal["ltr", "rtl"]
    """Reading direction of the language: left to right, or right to left."""
    prompt: str
    """The neutral prompt in the language, in reading order, without spatial words."""
    swapped_prompt: str
    """The same mentioned in the opposite order."""
    english_prompt: str
    """What `prompt` says, in English."""
    english_swapped_prompt: str
    """What `swapped_prompt` says, in English."""


class T2IHomogenizationMultilingual(TranslatedRow):
    """A pair of `t2i_homogenization` in one language."""

    suite: Literal["t2i_homogenization_multilingual"] = "t2i_homogenization_multilingual"
    pair_type: PairType
    """Kinds of the two entities, in the paper's order (not the order of mention)."""
    first: Entity
    """The entity that `prompt` mentions first, in English."""
    second: Entity
    """The entity that `prompt` mentions second, in English."""
    first_named: str
    """The first entity as the prompts name it."""
    second_named: str
    """The second entity as the prompts name it."""
    neutral_prompt: str
    """The same scene without names and order: the same for both prompts."""


class OrderBeyondMultilingual(TranslatedRow):
    """Three entities of `order_beyond` side by side, in one language."""

    suite: Literal["order_beyond_multilingual"] = "order_beyond_multilingual"
    entities: list[str]
    """English names in order of mention in `prompt`."""
    looks: list[str]
    """How a judge recognizes each entity, in the same order."""
    named: list[str]
    """The entities as the prompts name them, in the same order."""


class T2ICorrectness(Row):
    """A pair whose left/right layout is fixed by a standard, in both mention orders.

    OTS-Bench, T2I correctness: 400 rows.
    """

    suite: Literal["t2i_correctness"] = "t2i_correctness"
    domain: str
    """Field of knowledge; each has one bank file."""
    family: str
    """Layout fact that the row rests on; rows of one family are not independent."""
    cluster: str
    """Families that share a fact table, directly or by way of others, by the name of the first of
    them; intervals are over clusters."""
    left: str
    """What is on the left as seen by the viewer of the image."""
    right: str
    """What is on the right."""
    context: str
    """Where the two are, with the viewpoint if it matters."""
    frame: Frame
    """Who looks, from where, e.g. `facing`: the subject faces the viewer."""
    basis: Basis
    """`code-derived`: from a fact table and the frame; `stated`: by the entry and its standards,
    without a table or with one too short to count as more than the answer."""
    fact: str
    """Fact table that holds the two things; empty if there is none."""
    aligned_prompt: str
    """Mentions the left thing first."""
    reverse_prompt: str
    """Mentions the right thing first; the correct image is the same."""
    unordered_prompt: str = ""
    """Asks for the same scene and names neither thing; empty where the scene alone does not ask for
    both."""
    twin: str = ""
    """Id of the row with the same two things seen the other way round, whose left thing is this
    row's right one; empty where there is none."""
    standards: list[str]
    """Titles of the standards or authorities that fix the layout, with section and address where
    they are known."""
    sources: Sources
    """`located`: each of `standards` has a section, page, article, entry or address; `stated`: at
    least one has title, publisher and edition alone."""
    rationale: str
    """Why the left thing is on the left."""
    tell_left: str
    """How a judge recognizes the left thing in an image."""
    tell_right: str
    """How a judge recognizes the right thing in an image."""
    text_bound: bool
    """Whether the two are told apart only by reading digits or letters; False where the look of one
    of them decides."""
    mirror_safe: bool
    """True if the two can be told apart in the mirror image as well: nothing needs to be read."""
    scope: str
    """Where the layout holds: `universal`, a country, a system or a variant."""

    def key(self) -> tuple[Any, ...]:
        return (self.provenance.entry,)


class T2ICorrectnessGold(Row):
    """A drawn image of a row of `t2i_correctness`, whose layout is known.

    Drawn by code from the row's fact table and its frame, not from its left and right.
    """

    suite: Literal["t2i_correctness_gold"] = "t2i_correctness_gold"
    source_id: str
    """Id of the row of `t2i_correctness`."""
    domain: str
    """Field of knowledge of the row."""
    family: str
    """Layout fact that the row rests on."""
    cluster: str
    """Cluster of the row's family; intervals are over clusters."""
    left: str
    """What is on the left in a right image."""
    right: str
    """What is on the right in a right image."""
    context: str
    """Where the two are, with the viewpoint if it matters."""
    prompt: str
    """The row's aligned prompt."""
    frame: Frame
    """Who looks, from where."""
    fact: str
    """Fact table that the image is drawn from."""
    tell_left: str
    """How a judge recognizes the left thing in an image."""
    tell_right: str
    """How a judge recognizes the right thing in an image."""
    layout: GoldLayout
    """What is drawn: `right`; `swapped`, the two things exchanged; `missing`, one left out;
    `doubled`, one there twice; `above`, one above the other."""
    style: str
    """How it is drawn, e.g. `flat`, `shaded` or `ink`."""
    drawn_seed: int
    """Seed of size, position and background."""
    image: EncodedImage
    """The drawn image, RGB."""
    image_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the encoded image."""

    def key(self) -> tuple[Any, ...]:
        return (self.provenance.entry, self.layout, self.style, self.drawn_seed)


class SeededRow(Row):
    """An edit of a seed image that shows two entities side by side."""

    pair_type: PairType
    """Kinds of the two entities."""
    left: Entity
    """The entity on the left of the seed image."""
    right: Entity
    """The entity on the right of the seed image."""
    seed_prompt: str
    """Explicit text from which any generator can make a seed image."""
    seed_source: str = "none"
    """Generator of the seed image; `none` if there is no image."""
    seed_image: EncodedImage | None = None
    """The seed image, RGB."""
    image_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    """SHA-256 of the encoded seed image; empty if there is none."""

    @property
    def source_image(self) -> EncodedImage | None:
        return self.seed_image

    @property
    def lacks_source(self) -> bool:
        return self.seed_image is None


class I2IHomogenization(SeededRow):
    """A seed image of two entities and an edit that does not say which of them acts.

    OTS-Bench, I2I homogenization: 1,100 rows.
    """

    KEY = ("seed_prompt", "instruction")
    suite: Literal["i2i_homogenization"] = "i2i_homogenization"
    action: str
    """The action or state that one of the two should take on."""
    instruction: str
    """The underspecified edit instruction."""


class I2ICorrectness(SeededRow):
    """A seed image of two entities and an edit that binds actions to them, in both orders.

    OTS-Bench, I2I correctness: 1,100 rows.
    """

    KEY = ("seed_prompt", "aligned_instruction")
    suite: Literal["i2i_correctness"] = "i2i_correctness"
    relation: Literal["independent", "directed"]
    """`independent`: each has its own action; `directed`: one acts on the other."""
    aligned_instruction: str
    """Mentions the left entity first."""
    reverse_instruction: str
    """Mentions the right entity first; who does what is unchanged."""
    left_expected: str
    """What the left entity does or undergoes in a correct edit, as a clause without a subject."""
    right_expected: str
    """What the right entity does or undergoes in a correct edit."""
    agent: Literal["left", "right", "both"]
    """Who acts; `both` in independent rows."""


class EvaluationQuestion(Struct):
    """One weighted yes/no question about one image (CF-World 3.3)."""

    weight: int
    """Weight of the question; its share in the score is the weight over the sum of the three."""
    text: str
    """The question, answerable from the image alone."""


class Counterfactual(Row):
    """One prompt of a group of three: the scene, the altered law with and without its outcome.

    CF-World: 1,091 groups x L1, L2, L3.
    """

    KEY = ("group", "level")
    suite: Literal["counterfactual"] = "counterfactual"
    group: str
    """Id of the group of three."""
    level: Literal["L1", "L2", "L3"]
    """L1 the scene; L2 premise, scene and outcome; L3 premise and scene."""
    discipline: str
    """Physics, Biology, Chemistry, Geography or Sociology."""
    branch: str
    """Branch of the discipline, e.g. optics."""
    prompt: str
    """The text to draw."""
    law: str
    """The law of our world."""
    altered_law: str
    """The premise of the counterfactual world."""
    assessment_point: str
    """What the image must show at this level."""
    visual_integrity: EvaluationQuestion
    """Is the image sound in itself? Weight 1-3."""
    assessment: EvaluationQuestion
    """Does it show the assessment point? Weight 12-16."""
    logic_consistency: EvaluationQuestion
    """Does the whole scene obey the law of its world? Weight 7-9."""


class CounterfactualDenominalized(Row):
    """An L2 prompt whose outcome is described instead of named (CF-World 5.3)."""

    KEY = ("group",)
    suite: Literal["counterfactual_denominalized"] = "counterfactual_denominalized"
    group: str
    """Id of the group in `counterfactual`."""
    prompt: str
    """L2 with the outcome told by its looks: the replaced noun is nowhere in the prompt."""
    original_prompt: str
    """L2 with the outcome named, the rest told alike."""
    replaced: list[str]
    """The noun that the outcome no longer names."""
    altered_law: str
    """The premise of the counterfactual world."""
    assessment_point: str
    """What the image must show."""
    visual_integrity: EvaluationQuestion
    """Of both L2 prompts: is the image sound in itself? Weight 1-3."""
    assessment: EvaluationQuestion
    """Of both L2 prompts: does it show the assessment point? Weight 12-16."""
    logic_consistency: EvaluationQuestion
    """Of both L2 prompts: does the whole scene obey the altered law? Weight 7-9."""
    plain_prompt: str
    """The group's L1 prompt, whose score decides whether the group counts."""
    plain_visual_integrity: EvaluationQuestion
    """Of the L1 prompt."""
    plain_assessment: EvaluationQuestion
    """Of the L1 prompt."""
    plain_logic_consistency: EvaluationQuestion
    """Of the L1 prompt."""


class KeyedQuestion(Struct):
    """A yes/no question with the world in which its answer is yes; in the other one it is no."""

    text: str
    """The question, answerable from the image alone."""
    world: World
    """The world in which its answer is yes."""


class AlteredWorld(Row):
    """One prompt of a group of four, asked for both worlds: `counterfactual`, second edition.

    1,091 groups x L0, L1, L2, L3.
    """

    KEY = ("group", "level")
    suite: Literal["altered_worlds"] = "altered_worlds"
    group: str
    """Id of the group, that of `counterfactual`."""
    level: Literal["L0", "L1", "L2", "L3"]
    """L0 the scene under an irrelevant altered law; L1 the scene; L2 premise, scene and outcome;
    L3 premise and scene."""
    law: str
    """Id of the group's law; groups of one law are not independent."""
    discipline: str
    """Physics, Biology, Chemistry, Geography or Sociology."""
    prompt: str
    """The text to draw, below 70 CLIP tokens."""
    phrasing: Phrasing
    """How the group's premises are told: `If X, draw Y.`, `Draw Y, as if X.` or `Suppose X. Here we
    see Y.` L1 has no premise."""
    control: str
    """Id of the irrelevant law that L0 alters; empty at other levels."""
    real_law_prompt: str = ""
    """At L1, the second control: the scene with the law of our world in place of a premise, told as
    the group's premises are; empty where that makes no sentence, see `docs/worlds.md`."""
    depth: int
    """Steps from the premise to what is seen: 0 if the premise says it."""
    naive_outcome: bool
    """Whether a naive image of the scene already shows the altered world."""
    timed: bool
    """Whether the prompt's scene says what went before, which an image of one moment can't show."""
    logic_kind: LogicKind
    """What the logic questions ask about: a further `consequence` of the law, another `instance` of
    what the point questions ask about, such as a second thing or place, or the same fact about the
    same thing again (`restatement`)."""
    presence: str
    """Asks whether the things of the scene are there. Answered yes in both worlds."""
    point_factual: KeyedQuestion
    """Asks whether the image shows what our world makes of the scene."""
    logic_factual: KeyedQuestion
    """Asks for what else the law of our world makes of the scene; see `logic_kind`."""
    point_counterfactual: KeyedQuestion
    """Asks whether the image shows what the altered law makes of the scene."""
    logic_counterfactual: KeyedQuestion
    """Asks for what else the altered law makes of the scene; see `logic_kind`."""


class AlteredWorldGold(Row):
    """A drawn image of a group of `altered_worlds`, whose world is known.

    Drawn by code: four images of a group, which differ in pairs by what the law changes alone.
    """

    KEY = ("group", "world", "style", "drawn_seed")
    suite: Literal["altered_worlds_gold"] = "altered_worlds_gold"
    image: EncodedImage
    """The drawn image, RGB."""
    prompt: str
    """The scene alone (L1), which both worlds show."""
    altered_prompt: str
    """Premise and scene (L3), of which an image of the altered world is a right one."""
    group: str
    """Id of the group in `altered_worlds`."""
    world: World
    """What is drawn: `real`, what our world makes of the scene, or `altered`, what the altered law
    makes of it."""
    law: str
    """Id of the group's law; groups of one law are not independent."""
    discipline: str
    """Physics, Biology, Chemistry, Geography or Sociology."""
    depth: int
    """Steps from the premise to what is seen: 0 if the premise says it."""
    presence: str
    """Asks whether the things of the scene are there. Answered yes in both worlds."""
    point_factual: KeyedQuestion
    """Asks whether the image shows what our world makes of the scene."""
    logic_factual: KeyedQuestion
    """Asks for a second consequence of the law of our world."""
    point_counterfactual: KeyedQuestion
    """Asks whether the image shows what the altered law makes of the scene."""
    logic_counterfactual: KeyedQuestion
    """Asks for a second consequence of the altered law."""
    style: str
    """How it is drawn, e.g. `flat`, `shaded` or `ink`; the image of the other world with the same
    seed is drawn alike."""
    drawn_seed: int
    """Seed of size, position and background."""
    source_ids: list[str]
    """Ids of the rows of `altered_worlds` with this scene."""
    image_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the encoded image."""


class RuleDecoupling(Row):
    """A symbolic prompt that states a rule, in its factual or a counterfactual variant.

    CF-World 5.1: 198 prompts on 33 rules.
    """

    KEY = ("rule", "variant")
    suite: Literal["rule_decoupling"] = "rule_decoupling"
    rule: str
    """Id of the rule."""
    variant: str
    """Id of the variant within the rule."""
    factual: bool
    """True for a variant that holds in our world."""
    prompt: str
    """The text to draw, with plain shapes only."""
    assessment_point: str
    """What the image must show."""


class Sightings(Struct):
    """In how many captions a concept and its attribute were seen; all 0 if none were counted."""

    captions: int
    """Captions read."""
    concept: int
    """Of those, captions that name the concept."""
    together: int
    """Of these, captions with a word for the attribute anywhere."""
    linked: int
    """Of these, captions whose parse links the two."""
    source: str
    """Data sets of the captions."""


class AttributeDecoupling(Row):
    """A pair of concepts, rare or common together (CF-World 5.2: 100 + 100)."""

    KEY = ("pair", "rarity")
    suite: Literal["attribute_decoupling"] = "attribute_decoupling"
    pair: str
    """Id that the rare and the common row share."""
    rarity: Literal["rare", "common"]
    """Whether the two concepts usually occur together."""
    concepts: list[str]
    """The two concepts."""
    seen: Sightings
    """How often captions have the two concepts together. The captions are few: 0 for both rows of a
    pair is no evidence for or against `rarity`, which the author decided."""
    prompt: str
    """The text to draw."""
    assessment_point: str
    """What the image must show."""


class SpatialUC(Row):
    """A prompt of SpatialBench-UC v1.0.1, text unchanged (200 rows, 50 object pairs)."""

    KEY = ("prompt_id",)
    suite: Literal["spatial_uc"] = "spatial_uc"
    prompt_id: str
    """The published id, `v1_000000` to `v1_000199`."""
    pair_id: str
    """The published id that a prompt shares with its counterfactual."""
    relation: Literal["left_of", "right_of", "above", "below"]
    """What holds between `object_a` and `object_b`."""
    object_a: str
    """The object mentioned first; a COCO label."""
    object_b: str
    """The object mentioned second; a COCO label."""
    prompt: str
    """The published text (its articles are unchanged: `a apple`)."""
    counterfactual_id: str
    """`prompt_id` of the prompt that states the same scene the other way around."""


class SpatialVISOR(Row):
    """A two-object spatial prompt of VISOR, text unchanged (25,280 rows)."""

    KEY = ("visor_id",)
    suite: Literal["spatial_visor"] = "spatial_visor"
    visor_id: int
    """The published id, in 0..31,679 (single-object and `and` prompts are not in this config)."""
    relation: Literal["left_of", "right_of", "above", "below"]
    """What holds between `object_a` and `object_b`."""
    object_a: str
    """The object mentioned first; a COCO label."""
    object_b: str
    """The object mentioned second; a COCO label."""
    prompt: str
    """The published text (its articles are unchanged: `a skis`)."""


class RealGold(Row):
    """What readers saw in an image that a generator made of a prompt of VISOR; without the image.

    A is the thing that the prompt mentions first.
    """

    KEY = ("image_file",)
    suite: Literal["real_gold"] = "real_gold"
    image_file: str
    """Name of the image, `MODEL/PROMPT_NUMBER.png`, as in the folder `images` of microsoft/VISOR;
    of your own images, their name in your folder."""
    image_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    """SHA-256 of that file; empty for images of your own."""
    model: str = ""
    """Generator of the image; empty if unknown."""
    prompt: str = ""
    """Text that it was made from; empty if unknown."""
    source_id: str = ""
    """Id of the row of `spatial_visor` with this prompt; empty for images of your own."""
    relation: Literal["left_of", "right_of", "above", "below", ""] = ""
    """What the prompt states between A and B; empty if it states nothing."""
    object_a: str
    """The thing A; in a row of VISOR the one mentioned first."""
    object_b: str
    """The thing B."""
    a_shown: Shown
    """Whether A is there: `there`, `merged` with B into one thing, `absent`, or `unsettled`; what
    at least two readers say."""
    b_shown: Shown
    """The same for B."""
    further_left: Settled
    """Whose center is further left: `A`, `B`, `same` (within about a tenth of the width), `none`
    (not both are there), or `unsettled`."""
    higher: Settled
    """Whose center is higher."""
    in_front: Settled
    """Which is nearer to the viewer, or covers the other."""
    readers: list[str]
    """Who read the image."""
    reader_kinds: list[str]
    """Kind of each reader, in the same order: `model`, `human` or `unstated`."""
    a_read: list[str]
    """What each reader says of A: `whole`, `part`, `merged`, `other` (another thing in its place)
    or `no`."""
    b_read: list[str]
    """The same for B."""
    left_read: list[str]
    """Whose center each reader sees further left: `A`, `B`, `same` or `none`."""
    upper_read: list[str]
    """Whose center each reader sees higher."""
    front_read: list[str]
    """What each reader sees in front."""
    sure: list[int]
    """How sure each reader is, 1 (a guess) to 3 (certain)."""


class SpatialMulti(Row):
    """Three or four objects and the relations between them (PSE B.2: 100 + 100)."""

    KEY = ("prompt",)
    suite: Literal["spatial_multi"] = "spatial_multi"
    objects: list[str]
    """The objects in order of mention; COCO labels."""
    subjects: list[str]
    """Subject of each relation, in order."""
    relations: list[str]
    """`left_of`, `right_of`, `above` or `below`, one for each subject."""
    references: list[str]
    """What each relation refers to: `subjects[i]` is `relations[i]` of `references[i]`."""
    prompt: str
    """The text to draw."""


class Spatial3D(Row):
    """Two objects and a relation in depth (T2I-CompBench 3D style: 1,000 rows)."""

    KEY = ("prompt",)
    suite: Literal["spatial_3d"] = "spatial_3d"
    relation: Literal["in_front_of", "behind", "hidden_by"]
    """What holds between `object_a` and `object_b`; hidden means partly covered."""
    object_a: str
    """The object mentioned first."""
    object_b: str
    """The object mentioned second."""
    prompt: str
    """The text to draw."""
    pair_id: str
    """Id that a prompt shares with the one in which the two objects swap places."""


class SpatialDistance(Row):
    """Two objects and how far apart they are (PSE, Eq. 8 and 9: 400 rows)."""

    KEY = ("prompt",)
    suite: Literal["spatial_distance"] = "spatial_distance"
    relation: Literal["near", "far"]
    """Distance of the two objects."""
    object_a: str
    """The object mentioned first; a COCO label."""
    object_b: str
    """The object mentioned second; a COCO label."""
    prompt: str
    """The text to draw."""
    pair_id: str
    """Id that a prompt shares with the one that states the other distance of the same objects."""


class SpatialClauses(Row):
    """Three or four objects and two relations in the sentences of PSE's Table 15 (100 + 100)."""

    KEY = ("prompt",)
    suite: Literal["spatial_clauses"] = "spatial_clauses"
    objects: list[str]
    """The objects in order of mention; COCO labels."""
    subjects: list[str]
    """Subject of each relation, in order: of three objects always the first."""
    relations: list[str]
    """`left_of`, `right_of`, `above` or `below`, one for each subject."""
    references: list[str]
    """What each relation refers to: `subjects[i]` is `relations[i]` of `references[i]`."""
    prompt: str
    """The text to draw."""


class OrderBeyond(Row):
    """Mention order beyond two entities side by side (OTS-Bench rebuttal: 500 + 100 + 200)."""

    KEY = ("setting", "prompt")
    suite: Literal["order_beyond"] = "order_beyond"
    setting: Literal["three_homogenization", "three_correctness", "vertical", "depth"]
    """Three entities without or with a fixed order; two with one above or in front of the other."""
    axis: Literal["horizontal", "vertical", "depth"]
    """The axis on which order is judged: left to right, top to bottom, front to back."""
    entities: list[str]
    """Names in order of mention in `prompt`."""
    looks: list[str]
    """How a judge recognizes each entity, in the same order."""
    prompt: str
    """Neutral: does not state the order. In `three_correctness`, it mentions left to right."""
    swapped_prompt: str
    """The same content mentioned in the opposite order."""
    expected: list[str]
    """In `three_correctness`, the names from left to right; otherwise empty: no order is right."""
    standards: list[str]
    """Titles of the standards that fix the order; empty if none does."""
    sources: Literal["located", "stated", ""] = ""
    """`located`: each of `standards` has a section, page, article, entry or address; `stated`: at
    least one has title, publisher and edition alone; empty if no standard fixes the order."""


class OwnPrompt(Row):
    """A prompt of the user's own with the relations that it states; in no release."""

    KEY = ("prompt",)
    suite: Literal["own_prompts"] = "own_prompts"
    objects: list[str]
    """What the relations are about, in order of mention."""
    subjects: list[str]
    """Subject of each relation, in order."""
    relations: list[str]
    """Relation of each subject: `left_of`, `above`, `in_front_of`, `upper_left`, `near`, `inside`,
    `between` and others."""
    references: list[str]
    """What each relation refers to; of `between` both things, joined by `|`."""
    implied: int
    """How many of the relations, the last ones, follow from the others."""
    prompt: str
    """The text to draw."""
    difficulty: str = ""
    """Level that the prompt's benchmark reports separately: `easy`, `medium` or `hard` of HRS."""

    @model_serializer(mode="wrap")
    def _serialize(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out an empty difficulty: digests of rows without it stay what they were."""
        fields: dict[str, Any] = serialize(self)
        if not fields.get("difficulty"):
            fields.pop("difficulty", None)
        return fields


class CaptionOrder(Row):
    """An image of two things side by side, of which captions name one first; in no release."""

    KEY = ("image", "image_sha256")
    suite: Literal["caption_order"] = "caption_order"
    image: str
    """Name of the image, unique in its file."""
    place: int
    """Place of the image in its file, from 0."""
    left: str
    """Name of the thing on the left."""
    right: str
    """Name of the thing on the right."""
    left_category: str
    """Category of the thing on the left."""
    right_category: str
    """Category of the thing on the right."""
    image_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    """SHA-256 of the image's file; empty where only captions are known."""
    is_readable: bool = True
    """Whether the file is an image that can be shown."""
    file: str = Field(default="", exclude=True)
    """Path of the image's file; no part of the row's digest."""

    @property
    def source_image(self) -> EncodedImage | None:
        """Read anew each time, so that no images stay in memory. Raises OSError."""
        if not self.image_sha256 or not self.is_readable:
            return None
        return EncodedImage(bytes=Path(self.file).read_bytes(), path=self.file)

    @property
    def lacks_source(self) -> bool:
        return not self.is_readable


class Consistency(Row):
    """An image with its dense caption, edits and questions (ACON)."""

    KEY = ("image_sha256",)
    suite: Literal["consistency"] = "consistency"
    image: EncodedImage
    """The image, RGB."""
    image_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the encoded image."""
    caption: str
    """Dense caption, 7-10 self-contained sentences."""
    edits: list[str]
    """Three edit prompts."""
    questions: list[str]
    """Five yes/no questions in which the image and the drawing of its caption agree, five in which
    they differ, then two for each edit."""
    answers: list[bool]
    """Correct answer to each question, True for yes."""
    written_by: list[str]
    """Who wrote caption, edits and questions, in this order."""
    checked_by: list[str]
    """Who checked caption, edits and questions, in this order."""

    @property
    def source_image(self) -> EncodedImage | None:
        return self.image


GoldRow = T2ICorrectnessGold | AlteredWorldGold
"""Rows that are drawn images whose truth is known."""

ROWS: dict[str, type[Row]] = {
    "t2i_homogenization": T2IHomogenization,
    "t2i_correctness": T2ICorrectness,
    "t2i_correctness_gold": T2ICorrectnessGold,
    "i2i_homogenization": I2IHomogenization,
    "i2i_correctness": I2ICorrectness,
    "counterfactual": Counterfactual,
    "counterfactual_denominalized": CounterfactualDenominalized,
    "altered_worlds": AlteredWorld,
    "altered_worlds_gold": AlteredWorldGold,
    "rule_decoupling": RuleDecoupling,
    "attribute_decoupling": AttributeDecoupling,
    "spatial_uc": SpatialUC,
    "spatial_visor": SpatialVISOR,
    "real_gold": RealGold,
    "spatial_multi": SpatialMulti,
    "spatial_3d": Spatial3D,
    "spatial_distance": SpatialDistance,
    "spatial_clauses": SpatialClauses,
    "order_beyond": OrderBeyond,
    "t2i_homogenization_multilingual": T2IHomogenizationMultilingual,
    "order_beyond_multilingual": OrderBeyondMultilingual,
    "consistency": Consistency,
}
"""Row type of every config, in the order of the card."""

_ADMINISTRATIVE = ("status", "review", "provenance", "seeds", "license", "canary")
_SCALARS = {str: "string", int: "int64", float: "float64", bool: "bool"}


def canonical(value: Any) -> bytes:
    """`value` as canonical JSON: sorted keys, UTF-8, no spaces."""
    return _CANONICAL.encode(value).encode()


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def item_id(suite: str, *key: Any) -> str:
    """The id of the item of `suite` with this key: the suite and 12 hex digits.

    >>> item_id("spatial_uc", "v1_000000")
    'spatial_uc-e7ca0e3cc00e'
    """
    return f"{suite}-{hashlib.sha256(canonical([suite, *key])).hexdigest()[:12]}"


def item_seeds(item: str) -> list[int]:
    """`SEEDS_PER_ITEM` seeds in [0, 2**31), a function of the id alone.

    Items get different seeds, so that no two of them start from the same noise.
    """
    digest = hashlib.sha256(f"seeds of {item}".encode()).digest()
    return [int.from_bytes(digest[4 * i : 4 * i + 4], "big") % 2**31 for i in range(SEEDS_PER_ITEM)]


_READ_FIRST = ("image", "prompt", "instruction", "caption")
"""How the names of the columns end that a viewer shows first."""


def columns(config: str) -> dict[str, Any]:
    """Pydantic field by column name, in the order in which a person reads a row.

    id and suite, then images, prompts and instructions, then what says more of them, then
    administration.
    """
    return dict(_columns(ROWS[config]))


@cache
def _columns(row_type: type[Row]) -> dict[str, Any]:
    fields = row_type.model_fields
    content = [n for n in fields if n not in (*_ADMINISTRATIVE, "id", "suite")]
    read_first = [n for n in content if n.endswith(_READ_FIRST)]
    others = [n for n in content if n not in read_first]
    names = ("id", "suite", *read_first, *others, *_ADMINISTRATIVE)
    return {name: fields[name] for name in names}


def description(config: str, column: str) -> str:
    """The sentence that documents a column."""
    own = ROWS[config].model_fields[column].description
    return own or Row.model_fields[column].description or ""


def part_descriptions(config: str, column: str) -> dict[str, str]:
    """The sentences that document the parts of a column that is a struct."""
    struct = _bare(ROWS[config].model_fields[column].annotation)
    return {name: field.description or "" for name, field in struct.model_fields.items()}


def _bare(annotation: Any) -> Any:
    """The annotation without `None`, and literals as the type of their values."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        (annotation,) = (a for a in typing.get_args(annotation) if a is not type(None))
    elif origin is Literal:
        annotation = type(typing.get_args(annotation)[0])
    return annotation


def _arrow_type(annotation: Any) -> pa.DataType:
    import pyarrow as pa

    annotation = _bare(annotation)
    if annotation is bytes:
        return pa.binary()
    if typing.get_origin(annotation) is list:
        return pa.list_(_arrow_type(typing.get_args(annotation)[0]))
    if annotation in _SCALARS:
        return pa.type_for_alias(_SCALARS[annotation])
    return pa.struct(
        [(n, _arrow_type(f.annotation)) for n, f in annotation.model_fields.items()],
    )


def _feature(annotation: Any) -> dict[str, Any]:
    """The feature as `datasets` writes it; lists as `Sequence`, which 2.21 to 5.2 can read."""
    annotation = _bare(annotation)
    if annotation is EncodedImage:
        return {"_type": "Image"}
    if typing.get_origin(annotation) is list:
        return {"feature": _feature(typing.get_args(annotation)[0]), "_type": "Sequence"}
    if annotation in _SCALARS:
        return {"dtype": _SCALARS[annotation], "_type": "Value"}
    return {n: _feature(f.annotation) for n, f in annotation.model_fields.items()}


def feature_dict(config: str) -> dict[str, Any]:
    """The features of `config` in the JSON form of a parquet footer."""
    return {name: _feature(field.annotation) for name, field in columns(config).items()}


def arrow_schema(config: str) -> pa.Schema:
    """Arrow schema of `config`, with the footer metadata from which `datasets` reads features."""
    import pyarrow as pa

    metadata = {"huggingface": json.dumps({"info": {"features": feature_dict(config)}})}
    return pa.schema(
        [(name, _arrow_type(field.annotation)) for name, field in columns(config).items()],
        metadata=metadata,
    )


def features(config: str) -> datasets.Features:
    """`datasets.Features` of `config`."""
    import datasets

    return datasets.Features.from_arrow_schema(arrow_schema(config))


def image_columns(config: str) -> list[str]:
    """Names of the columns that hold images."""
    return list(_image_columns(ROWS[config]))


@cache
def _image_columns(row_type: type[Row]) -> tuple[str, ...]:
    return tuple(n for n, f in _columns(row_type).items() if _bare(f.annotation) is EncodedImage)


def to_record(row: Row) -> dict[str, Any]:
    """The row as plain Python, with columns in schema order."""
    data = row.model_dump()
    return {name: data[name] for name in _columns(ROWS[row.suite])}


def content_digest(row: Row) -> str:
    """First 12 hexadecimal digits of the SHA-256 of all that a row says, whoever checked it.

    Pixels don't count; where the image is what the row is about, its digest is a column.
    """
    images = {*image_columns(row.suite), *(["image_sha256"] if isinstance(row, SeededRow) else [])}
    plain = row.model_dump(mode="json", exclude={"id", *images, *_ADMINISTRATIVE})
    return hashlib.sha256(canonical(plain)).hexdigest()[:12]


def row_digest(record: dict[str, Any]) -> str:
    """SHA-256 of one record; an image enters by the SHA-256 of its bytes, without its file name."""
    return hashlib.sha256(record_line(record)).hexdigest()


def rows_digest(records: Iterable[dict[str, Any]], lines: Iterable[bytes] | None = None) -> str:
    """Logical digest of a table, independent of row order, parquet writer and compression.

    lines: the `record_line` of each record, if they were made before.
    """
    if lines is None:
        by_id = [(r["id"], record_line(r)) for r in records]
    else:
        by_id = [(r["id"], line) for r, line in zip(records, lines, strict=True)]
    return lines_digest(line for _, line in sorted(by_id))


def record_line(record: dict[str, Any]) -> bytes:
    """One record as the digest of its table counts it; an image by the SHA-256 of its bytes."""
    return canonical(_digestible(record))


def lines_digest(lines: Iterable[bytes]) -> str:
    """The digest of a table from the lines of its records, sorted by id and line."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line + b"\n")
    return digest.hexdigest()


def _digestible(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("bytes"), bytes):
            return {"sha256": hashlib.sha256(value["bytes"]).hexdigest()}
        return {k: _digestible(v) for k, v in value.items()}
    return value
