"""Iceberg's own Java library, without Spark: a plain JVM that answers one request after the other.

Its tables are those of the shared metastore, `namespace.table`, and those of a folder, `hadoop:namespace.table`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icecomb.catalog.java import compile_jar, find_java
from icecomb.format.spec.schema import Schema
from tests.peers.ivy import KEPT, fetch, pyspark_jars
from tests.peers.spark_process import SHORT_LIVED

if TYPE_CHECKING:
    from icecomb.catalog.metastore import RunningMetastore

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_SOURCES = [
    Path(__file__).with_name(f"{name}.java")
    for name in ("IcebergLibrary", "PartitionCounts", "TableStatistics")
]
_NEEDED = (
    *("hadoop-client-*", "hive-common-*", "hive-exec-*", "hive-metastore-*", "hive-serde-*"),
    *("hive-shims-*", "hive-storage-api-*", "libfb303-*", "libthrift-*", "jta-*", "jdo-api-*"),
    *("datasketches-java-*", "datasketches-memory-*"),
    *("commons-codec-*", "commons-lang-*", "commons-lang3-*", "guava-*", "failureaccess-*"),
    *(
        "jcl-over-slf4j-*",
        "slf4j-api-*",
        "zstd-jni-*",
        "snappy-java-*",
        "aircompressor-*",
        "lz4-java-*",
    ),
)
"""What the runtime leaves to Spark, of the jars of pyspark."""
_JVM = (*SHORT_LIVED.split(), "-Xmx512m", "-XX:-UsePerfData", "-Duser.timezone=UTC")

_ARCHIVE = KEPT / "iceberg-library.jsa"
_FEW = 50
"""Who asked less has not loaded enough classes for an archive."""

Rows = Sequence[Sequence[Any]]
Spec = Sequence[tuple[str, str, str]]
Filter = str | Mapping[str, Any] | None


class IcebergLibraryError(AssertionError):
    """What the library refused."""


class IcebergLibrary:
    """The reference implementation's own API.

    Rows are lists of values as `tests/interop/conftest.py` shows them, except for maps, which are written as lists
    of pairs. A filter is text that PyIceberg parses, or JSON in the form of Iceberg's expressions.

    Args:
        metastore: Where it has Hive tables; its folder `hadoop` is the warehouse of the other ones.
        log: A file for what it says.
    """

    def __init__(self, metastore: RunningMetastore, log: Path) -> None:
        warehouse = Path(metastore.warehouse).as_uri()
        settings = {
            "conf": {"hive.metastore.uris": metastore.uri, **metastore.client_settings},
            "hive": {"uri": metastore.uri, "warehouse": warehouse},
            "hadoop": f"{warehouse}/hadoop",
        }
        self._log = log
        self._asked = 0
        self._one = threading.Lock()
        compiled, carried = _jars()
        # a start from an archive of the classes takes half of its time: whoever has none leaves one
        self._draft = _ARCHIVE.with_suffix(f".{os.getpid()}.draft")
        told = f"-XX:SharedArchiveFile={_ARCHIVE}"
        if not _ARCHIVE.exists() or _ARCHIVE.stat().st_mtime < compiled.stat().st_mtime:
            told = f"-XX:ArchiveClassesAtExit={self._draft}"
        classes = os.pathsep.join((str(compiled), carried))
        with log.open("w") as stderr:
            self._process = subprocess.Popen(
                [str(find_java()), *_JVM, told, "-Xlog:disable", "-Xlog:all=error:stderr", "-cp", classes, "IcebergLibrary", json.dumps(settings)],
                env={**os.environ, "HADOOP_TOKEN_FILE_LOCATION": str(metastore.token_file)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                bufsize=1,
            )  # fmt: skip
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, do: str, table: str, **request: Any) -> Any:
        """The answer to a request; see its source for what there is.

        Raises:
            IcebergLibraryError: It refused.
        """
        if isinstance(request.get("filter"), str):
            request["filter"] = _parsed(request["filter"])
        line = json.dumps({"do": do, "table": table, **request}) + "\n"
        with self._one:
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            self._asked += 1
            return self._answer()

    def create(
        self,
        table: str,
        schema: Schema,
        spec: Spec = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a table.

        Args:
            table: Its name.
            schema: Its columns.
            spec: Transform, column and name of each partition field.
            properties: Its properties.
        """
        self.ask("create", table, **_definition(schema, spec), properties=properties)

    def replace(self, table: str, schema: Schema, rows: Rows, spec: Spec = ()) -> None:
        """Replace a table by another one, whose rows are these."""
        self.ask("replace", table, rows=rows, **_definition(schema, spec))

    def drop(self, table: str) -> None:
        """Drop a table, without its files."""
        self.ask("drop", table)

    def append(self, table: str, rows: Rows, **options: Any) -> int:
        """Append rows; the current snapshot afterwards.

        Args:
            table: Its name.
            rows: Values of all columns.
            options: `format` of the files, `branch`, `fast` (without merging manifests).
        """
        return int(self.ask("append", table, rows=rows, **options))

    def scan(self, table: str, filter: Filter = None, **options: Any) -> list[list[Any]]:  # noqa: A002
        """The rows of a table, unordered.

        Args:
            table: Its name.
            filter: Which rows.
            options: `columns`, names of whole columns; `snapshot`; `ref`.
        """
        rows: list[list[Any]] = self.ask("scan", table, filter=filter, **options)
        return rows

    def plan(self, table: str, filter: Filter = None, **options: Any) -> dict[str, list[str]]:  # noqa: A002
        """The data files that a scan reads, and the delete files of each."""
        return dict(self.ask("plan", table, filter=filter, **options))

    def files(self, table: str) -> list[dict[str, Any]]:
        """What manifests say of the live data files."""
        return list(self.ask("files", table))

    def metadata(self, table: str) -> dict[str, Any]:
        """The location of the metadata, snapshots, refs, schema, spec and properties."""
        return dict(self.ask("metadata", table))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(120)
            if self._asked >= _FEW and self._draft.exists():
                self._draft.replace(_ARCHIVE)
            self._draft.unlink(missing_ok=True)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"Iceberg Java ended:\n{self._log.read_text()[-3000:]}")
        found = json.loads(line)
        if "error" in found:
            raise IcebergLibraryError(f"Iceberg Java: {found['error'][:3000]}")
        return found["answer"]


def _definition(schema: Schema, spec: Spec) -> dict[str, Any]:
    fields = [
        {"source-id": schema.find_field(column).field_id, "field-id": 1000 + place}
        | {"transform": transform, "name": name}
        for place, (transform, column, name) in enumerate(spec)
    ]
    return {"schema": schema.to_json(), "spec": {"spec-id": 0, "fields": fields}}


def _parsed(text: str) -> Any:
    from pyiceberg.expressions.parser import parse

    return json.loads(parse(text).model_dump_json())


def _jars() -> tuple[Path, str]:
    """Our own classes, and the class path of what they need."""
    others = sorted({jar for name in _NEEDED for jar in pyspark_jars().glob(f"{name}.jar")})
    carried = os.pathsep.join(map(str, (fetch(RUNTIME), *others)))
    written = b"".join(source.read_bytes() for source in _SOURCES)
    key = hashlib.sha256(written + carried.encode()).hexdigest()[:16]
    return compile_jar(_SOURCES, carried, "icecomb-test-iceberg-library", key), carried
