"""Jars that are compiled against are the files whose checksums the repository holds."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from icecomb.format.errors import MissingDependencyError
from icecomb.spark.jar import SUPPORTED
from icecomb.spark.packaging import spark_classes
from tests.peers import ivy

_JAR = re.compile(
    r'name="([^"]+)" rev="([^"]+)" transitive[^>]*>\s*<artifact [^>]*?(?:m:classifier="([^"]*)")?/>'
)


def test_each_jar_that_is_fetched_has_a_checksum() -> None:
    known = {line.split()[1] for line in spark_classes.CHECKSUMS.read_text().splitlines()}
    wanted = {
        f"{name}-{revision}{f'-{classifier}' if classifier else ''}.jar"
        for minor, scalas in SUPPORTED.items()
        for scala in scalas
        for name, revision, classifier in _JAR.findall(spark_classes._module(minor, scala))
    }
    assert len(wanted) > 100
    assert wanted == known


def test_a_file_that_tests_fetch_is_refused_if_it_is_another(tmp_path: Path) -> None:
    names = {line.split()[1] for line in ivy.CHECKSUMS.read_text().splitlines()}
    files = ivy.KEPT / "files"
    kept = [*files.glob("*.jar"), *files.glob("*.tar.gz"), *files.glob("*-and-all/*.jar")]
    assert {file.name for file in kept} <= names
    assert len(names) > 100
    for name in ("hive-standalone-metastore-3.1.3-bin.tar.gz", "paimon-bundle-1.4.2.jar"):
        assert name in names
        (tmp_path / name).write_bytes(b"wrong")
        with pytest.raises(MissingDependencyError, match=f"{name} is not the file"):
            spark_classes.check_files([tmp_path / name], ivy.CHECKSUMS, tmp_path)


def test_another_file_of_the_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = tmp_path / "jars.sha256"
    sums.write_text(f"{hashlib.sha256(b'right').hexdigest()}  a-1.jar\n")
    monkeypatch.setattr(spark_classes, "CHECKSUMS", sums)
    (tmp_path / "a-1.jar").write_bytes(b"right")
    spark_classes.check_jars(tmp_path)
    for name in ("a-1.jar", "b-1.jar"):
        (tmp_path / name).write_bytes(b"wrong")
        with pytest.raises(MissingDependencyError, match=f"{name} is not the file"):
            spark_classes.check_jars(tmp_path)
        (tmp_path / "a-1.jar").write_bytes(b"right")
