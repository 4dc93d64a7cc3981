"""The planner process: `ICECOMB_PLANNER_TOKEN=… python -m icecomb.spark.planner`."""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import Final, TextIO

from icecomb.format.errors import ConfigurationError
from icecomb.format.printable_text import PrintableFormatter
from icecomb.spark.planner.handlers import handlers
from icecomb.spark.planner.protocol.message import PROTOCOL
from icecomb.spark.planner.transport import Server

_FIRST_NEEDED: Final = (
    "icecomb.catalog.loading",
    "icecomb.format.spec.metadata_json",
    "polars",
    "fastavro",
)
"""Modules imported in advance, while the first request has not arrived yet."""


def main() -> int:
    """Serve until standard input ends, which happens when the Spark application ends."""
    token = os.environ.pop("ICECOMB_PLANNER_TOKEN", "")
    if not token:
        error = ConfigurationError(
            "The planner is started by icecomb's bridge in Spark, not by hand",
            hint="See icecomb.spark.session() or `icecomb spark-conf`.",
        )
        sys.stderr.write(f"{error}\n")
        return 2
    _log_to_stderr()
    announce = _private_stdout()
    server = Server(handlers(), token)
    server.start()
    greeting = {"port": server.port, "protocol": PROTOCOL, "version": version("icecomb")}
    announce.write(json.dumps(greeting) + "\n")
    announce.close()
    _prepare()
    while sys.stdin.buffer.read(4096):
        pass
    # not sys.exit: threads of unfinished requests must not keep the process alive
    sys.stderr.flush()
    os._exit(0)


def _prepare() -> None:
    """Import what the first request needs; if that fails, the request reports it."""
    for name in _FIRST_NEEDED:
        with suppress(ImportError, OSError):
            import_module(name)


def _private_stdout() -> TextIO:
    """Return a copy of standard output, and redirect the original to standard error.

    Done with descriptors, so that native code and child processes cannot break the protocol either.
    """
    copy = os.dup(sys.stdout.fileno())
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(copy, "w", encoding="ascii")


def _log_to_stderr() -> None:
    """Log warnings and slow steps, and with ICECOMB_TRACE the tracebacks of refused requests."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableFormatter("icecomb planner %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("pyhdfs").setLevel(logging.ERROR)  # errors say what its warnings do
    logging.getLogger("icecomb.catalog.metastore").setLevel(logging.INFO)
    if os.environ.get("ICECOMB_TRACE"):
        logging.getLogger("icecomb").setLevel(logging.DEBUG)


if __name__ == "__main__":
    raise SystemExit(main())
