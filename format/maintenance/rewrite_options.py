"""Options for rewriting data and delete files, with Iceberg's names, defaults and refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.property.property import (
    Property,
    choice,
    flag,
    nearest,
    number,
    optional_number,
)
from icecomb.format.property.table_property import DELETE_TARGET_FILE_BYTES, TARGET_FILE_BYTES
from icecomb.format.rows.write.file_options import OUTPUT_SPEC

_MIN_SHARE: Final = 0.75
_MAX_SHARE: Final = 1.8
_LONG: Final = (1 << 63) - 1
_INT: Final = (1 << 31) - 1


class Strategy(Enum):
    """The strategy by which rows are arranged in new files; the values are Iceberg's names."""

    BIN_PACK = "binpack"
    SORT = "sort"
    Z_ORDER = "zorder"


class JobOrder(Enum):
    """The order in which groups are rewritten."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


class CopyMode(Enum):
    """The choice whether row groups are copied instead of decoded."""

    AUTO = "auto"
    NEVER = "never"
    REQUIRE = "require"


def _ratio(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError(text)
    return value


def _factor(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


_TARGET: Final = optional_number("target-file-size-bytes", "Target size of new files.", least=1)
_MIN: Final = optional_number("min-file-size-bytes", "Shorter files are rewritten.", least=0)
_MAX: Final = optional_number("max-file-size-bytes", "Longer files are rewritten.", least=1)
_MIN_INPUT: Final = number(
    "min-input-files", 5, "Number of files that makes a group worth rewriting.", least=1
)
_ALL: Final = flag("rewrite-all", "Whether all files are rewritten.", default=False)
_GROUP_BYTES: Final = number(
    "max-file-group-size-bytes", 100 << 30, "Maximum size of a group.", least=1
)
_GROUP_FILES: Final = number(
    "max-file-group-input-files", _LONG, "Maximum number of files in a group.", least=1
)
_CONCURRENT: Final = number(
    "max-concurrent-file-group-rewrites", 5, "Number of groups to rewrite at once.", least=1
)
_PARTIAL: Final = flag(
    "partial-progress.enabled", "Whether groups are committed before all are done.", default=False
)
_COMMITS: Final = number("partial-progress.max-commits", 10, "Maximum number of commits.", least=1)
_FAILED_COMMITS: Final = optional_number(
    "partial-progress.max-failed-commits", "Number of these commits that may fail.", least=0
)
_STARTING: Final = flag(
    "use-starting-sequence-number",
    "Whether equality deletes added meanwhile by other writers apply to the new files.",
    default=True,
)
_ORDER: Final = choice(
    "rewrite-job-order", [order.value for order in JobOrder], "Order of rewriting the groups."
)
_DANGLING: Final = flag(
    "remove-dangling-deletes",
    "Whether delete files that no longer apply to any data file are removed.",
    default=False,
)
_MAX_FILES: Final = optional_number(
    "max-files-to-rewrite", "Maximum number of files to rewrite.", least=1
)
_DELETES: Final = number(
    "delete-file-threshold", _INT, "Number of delete files at which a file is rewritten.", least=0
)
_DELETE_RATIO: Final = Property(
    "delete-ratio-threshold",
    0.3,
    "Share of rows known to be deleted at which a file is rewritten.",
    "a number above 0, at most 1",
    _ratio,
)
_COPY: Final = choice(
    "copy",
    [mode.value for mode in CopyMode],
    "Whether Parquet row groups are copied instead of decoded, if possible.",
)
_COMPRESSION: Final = Property(
    "compression-factor",
    1.0,
    "Factor by which new files are smaller; no effect here, where files are cut by their own size.",
    "a number above 0",
    _factor,
)
_SHUFFLE: Final = number(
    "shuffle-partitions-per-file", 1, "Shuffle partitions of Spark's sort; no effect here.", least=1
)
_Z_MOST: Final = number("max-output-size", _INT, "Bytes of a z-value that count.", least=1)
_Z_TEXT: Final = number(
    "var-length-contribution", 8, "Bytes of a string or binary value that count.", least=1
)

_ALWAYS: Final = (
    _TARGET, _MIN, _MAX, _MIN_INPUT, _ALL, _GROUP_BYTES, _GROUP_FILES, _CONCURRENT, _PARTIAL,
    _COMMITS, _FAILED_COMMITS, _STARTING, _ORDER, OUTPUT_SPEC, _DANGLING, _MAX_FILES, _DELETES,
    _DELETE_RATIO, _COPY,
)  # fmt: skip
_OF_POSITION_DELETES: Final = (
    _TARGET, _MIN, _MAX, _MIN_INPUT, _ALL, _GROUP_BYTES, _GROUP_FILES, _CONCURRENT, _PARTIAL,
    _COMMITS, _ORDER,
)  # fmt: skip
_OF_EQUALITY_DELETES: Final = (_TARGET, _CONCURRENT, _PARTIAL, _COMMITS, _FAILED_COMMITS, _ORDER)
_BY_STRATEGY: Final[Mapping[Strategy, tuple[Property[Any], ...]]] = {
    Strategy.BIN_PACK: (),
    Strategy.SORT: (_COMPRESSION, _SHUFFLE),
    Strategy.Z_ORDER: (_COMPRESSION, _SHUFFLE, _Z_MOST, _Z_TEXT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingOptions:
    """Options that decide which files are rewritten, and in which groups.

    Attributes:
        min_file_bytes: The size below which files are rewritten.
        max_file_bytes: The size above which files are rewritten.
        min_input_files: The number of files that makes a group worth rewriting.
        concurrent: The number of groups to rewrite at once.
        max_commits: The maximum number of commits; None for a single one, for which all groups
            must succeed.
        max_files: The maximum number of files to rewrite; None for all.
    """

    target_bytes: int
    min_file_bytes: int
    max_file_bytes: int
    min_input_files: int
    rewrite_all: bool
    group_bytes: int
    group_files: int
    concurrent: int
    max_commits: int | None
    max_failed_commits: int
    job_order: JobOrder
    max_files: int | None

    @property
    def longest_file_bytes(self) -> int:
        """The longest that a new file may get: halfway from the target to `max_file_bytes`."""
        return self.target_bytes + (self.max_file_bytes - self.target_bytes) // 2

    @classmethod
    def of_position_deletes(
        cls, given: Mapping[str, str], properties: Mapping[str, str]
    ) -> PackingOptions:
        """Parse the options, by Iceberg's names, for rewriting position delete files."""
        _check(given, _OF_POSITION_DELETES, "Rewriting position delete files")
        return cls(**_grouping(given, DELETE_TARGET_FILE_BYTES.of(properties)))

    @classmethod
    def of_equality_deletes(
        cls, given: Mapping[str, str], properties: Mapping[str, str]
    ) -> PackingOptions:
        """Parse the options for converting equality delete files; see `of_position_deletes`."""
        _check(given, _OF_EQUALITY_DELETES, "Converting equality delete files")
        return cls(**_grouping(given, DELETE_TARGET_FILE_BYTES.of(properties)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions(PackingOptions):
    """Options that decide which data files are rewritten, and how.

    Attributes:
        use_starting_sequence_number: Whether new files are as old as the snapshot that was
            read.
        output_spec_id: The partition spec of new files; None for the table's.
        delete_file_threshold: The number of delete files at which a file is rewritten.
        delete_ratio_threshold: The share of deleted rows at which a file is rewritten.
        z_bytes: The number of bytes of a z-value that count.
        z_text_bytes: The number of bytes of a string or binary value that count.
    """

    use_starting_sequence_number: bool
    output_spec_id: int | None
    remove_dangling_deletes: bool
    delete_file_threshold: int
    delete_ratio_threshold: float
    copy: CopyMode
    z_bytes: int
    z_text_bytes: int

    @classmethod
    def read(
        cls,
        given: Mapping[str, str],
        strategy: Strategy,
        properties: Mapping[str, str],
    ) -> RewriteOptions:
        """Parse the options, by Iceberg's names, for rewriting data files with a strategy."""
        options: tuple[Property[Any], ...] = (*_ALWAYS, *_BY_STRATEGY[strategy])
        _check(given, options, f"Rewriting data files by {strategy.value}")
        return cls(
            **_grouping(given, TARGET_FILE_BYTES.of(properties)),
            use_starting_sequence_number=_STARTING.of(given),
            output_spec_id=OUTPUT_SPEC.of(given),
            remove_dangling_deletes=_DANGLING.of(given),
            delete_file_threshold=_DELETES.of(given),
            delete_ratio_threshold=_DELETE_RATIO.of(given),
            copy=_copy(given, strategy),
            z_bytes=_Z_MOST.of(given),
            z_text_bytes=_Z_TEXT.of(given),
        )


def _check(given: Mapping[str, str], options: Iterable[Property[Any]], what: str) -> None:
    """Refuse options that are unknown or have an invalid value."""
    known = {one.key: one for one in options}
    if unknown := sorted(given.keys() - known.keys()):
        meant = nearest(unknown[0], known.keys())
        raise ValidationError(
            f"{what} has no option {unknown[0]}",
            hint=f"Did you mean {meant}?" if meant else f"There are {', '.join(sorted(known))}.",
        )
    for one in known.values():
        one.of(given)  # options without effect here are checked, too


def _grouping(given: Mapping[str, str], default_target: int) -> dict[str, Any]:
    """Return the values of `PackingOptions`."""
    target = _TARGET.of(given) or default_target
    least = _or(_MIN.of(given), int(target * _MIN_SHARE))
    most = _or(_MAX.of(given), int(target * _MAX_SHARE))
    if least >= target:
        raise _contradiction(_MIN.key, least, "not less than", target)
    if most <= target:
        raise _contradiction(_MAX.key, most, "not more than", target)
    commits = _COMMITS.of(given)
    return {
        "target_bytes": target,
        "min_file_bytes": least,
        "max_file_bytes": most,
        "min_input_files": _MIN_INPUT.of(given),
        "rewrite_all": _ALL.of(given),
        "group_bytes": _GROUP_BYTES.of(given),
        "group_files": _GROUP_FILES.of(given),
        "concurrent": _CONCURRENT.of(given),
        "max_commits": commits if _PARTIAL.of(given) else None,
        "max_failed_commits": _or(_FAILED_COMMITS.of(given), commits),
        "job_order": JobOrder(_ORDER.of(given)),
        "max_files": _MAX_FILES.of(given),
    }


def _copy(given: Mapping[str, str], strategy: Strategy) -> CopyMode:
    mode = CopyMode(_COPY.of(given))
    if strategy is Strategy.BIN_PACK:
        return mode
    if mode is CopyMode.REQUIRE:
        raise ValidationError(
            f"Option {_COPY.key} cannot be {mode.value} with {strategy.value}: rows are decoded to "
            "be reordered",
            hint=f"Leave {_COPY.key} out, or rewrite by {Strategy.BIN_PACK.value}.",
        )
    return CopyMode.NEVER


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _contradiction(key: str, value: int, how: str, target: int) -> ValidationError:
    return ValidationError(
        f"Option {key} is {value}, which is {how} the length of new files, {target}",
        hint=f"Set {key} or {_TARGET.key} so that they fit.",
    )
