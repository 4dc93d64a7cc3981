"""Real Hive metastores 3.1.3 and 4.0.1 on 127.0.0.1, from Hive's own tarballs on pyspark's Hadoop.

And 2.3.10, from pyspark's jars.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from icecomb.catalog import metastore
from icecomb.catalog.java import find_java
from icecomb.catalog.metastore.embedded import write_configuration
from tests.peers.hdfs import write_site
from tests.peers.ivy import KEPT, fetch, pyspark_jars
from tests.peers.ports import free_ports

LAUNCHER = Path(__file__).with_name("LoopbackMetastore.java")
TARBALLS = {
    "3.1.3": "org.apache.hive:hive-standalone-metastore:3.1.3",
    "4.0.1": "org.apache.hive:hive-standalone-metastore-server:4.0.1",
}
_PACKAGES = ("lang", "net", "util", "util.concurrent", "util.regex", "nio")
_JVM = [
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xmx256m",
    "-Djava.net.preferIPv4Stack=true",
]
# The tarballs leave Hadoop and its logging out: pyspark carries both.
_FROM_PYSPARK = ("hadoop-client-api", "hadoop-client-runtime", "commons-cli", "commons-io", "commons-codec", "slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core", "log4j-1.2-api", "jcl-over-slf4j", "javax.servlet-api", "httpclient", "httpcore", "gson")  # fmt: skip
_LOG4J = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class HiveMetastore:
    """One server: `.uri`, `.port`, `.warehouse`.

    Args:
        version: 3.1.3 or 4.0.1.
        folder: Where configuration, logs, Derby and the warehouse go.
        database: A JDBC URL of Postgres; default Derby in the folder. 4.0.1 on Derby hangs when two clients lock at once.
        made: The database has the schema already: another server made it.
        settings: Further settings of `metastore-site.xml`.
        core: Settings of `core-site.xml`.
        jvm: Further arguments of the JVM.
        jars: Further jars on its class path.
    """

    def __init__(
        self,
        version: str,
        folder: Path,
        *,
        database: str | None = None,
        made: bool = False,
        settings: Mapping[str, str] | None = None,
        core: Mapping[str, str] | None = None,
        jvm: Sequence[str] = (),
        jars: Sequence[Path] = (),
    ) -> None:
        self.version = version
        self.folder = folder
        self.warehouse = folder / "warehouse"
        (self.port,) = free_ports(1)
        self.uri = f"thrift://127.0.0.1:{self.port}"
        self._home = self._release()
        self.database = database
        self._made = made
        self._settings = settings or {}
        self._core = core or {}
        self._jvm = jvm
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> HiveMetastore:
        """Begins to start; `wait` ends it."""
        self.warehouse.mkdir(parents=True, exist_ok=True)
        conf = self.folder / "conf"
        self._configure(conf)
        write_site(conf / "core-site.xml", self._core)
        package = "schematool." if self.version > "4" else ""
        tool = f"org.apache.hadoop.hive.metastore.tools.{package}MetastoreSchemaTool"
        kind = "made" if self._made else "postgres" if self.database else "derby"
        opened = [f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in _PACKAGES]
        command = [
            *(str(find_java()), *_JVM, *opened, *self._jvm),
            *(f"-Dderby.stream.error.file={self.folder / 'derby.log'}", "-cp", self._class_path(conf)),
            *(str(LAUNCHER), tool, kind, str(self.port)),
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, "METASTORE_HOME": str(self._home)},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self._made = True
        return self

    def wait(self) -> HiveMetastore:
        """Until it accepts connections."""
        assert self._process is not None
        end = time.monotonic() + 180
        while time.monotonic() < end and self._process.poll() is None:
            with socket.socket() as plug:
                if plug.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.1)
        self.stop()
        log = (self.folder / "log").read_text(errors="replace")
        raise RuntimeError(f"the metastore {self.version} did not start:\n{log[-4000:]}")

    def stop(self) -> None:
        """Ends it; `start` starts it again on the same port and database."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _release(self) -> Path:
        """The folder of the release."""
        return unpacked(self.version)

    def _configure(self, conf: Path) -> None:
        write_site(conf / "metastore-site.xml", {**self._site(), **self._settings})
        (conf / "log4j2.properties").write_text(_LOG4J)

    def _site(self) -> dict[str, object]:
        service = "service." if self.version > "4" else ""
        reaper = f"org.apache.hadoop.hive.metastore.txn.{service}AcidHouseKeeperService"
        derby = f"jdbc:derby:;databaseName={self.folder / 'derby'};create=true"
        driver = (
            "org.postgresql.Driver" if self.database else "org.apache.derby.jdbc.EmbeddedDriver"
        )
        return {
            "javax.jdo.option.ConnectionURL": self.database or derby,
            "javax.jdo.option.ConnectionDriverName": driver,
            "javax.jdo.option.ConnectionUserName": "hive" if self.database else "APP",
            "javax.jdo.option.ConnectionPassword": "hive",
            "datanucleus.connectionPoolingType": "HikariCP",
            "metastore.warehouse.dir": self.warehouse.as_uri(),
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
            "metastore.task.threads.always": reaper,
            "metastore.timedout.txn.reaper.start": "1s",
            "metastore.timedout.txn.reaper.interval": "1s",
            "metastore.acid.housekeeper.interval": "1s",
            "metastore.disallow.incompatible.col.type.changes": "false",
            # a failing store call is repeated ten times, two seconds apart, by default
            "metastore.hmshandler.retry.attempts": 2,
            "metastore.hmshandler.retry.interval": "200ms",
        }

    def _class_path(self, conf: Path) -> str:
        own = [
            jar
            for jar in sorted((self._home / "lib").glob("*.jar"))
            if not jar.name.startswith(("log4j", "slf4j"))
        ]
        carried = [next(pyspark_jars().glob(f"{name}-[0-9]*.jar")) for name in _FROM_PYSPARK]
        hadoop = carried[0].stem.removeprefix("hadoop-client-api-")
        fetched = [fetch("commons-collections:commons-collections:3.2.2")]
        if self.version > "4":
            fetched.append(fetch(f"org.apache.hadoop:hadoop-client-minicluster:{hadoop}"))
        return os.pathsep.join(map(str, (conf, *own, *carried, *fetched, *self._jars)))


class HiveMetastore2(HiveMetastore):
    """2.3.10 from pyspark's jars, as Hive itself starts it; the embedded one has no Kerberos.

    Args:
        folder: Where configuration, logs, Derby and the warehouse go.
        settings: Further settings of `hivemetastore-site.xml`.
        core: Settings of `core-site.xml`.
        jvm: Further arguments of the JVM.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        core: Mapping[str, str],
        jvm: Sequence[str],
    ) -> None:
        super().__init__("2.3.10", folder, made=True, settings=settings, core=core, jvm=jvm)

    def _release(self) -> Path:
        return pyspark_jars()

    def _configure(self, conf: Path) -> None:
        seed = self.folder / "seed"
        metastore.start(seed)
        metastore.stop(seed)
        shutil.move(seed / ".metastore" / "derby", self.folder / "derby")
        write_configuration(self.folder, self.warehouse.as_uri(), self.folder / "derby")
        write_site(conf / "hivemetastore-site.xml", self._settings)

    def _class_path(self, conf: Path) -> str:
        return f"{conf}{os.pathsep}{self._home}/*"


def unpacked(version: str) -> Path:
    """The folder of a release, with a Derby schema whose parameters Derby can compare."""
    home = KEPT / f"hive-metastore-{version}"
    with FileLock(f"{home}.lock"):
        if not home.exists():
            tarball = fetch(TARBALLS[version], classifier="bin", extension="tar.gz")
            draft = home.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            with tarfile.open(tarball) as archive:
                archive.extractall(draft, filter="data")
            (unpacked_folder,) = draft.iterdir()
            _make_comparable(unpacked_folder)
            unpacked_folder.rename(home)
            draft.rmdir()
    return home


def _make_comparable(home: Path) -> None:
    """CLOB is what Derby cannot compare: filters on parameters, and expected values, fail on it."""
    for script in (home / "scripts/metastore/upgrade/derby").glob("hive-schema-*.derby.sql"):
        lines = [
            line.replace('"PARAM_VALUE" CLOB', '"PARAM_VALUE" VARCHAR(32672)')
            if 'CREATE TABLE "APP"."TABLE_PARAMS"' in line
            else line
            for line in script.read_text().splitlines()
        ]
        script.write_text("\n".join(lines) + "\n")
