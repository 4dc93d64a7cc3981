"""Which paths are a table's own: only these are deleted because a file beside the table names them."""

from __future__ import annotations

from icecomb.format.operation.own_folders import OwnFolders
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField

SCHEMA = Schema((NestedField(1, "id", LongType()),))


def own(location: str, **properties: str) -> OwnFolders:
    named = {key.replace("_", "-").replace("--", "."): value for key, value in properties.items()}
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, named, now_ms=0
    )
    return OwnFolders(metadata, {})


def test_files_in_the_location_and_the_folders_of_properties_are_own():
    folders = own("file:/lake/t", write__data__path="/fast/t/", write__metadata__path="/meta/t")
    inside = ["/lake/t/data/a", "file:///lake//t/x", "/fast/t/a", "file:/meta/t/b", "/lake/t/./a"]
    outside = ["/lake/t2/a", "/lake/t/../u/a", "/lake/t", "/fast", "s3://lake/t/a", "/meta/tt/b"]
    assert folders.outside(inside + outside) == frozenset(outside)
    named = own("s3://b/t", write__object_storage__path="s3a://c/o")
    outside = ["s3://c/t/a", "/t/a", "s3://b/t/../u"]
    assert named.outside(["s3a://b/t/a", "s3://c/o/x", *outside]) == frozenset(outside)


def test_metadata_files_and_manifests_are_told_by_their_names():
    folders = own("/lake/t")
    files = ["v1.metadata.json", "00001-x.gz.metadata.json", "v2.metadata.json.gz"]
    lists = ["snap-1-1-u.avro", "u-m0.avro"]
    others = ["thesis.odt", "a.json", "data.avro", "v1.metadata.json.odt"]
    within = [f"/lake/t/metadata/{name}" for name in (*files, *lists, *others)]
    elsewhere = [f"/home/me/{name}" for name in (*files, *lists)]
    assert folders.metadata_files(within + elsewhere) == within[:3]
    assert folders.manifests(within + elsewhere) == within[3:5]
