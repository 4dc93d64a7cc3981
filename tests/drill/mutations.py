"""What is broken, room by room from the ground up: each is a fault that somebody could make.

In `mutations.txt` a block is the file and what is wrong then, the old lines behind `-`, the new ones behind `+`, and the tests.
"""

from __future__ import annotations

from pathlib import Path

from tests.drill.mutation import Mutation


def _read(block: str) -> Mutation:
    head, *lines = block.splitlines()
    file, _, name = head.partition(": ")
    old, new = ("\n".join(line[2:] for line in lines if line[0] == mark) for mark in "-+")
    tests = [test for line in lines if line[0] == " " for test in line.split()]
    return Mutation(name, file, old, new, tuple(tests))


MUTATIONS = [
    _read(block) for block in Path(__file__).with_suffix(".txt").read_text().strip().split("\n\n")
]
