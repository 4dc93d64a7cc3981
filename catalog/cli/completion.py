"""Completion of the command line by bash, zsh and fish, from the commands themselves.

The scripts are click's: at each press of the tab key they ask `icecomb`, which answers from its
commands, options and choices, so that a script is never outdated.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

from icecomb.catalog.cli.output.terminal import write_line

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.format.spec.snapshot import SnapshotRef

_SHELLS: Final = ("bash", "zsh", "fish")
_USE: Final = (
    '\b\nbash (4.4 or newer), in ~/.bashrc:  eval "$(icecomb completion bash)"\n'
    'zsh, in ~/.zshrc after compinit:    eval "$(icecomb completion zsh)"\n'
    "fish, in config.fish:               icecomb completion fish | source"
)
PATIENCE_SECONDS: Final = 1.0
_SHOWN: Final = 1000
# a completed word that is not one plain word to the shell might run code when enter is pressed
_PLAIN: Final = re.compile(r"[\w.][\w.\-]*")


@click.command(epilog=_USE)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete icecomb: commands, options, choices, tables."""
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has these three
    script = found(ctx.find_root().command, {}, "icecomb", "_ICECOMB_COMPLETE").source()
    for line in script.splitlines():
        write_line(line)


class _WholeWords(ShellComplete):
    """Completion of ``--output=js`` to ``--output=json``; click returns only the value."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("-"):
            for item in found:
                item.value = f"{option}={item.value}"
        return found


class _Bash(BashComplete, _WholeWords):
    """Completion for bash, which splits ``--output=js`` into three words."""

    _splits = False

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        if incomplete == "=" and args:
            self._splits = True
            return args[:-1], f"{args[-1]}="
        if len(args) > 1 and args[-1] == "=":
            self._splits = True
            return args[:-2], f"{args[-2]}={incomplete}"
        return args, incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        words = ShellComplete if self._splits else _WholeWords
        return words.get_completions(self, args, incomplete)


class _Zsh(ZshComplete, _WholeWords):
    """Completion by whole words for zsh."""


class _Fish(FishComplete, _WholeWords):
    """Completion by whole words for fish."""


for _shell in (_Bash, _Zsh, _Fish):
    add_completion_class(_shell)


class TableArgument(click.types.StringParamType):
    """An argument that is a table: names are completed from the catalog, folders by the shell.

    A catalog that does not answer within a second, or that would have to be started, completes
    nothing.
    """

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        if "/" in incomplete or incomplete.startswith((".", "~")):
            return [CompletionItem(incomplete, type="dir")]
        given = ctx.find_root().params

        def names() -> Iterator[str]:
            catalog = _catalog(given)
            return iter(()) if catalog is None else _names(catalog, incomplete)

        return _completions(names, incomplete)


class RefName(click.types.StringParamType):
    """An argument or option that is a branch or tag, or both, of the table named before it."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        # click does not assign arguments while the last word is an option without a value
        given, table = ctx.find_root().params, ctx.params.get("table") or next(iter(ctx.args), None)

        def names() -> Iterator[str]:
            refs = _refs(given, table) if isinstance(table, str) else {}
            return (name for name, ref in refs.items() if ref.snapshot_ref_type in self._kinds)

        return _completions(names, incomplete)


def _completions(names: Callable[[], Iterator[str]], incomplete: str) -> list[CompletionItem]:
    """Return the names that begin with the word, as far as they are found in time."""
    found: list[str] = []
    # a thread of its own: nothing may block the prompt
    asked = threading.Thread(target=_ask, args=(names, incomplete, found), daemon=True)
    asked.start()
    asked.join(PATIENCE_SECONDS)
    return [CompletionItem(name) for name in list(found)]


def _ask(names: Callable[[], Iterator[str]], incomplete: str, found: list[str]) -> None:
    # the command reports anything wrong with the catalog when it runs
    with suppress(Exception):
        for name in names():
            if name.startswith(incomplete) and _PLAIN.fullmatch(name):
                found.append(name)
            if len(found) >= _SHOWN:
                return


def _refs(given: dict[str, Any], table: str) -> Mapping[str, SnapshotRef]:
    """Return the branches and tags of a table, given by its name or folder."""
    from icecomb.catalog import open_table

    if "/" in table:
        return open_table(table).refs()
    catalog = _catalog(given)
    return {} if catalog is None else catalog.load_table(table).refs()


def _catalog(given: dict[str, Any]) -> Catalog | None:
    from icecomb.catalog.configuration.configuration import catalog_name, load_configuration
    from icecomb.catalog.loading import catalog_of

    settings = {key: given[key] for key in ("uri", "warehouse") if given.get(key) is not None}
    name = given.get("name") or catalog_name(settings)
    configuration = load_configuration(name, settings)
    return None if configuration.type == "local" else catalog_of(configuration)


def _names(catalog: Catalog, incomplete: str) -> Iterator[str]:
    """Yield the tables of the namespace that is typed already, or the namespaces."""
    namespace, dot, _ = incomplete.rpartition(".")
    if not dot:
        spaces = [".".join(space) for space in catalog.list_namespaces()]
        fitting = [space for space in spaces if space.startswith(incomplete)]
        if len(fitting) != 1:
            yield from fitting
            return
        (namespace,) = fitting
    yield from (".".join(table) for table in catalog.list_tables(tuple(namespace.split("."))))
