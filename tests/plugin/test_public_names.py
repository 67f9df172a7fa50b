"""The names that `pytest_failgain` offers, in each way to ask for them."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import pytest_failgain


def test_every_public_name_is_the_one_of_its_module() -> None:
    for module, names in pytest_failgain._HOME.items():
        home = importlib.import_module(f"pytest_failgain.{module}")
        for name in names:
            assert getattr(pytest_failgain, name) is getattr(home, name)


def test_public_names_are_sorted_and_stand_once() -> None:
    names = [name for names in pytest_failgain._HOME.values() for name in names]
    assert pytest_failgain.__all__ == sorted(set(names)) == sorted(names)


def test_star_import_brings_them_all() -> None:
    namespace: dict[str, object] = {}
    exec("from pytest_failgain import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(pytest_failgain.__all__)


def test_dir_lists_them_beside_what_every_module_has() -> None:
    listed = dir(pytest_failgain)
    assert {*pytest_failgain.__all__, "__version__", "__all__"} <= set(listed)
    assert listed == sorted(set(listed))


def test_name_that_is_not_there_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(
        AttributeError, match=r"^module 'pytest_failgain' has no attribute 'assert_nothing'$"
    ):
        getattr(pytest_failgain, "assert_" + "nothing")
    with pytest.raises(ImportError, match="cannot import name 'assert_nothing'"):
        exec("from pytest_failgain import assert_nothing")
    assert not hasattr(pytest_failgain, "__path_that_nobody_has__")


def test_type_checkers_see_the_same_names() -> None:
    source = Path(inspect.getfile(pytest_failgain)).read_text(encoding="utf-8")
    (block,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen: dict[str, list[str]] = {}
    for imported in block.body:
        assert isinstance(imported, ast.ImportFrom)
        assert imported.module is not None
        module = imported.module.removeprefix("pytest_failgain.")
        for alias in imported.names:
            # Only "x as x" is an export.
            assert alias.asname == alias.name
            seen.setdefault(module, []).append(alias.name)
    assert {module: tuple(sorted(names)) for module, names in seen.items()} == {
        module: tuple(sorted(names)) for module, names in pytest_failgain._HOME.items()
    }
