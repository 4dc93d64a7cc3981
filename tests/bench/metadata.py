"""Parsing and writing a metadata file of many snapshots: the fixed cost of every load and commit.

    python -m tests.bench.metadata --work build/bench/metadata

`parse_s` is the first in a process (imports and a small file done before), `parse_best_s` the best
of three more; `json_s` is `json.loads` of the same bytes, the floor of any reader in Python.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.bench.measure import clocked, compare, memory_mb, parser, report
from tests.bench.peer import load_peer
from tests.bench.table_metadata import long_history


def metadata_file(folder: str, snapshots: int) -> Path:
    """The file, written if it is missing."""
    work = Path(folder).resolve()
    path = work / f"{snapshots}.metadata.json"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(long_history(f"file://{work}/t", snapshots, snapshots // 10)))
    return path


def measure(arguments: argparse.Namespace, name: str) -> None:
    """One process."""
    path = metadata_file(arguments.work, arguments.snapshots)
    _, json_s, _ = clocked(lambda: json.loads(path.read_bytes()))
    peer = load_peer(name)
    peer.parse_metadata(str(metadata_file(arguments.work, 1)))
    parsed, parse_s, parse_cpu_s = clocked(lambda: peer.parse_metadata(str(path)))
    best = min(clocked(lambda: peer.parse_metadata(str(path)))[1] for _ in range(3))
    _, dump_s, _ = clocked(lambda: peer.dump_metadata(parsed))
    report(
        parse_s=parse_s,
        parse_cpu_s=parse_cpu_s,
        parse_best_s=best,
        dump_s=dump_s,
        json_s=json_s,
        peak_mb=memory_mb(),
        version=peer.version(),
    )


def main() -> None:
    """Print one line."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", required=True, help="a scratch folder")
    arguments.add_argument("--snapshots", type=int, default=10_000)
    given = arguments.parse_args()
    if given.child:
        measure(given, given.child.split(":")[0])
        return
    for snapshots in (1, given.snapshots):
        metadata_file(given.work, snapshots)
    compare("metadata", given, "parse", snapshots=given.snapshots)


if __name__ == "__main__":
    main()
