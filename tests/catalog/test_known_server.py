"""What a client knows of its metastores outlives a fork; who was finding it out does not."""

from __future__ import annotations

import os

from icecomb.catalog.hive.thrift.known_server import KnownServers, ValueCheck


def test_a_forked_process_knows_what_its_parent_found_out_and_waits_for_nobody() -> None:
    servers = KnownServers()
    servers["known"].check = ValueCheck.ATOMIC
    with servers["known"].guard, servers["asked by the parent"].guard:
        child = os.fork()
        if child == 0:
            known, asked = servers["known"], servers["asked by the parent"]
            free = all(one.guard.acquire(timeout=5) for one in (known, asked))
            os._exit(0 if free and (known.check, asked.check) == (ValueCheck.ATOMIC, None) else 1)
    assert os.waitpid(child, 0)[1] == 0
