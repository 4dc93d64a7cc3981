"""Paimon's own Java library on a warehouse folder of its own, in a process of its own.

Its zone is not UTC, because what depends on a writer's zone must be seen.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

from icecomb.catalog.java import find_javac
from icecomb.catalog.paimon.data_type import AtomicType, DataField
from icecomb.catalog.paimon.schema_change import AddColumn, DropColumn, changed
from icecomb.catalog.paimon.source import PaimonSource
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.storage.file_io import FileIO
from tests.peers.ivy import fetch, pyspark_jars

VERSION = "1.4.2"
_BUNDLE = f"org.apache.paimon:paimon-bundle:{VERSION}"
_NEEDED = ("hadoop-client-*", "slf4j-api-*", "commons-logging-*", "snappy-*", "lz4-*", "zstd-jni-*")
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx512m"]


class PaimonJavaError(RuntimeError):
    """What Paimon refused."""


class PaimonJava:
    """The peer.

    Args:
        folder: For the warehouse and the log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        jars = [fetch(_BUNDLE), *(jar for name in _NEEDED for jar in pyspark_jars().glob(name))]
        # A source file is compiled and run by one JVM.
        java = find_javac().with_name("java")
        source = Path(__file__).with_name("PaimonJava.java")
        command = [java, *_JVM, "-Duser.timezone=America/New_York", "-cp", ":".join(map(str, jars))]
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            [*map(str, command), str(source), str(folder / "warehouse")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
        )

    def location(self, table: str) -> str:
        """The table's folder."""
        return str(self.folder / "warehouse" / "db.db" / table)

    def source(self, table: str) -> PaimonSource:
        """The table as icecomb sees it."""
        return PaimonSource(table, FileIO(), self.location(table))

    def make(
        self,
        table: str,
        columns: dict[str, str],
        *parts: list[dict[str, Any]],
        partition: tuple[str, ...] = (),
        primary: tuple[str, ...] = (),
        options: dict[str, str] | None = None,
    ) -> PaimonSource:
        """A table of columns and their types, with rows by name; each part is a commit."""
        # The first column makes a schema that the others can be added to, by our own rules.
        schema = TableSchema(0, (DataField(0, " ", AtomicType(True, "INT")),), 0)
        wanted = {name: parse_type(kind) for name, kind in columns.items()}
        adds = [AddColumn((name,), kind.with_nullable(True)) for name, kind in wanted.items()]
        made = changed(schema, [*adds, DropColumn((" ",))], has_snapshots=False).to_json()
        for field, kind in zip(made["fields"], wanted.values(), strict=True):
            if isinstance(field["type"], str):
                field["type"] = str(kind)
        keys = {"partitionKeys": list(partition), "primaryKeys": list(primary)}
        text = json.dumps({**made, **keys, "options": options or {}})
        self.ask(do="create", table=table, schema=text)
        for part in parts:
            self.write(table, part)
        return self.source(table)

    def write(
        self, table: str, rows: list[dict[str, Any]], *, overwrite: dict[str, str] | None = None
    ) -> int:
        """Append rows, or overwrite a partition ({}: all); the number of the snapshot."""
        names = [
            field["name"] for field in json.loads(self.ask(do="schema", table=table))["fields"]
        ]
        values = [[plain(row.get(name)) for name in names] for row in rows]
        found: int = self.ask(do="write", table=table, rows=values, overwrite=overwrite)
        return found

    def read(self, table: str) -> list[list[Any]]:
        """All rows, with values as `plain` gives them, in the order of their texts."""
        return sorted(self.ask(do="read", table=table), key=repr)

    def ask(self, **request: Any) -> Any:
        """One request; `PaimonJava.java` says which there are."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Paimon ended: {(self.folder / 'log').read_text()[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise PaimonJavaError(answer["error"])
        return answer["ok"]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._log.close()


def plain(value: Any) -> Any:
    """A Python value as Paimon's peer writes and reads it: see `PaimonJava.java`."""
    if isinstance(value, dict):
        return [plain(inner) for inner in value.values()]
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="microseconds")
        instant = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return f"{instant.isoformat(timespec='microseconds')}Z"
    if isinstance(value, dt.time):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
