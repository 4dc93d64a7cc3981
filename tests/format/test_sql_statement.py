"""Names and constants in SQL: whatever they say, they stay what they are."""

from __future__ import annotations

import pytest

from icecomb.format.sql_statement import LEFT_OUT, printed_name, printed_text, quoted_name


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("id", "`id`"), ("a`b", "`a``b`"), ("größe (cm)", "`größe (cm)`"), ("a.b", "`a.b`")],
)
def test_a_name_is_quoted_part_by_part(name: str, quoted: str) -> None:
    assert quoted_name(name) == printed_name(name) == quoted
    assert quoted_name("db", name) == printed_name("db", name) == f"`db`.{quoted}"


@pytest.mark.parametrize(
    "name",
    [
        "a; DROP DATABASE hr --",
        "it's",
        'a"b',
        "a\\b",
        "a--b",
        "a/*b",
        "a\nb",
        "a\x1b[2J",
        "a\u202eb",
    ],
)
def test_a_name_that_programs_could_cut_is_not_printed(name: str) -> None:
    # Beeline and spark-sql split at a semicolon within backticks, too
    assert printed_name("db", name) == LEFT_OUT
    assert quoted_name(name) == f"`{name}`"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("file:/a b/ä", "'file:/a b/ä'"),
        ("it's", r"'it\u0027s'"),
        ("a\\'; DROP --", r"'a\u005c\u0027\u003b DROP --'"),
        ("\n`$\U0001f600\U000e0001", r"'\u000a\u0060\u0024" + "\U0001f600" + r"\udb40\udc01'"),
    ],
)
def test_a_constant_says_what_could_end_it_by_its_number(text: str, printed: str) -> None:
    # as Hive's BaseSemanticAnalyzer.unescapeSQLString and Spark's parser read it
    assert printed_text(text) == printed
