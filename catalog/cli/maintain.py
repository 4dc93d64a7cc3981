"""Commands that keep a table fast and small, made of the declared actions."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final, get_args, get_type_hints

import click

from icecomb.catalog.cli.application import ERROR, OK, Application
from icecomb.catalog.cli.argument.value import instant, moment_of, pairs
from icecomb.catalog.maintenance.action import ACTIONS, MaintenanceAction

yes = click.option("--yes", is_flag=True, help="Do it; without --yes, only show what would happen.")


@click.group()
def maintain() -> None:
    """Expire snapshots, rewrite manifests and the like.

    Commands that delete are dry runs without --yes. TABLE is a name, or the folder of a file-system
    table.
    """


def _names(_: click.Context, __: click.Parameter, given: str | None) -> list[str] | None:
    """Read names separated by commas."""
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def _pairs(_: click.Context, option: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """Read pairs; several names may be equal to another one."""
    if option.metavar == "NAME=VALUE":
        return pairs(option.opts[0], given, option.metavar)
    found = {}
    for text in given:
        names, equals, target = text.partition("=")
        if not names or not equals or not target:
            raise click.UsageError(f"{option.opts[0]} {text}: write it as A,B=C")
        found[names] = target
    return found


def _listed(lines: Iterable[str]) -> Iterator[tuple[str, int | None]]:
    """Yield the files of a list: each line is a path, or a path, a comma and a time."""
    for line in lines:
        text = line.rstrip("\r\n")
        path, comma, last = text.rpartition(",")
        changed = moment_of(last) if comma else None
        if text:
            yield (text, None) if changed is None else (path, changed)


_FORMS: Final[dict[str, dict[str, Any]]] = {
    "datetime | int": {"callback": instant},
    "int": {"type": int},
    "Iterable[int]": {"type": int, "multiple": True},
    "Iterable[str]": {"callback": _names},
    "Iterable[str | tuple[str, datetime | int | None]]": {
        "type": click.File(encoding="utf-8"),
        "callback": lambda _, __, lines: lines and _listed(lines),
    },
    "Sequence[str]": {"multiple": True},
    "Mapping[str, str]": {"multiple": True, "callback": _pairs},
    "RowFilter": {},
    "bool": {"is_flag": True},
    "str": {},
}
"""What an option is to click, by the type of its argument in Python."""


def _option(argument: inspect.Parameter, shown: str) -> click.Option:
    """Return the option of an argument; see `MaintenanceAction.options`."""
    usage, _, text = shown.partition("  ")
    name, _, form = usage.partition(" ")
    kind = argument.annotation.removesuffix(" | None")
    given = dict(_FORMS[kind])
    if form.startswith("[x>="):
        given["type"] = click.IntRange(min=int(form[4:-1]))
    elif form.startswith("["):
        given["type"] = click.Choice(form[1:-1].split("|"), case_sensitive=False)
    elif kind == "bool":
        # an option without opposite changes what is the default
        is_set = argument.default and "/" not in name
        given["default"] = argument.default and not is_set
        given["callback"] = lambda _, __, on: on is not is_set
    else:
        given["metavar"] = form or None
    return click.Option([name, argument.name], help=text, **given)


def _command(action: MaintenanceAction) -> click.Command:
    """Return the command of an action."""
    given = [p.name for p in action.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    arguments = [click.Argument([name]) for name in ("table", *given)]
    options = [_option(action.parameters[name], shown) for name, shown in action.options.items()]
    return click.Command(
        action.name.replace("_", "-"),
        params=[*arguments, *options],
        callback=click.pass_obj(partial(_run, action)),
        help=action.help,
    )


def _run(action: MaintenanceAction, application: Application, table: str, **given: Any) -> int:
    """Run an action, print its result or plan, and return the exit code."""
    for name, parameter in action.parameters.items():
        if parameter.default is parameter.empty and given[name] is None:
            said = action.options[name].partition("  ")[2]
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is missing: {said}")
    if "progress" in action.parameters:
        given["progress"] = application.progress
    method = action.of(application.table(table))
    result = method(**{name: value for name, value in given.items() if value is not None})
    facts = {field.name: getattr(result, field.name) for field in fields(result)}
    is_dry = given.get("dry_run", False)
    if "plan" in facts:
        return _rewritten(application, table, type(result), facts, is_dry=is_dry)
    application.output.facts({"table": table, "dry_run": is_dry, **facts})
    if is_dry:
        application.warn("dry run: add --yes to do it")
    if failed := facts.get("failed_files"):
        application.warn(f"{len(failed)} files could not be deleted, such as {failed[0]}")
    return ERROR if failed else OK


def _rewritten(
    application: Application, table: str, kind: type, facts: dict[str, Any], *, is_dry: bool
) -> int:
    """Print the result or the plan of a rewrite, and return the exit code."""
    groups = facts.pop("plan")
    if is_dry:
        planned, _ = get_args(get_type_hints(kind)["plan"])
        names = [field.name for field in fields(planned)]
        application.output.table(names, [[getattr(one, name) for name in names] for one in groups])
        application.warn("dry run: leave --dry-run out to do it")
        return OK
    application.output.facts({"table": table, **facts})
    failed = facts.get("failed_data_files_count") or facts.get("failed_delete_files_count")
    if failed:
        application.warn(f"{failed} files were not rewritten")
    return ERROR if failed else OK


for _action in ACTIONS:
    maintain.add_command(_command(_action))
