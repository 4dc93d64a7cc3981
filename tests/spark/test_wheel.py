"""The wheel that users install: nothing but icecomb in it, its jars ready, no compiler needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.spark import jar
from icecomb.spark.wheel import build_wheel
from tests.environments import ICEBERG_JAVA_VENV, ROOT, SPARK_3_5_VENV, made, pyspark_of

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.full("compiles for six Sparks, packs all of it and installs it"),
]


def sparks_at_hand():
    """Those of the peers; the classes of the others are fetched."""
    found = (ICEBERG_JAVA_VENV, SPARK_3_5_VENV)
    return [pyspark_of(made(venv)) for venv in found]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("dist"), sparks_at_hand())


@pytest.fixture(scope="module")
def python_with_wheel(wheel, tmp_path_factory):
    """A new environment: icecomb from the wheel, everything else from the one that runs the tests."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    [mine] = (folder / "lib").glob("python*/site-packages")
    [others] = (Path(sys.prefix) / "lib").glob("python*/site-packages")
    # a line of a .pth is appended to the path and its own .pth files are not read: the checkout's
    # editable install stays out
    (mine / "others.pth").write_text(f"{others}\n")
    return python


@pytest.fixture
def runtime_only(tmp_path):
    """A Java installation without a compiler, and a PATH that knows no other."""
    home = Path(shutil.which("java") or "").resolve().parent.parent
    runtime = tmp_path / "jre"
    (runtime / "bin").mkdir(parents=True)
    for part in home.iterdir():
        if part.name != "bin":
            (runtime / part.name).symlink_to(part)
    # the launcher finds its libraries beside its own real path: a link would lead back to the JDK
    shutil.copy2(home / "bin" / "java", runtime / "bin" / "java")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (tool for folder in ("/usr/bin", "/bin") for tool in Path(folder).iterdir()):
        if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
            (tools / tool.name).symlink_to(tool)
    return {"JAVA_HOME": str(runtime), "PATH": f"{runtime / 'bin'}{os.pathsep}{tools}"}


def test_the_wheel_holds_icecomb_and_nothing_beside_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {re.sub(r"-.*\.dist-info$", ".dist-info", top) for top in tops} == {
        "icecomb",
        "icecomb.dist-info",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith(".class")]
    assert "icecomb/catalog/__init__.pyi" in names


def test_the_wheel_carries_a_jar_for_every_spark(wheel):
    with zipfile.ZipFile(wheel) as archive:
        jars = {name for name in archive.namelist() if name.endswith(".jar")}
    assert jars == {
        "icecomb/spark/jars/icecomb-spark-3.5_2.12.jar",
        "icecomb/spark/jars/icecomb-spark-3.5_2.13.jar",
        "icecomb/spark/jars/icecomb-spark-4.0_2.13.jar",
        "icecomb/spark/jars/icecomb-spark-4.1_2.13.jar",
        "icecomb/spark/jars/icecomb-spark-4.2_2.13.jar",
        "icecomb/spark/jars/icecomb-spark-4.3_2.13.jar",
        "icecomb/catalog/jars/icecomb-metastore.jar",
    }


def test_building_a_wheel_leaves_the_checkout_without_jars(wheel):
    assert wheel.exists()
    assert not jar.ready_made("4.3", "2.13").exists()


def test_a_source_distribution_makes_the_same_wheel(wheel, tmp_path):
    """What `python -m build` does: first the source distribution, and from it the wheel."""
    hook = "import sys; sys.path.insert(0, 'spark/packaging'); import backend; backend.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", hook, tmp_path], cwd=ROOT, check=True, capture_output=True
    )
    [source] = tmp_path.glob("*.tar.gz")
    settings = [f"--config-settings=spark={spark}" for spark in sparks_at_hand()]
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", *settings]
    subprocess.run([*pip, "-q", "-w", tmp_path, source], check=True, capture_output=True)
    [built] = tmp_path.glob("*.whl")
    assert built.read_bytes() == wheel.read_bytes()


def test_there_is_no_wheel_without_jars(runtime_only, tmp_path, monkeypatch):
    for key, value in runtime_only.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ConfigurationError, match="has no javac"):
        build_wheel(tmp_path / "dist")
    assert not list((tmp_path / "dist").iterdir())


def test_spark_and_metastore_run_from_the_wheel_on_a_host_without_a_compiler(
    python_with_wheel, runtime_only, tmp_path
):
    script = tmp_path / "query.py"
    script.write_text(
        f"""
import shutil
import icecomb.catalog, icecomb.spark
assert shutil.which("javac") is None
assert "site-packages" in icecomb.spark.__file__, icecomb.spark.__file__
spark = icecomb.spark.session(
    warehouse={str(tmp_path / "lake")!r},
    **{{
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }},
)
spark.sql("CREATE NAMESPACE lake.shop")
spark.sql("CREATE TABLE lake.shop.t (id BIGINT, what STRING) USING iceberg PARTITIONED BY (what)")
spark.sql("INSERT INTO lake.shop.t VALUES (1, 'a'), (2, 'b'), (3, 'a')")
print(spark.sql("SELECT sum(id) FROM lake.shop.t WHERE what = 'a'").collect())
spark.stop()
from icecomb.catalog import metastore
metastore.stop({str(tmp_path / "lake")!r})
"""
    )
    done = subprocess.run(
        [python_with_wheel, "-I", script],
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("ICECOMB")},
            **runtime_only,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.stdout.strip() == "[Row(sum(id)=4)]", done.stderr[-4000:]
    assert not list((tmp_path / "cache").rglob("*.jar")), "something was compiled"
