"""The page of arguments: what Iceberg's procedures take and return is what ours do, or said there."""

from __future__ import annotations

import inspect

import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import UnsupportedError
from icecomb.spark.planner.procedures import PROCEDURES
from icecomb.spark.planner.procedures.call import Call
from icecomb.spark.planner.procedures.maintenance import MAINTENANCE
from icecomb.spark.planner.procedures.signature import Parameter
from tests import procedure_table as page

IN_PYTHON = {
    "array<string>": "tuple[str, ...]",
    "bigint": "int",
    "boolean": "bool",
    "int": "int",
    "map<string,string>": "Mapping[str, str]",
    "string": "str",
    "timestamp": "int",
}


def test_the_page_has_every_procedure_and_argument_as_the_code_has_them():
    assert page.in_page() == page.table(), "run python -m tests.procedure_table --write"


def test_every_procedure_of_iceberg_is_there():
    assert set(page.ICEBERG) - set(PROCEDURES) == set()


@pytest.mark.parametrize("name", page.ICEBERG)
def test_a_procedure_has_iceberg_s_arguments_and_columns_and_own_arguments_follow(name):
    procedure = PROCEDURES[name]
    assert page.declared(procedure) == page.ICEBERG[name]
    added = page.own(name)
    assert [p.name for p in procedure.parameters][len(procedure.parameters) - len(added) :] == added
    assert not any(p.required for p in procedure.parameters if p.name in added)


@pytest.mark.parametrize("name", sorted(PROCEDURES.keys() - MAINTENANCE.keys()))
def test_a_function_takes_what_is_declared_above_it(name):
    procedure = PROCEDURES[name]
    _, *taken = inspect.signature(procedure.run).parameters.values()
    assert [(one.name, one.annotation) for one in taken] == [
        (one.name, IN_PYTHON[one.type.name] + ("" if is_given(one) else " | None"))
        for one in procedure.parameters
    ]


def is_given(parameter: Parameter) -> bool:
    return parameter.required or parameter.default is not None


def test_remarks_are_of_arguments_that_are_there():
    known = {f"{name}.{p.name}" for name, one in PROCEDURES.items() for p in one.parameters}
    remarks = (page.REFUSED, page.NO_EFFECT, page.REMARKS)
    assert set().union(*remarks) <= known
    assert sum(map(len, remarks)) == len(set().union(*remarks))
    assert set(page.PROPOSED) <= set(PROCEDURES) - set(page.ICEBERG)


def test_what_is_called_refused_is(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    assert set(page.REFUSED) == {"migrate.backup_table_name"}
    migrate = PROCEDURES["migrate"]
    arguments = migrate.bind([("table", "db.t"), ("backup_table_name", "old")])
    with pytest.raises(UnsupportedError, match="makes no backup table"):
        migrate.run(Call(lake, ("db",), None, iter), **arguments)
