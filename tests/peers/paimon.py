"""PyPaimon as a peer: one JSON request a line on stdin, one answer a line on stdout; rows as Arrow IPC files.

Runs with the interpreter of ``.venv-pypaimon``: PyPaimon needs an older Arrow than icecomb.
"""

import json
import sys
from typing import Any

from pyarrow import feather
from pypaimon import CatalogFactory, Schema


def main(warehouse: str) -> None:
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("db", True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": globals()[f"do_{request.pop('do')}"](catalog, **request)}
        except Exception as error:  # noqa: BLE001 - the test decides what an error means
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def do_create(
    catalog: Any, table: str, file: str, partition: Any, primary: Any, options: Any
) -> None:
    schema = feather.read_table(file).schema
    made = Schema.from_pyarrow_schema(
        schema, partition_keys=partition, primary_keys=primary, options=options
    )
    catalog.create_table(f"db.{table}", made, False)


def do_write(catalog: Any, table: str, file: str, *, overwrite: bool = False) -> None:
    builder = catalog.get_table(f"db.{table}").new_batch_write_builder()
    if overwrite:
        builder = builder.overwrite()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(feather.read_table(file))
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def do_read(catalog: Any, table: str, file: str) -> None:
    builder = catalog.get_table(f"db.{table}").new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    feather.write_feather(rows, file, compression="uncompressed")


def do_schema(catalog: Any, table: str) -> Any:
    schema = catalog.get_table(f"db.{table}").table_schema
    return [[field.id, field.name, str(field.type), field.description] for field in schema.fields]


if __name__ == "__main__":
    main(sys.argv[1])
