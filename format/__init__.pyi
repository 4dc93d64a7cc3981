# The public names: what type checkers read, and where `lazy_names` loads each from.

from icecomb.format.errors import (
    CommitFailedError as CommitFailedError,
)
from icecomb.format.errors import (
    CommitStateUnknownError as CommitStateUnknownError,
)
from icecomb.format.errors import (
    ConfigurationError as ConfigurationError,
)
from icecomb.format.errors import (
    ConflictError as ConflictError,
)
from icecomb.format.errors import (
    CorruptFileError as CorruptFileError,
)
from icecomb.format.errors import (
    ExpressionError as ExpressionError,
)
from icecomb.format.errors import (
    FileAlreadyExistsError as FileAlreadyExistsError,
)
from icecomb.format.errors import (
    FileExistsAlreadyError as FileExistsAlreadyError,
)
from icecomb.format.errors import (
    FileIOError as FileIOError,
)
from icecomb.format.errors import (
    FileMissingError as FileMissingError,
)
from icecomb.format.errors import (
    IcecombError as IcecombError,
)
from icecomb.format.errors import (
    JavaError as JavaError,
)
from icecomb.format.errors import (
    LockTimeoutError as LockTimeoutError,
)
from icecomb.format.errors import (
    MetastoreError as MetastoreError,
)
from icecomb.format.errors import (
    MigrationError as MigrationError,
)
from icecomb.format.errors import (
    MissingDependencyError as MissingDependencyError,
)
from icecomb.format.errors import (
    NamespaceAlreadyExistsError as NamespaceAlreadyExistsError,
)
from icecomb.format.errors import (
    NamespaceNotEmptyError as NamespaceNotEmptyError,
)
from icecomb.format.errors import (
    NoSuchFileError as NoSuchFileError,
)
from icecomb.format.errors import (
    NoSuchIcebergTableError as NoSuchIcebergTableError,
)
from icecomb.format.errors import (
    NoSuchIcebergViewError as NoSuchIcebergViewError,
)
from icecomb.format.errors import (
    NoSuchNamespaceError as NoSuchNamespaceError,
)
from icecomb.format.errors import (
    NoSuchSnapshotError as NoSuchSnapshotError,
)
from icecomb.format.errors import (
    NoSuchTableError as NoSuchTableError,
)
from icecomb.format.errors import (
    NoSuchViewError as NoSuchViewError,
)
from icecomb.format.errors import (
    SchemaError as SchemaError,
)
from icecomb.format.errors import (
    TableAlreadyExistsError as TableAlreadyExistsError,
)
from icecomb.format.errors import (
    UnsupportedError as UnsupportedError,
)
from icecomb.format.errors import (
    ValidationError as ValidationError,
)
from icecomb.format.errors import (
    ViewAlreadyExistsError as ViewAlreadyExistsError,
)
from icecomb.format.expressions.expression import (
    AlwaysFalse as AlwaysFalse,
)
from icecomb.format.expressions.expression import (
    AlwaysTrue as AlwaysTrue,
)
from icecomb.format.expressions.expression import (
    And as And,
)
from icecomb.format.expressions.expression import (
    BooleanExpression as BooleanExpression,
)
from icecomb.format.expressions.expression import (
    EqualTo as EqualTo,
)
from icecomb.format.expressions.expression import (
    GreaterThan as GreaterThan,
)
from icecomb.format.expressions.expression import (
    GreaterThanOrEqual as GreaterThanOrEqual,
)
from icecomb.format.expressions.expression import (
    In as In,
)
from icecomb.format.expressions.expression import (
    IsNaN as IsNaN,
)
from icecomb.format.expressions.expression import (
    IsNull as IsNull,
)
from icecomb.format.expressions.expression import (
    LessThan as LessThan,
)
from icecomb.format.expressions.expression import (
    LessThanOrEqual as LessThanOrEqual,
)
from icecomb.format.expressions.expression import (
    Not as Not,
)
from icecomb.format.expressions.expression import (
    NotEqualTo as NotEqualTo,
)
from icecomb.format.expressions.expression import (
    NotIn as NotIn,
)
from icecomb.format.expressions.expression import (
    NotNaN as NotNaN,
)
from icecomb.format.expressions.expression import (
    NotNull as NotNull,
)
from icecomb.format.expressions.expression import (
    NotStartsWith as NotStartsWith,
)
from icecomb.format.expressions.expression import (
    Or as Or,
)
from icecomb.format.expressions.expression import (
    StartsWith as StartsWith,
)
from icecomb.format.expressions.term import (
    Reference as Reference,
)
from icecomb.format.expressions.term import (
    bucket as bucket,
)
from icecomb.format.expressions.term import (
    day as day,
)
from icecomb.format.expressions.term import (
    days as days,
)
from icecomb.format.expressions.term import (
    hour as hour,
)
from icecomb.format.expressions.term import (
    hours as hours,
)
from icecomb.format.expressions.term import (
    month as month,
)
from icecomb.format.expressions.term import (
    months as months,
)
from icecomb.format.expressions.term import (
    truncate as truncate,
)
from icecomb.format.expressions.term import (
    year as year,
)
from icecomb.format.expressions.term import (
    years as years,
)
from icecomb.format.manifests.manifest import (
    DataFile as DataFile,
)
from icecomb.format.manifests.manifest import (
    DataFileContent as DataFileContent,
)
from icecomb.format.manifests.manifest import (
    FileFormat as FileFormat,
)
from icecomb.format.manifests.manifest import (
    ManifestContent as ManifestContent,
)
from icecomb.format.manifests.manifest import (
    ManifestEntry as ManifestEntry,
)
from icecomb.format.manifests.manifest import (
    ManifestEntryStatus as ManifestEntryStatus,
)
from icecomb.format.manifests.manifest import (
    ManifestFile as ManifestFile,
)
from icecomb.format.manifests.manifest import (
    PartitionFieldSummary as PartitionFieldSummary,
)
from icecomb.format.rows.values.scan_task import FileScanTask as FileScanTask
from icecomb.format.scan.table_scan import (
    TableScan as TableScan,
)
from icecomb.format.spec.change.requirement import AssertCreate as AssertCreate
from icecomb.format.spec.change.requirement import AssertCurrentSchemaId as AssertCurrentSchemaId
from icecomb.format.spec.change.requirement import (
    AssertDefaultSortOrderId as AssertDefaultSortOrderId,
)
from icecomb.format.spec.change.requirement import AssertDefaultSpecId as AssertDefaultSpecId
from icecomb.format.spec.change.requirement import (
    AssertLastAssignedFieldId as AssertLastAssignedFieldId,
)
from icecomb.format.spec.change.requirement import (
    AssertLastAssignedPartitionId as AssertLastAssignedPartitionId,
)
from icecomb.format.spec.change.requirement import AssertRefSnapshotId as AssertRefSnapshotId
from icecomb.format.spec.change.requirement import AssertTableUUID as AssertTableUUID
from icecomb.format.spec.change.update import AddPartitionSpecUpdate as AddPartitionSpecUpdate
from icecomb.format.spec.change.update import AddSchemaUpdate as AddSchemaUpdate
from icecomb.format.spec.change.update import AddSnapshotUpdate as AddSnapshotUpdate
from icecomb.format.spec.change.update import AddSortOrderUpdate as AddSortOrderUpdate
from icecomb.format.spec.change.update import AssignUUIDUpdate as AssignUUIDUpdate
from icecomb.format.spec.change.update import Changes as Changes
from icecomb.format.spec.change.update import RemovePropertiesUpdate as RemovePropertiesUpdate
from icecomb.format.spec.change.update import RemoveSnapshotRefUpdate as RemoveSnapshotRefUpdate
from icecomb.format.spec.change.update import RemoveSnapshotsUpdate as RemoveSnapshotsUpdate
from icecomb.format.spec.change.update import SetCurrentSchemaUpdate as SetCurrentSchemaUpdate
from icecomb.format.spec.change.update import SetDefaultSortOrderUpdate as SetDefaultSortOrderUpdate
from icecomb.format.spec.change.update import SetDefaultSpecUpdate as SetDefaultSpecUpdate
from icecomb.format.spec.change.update import SetLocationUpdate as SetLocationUpdate
from icecomb.format.spec.change.update import SetPropertiesUpdate as SetPropertiesUpdate
from icecomb.format.spec.change.update import SetSnapshotRefUpdate as SetSnapshotRefUpdate
from icecomb.format.spec.change.update import (
    UpgradeFormatVersionUpdate as UpgradeFormatVersionUpdate,
)
from icecomb.format.spec.change.update import update_table_metadata as update_table_metadata
from icecomb.format.spec.metadata import (
    TableMetadata as TableMetadata,
)
from icecomb.format.spec.metadata import (
    new_table_metadata as new_table_metadata,
)
from icecomb.format.spec.metadata_file import (
    read_metadata as read_metadata,
)
from icecomb.format.spec.metadata_file import (
    write_metadata as write_metadata,
)
from icecomb.format.spec.name_mapping import (
    MappedField as MappedField,
)
from icecomb.format.spec.name_mapping import (
    NameMapping as NameMapping,
)
from icecomb.format.spec.name_mapping import (
    create_name_mapping as create_name_mapping,
)
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC as UNPARTITIONED_PARTITION_SPEC,
)
from icecomb.format.spec.partition import (
    PartitionField as PartitionField,
)
from icecomb.format.spec.partition import (
    PartitionSpec as PartitionSpec,
)
from icecomb.format.spec.schema import (
    Schema as Schema,
)
from icecomb.format.spec.schema import (
    assign_fresh_schema_ids as assign_fresh_schema_ids,
)
from icecomb.format.spec.snapshot import (
    MetadataLogEntry as MetadataLogEntry,
)
from icecomb.format.spec.snapshot import (
    Operation as Operation,
)
from icecomb.format.spec.snapshot import (
    Snapshot as Snapshot,
)
from icecomb.format.spec.snapshot import (
    SnapshotLogEntry as SnapshotLogEntry,
)
from icecomb.format.spec.snapshot import (
    SnapshotRef as SnapshotRef,
)
from icecomb.format.spec.snapshot import (
    SnapshotRefType as SnapshotRefType,
)
from icecomb.format.spec.sort import (
    UNSORTED_SORT_ORDER as UNSORTED_SORT_ORDER,
)
from icecomb.format.spec.sort import (
    NullOrder as NullOrder,
)
from icecomb.format.spec.sort import (
    SortDirection as SortDirection,
)
from icecomb.format.spec.sort import (
    SortField as SortField,
)
from icecomb.format.spec.sort import (
    SortOrder as SortOrder,
)
from icecomb.format.spec.transform import (
    BucketTransform as BucketTransform,
)
from icecomb.format.spec.transform import (
    DayTransform as DayTransform,
)
from icecomb.format.spec.transform import (
    HourTransform as HourTransform,
)
from icecomb.format.spec.transform import (
    IdentityTransform as IdentityTransform,
)
from icecomb.format.spec.transform import (
    MonthTransform as MonthTransform,
)
from icecomb.format.spec.transform import (
    Transform as Transform,
)
from icecomb.format.spec.transform import (
    TruncateTransform as TruncateTransform,
)
from icecomb.format.spec.transform import (
    UnknownTransform as UnknownTransform,
)
from icecomb.format.spec.transform import (
    VoidTransform as VoidTransform,
)
from icecomb.format.spec.transform import (
    YearTransform as YearTransform,
)
from icecomb.format.spec.transform import (
    parse_transform as parse_transform,
)
from icecomb.format.spec.types import (
    BinaryType as BinaryType,
)
from icecomb.format.spec.types import (
    BooleanType as BooleanType,
)
from icecomb.format.spec.types import (
    DateType as DateType,
)
from icecomb.format.spec.types import (
    DecimalType as DecimalType,
)
from icecomb.format.spec.types import (
    DoubleType as DoubleType,
)
from icecomb.format.spec.types import (
    FixedType as FixedType,
)
from icecomb.format.spec.types import (
    FloatType as FloatType,
)
from icecomb.format.spec.types import (
    GeographyType as GeographyType,
)
from icecomb.format.spec.types import (
    GeometryType as GeometryType,
)
from icecomb.format.spec.types import (
    IcebergType as IcebergType,
)
from icecomb.format.spec.types import (
    IntegerType as IntegerType,
)
from icecomb.format.spec.types import (
    ListType as ListType,
)
from icecomb.format.spec.types import (
    LongType as LongType,
)
from icecomb.format.spec.types import (
    MapType as MapType,
)
from icecomb.format.spec.types import (
    NestedField as NestedField,
)
from icecomb.format.spec.types import (
    PrimitiveType as PrimitiveType,
)
from icecomb.format.spec.types import (
    StringType as StringType,
)
from icecomb.format.spec.types import (
    StructType as StructType,
)
from icecomb.format.spec.types import (
    TimestampNanoType as TimestampNanoType,
)
from icecomb.format.spec.types import (
    TimestampType as TimestampType,
)
from icecomb.format.spec.types import (
    TimestamptzNanoType as TimestamptzNanoType,
)
from icecomb.format.spec.types import (
    TimestamptzType as TimestamptzType,
)
from icecomb.format.spec.types import (
    TimeType as TimeType,
)
from icecomb.format.spec.types import (
    UnknownType as UnknownType,
)
from icecomb.format.spec.types import (
    UUIDType as UUIDType,
)
from icecomb.format.spec.types import (
    VariantType as VariantType,
)
from icecomb.format.spec.types import (
    parse_type as parse_type,
)
from icecomb.format.storage.file_io import (
    FileIO as FileIO,
)
from icecomb.format.storage.file_io import (
    register_file_system as register_file_system,
)
from icecomb.format.storage.file_system import FileStatus as FileStatus
from icecomb.format.storage.file_system import FileSystem as FileSystem
from icecomb.format.storage.object_store.client import ObjectStatus as ObjectStatus
from icecomb.format.storage.object_store.file_system import (
    ObjectFileSystem as ObjectFileSystem,
)
from icecomb.format.storage.object_store.simple_client import (
    SimpleObjectClient as SimpleObjectClient,
)
from icecomb.format.variant.variant_array import Variant as Variant
from icecomb.format.variant.variant_array import (
    variants_from_arrow as variants_from_arrow,
)
from icecomb.format.variant.variant_array import (
    variants_to_arrow as variants_to_arrow,
)
