"""The whole gate: ``python3 -m tests`` sets up what it needs, then lint, types, layers, tests, one verdict.

Needs Python 3.10+ and a JDK 17. Makes ``.venv`` (icecomb, editable, with its test extra), ``.venv-iceberg-java``
(the reference implementation on its own Spark) and ``.venv-pypaimon`` (it needs an older Arrow than ours) beside this
folder and reuses them while their recipe is unchanged. The tests run in two halves side by side, each a pytest with
services of its own; what failed stands at the end of the output.

    python3 -m tests                      everything
    python3 -m tests -k migrate -x        only one pytest, with these arguments
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
ICEBERG_JAVA_VENV = ROOT / ".venv-iceberg-java"
ICEBERG_JAVA_SPARK = "pyspark==4.1.4"
PYPAIMON_VENV = ROOT / ".venv-pypaimon"
PYPAIMON = "pypaimon==2.1.0"
# Where these lead pip and Python to is none of our environments.
ELSEWHERE = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PYTHONHOME", "PYTHONPATH")
# A test passes in either half. These share what is slow to start: both Sparks, and Hive 3 and 4.
BESIDE = [
    "tests/spark",
    "tests/interop",
    "tests/conformance",
    "tests/test_readme.py",
    "tests/catalog/paimon/test_paimon_cli.py",
    "tests/catalog/test_failover.py",
    "tests/catalog/test_hive_versions.py",
    "tests/catalog/test_metastore_security.py",
    "tests/catalog/test_namespaces.py",
    "tests/catalog/test_views.py",
]
OTHERS = ["tests", *(f"--ignore={each}" for each in BESIDE)]


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
    for variable in ELSEWHERE:
        os.environ.pop(variable, None)
    started = time.monotonic()
    recipe = (ROOT / "pyproject.toml").read_text()
    with ThreadPoolExecutor(3) as pool:
        environments = [
            pool.submit(_environment, VENV, ["-e", ".[spark,demo,test]"], recipe),
            pool.submit(_environment, ICEBERG_JAVA_VENV, [ICEBERG_JAVA_SPARK], ICEBERG_JAVA_SPARK),
            pool.submit(_environment, PYPAIMON_VENV, [PYPAIMON], PYPAIMON),
        ]
    python, *_ = [each.result() for each in environments]
    _typing_link()
    pytest = [str(python), "-m", "pytest"]
    if arguments:
        return subprocess.run([*pytest, *arguments], check=False).returncode
    # hundreds of processes import icecomb: it is compiled only once
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    beside = Step("tests with Spark or Hive 3 and 4", [*pytest, *BESIDE])
    steps = [
        Step("lint", [_script("ruff"), "check"]).show(),
        Step("layout", [_script("ruff"), "format", "--check"]).show(),
        Step("types", [_script("mypy")]).show(),
        Step("layers", [_script("lint-imports")]).show(),
        Step("all other tests", [*pytest, *OTHERS]).show(),
        beside.show(),
    ]
    failed = [step for step in steps if step.failed]
    for step in failed:
        print(f"\n== {step.name} failed", *step.failures, sep="\n")
    names = ", ".join(step.name for step in failed or steps)
    verdict = f"{'FAILED' if failed else 'PASSED'}: {names}"
    print(f"\nicecomb: {verdict} ({time.monotonic() - started:.0f} s)", flush=True)
    return 1 if failed else 0


class Step:
    """A command that runs at once; what it prints is kept until `show` is called.

    A file keeps it and no pipe: a server that outlived the command would hold a pipe open.
    """

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the step
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=subprocess.STDOUT
        )

    def show(self) -> Step:
        """Prints what it said so far, and what it says until it ends."""
        print(f"\n== {self.name}", flush=True)
        file, shown = self._said.fileno(), 0
        while True:
            ended = self._process.poll() is not None
            while said := os.pread(file, 1 << 16, shown):
                shown += len(said)
                sys.stdout.buffer.write(said)
            sys.stdout.flush()
            if ended:
                return self
            time.sleep(0.2)

    @property
    def failed(self) -> bool:
        return self._process.returncode != 0

    @property
    def failures(self) -> list[str]:
        """What pytest says in one line of each test that failed."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        return [line for line in lines if line.startswith(("FAILED ", "ERROR "))]


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
