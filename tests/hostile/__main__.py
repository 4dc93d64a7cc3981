"""A program that feeds damaged and hostile input to a parser, within 2 GiB of memory.

`python -m tests.hostile PARSER FOLDER --seed S [--cases N] [--cpu-seconds T]` prints, as JSON, each case of which
something else than an error of icecomb came out. It ends after so many cases, or when so much time of processors is
over. The input is a sound one that was changed; or one made to take memory or stack: bombs, and values nested in
one another. `--case N` feeds one of the changed inputs only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
import traceback
from itertools import chain
from pathlib import Path

from icecomb.format.errors import IcecombError
from tests.hostile.parser import Sound, case, changed
from tests.hostile.registry import PARSERS

MEMORY = 2 << 30
_MOST_FOUND = 20


def limit_memory() -> None:
    """Allow 2 GiB, beside the addresses of which libraries reserve more than a gibibyte that they do not use."""
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[0]) if statm.exists() else 0
    reserved = pages * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (max(MEMORY, reserved + MEMORY // 2), hard))


def main() -> None:
    """Run one parser."""
    given = argparse.ArgumentParser(prog="python -m tests.hostile")
    given.add_argument("parser", choices=PARSERS)
    given.add_argument("folder", type=Path)
    given.add_argument("--seed", type=int, required=True)
    given.add_argument(
        "--cases", type=int, help="how many changed inputs; without end if not given"
    )
    given.add_argument("--cpu-seconds", type=float, default=float("inf"))
    given.add_argument("--case", type=int, help="only this one")
    options = given.parse_args()
    parser = PARSERS[options.parser](Sound(options.folder))
    parser.check()
    limit_memory()
    numbers = itertools.count() if options.cases is None else range(options.cases)
    inputs = chain(parser.extremes(), changed(parser, options.seed, numbers))
    if options.case is not None:
        inputs = iter([case(parser, options.seed, options.case)])
    found, kinds, refused, read = [], set(), 0, 0
    last = options.folder / "last"
    begun = time.process_time()
    for number, data in enumerate(inputs, -len(list(parser.extremes()))):
        last.write_bytes(data[: 1 << 20])
        try:
            parser.parse(data)
            read += 1
        except IcecombError:
            refused += 1
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            trace = traceback.format_exception(error)
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = (type(error).__name__, where.filename, where.lineno)
            if kind not in kinds and len(found) < _MOST_FOUND:
                shown = "".join(trace[:2] + trace[-6:])[-3000:]
                what = f"{type(error).__name__}: {str(error)[:200]}"
                found.append(
                    [number, len(data), f"seed {options.seed}, case {number}: {what}", shown]
                )
            kinds.add(kind)
        if time.process_time() - begun > options.cpu_seconds:
            break
    told = {
        "found": found,
        "refused": refused,
        "read": read,
        "seconds": time.process_time() - begun,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
