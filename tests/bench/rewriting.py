"""Writing entries of manifests anew: a commit that removes files, and a rewrite of all manifests.

    python -m tests.bench.big_table --files 100000 --out build/bench/big100k
    python -m tests.bench.rewriting --table build/bench/big100k --work build/bench/rewriting
    python -m tests.bench.rewriting --table build/bench/big100k --work build/bench/rewriting \\
        --peers icecomb,iceberg_java --cases one,each,rewrite

one: the commit removes one data file, so that one manifest is written anew. each: it removes a file
of every manifest, so that all are written anew. Iceberg Java is given the paths only, the others
the partitions, too.
rewrite: all manifests become others of the same entries; PyIceberg has no such thing. icecomb sorts
the entries by partition, Iceberg Java is asked to leave them as they come.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from tests.bench.big_table import PER_MANIFEST, data_path, partition_of
from tests.bench.measure import clocked, compare, expect, memory_mb, parser, report
from tests.bench.peer import load_peer

_CASES = ("one", "each", "rewrite")


def measure(arguments: argparse.Namespace, name: str, case: str) -> None:
    """One process."""
    folder = Path(arguments.work).resolve() / name
    shutil.rmtree(folder, ignore_errors=True)
    table_folder = folder / "t"
    made, original, files = _relocated(Path(arguments.table).resolve(), table_folder)
    step = PER_MANIFEST if case == "each" else files
    numbers = range(0, 0 if case == "rewrite" else files, step)
    removed = [
        (data_path(number, files, original), partition_of(number, files)) for number in numbers
    ]
    if name == "iceberg_java":
        Path(made).rename(table_folder / "metadata" / "v1.metadata.json")
        found = load_peer(name).rewrite(table_folder, [path for path, _ in removed])
        expect(found["files"], files - len(removed), "data files")
        shutil.rmtree(folder)
        report(**found)
        return
    peer = load_peer(name)
    table = peer.adopt(str(folder), "t", made)
    work = (lambda: peer.remove_files(table, removed)) if removed else table.rewrite_manifests
    _, commit_s, commit_cpu_s = clocked(work)
    peak_mb = memory_mb()
    left = sum(1 for _ in peer.tasks(table.refresh(), []))
    expect(left, files - len(removed), f"{name} {case}")
    shutil.rmtree(folder)
    report(
        files=files,
        removed=len(removed),
        commit_s=commit_s,
        commit_cpu_s=commit_cpu_s,
        peak_mb=peak_mb,
        version=peer.version(),
    )


def _relocated(built: Path, folder: Path) -> tuple[str, str, int]:
    """Metadata of a built table with another location, the location it had, and how many files."""
    metadata: dict[str, Any] = json.loads((built / "metadata" / "v1.metadata.json").read_text())
    original = metadata["location"]
    metadata["location"] = f"file://{folder}"
    # PyIceberg's overwrite merges no manifests
    metadata["properties"]["commit.manifest-merge.enabled"] = "false"
    (folder / "metadata").mkdir(parents=True)
    made = folder / "metadata" / "00001-a.metadata.json"
    made.write_text(json.dumps(metadata))
    files = json.loads((built / "expected.json").read_text())["full"]["files"]
    return str(made), original, files


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.add_argument("--table", required=True, help="what big_table has written")
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--cases", default="one,each", help=f"of {', '.join(_CASES)}")
    given = arguments.parse_args()
    if given.child:
        measure(given, *given.child.split(":"))
        return
    for case in given.cases.split(","):
        compare("rewriting", given, case, table=Path(given.table).name)


if __name__ == "__main__":
    main()
