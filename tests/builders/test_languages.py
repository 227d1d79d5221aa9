"""Names in other languages: what the bank refuses; rows are those of the English config."""

import shutil
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK, BankError
from counterprior.builders.build import rebuilt, suite_faults
from counterprior.builders.languages import read_languages
from counterprior.builders.suite import SHIPPED as BANKS
from counterprior.builders.translations import LANGUAGES
from counterprior.schema import Row, TranslatedRow

BUILD = rebuilt()


@cache
def built(config: str) -> list[Row]:
    return BUILD(config, 3) or []


@pytest.mark.parametrize(
    ("config", "source"),
    [
        ("t2i_homogenization_multilingual", "t2i_homogenization"),
        ("order_beyond_multilingual", "order_beyond"),
    ],
)
def test_every_language_has_the_same_rows_of_the_english_config(config: str, source: str) -> None:
    sources = {row.id: row for row in built(source)}
    rows = built(config)
    assert list(suite_faults(config, rows, BANKS)) == []
    ids = defaultdict(list)
    for row in rows:
        assert isinstance(row, TranslatedRow)
        english = sources[row.source_id]
        ids[row.language].append(english.id)
        assert row.seeds == english.seeds
        same = {"first", "second", "entities", "looks"} & set(type(row).model_fields)
        assert all(getattr(row, field) == getattr(english, field) for field in same) and same
        assert row.english_prompt == english.prompt
        assert row.english_swapped_prompt == english.swapped_prompt
        assert ("reviewer-model" in row.review) == (row.language != "en")
    assert list(ids) == list(LANGUAGES)
    assert len(set(ids["en"])) == len(ids["en"])
    assert all(found == ids["en"] for found in ids.values())


@pytest.mark.parametrize(
    ("language", "prompt"),
    [
        ("ar", "طاهية واحدة وخروف واحد."),  # the numeral agrees, the conjunction is a prefix
        ("he", "שפית אחת וכבשה אחת."),
        ("zh", "一名女厨师和一只绵羊。"),
        ("ja", "一人の女性シェフと一頭の羊。"),
        ("hi", "एक महिला शेफ़ और एक भेड़।"),
        ("es", "Una chef y una oveja."),
        ("de", "Eine Köchin und ein Schaf."),
        ("fr", "Une cheffe cuisinière et un mouton."),
        ("en", "One female chef and one sheep."),
    ],
)
def test_a_prompt_follows_the_grammar(language: str, prompt: str) -> None:
    assert BANKS.languages[language].prompt("female chef", "sheep") == prompt


@pytest.mark.parametrize(
    ("language", "text", "fault"),
    [
        ("he", "כלב one", "LATIN SMALL LETTER O"),
        ("ar", "كلב", "HEBREW LETTER BET"),
        ("ja", "犬 2", "digit"),
        ("ar", "كلب ٢", "digit"),
        ("ar", "\u202bكلب", "invisible"),
        ("de", "Ko\u0308chin", "NFC"),
        ("es", "un  gato", "one line"),
    ],
)
def test_a_text_of_other_characters_is_refused(language: str, text: str, fault: str) -> None:
    assert fault in " ".join(BANKS.languages[language].text_faults(text))


def test_a_name_within_another_confuses_where_words_are_whole() -> None:
    spaced, unspaced = BANKS.languages["de"], BANKS.languages["zh"]
    assert unspaced.confusing("cat", "owl") and unspaced.confusing("owl", "cat")  # 猫, 猫头鹰
    assert not spaced.confusing("male physician", "male dentist")  # Arzt, Zahnarzt
    assert BANKS.languages["fr"].confusing("guinea pig", "pig")  # cochon


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        (
            *("languages/he.yaml", "text: כלב,", "text: חתול,"),
            ("duplicate-id", "dog:", "'חתול אחד'", "'cat'"),
        ),
        (
            *("languages/he.yaml", "text: כלב,", "text: dog,"),
            ("bad-entry", "dog", "LATIN SMALL LETTER D"),
        ),
        (
            *("languages/he.yaml", "text: כלב, form: m", "text: כלב, form: n"),
            ("unknown-name", "dog", "'n'"),
        ),
        ("languages/he.yaml", "back: dog", "back: wolf", ("bad-entry", "dog", "'wolf'")),
        (
            *("languages/de.yaml", "back: male cook", "back: female cook"),
            ("bad-entry", "male cook", "'female cook'"),
        ),
        ("languages/zh.yaml", "name: dog,", "name: hound,", ("bad-entry", "zh.yaml", "'dog'")),
        ("languages.yaml", "language: en", "language: nl", ("no-such-file", "languages/nl.yaml")),
    ],
)
def test_a_bank_that_names_wrongly_is_refused(
    tmp_path: Path, file: str, old: str, new: str, problem: tuple[str, ...]
) -> None:
    for name in ("languages.yaml", "synonyms.yaml"):
        shutil.copy(DEFAULT_BANK / name, tmp_path)
    shutil.copytree(DEFAULT_BANK / "languages", tmp_path / "languages")
    text = (tmp_path / file).read_text("utf-8")
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1), "utf-8")
    with raises(*problem, error=BankError):
        read_languages(tmp_path, BANKS.taxonomy)


@pytest.mark.parametrize(
    ("field", "old", "new", "said"),
    [
        ("prompt", "", "و", "does not name"),  # something before the first name
        ("swapped_prompt", ".", "..", "differs from prompt in more"),
    ],
)
def test_the_first_mentioned_is_read_first_and_nothing_else_differs(
    field: str, old: str, new: str, said: str
) -> None:
    row = built("t2i_homogenization_multilingual")[0]
    assert isinstance(row, TranslatedRow) and row.language == "ar"
    text = getattr(row, field)
    damaged = row.model_copy(update={field: text.replace(old, new, 1)})
    assert damaged != row
    faults = suite_faults(row.suite, [damaged], BANKS, complete=False)
    assert said in " ".join(fault.message for fault in faults)
