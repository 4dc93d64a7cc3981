"""Kills a writer at the steps of operations; run as a process of its own, which forks them.

    python killed_writer.py PORT WAREHOUSE EVERY VERSION OPERATION...

Only every such step counts, from another one on for each operation: 1 = all. Prints how many were killed, and what was wrong afterwards, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from faulty_operations import OPERATIONS, Operation, World

from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.format.storage.local import LocalFileSystem

WRITES = {"create_table", "drop_table", "alter_table_with_environment_context"}
"""The calls that make a change happen."""
_LOOKS = ("get_", "show_locks", "check_lock", "heartbeat")
"""The calls that leave everything as it is: who is killed before or after them, leaves what was there."""
_LIVED = 0


def _steps(fatal: int, told: int) -> None:
    """Kills this process at step ``fatal``; each step before it is written to ``told``."""
    count = 0

    def step(what: str) -> None:
        nonlocal count
        os.write(told, f"{what}\n".encode())
        count += 1
        if count > fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    send, create, delete = Calls.send, LocalFileSystem.create, LocalFileSystem.delete
    create_stream = LocalFileSystem.create_stream

    def watched_send(self: Calls, method: str, call: Any) -> Any:
        if method.startswith(_LOOKS):
            return send(self, method, call)
        step(f"before {method}")
        answer = send(self, method, call)
        step(f"after {method}")
        return answer

    def watched_create(self: LocalFileSystem, location: str, data: bytes) -> None:
        step("before a file")
        create(self, location, data)

    def watched_stream(self: LocalFileSystem, location: str) -> Any:
        step("before a file")
        return create_stream(self, location)

    def watched_delete(self: LocalFileSystem, locations: Iterable[str]) -> None:
        step("before files are deleted")
        delete(self, locations)

    Calls.send = watched_send  # type: ignore[method-assign,assignment]
    LocalFileSystem.create = watched_create  # type: ignore[method-assign]
    LocalFileSystem.create_stream = watched_stream  # type: ignore[method-assign]
    LocalFileSystem.delete = watched_delete  # type: ignore[method-assign]


def _killed(operation: Operation, fatal: int) -> tuple[bool, list[str], int]:
    """Whether it was killed before it was through, its steps, and its pid."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _steps(fatal, tells)
            operation.act()
        finally:
            os._exit(_LIVED)
    os.close(tells)
    with os.fdopen(told) as lines:
        steps = lines.read().splitlines()
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status), steps, pid


def _steps_of(world: World, name: str, fatal_steps: range, problems: list[str]) -> int:
    """How often it was killed; the last time it lives."""
    operation = OPERATIONS[name](world)
    for kills, fatal in enumerate(fatal_steps):
        operation.prepare()
        world.arm(None)
        killed, steps, pid = _killed(operation, fatal)
        expected = any(step == f"after {call}" for call in WRITES for step in steps)
        where = f"{name}, killed {steps[-1]}"
        try:
            if operation.happened() != expected:
                problems.append(f"{where}: {'did not happen' if expected else 'happened'}")
            for each in operation.names:
                for row in world.direct.client.locks(*each.split(".")):
                    if f"pid{pid}" not in row.agent or not killed:
                        problems.append(f"{where}: lock {row}")
                    world.direct.client.unlock(row.lock_id)
                world.check_files(each)
        except AssertionError as error:
            problems.append(f"{where}: {error}")
        if not killed:
            return kills
    raise AssertionError(f"{name} has more steps than {fatal_steps}")


def main() -> None:
    port, warehouse, every, version, *names = sys.argv[1:]
    metastore = SimpleNamespace(port=int(port), warehouse=Path(warehouse))
    uri = f"thrift://127.0.0.1:{port}"
    direct = HiveCatalog("direct", {"uri": uri, "warehouse": warehouse})
    world = World(metastore, direct, lock_enabled=True, version=version)
    problems: list[str] = []
    kills = {
        name: _steps_of(world, name, range(turn % int(every), 1000, int(every)), problems)
        for turn, name in enumerate(names)
    }
    world.close()
    direct.close()
    print(json.dumps({"kills": kills, "problems": problems}))


if __name__ == "__main__":
    main()
