"""A Spark in an environment of its own, over a pipe."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from filelock import FileLock

from tests.environments import made

if TYPE_CHECKING:
    from icecomb.catalog.metastore import RunningMetastore

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
"""What a JVM is told that is over soon."""
SMALL = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
"""What every Spark of the tests has."""


class SparkProcess:
    """Spark of the environment `venv`, which may read and write on the metastore if one is given.

    Args:
        venv: Its Python has pyspark.
        conf: What it is configured by, besides `SMALL`.
        metastore: Where it has Hive tables.
        log: A file for what it says.
        home: Its jars, where they are not those of its pyspark.
    """

    name = "Spark"

    def __init__(
        self,
        venv: Path,
        conf: Mapping[str, str],
        metastore: RunningMetastore | None,
        log: Path,
        home: Path | None = None,
    ) -> None:
        self._log = log
        settings = {} if metastore is None else metastore.client_settings
        conf = {
            **SMALL,
            **conf,
            **{f"spark.hadoop.{key}": value for key, value in settings.items()},
        }
        # the first start may fetch jars: one process at a time
        with FileLock(made(venv) / "start.lock"):
            with log.open("w") as stderr:
                self._process = _start(venv, conf, metastore, stderr, home)
            try:
                [[self.version]] = self._answer()
            except BaseException:
                self.close()
                raise

    def sql(self, text: str) -> list[list[Any]]:
        """The rows of a statement; dates, timestamps and decimals as text."""
        return self._ask({"sql": text})

    def table(self, text: str) -> tuple[list[tuple[str, str]], list[list[Any]]]:
        """Names and types of the columns of a statement's rows, and the rows."""
        columns, *rows = self._ask({"sql": text, "columns": "yes"})
        return [(name, kind) for name, kind in columns], rows

    def read(self, table: str, *, cache: bool = False, **options: str) -> list[list[Any]]:
        """The rows of a table by read options, which may be cached."""
        return self._ask({"read": table, "options": options, "cache": cache})

    def prepare(self, text: str) -> int:
        """Plans a statement on the tables as they are now; the answer is for `run`."""
        [[number]] = self._ask({"prepare": text})
        return int(number)

    def run(self, number: int) -> None:
        """Runs a statement that was planned before."""
        self._ask({"run": number})

    @property
    def pid(self) -> int:
        """Of the driver's Python, whose children are the rest."""
        return self._process.pid

    def stream(self, table: str, checkpoint: Path, into: Path, **options: str) -> None:
        """A streaming query that appends to Parquet files what is new, and ends."""
        places = {"checkpoint": str(checkpoint), "into": str(into)}
        self._ask({"stream": table, **places, "options": options})

    def sink(
        self, table: str | None, schema: str, source: Path, checkpoint: Path, **options: str
    ) -> None:
        """A streaming query that appends the rows of JSON files to a table, and ends.

        Without a table the rows go nowhere: what is left is Spark's own time.
        """
        places = {"source": str(source), "checkpoint": str(checkpoint)}
        self._ask({"sink": table, "schema": schema, **places, "options": options})

    def overwrite(self, table: str, where: str, rows: str, **options: str) -> None:
        """Replaces the rows of a table that match a condition by those of a query."""
        self._ask({"overwrite": table, "where": where, "sql": rows, "options": options})

    def insert_into(self, table: str, rows: str, **options: str) -> None:
        """Overwrites a table by `insertInto` of a DataFrame with the rows of a query."""
        self._ask({"insert into": table, "sql": rows, "options": options})

    def function(self, name: str, code: str, kind: str) -> None:
        """Makes a function of SQL of the function of that name in some code.

        Args:
            name: Of the function.
            code: Python, which tasks need nothing else for.
            kind: What it gives, as SQL names types.
        """
        self._ask({"function": name, "code": code, "kind": kind})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _ask(self, request: Mapping[str, Any]) -> list[list[Any]]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        return self._answer()

    def _answer(self) -> list[list[Any]]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"{self.name} ended:\n{self._log.read_text()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise AssertionError(f"{self.name}: {answer['error'][:3000]}")
        rows: list[list[Any]] = answer["rows"]
        return rows


def _start(
    venv: Path,
    conf: Mapping[str, str],
    metastore: RunningMetastore | None,
    stderr: IO[str],
    home: Path | None,
) -> subprocess.Popen[str]:
    homes = {} if home is None else {"SPARK_HOME": str(home)}
    tokens = {} if metastore is None else {"HADOOP_TOKEN_FILE_LOCATION": str(metastore.token_file)}
    return subprocess.Popen(
        [
            str(venv / "bin" / "python"),
            str(Path(__file__).with_name("spark_worker.py")),
            json.dumps(conf),
        ],
        env={**os.environ, **homes, **tokens},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        bufsize=1,
    )
