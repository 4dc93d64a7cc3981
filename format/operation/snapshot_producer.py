"""The production of a snapshot, on any base and again for each retry of the commit.

`apply` writes the files that are not written yet, and returns what the commit must check and
change; it commits nothing. If another writer was first, it is called again on the refreshed base:
manifests are reused, and only the manifest list is new. `clean_up` deletes files that are not
used, and is called only when it is proven what was committed.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from icecomb.format.argument import checked_text
from icecomb.format.errors import (
    AlreadyCommittedError,
    CorruptFileError,
    NoSuchSnapshotError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.manifests.cache import written_lists
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    check_data_file,
)
from icecomb.format.manifests.manifest_list import (
    ManifestList,
    read_manifests,
    write_manifest_list,
)
from icecomb.format.manifests.writer import (
    EncodedEntry,
    ManifestWriter,
    assign_first_row_ids,
    assign_sequence_number,
)
from icecomb.format.operation.conflict import VectorConflictError
from icecomb.format.operation.summary import SnapshotSummary, snapshot_texts, with_totals
from icecomb.format.property.table_property import (
    MANIFEST_CODEC,
    MANIFEST_LEVEL,
    MANIFEST_TARGET_BYTES,
    SUMMARY_PARTITION_LIMIT,
    WAP_ENABLED,
)
from icecomb.format.spec.change.requirement import AssertRefSnapshotId, AssertTableUUID
from icecomb.format.spec.change.update import (
    AddSnapshotUpdate,
    Changes,
    SetSnapshotRefUpdate,
    time_after,
)
from icecomb.format.spec.column_history import reading_schema
from icecomb.format.spec.metadata_file import metadata_folder
from icecomb.format.spec.promotion import unlike_columns
from icecomb.format.spec.snapshot import MAIN_BRANCH, Snapshot
from icecomb.format.spec.transform import UnknownTransform, VoidTransform

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.entry_encoder import EntryEncoder
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.storage.file_io import FileIO


ROLL_EVERY: Final = 250


class SnapshotProducer(ABC):
    """The base class of all operations.

    Args:
        snapshot_properties: Additional keys for the snapshot summary; see `snapshot_texts`.
        branch: The branch to commit to; if it does not exist, it is created at the head of
            `main`.
        stage_only: Add the snapshot to the table without moving the branch; this also happens
            if the snapshot properties have a `wap.id` and the table property
            `write.wap.enabled` is true.

    Attributes:
        starting_snapshot_id: The snapshot after which commits are checked for conflicts, if
            any.
    """

    starting_snapshot_id: int | None = None
    writes_files: ClassVar[bool] = True

    def __init__(
        self,
        io: FileIO,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = MAIN_BRANCH,
        *,
        stage_only: bool = False,
    ) -> None:
        self.io = io
        self.branch = checked_text("name of a branch", branch)
        self.stage_only = stage_only
        self.snapshot_properties = snapshot_texts(snapshot_properties)
        self.commit_uuid = str(uuid.uuid4())
        self._snapshot_id: int | None = None
        self._attempt = 0
        self.is_committed = False
        self._manifest_count = 0
        self._written_manifests: list[str] = []
        self._listed: dict[str, frozenset[str]] = {}

    @property
    @abstractmethod
    def operation(self) -> str:
        """The snapshot's `operation`; known once `manifests` has run."""

    @abstractmethod
    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Return all manifests of the new snapshot, new ones without a sequence number."""

    @abstractmethod
    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        """Return the counts of what this operation changes; called after `manifests`."""

    @abstractmethod
    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Refuse the commit if it conflicts with other commits since the operation began.

        It raises ValidationError; a retry would not help.
        """

    @property
    def added_data_files(self) -> Sequence[DataFile]:
        """The data files that are added, but those that `append_encoded_files` adds."""
        return ()

    def is_staged(self, base: TableMetadata) -> bool:
        """Return whether all branches stay as they are: the snapshot is on none of them."""
        return self.stage_only or (is_audited(base) and WAP_ID in self.snapshot_properties)

    @property
    def snapshot_id(self) -> int:
        """The new snapshot's id; the same in all attempts."""
        if self._snapshot_id is None:
            self._snapshot_id = new_snapshot_id()
        return self._snapshot_id

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """The branch and `starting_snapshot_id`; None if there is none."""
        start = self.starting_snapshot_id
        return None if start is None else (self.branch, start)

    def apply(self, base: TableMetadata) -> Changes:
        """Write the files that a commit on this base still needs, and return its changes.

        It raises ValidationError if the operation does not fit the table, or is already committed;
        nothing new refers to it.
        """
        self.check_not_committed(base)
        parent = self._parent(base)
        check_branch_columns(base, parent, self.branch)
        self._draw_id(base)
        self.validate(base, parent)
        self._attempt += 1
        own = self.snapshot_id
        sequence_number = base.last_sequence_number + 1 if base.format_version > 1 else 0
        with self.io.side_by_side(metadata_folder(base)):
            manifests = [
                assign_sequence_number(manifest, own, sequence_number)
                for manifest in self.manifests(base, parent)
            ]
            has_row_ids = base.format_version > 2
            next_row_id = base.next_row_id
            if has_row_ids:
                manifests, next_row_id = self._with_row_ids(base, manifests)
            location, written = self._write_list(base, parent, manifests, sequence_number)
        snapshot = Snapshot(
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=None if parent is None else parent.snapshot_id,
            sequence_number=sequence_number,
            timestamp_ms=time_after(base),
            manifest_list=location,
            summary=self._full_summary(base, parent, manifests),
            schema_id=base.current_schema_id,
            first_row_id=base.next_row_id if has_row_ids else None,
            added_rows=next_row_id - base.next_row_id if has_row_ids else None,
        )
        written_lists(self.io).keep(base.table_uuid, snapshot, written)
        return self._changes(base, parent, snapshot)

    def _with_row_ids(
        self, base: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> tuple[list[ManifestFile], int]:
        """Return the manifests of a snapshot with first row ids, and the next row id after them.

        Lists of other writers have stated fewer rows than there are, by which two rows would get
        one id, and more, by which two seem to have one.
        """
        first = base.next_row_id
        manifests = self._with_own_counts(base, manifests, numbered=False)
        try:
            return assign_first_row_ids(manifests, first)
        except CorruptFileError:
            manifests = self._with_own_counts(base, manifests, numbered=True)
            return assign_first_row_ids(manifests, first)

    def _with_own_counts(
        self, base: TableMetadata, manifests: Sequence[ManifestFile], *, numbered: bool
    ) -> list[ManifestFile]:
        """Return the manifests of a snapshot, of which some get the counts of their entries.

        Args:
            numbered: Whether those with a first row id get them, or those without one.
        """
        from icecomb.format.manifests.decoder import counted
        from icecomb.format.manifests.reader import read_each_columns

        written = set(self._written_manifests)
        unproven = [
            manifest
            for manifest in manifests
            if manifest.content is ManifestContent.DATA
            and (manifest.first_row_id is not None) is numbered
            and manifest.manifest_path not in written
        ]
        own: dict[int, ManifestFile] = {}
        decoded = read_each_columns(self.io, unproven, base.spec_by_id)
        for manifest, columns in zip(unproven, decoded, strict=True):
            _check_rows_known(columns)
            own[id(manifest)] = counted(manifest, columns)
        return [own.get(id(manifest), manifest) for manifest in manifests]

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Delete written files that are not used; None proves that nothing was committed.

        Call it only on proof: if the outcome of a commit is unknown, nothing may be deleted.
        """
        if self.is_committed:
            return
        snapshot = None if committed is None else committed.snapshot_by_id(self.snapshot_id)
        self.is_committed = snapshot is not None
        kept: set[str] = set()
        if snapshot is not None:
            listed = self._listed.get(snapshot.manifest_list or "")
            if listed is None:
                return
            kept = {snapshot.manifest_list or "", *listed}
        elif committed is not None:
            # A transaction may expire a snapshot of its own, after it has built others on it.
            for other in committed.snapshots:
                kept.update(m.manifest_path for m in read_manifests(self.io, other))
        unused = [path for path in (*self._listed, *self._written_manifests) if path not in kept]
        self.io.delete(unused)
        self._listed = {path: listed for path, listed in self._listed.items() if path in kept}
        self._written_manifests = [path for path in self._written_manifests if path in kept]

    def write_manifests(
        self,
        base: TableMetadata,
        spec_id: int,
        entries: Iterable[ManifestEntry] | Iterable[DataFile] | Iterable[EncodedEntry],
        content: ManifestContent = ManifestContent.DATA,
        *,
        roll: bool = True,
    ) -> list[ManifestFile]:
        """Write entries of one partition spec to as many manifests as the target size requires.

        Args:
            entries: New files, or entries to keep or to mark as deleted; large numbers of them
                encoded by `entry_encoder`.
            roll: Whether more than one manifest may be written.
        """
        target = MANIFEST_TARGET_BYTES.of(base.properties)
        written: list[ManifestFile] = []
        writer: ManifestWriter | None = None
        for entry in entries:
            if writer is None:
                writer = self._new_writer(base, spec_id, content)
            if isinstance(entry, DataFile):
                writer.add(entry)
            elif isinstance(entry, EncodedEntry):
                writer.add_encoded(entry)
            else:
                writer.add_entry(entry)
            full = writer.entry_count % ROLL_EVERY == 0 and writer.size() >= target
            if roll and full:
                written.append(self._finish(base, writer))
                writer = None
        if writer is not None:
            written.append(self._finish(base, writer))
        return written

    def entry_encoder(
        self, base: TableMetadata, spec_id: int, content: ManifestContent
    ) -> EntryEncoder:
        """Return an encoder that prepares entries of other manifests for `write_manifests`."""
        from icecomb.format.manifests.entry_encoder import EntryEncoder

        spec = base.spec_by_id(spec_id)
        schema = self._schema_of(base, spec)
        return EntryEncoder(base.format_version, spec, schema, self.snapshot_id, content)

    def new_summary(self, base: TableMetadata) -> SnapshotSummary:
        """Return an empty count of changes."""
        return SnapshotSummary(base.schema(), SUMMARY_PARTITION_LIMIT.of(base.properties))

    def _schema_of(self, base: TableMetadata, spec: PartitionSpec) -> Schema:
        """Return the schema to write manifests of a spec with.

        Old schemas may be removed while files are partitioned by columns that only they have
        (Iceberg Java, RemoveSnapshots.cleanExpiredMetadata): their manifests know them.
        """
        from icecomb.format.manifests.decoder import manifest_schema

        schema = base.schema_of(spec)
        if _has_sources(schema, spec):
            return schema
        for manifest in parent_manifests(self.io, base, self._parent(base)):
            if manifest.partition_spec_id == spec.spec_id:
                written = manifest_schema(self.io.read(manifest.manifest_path))
                if written is not None and _has_sources(written, spec):
                    return written
        return schema

    def _parent(self, base: TableMetadata) -> Snapshot | None:
        ref = base.refs.get(self.branch)
        if ref is None:
            # Old files have no reference for main; other branches begin at the head of main, as in
            # Iceberg Java (SnapshotUtil.latestSnapshot).
            return base.current_snapshot()
        if ref.snapshot_ref_type != "branch":
            raise ValidationError(
                f"{self.branch!r} is a tag, only a branch takes commits",
                hint="Name a branch, or create one from this tag.",
            )
        return base.snapshot_by_id(ref.snapshot_id)

    def check_not_committed(self, base: TableMetadata) -> None:
        """Refuse to commit an operation that is already committed.

        It raises AlreadyCommittedError if an attempt with an unknown outcome was committed after
        all.
        """
        message = f"This operation is committed already, as snapshot {self.snapshot_id}"
        hint = "Begin a new one to make the same change again."
        if self.is_committed:
            raise ValidationError(message, hint=hint)
        if self._attempt and base.snapshot_by_id(self.snapshot_id) is not None:
            self.is_committed = True
            raise AlreadyCommittedError(message, hint=hint)

    def _draw_id(self, base: TableMetadata) -> None:
        # written manifests contain the id, so it is drawn again only before there are any
        while not self._written_manifests and base.snapshot_by_id(self.snapshot_id) is not None:
            self._snapshot_id = None

    def _write_list(
        self,
        base: TableMetadata,
        parent: Snapshot | None,
        manifests: Sequence[ManifestFile],
        sequence_number: int,
    ) -> tuple[str, ManifestList]:
        name = f"snap-{self.snapshot_id}-{self._attempt}-{self.commit_uuid}.avro"
        location = f"{metadata_folder(base)}/{name}"
        written = write_manifest_list(
            self.io,
            location,
            manifests,
            format_version=base.format_version,
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=None if parent is None else parent.snapshot_id,
            sequence_number=sequence_number,
            first_row_id=base.next_row_id,
            codec=MANIFEST_CODEC.of(base.properties),
            parent=_written(self.io, base, parent),
        )
        self._listed[location] = frozenset(manifest.manifest_path for manifest in manifests)
        return location, written

    def _full_summary(
        self, base: TableMetadata, parent: Snapshot | None, manifests: Sequence[ManifestFile]
    ) -> dict[str, str]:
        own = self.snapshot_id
        created = sum(manifest.added_snapshot_id == own for manifest in manifests)
        changes = {
            "operation": self.operation,
            **self.snapshot_properties,
            "manifests-created": str(created),
            "manifests-kept": str(len(manifests) - created),
            "manifests-replaced": str(self.replaced_manifest_count()),
            **self.summary(base),
        }
        before = None if parent is None else (parent.summary or {})
        return with_totals(changes, before)

    def replaced_manifest_count(self) -> int:
        """Return the number of the parent's manifests that were rewritten."""
        return 0

    def _changes(self, base: TableMetadata, parent: Snapshot | None, snapshot: Snapshot) -> Changes:
        updates: tuple[Any, ...] = (AddSnapshotUpdate(snapshot=snapshot),)
        requirements: tuple[Any, ...] = (AssertTableUUID(uuid=base.table_uuid),)
        if not self.is_staged(base):
            ref = base.refs.get(self.branch)
            is_new = ref is None and self.branch != MAIN_BRANCH
            parent_id = None if parent is None or is_new else parent.snapshot_id
            requirements += (AssertRefSnapshotId(ref=self.branch, snapshot_id=parent_id),)
            updates += (
                SetSnapshotRefUpdate(
                    ref_name=self.branch,
                    type="branch",
                    snapshot_id=snapshot.snapshot_id,
                    max_ref_age_ms=None if ref is None else ref.max_ref_age_ms,
                    max_snapshot_age_ms=None if ref is None else ref.max_snapshot_age_ms,
                    min_snapshots_to_keep=None if ref is None else ref.min_snapshots_to_keep,
                ),
            )
        return Changes(requirements=requirements, updates=updates)

    def _new_writer(
        self, base: TableMetadata, spec_id: int, content: ManifestContent
    ) -> ManifestWriter:
        spec = base.spec_by_id(spec_id)
        return ManifestWriter(
            base.format_version,
            spec,
            self._schema_of(base, spec),
            self.snapshot_id,
            content=content,
            codec=MANIFEST_CODEC.of(base.properties),
            level=MANIFEST_LEVEL.of(base.properties),
        )

    def _finish(self, base: TableMetadata, writer: ManifestWriter) -> ManifestFile:
        name = f"{self.commit_uuid}-m{self._manifest_count}.avro"
        self._manifest_count += 1
        location = f"{metadata_folder(base)}/{name}"
        manifest = writer.finish(self.io, location)
        self._written_manifests.append(location)
        return manifest


def new_snapshot_id() -> int:
    """Return a random positive 63-bit number."""
    drawn = uuid.uuid4().int
    return ((drawn >> 64) ^ drawn) & 0x7FFF_FFFF_FFFF_FFFF


def _has_sources(schema: Schema, spec: PartitionSpec) -> bool:
    return all(
        schema.contains(field.source_id)
        for field in spec.fields
        if not isinstance(field.transform, VoidTransform)
    )


def parent_manifests(
    io: FileIO, base: TableMetadata, parent: Snapshot | None
) -> list[ManifestFile]:
    """Return the manifests of the snapshot to build on, with all counts the format requires."""
    if parent is None:
        return []
    written = _written(io, base, parent)
    if written is not None:
        return written.manifests()
    io = io.to_copy()
    manifests = read_manifests(io, parent)
    return [
        with_counts(io, manifest) if base.format_version > 1 else manifest for manifest in manifests
    ]


def _written(io: FileIO, base: TableMetadata, parent: Snapshot | None) -> ManifestList | None:
    """Return the parent's list if this process wrote it in the same format version."""
    found = None if parent is None else written_lists(io).find(base.table_uuid, parent)
    return found if found is not None and found.format_version == base.format_version else None


def check_new_file(base: TableMetadata, file: DataFile) -> None:
    """Refuse a file that cannot be added to this table; the message names it and the reason."""
    check_data_file(file)
    spec = base.spec_by_id(file.spec_id)
    if file.content is DataFileContent.DATA:
        check_known_transforms(spec)
    fields = spec.fields
    if len(fields) != len(file.partition):
        raise ValidationError(
            f"File {file.file_path!r} has {len(file.partition)} partition values, "
            f"spec {file.spec_id} has {len(fields)} fields",
            hint="Describe the file by the partition spec it was written with.",
            path=file.file_path,
        )


def _check_rows_known(columns: ManifestColumns) -> None:
    """Refuse a live file whose writer did not know its number of rows (old imports of Avro)."""
    rows = columns.column("record_count").filter(columns.live).to_pylist()
    unknown = next((at for at, count in enumerate(rows) if count < 0), None)
    if unknown is not None:
        path = columns.column("file_path").filter(columns.live)[unknown].as_py()
        raise ValidationError(
            f"Cannot give row ids to file {path}: its number of rows is unknown",
            hint='Rewrite it first: rewrite_data_files(options={"rewrite-all": "true"}).',
            path=path,
        )


def check_known_transforms(spec: PartitionSpec) -> None:
    """Refuse new files of a spec with an unknown transform (spec: Partition Transforms)."""
    for field in spec.fields:
        if isinstance(field.transform, UnknownTransform):
            raise UnsupportedError(
                f"Cannot add files of partition spec {spec.spec_id}: the transform "
                f"{field.transform} of its field {field.name!r} is unknown",
                hint="Write with the engine that partitioned the table, or evolve the partition "
                "spec.",
            )


def with_counts(io: FileIO, manifest: ManifestFile) -> ManifestFile:
    """Return the manifest with its counts, read from its file if its list does not state them."""
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
        manifest.added_rows_count,
        manifest.existing_rows_count,
        manifest.deleted_rows_count,
    )
    return recounted(io, manifest) if None in counts else manifest


def recounted(io: FileIO, manifest: ManifestFile) -> ManifestFile:
    """Return the manifest with its counts, read from its file whatever its list states."""
    from icecomb.format.manifests.decoder import count_manifest

    return count_manifest(io.read(manifest.manifest_path), manifest)


@dataclass(frozen=True, slots=True)
class WrittenWith:
    """The schema and specs that files were written with, to compare with the table at commit."""

    schema: Schema
    specs: Mapping[int, PartitionSpec]

    @classmethod
    def of(cls, metadata: TableMetadata) -> WrittenWith:
        """Return the schema and specs that files of this table are currently written with."""
        return cls(metadata.schema(), metadata.specs())

    def check(self, now: TableMetadata) -> None:
        """Refuse a table in which the columns or specs of the files have another meaning."""
        check_written_schema(self.schema, now.schema())
        # cleaning up metadata may free the id of a spec, and the next spec may get it
        specs = now.specs()
        for spec_id, old in self.specs.items():
            new = specs.get(spec_id, old)
            if new.fields != old.fields:
                raise _refusal(f"partition spec {spec_id} is {new}, the files have {old}")

    def check_nulls(self, now: TableMetadata, files: Sequence[DataFile]) -> None:
        """Refuse files that may have nulls in columns which have become required."""
        if lacking := self.lacking(now, files):
            raise _refusal(lacking)

    def lacking(self, now: TableMetadata, files: Sequence[DataFile]) -> str | None:
        """Describe the first required column for which files may lack values."""
        if files and (missing := _missing(self.schema, now.schema())):
            return missing
        for field_id in self._required_since(now):
            if any((file.null_value_counts or {}).get(field_id) != 0 for file in files):
                name = now.schema().find_column_name(field_id)
                return f"column {name!r} is required now, and the rows may have nulls"
        return None

    def lacks_required(self, now: TableMetadata) -> bool:
        """Return whether rows written so may lack values of columns that are required now."""
        return bool(self._required_since(now)) or _missing(self.schema, now.schema()) is not None

    def _required_since(self, now: TableMetadata) -> list[int]:
        before, schema = self.schema, now.schema()
        if before == schema:
            return []
        return [
            field_id
            for field_id in sorted(before.field_ids & schema.field_ids)
            if schema.find_field(field_id).required and not before.find_field(field_id).required
        ]


def check_written_schema(written: Schema, now: Schema) -> None:
    """Refuse files whose columns have another meaning in the current schema.

    A schema that replaced theirs may have reused an id for a column of another type, may have
    another column under a name, which would be null in all rows, or may have required columns that
    older files lack.
    """
    if written == now:
        return
    if changed := changed_column(written, now):
        raise _refusal(changed)
    if missing := _missing(written, now):
        raise _refusal(missing)


def _missing(written: Schema, now: Schema) -> str | None:
    """Describe the first required column without a default that older files lack."""
    for field in now.fields:
        if (
            field.required
            and field.initial_default is None
            and not written.contains(field.field_id)
        ):
            return f"the rows have no column {field.name!r}, which is required now"
    return None


def changed_column(written: Schema, now: Schema) -> str | None:
    """Describe the first column that would be read with other values, or not under its name."""
    unlike = unlike_columns(written, now)
    for field_id in sorted(written.field_ids):
        old, name = written.find_field(field_id), written.find_column_name(field_id) or ""
        if field_id in unlike:
            field = now.find_field(field_id)
        elif not now.contains(field_id) and now.contains(name):
            field = now.find_field(name)
        else:
            continue
        return (
            f"column {name!r} is {field.field_type} (id {field.field_id}), the rows have "
            f"{old.field_type} (id {field_id}) there"
        )
    return None


def check_branch_columns(metadata: TableMetadata, head: Snapshot | None, branch: str) -> None:
    """Refuse to write to a branch that is read with other columns than the table has.

    `main` has the table's columns; files of it with other columns are refused when they are read.
    """
    if head is not None and branch != MAIN_BRANCH:
        check_moved(
            metadata,
            head,
            f"Cannot write to branch {branch!r}, which is of an older table",
            f"Read its rows by snapshot id {head.snapshot_id}, and write them to the table again; "
            "remove the branch, or point it to a snapshot of the current table.",
        )


def check_moved(metadata: TableMetadata, snapshot: Snapshot, refused: str, hint: str) -> None:
    """Refuse a snapshot whose values the current schema would read as other values."""
    own, now = reading_schema(metadata, snapshot), metadata.schema()
    if own is not now and (changed := changed_column(own, now)):
        raise ValidationError(f"{refused}: the table's {changed}", hint=hint)


def check_no_ids_since(base: TableMetadata, branch: str, start: int | None) -> None:
    """Refuse rows that were moved without ids to a table whose rows may have got ids since.

    The first commit after an upgrade to format version 3 gives ids to all rows of its branch.
    """
    head = base.snapshot_by_name(branch if branch in base.refs else MAIN_BRANCH)
    if base.format_version < 3 or head is None or head.snapshot_id == start:
        return
    raise VectorConflictError(
        f"Snapshot {head.snapshot_id} may have given ids to rows that were read without ids from "
        f"snapshot {start}, and would lose them",
        hint="Load the table again and repeat the operation.",
        snapshot_id=head.snapshot_id,
    )


def _refusal(what: str) -> ValidationError:
    return ValidationError(
        f"The table was changed while rows were written to it: {what}",
        hint="Load the table again and write the rows again.",
    )


WAP_ID: Final = "wap.id"
"""The summary key of a staged snapshot's id, chosen by its writer."""
PUBLISHED_WAP_ID: Final = "published-wap-id"
"""The summary key of the `WAP_ID` of the staged change that a snapshot published."""

ONTO_PARENT: Final = "icecomb.onto-parent"
"""The summary key that marks an append whose rows depend on the content of its parent."""


def is_audited(metadata: TableMetadata) -> bool:
    """Return whether the table's property `WAP_ENABLED` is true."""
    return WAP_ENABLED.of(metadata.properties)


def staged_snapshot(metadata: TableMetadata, wap_id: str) -> Snapshot:
    """Return the only snapshot that was staged under an id."""
    found = [s for s in metadata.snapshots if (s.summary or {}).get(WAP_ID) == wap_id]
    if not found:
        raise NoSuchSnapshotError(
            f"Nothing was staged under {WAP_ID} {wap_id!r}",
            hint="It may have expired; list the table's snapshots.",
        )
    if len(found) > 1:
        ids = ", ".join(str(snapshot.snapshot_id) for snapshot in found)
        raise ValidationError(
            f"{len(found)} snapshots were staged under {WAP_ID} {wap_id!r}: {ids}",
            hint="Cherry-pick one of them by its id.",
        )
    return found[0]
