"""icecomb table relocate: a table is brought back from a copied folder alone, and nothing there changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import copied_table
import pytest
from copied_table import content_of, frame, ids, path_of, records, stated_lengths, texts

from icecomb.catalog import cli, load_catalog, open_table
from icecomb.catalog.maintenance import backup
from icecomb.catalog.maintenance.table_path import file_list
from icecomb.format.errors import (
    CorruptFileError,
    FileAlreadyExistsError,
    FileIOError,
    ValidationError,
)
from icecomb.format.manifests.schema import ENTRY_NAMES, MANIFEST_FILE_NAMES
from icecomb.format.relocation.relocation import AvroRecords
from icecomb.format.storage.file_io import FileIO

LEFT = [i for i in range(20) if i not in {3, 13, 14}]
IO = FileIO()


def made(folder, version=2, **properties) -> Path:
    """The newest metadata file of a backup: a copied folder, of which the original is gone."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(folder / "lake"))
    lake.create_namespace("db")
    table = copied_table.made(lake, version, **properties)
    original = path_of(table.metadata.location)
    shutil.copytree(original, folder / "backup")
    original.rename(folder / "gone")
    return max((folder / "backup" / "metadata").glob("v*.metadata.json"), key=_number)


def _number(path: Path) -> int:
    return int(path.name[1:].partition(".")[0])


def relocated(metadata, target, *, copy=False, source=None, **planning) -> Path:
    plan = backup.plan_relocation(IO, str(metadata), source, str(target), **planning)
    backup.relocate(IO, plan, copy=copy)
    return Path(plan.new_metadata_file)


def has_all(metadata, location) -> None:
    """All states of a table that `made` made are in a copy of it."""
    table = open_table(metadata)
    assert table.metadata.location == str(location)
    assert ids(table) == LEFT
    assert ids(table, "side") == [*range(20), 100]
    assert ids(table, "old") == [*range(20)]
    assert [(p, n) for p, n in stated_lengths(metadata) if p.stat().st_size != n] == []


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_copied_folder_becomes_a_table_where_it_is(tmp_path, version):
    metadata = made(tmp_path, version)
    folder = tmp_path / "backup"
    before = content_of(folder)

    found = relocated(metadata, folder)

    has_all(found, folder)
    after = content_of(folder)
    assert {name: after[name] for name in before} == before
    new = sorted(set(after) - set(before))
    assert all("/relocated-" in name for name in new)
    assert not any(name.endswith("parquet") and "deletes" not in name for name in new)


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_a_table_that_was_brought_back(tmp_path, version):
    pyiceberg = pytest.importorskip("pyiceberg.table")
    found = relocated(made(tmp_path, version), tmp_path / "backup")
    peer = pyiceberg.StaticTable.from_metadata(str(found))
    assert sorted(peer.scan().to_arrow()["id"].to_pylist()) == LEFT


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_copied_folder_is_copied_to_another_one_as_a_table(tmp_path, version):
    metadata = made(tmp_path, version)
    before = content_of(tmp_path / "backup")
    target = tmp_path / "a longer name than the one it had before"

    found = relocated(metadata, target, copy=True, check_sizes=True)

    assert content_of(tmp_path / "backup") == before
    shutil.rmtree(tmp_path / "backup")
    has_all(found, target)
    for name, text in texts(target):
        assert f"{tmp_path}/lake" not in text, name
    folder_table = open_table(target)  # a table in a folder, to which rows are added
    folder_table.append(frame(200))
    assert ids(folder_table) == [*LEFT, 200]


def test_a_table_moved_there_and_back_has_its_bytes_of_before(tmp_path):
    metadata = made(tmp_path)
    original = str(open_table(metadata).metadata.location)
    there = relocated(metadata, tmp_path / "there", copy=True)
    back = relocated(there, original, copy=True)
    documents = [json.loads(path.read_text()) for path in (back, metadata)]
    assert documents[0] == documents[1]
    of_rows = [
        {n: c for n, c in content_of(folder).items() if n.startswith("data/")}
        for folder in (Path(original), tmp_path / "gone")
    ]
    assert of_rows[0] == of_rows[1]


def test_snapshots_without_a_list_of_version_1_are_relocated(tmp_path):
    metadata = made(tmp_path, 1)
    document = json.loads(metadata.read_text())
    for snapshot in document["snapshots"]:
        # as the first writers of Iceberg did (spec: Snapshots, `manifests`)
        listed = records(metadata.parent / Path(snapshot.pop("manifest-list")).name)
        snapshot["manifests"] = [one["manifest_path"] for one in listed]
    metadata.write_text(json.dumps(document))
    found = relocated(metadata, tmp_path / "new", copy=True)
    shutil.rmtree(tmp_path / "backup")
    assert ids(open_table(found)) == LEFT
    assert ids(open_table(found), "side") == [*range(20), 100]


def change(path, names, how) -> None:
    """Change the records of a manifest or list in place."""
    file = AvroRecords(path.read_bytes(), str(path), names)
    for record in file.records:
        how(record)
    path.write_bytes(file.to_bytes())


@pytest.mark.parametrize("by", [-100, 100])
def test_wrong_lengths_of_delete_files_and_manifests_are_put_right(tmp_path, by):
    # Iceberg Java up to 1.11 left them in tables that it copied (iceberg#12554, #13719)
    metadata = made(tmp_path)

    def of_deletes(entry):
        if entry["data_file"]["content"] == 1:
            entry["data_file"]["file_size_in_bytes"] += by

    def of_manifest(record):
        record["manifest_length"] += by

    for path in metadata.parent.glob("*.avro"):
        if path.name.startswith("snap-"):
            change(path, MANIFEST_FILE_NAMES, of_manifest)
        else:
            change(path, ENTRY_NAMES, of_deletes)
    has_all(relocated(metadata, tmp_path / "new", copy=True), tmp_path / "new")


def test_a_prefix_may_be_that_of_a_whole_warehouse(tmp_path):
    metadata = made(tmp_path)
    deeper = tmp_path / "mirror" / "db" / "t"
    deeper.parent.mkdir(parents=True)
    (tmp_path / "backup").rename(deeper)
    found = relocated(
        deeper / "metadata" / metadata.name,
        tmp_path / "moved",
        copy=True,
        source=str(tmp_path / "lake"),
    )
    assert found.parent == tmp_path / "moved" / "db" / "t" / "metadata"
    has_all(found, tmp_path / "moved" / "db" / "t")


def test_planning_writes_nothing_and_counts_what_is_to_be_copied(tmp_path):
    metadata = made(tmp_path)
    before = content_of(tmp_path)
    plan = backup.plan_relocation(IO, str(metadata), None, str(tmp_path / "new"), check_sizes=True)
    assert content_of(tmp_path) == before
    assert len(plan.to_copy) == 3
    assert plan.bytes_to_copy == sum(path_of(file.source).stat().st_size for file in plan.to_copy)
    assert plan.files[-1].target == plan.new_metadata_file
    assert file_list(plan.to_copy).decode().splitlines() == [
        f"{file.source},{file.target}" for file in plan.to_copy
    ]
    with pytest.raises(ValidationError, match=r"3 files of .* are not in"):
        backup.relocate(IO, plan)
    assert content_of(tmp_path) == before


def test_what_others_have_copied_is_not_copied_again(tmp_path):
    metadata = made(tmp_path)
    target = tmp_path / "new"
    shutil.copytree(tmp_path / "backup" / "data", target / "data")
    for path in (target / "data").glob("*deletes*"):
        path.unlink()
    plan = backup.plan_relocation(IO, str(metadata), None, str(target))
    assert plan.to_copy == ()
    assert backup.relocate(IO, plan) == 0
    has_all(Path(plan.new_metadata_file), target)


def test_an_interrupted_relocation_goes_on_where_it_was(tmp_path, monkeypatch):
    metadata = made(tmp_path)
    before = content_of(tmp_path / "backup")
    target = tmp_path / "new"
    created = FileIO.create_stream

    for at in (1, 0):
        calls = iter(range(100))

        def fails(self, location, at=at, calls=calls):
            if next(calls) == at:
                raise FileIOError(f"Cannot write {location}", hint="Free space.")
            return created(self, location)

        monkeypatch.setattr(FileIO, "create_stream", fails)
        with pytest.raises(FileIOError, match="Cannot write"):
            relocated(metadata, target, copy=True)
        assert not (target / "metadata" / metadata.name).exists()
        monkeypatch.setattr(FileIO, "create_stream", created)
        if at == 1:
            first = {path.name for path in (target / "data").iterdir()}
            assert first

    create = FileIO.create
    calls = iter(range(100))

    def stops(self, location, data):
        if next(calls) == 3:
            raise KeyboardInterrupt
        create(self, location, data)

    monkeypatch.setattr(FileIO, "create", stops)
    with pytest.raises(KeyboardInterrupt):
        relocated(metadata, target, copy=True)
    assert not (target / "metadata" / metadata.name).exists()
    monkeypatch.setattr(FileIO, "create", create)

    plan = backup.plan_relocation(IO, str(metadata), None, str(target))
    assert plan.to_copy == ()
    has_all(relocated(metadata, target), target)
    again = content_of(target)
    has_all(relocated(metadata, target), target)
    assert content_of(target) == again
    assert content_of(tmp_path / "backup") == before


@pytest.mark.gate("talks to the S3 of the tests")
def test_a_relocation_to_an_object_store_goes_on_and_is_repeated(s3, tmp_path):
    metadata = made(tmp_path, 3)
    io, target = FileIO(s3.settings), f"s3://{s3.bucket()}/moved"
    plan = backup.plan_relocation(io, str(metadata), None, target)
    assert len(plan.to_copy) == 3
    assert backup.relocate(io, plan, copy=True) == 3
    manifest = next(file.target for file in plan.files if file.what == "manifest file")
    io.delete([plan.new_metadata_file, manifest])

    again = backup.plan_relocation(io, str(metadata), None, target)
    assert again.to_copy == ()
    assert backup.relocate(io, again) == 0

    copy = open_table(plan.new_metadata_file, **s3.settings)
    assert ids(copy) == LEFT
    assert ids(copy, "side") == [*range(20), 100]
    io.delete(manifest)
    io.create(manifest, b"another writer's")
    with pytest.raises(FileAlreadyExistsError):
        backup.relocate(io, backup.plan_relocation(io, str(metadata), None, target))
    assert io.read(manifest) == b"another writer's"


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("data/*-00001.parquet", "data file"),
        ("data/*deletes.parquet", "position delete file"),
        ("metadata/*-m0.avro", "manifest file"),
        ("metadata/snap-*.avro", "manifest list"),
    ],
)
def test_what_is_missing_is_named_and_stops_it(tmp_path, pattern, what):
    metadata = made(tmp_path)
    lost = min((tmp_path / "backup").glob(pattern))
    lost.unlink()
    before = content_of(tmp_path)
    plan = backup.plan_relocation(IO, str(metadata), None, str(tmp_path / "new"))
    assert [str(one) for one in plan.missing] == [f"{what} {lost}"]
    with pytest.raises(ValidationError, match="1 files are missing"):
        backup.relocate(IO, plan, copy=True)
    assert content_of(tmp_path) == before


def test_missing_old_versions_and_statistics_are_left_out_and_named(tmp_path):
    metadata = made(tmp_path)
    document = json.loads(metadata.read_text())
    location = document["location"]
    statistics = {
        "snapshot-id": document["current-snapshot-id"],
        "statistics-path": f"{location}/metadata/x.stats",
        "file-size-in-bytes": 3,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    kept = {**statistics, "statistics-path": f"{location}/metadata/y.stats"}
    document["statistics"] = [statistics]
    document["partition-statistics"] = [kept]
    metadata.write_text(json.dumps(document))
    (metadata.parent / "y.stats").write_bytes(b"abc")
    (metadata.parent / "v2.metadata.json").unlink()

    plan = backup.plan_relocation(IO, str(metadata), None, str(tmp_path / "new"))
    backup.relocate(IO, plan, copy=True)

    assert sorted(str(one) for one in plan.left_out) == [
        f"older metadata file {metadata.parent}/v2.metadata.json",
        f"statistics file {metadata.parent}/x.stats",
    ]
    has_all(Path(plan.new_metadata_file), tmp_path / "new")
    found = json.loads(Path(plan.new_metadata_file).read_text())
    assert found["statistics"] == []
    log = [path_of(one["metadata-file"]).name for one in found["metadata-log"]]
    assert log == [
        "v1.metadata.json",
        *(f"v{n}.metadata.json" for n in range(3, _number(metadata))),
    ]
    assert all((tmp_path / "new" / "metadata" / name).exists() for name in log)
    path = found["partition-statistics"][0]["statistics-path"]
    assert Path(path).read_bytes() == b"abc"
    assert path == f"{tmp_path}/new/metadata/y.stats"


def test_statistics_without_a_path_are_an_error(tmp_path):
    metadata = made(tmp_path)
    document = json.loads(metadata.read_text())
    metadata.write_text(json.dumps({**document, "statistics": [{"snapshot-id": 1}]}))
    with pytest.raises(CorruptFileError, match=r"v\d+\.metadata\.json: a statistics file has no"):
        relocated(metadata, tmp_path / "new")


def test_files_of_another_length_are_named_if_that_is_checked(tmp_path):
    metadata = made(tmp_path)
    cut = next(p for p in (tmp_path / "backup/data").glob("*.parquet") if "deletes" not in p.name)
    size = cut.stat().st_size
    cut.write_bytes(cut.read_bytes()[:-1])
    arguments = (IO, str(metadata), None, str(tmp_path / "new"))
    assert not backup.plan_relocation(*arguments).is_blocked
    plan = backup.plan_relocation(*arguments, check_sizes=True)
    assert [str(one) for one in plan.wrong_sizes] == [
        f"data file {cut}: {size - 1} bytes, not {size}"
    ]
    with pytest.raises(ValidationError, match="1 have another length"):
        backup.relocate(IO, plan, copy=True)


def test_a_target_with_other_files_of_the_names_is_refused_and_unchanged(tmp_path):
    metadata = made(tmp_path)
    target = tmp_path / "new"
    shutil.copytree(tmp_path / "backup" / "metadata", target / "metadata")
    before = content_of(target / "metadata")
    with pytest.raises(FileAlreadyExistsError):
        relocated(metadata, target, copy=True)
    assert content_of(target / "metadata") == before

    other = tmp_path / "other"
    data = next(p for p in (tmp_path / "backup/data").iterdir() if "deletes" not in p.name)
    (other / "data").mkdir(parents=True)
    (other / "data" / data.name).write_bytes(b"x")
    with pytest.raises(FileAlreadyExistsError, match="with 1 bytes"):
        relocated(metadata, other, copy=True)


def test_a_metadata_file_elsewhere_is_refused(tmp_path):
    metadata = made(tmp_path)
    alone = tmp_path / "alone.metadata.json"
    shutil.copyfile(metadata, alone)
    with pytest.raises(ValidationError, match="is not where the table has its metadata"):
        relocated(alone, tmp_path / "new")
    with pytest.raises(ValidationError, match="same as target prefix"):
        relocated(metadata, open_table(metadata).metadata.location)
    metadata.write_bytes(metadata.read_bytes()[:-5])
    with pytest.raises(CorruptFileError):
        relocated(metadata, tmp_path / "new")


def received(folder, statistics: str) -> Path:
    """The metadata file of an empty table of an object store whose folder somebody copied."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(folder / "lake"))
    lake.create_namespace("db")
    table = lake.create_table("db.t", schema=copied_table.frame(1).schema)
    document = json.loads(Path(table.metadata_location).read_text())
    one = {"snapshot-id": 1, "statistics-path": statistics, "file-size-in-bytes": 7}
    document |= {"location": "s3://theirs/t", "partition-statistics": [one]}
    metadata = folder / "backup" / "metadata" / "v1.metadata.json"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(json.dumps(document))
    return metadata


@pytest.mark.parametrize("path", ["/../home/keys", "/metadata/../../home/keys", "/./keys"])
def test_a_key_with_dots_is_copied_from_nowhere_and_to_nowhere(tmp_path, path):
    metadata = received(tmp_path / "in", f"s3://theirs/t{path}")
    (tmp_path / "in" / "home").mkdir()
    (tmp_path / "in" / "home" / "keys").write_bytes(b"private")
    before = content_of(tmp_path)
    with pytest.raises(ValidationError, match=r"not under the source prefix") as refused:
        relocated(metadata, tmp_path / "lake" / "t", copy=True)
    assert "who wrote the table" in refused.value.hint
    assert content_of(tmp_path) == before


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_out_of_a_received_folder_is_not_followed(tmp_path, kind):
    metadata = made(tmp_path)
    data = tmp_path / "backup" / "data"
    away = tmp_path / "home"
    if kind == "folder":
        data.rename(away)
        data.symlink_to(away)
    else:
        away.mkdir()
        file = min(data.glob("*-00001.parquet"))
        file.rename(away / file.name)
        file.symlink_to(away / file.name)
    before = content_of(tmp_path)
    with pytest.raises(
        ValidationError, match=r"A symbolic link leads from .*backup/data/.* out of"
    ):
        relocated(metadata, tmp_path / "new", copy=True)
    assert content_of(tmp_path) == before


def test_links_that_stay_in_the_folder_and_one_to_it_are_followed(tmp_path):
    metadata = made(tmp_path)
    file = min((tmp_path / "backup" / "data").glob("*-00001.parquet"))
    file.rename(tmp_path / "backup" / file.name)
    file.symlink_to(f"../{file.name}")
    (tmp_path / "link").symlink_to("backup")
    found = relocated(
        tmp_path / "link" / metadata.relative_to(tmp_path / "backup"), tmp_path / "n", copy=True
    )
    has_all(found, tmp_path / "n")


def test_a_planted_link_in_the_target_is_not_written_through(tmp_path):
    metadata = made(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "data").symlink_to(tmp_path / "home")
    with pytest.raises(ValidationError, match=r"A symbolic link leads from .*new/data/"):
        relocated(metadata, tmp_path / "new", copy=True)
    assert not any((tmp_path / "home").iterdir())


def command(capfd, *arguments):
    capfd.readouterr()
    code = cli.main(["--output", "json", "table", "relocate", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, json.loads(out) if out else None, err


def test_the_command_is_a_dry_run_without_yes(tmp_path, capfd):
    metadata = made(tmp_path)
    target = tmp_path / "new"
    code, facts, said = command(capfd, metadata, "--to", target)
    assert code == 0
    assert not target.exists()
    assert (facts["relocated"], facts["files to copy"], facts["missing"]) == (False, 3, [])
    assert "dry run: add --yes and --copy to do it" in said

    code, facts, said = command(capfd, metadata, "--to", target, "--yes")
    assert (code, facts) == (1, None)
    assert "3 files" in said
    assert "--copy" in said

    code, facts, _ = command(capfd, metadata, "--to", target, "--copy", "--check-sizes", "--yes")
    assert code == 0
    assert (facts["relocated"], facts["files copied"], facts["files to copy"]) == (True, 3, 0)
    has_all(Path(facts["new metadata"]), target)


def test_the_command_wants_a_metadata_file(tmp_path, capfd):
    made(tmp_path)
    code, _, said = command(capfd, tmp_path / "backup", "--to", tmp_path / "new")
    assert code == 2
    assert "the newest metadata file" in said


@pytest.mark.parametrize("option", ["--from", "--to"])
def test_an_empty_prefix_is_not_this_folder(capfd, option):
    others = ["--to", "/x"] if option == "--from" else []
    code, _, said = command(capfd, "v1.metadata.json", *others, option, "")
    assert code == 2
    assert f"{option} is empty: give a folder" in said


def test_the_command_says_what_is_missing_with_an_exit_code(tmp_path, capfd):
    metadata = made(tmp_path)
    lost = min((tmp_path / "backup/data").glob("*-00001.parquet"))
    lost.unlink()
    code, facts, said = command(capfd, metadata, "--to", tmp_path / "new", "--copy", "--yes")
    assert code == 3
    assert facts["missing"] == [f"data file {lost}"]
    assert facts["relocated"] is False
    assert "restore what is missing" in said
    assert not (tmp_path / "new").exists()


def test_a_backup_is_registered_in_a_metastore_and_goes_on(catalog, namespace, icecomb, tmp_path):
    metadata = made(tmp_path, 3)
    folder = tmp_path / "backup"
    name = f"{namespace}.back"
    arguments = ("table", "relocate", str(metadata), "--to", str(folder), "--register", name)
    code, _, err = icecomb(*arguments, "--yes")
    assert code == 0, err
    table = catalog.load_table(name)
    assert ids(table) == LEFT
    table.append(frame(300))
    table.delete("id = 5")
    assert ids(table) == [*(i for i in LEFT if i != 5), 300]
    assert ids(table, "old") == [*range(20)]
    code, _, err = icecomb(*arguments)
    assert code == 1
    assert "exists already" in err
    code, _, err = icecomb(*arguments[:-1], "nowhere.back", "--yes")
    assert code == 1
    assert "nowhere" in err
