"""The command that adds existing files to a table."""

from __future__ import annotations

import time
from pathlib import Path

import click

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.argument.value import pairs
from icecomb.format.errors import ValidationError

_DUPLICATES = {"fail": "error", "skip": "skip"}


@click.command("add-files")
@click.argument("table")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="DB.TABLE|FOLDER",
    help="A Hive table, or a folder with Parquet, ORC and Avro files.",
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Add only the partitions of the source with this value; repeatable. Default all.",
)
@click.option(
    "--on-duplicate",
    type=click.Choice(sorted(_DUPLICATES)),
    default="fail",
    show_default=True,
    help="What to do with files that are already in the table.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=16, show_default=True, help="Files read at once."
)
@click.option("--dry-run", is_flag=True, help="Only count the files that would be read.")
@click.pass_obj
def add_files(
    application: Application,
    table: str,
    source: str,
    partitions: tuple[str, ...],
    *,
    on_duplicate: str,
    jobs: int,
    dry_run: bool,
) -> None:
    """Add the files of a Hive table or of a folder to TABLE, in place.

    No file is moved or rewritten; from then on they belong to both. Run the same command with
    --on-duplicate skip to add files that arrived since. TABLE is a name, or the folder of a
    file-system table.
    """
    from icecomb.catalog.migrate.applying.existing_files import files_of_folder, files_of_hive_table

    wanted = pairs("--partition", partitions, "COLUMN=VALUE")
    loaded = application.table(table)
    if wanted and not loaded.spec().fields:
        raise ValidationError(
            f"Table {table} is not partitioned: --partition has nothing to select",
            hint="Leave --partition out.",
        )
    if "/" in source:
        relative = source.startswith(".") or (":" not in source and not source.startswith("/"))
        folder = str(Path(source).absolute()) if relative else source.rstrip("/")
        files = files_of_folder(loaded.io, loaded.schema(), folder, wanted)
    else:
        from icecomb.catalog.identifier import database_and_table
        from icecomb.catalog.migrate.journal.context import MigrationContext

        name = database_and_table(source)
        work = MigrationContext(application.metastore(), *name, application.progress)
        files = files_of_hive_table(work, loaded.schema(), wanted)
    before, started = loaded.current_snapshot(), time.monotonic()
    if not dry_run:
        loaded.add_files(
            list(files),
            on_duplicate=_DUPLICATES[on_duplicate],
            partition=lambda path: files[path],
            parallelism=jobs,
        )
    after = loaded.current_snapshot()
    made = after if after is not None and after != before else None
    summary = (made.summary or {}) if made is not None else {}
    application.output.facts(
        {
            "table": table,
            "files found": len(files),
            "files added": int(summary.get("added-data-files", 0)),
            "rows added": int(summary.get("added-records", 0)),
            "partitions changed": int(summary.get("changed-partition-count", 0)),
            "snapshot": made.snapshot_id if made is not None else None,
            "seconds": round(time.monotonic() - started, 1),
        }
    )
    if dry_run:
        application.warn("dry run: leave --dry-run out to do it")
