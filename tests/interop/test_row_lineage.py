"""Ids of rows, as Iceberg Java's library and icecomb assign, keep and read them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StringType
from tests.rings import sampled

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
COLUMNS = "id, s, _row_id, _last_updated_sequence_number"
VERSION_3 = {"format-version": "3"}


def frame(*rows):
    numbers, texts = zip(*rows, strict=True)
    return pa.table({"id": pa.array(numbers, pa.int64()), "s": list(texts)})


def agreed(library, name):
    """The rows with their lineage, which is the same for both."""
    theirs = library.java(name, columns=COLUMNS)
    assert library.python(name, columns=COLUMNS) == theirs
    ids = [own for _, _, own, _ in theirs if own is not None]
    assert len(set(ids)) == len(ids)
    return {f"{number}{text}": (own, updated) for number, text, own, updated in theirs}


@pytest.mark.parametrize("file_format", sampled(["parquet", "orc", "avro"], keep=1))
def test_both_keep_the_ids_of_rows_that_either_moves(library, file_format):
    name = f"lineage_{file_format}"
    properties = {**VERSION_3, "write.format.default": file_format}
    properties["icecomb.maintenance.copy-min-row-group-bytes"] = "0"
    java = library.create(name, SCHEMA, properties=properties)
    library.iceberg.append(java, [[0, "a"], [1, "b"], [2, "c"]])
    table = library.load(name)
    table.append(frame((3, "d"), (4, "e")))
    expected = {"0a": (0, 1), "1b": (1, 1), "2c": (2, 1), "3d": (3, 2), "4e": (4, 2)}
    assert agreed(library, name) == expected
    library.iceberg.ask("update", java, filter="id = 1", set={"s": "B"})
    del expected["1b"]
    expected |= {"1B": (1, 3)}
    assert agreed(library, name) == expected
    table.refresh().upsert(frame((1, "BB"), (3, "D"), (5, "f")), ["id"])
    found = agreed(library, name)
    del expected["1B"], expected["3d"]
    expected |= {"1BB": (1, 4), "3D": (3, 4), "5f": (found["5f"][0], 4)}
    assert found == expected
    assert found["5f"][0] > 4
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert agreed(library, name) == expected
    library.iceberg.ask("update", java, filter="id > 3", set={"s": "x"})
    for text in ("4e", "5f"):
        own, _ = expected.pop(text)
        expected[f"{text[0]}x"] = own, 6
    assert agreed(library, name) == expected
    library.iceberg.ask("compact", java)
    table.refresh().delete("id = 0")
    del expected["0a"]
    assert agreed(library, name) == expected
    table.append(frame((7, "g"), (8, "h")))
    expected = agreed(library, name)
    copy = "require" if file_format == "parquet" else "auto"
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true", "copy": copy})
    assert agreed(library, name) == expected


def test_rows_of_an_upgraded_table_have_ids_from_its_next_commit_on(library):
    java = library.create("lineage_upgraded", SCHEMA, properties={"format-version": "2"})
    library.iceberg.append(java, [[0, "a"], [1, "b"]])
    table = library.load("lineage_upgraded")
    table.append(frame((2, "c")))
    with table.update_properties() as update:
        update.set("format-version", "3")
    none = (None, None)
    assert agreed(library, "lineage_upgraded") == {"0a": none, "1b": none, "2c": none}
    table.delete("id = 0")
    found = agreed(library, "lineage_upgraded")
    assert found.keys() == {"1b", "2c"}
    assert none not in found.values()
    library.iceberg.ask("update", java, filter="id = 1", set={"s": "B"})
    table.refresh().append(frame((3, "d")))
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    again = agreed(library, "lineage_upgraded")
    assert again["2c"] == found["2c"]
    assert again["1B"] == (found["1b"][0], 4)
    assert again["3d"][0] > max(own for own, _ in found.values())
