"""A name node and its data node in memory: as much of WebHDFS as files need, and one state to look at."""

from __future__ import annotations

import itertools
import json
import posixpath
import socket
import threading
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

_PREFIX = "/webhdfs/v1"


@dataclass
class Stored:
    """A file; its id stays when it gets another name.

    `asked` is what its creation asked for, and then its last rename.
    """

    file_id: int
    data: bytes
    asked: dict[str, str] = field(default_factory=dict)


class RefusedError(Exception):
    """An exception of Hadoop's, as WebHDFS says it."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(name)
        self.status = status
        self.body = {"RemoteException": {"exception": name, "message": message}}


class MemoryHdfs:
    """Answers at `.address`.

    `.files` is what there is, by path, `.folders` the ids of the folders that were made, `.modes` what their creation
    asked for. `.before` maps an operation, as `RENAME` or (at the data node) `OPEN@data`, to what happens right
    before it is done the next time. `.cuts_after` is how many bytes of the next file arrive before the
    connection ends (they are kept, as a data node does), `.loses` how many are lost without a word, `.taken`
    how many data nodes say that the file exists. `.pause_s` is
    taken before each byte of an answer. `.state` is `active`, `standby` or `observer`: the last two answer what only
    looks from `.files` as they are here, and `.hides` says whether `/jmx` is kept
    from us, `.retries` whether they send to the active one instead. `.calls` are all operations.
    `.data_nodes` are the HTTP addresses of the data nodes by that of their transfers, which is what `excludedatanodes`
    is compared with: the first one that is not excluded is redirected to. `.zones` are encryption zones, None those
    of a name node of Hadoop 2.7, which says nothing of the trash. `.safe_mode` is whether it changes nothing,
    `.is_http_fs` whether HttpFS answers, which sends and takes files itself, `.gateway` where one sends that hides names. `.snapshots` are the folders that have
    snapshots, with their owners, `.keeps` says of a path whether it cannot be deleted either.
    """

    def __init__(self) -> None:
        self.files: dict[str, Stored] = {}
        self.folders: dict[str, int] = {}
        self.modes: dict[str, tuple[str, str]] = {}
        self.before: dict[str, Callable[[], None]] = {}
        self.zones: list[str] | None = []
        self.snapshots: dict[str, str] = {}
        self.keeps: Callable[[str], bool] | None = None
        self.safe_mode = False
        self.is_http_fs = False
        self.gateway = ""
        self.cuts_after: int | None = None
        self.loses = 0
        self.taken = 0
        self.pause_s = 0.0
        self.state = "active"
        self.hides = False
        self.retries = False
        self.calls: list[str] = []
        self._ids = itertools.count(16_386)
        self._lock = threading.Lock()
        memory = self

        class Handler(_Handler):
            server_side = memory

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.data_nodes = {"127.0.0.1:9866": self.address}
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Answers no more."""
        self._server.shutdown()
        self._server.server_close()

    def clear(self) -> None:
        """Forget everything."""
        self.files.clear()
        self.folders.clear()
        self.modes.clear()
        self.before.clear()
        self.calls.clear()
        self.zones = []
        self.snapshots.clear()
        self.keeps = None
        self.safe_mode = self.is_http_fs = False
        self.gateway = ""
        self.data_nodes = {"127.0.0.1:9866": self.address}
        self.pause_s = 0.0

    def metrics(self, handler: _Handler) -> None:
        """What it says of itself."""
        bean = {"name": "Hadoop:service=NameNode,name=NameNodeStatus", "State": self.state}
        if "NameNodeInfo" in handler.path:
            nodes = {
                transfer: {"infoAddr": web, "infoSecureAddr": "127.0.0.1:0", "xferaddr": transfer}
                for transfer, web in self.data_nodes.items()
            }
            bean = {"LiveNodes": json.dumps(nodes)}
        handler.reply(*((404, {}) if self.hides else (200, {"beans": [bean]})))

    def put(self, path: str, data: bytes) -> None:
        """Make a file, and the folders above it."""
        self._mkdirs(posixpath.dirname(path), {})
        self.files[path] = Stored(next(self._ids), data)

    def answer(self, operation: str, path: str, asked: dict[str, str], handler: _Handler) -> None:
        """Do one operation."""
        if "namenoderpcaddress" in asked:
            self._transfer(operation, path, asked, handler)
            return
        self.before.pop(operation, lambda: None)()
        self.calls.append(operation)
        changes = operation in {"CREATE", "RENAME", "DELETE", "MKDIRS"}
        if self.safe_mode and changes:
            raise RefusedError(403, "SafeModeException", f"Cannot {operation}: in safe mode")
        if self.state != "active":
            if changes:
                raise RefusedError(403, "StandbyException", "Operation category WRITE")
            if self.retries:
                raise RefusedError(403, "ObserverRetryOnActiveException", "Zero blocklocations")
        with self._lock:
            if operation in {"CREATE", "OPEN"}:
                self._check(operation, path)
                if self.is_http_fs:
                    if operation == "OPEN":
                        handler.reply(200, self._found(path).data)
                    else:
                        handler.redirect(f"http://{self.address}{handler.path}&data=true")
                    return
                if self.gateway:
                    handler.redirect(self.gateway)
                    return
                excluded = asked.get("excludedatanodes", "").split(",")
                left = [web for name, web in self.data_nodes.items() if name not in excluded]
                if not left:
                    raise RefusedError(403, "IOException", "No active nodes contain this block")
                # as Java's URI.toASCIIString, which composes letters
                place = quote(unicodedata.normalize("NFC", f"{_PREFIX}{path}"))
                query = urlsplit(handler.path).query
                handler.redirect(f"http://{left[0]}{place}?{query}&namenoderpcaddress=nn")
            else:
                handler.reply(200, getattr(self, f"_{operation.lower()}")(path, asked))

    def _transfer(
        self, operation: str, path: str, asked: dict[str, str], handler: _Handler
    ) -> None:
        self.before.pop(f"{operation}@data", lambda: None)()
        self._check(operation, path)
        if operation == "CREATE" and self.taken:
            self.taken -= 1
            raise RefusedError(403, "FileAlreadyExistsException", f"{path} already exists")
        if operation == "OPEN":
            start, length = int(asked.get("offset", 0)), int(asked.get("length", 1 << 40))
            handler.reply(200, self._found(path).data[start : start + length])
            return
        cut, self.cuts_after = self.cuts_after, None
        data, whole = handler.body(cut)
        self.put(path, data[: len(data) - self.loses])
        self.files[path].asked = asked
        self.loses = 0
        if whole:
            handler.reply(201)

    def _check(self, operation: str, path: str) -> None:
        if operation == "OPEN":
            self._found(path)
        elif path in self.files:
            raise RefusedError(403, "FileAlreadyExistsException", f"{path} already exists")

    def _found(self, path: str) -> Stored:
        if path not in self.files:
            raise RefusedError(404, "FileNotFoundException", f"File does not exist: {path}")
        return self.files[path]

    def _status(self, path: str, name: str) -> dict[str, Any]:
        known: dict[str, Any] = {"pathSuffix": name, "modificationTime": 0, "owner": "alice"}
        if path in self.folders:
            return {**known, "type": "DIRECTORY", "length": 0, "fileId": self.folders[path]}
        file = self._found(path)
        return {**known, "type": "FILE", "length": len(file.data), "fileId": file.file_id}

    def _getfilestatus(self, path: str, _: Any) -> Any:
        return {"FileStatus": self._status(path, "")}

    def _getsnapshottabledirectorylist(self, _: str, asked: dict[str, str]) -> Any:
        own = [path for path, owner in self.snapshots.items() if owner == asked["user.name"]]
        found = [
            {
                "dirStatus": {"pathSuffix": posixpath.basename(path)},
                "parentFullPath": posixpath.dirname(path),
                "snapshotNumber": 1,
            }
            for path in own
        ]
        return {"SnapshottableDirectoryList": found}

    def _liststatus(self, path: str, _: Any) -> Any:
        folder, snapshots, _ = path.partition("/.snapshot")
        if snapshots:
            if folder not in self.snapshots:
                raise RefusedError(403, "SnapshotException", "not a snapshottable directory")
            return {"FileStatuses": {"FileStatus": [{**self._status(folder, "s1")}]}}
        if path not in self.folders:
            return {"FileStatuses": {"FileStatus": [self._status(path, "")]}}
        inside = self._inside(path)
        found = [self._status(each, posixpath.basename(each)) for each in sorted(inside)]
        return {"FileStatuses": {"FileStatus": found}}

    def _inside(self, path: str) -> list[str]:
        both = {*self.files, *self.folders}
        return [each for each in both if each != path and posixpath.dirname(each) == path]

    def _zone(self, path: str) -> str:
        return next((zone for zone in self.zones or () if path.startswith(f"{zone}/")), "")

    def _gettrashroot(self, path: str, asked: dict[str, str]) -> Any:
        if self.zones is None:
            said = 'Invalid value for webhdfs parameter "op": No enum constant GETTRASHROOT'
            raise RefusedError(400, "IllegalArgumentException", said)
        zone, user = self._zone(path), asked["user.name"]
        return {"Path": f"{zone}/.Trash/{user}" if zone else f"/user/{user}/.Trash"}

    def _rename(self, path: str, asked: dict[str, str]) -> None:
        target = asked["destination"]
        if self._zone(path) != self._zone(target):
            raise RefusedError(
                403, "IOException", f"{path} can't be moved from an encryption zone."
            )
        there: dict[str, Any] = self.folders if path in self.folders else self.files
        if there is self.files:
            self._found(path)
        taken = target in self.folders or target in self.files
        if taken and (target in self.folders or asked["renameoptions"] == "NONE"):
            raise RefusedError(403, "FileAlreadyExistsException", f"{target} already exists")
        there[target] = there.pop(path)
        if there is self.files:
            self.files[target].asked.update(asked)
        if path in self.modes:
            self.modes[target] = self.modes.pop(path)

    def _delete(self, path: str, asked: dict[str, str]) -> Any:
        if path in self.snapshots or (self.keeps is not None and self.keeps(path)):
            raise RefusedError(403, "SnapshotException", f"{path} already has snapshots")
        if asked.get("recursive") != "true" and self._inside(path):
            raise RefusedError(403, "PathIsNotEmptyDirectoryException", f"{path} is not empty")
        file, folder = self.files.pop(path, None), self.folders.pop(path, None)
        return {"boolean": file is not None or folder is not None}

    def _mkdirs(self, path: str, asked: dict[str, str]) -> Any:
        if path not in self.folders:
            if (above := posixpath.dirname(path)) != path:
                self._mkdirs(above, asked)
            self.folders[path] = next(self._ids)
            if "permission" in asked:
                self.modes[path] = (asked["permission"], asked.get("unmaskedpermission", ""))
        return {"boolean": True}

    def _checkaccess(self, path: str, _: Any) -> None:
        self._status(path, "")


class _Server(ThreadingHTTPServer):
    request_queue_size = 64


class _Handler(BaseHTTPRequestHandler):
    server_side: MemoryHdfs
    timeout = 60

    def _answer(self) -> None:
        place = urlsplit(self.path)
        if place.path == "/jmx":
            self.server_side.metrics(self)
            return
        asked = dict(parse_qsl(place.query))
        path = unquote(place.path.removeprefix(_PREFIX))
        with suppress(OSError):
            try:
                self.server_side.answer(asked["op"], path, asked, self)
            except RefusedError as refused:
                self.reply(refused.status, refused.body)

    do_GET = do_PUT = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass

    def body(self, most: int | None) -> tuple[bytes, bool]:
        """What arrives of a file, and whether that is all; of a cut one so much at most."""
        data = bytearray()
        while line := self.rfile.readline():
            size = int(line, 16)
            data += self.rfile.read(size)
            if most is not None and len(data) >= most:
                self.connection.shutdown(socket.SHUT_RDWR)
                return bytes(data[:most]), False
            self.rfile.readline()
            if not size:
                return bytes(data), True
        return bytes(data), False

    def redirect(self, location: str) -> None:
        """Send to the data node."""
        self.send_response(307)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def reply(self, status: int, found: Any = b"") -> None:
        """Say how it went, with bytes or an object."""
        body = found if isinstance(found, bytes) else b"" if found is None else _json(found)
        self.send_response(status)
        kind = "octet-stream" if found is None or isinstance(found, bytes) else "json"
        self.send_header("Content-Type", f"application/{kind}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        is_slow = self.server_side.pause_s and not self.path.startswith("/jmx")
        for at in range(len(body)) if is_slow else ():
            threading.Event().wait(self.server_side.pause_s)
            self.wfile.write(body[at : at + 1])
        if not is_slow:
            self.wfile.write(body)


def _json(found: Any) -> bytes:
    return json.dumps(found).encode()
