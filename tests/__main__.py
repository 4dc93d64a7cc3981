"""The whole gate: ``python3 -m tests`` sets up what it needs, then lint, types, layers, tests, one verdict.

Needs Python 3.10+ and a JDK 17. Makes ``.venv`` (icecomb, editable, with its test extra), ``.venv-iceberg-java``
(the reference implementation on its own Spark) and ``.venv-pypaimon`` (it needs an older Arrow than ours) beside this
folder and reuses them while their recipe is unchanged.

    python3 -m tests                      everything
    python3 -m tests -k migrate -x        only pytest, with these arguments
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
ICEBERG_JAVA_VENV = ROOT / ".venv-iceberg-java"
ICEBERG_JAVA_SPARK = "pyspark==4.1.4"
PYPAIMON_VENV = ROOT / ".venv-pypaimon"
PYPAIMON = "pypaimon==2.1.0"


def main(arguments: list[str]) -> int:
    """Runs the gate (or only pytest with ``arguments``) and returns its exit code."""
    if sys.version_info < (3, 10):  # noqa: UP036 - the message is for those who start it with an older Python
        print("icecomb needs Python 3.10 or newer", file=sys.stderr)
        return 2
    for tool in ("java", "javac"):
        if shutil.which(tool, path=_java_path()) is None:
            print(f"the tests need a JDK 17: no {tool} on PATH or in JAVA_HOME", file=sys.stderr)
            return 2
    os.chdir(ROOT)
    started = time.monotonic()
    python = _environment(VENV, ["-e", ".[spark,demo,test]"], (ROOT / "pyproject.toml").read_text())
    _environment(ICEBERG_JAVA_VENV, [ICEBERG_JAVA_SPARK], ICEBERG_JAVA_SPARK)
    _environment(PYPAIMON_VENV, [PYPAIMON], PYPAIMON)
    _typing_link()
    pytest = [str(python), "-m", "pytest"]
    if arguments:
        return subprocess.run([*pytest, *arguments], check=False).returncode
    steps = {
        "lint": [_script("ruff"), "check"],
        "layout": [_script("ruff"), "format", "--check"],
        "types": [_script("mypy")],
        "layers": [_script("lint-imports")],
        "tests": pytest,
    }
    failed = [name for name, command in steps.items() if not _passes(name, command)]
    verdict = f"FAILED: {', '.join(failed)}" if failed else f"PASSED: {', '.join(steps)}"
    print(f"\nicecomb: {verdict} ({time.monotonic() - started:.0f} s)", flush=True)
    return 1 if failed else 0


def _passes(name: str, command: list[str]) -> bool:
    print(f"\n== {name}: {' '.join(command[:3])}", flush=True)
    return subprocess.run(command, check=False).returncode == 0


def _script(name: str) -> str:
    return str(VENV / "bin" / name)


def _java_path() -> str:
    home = os.environ.get("JAVA_HOME")
    path = os.environ.get("PATH", os.defpath)
    return f"{home}/bin{os.pathsep}{path}" if home else path


def _environment(folder: Path, requirements: list[str], recipe: str) -> Path:
    """A virtual environment with these requirements, made anew when its recipe changed."""
    python = folder / "bin" / "python"
    stamp = folder / ".recipe"
    wanted = hashlib.sha256(repr((requirements, recipe, sys.version_info[:2])).encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"== setting up {folder.name}: {' '.join(requirements)}", flush=True)
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--upgrade", "pip"], check=True)
        subprocess.run([*install, *requirements], check=True)
    except subprocess.CalledProcessError as error:
        # Debian packs venv apart from Python: the error of the standard library says so, too
        sys.exit(f"could not set up {folder.name} (on Debian: apt install python3-venv): {error}")
    stamp.write_text(wanted)
    return python


def _typing_link() -> None:
    """Mypy cannot follow an editable install that maps folders: it gets the import root as a link."""
    link = ROOT / "build" / "typing" / "icecomb"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to("../..")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
