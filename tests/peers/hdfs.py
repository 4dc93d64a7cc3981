"""A real HDFS on 127.0.0.1: name nodes and a data node with WebHDFS, as processes of this test run.

The daemons' classes are in one jar (`hadoop-client-minicluster`); the rest of Hadoop is what pyspark carries.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import requests

from icecomb.catalog.java import find_java
from icecomb.format.storage.hdfs.spnego import SpnegoAuth
from icecomb.format.storage.site_file import read_site_files
from tests.peers.ivy import fetch, pyspark_jars
from tests.peers.ports import free_ports

if TYPE_CHECKING:
    from tests.peers.kdc import Kdc

SUPERUSER = "hdfs"
_STACK = Path(__file__).resolve().parents[2] / "docker" / "conf" / "hadoop"
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx128m"]
_LOG4J = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


def write_site(path: Path, properties: Mapping[str, object]) -> None:
    """A Hadoop `*-site.xml`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(
        f"<property><name>{escape(key)}</name><value>{escape(str(value))}</value></property>\n"
        for key, value in properties.items()
    )
    path.write_text(f"<configuration>\n{rows}</configuration>\n")


class Hdfs:
    """One cluster: `.uri` for metadata and Spark, `.conf` for clients (`HADOOP_CONF_DIR`).

    Args:
        folder: Where it keeps its data and logs.
        ha: Two name nodes over a shared edits folder, nameservice `ns1`, `nn1` active. What all of them are told is
            what `docker/conf/hadoop` says, but for addresses and folders.
        settings: Further settings of all daemons.
        kdc: Kerberos for everybody; it has the principals `hdfs/localhost` and `HTTP/localhost`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        ha: bool = False,
        settings: Mapping[str, object] | None = None,
        kdc: Kdc | None = None,
    ) -> None:
        self.host = "localhost" if kdc else "127.0.0.1"
        self.kdc = kdc
        self.folder = folder
        self.names = ("nn1", "nn2") if ha else ("nn1",)
        self.ha = ha
        ports = free_ports(3 + 2 * len(self.names))
        self.data_ports = ports[:3]
        self.rpc = dict(zip(self.names, ports[3::2], strict=True))
        self.http = dict(zip(self.names, ports[4::2], strict=True))
        self.uri = "hdfs://ns1" if ha else f"hdfs://{self.host}:{self.rpc['nn1']}"
        self.conf = folder / "conf-client"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._settings = dict(settings or {})
        self._jars = _jars()

    @property
    def client_settings(self) -> dict[str, str]:
        """What a client has to know, as `core-site.xml` and `hdfs-site.xml` say it."""
        shared = {
            "fs.defaultFS": self.uri,
            "dfs.replication": "1",
            "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
        }
        if not self.ha:
            return {
                **shared,
                "dfs.namenode.rpc-address": f"{self.host}:{self.rpc['nn1']}",
                "dfs.namenode.http-address": f"{self.host}:{self.http['nn1']}",
            }
        provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        shared |= {
            "dfs.nameservices": "ns1",
            "dfs.ha.namenodes.ns1": ",".join(self.names),
            "dfs.client.failover.proxy.provider.ns1": provider,
        }
        for name in self.names:
            shared[f"dfs.namenode.rpc-address.ns1.{name}"] = f"127.0.0.1:{self.rpc[name]}"
            shared[f"dfs.namenode.http-address.ns1.{name}"] = f"127.0.0.1:{self.http[name]}"
        return shared

    def start(self) -> Hdfs:
        """Formats the name nodes, starts everything, waits until files can be written."""
        for name in (*self.names, "dn"):
            self._configure(name)
        write_site(self.conf / "core-site.xml", {"fs.defaultFS": self.uri})
        write_site(self.conf / "hdfs-site.xml", self.client_settings)
        for name in ("shared", "tmp"):
            (self.folder / name).mkdir(exist_ok=True)
        self._run("nn1", "hdfs.server.namenode.NameNode", "-format", "-nonInteractive", "-force")
        if self.ha:
            shutil.copytree(self.folder / "nn1", self.folder / "nn2")
        try:
            for name in self.names:
                self.launch(name)
            self.launch("dn")
            for name in self.names:
                self._wait(f"{name} answers", lambda name=name: self.state(name))
            if self.ha:
                self.admin("-transitionToActive", "nn1")
            for name in self.names:
                self._wait(f"a live data node at {name}", lambda name=name: self._live(name))
            self._wait("a file that can be written", self._write)
            for path in ("tmp", "user", "warehouse"):
                self.request("PUT", f"/{path}?op=MKDIRS&permission=1777")
        except BaseException:
            self.stop()
            raise
        return self

    def launch(self, name: str) -> None:
        """Starts one daemon (`nn1`, `nn2`, `dn`), also again after `kill`."""
        main = "hdfs.server.datanode.DataNode" if name == "dn" else "hdfs.server.namenode.NameNode"
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self._java(name, main),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(),
            )

    def kill(self, name: str) -> None:
        """Ends one daemon without a farewell."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Ends all of them."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        self.processes.clear()

    def admin(self, *arguments: str) -> str:
        """`hdfs haadmin ...` on the nameservice."""
        return self._run("dn", "hdfs.tools.DFSHAAdmin", "-ns", "ns1", *arguments)

    def dfsadmin(self, *arguments: str) -> str:
        """`hdfs dfsadmin ...`."""
        return self._run("dn", "hdfs.tools.DFSAdmin", *arguments)

    def shell(self, *arguments: str, user: str = SUPERUSER) -> str:
        """`hdfs dfs ...` by Hadoop's own client, as `user`."""
        return self._run("dn", "fs.FsShell", *arguments, user=user)

    def state(self, name: str) -> str:
        """`active` or `standby`."""
        return str(self._bean(name, "NameNodeStatus")["State"])

    def active(self) -> str:
        """The active name node's name."""
        return next(
            name for name in self.names if name in self.processes and self.state(name) == "active"
        )

    def request(self, method: str, path_and_query: str, user: str = SUPERUSER) -> bytes:
        """One WebHDFS call at the active name node, as `user`, or as the superuser with Kerberos."""
        joint = "&" if "?" in path_and_query else "?"
        url = f"http://{self.host}:{self.http[self.active()]}/webhdfs/v1{path_and_query}"
        if self.kdc is None:
            url += f"{joint}user.name={user}"
        with requests.request(method, url, auth=self._key, timeout=120) as reply:
            reply.raise_for_status()
            return bytes(reply.content)

    def _bean(self, name: str, bean: str) -> dict[str, Any]:
        url = f"http://{self.host}:{self.http[name]}/jmx?qry=Hadoop:service=NameNode,name={bean}"
        with requests.get(url, auth=self._key, timeout=30) as reply:
            found: dict[str, Any] = reply.json()["beans"][0]
        return found

    def _live(self, name: str) -> bool:
        state = self._bean(name, "FSNamesystemState")
        return bool(state["NumLiveDataNodes"] == 1 and state["FSState"] == "Operational")

    def _write(self) -> bool:
        """Whether a file can be written.

        A data node is live before the name node knows its disks, or it the keys of block tokens.
        """
        path = "/.ready"
        if self.kdc is None:
            place = f"{path}?op=CREATE&overwrite=true&user.name={SUPERUSER}"
        else:
            place = f"{path}?op=CREATE&overwrite=true"
        url = f"http://{self.host}:{self.http['nn1']}/webhdfs/v1{place}"
        with requests.put(url, data=b"1", auth=self._key, timeout=30) as reply:
            written = reply.status_code == 201
        gone = url.replace("op=CREATE&overwrite=true", "op=DELETE")
        requests.delete(gone, auth=self._key, timeout=30).raise_for_status()
        return written

    @property
    def _key(self) -> SpnegoAuth | None:
        return self.kdc and SpnegoAuth("hdfs/localhost", str(self.kdc.keytab("hdfs")))

    def _wait(self, what: str, ready: Callable[[], object], timeout: float = 180) -> None:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    log = (self.folder / f"{name}.log").read_text(errors="replace")
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{log[-3000:]}")
            try:
                if ready():
                    return
            except (OSError, ValueError, LookupError):
                pass
            time.sleep(0.1)
        raise RuntimeError(f"not after {timeout} s: {what}")

    def _configure(self, name: str) -> None:
        conf = self.folder / f"conf-{name}"
        data, web, ipc = self.data_ports
        own: dict[str, object] = {
            **(_stack("hdfs-site.xml") if self.ha else {}),
            **self.client_settings,
            "dfs.namenode.safemode.extension": 0,
            "dfs.heartbeat.interval": 1,
            "dfs.datanode.data.dir": (self.folder / "dn").as_uri(),
            "dfs.datanode.hostname": self.host,
            "dfs.datanode.address": f"127.0.0.1:{data}",
            "dfs.datanode.http.address": f"127.0.0.1:{web}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
            **self._settings,
        }
        if name != "dn":
            own["dfs.namenode.name.dir"] = (self.folder / name).as_uri()
        if self.ha:
            own |= {
                "dfs.namenode.shared.edits.dir": (self.folder / "shared").as_uri(),
                "dfs.ha.automatic-failover.enabled": "false",
                "dfs.ha.tail-edits.period": "1s",
            }
            if name != "dn":
                own["dfs.ha.namenode.id"] = name
        write_site(conf / "hdfs-site.xml", own | self._secured())
        write_site(
            conf / "core-site.xml",
            {
                **(_stack("core-site.xml") if self.ha else {}),
                "fs.defaultFS": self.uri,
                "hadoop.tmp.dir": self.folder / "tmp",
                "hadoop.http.staticuser.user": "nobody",
                **self._secured_web(),
                "fs.trash.interval": 60,
                f"hadoop.proxyuser.{SUPERUSER}.hosts": "*",
                f"hadoop.proxyuser.{SUPERUSER}.groups": "*",
            },
        )
        (conf / "log4j2.properties").write_text(_LOG4J)

    def _secured(self) -> dict[str, object]:
        if self.kdc is None:
            return {}
        found: dict[str, object] = {
            "dfs.block.access.token.enable": "true",
            "ignore.secure.ports.for.testing": "true",
            "dfs.web.authentication.kerberos.principal": "HTTP/localhost@TEST.LAB",
            "dfs.web.authentication.kerberos.keytab": self.kdc.keytab("HTTP"),
        }
        for daemon in ("namenode", "datanode"):
            found[f"dfs.{daemon}.kerberos.principal"] = "hdfs/localhost@TEST.LAB"
            found[f"dfs.{daemon}.keytab.file"] = self.kdc.keytab("hdfs")
        return found

    def _secured_web(self) -> dict[str, object]:
        if self.kdc is None:
            return {}
        return {
            "hadoop.security.authentication": "kerberos",
            "hadoop.http.filter.initializers": "org.apache.hadoop.hdfs.web.AuthFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": "HTTP/localhost@TEST.LAB",
            "hadoop.http.authentication.kerberos.keytab": self.kdc.keytab("HTTP"),
        }

    def _java(self, name: str, main: str, *arguments: str) -> list[str]:
        path = f"{self.folder}/conf-{name}:{self._jars}"
        options = [*_JVM, f"-Djava.io.tmpdir={self.folder / 'tmp'}"]
        if self.kdc:
            options.append(f"-Djava.security.krb5.conf={self.kdc.configuration}")
        return [str(find_java()), *options, "-cp", path, f"org.apache.hadoop.{main}", *arguments]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "HADOOP_USER_NAME": SUPERUSER}

    def _run(self, name: str, main: str, *arguments: str, user: str = SUPERUSER) -> str:
        done = subprocess.run(
            self._java(name, main, *arguments),
            check=False,
            capture_output=True,
            text=True,
            env={**self._environment(), "HADOOP_USER_NAME": user},
        )
        if done.returncode:
            raise RuntimeError(
                f"{main} {arguments} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.stdout


def _stack(name: str) -> dict[str, object]:
    return {key: found.value for key, found in read_site_files([_STACK / name]).items()}


def _jars() -> str:
    (api,) = pyspark_jars().glob("hadoop-client-api-*.jar")
    version = api.stem.removeprefix("hadoop-client-api-")
    daemons = fetch(f"org.apache.hadoop:hadoop-client-minicluster:{version}")
    shared = ("hadoop-client-*", "slf4j-api-*", "log4j-*", "jcl-over-slf4j-*", "zstd-jni-*")
    jars = [
        daemons,
        *(jar for each in shared for jar in sorted(pyspark_jars().glob(f"{each}.jar"))),
    ]
    return ":".join(map(str, jars))
