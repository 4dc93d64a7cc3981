"""Every example of docs/paimon.md runs, in the order in which a reader tries them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa

from icecomb.catalog.cli import main
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HiveTable,
    StorageDescriptor,
)
from tests.test_docs import commands

PAGE = Path(__file__).resolve().parents[3] / "docs" / "paimon.md"
FOLDER = "/warehouse/sales.db/clicks"


def examples(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_page_run(pypaimon, metastore, catalog, capsys):
    columns = [("id", pa.int64()), ("note", pa.string())]
    rows = pa.table({"id": [1, 2], "note": ["a", "b"]}, schema=pa.schema(columns))
    source = pypaimon.make("clicks", rows)
    catalog.client.create_database(
        HiveDatabase("sales", location=str(Path(metastore.warehouse) / "sales.db"))
    )
    hive = tuple(FieldSchema(name, kind) for name, kind in (("id", "bigint"), ("note", "string")))
    catalog.client.create_table(
        HiveTable(
            "sales",
            "clicks",
            storage=StorageDescriptor(hive, source.location, "i", "o", "s"),
            parameters={"EXTERNAL": "TRUE", "table_type": "PAIMON"},
            table_type="EXTERNAL_TABLE",
        )
    )
    look, evolve, bring = (list(commands(block)) for block in examples("sh"))
    # There is only one schema to look at before something evolved.
    for comment, command in (*evolve, *look, *bring):
        words = shlex.split(command.replace(FOLDER, source.location))
        assert words.pop(0) == "icecomb"
        if words[0] == "--uri":
            del words[:2]
        where = ["--uri", metastore.uri, "--warehouse", str(metastore.warehouse)]
        code = main([*where, *words])
        said = capsys.readouterr()
        assert code == (3 if "exit code 3" in comment else 0), f"{command}\n{said.err}"
    assert said.out.split()[:3] == ["REMARK", "ID", "PLACE"]
    for block in examples("python"):
        exec(block.replace(FOLDER, source.location), {})  # noqa: S102 - the page's own words
    assert "remark" in capsys.readouterr().out
    assert [f.name for f in source.schemas.latest().fields] == ["words", "id", "place"]
