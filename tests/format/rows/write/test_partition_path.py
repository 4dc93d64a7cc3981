from __future__ import annotations

import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.rows.write.partition_path import path_values, value_of_text
from icecomb.format.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    NestedField,
    StringType,
    TimestampType,
)


@pytest.mark.parametrize(
    ("folder", "value"),
    [
        ("a", "a"),
        ("New%2FYork", "New/York"),
        ("a+b", "a+b"),
        ("100%", "100%"),
        ("%zz%4", "%zz%4"),
        ("%25%3D%3a", "%=:"),
        ("Zürich", "Zürich"),
        ("Z%C3%BCrich", "Zürich"),
        ("a=b", "a=b"),
        ("", ""),
        ("null", "null"),
        ("__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_a_folder_is_unescaped_as_hive_escaped_it(folder, value):
    assert path_values(f"file:/w/t/day=1/city={folder}/part-0") == {"day": "1", "city": value}


def test_the_name_of_a_column_is_unescaped_and_that_of_the_file_is_no_value():
    assert path_values("/w/a%3Ab=1/x=2.parquet") == {"a:b": "1"}


def test_an_escape_that_is_no_text_is_refused():
    with pytest.raises(ValidationError, match="not UTF-8"):
        path_values("/w/city=%FF%FE/x.parquet")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("007", IntegerType(), 7),
        ("007", StringType(), "007"),
        ("1970-01-03", DateType(), 2),
        ("TRUE", BooleanType(), True),
        ("1970-01-01 00:00:01.5", TimestampType(), 1_500_000),
        (None, IntegerType(), None),
    ],
)
def test_a_text_becomes_a_value_of_the_column(text, kind, value):
    assert value_of_text(text, NestedField(1, "c", kind)) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.5", IntegerType()),
        ("99999999999", IntegerType()),
        ("x", DateType()),
        ("1.234", DecimalType(4, 2)),
        ("", IntegerType()),
    ],
)
def test_a_text_that_is_no_exact_value_is_refused(text, kind):
    with pytest.raises(ValidationError, match="Partition value"):
        value_of_text(text, NestedField(1, "c", kind))
