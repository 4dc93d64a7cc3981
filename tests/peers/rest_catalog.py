"""A REST catalog of one table in a folder: what DuckDB needs to write Iceberg (its writes go through such catalogs only)."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class RestCatalog:
    """Answers by the metadata files of a folder table, and writes the next one for each commit.

    Args:
        folder: The folder of the table ``db.t``, whose metadata files are `v1.metadata.json` and on.
    """

    def __init__(self, folder: Path) -> None:
        self._metadata = folder / "metadata"
        self.commits = 0

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

            def do_GET(handler) -> None:  # noqa: N805 - the names of the library
                name = handler.path.partition("?")[0]
                answers = {
                    "/v1/config": {"defaults": {}, "overrides": {}},
                    "/v1/namespaces": {"namespaces": [["db"]]},
                    "/v1/namespaces/db": {"namespace": ["db"], "properties": {}},
                    "/v1/namespaces/db/tables": {
                        "identifiers": [{"namespace": ["db"], "name": "t"}]
                    },
                    "/v1/namespaces/db/tables/t": self._table(),
                }
                handler.answer(answers.get(name))

            do_HEAD = do_GET  # noqa: N815

            def do_POST(handler) -> None:  # noqa: N805
                length = int(handler.headers.get("Content-Length", 0))
                asked = json.loads(handler.rfile.read(length))
                for change in asked.get("table-changes", [asked]):
                    self._commit(change["updates"])
                handler.send_response(204)
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def answer(self, what: Any) -> None:
                data = json.dumps(what).encode()
                self.send_response(404 if what is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def uri(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stops it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _newest(self) -> tuple[int, Path]:
        files = self._metadata.glob("v*.metadata.json")
        return max((int(path.name[1:].partition(".")[0]), path) for path in files)

    def _table(self) -> dict[str, Any]:
        path = self._newest()[1]
        metadata = json.loads(path.read_bytes())
        return {"metadata-location": str(path), "metadata": metadata, "config": {}}

    def _commit(self, updates: list[dict[str, Any]]) -> None:
        number, path = self._newest()
        metadata = json.loads(path.read_bytes())
        for update in updates:
            if update["action"] == "add-snapshot":
                snapshot = update["snapshot"]
                metadata.setdefault("snapshots", []).append(snapshot)
                metadata["last-sequence-number"] = snapshot["sequence-number"]
                metadata["last-updated-ms"] = snapshot["timestamp-ms"]
                metadata["next-row-id"] += snapshot["added-rows"]
            elif update["action"] == "set-snapshot-ref":
                metadata["current-snapshot-id"] = update["snapshot-id"]
                moment = metadata["last-updated-ms"]
                entry = {"snapshot-id": update["snapshot-id"], "timestamp-ms": moment}
                metadata.setdefault("snapshot-log", []).append(entry)
                ref = {"snapshot-id": update["snapshot-id"], "type": "branch"}
                metadata.setdefault("refs", {})[update["ref-name"]] = ref
            else:
                raise AssertionError(f"an update that no test has needed so far: {update}")
        (path.parent / f"v{number + 1}.metadata.json").write_text(json.dumps(metadata))
        (path.parent / "version-hint.text").write_text(str(number + 1))
        self.commits += 1
