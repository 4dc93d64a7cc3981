"""Hive 3.1.3 itself on a metastore 3.1.3: it writes tables, transactional ones too, and reads Iceberg's.

Its statements are compiled by its own driver and run as MapReduce jobs in one process, without a
cluster: some seconds each. Iceberg's last runtime for Hive 3 is on its class path.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from icecomb.catalog.java import find_java
from tests.peers.hive_metastore import HiveMetastore, unpacked
from tests.peers.ivy import fetch, fetch_all, pyspark_jars

VERSION = "3.1.3"
_LAUNCHER = Path(__file__).with_name("Hive.java")
_PATCH = Path(__file__).with_name("SubListSerializer.java")
_OPENED = ("io", "lang", "lang.invoke", "lang.reflect", "math", "net", "nio", "nio.charset", "nio.file", "text", "time", "util", "util.concurrent", "util.concurrent.atomic", "util.concurrent.locks", "util.regex")  # fmt: skip
_FROM_PYSPARK = ("hadoop-client-api", "hadoop-client-runtime", "commons-cli", "commons-io", "slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core", "log4j-1.2-api", "jcl-over-slf4j", "javax.servlet-api", "libthrift", "libfb303")  # fmt: skip
_NOT_OF_CALCITE = ("guava", "slf4j", "commons-logging", "jackson")
_NOT_OF_METASTORE = ("log4j", "slf4j", "hive-standalone")
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx512m"]


def hive_exec() -> Path:
    """Hive's own classes; a metastore needs them to tell transactional formats from others."""
    return fetch(f"org.apache.hive:hive-exec:{VERSION}")


class FailedStatementError(Exception):
    """Hive refused a statement, or its job failed."""


class Hive:
    """A process that runs statements.

    Args:
        metastore: Where its tables are.
        folder: For what it keeps while it runs, and its log.
        runtime: Whether Iceberg's runtime is on its class path.
    """

    def __init__(self, metastore: HiveMetastore, folder: Path, *, runtime: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "hive.metastore.uris": metastore.uri,
            "hive.metastore.warehouse.dir": metastore.warehouse.as_uri(),
            "fs.defaultFS": "file:///",
            "hive.execution.engine": "mr",
            "mapreduce.framework.name": "local",
            # who waits for a job looks after so many milliseconds whether it is done
            "hive.exec.counters.pull.interval": "50",
            "hive.exec.mode.local.auto": "true",
            "hive.exec.scratchdir": folder / "scratch",
            "hive.exec.local.scratchdir": folder / "local",
            "mapreduce.jobtracker.staging.root.dir": folder / "staging",
            "hadoop.tmp.dir": folder / "tmp",
            "hive.cbo.enable": "false",
            "hive.support.concurrency": "true",
            "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
            # Iceberg's runtime has no vectorised reader for this Hive
            "hive.vectorized.execution.enabled": "false",
        }
        opened = [f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in _OPENED]
        jars = _class_path(folder)
        if runtime:
            jars.append(fetch("org.apache.iceberg:iceberg-hive-runtime:1.4.3"))
        command = [
            *(str(find_java()), *_JVM, *opened, f"-Djava.io.tmpdir={folder}"),
            *("-cp", os.pathsep.join(map(str, jars)), str(_LAUNCHER)),
            *(f"{key}={value}" for key, value in settings.items()),
        ]
        self._log = (folder / "log").open("ab")
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._answer("its start")

    def run(self, statement: str) -> list[list[str]]:
        """The rows of a statement, all values as Hive writes them.

        Raises:
            FailedStatementError: Hive says why.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(statement.split("\n")) + "\n")
        self._process.stdin.flush()
        return self._answer(statement)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def _answer(self, statement: str) -> list[list[str]]:
        assert self._process.stdout is not None
        rows: list[list[str]] = []
        for line in self._process.stdout:
            text = line.rstrip("\n")
            if text in {"ok", "ready"}:
                return rows
            if text.startswith("failed"):
                raise FailedStatementError(f"{statement}: {text}")
            rows.append(text.removeprefix("|").split("\t"))
        raise FailedStatementError(f"{statement}: Hive ended; see {self._log.name}")


def _class_path(folder: Path) -> list[Path]:
    exec_jar, patch = hive_exec(), folder / "patch"
    javac = find_java().with_name("javac")
    patch.mkdir()
    compiling = [str(javac), "-nowarn", "-cp", str(exec_jar), "-d", str(patch), str(_PATCH)]
    subprocess.run(compiling, check=True, capture_output=True)
    conf = folder / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").write_text("status = off\nrootLogger.level = off\n")
    calcite = fetch_all("org.apache.calcite:calcite-core:1.16.0").glob("*.jar")
    stored = (unpacked(VERSION) / "lib").glob("*.jar")
    return [
        patch,
        conf,
        exec_jar,
        fetch("org.apache.calcite:calcite-druid:1.16.0"),
        *(jar for jar in sorted(calcite) if not jar.name.startswith(_NOT_OF_CALCITE)),
        *(next(pyspark_jars().glob(f"{name}-[0-9]*.jar")) for name in _FROM_PYSPARK),
        *(jar for jar in sorted(stored) if not jar.name.startswith(_NOT_OF_METASTORE)),
        fetch("commons-collections:commons-collections:3.2.2"),
    ]
