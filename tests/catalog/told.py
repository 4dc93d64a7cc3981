"""What a program tells: output, log records, errors with their causes, reprs of its objects."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from typing import Any

import click

from icecomb.catalog import cli
from icecomb.catalog.cli.application import icecomb
from tests.secret_settings import leaks


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that its traceback shows: its cause, or what was handled then."""
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def error_text(error: BaseException) -> str:
    """Return all that an error says of itself, as programs and loggers show it."""
    said = [f"{each!r} {each} {each.args!r}" for each in chain(error)]
    facts = [repr(getattr(each, "context", "")) for each in chain(error)]
    return "\n".join([*traceback.format_exception(error), *said, *facts])


class Told(logging.Handler):
    """A handler of the root logger, and a runner of commands that keeps all that they tell.

    Attributes:
        found: Where a marker was told: by what, where, and the text around it.
        commands: How often each command ran.
    """

    def __init__(self, monkeypatch: Any, capfd: Any) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter())
        self.found: list[str] = []
        self._capfd = capfd
        self._records: list[str] = []
        self._errors: list[BaseException] = []
        main = icecomb.main

        def kept(*arguments: Any, **options: Any) -> Any:
            try:
                return main(*arguments, **options)
            except Exception as error:
                self._errors.append(error)
                raise

        monkeypatch.setattr(icecomb, "main", kept)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record as handlers write it, and its parts."""
        self._records.append(f"{record.name}: {self.format(record)} {vars(record)}")

    def run(self, where: str, *arguments: str) -> str:
        """Run a command, look through what it tells, and return what it printed."""
        self._capfd.readouterr()
        cli.main(arguments)
        out, err = self._capfd.readouterr()
        self.look(f"{where}, {' '.join(arguments)}", {"stdout": out, "stderr": err})
        return f"{out}{err}"

    def look(self, what: str, texts: dict[str, str]) -> None:
        """Look through texts, and through what was logged and raised since the last look."""
        told = {
            **texts,
            "log": "\n".join(self._records),
            "error": "\n".join(map(error_text, self._errors)),
        }
        self._records.clear()
        self._errors.clear()
        for place, text in told.items():
            self.found += [f"{what}: {place}, {leak}" for leak in leaks(text)]


def commands(group: click.Command = icecomb, *before: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command."""
    context = click.Context(group)
    inside = group.list_commands(context) if isinstance(group, click.Group) else []
    for name in inside:
        assert isinstance(group, click.Group)
        found = group.get_command(context, name)
        assert found is not None
        yield from commands(found, *before, name)
    if not inside:
        yield before


def command_line(words: tuple[str, ...], values: dict[str, str]) -> list[str]:
    """Return a command with all arguments that it needs, and `--yes` where it asks for that.

    Args:
        values: Values by the names of parameters; others get the first choice, or "1".
    """
    command: click.Command = icecomb
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    line = [*words]
    for parameter in command.params:
        choices = getattr(parameter.type, "choices", ("1",))
        value = values.get(parameter.name or "", str(choices[0]))
        if isinstance(parameter, click.Argument):
            line.append(value)
        elif parameter.required or parameter.name in values:
            line += [parameter.opts[0], value]
        elif parameter.name == "yes":
            line.append(parameter.opts[0])
    return line


def representations(thing: object, deepest: int = 6) -> Iterator[tuple[str, str]]:
    """Yield the type and the repr and str of an object, and of icecomb's own below it."""
    seen: dict[int, object] = {}
    waiting: list[tuple[object, int]] = [(thing, 0)]
    while waiting:
        each, depth = waiting.pop()
        if id(each) in seen or depth > deepest:
            continue
        seen[id(each)] = each
        if isinstance(each, dict):
            waiting += [(value, depth + 1) for value in each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += [(value, depth + 1) for value in each]
        if type(each).__module__.startswith("icecomb."):
            yield type(each).__qualname__, f"{each!r} {each}"
            names = [name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ())]
            held = {**getattr(each, "__dict__", {}), **{n: getattr(each, n, None) for n in names}}
            waiting += [(value, depth + 1) for value in held.values()]
