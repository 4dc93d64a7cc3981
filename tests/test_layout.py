"""The folders, their mapping to the import root, and what importing costs."""

import ast
import configparser
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from icecomb.format.property.property import Property

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("catalog", "format", "spark")
UPHILL = {
    ("icecomb.format.spec.types", "icecomb.format.spec.single_value"): (
        "a field's JSON holds default values, whose JSON is told by their types"
    ),
    ("icecomb.format.spec.transform", "icecomb.format.spec.transform_arrow"): (
        "Transform.apply_array is public; pyarrow is loaded when it is called"
    ),
    ("icecomb.format.spec.schema", "icecomb.format.spec.arrow_schema"): (
        "Schema.as_arrow is PyIceberg's; pyarrow is loaded when it is called"
    ),
    ("icecomb.format.spec.metadata", "icecomb.format.spec.metadata_json"): (
        "metadata is pickled as its JSON, and has to_json and from_json like all values of the spec"
    ),
    ("icecomb.format.manifests.manifest", "icecomb.format.manifests.reader"): (
        "ManifestFile.fetch_manifest_entry is PyIceberg's"
    ),
}
"""Imports inside functions that close a circle, and why."""
DECLARATION = re.compile(
    r"(?<![.\w])(?:{})\(\s*\"([^\"]+)\"".format(
        "|".join(
            name
            for name, found in vars(sys.modules[Property.__module__]).items()
            if found is Property
            or str(getattr(found, "__annotations__", {}).get("return")).startswith("Property[")
        )
    )
)
"""The declaration of a property, with its key."""
BETWEEN = {
    "icecomb.format.spec": (("change", "view"), ("values",)),
    "icecomb.format.expressions": (("filter_argument", "forms", "sql"), ()),
    "icecomb.format.operation": (("expiry",), ()),
    "icecomb.catalog.cli": ((), ("report", "application", "completion", "argument", "output")),
}
"""Folders whose modules stand below some of their rooms and above others; the order of rooms stands in pyproject.toml."""
POOLS = {
    "icecomb.format.arrow.batch_stream": "`thread_pool`, which all others use",
    "icecomb.format.storage.creations": "what was begun in a block is finished, whatever ends it",
    "icecomb.format.storage.object_store.file_system": "it lives from the first write to the last",
    "icecomb.format.storage.range_input": "it lives from the first read to the last",
}
"""Modules that make threads for others' work, and why."""
TWICE = {"MapType": "Paimon's and Iceberg's"}
"""Names of classes that mean two things, and what."""
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


def test_no_imports_go_in_a_circle_not_even_inside_functions_but_those_listed() -> None:
    modules = _modules()
    graph = {module: set(_imports(path, modules)) for module, path in modules.items()}
    for source, target in UPHILL:
        graph[source].remove(target)
    assert _circle(graph) == []
    for source, target in UPHILL:
        graph[source].add(target)
        assert _circle(graph), f"{source} -> {target} need not be listed"
        graph[source].remove(target)


def test_the_name_of_a_class_means_one_thing() -> None:
    names = Counter(
        node.name
        for path in _modules().values()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == TWICE.keys()


@pytest.mark.parametrize("folder", BETWEEN)
def test_the_modules_of_a_folder_stand_between_its_rooms(folder: str) -> None:
    above, below = BETWEEN[folder]
    modules = {name: path for name, path in _modules().items() if name.startswith(f"{folder}.")}
    rooms = {name: name.removeprefix(f"{folder}.").partition(".")[0] for name in modules}
    assert {*above, *below} <= set(rooms.values())
    between = {name for name, room in rooms.items() if room not in {*above, *below}}
    assert len(between) > 10
    upward = [
        (name, target)
        for name, path in modules.items()
        for target in _imports(path, modules)
        if target in rooms and (name, target) not in UPHILL
        if (name in between and rooms[target] in above)
        or (rooms[name] in below and (target in between or rooms[target] in above))
    ]
    assert upward == []


def test_a_property_is_declared_once() -> None:
    found: dict[str, list[str]] = {}
    for module, path in _modules().items():
        for key in DECLARATION.findall(path.read_text()):
            found.setdefault(key, []).append(module)
    assert len(found) > 200
    assert {key: modules for key, modules in found.items() if len(modules) > 1} == {}


def test_threads_for_work_are_made_in_one_place_but_for_a_reason() -> None:
    making = {
        name for name, path in _modules().items() if "ThreadPoolExecutor(" in path.read_text()
    }
    assert making == POOLS.keys()


def test_a_class_name_means_one_thing() -> None:
    found: dict[str, list[str]] = {}
    for module, path in _modules().items():
        # messages are named for what they carry, and Paimon's types as Paimon names them
        if not module.startswith(("icecomb.spark.planner.protocol.", "icecomb.catalog.paimon.")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(module)
    assert len(found) > 500
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def _circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _modules() -> dict[str, Path]:
    return {
        ".".join(("icecomb", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
    }


def _imports(path: Path, modules: Container[str]) -> Iterator[str]:
    """The modules that the code of a module imports anywhere, but for type checkers."""
    nodes: list[ast.AST] = [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes += node.orelse
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in modules else str(node.module)
