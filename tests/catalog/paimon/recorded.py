"""What Paimon answered and did to its files, from `recorded.tar.xz`: the gate has no Paimon.

In `full` Paimon itself is asked. There, this writes the recording anew:

    RECORD_PAIMON=1 .venv/bin/python -m pytest tests/catalog/paimon -k "not hdfs and not iceberg_java and not rules"
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).with_name("recorded.tar.xz")
ANEW = "RECORD_PAIMON"
ASKED = "asked.json"


class Recorder:
    """Notes what a peer answers, and what that changes.

    Args:
        archive: The recording that it becomes a part of at the end.
        peer: Who is asked.
        warehouse: Where its tables are.
    """

    def __init__(self, archive: Path, peer: str, warehouse: Path) -> None:
        self._archive, self._peer, self._warehouse = archive, peer, warehouse
        self._asked: list[dict[str, Any]] = []
        self._contents: dict[str, bytes] = {}

    def ask(self, request: dict[str, Any], ask: Callable[[], Any], file: Path | None) -> Any:
        """Ask and note it; ``file`` is one that is a part of the answer."""
        folder = folder_of(self._warehouse, request)
        before = dict(_files(folder))
        answer = ask()
        after = dict(_files(folder))
        changed = {path: data for path, data in after.items() if before.get(path) != data}
        self._asked.append(
            {
                "peer": self._peer,
                "request": request,
                "answer": answer,
                "written": {path: self._keep(data) for path, data in changed.items()},
                "removed": sorted(before.keys() - after.keys()),
                "file": None if file is None else self._keep(file.read_bytes()),
            }
        )
        return answer

    def close(self) -> None:
        """Write what was noted over what is recorded of this peer."""
        asked, contents = self._asked, self._contents
        if self._archive.exists():
            old = _read(self._archive)
            kept = [one for one in json.loads(old[ASKED]) if one["peer"] != self._peer]
            contents |= {name: old[name] for one in kept for name in _contents_of(one)}
            asked = kept + asked
        # like stands beside like: so they are packed well
        ordered = {name: contents[name] for one in asked for name in _contents_of(one)}
        with tarfile.open(self._archive, "w:xz", preset=9) as new:
            for name, data in ((ASKED, json.dumps(asked).encode()), *ordered.items()):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))

    def _keep(self, data: bytes) -> str:
        assert str(self._warehouse).encode() not in data, "what is elsewhere cannot be replayed"
        name = hashlib.sha256(data).hexdigest()
        self._contents[name] = data
        return name


class Replay:
    """Answers as a peer did: of each table, the same requests in the same order.

    Args:
        archive: The recording.
        peer: Who was asked.
        warehouse: Where its tables appear.
    """

    def __init__(self, archive: Path, peer: str, warehouse: Path) -> None:
        self._contents, self._warehouse = _read(archive), warehouse
        self._ahead: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in json.loads(self._contents[ASKED]):
            if one["peer"] == peer:
                self._ahead[table_of(one["request"])].append(one)

    def ask(self, request: dict[str, Any], file: Path | None) -> Any:
        """Answer a request, and change the files as it did; ``file`` gets what is a part of the answer."""
        ahead = self._ahead[table_of(request)]
        request = json.loads(json.dumps(request))
        if not ahead or ahead[0]["request"] != request:
            raise LookupError(f"{request} is not what comes next: record it anew, see {__file__}")
        found, folder = ahead.pop(0), folder_of(self._warehouse, request)
        for path in found["removed"]:
            (folder / path).unlink()
        for path, name in found["written"].items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(self._contents[name])
        if file is not None:
            file.write_bytes(self._contents[found["file"]])
        return found["answer"]


def table_of(request: dict[str, Any]) -> str:
    """Return the table that a request is about."""
    return str(request["table"]).partition("$")[0]


def folder_of(warehouse: Path, request: dict[str, Any]) -> Path:
    """Return the folder of the table that a request is about."""
    return warehouse / "db.db" / table_of(request)


def is_live(ring: str) -> bool:
    """Return whether Paimon itself is asked."""
    return ring == "full"


def recorder(peer: str, warehouse: Path) -> Recorder | None:
    """Return what notes the answers of a peer, if they are to be recorded."""
    return Recorder(ARCHIVE, peer, warehouse) if os.environ.get(ANEW) else None


def _read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as found:
        return {one.name: found.extractfile(one).read() for one in found}  # type: ignore[union-attr]


def _contents_of(one: dict[str, Any]) -> Iterator[str]:
    yield from one["written"].values()
    if one["file"] is not None:
        yield one["file"]


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()
