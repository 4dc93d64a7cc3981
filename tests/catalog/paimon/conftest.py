from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

from icecomb.catalog.paimon.source import PaimonSource
from icecomb.format.storage.file_io import FileIO
from tests.catalog.paimon.recorded import ARCHIVE, Replay, is_live, recorder
from tests.environments import PYPAIMON_VENV, ROOT, made
from tests.peers.paimon_java import PaimonJava

UNRECORDED = ("outside",)
"""Tables with files elsewhere."""


class PyPaimon:
    """PyPaimon on a warehouse folder of its own, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._exchange = str(folder / "rows.arrow")
        script = str(ROOT / "tests" / "peers" / "paimon.py")
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            [str(made(PYPAIMON_VENV) / "bin" / "python"), script, str(folder / "warehouse")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
        )

    def location(self, table):
        return str(self.folder / "warehouse" / "db.db" / table)

    def source(self, table):
        return PaimonSource(table, FileIO(), self.location(table))

    def make(self, table, *parts, partition=None, primary=None, options=None):
        """A table of these pieces, each a commit of its own."""
        self._put(parts[0].schema.empty_table())
        self._ask(
            do="create",
            table=table,
            file=self._exchange,
            partition=partition,
            primary=primary,
            options=options or {},
        )
        for part in parts:
            self.write(table, part)
        return self.source(table)

    def write(self, table, rows, *, overwrite=False):
        if rows.num_rows:
            self._put(rows)
            self._ask(do="write", table=table, file=self._exchange, overwrite=overwrite)

    def read(self, table) -> pa.Table:
        self._ask(do="read", table=table, file=self._exchange)
        return feather.read_table(self._exchange, memory_map=False)

    def schema(self, table):
        return self._ask(do="schema", table=table)

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def _put(self, rows):
        feather.write_feather(rows, self._exchange, compression="uncompressed")

    def _told(self, request):
        """A request, where its rows say what they are."""
        if "file" not in request:
            return request
        said = {**request, "file": None}
        if request["do"] in {"create", "write"}:
            rows = feather.read_table(self._exchange, memory_map=False)
            said["file"] = f"{rows.schema.remove_metadata()} {rows.to_pylist()}"
        return said

    def _ask(self, **request):
        self._process.stdin.write(json.dumps(request) + "\n")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"PyPaimon ended: {(self.folder / 'log').read_text()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["ok"]


class RecordingPyPaimon(PyPaimon):
    """The same, and what it does is recorded where that is asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._recorder = recorder("PyPaimon", folder / "warehouse")

    def close(self):
        super().close()
        if self._recorder:
            self._recorder.close()

    def _ask(self, **request):
        if self._recorder is None:
            return super()._ask(**request)
        file = Path(self._exchange) if request["do"] == "read" else None
        return self._recorder.ask(
            self._told(request), lambda: super(RecordingPyPaimon, self)._ask(**request), file
        )


class ReplayedPyPaimon(PyPaimon):
    """What it did once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._exchange = str(folder / "rows.arrow")
        self._replay = Replay(ARCHIVE, "PyPaimon", folder / "warehouse")

    def close(self):
        pass

    def _ask(self, **request):
        file = Path(self._exchange) if request["do"] == "read" else None
        return self._replay.ask(self._told(request), file)


class RecordingPaimonJava(PaimonJava):
    """The same as its parent, and what it does is recorded where that is asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._recorder = recorder("Paimon Java", folder / "warehouse")

    def close(self) -> None:
        super().close()
        if self._recorder:
            self._recorder.close()

    def ask(self, **request):
        if self._recorder is None or "table" not in request or request["table"] in UNRECORDED:
            return super().ask(**request)
        return self._recorder.ask(
            request, lambda: super(RecordingPaimonJava, self).ask(**request), None
        )


class ReplayedPaimonJava(PaimonJava):
    """What it did once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._replay = Replay(ARCHIVE, "Paimon Java", folder / "warehouse")

    def close(self) -> None:
        pass

    def ask(self, **request):
        return self._replay.ask(request, None)


@pytest.fixture(scope="session")
def pypaimon(request, tmp_path_factory):
    live = is_live(request.config.getoption("--ring"))
    peer = (RecordingPyPaimon if live else ReplayedPyPaimon)(tmp_path_factory.mktemp("pypaimon"))
    yield peer
    peer.close()


@pytest.fixture(scope="session")
def paimon_java(request, tmp_path_factory):
    live = is_live(request.config.getoption("--ring"))
    kind = RecordingPaimonJava if live else ReplayedPaimonJava
    peer = kind(tmp_path_factory.mktemp("paimon-java"))
    yield peer
    peer.close()
