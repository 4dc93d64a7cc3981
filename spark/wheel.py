"""Build of the wheel that carries its jars: `python -I -m icecomb.spark.wheel dist/`.

It works like `pip wheel` and `python -m build` on a checkout, but needs no other environment and
compiles against local Spark installations. Classes missing there and in the user's cache are
fetched from Maven Central. A JDK is needed. `-I` keeps Python from taking modules of the working
directory for its own; from Python 3.11 `-P` does, too, and lets in those of the user's site.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from icecomb.catalog.java import java_environment, private_cache
from icecomb.format.errors import ConfigurationError, IcecombError
from icecomb.format.storage.local import LocalFileSystem

_CHECKOUT: Final = Path(__file__).resolve().parent.parent
_SETUPTOOLS: Final = 77
"""The oldest setuptools that supports the license fields of pyproject.toml."""
_OF_PIP: Final = (
    *("pip_", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("ssl_cert_", "requests_ca_", "curl_ca_", "source_date_"),
)
"""How the variables begin by which pip finds packages, and builds the same wheel again."""


def build_wheel(target: Path, sparks: Sequence[Path] = ()) -> Path:
    """Build the wheel into the folder `target`, created if missing, and return its path.

    Args:
        sparks: Spark installations to compile against, besides pyspark.
    """
    if not (_CHECKOUT / "pyproject.toml").is_file():
        raise ConfigurationError(
            f"{_CHECKOUT} is not a checkout of icecomb",
            hint="Clone the repository and run it there.",
        )
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=private_cache("wheels")) as scratch:
        out = Path(scratch)
        _pip_wheel(out, sparks)
        (built,) = out.glob("*.whl")
        found = target / built.name
        # a link of its name is replaced, not followed
        io = LocalFileSystem()
        with io.prepare(str(found.absolute()), built.read_bytes(), replace=True) as publish:
            publish()
        return found


def _pip_wheel(out: Path, sparks: Sequence[Path]) -> None:
    command = [
        *(sys.executable, "-I", "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(out)),
        *(f"--config-settings=spark={spark.absolute()}" for spark in sparks),
        *(["--no-build-isolation"] if _has_setuptools() else []),
        str(_CHECKOUT),
    ]
    # Python looks for the modules of pip's own processes in the working directory first
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=out,
        env=java_environment(*_OF_PIP),
    )
    if done.returncode != 0:
        raise ConfigurationError(
            f"pip could not build the wheel:\n{done.stderr[-2000:].strip()}",
            hint="Look at pip's last lines above; it needs a JDK, setuptools and pyspark.",
        )


def _has_setuptools() -> bool:
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= _SETUPTOOLS
    except importlib.metadata.PackageNotFoundError:
        return False


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -I -m icecomb.spark.wheel",
        description="Build the wheel that carries its jars.",
    )
    parser.add_argument("folder", nargs="?", default="dist", type=Path)
    parser.add_argument(
        "--spark",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="A Spark installation to compile against, besides pyspark; may be repeated.",
    )
    given = parser.parse_args()
    try:
        built = build_wheel(given.folder, given.spark)
    except IcecombError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(f"{built}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
