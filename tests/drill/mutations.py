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
    Mutation(
        "list views that overlap are taken for a list",
        "format/arrow/plain_layout.py",
        "if not np.array_equal(places, np.arange(len(values))):",
        "if len(places) != len(values):",
        ("tests/format/arrow/test_plain_layout.py",),
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
        'options = "OVERWRITE" if replace else "NONE"',
        'options = "OVERWRITE"',
        ("tests/format/storage/hdfs/test_publishing.py",),
    ),
    Mutation(
        "a file that did not arrive whole in HDFS is published",
        "format/storage/hdfs/file_system.py",
        "if stored.size == written:",
        "if stored.size <= written:",
        ("tests/format/storage/hdfs/test_publishing.py",),
    ),
    Mutation(
        "a page to log in counts as a rename in HDFS",
        "format/storage/hdfs/web_hdfs.py",
        "looks_right = _is_done(reply) and replace",
        "looks_right = True",
        ("tests/format/hdfs/test_hdfs_answers.py",),
    ),
    Mutation(
        "a name node that is behind is believed",
        "format/storage/hdfs/name_node.py",
        'if self._ask(origin) not in {"active", ""}:',
        'if self._ask(origin) == "standby":',
        ("tests/format/hdfs/test_hdfs_observers.py",),
    ),
    # format/storage/object_store
    Mutation(
        "another's object of the same length is taken for one's own",
        "format/storage/object_store/creation.py",
        "return client.read(key, location) == data",
        "return True",
        ("tests/format/storage/object_store/test_creation.py",),
    ),
    Mutation(
        "a router's 404 is taken for Google's",
        "format/storage/object_store/google.py",
        "if status in {404, 410} and in_json and not reason",
        "if status in {404, 410} and not reason",
        ("tests/format/storage/object_store/test_rest_faults.py",),
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
        "hours = _floor_div(_micros(array), MICROS_PER_HOUR)",
        "hours = pc.divide(_micros(array), MICROS_PER_HOUR)",
        ("tests/format/spec/test_transform.py",),
    ),
    Mutation(
        "the least decimal of a byte takes two",
        "format/spec/values/decimal_value.py",
        "bits = (number if number >= 0 else ~number).bit_length()",
        "bits = number.bit_length()",
        ("tests/format/spec/values/test_decimal_value.py",),
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
        "format/spec/change/metadata_builder.py",
        "whole = lazily(log, MetadataLogEntry.from_json).with_last(entry)",
        "whole = lazily(log, MetadataLogEntry.from_json)",
        ("tests/format/spec/change/test_update.py",),
    ),
    Mutation(
        "the snapshot log goes back in time",
        "format/spec/change/metadata_builder.py",
        "return max(time_ms, last)",
        "return time_ms",
        ("tests/format/spec/change/test_update.py",),
    ),
    Mutation(
        "two snapshots have the same sequence number",
        "format/spec/change/metadata_builder.py",
        "snapshot.sequence_number <= newest and not rootless",
        "snapshot.sequence_number < newest and not rootless",
        ("tests/format/spec/change/test_update.py",),
    ),
    Mutation(
        "a branch that moved is not noticed",
        "format/spec/change/requirement.py",
        '_same(f"ref {self.ref}", self.snapshot_id, None if found is None else found.snapshot_id)',
        '_same(f"ref {self.ref}", self.snapshot_id is None, found is None)',
        ("tests/format/spec/change/test_update.py",),
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
        (
            "tests/format/manifests/test_manifest.py",
            "tests/format/manifests/test_reader.py",
        ),
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
        "format/spec/promotion.py",
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
        "rows that a manifest does not state are passed over",
        "format/rows/read/data_file_reader.py",
        "if self._stated not in {None, found}:",
        "if self._stated is not self._stated:",
        ("tests/catalog/test_stated_rows.py",),
    ),
    Mutation(
        "an upper bound that is cut is not raised",
        "format/rows/values/data_metrics.py",
        "return _next_text(value[:length])",
        "return value[:length]",
        ("tests/format/rows/values/test_data_metrics.py",),
    ),
    Mutation(
        "NaN in a column counts as null",
        "format/rows/values/arrow_metrics.py",
        "self.nulls += array.null_count",
        "self.nulls += pc.is_null(array, nan_is_null=True).true_count",
        (
            "tests/format/rows/values/test_data_metrics.py",
            "tests/format/rows/test_file_formats.py",
        ),
    ),
    # format/rows/parquet
    Mutation(
        "a row group that does not count its nulls has none",
        "format/rows/values/statistics.py",
        "None if None in nulls else sum(n for n in nulls if n is not None),",
        "sum(n for n in nulls if n is not None),",
        ("tests/format/rows/values/test_data_metrics.py",),
    ),
    Mutation(
        "decimals of a Parquet footer have the scale of the table",
        "format/rows/values/statistics.py",
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
        "format/rows/values/arrow_projection.py",
        "by_id = {f.field_id: f for f in source if f.field_id is not None}",
        "by_id = {w.field_id: f for f in source for w in fields if w.name == f.name}",
        ("tests/format/rows/parquet/test_reader.py",),
    ),
    Mutation(
        "a field in a struct is found by its name",
        "format/rows/values/arrow_projection.py",
        "inner = found.child(f.field_id)",
        "inner = next((c for c in found.children if c.name == f.name), None)",
        (
            "tests/format/rows/values/test_arrow_projection.py",
            "tests/format/rows/parquet/test_reader.py",
        ),
    ),
    Mutation(
        "only the first name of a name mapping counts",
        "format/rows/values/arrow_projection.py",
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
        "_REMOVING_ROWS | {Operation.REPLACE}",
        "_REMOVING_ROWS",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "a MERGE that only inserts sees no rows that others have deleted",
        "format/operation/row_delta.py",
        "history.no_removed_data(rows, ignore_rewrites=True)",
        "pass",
        ("tests/format/operation/test_conflict.py",),
    ),
    Mutation(
        "what others have added is no conflict for a MERGE that only inserts",
        "spark/planner/write/table_change.py",
        "change.validate_no_conflicting_data_files().validate_no_conflicting_delete_files()",
        "change.validate_no_conflicting_delete_files()",
        ("tests/spark/planner/test_read_targets.py",),
    ),
    Mutation(
        "what others have added is no conflict for a change that replaces files",
        "format/row_changes/file_replacement.py",
        "    if serializable:",
        "    if False:",
        (
            "tests/spark/planner/write/test_table_change.py",
            "tests/catalog/table/test_row_operations.py",
        ),
    ),
    Mutation(
        "what others have deleted is no conflict for a change that replaces files",
        "format/row_changes/file_replacement.py",
        "operation.validate_no_conflicting_deletes()",
        "pass",
        ("tests/catalog/table/test_row_operations.py",),
    ),
    Mutation(
        "a row that an upsert found, and others deleted, is not missed",
        "format/row_changes/file_replacement.py",
        ".validate_files_unchanged(self.relied_on)",
        "",
        ("tests/catalog/test_concurrent_changes.py",),
    ),
    Mutation(
        "a change looks only at what others did since the rows that it changes",
        "spark/planner/write/write.py",
        "options.validated_from(metadata, since) if request.command is None else since",
        "options.validated_from(metadata, since) if request.command is None else begin",
        ("tests/spark/planner/test_read_targets.py",),
    ),
    Mutation(
        "a table is replaced by rows of it that lack what others added",
        "catalog/table/table_creation.py",
        "if now == read:",
        "if now != read:",
        ("tests/catalog/table/test_create_replace.py",),
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
        "a replaced column keeps its id whatever its type",
        "format/spec/schema.py",
        "if before is not None and can_go_on(before.field_type, old.field_type):",
        "if before is not None:",
        ("tests/format/spec/test_schema.py",),
    ),
    Mutation(
        "bounds of another type are believed",
        "format/expressions/manifest_metrics.py",
        "if field_id in self._doubted:",
        "if field_id in ():",
        ("tests/catalog/test_reused_columns.py",),
    ),
    Mutation(
        "a branch of the old table is read with the columns of the new one",
        "format/spec/column_history.py",
        "    if unlike_columns(own, now):\n        return own\n",
        "",
        ("tests/catalog/test_reused_columns.py",),
    ),
    Mutation(
        "a commit that is tried again keeps its first parent",
        "format/operation/snapshot_producer.py",
        "        parent = self._parent(base)\n        check_branch(",
        '        parent = self.__dict__.setdefault("_first_parent", self._parent(base))\n'
        "        check_branch(",
        ("tests/format/test_append.py",),
    ),
    Mutation(
        "a snapshot is older than the one before where clocks differ",
        "format/spec/change/metadata_builder.py",
        "return max(time.time_ns() // 1_000_000, base.last_updated_ms + 1)",
        "return time.time_ns() // 1_000_000",
        ("tests/format/operation/test_made_snapshots.py",),
    ),
    Mutation(
        "an expiration deletes files that another branch needs",
        "format/operation/expiry/reachability.py",
        "kept = distinct_manifests(io, after.snapshots) if manifests else {}",
        "kept = distinct_manifests(io, [s for s in after.snapshots if s.snapshot_id == after.current_snapshot_id])",
        ("tests/format/operation/expiry/test_expire.py",),
    ),
    Mutation(
        "the snapshot of a tag expires",
        "format/operation/expiry/retention.py",
        "            kept.add(ref.snapshot_id)",
        "            pass",
        ("tests/format/operation/expiry/test_expire.py",),
    ),
    Mutation(
        "how many snapshots a branch keeps is not its own affair",
        "format/operation/expiry/retention.py",
        "least = ref.min_snapshots_to_keep or self.retain_last",
        "least = self.retain_last",
        ("tests/format/operation/expiry/test_expire.py",),
    ),
    # format/row_changes
    Mutation(
        "a row of the source without a key moves the others",
        "format/row_changes/merge.py",
        "self.found[self._with_keys[rows]] = True",
        "self.found[rows] = True",
        ("tests/catalog/table/test_merge_of_null_keys.py",),
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
        "a generator that was read before empties a table",
        "catalog/table/arrow_input.py",
        "if nothing and may_be_nothing:",
        "if nothing:",
        ("tests/catalog/table/test_arrow_input.py",),
    ),
    Mutation(
        "an unknown outcome is taken for a conflict, and the new file is deleted",
        "catalog/commit/commit.py",
        "if isinstance(outcome, Unknown):",
        "if isinstance(outcome, Unknown) and outcome.cause is None:",
        ("tests/catalog/commit/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "the manifests of a commit of unknown outcome are deleted",
        "catalog/commit/commit.py",
        "    except CommitStateUnknownError:\n        raise\n",
        "",
        ("tests/catalog/commit/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "a change that is in the table is cleaned up",
        "catalog/commit/commit.py",
        "if made and _has_one_of((newest := pointer.load()).metadata, made):",
        "if made is None:",
        ("tests/catalog/test_found_committed.py",),
    ),
    Mutation(
        "a commit goes to another table of the name",
        "catalog/commit/commit.py",
        "if base.uuid is not None and newest.uuid != base.uuid:",
        "if base.uuid is None and newest.uuid != base.uuid:",
        ("tests/catalog/commit/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "metadata files that the log still names are deleted",
        "catalog/commit/commit.py",
        "io.delete([e.metadata_file for e in base.metadata_log if e.metadata_file not in kept])",
        "io.delete([e.metadata_file for e in base.metadata_log])",
        ("tests/catalog/commit/test_outcomes_of_commits.py",),
    ),
    Mutation(
        "a request of a moment ago is thought to be too late",
        "catalog/commit/commit_status.py",
        "return time.time() * 1000 - timestamp_ms > OLD_MS",
        "return time.time() * 1000 - timestamp_ms > 0",
        ("tests/catalog/commit/test_late_requests_of_commits.py",),
    ),
    Mutation(
        "the files of the cluster go before what the caller says",
        "catalog/configuration/configuration.py",
        "return Configuration(name, {**far, **near}, {*catalogs, *_names(variables), LOCAL})",
        "return Configuration(name, {**near, **far}, {*catalogs, *_names(variables), LOCAL})",
        (
            "tests/catalog/configuration/test_configuration.py",
            "tests/catalog/configuration/test_configuration_files.py",
        ),
    ),
    # catalog/hive
    Mutation(
        "a metastore's reply to another call is believed",
        "catalog/hive/thrift/transport/protocol.py",
        "if (name, number) != self._called or kind not in _REPLIES:",
        "if kind not in _REPLIES:",
        ("tests/catalog/hive/thrift/test_replies.py",),
    ),
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
        "for observed in self._observations(len(self._pauses)):",
        "for observed in self._observations(0):",
        ("tests/catalog/hive/test_guarded_change.py",),
    ),
    Mutation(
        "what a server does not check is thought to be refused",
        "catalog/hive/settlement.py",
        "if self._checked and observed.state is ChangeState.OVERTAKEN:",
        "if observed.state is ChangeState.OVERTAKEN:",
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
        "the journal does not say that the entry is about to be converted",
        "catalog/migrate/applying/migration.py",
        "journal.record(Step.SWAPPING)",
        "pass",
        ("tests/catalog/migrate/applying/test_order_of_steps.py",),
    ),
    Mutation(
        "files that came while a table was read are left out",
        "catalog/migrate/applying/migration.py",
        "self._check_unchanged(table, plan, partitions)",
        "pass",
        (
            "tests/catalog/migrate/test_migrate.py::test_files_that_arrive_while_footers_are_read_are_taken_over_too",
        ),
    ),
    Mutation(
        "an apply starts over where an old copy of the entry came back after the conversion",
        "catalog/migrate/applying/migration.py",
        "raise overwritten.error",
        "pass",
        (
            "tests/catalog/migrate/journal/test_overwritten_entries.py::test_apply_does_not_start_over_with_the_partitions_that_are_left",
        ),
    ),
    Mutation(
        "the journal does not say which partitions are taken away",
        "catalog/migrate/applying/hive_parts.py",
        "self._journal.note_taken(found)",
        "pass",
        (
            "tests/catalog/migrate/journal/test_dropped_partitions.py::test_a_partition_that_hive_has_again_is_kept_with_its_rows",
        ),
    ),
    Mutation(
        "only Hive's own name of null is null",
        "catalog/migrate/source/partition_value.py",
        "if text != null_name:",
        "if text != DEFAULT_PARTITION:",
        ("tests/catalog/migrate/applying/test_order_of_steps.py",),
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
        "catalog/cli/output/cell.py",
        "if isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text):",
        "if isinstance(value, str) and _FORMULA.match(text) and _NUMBER.fullmatch(text):",
        ("tests/catalog/cli/test_output_forms.py",),
    ),
    # spark/planner
    Mutation(
        "a filter is pushed down by the name that Spark has",
        "spark/planner/scan/predicates.py",
        "name = self._read.find_column_name(field.field_id)",
        'name = ".".join(path)',
        (
            "tests/spark/planner/scan/test_scan.py",
            "tests/spark/planner/scan/test_push_down.py",
        ),
    ),
    Mutation(
        "NaN does not differ from a number",
        "spark/planner/scan/predicates.py",
        'if op in {"gt", "gt_eq", "not_eq"}:',
        'if op in {"gt", "gt_eq"}:',
        ("tests/spark/planner/scan/test_predicates.py",),
    ),
    Mutation(
        "rows and bytes of a delete file change places",
        "spark/planner/files/planned_files.py",
        "DeleteEntry(f.file_path, f.record_count, f.file_size_in_bytes)",
        "DeleteEntry(f.file_path, f.file_size_in_bytes, f.record_count)",
        ("tests/spark/planner/write/test_own_deletes.py",),
    ),
    Mutation(
        "who does not know the token is answered",
        "spark/planner/transport/transport.py",
        "if not known:",
        "if known is None:",
        ("tests/spark/planner/transport/test_transport.py",),
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
        "spark/planner/write/epoch.py",
        "if last is not None and last >= number:",
        "if last is not None and last > number:",
        ("tests/spark/planner/write/test_epoch_once.py",),
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
    # catalog/cli/argument
    Mutation(
        "a tag is taken for a branch",
        "catalog/cli/argument/state.py",
        "State(branch=text) if ref.is_branch else State(tag=text)",
        "State(branch=text)",
        ("tests/catalog/cli/test_diff_command.py", "tests/catalog/cli/test_inspection_commands.py"),
    ),
    # catalog/cli
    Mutation(
        "files that were added are shown as removed",
        "catalog/cli/difference.py",
        '(("removed", found.removed), ("added", found.added))',
        '(("removed", found.added), ("added", found.removed))',
        ("tests/catalog/cli/test_diff_command.py",),
    ),
    # catalog/cli/report
    Mutation(
        "a quote in a table's name ends a label of Prometheus",
        "catalog/cli/report/health_report.py",
        '.replace("\\\\", "\\\\\\\\").replace(\'"\', \'\\\\"\')',
        '.replace("\\\\", "\\\\\\\\")',
        ("tests/catalog/health/test_health_command.py",),
    ),
    # catalog
    Mutation(
        "a property that a lost commit set is not named",
        "catalog/lost_commits.py",
        "if found.path != PUBLISHED_SNAPSHOTS.key:",
        "if found.path == PUBLISHED_SNAPSHOTS.key:",
        ("tests/catalog/test_lost_commits.py",),
    ),
    # catalog/migrate
    Mutation(
        "a metastore that is lost does not end a batch",
        "catalog/migrate/batch.py",
        "if lost or (stop_on_error and outcome.status is not StepStatus.DONE):",
        "if stop_on_error and outcome.status is not StepStatus.DONE:",
        ("tests/catalog/migrate/test_batches.py",),
    ),
    # catalog/migrate/journal
    Mutation(
        "a journal that does not tell what was taken away says that it does",
        "catalog/migrate/journal/journal.py",
        'tells_taken=raw["version"] != _WITHOUT_TAKEN,',
        "tells_taken=True,",
        ("tests/catalog/migrate/journal/test_journal.py",),
    ),
    # catalog/migrate/planning
    Mutation(
        "all of Hive's Avro files are said to have times",
        "catalog/migrate/planning/reader_finding.py",
        "is FileFormat.AVRO and any(",
        "is FileFormat.AVRO or any(",
        ("tests/catalog/migrate/planning/test_reader_finding.py",),
    ),
    # catalog/migrate/reverting
    Mutation(
        "a table that is being reverted is called verified",
        "catalog/migrate/reverting/finalizing.py",
        "    if Step.REVERTING in steps:\n",
        "    if Step.REVERTING in steps and not iceberg:\n",
        ("tests/catalog/migrate/reverting/test_finalizing.py",),
    ),
    # catalog/migrate/verifying
    Mutation(
        "a null struct of Hive's is a struct of nulls",
        "catalog/migrate/verifying/comparison.py",
        "            mask=array.is_null(),\n",
        "            mask=None,\n",
        ("tests/catalog/migrate/verifying/test_comparison.py",),
    ),
    # catalog/report
    Mutation(
        "only those places of a finding count that are shown",
        "catalog/report/finding.py",
        "tuple(islice(places, _SHOWN)), len(places))",
        "tuple(islice(places, _SHOWN)), min(len(places), _SHOWN))",
        ("tests/catalog/report/test_finding.py",),
    ),
    # catalog/view
    Mutation(
        "a catalog of folders says that it keeps views",
        "catalog/view/view_catalog.py",
        "return self._views is not None",
        "return True",
        ("tests/catalog/view/test_view_catalog.py",),
    ),
    # format/expressions/forms
    Mutation(
        "NaN is not greater than all numbers where polars filters",
        "format/expressions/forms/polars_form.py",
        "return disjunction([compared, IsNaN(name)])",
        "return compared",
        ("tests/catalog/table/test_frames.py",),
    ),
    # format/expressions/sql
    Mutation(
        "a doubled quote in a constant stays two",
        "format/expressions/sql/sql_token.py",
        "return value[1:-1].replace(quote * 2, quote)",
        "return value[1:-1]",
        ("tests/format/expressions",),
    ),
    # format/property
    Mutation(
        "a property is not found under its other names",
        "format/property/property.py",
        "        for key in (self.key, *self.also):\n",
        "        for key in (self.key,):\n",
        ("tests/format/property", "tests/catalog/configuration"),
    ),
    # format/rows/files
    Mutation(
        "a partition field that the table lacks is passed over",
        "format/rows/files/added_file.py",
        "        if left:\n            known",
        "        if False:\n            known",
        ("tests/catalog/test_add_files.py", "tests/format/rows/files"),
    ),
    # format/rows/parquet
    Mutation(
        "a row group belongs to two splits",
        "format/rows/parquet/reader.py",
        "if start <= middle < start + length:",
        "if start <= middle <= start + length:",
        ("tests/format/rows/parquet/test_reader.py",),
    ),
    # format/spec/view
    Mutation(
        "a view has two queries in one dialect",
        "format/spec/view/view.py",
        "lowered = dialect.lower()",
        "lowered = dialect",
        ("tests/format/spec/view/test_view.py",),
    ),
    # spark/planner
    Mutation(
        "options with capitals say nothing",
        "spark/planner/options.py",
        "{key.lower(): text for key, text in options.items()}",
        "{key: text for key, text in options.items()}",
        ("tests/spark/planner/write/test_snapshot_properties.py", "tests/spark/planner/scan"),
    ),
    # spark/planner/session
    Mutation(
        "files of a session that failed after its write are left",
        "spark/planner/session/group_rewrites.py",
        "                rewrite.discard()\n",
        "                pass\n",
        ("tests/spark/planner/session/test_session_work.py",),
    ),
    # spark/planner/streams
    Mutation(
        "offsets in checkpoints may be text",
        "spark/planner/streams/offset.py",
        "if version != _VERSION or tuple(map(type, fields)) != (int, int, bool):",
        "if version != _VERSION:",
        ("tests/spark/planner/streams/test_offset.py",),
    ),
    # spark/planner/table
    Mutation(
        "an older version of a table is taken for its newest",
        "spark/planner/table/kept_metadata.py",
        "if newest.metadata.last_updated_ms <= metadata.last_updated_ms:",
        "if newest.metadata.last_updated_ms >= metadata.last_updated_ms:",
        ("tests/spark/planner/table/test_kept_metadata.py",),
    ),
]
