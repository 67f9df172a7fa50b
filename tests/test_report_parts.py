"""Numbers and tables, as every report writes them."""

from __future__ import annotations

import math

import pytest

from pytest_failgain.report.markdown import markdown_table
from pytest_failgain.report.numbers import change, percent, percents, signed, signed_value
from pytest_failgain.statistics import Estimate

UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0)


def test_a_signed_value_stands_with_its_interval() -> None:
    assert signed(Estimate(-1.18449, -1.5, 0.25, 30)) == "-1.184 [-1.500, +0.250]"
    assert signed(Estimate(2, 0, math.inf, 3), 1) == "+2.0 [+0.0, +inf]"


def test_what_is_not_known_is_no_number() -> None:
    assert signed(Estimate(-1, math.nan, math.nan, 3)) == "-1.000 [unknown]"
    assert [signed(UNKNOWN), signed_value(UNKNOWN), change(0.1, UNKNOWN)] == ["-", "-", "-"]
    assert signed(Estimate(math.nan, math.nan, math.nan, 3)) == "-"
    assert percent(math.nan) == "-"
    assert percents(Estimate(0.5, math.nan, math.nan, 3)) == "50% [unknown]"


@pytest.mark.parametrize(("before", "shown"), [(0.142, "0.14"), (-1e-9, "0.00")])
def test_a_change_is_from_one_value_to_another(before: float, shown: str) -> None:
    assert change(before, Estimate(0.944, 0.9, 1, 30)) == f"{shown} -> 0.94"


def test_a_rounded_zero_has_no_sign() -> None:
    assert percent(-0.001) == "0%"


def test_no_text_ends_its_cell_or_its_line() -> None:
    table = markdown_table(["name", "n"], [["a|b\nc", "3"]])
    assert table == "| name | n |\n| --- | ---: |\n| a\\|b c | 3 |\n"
