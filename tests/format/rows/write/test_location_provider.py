import pytest
from pyiceberg.table.locations import load_location_provider as peer_load

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.rows.write.location_provider import load_location_provider
from icecomb.format.storage.file_io import FileIO

IO = FileIO()


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
    ours = load_location_provider(IO, location, properties)
    assert ours.new_data_location(name, partition) == peer.new_data_location(name, key)


def test_object_store_data_outside_the_table_names_the_table():
    """Iceberg Java's ObjectStoreLocationProvider puts the last two parts of the table's path."""
    provider = load_location_provider(
        IO,
        "s3://bucket/warehouse/db/t",
        {"write.object-storage.enabled": "true", "write.data.path": "s3://fast/data"},
    )
    location = provider.new_data_location("f.parquet")
    assert location.startswith("s3://fast/data/")
    assert location.endswith("/db/t/f.parquet")


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        ("a", "0101/0110/1001/10110010"),
        ("b", "1110/0111/1110/00000011"),
        ("c", "0010/1101/0110/01011111"),
        ("d", "1001/0001/0100/01110011"),
    ],
)
def test_hashes_are_those_of_iceberg_java(name, hashed):
    """The values that Iceberg Java's TestLocationProvider asks for."""
    provider = load_location_provider(IO, "/w/t", {"write.object-storage.enabled": "true"})
    assert provider.new_data_location(name) == f"/w/t/data/{hashed}/{name}"


@pytest.mark.parametrize("store", ["true", "false"])
def test_data_goes_where_the_properties_say_the_first_of_them_before_the_others(store):
    """Iceberg Java: write.data.path, write.object-storage.path, write.folder-storage.path."""
    properties = {"write.object-storage.enabled": store, "write.folder-storage.path": "/folder"}
    expected = ["/folder"]
    if store == "true":
        properties["write.object-storage.path"] = "/store"
        expected.append("/store")
    expected.append("/data")
    for root, more in zip(
        expected[::-1],
        ({"write.data.path": "/data/"}, {}, {"write.object-storage.path": ""}),
        strict=False,
    ):
        location = load_location_provider(IO, "/w/t", {**properties, **more}).new_data_location("f")
        assert location.startswith(f"{root}/")
        assert location.endswith("/f")


@pytest.mark.parametrize("key", ["write.location-provider.impl", "write.py-location-provider.impl"])
def test_a_class_of_another_implementation_is_refused(key):
    with pytest.raises(UnsupportedError, match=r"com\.example\.Ours"):
        load_location_provider(IO, "/w/t", {key: "com.example.Ours"})


@pytest.mark.parametrize("enabled", ["true", "false"])
@pytest.mark.parametrize("path", ["file:/fast/data", "/fast/data"])
def test_files_of_a_table_elsewhere_are_not_put_on_this_machine(path, enabled):
    """Nobody else could read them, and icecomb refuses such names."""
    properties = {"write.data.path": path, "write.object-storage.enabled": enabled}
    with pytest.raises(ValidationError, match="names a file of this machine"):
        load_location_provider(IO, "s3://bucket/t", properties)
    allowed = FileIO({"local.allowed-prefixes": "/fast"})
    assert load_location_provider(allowed, "s3://bucket/t", properties).root == path
