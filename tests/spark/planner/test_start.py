"""How Spark's driver starts the planner, and connects to nobody else."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import icecomb.spark
from icecomb.catalog.java import find_java, find_javac
from icecomb.catalog.metastore.server_jar import pyspark_jars
from icecomb.spark.jar import bridge_jar
from icecomb.spark.planner.protocol.message import PROTOCOL
from icecomb.spark.planner.transport import NONCE, proof
from tests.rings import sampled


def test_a_module_in_the_working_directory_is_not_run(tmp_path: Path) -> None:
    """As Python 3.10 does, which knows no PYTHONSAFEPATH."""
    (package,) = icecomb.spark.__path__
    source = Path(package, "bridge/java/org/icecomb/spark/planner/PlannerProcess.java").read_text()
    stated = re.search(r"String START =(.*?);\n\n", source, re.DOTALL)
    assert stated is not None
    code = "".join(re.findall(r'"(.*?)"', stated[1]))
    (tmp_path / "json.py").write_text("open('pwned', 'w').close()")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "not by hand" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "pwned").exists()


@pytest.fixture(scope="module")
def starting(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that has the bridge start a planner, up to the interpreter."""
    folder = tmp_path_factory.mktemp("greeted")
    path = os.pathsep.join([str(folder), str(bridge_jar()), f"{pyspark_jars()}/*"])
    source = Path(__file__).with_name("Greeted.java")
    subprocess.run([find_javac(), "-d", folder, "-cp", path, source], check=True)
    patience = "-Dicecomb.planner.patience.ms=1000"
    return [str(find_java()), patience, "-cp", path, "org.icecomb.spark.planner.Greeted"]


@pytest.mark.jvm
def test_an_empty_entry_of_pythonpath_is_not_the_working_directory(
    starting: list[str], tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("open('pwned', 'w').close()")
    environment = {**os.environ, "PYTHONPATH": ":/nowhere:./:"}
    starting = [starting[0], *starting[2:], sys.executable]
    done = subprocess.run(
        starting, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "greeted\n", done.stderr
    assert not (tmp_path / "pwned").exists()


def _echoed(nonce: str) -> str:
    return nonce + proof("", "planner", nonce, nonce)


@pytest.mark.jvm
@pytest.mark.parametrize(
    "answer",
    sampled(
        [
            pytest.param(_echoed, id="a proof by another token"),
            pytest.param(lambda _: f'{{"protocol":{PROTOCOL}}}', id="a greeting"),
            pytest.param(lambda nonce: nonce * 100_000, id="a long line"),
        ],
        keep=1,
    ),
)
def test_who_does_not_prove_to_be_the_planner_is_sent_a_nonce_and_nothing_else(
    starting: list[str], tmp_path: Path, answer: Callable[[str], str]
) -> None:
    received: list[bytes] = []

    def listen(listener: socket.socket) -> None:
        while listener.fileno() >= 0:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                line = connection.recv(NONCE + 1)
                try:
                    connection.sendall(f"{answer(line.decode().strip())}\n".encode())
                    received.append(line + connection.recv(1000))
                except OSError:
                    received.append(line)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=listen, args=(listener,), daemon=True).start()
        python = tmp_path / "python"
        said = f'{{"port":{listener.getsockname()[1]},"protocol":{PROTOCOL}}}'
        python.write_text(f"#!/bin/sh\necho '{said}'\nread line\n")
        python.chmod(0o700)
        done = subprocess.run(
            [*starting, python], capture_output=True, text=True, check=True, timeout=120
        )
        listener.shutdown(socket.SHUT_RDWR)
    expected = "a line is too long" if "long" in done.stdout else "another process answers"
    assert done.stdout.startswith(expected)
    assert received
    assert {len(each) for each in received} == {NONCE + 1}
