"""Completion: the scripts are run by the real shells where they are installed."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog, loading
from icecomb.catalog.cli import completion
from icecomb.catalog.cli.application import icecomb
from icecomb.catalog.cli.completion import TableArgument

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables with `icecomb` on the path, and the catalog `files` with `db.t` and `db.other`."""
    command = tmp_path / "bin" / "icecomb"
    command.parent.mkdir()
    patient = "completion.PATIENCE_SECONDS = 60"  # however busy the machine is
    main = (
        f"import sys; from icecomb.catalog.cli import completion, main; {patient}; sys.exit(main())"
    )
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{main}" "$@"\n')
    command.chmod(0o755)
    lake = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    for name in ("t", "other"):
        lake.create_table(f"db.{name}", pa.schema([("id", pa.int64())]))
    return {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "ICECOMB_CATALOG__FILES__TYPE": "hadoop",
        "ICECOMB_CATALOG__FILES__WAREHOUSE": str(tmp_path / "lake"),
    }


def installed(shell: str) -> str:
    """The shell's program; the test is left out where there is none, or bash is as old as macOS's."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    if shell == "bash":
        version = subprocess.check_output([found, "-c", "echo $BASH_VERSION"], text=True)
        if tuple(map(int, version.split(".")[:2])) < (4, 4):
            pytest.skip(f"bash {version} is older than 4.4")
    return found


def choices(*command: str) -> list[str]:
    """The commands of a group, from the parser itself."""
    found: click.Command = icecomb
    for word in command:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    assert isinstance(found, click.Group)
    return sorted(found.list_commands(click.Context(found)))


COMMANDS: list[tuple[list[str], list[str]]] = [
    (["icecomb", "mainta"], ["maintain"]),
    (["icecomb", ""], choices()),
    (["icecomb", "maintain", ""], choices("maintain")),
    (["icecomb", "branch", ""], choices("branch")),
    (["icecomb", "locks", "b"], ["break"]),
    (["icecomb", "--output", ""], ["text", "json", "csv"]),
    (["icecomb", "files", "db.t", "--output", "c"], ["csv"]),
    (["icecomb", "files", "--br"], ["--branch"]),
    (["icecomb", "completion", ""], list(SHELLS)),
    (["icecomb", "maintain", "remove-orphan-files", "--prefix-mismatch-mode", "i"], ["ignore"]),
    (["icecomb", "--catalog", "files", "describe", "d"], ["db.other", "db.t"]),
    (["icecomb", "--catalog", "files", "tag", "create", "db.o"], ["db.other"]),
    (["icecomb", "--catalog", "files", "maintain", "expire-snapshots", "db.t"], ["db.t"]),
    (["icecomb", "--catalog", "files", "describe", "nope."], []),
    (["icecomb", "--catalog", "misspelt", "describe", "d"], []),
    (["icecomb", "--catalog", "files", "paimon", "history", "d"], []),
]


@pytest.mark.parametrize(("words", "expected"), COMMANDS, ids=[" ".join(w) for w, _ in COMMANDS])
def test_commands_options_choices_and_tables_are_completed(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    expected: list[str],
) -> None:
    for name in environment.keys() - os.environ.keys():
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setattr(completion, "PATIENCE_SECONDS", 60)
    bash = completion._Bash(icecomb, {}, "icecomb", "_ICECOMB_COMPLETE")
    found = [item.value for item in bash.get_completions(words[1:-1], words[-1])]
    assert sorted(found) == sorted(expected)


BY_BASH = {"icecomb mainta", "icecomb --output ", "icecomb --catalog files describe d"}
"""A command, a choice and a table: the gate asks the shell for these."""


@pytest.mark.gate("starts a shell and Python twice")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            words,
            expected,
            id=" ".join(words),
            marks=[] if " ".join(words) in BY_BASH else pytest.mark.full("all words by a shell"),
        )
        for words, expected in COMMANDS
    ],
)
def test_bash_completes_commands_options_choices_and_tables(
    environment: dict[str, str], words: list[str], expected: list[str]
) -> None:
    script = (
        'eval "$(icecomb completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_icecomb_completion icecomb; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    found = subprocess.run(
        [installed("bash"), "--norc", "-c", script, "bash", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.stderr == ""
    assert sorted(found.stdout.split()) == sorted(expected)


@pytest.mark.gate("starts a shell, and Python several times")
def test_fish_completes_the_same(environment: dict[str, str]) -> None:
    program = installed("fish")
    script = "icecomb completion fish | source; complete -C $argv[1]"
    for words, expected in COMMANDS:
        found = subprocess.run(
            [program, "--no-config", "-c", script, " ".join(words)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        lines = [line.partition("\t")[0] for line in found.stdout.splitlines() if line]
        assert sorted(lines) == sorted(expected), words


class Terminal:
    """An interactive shell, at which keys are pressed."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._shown = b""
        self._process, self._keys = pty.fork()
        if self._process == 0:
            os.execve(arguments[0], arguments, environment)  # noqa: S606 - it is the shell

    def press(self, keys: str, until: str) -> str:
        """Press keys, and wait until the terminal shows something; what it shows without colours."""
        self._shown = b""
        os.write(self._keys, keys.encode())
        while until not in self.text:
            ready, _, _ = select.select([self._keys], [], [], 60)
            assert ready, f"{until!r} does not come: {self.text!r}"
            self._shown += os.read(self._keys, 4096)
        return self.text

    @property
    def text(self) -> str:
        """What was shown since the last keys."""
        return re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", self._shown.decode(errors="replace"))

    def close(self) -> None:
        """End the shell."""
        os.close(self._keys)
        os.kill(self._process, 9)
        os.waitpid(self._process, 0)


@pytest.fixture(params=["bash", "zsh"])
def terminal(
    request: pytest.FixtureRequest, environment: dict[str, str]
) -> Iterator[tuple[str, Terminal]]:
    """A shell that took the script as its help says."""
    shell = request.param
    program = installed(shell)
    plain = ["--norc", "--noprofile"] if shell == "bash" else ["-f"]
    found = Terminal([program, *plain, "-i"], environment)
    first = "" if shell == "bash" else "autoload -Uz compinit; compinit -u -D; "
    first = f"PS1='$ '; {first}"
    found.press(f'{first}eval "$(icecomb completion {shell})"; echo rea""dy\n', "ready\r\n")
    found.press("\n", "$ ")
    yield shell, found
    found.close()


@pytest.mark.gate("starts a shell, and Python several times")
def test_the_tab_key_completes_in_a_terminal(terminal: tuple[str, Terminal]) -> None:
    _, keys = terminal
    for typed, shown in (
        ("icecomb mainta\t", "icecomb maintain "),
        ("icecomb --output=js\t", "icecomb --output=json "),
        ("icecomb --catalog files describe db.o\t", "describe db.other "),
    ):
        assert shown in keys.press(typed, shown)
        keys.press("\x15\n", "$ ")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_asks_icecomb_itself(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script, err = capfd.readouterr()
    assert err == ""
    assert f"_ICECOMB_COMPLETE={shell}_complete" in script
    registered = {
        "bash": "complete -o nosort -F _icecomb_completion icecomb",
        "zsh": "compdef _icecomb_completion icecomb",
        "fish": "complete --no-files --command icecomb",
    }
    assert registered[shell] in script
    if shell == "bash":
        program = installed("bash")
        subprocess.run([program, "-n"], input=script, text=True, check=True)


@pytest.mark.gate("starts Python three times")
@pytest.mark.parametrize("shell", SHELLS)
def test_the_answers_are_those_of_the_protocol_of_each_shell(
    shell: str, environment: dict[str, str]
) -> None:
    def answered(words: str, count: int) -> list[str]:
        told = {
            "bash": {"COMP_CWORD": str(count)},
            "zsh": {"COMP_CWORD": str(count)},
            "fish": {"COMP_CWORD": words.rpartition(" ")[2]},
        }
        found = subprocess.run(
            [str(shutil.which("icecomb", path=environment["PATH"]))],
            env={
                **environment,
                "_ICECOMB_COMPLETE": f"{shell}_complete",
                "COMP_WORDS": words,
                **told[shell],
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert found.stderr == ""
        return found.stdout.split("\n")

    first = {"bash": "plain,maintain", "zsh": "maintain", "fish": "plain,maintain"}
    assert any(line.startswith(first[shell]) for line in answered("icecomb mainta", 1))
    folder = {"bash": "dir,/some/x", "zsh": "/some/x", "fish": "dir,/some/x"}
    assert folder[shell] in answered("icecomb describe /some/x", 2)
    whole = {"bash": "plain,--output=json", "zsh": "--output=json", "fish": "plain,--output=json"}
    assert whole[shell] in answered("icecomb --output=js", 1)


def test_an_unknown_shell_is_wrong_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of" in capfd.readouterr().err


ELSEWHERE = {"uri": "thrift://127.0.0.1:1"}
"""A catalog that is not the metastore of one's own."""


def names(incomplete: str, **given: Any) -> list[str]:
    context = click.Context(icecomb)
    context.params = given
    return [
        item.value
        for item in TableArgument().shell_complete(context, click.Argument(["table"]), incomplete)
    ]


def test_names_that_a_shell_would_run_are_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Catalog:
        def list_namespaces(self) -> list[tuple[str, ...]]:
            return [("db",), ("$(touch",), ("a b",), ("--yes",)]

        def list_tables(self, _: tuple[str, ...]) -> list[tuple[str, ...]]:
            hostile = ["t;ls", "t$(ls)", "t`ls`", "t\n", "t x", "t'", "t\x1b[2J", "t|", "t*"]
            return [("db", name) for name in ["fine", "größe", *hostile]]

    monkeypatch.setattr(loading, "catalog_of", lambda _: Catalog())
    assert names("", **ELSEWHERE) == ["db"]
    for typed in ("db.", "d"):
        assert names(typed, **ELSEWHERE) == ["db.fine", "db.größe"]
    for typed in ("$", "--y"):
        assert names(typed, **ELSEWHERE) == []


def test_branches_and_tags_of_the_written_table_are_completed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(completion, "PATIENCE_SECONDS", 60)
    lake = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "refs"))
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    with table.manage_snapshots() as manage:
        head = table.current_snapshot().snapshot_id
        manage.create_branch(head, "audit").create_branch(head, "a$(touch x)")
        manage.create_tag(head, "august").create_tag(head, "may")
    place = table.location()
    bash = completion._Bash(icecomb, {}, "icecomb", "_ICECOMB_COMPLETE")

    def told(words: str) -> set[str]:
        *args, incomplete = words.split(" ")
        return {item.value for item in bash.get_completions(args, incomplete)}

    assert told(f"branch delete {place} a") == {"audit"}
    assert told(f"tag delete {place} a") == {"august"}
    assert told(f"branch fast-forward {place} main --to a") == {"audit", "august"}
    assert told(f"maintain rewrite-data-files {place} --branch a") == {"audit"}
    assert told(f"rollback {place} --branch ") == {"main", "audit"}
    assert told(f"files {place} --tag m") == {"may"}
    assert told("files /nowhere/t --tag m") == set()


def test_a_catalog_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, over = threading.Event(), threading.Event()

    def silent(_: Any) -> None:
        asked.set()
        over.wait()

    monkeypatch.setattr(loading, "catalog_of", silent)
    assert names("d", **ELSEWHERE) == []
    assert asked.is_set()
    assert not over.is_set()
    over.set()


def test_a_metastore_of_ones_own_is_not_started_for_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icecomb.catalog import metastore

    def start(*_: Any) -> None:
        raise AssertionError("it was started")

    monkeypatch.setattr(metastore, "start", start)
    given = {"name": "local", "warehouse": str(tmp_path)}
    assert completion._catalog(given) is None
    assert names("d", **given) == []


@pytest.mark.jvm
def test_tables_of_a_metastore_are_completed(metastore: Any, catalog: Any, namespace: str) -> None:
    catalog.create_table(f"{namespace}.orders", pa.schema([("id", pa.int64())]))
    assert names(namespace[:-1], uri=metastore.uri) in ([f"{namespace}.orders"], [namespace])
    assert names(f"{namespace}.o", uri=metastore.uri) == [f"{namespace}.orders"]
