"""Starting, finding and stopping the metastore of a warehouse folder.

All its files are in one folder: see `configuration.metastore_folder`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from icecomb.catalog.configuration.metastore_folder import (
    MetastoreFolder,
    RunningMetastore,
    publish,
)
from icecomb.catalog.configuration.warehouse import OBJECT_STORES, warehouse_folder
from icecomb.catalog.java import java_environment, private_cache, require_java
from icecomb.catalog.metastore.server_jar import class_path, derby_key
from icecomb.format.errors import ConfigurationError, IcecombError, MetastoreError
from icecomb.format.process import has_ended, is_alive, started_at

IDLE_S: Final = 600
"""Seconds without any connection after which a metastore ends by itself."""
START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 15.0
ANSWER_TIMEOUT_S: Final = 5.0
ANSWER_TRIES: Final = 3
"""How often a server may fail to answer until it is replaced."""
ANSWER_PAUSE_S: Final = 1.0
_MAIN: Final = "icecomb.EmbeddedMetastore"
_JVM: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    # DataNucleus asks Derby more than the 100 statements that it keeps by default
    "-Dderby.language.statementCacheSize=2000",
    *(
        f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
        for package in ("lang", "net", "util", "util.concurrent", "util.regex", "nio")
    ),
)
_LOG: Final = logging.getLogger(__name__)
_CHILDREN: Final[dict[tuple[int, int], subprocess.Popen[bytes]]] = {}
"""Servers by the process that started them, and their own: zombies until it waits for them, as no
other process can, not even one that it forked."""


def start(
    warehouse: str | os.PathLike[str] | None = None, *, idle_s: int = IDLE_S
) -> RunningMetastore:
    """Start the metastore of ``warehouse``, or find the running one.

    Any process of the folder's owner may call it.

    Args:
        warehouse: A local folder, created if needed, or a location in an object store; default
            `default_warehouse`.
        idle_s: Seconds without a connection after which a new one ends; 0 for never.
    """
    folder = MetastoreFolder(warehouse_folder(warehouse, create=True))
    if found := _running(folder):
        return found
    folder.make()
    with folder.lock(START_TIMEOUT_S + STOP_TIMEOUT_S):
        if found := _running(folder, ANSWER_TRIES):
            return found
        return _launch(folder, idle_s)


def status(warehouse: str | os.PathLike[str] | None = None) -> RunningMetastore | None:
    """Return the running metastore of ``warehouse``, or None; start and change nothing."""
    return _running(MetastoreFolder(warehouse_folder(warehouse)))


def stop(warehouse: str | os.PathLike[str] | None = None) -> bool:
    """Stop the metastore of ``warehouse``; return False if none ran."""
    folder = MetastoreFolder(warehouse_folder(warehouse))
    if not folder.home.is_dir():
        return False
    with folder.lock(START_TIMEOUT_S + STOP_TIMEOUT_S):
        server = folder.announced()
        if server is None or not _is_ours(server):
            return False
        _end(server.pid, folder)
        folder.state.unlink(missing_ok=True)
    return True


def _running(folder: MetastoreFolder, tries: int = 1) -> RunningMetastore | None:
    """Return the announced server, if it answers with its name."""
    for attempt in range(tries):
        time.sleep(ANSWER_PAUSE_S if attempt else 0)
        server = folder.announced()
        # whoever has the port of one that ended may let its clients wait: it is not asked
        if server is None or not _is_ours(server):
            return None
        if _answers(server):
            publish(server)
            return server
    return None


def _is_ours(server: RunningMetastore) -> bool:
    """Return whether the announced pid is the server and may be ended."""
    return _alive(server.pid) and server.name in _command_line(server.pid)


def _launch(folder: MetastoreFolder, idle_s: int) -> RunningMetastore:
    java = require_java()
    classes = class_path()
    _LOG.info("starting a Hive metastore for %s; it takes some seconds", folder.text)
    leftover = folder.announced()
    if leftover and _is_ours(leftover):
        # It runs but does not answer, and holds the Derby database: it must end first.
        _end(leftover.pid, folder)
    folder.state.unlink(missing_ok=True)
    try:
        if not folder.derby.is_dir():
            _copy_prepared(java, classes, folder)
        configuration = write_configuration(folder.home, folder.location, folder.derby)
        folder.write_token()
    except OSError as error:
        raise ConfigurationError(
            f"The metastore's database cannot be made in {folder.home}: {error}",
            hint="Free space there, or name another warehouse.",
        ) from error
    folder.sign()
    name = f"icecomb-{secrets.token_hex(12)}"
    command = [
        *(str(java), *_JVM, f"-Dderby.stream.error.file={folder.home / 'derby.log'}"),
        *("-cp", f"{configuration}{os.pathsep}{classes}", _MAIN),
        *("serve", str(folder.state), name, str(idle_s), str(folder.token)),
    ]
    process = _spawn(command, folder)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        server = folder.announced()
        if server and server.name == name and _answers(server):
            publish(server)
            return server
        if process.poll() is not None:
            raise _failure(folder, f"ended with status {process.returncode}")
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise _failure(folder, f"did not answer within {START_TIMEOUT_S:.0f} s")


def _spawn(command: list[str], folder: MetastoreFolder) -> subprocess.Popen[bytes]:
    try:
        if folder.log.exists():
            folder.log.replace(folder.log.with_suffix(".log.1"))
        with folder.log.open("wb") as log:
            # A session of its own: it outlives the process that starts it, and its Ctrl-C.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder.home,
                env=java_environment(),
                start_new_session=True,
            )
    except OSError as error:
        raise MetastoreError(
            f"The metastore cannot be started: {error}",
            hint="Check that Java can be run here and that the folder of its log is writable.",
            path=folder.text,
        ) from error
    _CHILDREN[os.getpid(), process.pid] = process
    return process


def _copy_prepared(java: Path, classes: str, folder: MetastoreFolder) -> None:
    """Copy an empty metastore database to the folder; it is made once per user."""
    from filelock import FileLock

    cache = private_cache("metastore")
    prepared = cache / f"derby-{derby_key()}"
    with FileLock(cache / "prepare.lock"):
        if not prepared.is_dir():
            _LOG.info("making an empty database for Hive metastores, once for this version")
            _prepare(java, classes, prepared)
    draft = Path(tempfile.mkdtemp(prefix="derby-", dir=folder.home))
    try:
        shutil.copytree(prepared, draft, dirs_exist_ok=True)
        draft.chmod(0o755)
        draft.rename(folder.derby)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _prepare(java: Path, classes: str, prepared: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="prepare-", dir=prepared.parent) as scratch:
        folder = Path(scratch)
        derby = folder / "derby"
        configuration = write_configuration(folder, folder.as_uri(), derby)
        command = [
            *(str(java), *_JVM, f"-Dderby.stream.error.file={folder / 'derby.log'}"),
            *("-cp", f"{configuration}{os.pathsep}{classes}", _MAIN, "prepare"),
        ]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=java_environment(),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise MetastoreError(
                "The metastore's database was not made within 300 s",
                hint="Check whether the machine is overloaded, and try again.",
            ) from error
        if done.returncode != 0:
            tail = (done.stdout + done.stderr).strip()[-2000:]
            raise MetastoreError(
                f"The metastore's database cannot be made:\n{tail}",
                hint="Check the last lines above: often space, memory or Java is missing.",
            )
        for leftover in derby.glob("*.lck"):
            leftover.unlink()
        derby.rename(prepared)


def _failure(folder: MetastoreFolder, what: str) -> MetastoreError:
    try:
        tail = folder.log.read_text(errors="replace").strip()[-1500:]
    except OSError:
        tail = ""
    hint = f"The whole log is {folder.log}"
    if "Another instance of Derby" in tail or "XSDB6" in tail:
        hint = "Another process holds this database; `icecomb metastore stop` ends a hanging one."
    elif "No space left" in tail:
        hint = f"Free space for {folder.home}."
    return MetastoreError(
        f"The metastore of {folder.text} {what}:\n{tail}",
        hint=hint,
        path=folder.text,
    )


def _end(pid: int, folder: MetastoreFolder) -> None:
    started = started_at(pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):  # another user's by now
            os.kill(pid, number)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            # one that another process started is a zombie until that one waits for it
            if not _alive(pid) or has_ended(pid, started):
                return
            time.sleep(0.05)
    raise MetastoreError(
        f"Process {pid}, the metastore of {folder.text}, does not end",
        hint=f"End it by hand: kill -9 {pid}",
        path=folder.text,
    )


def _alive(pid: int) -> bool:
    child = _CHILDREN.get((os.getpid(), pid))
    if child is not None and child.poll() is not None:
        return False
    return is_alive(pid)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        listed = subprocess.run(
            ["ps", "-ww", "-o", "command=", "-p", str(pid)],  # noqa: S607 - where /proc is missing
            capture_output=True,
            text=True,
            check=False,
            env=java_environment(),
        )
        return listed.stdout


def _answers(server: RunningMetastore) -> bool:
    """Return whether the server answers, which proves that it knows the token, too."""
    from icecomb.catalog.hive.thrift.client import HiveClient
    from icecomb.catalog.hive.thrift.settings import ConnectionSettings

    names = ("hive.metastore.client.socket.timeout", "hive.metastore.client.connect.timeout-s")
    timeout = dict.fromkeys(names, f"{ANSWER_TIMEOUT_S}s")
    try:
        settings = ConnectionSettings.of({**server.client_settings, **timeout})
        with HiveClient(server.uri, settings) as client:
            return client.server_name() == server.name
    except IcecombError:
        return False


_FOLDERS: Final = "icecomb.ObjectStoreFolders"
_LOG4J: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex{8}
# It warns about every table of every request that has no partition columns.
logger.datanucleus.name = DataNucleus
logger.datanucleus.level = error
# It warns about what any user of the machine can do to a connection.
logger.thrift.name = org.apache.thrift
logger.thrift.level = error
"""


def write_configuration(folder: Path, warehouse: str, derby: Path) -> Path:
    """Write ``folder/conf`` and return it, to be put first in a Java class path.

    Args:
        warehouse: The root of databases without a location of their own, with its scheme.
    """
    properties = {
        "hive.metastore.warehouse.dir": warehouse.replace("file:///", "file:/"),
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={derby};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        # Without a pool every pass of the lock reaper leaks a connection with an open transaction.
        "datanucleus.connectionPoolingType": "HikariCP",
        # A lock call needs two; ten concurrent callers exhausted the default of ten, for 30 s.
        "datanucleus.connectionPool.maxPoolSize": "40",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.async.log.enabled": "false",
        # Iceberg columns move and widen; the metastore's mirror of them must not prevent that.
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "hive.txn.timeout": "300s",
        "hive.timedout.txn.reaper.interval": "2s",
        # The default is ten attempts two seconds apart, during which a client only waits.
        "hive.hmshandler.retry.attempts": "2",
        "hive.hmshandler.retry.interval": "200ms",
        **{f"fs.{scheme}.impl": _FOLDERS for scheme in OBJECT_STORES},
    }
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    text = '<?xml version="1.0"?>\n<configuration>\n' + "\n".join(lines) + "\n</configuration>\n"
    (conf / "hive-site.xml").write_text(text)
    (conf / "log4j2.properties").write_text(_LOG4J)
    return conf
