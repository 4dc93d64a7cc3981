"""The manifests of a history are those that each of its lists names, told once."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyiceberg.manifest
import pytest

from icecomb.format.errors import CorruptFileError, NoSuchFileError
from icecomb.format.manifests.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icecomb.format.manifests.manifest_list import read_manifests, write_manifest_list
from icecomb.format.manifests.manifest_union import distinct_manifests, each_new_manifests
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.test_manifest import PYICEBERG_IO
from tests.format.manifests.written_manifest import state_fewer

IO = FileIO()


def manifest(number: int, draw: random.Random, version: int) -> ManifestFile:
    summaries = (
        PartitionFieldSummary(draw.random() < 0.5, draw.choice((None, True)), b"a", None),
        PartitionFieldSummary(False, None, None, bytes([number % 256])),
    )
    deletes = version > 1 and draw.random() < 0.3
    return ManifestFile(
        manifest_path=f"/t/é{number}.avro",
        manifest_length=number,
        partition_spec_id=number % 3,
        content=ManifestContent.DELETES if deletes else ManifestContent.DATA,
        sequence_number=0 if version == 1 else number,
        min_sequence_number=0 if version == 1 else number // 2,
        added_snapshot_id=2**60 + number,
        added_files_count=1,
        existing_files_count=number,
        deleted_files_count=3,
        added_rows_count=2**40,
        existing_rows_count=5,
        deleted_rows_count=6,
        partitions=draw.choice((None, (), summaries)),
        key_metadata=draw.choice((None, b"k")),
    )


def listed(snapshot_id: int, manifest_list: str) -> Snapshot:
    return Snapshot.from_json(
        {"snapshot-id": snapshot_id, "timestamp-ms": 1, "manifest-list": manifest_list}
    )


def history(folder: Path, draw: random.Random, count: int) -> list[Snapshot]:
    """Snapshots whose lists share manifests, of both versions, by us and by PyIceberg."""
    snapshots, current, number = [], [], 0
    version = 1
    for place in range(count):
        if version == 1 and draw.random() < 0.1:
            version = 2
        for _ in range(draw.randrange(3)):
            number += 1
            current.insert(0, manifest(number, draw, version))
        if current and draw.random() < 0.2:
            current.pop(draw.randrange(len(current)))
        path = folder / f"snap-{place}.avro"
        if version == 2 and draw.random() < 0.3:
            by_pyiceberg(path, current, place)
        else:
            write_manifest_list(
                IO,
                str(path),
                current,
                format_version=version,
                snapshot_id=place,
                parent_snapshot_id=None,
                sequence_number=place,
                codec=draw.choice(("gzip", "snappy", "uncompressed")),
            )
        snapshots.append(listed(place, str(path)))
    return snapshots


def by_pyiceberg(path: Path, manifests: list[ManifestFile], snapshot_id: int) -> None:
    theirs = [
        pyiceberg.manifest.ManifestFile.from_args(
            **{
                name: getattr(one, name)
                for name in ManifestFile.__slots__
                if name not in ("partitions", "content")
            },
            content=pyiceberg.manifest.ManifestContent(one.content.value),
            partitions=None
            if one.partitions is None
            else [
                pyiceberg.manifest.PartitionFieldSummary(
                    s.contains_null, s.contains_nan, s.lower_bound, s.upper_bound
                )
                for s in one.partitions
            ],
        )
        for one in manifests
    ]
    output = PYICEBERG_IO.new_output(str(path))
    written = pyiceberg.manifest.write_manifest_list(2, output, snapshot_id, None, 3, "deflate")
    with written as writer:
        writer.add_manifests(theirs)


@pytest.mark.parametrize("number", range(8))
def test_a_history_names_what_its_lists_name_one_by_one(tmp_path, first_seed, number):
    draw = random.Random(1000 * first_seed + number)
    snapshots = history(tmp_path, draw, draw.choice((1, 2, 9, 90)))
    expected: dict[str, ManifestFile] = {}
    for snapshot in snapshots:
        for one in read_manifests(IO, snapshot):
            expected.setdefault(one.manifest_path, one)
    assert distinct_manifests(IO, snapshots) == expected
    known = set(draw.sample(sorted(expected), len(expected) // 3))
    told = list(each_new_manifests(IO, snapshots, known))
    assert [snapshot for snapshot, _ in told] == snapshots
    of_all = [one for _, manifests in told for one in manifests]
    assert len(of_all) == len({one.manifest_path for one in of_all})
    assert {one.manifest_path: one for one in of_all} == {
        path: one for path, one in expected.items() if path not in known
    }
    for snapshot, manifests in told:
        assert set(manifests) <= set(read_manifests(IO, snapshot))


def plain_history(folder: Path) -> tuple[list[Snapshot], list[list[ManifestFile]]]:
    """Twelve snapshots that each have a manifest of their own, and one of all."""
    draw = random.Random(1)
    shared = manifest(99, draw, 2)
    snapshots, own = [], []
    for place in range(12):
        path = str(folder / f"snap-{place}.avro")
        own.append([manifest(place + 1, draw, 2)])
        write_manifest_list(
            IO,
            path,
            [*own[-1], shared],
            format_version=2,
            snapshot_id=place,
            parent_snapshot_id=None,
            sequence_number=place,
        )
        snapshots.append(listed(place, path))
    own[0].append(shared)
    return snapshots, own


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def replace_records(path: Path) -> None:
    """Records that do not decode, between markers that are right."""
    data = path.read_bytes()
    marker = data[-16:]
    path.write_bytes(data[: data.index(marker) + 16] + b"\x04\x06abc" + marker)


HARMS = [cut, replace_records, state_fewer, Path.unlink]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("place", [0, 1, 4, 11])
def test_a_damaged_list_is_named_behind_those_before_it(tmp_path, harm, place):
    snapshots, own = plain_history(tmp_path)
    harm(Path(snapshots[place].manifest_list))
    told = each_new_manifests(IO, snapshots)
    for snapshot, manifests in zip(snapshots[:place], own, strict=False):
        found, new = next(told)
        assert found == snapshot
        assert set(new) == set(manifests)
    with pytest.raises((CorruptFileError, NoSuchFileError), match=f"snap-{place}.avro"):
        next(told)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_damaged_lists_are_told_and_passed_over(tmp_path, harm):
    snapshots, own = plain_history(tmp_path)
    harmed = (0, 5, 6, 11)
    for place in harmed:
        harm(Path(snapshots[place].manifest_list))
    problems = []
    found = distinct_manifests(IO, snapshots, lambda *problem: problems.append(problem))
    assert [snapshot for snapshot, _ in problems] == [snapshots[place] for place in harmed]
    for snapshot, error in problems:
        assert Path(snapshot.manifest_list).name in error.message
    expected = {own[0][-1]} | {own[p][0] for p in range(12) if p not in harmed}
    assert set(found.values()) == expected


def test_snapshots_that_name_their_manifests_themselves_are_among_the_others(tmp_path):
    from tests.format.manifests.test_manifest import added, data_file, write

    snapshots, own = plain_history(tmp_path)
    named = write(tmp_path, [added(data_file("/t/b"))], version=1)
    old = Snapshot.from_json(
        {"snapshot-id": 77, "timestamp-ms": 1, "manifests": [named.manifest_path]}
    )
    mixed = [old, *snapshots[:5], replace(old, snapshot_id=78), *snapshots[5:]]
    read: list[str] = []
    io = FileIO()
    inner = io.read
    io.read = lambda location: (read.append(location), inner(location))[1]  # type: ignore[method-assign]
    found = distinct_manifests(io, mixed)
    assert read.count(named.manifest_path) == 1
    assert len(read) == 13
    assert set(found) == {named.manifest_path} | {m.manifest_path for of in own for m in of}
    assert found[named.manifest_path].added_snapshot_id == 77
