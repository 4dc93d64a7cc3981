import pytest
from pyiceberg.table.locations import load_location_provider as peer_load

from icecomb.format.rows.location_provider import load_location_provider


class PeerKey:
    """What PyIceberg asks of a partition key."""

    def __init__(self, path):
        self._path = path

    def to_path(self):
        return self._path


@pytest.mark.parametrize("location", ["file:///w/db/t", "/w/db/t/"])
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"write.data.path": "/elsewhere/data/"},
        {"write.object-storage.enabled": "true"},
        {
            "write.object-storage.enabled": "true",
            "write.object-storage.partitioned-paths": "false",
        },
    ],
)
@pytest.mark.parametrize("partition", [None, "day=2024-01-01/b=3"])
def test_locations_are_those_of_pyiceberg(location, properties, partition):
    name = "00000-0-6c0b8a8e-00001.parquet"
    key = None if partition is None else PeerKey(partition)
    peer = peer_load(location, {"write.object-storage.enabled": "false", **properties})
    ours = load_location_provider(location, properties)
    assert ours.new_data_location(name, partition) == peer.new_data_location(name, key)


def test_object_store_data_outside_the_table_names_the_table():
    """Iceberg Java's ObjectStoreLocationProvider puts the last two parts of the table's path."""
    provider = load_location_provider(
        "s3://bucket/warehouse/db/t",
        {"write.object-storage.enabled": "true", "write.data.path": "s3://fast/data"},
    )
    location = provider.new_data_location("f.parquet")
    assert location.startswith("s3://fast/data/")
    assert location.endswith("/db/t/f.parquet")
