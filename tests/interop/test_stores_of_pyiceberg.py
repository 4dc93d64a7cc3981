"""Tables on Google's, Azure's and another S3's store, written and read by PyIceberg and by us in turns."""

from __future__ import annotations

import re
import time

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.storage.object_store.azure_settings import EMULATOR_ACCOUNT
from tests.peers.azurite import EMULATOR_KEY

pytestmark = pytest.mark.full("stores that npm and Go bring")


def pyiceberg_settings(server, name):
    if name != "azurite":
        return {
            **server.settings,
            "gcs.oauth2.token": "anybody's",
            "gcs.oauth2.token-expires-at": f"{time.time() * 1000 + 9e6:.0f}",
        }
    authority = server.endpoint.removeprefix("http://")
    return {
        "adls.account-name": EMULATOR_ACCOUNT,
        "adls.account-key": EMULATOR_KEY,
        "adls.blob-storage-authority": authority,
        "adls.dfs-storage-authority": authority,
        "adls.blob-storage-scheme": "http",
        "adls.dfs-storage-scheme": "http",
    }


def as_pyiceberg_sees_it(table, settings):
    """A table in a folder; what PyIceberg commits to it is the folder's next version."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io import load_file_io
    from pyiceberg.serializers import FromInputFile, ToOutputFile
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.update import update_table_metadata

    settings = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", **settings}
    io = load_file_io(settings, table.metadata_location)

    class Folder(NoopCatalog):
        def commit_table(self, table, requirements, updates):
            for each in requirements:
                each.validate(table.metadata)
            made = update_table_metadata(
                table.metadata, updates, metadata_location=table.metadata_location
            )
            folder, _, last = table.metadata_location.rpartition("/")
            place = f"{folder}/v{int(last[1:].partition('.')[0]) + 1}.metadata.json"
            ToOutputFile.table_metadata(made, io.new_output(place))
            return CommitTableResponse(metadata=made, metadata_location=place)

    found = FromInputFile.table_metadata(io.new_input(table.metadata_location))
    return Table(("t",), found, table.metadata_location, io, Folder("folder", **settings))


@pytest.mark.parametrize("name", ["google_store", "azurite", "other_s3"])
def test_pyiceberg_and_we_write_one_table_in_turns(request, name):
    server = request.getfixturevalue(name)
    # PyIceberg takes all before the path for the container's name
    warehouse = f"{re.sub('@.*', '', server.place())}/a b"
    catalog = load_catalog("files", type="hadoop", warehouse=warehouse, **server.settings)
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
    catalog.create_namespace("n")
    catalog.create_table("n.t", rows.schema).append(rows)

    def theirs():
        return as_pyiceberg_sees_it(catalog.load_table("n.t"), pyiceberg_settings(server, name))

    theirs().append(rows)
    catalog.load_table("n.t").delete("id = 2")
    theirs().append(rows.slice(1, 1))
    for table in (catalog.load_table("n.t"), theirs()):
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 1, 2, 3, 3]
