"""Files of Maven repositories, got once by the Ivy inside pyspark and kept beside the environment.

They are kept only if they are the files that `jars.sha256` names. `python -m tests.peers.ivy` prints
the lines of what is kept, for a new version: compare them with what another network gets.

fetch("org.apache.hadoop:hadoop-client-minicluster:3.5.0")          the jar
fetch("org.apache.hive:hive-standalone-metastore:3.1.3", classifier="bin", extension="tar.gz")
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from icecomb.catalog.java import find_java
from icecomb.spark.packaging.spark_classes import check_files

KEPT = Path(sys.prefix) / "ivy"
CHECKSUMS = Path(__file__).with_name("jars.sha256")
"""As `sha256sum` prints them."""

_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="icecomb" module="{name}-for-tests"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{organisation}" name="{name}" rev="{revision}" transitive="false">
      <artifact name="{name}" type="{extension}" ext="{extension}"{classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""
_MODULE_AND_ALL = """<ivy-module version="2.0">
  <info organisation="icecomb" module="{name}-and-all-for-tests"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
_AND_ALL = '<dependency org="{}" name="{}" rev="{}" conf="default->default"/>'


def pyspark_jars() -> Path:
    """The folder of the jars that pyspark carries, Hadoop's client and Ivy among them."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def fetch_all(coordinate: str, *others: str) -> Path:
    """A folder of the jars of `organisation:name:revision` and of all that they need to run.

    The first one names the folder.
    """
    _, name, revision = coordinate.split(":")
    kept = KEPT / "files" / f"{name}-{revision}-and-all"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        if not (kept / ".complete").exists():
            module = kept.with_suffix(".ivy.xml")
            wanted = [_AND_ALL.format(*each.split(":")) for each in (coordinate, *others)]
            module.write_text(_MODULE_AND_ALL.format(name=name, dependencies="".join(wanted)))
            _retrieve(module, f"{kept}/[artifact]-[revision](-[classifier]).[ext]")
            check_files(sorted(kept.glob("*.jar")), CHECKSUMS, kept)
            (kept / ".complete").touch()
    return kept


def fetch(coordinate: str, classifier: str | None = None, extension: str = "jar") -> Path:
    """The file of `organisation:name:revision`, without what it depends on."""
    organisation, name, revision = coordinate.split(":")
    suffix = f"-{classifier}" if classifier else ""
    kept = KEPT / "files" / f"{name}-{revision}{suffix}.{extension}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        if not kept.exists():
            module = kept.with_suffix(".ivy.xml")
            module.write_text(
                _MODULE.format(
                    organisation=organisation,
                    name=name,
                    revision=revision,
                    extension=extension,
                    classifier=f' m:classifier="{classifier}"' if classifier else "",
                )
            )
            draft = kept.parent / "drafts" / kept.name
            _retrieve(module, f"{draft.parent}/[artifact]-[revision](-[classifier]).[ext]")
            check_files([draft], CHECKSUMS, draft)
            draft.replace(kept)
    return kept


def _retrieve(module: Path, pattern: str) -> None:
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    command = [str(find_java()), "-jar", str(ivy), "-ivy", str(module)]
    command += ["-cache", str(KEPT / "cache"), "-retrieve", pattern]
    # Ivy does not lock its cache; a repository that did not answer may do so the next time
    with FileLock(KEPT / "ivy.lock"):
        for _ in range(3):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode == 0:
                return
    raise RuntimeError(f"Ivy could not fetch {module.name}:\n{done.stdout[-4000:]}{done.stderr}")


def checksums() -> list[str]:
    """The lines of `jars.sha256` for the files that are kept, the hashed first."""
    files = KEPT / "files"
    found = [*files.glob("*.jar"), *files.glob("*.tar.gz"), *files.glob("*-and-all/*.jar")]
    digests = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in found}
    return [f"{digests[name]}  {name}" for name in sorted(digests)]


if __name__ == "__main__":
    print("\n".join(checksums()))
