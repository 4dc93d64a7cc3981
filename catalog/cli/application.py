"""The command group, its global options, and the printing of errors with an exit code."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

import click

from icecomb.catalog.cli.completion import RefName, TableArgument
from icecomb.catalog.cli.output.output import FORMS, Output
from icecomb.catalog.cli.output.progress import TerminalProgress
from icecomb.catalog.cli.output.terminal import write_help, write_line
from icecomb.format.errors import CommitStateUnknownError, IcecombError
from icecomb.format.printable_text import logged_to
from icecomb.format.property.property import similar
from icecomb.format.secret import without_secrets

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.table.table import Table
    from icecomb.format.storage.file_io import FileIO

OK: Final = 0
ERROR: Final = 1
USAGE: Final = 2
BLOCKED: Final = 3
UNKNOWN_COMMIT: Final = 4
INTERRUPTED: Final = 130

_NEW_LINES: Final = re.compile(r"\s*\n\s*")
_PLUGINS: Final = "icecomb.commands"
_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "namespaces": (
        "icecomb.catalog.cli.tables:namespaces",
        "List the namespaces (databases).",
    ),
    "tables": (
        "icecomb.catalog.cli.tables:tables",
        "List the Iceberg tables of a namespace, or of all.",
    ),
    "describe": (
        "icecomb.catalog.cli.tables:describe",
        "Show columns, partitioning, properties and size of a table.",
    ),
    "diff": (
        "icecomb.catalog.cli.difference:diff",
        "Compare two states of a table: files, rows, columns, layout, properties.",
    ),
    "health": (
        "icecomb.catalog.cli.health:health",
        "Show what makes tables slow or large, the worst first, and the commands that fix it.",
    ),
    "head": (
        "icecomb.catalog.cli.tables:head",
        "Show the first rows of a table.",
    ),
    "snapshots": (
        "icecomb.catalog.cli.tables:snapshots",
        "List the snapshots of a table, oldest first.",
    ),
    "history": (
        "icecomb.catalog.cli.metadata_tables:history",
        "List the snapshots that main pointed to, and since when, oldest first.",
    ),
    "files": (
        "icecomb.catalog.cli.metadata_tables:files",
        "List the data and delete files of a snapshot, by default the current one.",
    ),
    "partitions": (
        "icecomb.catalog.cli.metadata_tables:partitions",
        "List the partitions of a snapshot: rows, files, deletes, and the last change of each.",
    ),
    "manifests": (
        "icecomb.catalog.cli.metadata_tables:manifests",
        "List the manifests of a snapshot: the files they track, and the partitions of these.",
    ),
    "refs": (
        "icecomb.catalog.cli.metadata_tables:refs",
        "List the branches and tags of a table, and how long they and their snapshots are kept.",
    ),
    "schema": (
        "icecomb.catalog.cli.schema:schema",
        "Show the columns of a table with their ids, its partition spec and its sort order.",
    ),
    "properties": (
        "icecomb.catalog.cli.table_properties:properties",
        "List the properties of a table, or change some in one commit.",
    ),
    "rollback": (
        "icecomb.catalog.cli.rollback:rollback",
        "Set a branch back to an earlier state: a dry run unless --yes.",
    ),
    "branch": (
        "icecomb.catalog.cli.branches:branch",
        "List, create, replace, delete and fast-forward the branches of a table.",
    ),
    "tag": (
        "icecomb.catalog.cli.branches:tag",
        "List, create, replace and delete the tags of a table.",
    ),
    "add-files": (
        "icecomb.catalog.cli.added_files:add_files",
        "Add the files of a Hive table or of a folder to TABLE, in place.",
    ),
    "commit": (
        "icecomb.catalog.cli.repair:commit",
        "Settle a commit whose outcome is unknown.",
    ),
    "completion": (
        "icecomb.catalog.cli.completion:completion",
        "Print a script that lets a shell complete icecomb: commands, options, choices, tables.",
    ),
    "doctor": (
        "icecomb.catalog.cli.doctor:doctor",
        "Examine the catalog, or one TABLE of it: each problem comes with its remedy.",
    ),
    "drop": (
        "icecomb.catalog.cli.tables:drop",
        "Drop an Iceberg table from the catalog.",
    ),
    "locks": (
        "icecomb.catalog.cli.locks:locks",
        "List who holds locks, or break one whose holder is dead.",
    ),
    "maintain": (
        "icecomb.catalog.cli.maintain:maintain",
        "Expire snapshots, rewrite manifests and the like.",
    ),
    "metastore": (
        "icecomb.catalog.cli.metastore:metastore",
        "Run an embedded Hive metastore over a warehouse folder (--warehouse).",
    ),
    "migrate": (
        "icecomb.catalog.cli.migrate:migrate",
        "Convert a Hive table to an Iceberg table in place, compare, and revert.",
    ),
    "paimon": (
        "icecomb.catalog.cli.paimon:paimon",
        "Show and evolve the schemas of Apache Paimon tables, import append tables.",
    ),
    "register": (
        "icecomb.catalog.cli.repair:register",
        "Register an existing metadata file as TABLE.",
    ),
    "repair": (
        "icecomb.catalog.cli.repair:repair",
        "Point a table to another of its metadata files, or correct its entry.",
    ),
    "table": (
        "icecomb.catalog.cli.repair:table",
        "Bring a table to another location, or back from a copy of its folder.",
    ),
    "views": (
        "icecomb.catalog.cli.views:views",
        "Iceberg views of a metastore.",
    ),
}
"""The location and short help of each command, so that listing them imports none."""
_OTHER_TABLES: Final = frozenset(("migrate", "paimon"))
"""Commands whose tables are not Iceberg tables."""
_EPILOG: Final = (
    "\b\nExit codes: 0 done, 1 error, 2 wrong usage, 3 blocked, differences or problems found,\n"
    "4 unknown whether a commit happened, 130 interrupted."
)


@dataclass
class Application:
    """The global options; the object that every command gets.

    Attributes:
        named: The catalog to open, or None for the default one.
        uri: The metastore's address, or None for the configured one.
        warehouse: The root of new namespaces, or None for the configured one.
        form: The form of output on stdout, one of `FORMS`.
    """

    named: str | None
    uri: str | None
    warehouse: str | None
    form: str
    progress: TerminalProgress
    _open: list[Catalog] = field(default_factory=list)

    @functools.cached_property
    def catalog_name(self) -> str:
        """Name of the catalog to open."""
        from icecomb.catalog.configuration.configuration import catalog_name

        return self.named or catalog_name(self.arguments)

    @property
    def arguments(self) -> dict[str, str]:
        """The catalog's properties that the options set."""
        given = {"uri": self.uri, "warehouse": self.warehouse}
        return {key: value for key, value in given.items() if value is not None}

    def catalog(self) -> Catalog:
        """Open the catalog that the options name; it is closed when the command ends."""
        from icecomb.catalog import load_catalog

        catalog = load_catalog(self.catalog_name, **self.arguments)
        self._open.append(catalog)
        return catalog

    def metastore(self) -> HiveCatalog:
        """Open the catalog for a command that needs a Hive metastore, else UnsupportedError."""
        from icecomb.catalog.hive.catalog import on_metastore

        return on_metastore(self.catalog())

    def table(self, name: str) -> Table:
        """Load a table by its name; or, with a slash, by its folder or metadata file."""
        from icecomb.catalog import open_table

        return open_table(name) if "/" in name else self.catalog().load_table(name)

    def files(self) -> FileIO:
        """Open files by their locations, without a catalog, with the settings of such tables."""
        from icecomb.catalog.configuration.configuration import load_configuration
        from icecomb.format.storage.file_io import FileIO

        return FileIO(load_configuration("path", self.arguments).properties)

    def close(self) -> None:
        """Close the opened catalogs."""
        while self._open:
            self._open.pop().close()

    @property
    def output(self) -> Output:
        """A new writer of output to stdout."""
        return FORMS[self.form]()

    @property
    def text(self) -> bool:
        """Whether the output is text for people."""
        return self.form == "text"

    @property
    def json(self) -> bool:
        """Whether the output is one JSON document."""
        return self.form == "json"

    def complain(self, error: IcecombError) -> None:
        """Print an error without ending the command."""
        _complain(error.message, error.hint, ERROR)

    def warn(self, message: str) -> None:
        """Print a message to stderr that is not data."""
        write_line(message, sys.stderr)


_BOTH: Final = ("branch", "tag")
_REFS: Final = {"branch": ("branch",), "tag": ("tag",)}


class _Commands(click.Group):
    """The commands, imported when used; other packages add theirs as entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        plugins = {point.name for point in entry_points(group=_PLUGINS)}
        return sorted({*_COMMANDS, *plugins})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        found: Any = None
        if known := _COMMANDS.get(cmd_name):
            module, _, name = known[0].partition(":")
            found = getattr(import_module(module), name)
        else:
            for point in entry_points(group=_PLUGINS, name=cmd_name):
                found = point.load()
        if not isinstance(found, click.Command):
            return None
        for command in _leaves(found):
            own = any("--output" in parameter.opts for parameter in command.params)
            if not own and cmd_name != "completion":
                command.params.append(_OUTPUT)
            for parameter in command.params:
                if parameter.name in {"table", "tables"} and cmd_name not in _OTHER_TABLES:
                    parameter.type = TableArgument()
                elif kinds := _REFS.get(parameter.name or ""):
                    parameter.type = RefName(*kinds)
                elif parameter.name in {"name", "to"} and cmd_name in {"branch", "tag"}:
                    parameter.type = RefName(*({cmd_name} if parameter.name == "name" else _BOTH))
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))
        rows = []
        for name in names:
            known = _COMMANDS.get(name)
            command = click.Command(name, help=known[1]) if known else self.get_command(ctx, name)
            rows.append((name, command.get_short_help_str(width) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _leaves(command: click.Command) -> Iterator[click.Command]:
    """Return the command itself, or those of a group."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _leaves(inner)
    else:
        yield command


def _choose_form(ctx: click.Context, _: click.Parameter, form: str | None) -> None:
    if form is not None:
        ctx.obj.form = form


_OUTPUT: Final = click.Option(
    ["--output"],
    type=click.Choice(list(FORMS)),
    callback=_choose_form,
    expose_value=False,
    help="Output format of lists and facts.",
)


@click.group(
    cls=_Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--catalog",
    "name",
    help="The catalog to open; default as `icecomb doctor` shows.",
    metavar="NAME",
)
@click.option("--uri", help="The metastore, thrift://host:9083; default as configured.")
@click.option("--warehouse", help="The root folder of new namespaces; default as configured.")
@click.option(
    "--output",
    "form",
    type=click.Choice(list(FORMS)),
    default="text",
    show_default=True,
    help="Output format of lists and facts; allowed after the command, too.",
)
@click.version_option(package_name="icecomb")
@click.pass_context
def icecomb(
    ctx: click.Context, name: str | None, uri: str | None, warehouse: str | None, form: str
) -> None:
    """Apache Iceberg tables on the Hive metastore you already have.

    Data goes to stdout, progress and errors to stderr.
    """
    ctx.obj = Application(name, uri, warehouse, form, TerminalProgress())
    ctx.call_on_close(ctx.obj.close)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; see `icecomb.catalog.cli`."""
    with logged_to(sys.stderr):
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        result = icecomb.main(
            args=None if arguments is None else list(arguments),
            prog_name="icecomb",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except CommitStateUnknownError as error:
        return _complain(error.message, error.hint, UNKNOWN_COMMIT)
    except IcecombError as error:
        return _complain(error.message, error.hint, ERROR)
    except click.exceptions.NoArgsIsHelpError as error:
        write_help(error.ctx.get_help() if error.ctx else error.message)
        return USAGE
    except click.UsageError as error:
        hint = f"{error.ctx.command_path} --help" if error.ctx else "icecomb --help"
        return _complain(f"{error.format_message()}{_meant(error)}", hint, USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), None, ERROR)
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", None, INTERRUPTED)
    except BrokenPipeError:
        # The reader of stdout (head, less) is gone: nobody is left to print to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    except Exception as error:  # noqa: BLE001 - printed, by its trace where that is wanted
        if os.environ.get("ICECOMB_TRACE"):
            for line in without_secrets(traceback.format_exc()).splitlines():
                write_line(line, sys.stderr)
            return ERROR
        text = f"{type(error).__name__}: {error}"
        return _complain(text, "ICECOMB_TRACE=1 shows where it came from", ERROR)
    return result if isinstance(result, int) else OK


def _meant(error: click.UsageError) -> str:
    """Return a suggestion for a misspelled command, or an empty text."""
    context = error.ctx
    found = re.search("No such command '(.*)'", error.message)
    if found is None or context is None or not isinstance(context.command, click.Group):
        return ""
    group = context.command
    names = {name: name for name in group.list_commands(context)}
    for name in list(names):
        inner = group.get_command(context, name)
        for verb in inner.commands if isinstance(inner, click.Group) else ():
            names.setdefault(verb, f"{name} {verb}")
    near = [found[1]] if found[1] in names else similar(found[1], names)
    meant = [names[one] for one in near]
    return f" Did you mean {' or '.join(meant)}?" if meant else ""


def _complain(message: str, hint: str | None, code: int) -> int:
    write_line(f"error: {' '.join(without_secrets(message).split())}", sys.stderr)
    if hint:
        # blanks within a line may be those of a quoted name
        write_line(f"  hint: {_NEW_LINES.sub(' ', hint.strip())}", sys.stderr)
    return code
