"""The time to import a library's modules, in fresh interpreters: wall seconds, the least of them.

python -m tests.bench.imports
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from tests.bench.measure import Figures, load_peer, parser, print_line

_CODE = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
import {module}
print(time.perf_counter() - wall, time.process_time() - cpu, len(sys.modules))
"""


def importing(module: str) -> list[float]:
    """Wall seconds, CPU seconds and number of loaded modules of one import."""
    command = [sys.executable, "-c", _CODE.format(module=module)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
    return [float(figure) for figure in found.stdout.split()]


def figures(module: str, repeat: int) -> Figures:
    """Of several imports, after one that fills the caches."""
    importing(module)
    runs = [importing(module) for _ in range(repeat)]
    walls, cpus, modules = zip(*runs, strict=True)
    return {
        "module": module,
        "import_s": round(statistics.median(walls), 4),
        "import_s_least": round(min(walls), 4),
        "import_cpu_s": round(statistics.median(cpus), 4),
        "modules": int(modules[0]),
    }


def main() -> None:
    """Print a line a module."""
    arguments = parser(__doc__)
    given = arguments.parse_args()
    peers = given.peers.split(",")
    for modules in zip(*(load_peer(peer).MODULES for peer in peers), strict=True):
        found = [figures(module, max(given.repeat, 5)) for module in modules]
        ratio = {
            name: round(found[0][name] / found[-1][name], 3)
            for name in ("import_s", "import_s_least", "import_cpu_s")
        }
        print_line("imports", ratio=ratio, **dict(zip(peers, found, strict=True)))


if __name__ == "__main__":
    main()
