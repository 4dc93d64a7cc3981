"""Which type a column may become, as Paimon 1.4.2 says; `tests/catalog/paimon/test_paimon_java_rules.py` asks it anew."""

from __future__ import annotations

import pytest

from icecomb.catalog.paimon.schema_change import can_cast
from icecomb.catalog.paimon.type_parser import parse_type

ROOTS = {
    "BOOLEAN": "IEEEEEEEE.....EEEE............",
    "TINYINT": "EIIIIIIII.....EEEE............",
    "SMALLINT": "EEIIIIIII.....EEEE............",
    "INT": "EEEIIIIII..EEEEEEE............",
    "BIGINT": "EEEEIIIII..EEEEEEE............",
    "FLOAT": ".EEEEIIII.....EEEE............",
    "DOUBLE": ".EEEEEIII.....EEEE............",
    "DECIMAL(10, 2)": ".EEEEIIII.....EEEE............",
    "DECIMAL(5, 4)": ".EEEEIIII.....EEEE............",
    "DATE": ".........I.EEE...E............",
    "TIME(3)": "..........IEEE...E............",
    "TIMESTAMP(3)": "...EE....IIIII...E............",
    "TIMESTAMP(6)": "...EE....IIIII...E............",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": "...EE....EEIII...E............",
    "CHAR(3)": "EEEEEEEEEEEEEEIIIIEEEE........",
    "CHAR(9)": "EEEEEEEEEEEEEEIIIIEEEE........",
    "VARCHAR(5)": "EEEEEEEEEEEEEEEEIIEEEE........",
    "STRING": "EEEEEEEEEEEEEEEEIIEEEE........",
    "BINARY(4)": "..............EEEEIIII........",
    "BINARY(9)": "..............EEEEIIII........",
    "VARBINARY(4)": "..............EEEEEEII........",
    "BYTES": "..............EEEEEEII........",
    "VARIANT": "......................I.......",
    "BLOB": ".......................I......",
    "ARRAY<INT>": "..............EEEE......I.....",
    "ARRAY<BIGINT>": "..............EEEE.......I....",
    "MULTISET<INT>": "..........................I...",
    "MAP<INT, INT>": "..............EEEE.........I..",
    "ROW<a INT>": "..............EEEE..........I.",
    "ROW<a BIGINT>": "..............EEEE...........I",
}
"""From each type to each, in this order: implicit, explicit only, or not at all.

A type may always become itself, though Paimon says so of few types.
"""


@pytest.mark.parametrize("old", ROOTS)
def test_a_type_becomes_what_paimon_can_cast_it_to(old):
    found = [
        "I"
        if can_cast(parse_type(old), parse_type(new), explicit=False)
        else "E"
        if can_cast(parse_type(old), parse_type(new), explicit=True)
        else "."
        for new in ROOTS
    ]
    assert "".join(found) == ROOTS[old]


@pytest.mark.parametrize(
    ("old", "new", "implicit", "explicit"),
    [
        ("INT NOT NULL", "STRING NOT NULL", False, True),
        ("DATE NOT NULL", "STRING NOT NULL", False, False),
        ("TIMESTAMP(3) NOT NULL", "STRING NOT NULL", False, False),
        ("INT", "BIGINT NOT NULL", False, True),
        ("INT NOT NULL", "BIGINT", True, True),
        ("TIME(0)", "TIME(3)", False, False),
    ],
)
def test_nullability_and_precision_count_as_in_paimon(old, new, implicit, explicit):
    kinds = parse_type(old), parse_type(new)
    assert can_cast(*kinds, explicit=False) == implicit
    assert can_cast(*kinds, explicit=True) == explicit
