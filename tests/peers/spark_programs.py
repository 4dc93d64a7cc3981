"""Spark's own programs as processes: what people start Spark with, and the servers behind it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from icecomb.catalog.java import compile_jar, find_java
from icecomb.spark.jar import spark_home
from tests.peers.spark_process import SHORT_LIVED

_APPLICATION = Path(__file__).with_name("SqlApplication.java")
SMALL = (
    *("--driver-memory", "512m", "--conf", "spark.ui.enabled=false"),
    *("--conf", "spark.sql.shuffle.partitions=1"),
    *("--conf", f"spark.driver.extraJavaOptions={SHORT_LIVED}"),
    *("--conf", f"spark.executor.extraJavaOptions={SHORT_LIVED}"),
)


def tools_without_python(folder: Path) -> str:
    """A ``PATH`` that has what shells and Java need, and no Python."""
    folder.mkdir()
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for tool in Path(directory).iterdir():
            if not tool.name.startswith("python") and not (folder / tool.name).is_symlink():
                (folder / tool.name).symlink_to(tool)
    if not (folder / "java").is_symlink():
        (folder / "java").symlink_to(find_java())
    return str(folder)


def environment(**more: str) -> dict[str, str]:
    """Spark is that of our environment, wherever a program is started."""
    return {**os.environ, "SPARK_HOME": str(spark_home().path), **more}


def run(
    program: str,
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    given: str | None = None,
) -> str:
    """What ``bin/<program>`` prints; it must end well.

    Args:
        program: As ``spark-submit``.
        arguments: Of the program.
        cwd: Where it is started.
        env: Its environment; `environment` by default.
        given: What is typed.
    """
    done = subprocess.run(
        [str(spark_home().path / "bin" / program), *arguments],
        cwd=cwd,
        env=env or environment(),
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    said = (line for line in done.stderr.splitlines() if " INFO " not in line)
    told = "\n".join(line for line in said if not line.startswith("\tat "))
    assert done.returncode == 0, done.stdout[-2000:] + told[-6000:]
    return done.stdout


def application() -> Path:
    """The jar of `SqlApplication`."""
    classes = f"{spark_home().jars}{os.sep}*"
    version = spark_home().version
    return compile_jar([_APPLICATION], classes, name="sql-application", key=f"tests-{version}")


@contextmanager
def serving(
    command: Sequence[str], port: int, log: Path, env: Mapping[str, str], cwd: Path
) -> Iterator[None]:
    """A server, once somebody listens at its port; ended afterwards."""
    with (
        log.open("w") as out,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=cwd
        ) as process,
    ):
        try:
            _wait_for(port, process, log)
            yield
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens at {port}:\n{log.read_text()[-4000:]}")
