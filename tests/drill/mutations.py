"""What is broken, room by room from the ground up: each is a fault that somebody could make."""

from __future__ import annotations

from tests.drill.mutation import Mutation

MUTATIONS = [
    # format/arrow
    Mutation(
        "a null that a null struct hides stays in a required field",
        "format/arrow/hidden_null.py",
        "children = [_shown(array.field(n), required=not f.nullable) for n, f in enumerate(kind)]",
        "children = [_shown(array.field(n)) for n, f in enumerate(kind)]",
        ("tests/format/arrow/test_hidden_null.py",),
    ),
    # format/storage
    Mutation(
        "a rename replaces the file that is there",
        "format/storage/local.py",
        "os.link(temporary, path, follow_symlinks=False)",
        "os.replace(temporary, path)",
        ("tests/conformance/test_file_systems.py", "tests/format/storage/test_file_io.py"),
    ),
    Mutation(
        "dots in a location are kept",
        "format/storage/location.py",
        "plain = [posixpath.normpath(path) for path in paths.filter(dotted).to_pylist()]",
        "plain = paths.filter(dotted).to_pylist()",
        ("tests/format/storage/test_location.py",),
    ),
    # format/storage/hdfs
    Mutation(
        "a file in HDFS replaces the one of its name",
        "format/storage/hdfs/web_hdfs.py",
        'wanted = {"destination": target, "renameoptions": "NONE"}',
        'wanted = {"destination": target, "renameoptions": "OVERWRITE"}',
        ("tests/format/storage/hdfs/test_publishing.py",),
    ),
    Mutation(
        "a file that did not arrive whole in HDFS is published",
        "format/storage/hdfs/file_system.py",
        "_check_length(stored, upload.written, location)",
        "pass",
        ("tests/format/storage/hdfs/test_publishing.py",),
    ),
    # format/storage/object_store
    Mutation(
        "another's object of the same length is taken for one's own",
        "format/storage/object_store/creation.py",
        "return client.read(key, location) == data",
        "return True",
        ("tests/format/storage/object_store/test_creation.py",),
    ),
    # format/spec
    Mutation(
        "negative numbers are truncated toward zero",
        "format/spec/transform.py",
        "return (value - value % self.width + half) % (1 << bits) - half",
        "return (int(value / self.width) * self.width + half) % (1 << bits) - half",
        ("tests/format/spec/test_transform.py",),
    ),
    Mutation(
        "days before 1970 are rounded toward it",
        "format/spec/transform.py",
        "days = value if isinstance(source, DateType) else value // MICROS_PER_DAY",
        "days = value if isinstance(source, DateType) else int(value / MICROS_PER_DAY)",
        ("tests/format/spec/test_transform.py",),
    ),
    Mutation(
        "hours before 1970 are rounded toward it in columns",
        "format/spec/transform_arrow.py",
        "return _floor_div(_micros(array), MICROS_PER_HOUR).cast(pa.int32())",
        "return pc.divide(_micros(array), MICROS_PER_HOUR).cast(pa.int32())",
        ("tests/format/spec/test_transform.py",),
    ),
    Mutation(
        "the least decimal of a byte takes two",
        "format/spec/decimal_value.py",
        "bits = (number if number >= 0 else ~number).bit_length()",
        "bits = number.bit_length()",
        ("tests/format/spec/test_decimal_value.py",),
    ),
    Mutation(
        "a partition value is escaped once too often",
        "format/spec/partition.py",
        'return quote_plus(text, safe="*").replace("~", "%7E")',
        'return quote_plus(quote_plus(text, safe="*").replace("~", "%7E"))',
        ("tests/format/spec/test_partition.py",),
    ),
    Mutation(
        "partition fields without ids, of version 1, are counted from 1",
        "format/spec/partition.py",
        "PartitionField.from_json(f, PARTITION_FIELD_ID_START + i) for i, f in enumerate(raw)",
        "PartitionField.from_json(f, 1 + i) for i, f in enumerate(raw)",
        ("tests/format/spec/test_early_tables.py",),
    ),
    Mutation(
        "the metadata log is not kept",
        "format/spec/metadata_builder.py",
        "whole = lazily(log, MetadataLogEntry.from_json).with_last(entry)",
        "whole = lazily(log, MetadataLogEntry.from_json)",
        ("tests/format/spec/test_update.py",),
    ),
    Mutation(
        "the snapshot log goes back in time",
        "format/spec/metadata_builder.py",
        "return max(time_ms, last)",
        "return time_ms",
        ("tests/format/spec/test_update.py",),
    ),
    Mutation(
        "two snapshots have the same sequence number",
        "format/spec/metadata_builder.py",
        "snapshot.sequence_number <= newest and not rootless",
        "snapshot.sequence_number < newest and not rootless",
        ("tests/format/spec/test_update.py",),
    ),
    Mutation(
        "a branch that moved is not noticed",
        "format/spec/requirement.py",
        '_same(f"ref {self.ref}", self.snapshot_id, None if found is None else found.snapshot_id)',
        '_same(f"ref {self.ref}", self.snapshot_id is None, found is None)',
        ("tests/format/spec/test_update.py",),
    ),
    Mutation(
        "times that run backwards in metadata are read",
        "format/spec/metadata_json.py",
        "if before is not None and time_ms < before - _CLOCK_SKEW_MS:",
        "if before is not None and time_ms < 0:",
        ("tests/format/spec/test_metadata.py",),
    ),
    Mutation(
        "a name that is used again means the new field in files without ids",
        "format/spec/name_mapping.py",
        "named = f.name != known.get(f.field_id) and f.name not in owners",
        "named = f.name != known.get(f.field_id)",
        ("tests/catalog/test_files_without_ids.py",),
    ),
    # format/avro
    Mutation(
        "a decimal in Avro is read without its scale",
        "format/avro/schema.py",
        'return scaled(int.from_bytes(value, "big", signed=True), field_type.scale)',
        'return scaled(int.from_bytes(value, "big", signed=True), 0)',
        (
            "tests/format/avro/test_schema.py",
            "tests/format/manifests/test_manifest.py",
        ),
    ),
    Mutation(
        "a decimal in Avro has no room for its sign",
        "format/avro/schema.py",
        "return (greatest.bit_length() + 8) // 8",
        "return (greatest.bit_length() + 7) // 8",
        ("tests/format/avro/test_schema.py",),
    ),
    # format/manifests
    Mutation(
        "an added file does not inherit the sequence number of its manifest",
        "format/manifests/decoder.py",
        "fill = pc.and_(pc.or_(inherits, unnumbered), own.is_null())",
        "fill = pc.and_(unnumbered, own.is_null())",
        ("tests/format/manifests/test_manifest.py", "tests/format/manifests/test_reader.py"),
    ),
    Mutation(
        "a deleted file counts for the least sequence number of a manifest",
        "format/manifests/writer.py",
        "if status is not _DELETED and sequence_number is not None:",
        "if sequence_number is not None:",
        ("tests/format/manifests/test_manifest.py",),
    ),
    Mutation(
        "files of the past in a new manifest count as new",
        "format/manifests/writer.py",
        "min_sequence_number=sequence_number if least == UNASSIGNED_SEQ else least,",
        "min_sequence_number=sequence_number,",
        (
            "tests/format/manifests/test_manifest.py",
            "tests/format/test_overwrite.py",
        ),
    ),
    Mutation(
        "NaN in a partition counts as null",
        "format/manifests/writer.py",
        "            self._nan = True",
        "            self._null = True",
        ("tests/format/manifests/test_manifest.py",),
    ),
    Mutation(
        "statistics of a slice are those of the rows before it",
        "format/manifests/columns.py",
        "hits = first + np.flatnonzero(_numbers(keys)[first:last] == column_id)",
        "hits = np.flatnonzero(_numbers(keys)[first:last] == column_id)",
        ("tests/format/manifests/test_statistics_of_slices.py",),
    ),
    # format/expressions
    Mutation(
        "all rows of the bucket of a value are taken to have that value",
        "format/expressions/projection.py",
        "wanted = (Operation.EQ, Operation.IN) if inclusive else (Operation.NOT_EQ, Operation.NOT_IN)",
        "wanted = (Operation.EQ, Operation.IN)",
        ("tests/format/expressions/test_projection.py",),
    ),
    Mutation(
        "NOT IN is left out where only some rows of a partition match",
        "format/expressions/residual.py",
        "all_match = _listed(strict, count)",
        "all_match = _listed(inclusive, count)",
        ("tests/format/scan/test_table_scan.py",),
    ),
    Mutation(
        "partitions before 1970 of old writers are left out",
        "format/expressions/projection.py",
        "literals = projected.literals | {v + 1 for v in projected.literals if v < 0}",
        "literals = projected.literals",
        ("tests/format/expressions/test_times_before_1970.py",),
    ),
    Mutation(
        "a file with some nulls is taken for one of nulls only",
        "format/expressions/metrics_evaluator.py",
        "if operation is Operation.NOT_NULL:\n        return pc.invert(all_null)",
        "if operation is Operation.NOT_NULL:\n        return _zero(_null_count(metrics, reference))",
        ("tests/format/expressions/test_nulls_and_nans_of_files.py",),
    ),
    Mutation(
        "a file of NaN and null is taken for one of nulls only",
        "format/expressions/metrics_evaluator.py",
        "return pc.equal(values, nulls).fill_null(FALSE)",
        "return pc.equal(values, pc.add(nulls, metrics.nan_count(term.field_id).fill_null(0))).fill_null(FALSE)",
        ("tests/format/expressions/test_nulls_and_nans_of_files.py",),
    ),
    Mutation(
        "a manifest with a null is taken to have nothing else",
        "format/expressions/manifest_evaluator.py",
        "return 1 if only_nulls else None",
        "return 1",
        ("tests/format/scan/test_table_scan.py",),
    ),
    Mutation(
        "the offset of a time zone is added",
        "format/expressions/literal.py",
        "return micros - _offset_micros(zone)",
        "return micros + _offset_micros(zone)",
        ("tests/format/expressions/test_expression.py",),
    ),
    # format/evolution
    Mutation(
        "a decimal may lose digits",
        "format/evolution/schema_edit.py",
        "return old.scale == new.scale and old.precision <= new.precision",
        "return old.scale == new.scale",
        ("tests/format/evolution/test_schema_update.py",),
    ),
    Mutation(
        "a partition field that version 1 drops leaves no void one",
        "format/evolution/spec_update.py",
        "elif self._base.format_version == 1:",
        "elif self._base.format_version == 0:",
        ("tests/format/evolution/test_spec_update.py",),
    ),
    # format/rows
    Mutation(
        "an upper bound that is cut is not raised",
        "format/rows/data_metrics.py",
        "return _next_text(value[:length])",
        "return value[:length]",
        ("tests/format/rows/test_data_metrics.py",),
    ),
    Mutation(
        "NaN in a column counts as null",
        "format/rows/arrow_metrics.py",
        "self.nulls += array.null_count",
        "self.nulls += pc.is_null(array, nan_is_null=True).true_count",
        (
            "tests/format/rows/test_data_metrics.py",
            "tests/format/rows/test_file_formats.py",
        ),
    ),
    # format/rows/parquet
    Mutation(
        "a row group that does not count its nulls has none",
        "format/rows/parquet/statistics.py",
        "None if None in nulls else sum(n for n in nulls if n is not None),",
        "sum(n for n in nulls if n is not None),",
        ("tests/format/rows/test_data_metrics.py",),
    ),
    Mutation(
        "decimals of a Parquet footer have the scale of the table",
        "format/rows/parquet/statistics.py",
        'if self._logical["scale"] != target.scale:',
        'if self._logical["scale"] is None:',
        ("tests/format/rows/parquet/test_decimal_bounds.py",),
    ),
    # format/rows/orc
    Mutation(
        "bounds of an ORC file that has NaN are believed",
        "format/rows/orc/tail.py",
        'if any(map(math.isnan, (low, high, struct.unpack("<d", total)[0]))):',
        "if any(map(math.isnan, (low, high))):",
        ("tests/format/rows/orc/test_tail.py",),
    ),
    # format/rows/avro
    Mutation(
        "rows of an Avro file are counted anew in each batch",
        "format/rows/avro/reader.py",
        "position += rows",
        "position = rows",
        ("tests/format/rows/avro/test_places_of_rows.py",),
    ),
    # format/rows/deletes
    Mutation(
        "position deletes hit the row behind",
        "format/rows/deletes/position_delete.py",
        "mask[deleted[begin:end] - position] = False",
        "mask[(deleted[begin:end] - position + 1) % rows] = False",
        ("tests/format/rows/deletes/test_position_delete.py",),
    ),
    Mutation(
        "a key of several columns is found by each of them alone",
        "format/rows/deletes/equality_delete.py",
        "found &= (inner >= 0) & (level[codes] == pairs)",
        "found &= inner >= 0",
        ("tests/format/rows/deletes/test_equality_delete.py",),
    ),
    # format/rows/read
    Mutation(
        "a column is found by its name",
        "format/rows/read/arrow_projection.py",
        "by_id = {f.field_id: f for f in source if f.field_id is not None}",
        "by_id = {w.field_id: f for f in source for w in fields if w.name == f.name}",
        ("tests/format/rows/parquet/test_reader.py",),
    ),
    Mutation(
        "a field in a struct is found by its name",
        "format/rows/read/arrow_projection.py",
        "inner = found.child(f.field_id)",
        "inner = next((c for c in found.children if c.name == f.name), None)",
        (
            "tests/format/rows/test_arrow_projection.py",
            "tests/format/rows/parquet/test_reader.py",
        ),
    ),
    Mutation(
        "only the first name of a name mapping counts",
        "format/rows/read/arrow_projection.py",
        "known = next((m for m in mapped if name in m.names), None)",
        "known = next((m for m in mapped if name in m.names[:1]), None)",
        ("tests/catalog/test_files_without_ids.py",),
    ),
    # format/rows/write
    Mutation(
        "each NaN is a partition of its own",
        "format/rows/write/partition_split.py",
        "return math.nan if isinstance(value, float) and math.isnan(value) else value",
        "return value",
        ("tests/format/rows/write/test_data_writer.py",),
    ),
    Mutation(
        "null in a path is text",
        "format/rows/write/partition_path.py",
        "= None if text == HIVE_NULL else text",
        "= text",
        ("tests/format/rows/write/test_partition_path.py",),
    ),
    # format/scan
    Mutation(
        "an equality delete hits rows of its own commit",
        "format/scan/delete_index.py",
        "self._equality.setdefault(key, _BySequence()).add(sequence_number - 1, file)",
        "self._equality.setdefault(key, _BySequence()).add(sequence_number, file)",
        ("tests/format/scan/test_deletes_by_age.py",),
    ),
    Mutation(
        "a position delete spares rows of its own commit",
        "format/scan/delete_index.py",
        "found.add_range(sequence_number, file, low, high)",
        "found.add_range(sequence_number - 1, file, low, high)",
        ("tests/format/scan/test_deletes_by_age.py",),
    ),
    Mutation(
        "an incremental scan shows what was only rewritten",
        "format/scan/incremental_scan.py",
        "return [one for one in reversed(line) if one.operation == Operation.APPEND]",
        "return [one for one in reversed(line) if one.operation != Operation.DELETE]",
        ("tests/format/scan/test_incremental_scan.py",),
    ),
    # format/operation
    Mutation(
        "rows that an overwrite added are no conflict",
        "format/operation/conflict.py",
        "_ADDING_DATA: Final = frozenset((Operation.APPEND, Operation.OVERWRITE))",
        "_ADDING_DATA: Final = frozenset((Operation.APPEND,))",
        ("tests/format/operation/test_added_by_others.py",),
    ),
    Mutation(
        "files that a compaction removed are no conflict",
        "format/operation/conflict.py",
        "frozenset((Operation.OVERWRITE, Operation.REPLACE, Operation.DELETE))",
        "frozenset((Operation.OVERWRITE, Operation.DELETE))",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "new deletes of a file that is replaced are no conflict",
        "format/operation/overwrite.py",
        "history.no_new_deletes_for(self.removed_data_files.values())",
        "pass",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "rows that were added to a partition which is replaced are no conflict",
        "format/operation/overwrite.py",
        "history.no_new_data(partitions=where)",
        "pass",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "a conflict in any partition is one in those that are replaced",
        "format/operation/conflict.py",
        "chosen &= np.fromiter((key in wanted for key in keys), bool, len(columns))",
        "chosen &= np.fromiter((True for key in keys), bool, len(columns))",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "that the files of new position deletes were rewritten is no conflict",
        "format/operation/row_delta.py",
        "history.files_exist(self._referenced, ignore_deletes=not self._validate_deleted_files)",
        "pass",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "a rewrite that is as new as its commit overlooks equality deletes",
        "format/operation/overwrite.py",
        "replaced, ignore_equality_deletes=self.data_sequence_number is not None",
        "replaced, ignore_equality_deletes=True",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "a merge of manifests forgets what this snapshot deleted",
        "format/operation/manifest_merge.py",
        "rows = np.flatnonzero(own | (statuses != ManifestEntryStatus.DELETED.value))",
        "rows = np.flatnonzero(statuses != ManifestEntryStatus.DELETED.value)",
        ("tests/format/operation/test_made_snapshots.py",),
    ),
    Mutation(
        "a commit that is tried again keeps its first parent",
        "format/operation/snapshot_producer.py",
        "        parent = self._parent(base)\n        self._draw_id(base)",
        '        parent = self.__dict__.setdefault("_first_parent", self._parent(base))\n'
        "        self._draw_id(base)",
        ("tests/format/test_append.py",),
    ),
    Mutation(
        "a snapshot is older than the one before where clocks differ",
        "format/spec/metadata_builder.py",
        "return max(time.time_ns() // 1_000_000, base.last_updated_ms + 1)",
        "return time.time_ns() // 1_000_000",
        ("tests/format/operation/test_made_snapshots.py",),
    ),
    Mutation(
        "an expiration deletes files that another branch needs",
        "format/operation/reachability.py",
        "kept = distinct_manifests(io, after.snapshots) if manifests else {}",
        "kept = distinct_manifests(io, [s for s in after.snapshots if s.snapshot_id == after.current_snapshot_id])",
        ("tests/format/test_expire.py",),
    ),
    Mutation(
        "the snapshot of a tag expires",
        "format/operation/retention.py",
        "            kept.add(ref.snapshot_id)",
        "            pass",
        ("tests/format/test_expire.py",),
    ),
    Mutation(
        "how many snapshots a branch keeps is not its own affair",
        "format/operation/retention.py",
        "least = ref.min_snapshots_to_keep or self.retain_last",
        "least = self.retain_last",
        ("tests/format/test_expire.py",),
    ),
    # format/row_changes
    Mutation(
        "a row of the source without a key moves the others",
        "format/row_changes/merge.py",
        "self.found[self._with_keys[rows]] = True",
        "self.found[rows] = True",
        ("tests/catalog/test_merge_of_null_keys.py",),
    ),
    # format/maintenance
    Mutation(
        "a compaction drops the deletes that others added meanwhile",
        "format/maintenance/group_replacement.py",
        "meanwhile.deletes[number] = tuple(positional)",
        "pass",
        (
            "tests/catalog/maintenance/test_compaction.py::test_rows_that_others_delete_meanwhile_stay_deleted",
        ),
    ),
    Mutation(
        "deletes of the oldest rows there are count as dangling",
        "format/maintenance/dangling_deletes.py",
        "return first is None or number < first",
        "return first is None or number <= first",
        (
            "tests/catalog/maintenance/test_compaction.py::test_whatever_others_do_meanwhile_rows_stay_as_they_make_them",
        ),
    ),
    Mutation(
        "equality deletes that become positions hit newer rows",
        "format/maintenance/equality_conversion.py",
        "return pa.array((places >= 0) & (self.newest[np.maximum(places, 0)] >= self.number))",
        "return pa.array(places >= 0)",
        ("tests/catalog/maintenance/test_delete_files.py",),
    ),
    # format/inspect
    Mutation(
        "the last change of a partition is one whose snapshot expired",
        "format/inspect/partitions_table.py",
        '("last_updated_at", "ascending", "at_start")',
        '("last_updated_at", "ascending", "at_end")',
        ("tests/format/inspect/test_partitions_of_specs.py",),
    ),
    Mutation(
        "delete files count as data in the census",
        "format/inspect/file_census.py",
        '"files": data.astype(np.int64),',
        '"files": np.ones(len(data), np.int64),',
        ("tests/format/inspect/test_file_census.py",),
    ),
    # catalog
    Mutation(
        "an unknown outcome is taken for a conflict, and the new file is deleted",
        "catalog/commit.py",
        "if isinstance(outcome, Unknown):",
        "if isinstance(outcome, Unknown) and outcome.cause is None:",
        ("tests/catalog/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "the manifests of a commit of unknown outcome are deleted",
        "catalog/commit.py",
        "    except CommitStateUnknownError:\n        raise\n",
        "",
        ("tests/catalog/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "a commit goes to another table of the name",
        "catalog/commit.py",
        "if base.uuid is not None and newest.uuid != base.uuid:",
        "if base.uuid is None and newest.uuid != base.uuid:",
        ("tests/catalog/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "metadata files that the log still names are deleted",
        "catalog/commit.py",
        "io.delete([e.metadata_file for e in base.metadata_log if e.metadata_file not in kept])",
        "io.delete([e.metadata_file for e in base.metadata_log])",
        ("tests/catalog/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "a request of a moment ago is thought to be too late",
        "catalog/commit_status.py",
        "return time.time() * 1000 - timestamp_ms > OLD_MS",
        "return time.time() * 1000 - timestamp_ms > 0",
        ("tests/catalog/test_late_requests_of_commits.py",),
    ),
    Mutation(
        "the files of the cluster go before what the caller says",
        "catalog/configuration.py",
        "return Configuration(name, {**far, **near}, {*catalogs, *_names(variables), LOCAL})",
        "return Configuration(name, {**near, **far}, {*catalogs, *_names(variables), LOCAL})",
        ("tests/catalog/test_configuration.py", "tests/catalog/test_configuration_files.py"),
    ),
    # catalog/hive
    Mutation(
        "the expected pointer is not sent",
        "catalog/hive/entry_change.py",
        "context |= {EXPECTED_KEY: expectation.parameter, EXPECTED_VALUE: expectation.value}",
        "context |= {}",
        ("tests/catalog/hive/test_guarded_change.py",),
    ),
    Mutation(
        "a lock is not given back",
        "catalog/hive/entry_change.py",
        "            finally:\n                lock.release()",
        "            finally:\n                pass",
        ("tests/catalog/hive/test_guarded_change.py",),
    ),
    Mutation(
        "the heartbeat of a lock is left out",
        "catalog/hive/lock.py",
        "if self.lock_id is not None:\n                    self._beat(self.lock_id)",
        "if self.lock_id is None:\n                    self._beat(self.lock_id)",
        ("tests/catalog/hive/test_guarded_change.py",),
    ),
    Mutation(
        "after a lost answer nobody looks again",
        "catalog/hive/settlement.py",
        "for seen in self._looks(len(self._pauses)):",
        "for seen in self._looks(0):",
        ("tests/catalog/hive/test_guarded_change.py",),
    ),
    Mutation(
        "what a server does not check is thought to be refused",
        "catalog/hive/settlement.py",
        "if self._checked and seen.sight is Sight.OVERTAKEN:",
        "if seen.sight is Sight.OVERTAKEN:",
        ("tests/catalog/hive/test_guarded_change.py",),
    ),
    Mutation(
        "the pointer is not compared under the lock",
        "catalog/hive/entry_pointer.py",
        "if entry.metadata_location != expected.location:",
        "if entry.metadata_location is None:",
        ("tests/catalog/hive/test_guarded_change.py",),
    ),
    # catalog/hive/thrift
    Mutation(
        "a call that changes something is sent twice",
        "catalog/hive/thrift/calls.py",
        "self.send(method, lambda one: one.call_with_bytes(method, arguments))",
        "self._twice(method, lambda one: one.call_with_bytes(method, arguments))",
        ("tests/catalog/hive/thrift/test_sent_once.py",),
    ),
    Mutation(
        "a metastore that was away is asked first again",
        "catalog/hive/thrift/failover.py",
        "for address in sorted(addresses, key=self._servers.is_suspect):",
        "for address in addresses:",
        ("tests/catalog/test_failover.py",),
    ),
    # catalog/hadoop
    Mutation(
        "the hint is believed though there is a newer version",
        "catalog/hadoop/version.py",
        "while (following := self.find(version + 1)) is not None:",
        "while (following := None) is not None:",
        ("tests/catalog/test_hadoop_catalog.py",),
    ),
    Mutation(
        "another's version is taken for one's own",
        "catalog/hadoop/pointer.py",
        "if found == new.metadata.to_json().encode():",
        "if found:",
        ("tests/catalog/hadoop/test_lost_publication.py",),
    ),
    # catalog/maintenance
    Mutation(
        "the removal of orphans does not ask for their age",
        "catalog/maintenance/orphans.py",
        "is_old = pc.less(times, limit)",
        "is_old = pc.is_valid(times)",
        ("tests/catalog/maintenance/test_orphans.py",),
    ),
    Mutation(
        "what was committed while orphans were looked for is deleted",
        "catalog/maintenance/orphans.py",
        "batch = found.still_orphans(locations[start : start + _BATCH])",
        "batch = locations[start : start + _BATCH]",
        ("tests/catalog/maintenance/test_orphans.py",),
    ),
    # catalog/migrate
    Mutation(
        "the journal does not say that the entry is about to be turned",
        "catalog/migrate/applying.py",
        "journal.record(Step.SWAPPING)",
        "pass",
        ("tests/catalog/migrate/test_order_of_steps.py",),
    ),
    Mutation(
        "files that came while a table was read are left out",
        "catalog/migrate/applying.py",
        "self._check_unchanged(table, plan, partitions)",
        "pass",
        (
            "tests/catalog/migrate/test_migrate.py::test_files_that_arrive_while_footers_are_read_are_taken_over_too",
        ),
    ),
    Mutation(
        "only Hive's own name of null is null",
        "catalog/migrate/partition_value.py",
        "if text != null_name:",
        "if text != DEFAULT_PARTITION:",
        ("tests/catalog/migrate/test_order_of_steps.py",),
    ),
    # catalog/paimon
    Mutation(
        "the marks of nulls begin a byte too early",
        "catalog/paimon/binary_row.py",
        "bit = at + 8",
        "bit = at",
        ("tests/catalog/paimon/test_binary_row.py",),
    ),
    # catalog/health
    Mutation(
        "deleted rows cost twice as many points",
        "catalog/health/score.py",
        "by_position / (2 * DELETED_SHARE)",
        "by_position / DELETED_SHARE",
        ("tests/catalog/health/test_score.py",),
    ),
    # catalog/metastore
    Mutation(
        "any server at the port is taken for one's own",
        "catalog/metastore/embedded.py",
        "return client.server_name() == server.name",
        "return bool(client.server_name())",
        ("tests/catalog/metastore/test_whose_server.py",),
    ),
    # catalog/cli
    Mutation(
        "a spreadsheet runs the formulas of a CSV file",
        "catalog/cli/cell.py",
        "if isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text):",
        "if isinstance(value, str) and _FORMULA.match(text) and _NUMBER.fullmatch(text):",
        ("tests/catalog/test_output_forms.py",),
    ),
    # spark/planner
    Mutation(
        "a filter is pushed down by the name that Spark has",
        "spark/planner/predicates.py",
        "name = self._read.find_column_name(field.field_id)",
        'name = ".".join(path)',
        (
            "tests/spark/planner/test_scan.py",
            "tests/spark/planner/test_push_down.py",
        ),
    ),
    Mutation(
        "NaN does not differ from a number",
        "spark/planner/predicates.py",
        'if op in {"gt", "gt_eq", "not_eq"}:',
        'if op in {"gt", "gt_eq"}:',
        ("tests/spark/planner/test_predicates.py",),
    ),
    Mutation(
        "rows and bytes of a delete file change places",
        "spark/planner/planned_files.py",
        "DeleteEntry(f.file_path, f.record_count, f.file_size_in_bytes)",
        "DeleteEntry(f.file_path, f.file_size_in_bytes, f.record_count)",
        ("tests/spark/planner/test_own_deletes.py",),
    ),
    Mutation(
        "who does not know the token is answered",
        "spark/planner/transport.py",
        "if not known:",
        "if known is None:",
        ("tests/spark/planner/test_transport.py",),
    ),
    # spark/planner/changes
    Mutation(
        "the commit at the start of a range is always in it",
        "spark/planner/changes/changelogs.py",
        "first = ids.index(start) + (not wanted.start_inclusive)",
        "first = ids.index(start)",
        ("tests/spark/planner/changes/test_ranges.py",),
    ),
    Mutation(
        "deleted rows come as inserted ones",
        "spark/planner/changes/files.py",
        '(one, "DELETE", np.setdiff1d(is_now, was, assume_unique=True)),',
        '(one, "INSERT", np.setdiff1d(is_now, was, assume_unique=True)),',
        ("tests/spark/planner/changes/test_ranges.py",),
    ),
    # spark/planner/procedures
    Mutation(
        "an argument that is null is taken for one that is given",
        "spark/planner/procedures/signature.py",
        "if parameter.required and given.get(parameter.name) is None:",
        "if parameter.required and parameter.name not in given:",
        ("tests/spark/planner/procedures",),
    ),
    # spark/planner/protocol
    Mutation(
        "a member of the protocol has another name in the bridge",
        "spark/bridge/java/org/icecomb/spark/planner/Protocol.java",
        "public record StreamPosition(String offset) {}",
        "public record StreamPosition(String position) {}",
        ("tests/spark/planner/test_protocol.py",),
    ),
    Mutation(
        "a member of the protocol has another name in the planner",
        "spark/planner/protocol/streams.py",
        "    offset: str | None",
        "    position: str | None",
        ("tests/spark/planner/test_protocol.py",),
    ),
    # spark/planner/statements
    Mutation(
        "nulls come first in descending order, too",
        "spark/planner/statements/grammar.py",
        "nulls_first = not descending",
        "nulls_first = True",
        ("tests/spark/planner/statements",),
    ),
    # spark/planner/streams
    Mutation(
        "a batch that is in the table is committed again",
        "spark/planner/streams/epoch.py",
        "if last is not None and last >= number:",
        "if last is not None and last > number:",
        ("tests/spark/planner/streams/test_epoch_once.py",),
    ),
    # spark/bridge
    Mutation(
        "a single row between two deleted ones is lost",
        "spark/bridge/java/org/icecomb/spark/read/PositionDeletes.java",
        "      if (deleted > next) {",
        "      if (deleted > next + 1) {",
        (
            "tests/spark/test_merge_on_read.py::test_a_delete_with_a_subquery_writes_deletes_and_no_data",
        ),
    ),
    Mutation(
        "a file without NaN in its bounds is passed over though it may have NaN",
        "spark/bridge/java/org/icecomb/spark/convert/FloatingPoint.java",
        'operator.equals("not_eq") || operator.equals("gt") || operator.equals("gt_eq");',
        'operator.equals("not_eq");',
        (
            "tests/spark/test_read_files.py::test_zeros_are_one_and_nan_is_the_greatest_in_every_file",
        ),
    ),
]
