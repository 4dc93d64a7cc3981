"""What `icecomb paimon` says of folders that are no whole Paimon tables: one line, an exit code, and nothing changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.cli import main
from icecomb.catalog.paimon.snapshot import Snapshots
from icecomb.format.errors import CorruptFileError
from icecomb.format.storage.file_io import FileIO

COMMANDS = {
    "history": (),
    "evolve": ("--add", "n", "INT", "--yes"),
    "import": ("--to", "db.t", "--yes"),
}


def replaced(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rewritten(path, **members):
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


BAD = {
    "missing schema-0": (lambda s: s.rename(s.with_name("schema-1")), "schema-0 is missing, though"),
    "far": (lambda s: shutil.copy(s, s.with_name("schema-99999999999")), "schema-1 is missing, though"),
    "gap": (lambda s: shutil.copy(s, s.with_name("schema-2")), "schema-1 is missing, though"),
    "truncated": (lambda s: s.write_text(s.read_text()[:-9]), "schema-0 is truncated or not JSON"),
    "empty": (lambda s: s.write_text(""), "schema-0 is truncated or not JSON"),
    "version": (lambda s: rewritten(s, version=4), "schema-0: version 4 is unknown"),
    "type": (lambda s: replaced(s, "BIGINT", "BIGGINT"), "schema-0: fields.id: unknown type 'BIGGINT'"),
    "duplicate ids": (lambda s: replaced(s, '"id" : 1', '"id" : 0'), "schema-0: fields: id 0 is given 2"),
    "above": (lambda s: rewritten(s, highestFieldId=0), "schema-0: fields.note: id 1 is above"),
    "no table": (lambda s: shutil.rmtree(s.parent), "There is no Paimon table at"),
    "a folder": (lambda s: (s.unlink(), s.mkdir()), "There is no Paimon table at"),
}  # fmt: skip


@pytest.fixture(scope="module")
def good(pypaimon):
    rows = pa.table({"id": [1], "note": ["a"]})
    source = pypaimon.make("good", rows)
    path = Path(source.schemas.path(0))
    path.write_text(source.schemas.latest().to_text())
    return Path(source.location)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_folder_is_refused_in_one_line(good, tmp_path, capsys, bad, command):
    folder = tmp_path / "t"
    shutil.copytree(good, folder)
    damage, said = BAD[bad]
    damage(folder / "schema" / "schema-0")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    code = main(["paimon", command, str(folder), *COMMANDS[command]])
    err = capsys.readouterr().err.splitlines()
    assert code == 1
    assert said in err[0]
    assert all(line.startswith("  hint: ") for line in err[1:]), err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("list_", ["baseManifestList", "deltaManifestList"])
def test_a_snapshot_names_no_file_outside_of_the_folder_of_manifests(good, tmp_path, list_):
    folder = tmp_path / "t"
    shutil.copytree(good, folder)
    snapshot = folder / "snapshot" / "snapshot-1"
    named = json.loads(snapshot.read_text())[list_]
    rewritten(snapshot, **{list_: f"../manifest/{named}"})
    snapshots = Snapshots(FileIO(), str(folder))
    with pytest.raises(CorruptFileError, match="is not the name of a manifest"):
        snapshots.files(snapshots.latest())


def test_folders_can_be_named_from_where_one_is(good, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, tmp_path / "t")
    assert main(["paimon", "history", "./t"]) == 0
    assert main(["paimon", "evolve", "t/", "--default", "note", "x", "--yes"]) == 0
    assert "default" in capsys.readouterr().out
    assert main(["paimon", "diff", "./t", "0", "9"]) == 1
    assert "There are the schemas 0, 1." in capsys.readouterr().err


def test_every_command_explains_itself(capsys):
    for command in ("", "tables", "history", "diff", "drift", "prune", "evolve", "import"):
        assert main(["paimon", *([command] if command else []), "--help"]) == 0
        assert "Usage: icecomb paimon" in capsys.readouterr().out
