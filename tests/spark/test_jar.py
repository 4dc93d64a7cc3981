"""Which jar goes on Spark's class path, and what is said when there is none."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from icecomb.format.errors import JavaError, MissingDependencyError, UnsupportedError
from icecomb.spark import jar
from icecomb.spark.conf import CATALOG_CLASS


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _home(path, *names):
    (path / "jars").mkdir(parents=True)
    for name in names:
        (path / "jars" / name).touch()
    return path


def test_the_installed_pyspark_is_the_spark_that_is_used(monkeypatch):
    import pyspark

    monkeypatch.delenv("SPARK_HOME", raising=False)
    home = jar.spark_home()
    assert home.version == pyspark.__version__
    assert list(home.jars.glob("spark-sql_*.jar"))


def test_spark_home_wins_over_the_package(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "SPARK_HOME", str(_home(tmp_path / "s", "spark-core_2.13-4.3.7-preview.jar"))
    )
    assert (jar.spark_home().version, jar.spark_home().minor) == ("4.3.7-preview", "4.3")


def test_without_pyspark_the_spark_that_a_link_on_the_path_leads_to_is_used(tmp_path, monkeypatch):
    home = _home(tmp_path / "spark-3.5", "spark-core_2.13-3.5.4.jar")
    (home / "bin").mkdir()
    (home / "bin" / "spark-submit").touch(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").symlink_to(home / "bin" / "spark-submit")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(jar.importlib.util, "find_spec", lambda _name: None)
    found = jar.spark_home()
    assert (found.path, found.minor, found.scala) == (home, "3.5", "2.13")


def test_a_java_that_runs_spark_3_5_but_not_the_jar_is_named(tmp_path, monkeypatch):
    java = tmp_path / "jdk-11" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.29\" 2025-10-21' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk-11"))
    home = jar.spark_home(_home(tmp_path / "s", "spark-core_2.12-3.5.4.jar"))
    with pytest.raises(JavaError, match=r"is Java 11: .* Spark 3\.5\.4 needs Java 17") as error:
        jar.bridge_jar(home)
    assert "spark.executorEnv.JAVA_HOME" in error.value.hint


def test_a_folder_without_spark_is_named(tmp_path):
    with pytest.raises(MissingDependencyError, match=str(tmp_path)):
        jar.spark_home(tmp_path)


def test_without_pyspark_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(jar.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError) as error:
        jar.spark_home()
    assert "pip install 'icecomb[spark]'" in error.value.hint


def test_a_spark_the_bridge_is_not_made_for_is_refused_by_version(tmp_path):
    for number, core in enumerate(("spark-core_2.12-3.4.4.jar", "spark-core_2.12-4.0.1.jar")):
        home = jar.spark_home(_home(tmp_path / str(number), core))
        with pytest.raises(
            UnsupportedError, match=rf"does not run on Spark {home.version}"
        ) as error:
            jar.bridge_jar(home)
        assert "Use Spark 3.5, 4.0, 4.1, 4.2, 4.3" in error.value.hint


def test_a_spark_newer_than_known_says_so(tmp_path):
    home = jar.spark_home(_home(tmp_path, "spark-core_2.13-4.10.0.jar"))
    with pytest.raises(UnsupportedError, match=r"4\.10\.0 .* newer than this icecomb") as error:
        jar.bridge_jar(home)
    assert "Upgrade icecomb" in error.value.hint


def test_every_version_of_spark_gets_each_class_once_and_from_the_newest_folder(
    tmp_path, monkeypatch
):
    for path in ("java/A", "v35/B", "v35/C", "v40/B", "v42/D", "v43/B"):
        source = tmp_path / "bridge" / f"{path}.java"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch()
    monkeypatch.setattr(jar, "HERE", tmp_path)
    found = {
        minor: [
            path.relative_to(tmp_path / "bridge").with_suffix("").as_posix()
            for path in jar.sources(minor)
        ]
        for minor in jar.SUPPORTED
    }
    assert found == {
        "3.5": ["java/A", "v35/B", "v35/C"],
        "4.0": ["java/A", "v35/C", "v40/B"],
        "4.1": ["java/A", "v35/C", "v40/B"],
        "4.2": ["java/A", "v35/C", "v40/B", "v42/D"],
        "4.3": ["java/A", "v35/C", "v42/D", "v43/B"],
    }


def test_the_bridge_has_no_folder_of_a_spark_it_does_not_serve():
    folders = {path.name for path in (Path(jar.__file__).parent / "bridge").iterdir()}
    assert folders <= {"java", *(f"v{minor.replace('.', '')}" for minor in jar.SUPPORTED)}


@pytest.mark.jvm
def test_the_sources_are_compiled_once(own_cache, tmp_path, monkeypatch):
    source = tmp_path / "bridge" / "java" / "Small.java"
    source.parent.mkdir(parents=True)
    source.write_text("class Small { org.apache.spark.sql.connector.catalog.Table table; }")
    monkeypatch.setattr(jar, "HERE", tmp_path)
    first = jar.bridge_jar()
    assert first.is_relative_to(own_cache)
    stamp = first.stat().st_mtime_ns
    assert jar.bridge_jar() == first
    assert first.stat().st_mtime_ns == stamp
    with zipfile.ZipFile(first) as classes:
        assert "Small.class" in classes.namelist()


@pytest.mark.jvm
@pytest.mark.full("all of the bridge is compiled anew")
def test_a_checkout_compiles_the_bridge_once_per_spark_and_source(own_cache):
    first = jar.bridge_jar()
    assert first.is_relative_to(own_cache)
    stamp = first.stat().st_mtime_ns
    assert jar.bridge_jar() == first
    assert first.stat().st_mtime_ns == stamp
    with zipfile.ZipFile(first) as classes:
        assert CATALOG_CLASS.replace(".", "/") + ".class" in classes.namelist()


def test_a_changed_source_or_message_is_another_jar(tmp_path, monkeypatch):
    spark = jar.SparkHome(tmp_path, "4.3.0", "2.13")
    source = tmp_path / "A.java"
    keys = set()
    monkeypatch.setattr(jar, "HERE", tmp_path)
    for text, records in (("class A {}", "1"), ("class A { }", "1"), ("class A {}", "2")):
        source.write_text(text)
        keys.add(jar._key(spark, [source], records))
    assert len(keys) == 3


def test_a_host_with_a_runtime_only_is_told_what_to_install(own_cache, tmp_path, monkeypatch):
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    with pytest.raises(JavaError, match="no javac") as error:
        jar.bridge_jar()
    assert "JDK" in error.value.hint
    assert not list(own_cache.rglob("*.jar"))


def test_an_install_with_neither_jar_nor_sources_says_so(monkeypatch):
    monkeypatch.setattr(jar, "sources", lambda _minor: [])
    with pytest.raises(MissingDependencyError, match=r"without a bridge for Spark 4\.3"):
        jar.compile_bridge(jar.spark_home())
