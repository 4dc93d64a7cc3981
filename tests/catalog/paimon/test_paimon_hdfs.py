"""Paimon tables on a real HDFS."""

from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.paimon.source import PaimonSource
from icecomb.catalog.paimon.table_import import plan_import
from icecomb.format.errors import FileExistsAlreadyError
from icecomb.format.file_io import FileIO
from icecomb.format.paimon.schema_change import AddColumn
from icecomb.format.paimon.type_parser import parse_type


def test_a_table_on_hdfs_is_read_evolved_and_can_be_brought_over(hdfs, pypaimon):
    made = pypaimon.make("on_hdfs", pa.table({"id": [1, 2], "k": ["a", "b"]}), partition=["k"])
    io, location = FileIO(hdfs.client_settings), f"{hdfs.uri}/warehouse/paimon/on_hdfs"
    for path in Path(made.location).rglob("*"):
        if path.is_file():
            io.create(f"{location}/{path.relative_to(made.location)}", path.read_bytes())
    source = PaimonSource("on_hdfs", io, location)
    new = source.schemas.evolve([AddColumn(("more",), parse_type("INT"))])
    assert source.schemas.read(1).to_json() == new.to_json()
    with pytest.raises(FileExistsAlreadyError):
        io.create(source.schemas.path(1), b"other")
    plan = plan_import(source)
    assert (plan.blockers, plan.rows, len(plan.files)) == ([], 2, 2)
    assert {file.partition for file in plan.files} == {("a",), ("b",)}
