# The public names: what type checkers read, and where `lazy_names` loads each from.

from icecomb.format.errors import (
    CommitFailedError as CommitFailedError,
    CommitStateUnknownError as CommitStateUnknownError,
    ConfigurationError as ConfigurationError,
    ConflictError as ConflictError,
    CorruptFileError as CorruptFileError,
    ExpressionError as ExpressionError,
    FileAlreadyExistsError as FileAlreadyExistsError,
    FileExistsAlreadyError as FileExistsAlreadyError,
    FileIOError as FileIOError,
    FileMissingError as FileMissingError,
    IcecombError as IcecombError,
    JavaError as JavaError,
    LockTimeoutError as LockTimeoutError,
    MetastoreError as MetastoreError,
    MigrationError as MigrationError,
    MissingDependencyError as MissingDependencyError,
    NamespaceAlreadyExistsError as NamespaceAlreadyExistsError,
    NamespaceNotEmptyError as NamespaceNotEmptyError,
    NoSuchFileError as NoSuchFileError,
    NoSuchIcebergTableError as NoSuchIcebergTableError,
    NoSuchIcebergViewError as NoSuchIcebergViewError,
    NoSuchNamespaceError as NoSuchNamespaceError,
    NoSuchSnapshotError as NoSuchSnapshotError,
    NoSuchTableError as NoSuchTableError,
    NoSuchViewError as NoSuchViewError,
    SchemaError as SchemaError,
    TableAlreadyExistsError as TableAlreadyExistsError,
    UnsupportedError as UnsupportedError,
    ValidationError as ValidationError,
    ViewAlreadyExistsError as ViewAlreadyExistsError,
)
from icecomb.format.expressions.expression import (
    AlwaysFalse as AlwaysFalse,
    AlwaysTrue as AlwaysTrue,
    And as And,
    BooleanExpression as BooleanExpression,
    EqualTo as EqualTo,
    GreaterThan as GreaterThan,
    GreaterThanOrEqual as GreaterThanOrEqual,
    In as In,
    IsNaN as IsNaN,
    IsNull as IsNull,
    LessThan as LessThan,
    LessThanOrEqual as LessThanOrEqual,
    Not as Not,
    NotEqualTo as NotEqualTo,
    NotIn as NotIn,
    NotNaN as NotNaN,
    NotNull as NotNull,
    NotStartsWith as NotStartsWith,
    Or as Or,
    StartsWith as StartsWith,
)
from icecomb.format.expressions.term import (
    Reference as Reference,
    bucket as bucket,
    day as day,
    days as days,
    hour as hour,
    hours as hours,
    month as month,
    months as months,
    truncate as truncate,
    year as year,
    years as years,
)
from icecomb.format.manifests.manifest import (
    DataFile as DataFile,
    DataFileContent as DataFileContent,
    FileFormat as FileFormat,
    ManifestContent as ManifestContent,
    ManifestEntry as ManifestEntry,
    ManifestEntryStatus as ManifestEntryStatus,
    ManifestFile as ManifestFile,
    PartitionFieldSummary as PartitionFieldSummary,
)
from icecomb.format.rows.values.scan_task import FileScanTask as FileScanTask
from icecomb.format.scan.table_scan import (
    TableScan as TableScan,
)
from icecomb.format.spec.change.requirement import (
    AssertCreate as AssertCreate,
    AssertCurrentSchemaId as AssertCurrentSchemaId,
    AssertDefaultSortOrderId as AssertDefaultSortOrderId,
    AssertDefaultSpecId as AssertDefaultSpecId,
    AssertLastAssignedFieldId as AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId as AssertLastAssignedPartitionId,
    AssertRefSnapshotId as AssertRefSnapshotId,
    AssertTableUUID as AssertTableUUID,
)
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate as AddPartitionSpecUpdate,
    AddSchemaUpdate as AddSchemaUpdate,
    AddSnapshotUpdate as AddSnapshotUpdate,
    AddSortOrderUpdate as AddSortOrderUpdate,
    AssignUUIDUpdate as AssignUUIDUpdate,
    Changes as Changes,
    RemovePropertiesUpdate as RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate as RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate as RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate as SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate as SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate as SetDefaultSpecUpdate,
    SetLocationUpdate as SetLocationUpdate,
    SetPropertiesUpdate as SetPropertiesUpdate,
    SetSnapshotRefUpdate as SetSnapshotRefUpdate,
    UpgradeFormatVersionUpdate as UpgradeFormatVersionUpdate,
    update_table_metadata as update_table_metadata,
)
from icecomb.format.spec.metadata import (
    TableMetadata as TableMetadata,
    new_table_metadata as new_table_metadata,
)
from icecomb.format.spec.metadata_file import (
    read_metadata as read_metadata,
    write_metadata as write_metadata,
)
from icecomb.format.spec.name_mapping import (
    MappedField as MappedField,
    NameMapping as NameMapping,
    create_name_mapping as create_name_mapping,
)
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC as UNPARTITIONED_PARTITION_SPEC,
    PartitionField as PartitionField,
    PartitionSpec as PartitionSpec,
)
from icecomb.format.spec.schema import (
    Schema as Schema,
    assign_fresh_schema_ids as assign_fresh_schema_ids,
)
from icecomb.format.spec.snapshot import (
    MetadataLogEntry as MetadataLogEntry,
    Operation as Operation,
    Snapshot as Snapshot,
    SnapshotLogEntry as SnapshotLogEntry,
    SnapshotRef as SnapshotRef,
    SnapshotRefType as SnapshotRefType,
)
from icecomb.format.spec.sort import (
    UNSORTED_SORT_ORDER as UNSORTED_SORT_ORDER,
    NullOrder as NullOrder,
    SortDirection as SortDirection,
    SortField as SortField,
    SortOrder as SortOrder,
)
from icecomb.format.spec.transform import (
    BucketTransform as BucketTransform,
    DayTransform as DayTransform,
    HourTransform as HourTransform,
    IdentityTransform as IdentityTransform,
    MonthTransform as MonthTransform,
    Transform as Transform,
    TruncateTransform as TruncateTransform,
    UnknownTransform as UnknownTransform,
    VoidTransform as VoidTransform,
    YearTransform as YearTransform,
    parse_transform as parse_transform,
)
from icecomb.format.spec.types import (
    BinaryType as BinaryType,
    BooleanType as BooleanType,
    DateType as DateType,
    DecimalType as DecimalType,
    DoubleType as DoubleType,
    FixedType as FixedType,
    FloatType as FloatType,
    GeographyType as GeographyType,
    GeometryType as GeometryType,
    IcebergType as IcebergType,
    IntegerType as IntegerType,
    ListType as ListType,
    LongType as LongType,
    MapType as MapType,
    NestedField as NestedField,
    PrimitiveType as PrimitiveType,
    StringType as StringType,
    StructType as StructType,
    TimestampNanoType as TimestampNanoType,
    TimestampType as TimestampType,
    TimestamptzNanoType as TimestamptzNanoType,
    TimestamptzType as TimestamptzType,
    TimeType as TimeType,
    UnknownType as UnknownType,
    UUIDType as UUIDType,
    VariantType as VariantType,
    parse_type as parse_type,
)
from icecomb.format.storage.file_io import (
    FileIO as FileIO,
    register_file_system as register_file_system,
)
from icecomb.format.storage.file_system import FileStatus as FileStatus, FileSystem as FileSystem
from icecomb.format.storage.object_store.client import ObjectStatus as ObjectStatus
from icecomb.format.storage.object_store.file_system import (
    ObjectFileSystem as ObjectFileSystem,
)
from icecomb.format.storage.object_store.simple_client import (
    SimpleObjectClient as SimpleObjectClient,
)
from icecomb.format.variant.variant_array import (
    Variant as Variant,
    variants_from_arrow as variants_from_arrow,
    variants_to_arrow as variants_to_arrow,
)
