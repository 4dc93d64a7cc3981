"""The folders, their mapping to the import root, and what importing costs."""

import configparser
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("catalog", "format", "spark")
PACKAGES = ("icecomb", "icecomb.format", "icecomb.catalog", "icecomb.spark")


def test_every_folder_with_code_is_a_line_of_setup_cfg() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    mapped = set(config["options"]["packages"].split())
    found = {
        "icecomb." + ".".join(init.parent.relative_to(ROOT).parts)
        for floor in FLOORS
        for init in (ROOT / floor).rglob("__init__.py")
    }
    assert {"icecomb"} | found == mapped


def test_every_folder_of_python_modules_is_a_package() -> None:
    homeless = {
        module.parent.relative_to(ROOT)
        for floor in FLOORS
        for module in (ROOT / floor).rglob("*.py")
        if not (module.parent / "__init__.py").exists()
    }
    assert homeless == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_no_heavy_library(package: str) -> None:
    heavy = ["fastavro", "pandas", "polars", "pyarrow", "pyspark", "rich", "thrift"]
    code = (
        f"import sys, json, {package}; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd="/")
    assert json.loads(found.stdout) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_a_package_can_be_imported(package: str) -> None:
    module = __import__(package, fromlist=["__all__"])
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
