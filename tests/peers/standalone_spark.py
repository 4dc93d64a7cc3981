"""Spark's own cluster: a master and workers, in which drivers and executors are started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.peers import spark_programs
from tests.peers.ports import free_ports

_DEPLOY = "org.apache.spark.deploy"


class StandaloneSpark(ExitStack):
    """Gives the master's address while it is open.

    Args:
        folder: For logs, and what executors leave.
        env: The environment of all of it; `SPARK_HOME` says whose programs are started.
        hosts: The name of this machine for each worker: Spark runs the twin of a slow task on
            another host only.
        cores: Of each worker.
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        hosts: Sequence[str] = ("127.0.0.1",),
        cores: int = 2,
    ) -> None:
        super().__init__()
        self._folder, self._env = folder, {**env, "SPARK_DAEMON_MEMORY": "160m"}
        self._hosts, self._cores = hosts, cores

    def __enter__(self) -> str:  # type: ignore[override]
        super().__enter__()
        port, web, *others = free_ports(2 + 2 * len(self._hosts))
        address = f"spark://127.0.0.1:{port}"
        place = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)]
        try:
            self._start("master", "master.Master", port, *place)
            for number, host in enumerate(self._hosts):
                at, worker_web = others[2 * number : 2 * number + 2]
                self._start(
                    f"worker-{number}",
                    "worker.Worker",
                    at,
                    *("--host", host, "--port", str(at), "--webui-port", str(worker_web)),
                    *("--cores", str(self._cores), "--memory", "2g"),
                    *("--work-dir", str(self._folder / f"work-{number}"), address),
                )
        except BaseException:
            self.close()
            raise
        return address

    def _start(self, name: str, main: str, port: int, *arguments: str) -> None:
        java = str(Path(self._env["SPARK_HOME"]) / "bin" / "spark-class")
        log = self._folder / f"{name}.log"
        command = [java, f"{_DEPLOY}.{main}", *arguments]
        self.enter_context(spark_programs.serving(command, port, log, self._env, self._folder))
