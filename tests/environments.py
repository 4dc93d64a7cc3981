"""The virtual environments beside this folder: ours, and one for each peer that cannot live in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
ICEBERG_JAVA_VENV = ROOT / ".venv-iceberg-java"
ICEBERG_JAVA_SPARK = "pyspark==4.1.4"
SPARK_3_5_VENV = ROOT / ".venv-spark-3.5"
SPARK_3_5 = "pyspark==3.5.9"
OTHER_SPARKS = {"4.0": "pyspark==4.0.5", "4.2": "pyspark==4.2.1"}
PYPAIMON_VENV = ROOT / ".venv-pypaimon"
PYPAIMON = "pypaimon==2.1.0"
# Where these lead pip and Python to is none of our environments.
ELSEWHERE = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PYTHONHOME", "PYTHONPATH")


def prepare(*, peers: bool) -> Path:
    """Makes what is missing or older than its recipe, and returns our Python.

    Args:
        peers: Also those of the peers; else only ours.
    """
    os.chdir(ROOT)
    for variable in ELSEWHERE:
        os.environ.pop(variable, None)
    recipe = (ROOT / "pyproject.toml").read_text()
    wanted = [(VENV, ["-e", ".[spark,demo,test]"], recipe)]
    if peers:
        wanted += [
            (ICEBERG_JAVA_VENV, [ICEBERG_JAVA_SPARK], ICEBERG_JAVA_SPARK),
            (PYPAIMON_VENV, [PYPAIMON], PYPAIMON),
            (SPARK_3_5_VENV, [SPARK_3_5], SPARK_3_5),
        ]
    with ThreadPoolExecutor(len(wanted)) as pool:
        python, *_ = pool.map(lambda each: _environment(*each), wanted)
    _typing_link()
    if peers:
        _store_servers(python)
        subprocess.run([str(python), "-m", "tests.peers.class_archive"], check=False)
    # hundreds of processes import icecomb: it is compiled only once
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return python


def spark_venv(minor: str) -> Path:
    """Where Spark of this minor version is, or would be; that of `3.5_2.13` takes its Scala from elsewhere."""
    found = {"4.3": VENV, "4.1": ICEBERG_JAVA_VENV}
    return found.get(minor, ROOT / f".venv-spark-{minor.partition('_')[0]}")


def pyspark_of(venv: Path) -> Path:
    """The folder of the PySpark in an environment."""
    return next(venv.glob("lib/python3*/site-packages/pyspark"))


def prepare_spark(minor: str) -> None:
    """Make the environment of a Spark that the gate does not need."""
    if minor in OTHER_SPARKS:
        _environment(spark_venv(minor), [OTHER_SPARKS[minor]], OTHER_SPARKS[minor])


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
