"""What a suite demands of its measurements: thresholds, and that nothing gets worse."""

from __future__ import annotations

from functools import partial

from yaml.nodes import MappingNode, Node

from pytest_failgain.suites.nodes import Field, fields_of, flag_or_none, line_of, number_of, shown
from pytest_failgain.suites.problems import Problems, SchemaError
from pytest_failgain.suites.suite import Regression, Threshold
from pytest_failgain.summary_values import SUMMARY_VALUES


def read_thresholds(field: Field, problems: Problems) -> tuple[Threshold, ...]:
    """Bounds by the names of a summary's numbers; those that are wrong are noted.

    Raises:
        SchemaError: when it is no mapping.
    """
    named = fields_of(
        field.value, "'thresholds'", problems, SUMMARY_VALUES, kind="value of the summary"
    )
    thresholds = [
        problems.attempt(partial(_threshold, one, problems), None) for one in named.values()
    ]
    return tuple(one for one in thresholds if one is not None)


def _threshold(named: Field, problems: Problems) -> Threshold:
    what = f"the threshold of {named.key!r}"
    number = shown(named.value)
    try:
        number_of(named.value, what)
    except SchemaError:
        pass
    else:
        raise SchemaError(
            named.line,
            f"{what} is {number}, on which side? Write {{at_least: {number}}} or "
            f"{{at_most: {number}}}",
        )
    fields = fields_of(named.value, what, problems, ("at_least", "at_most"))
    kind = SUMMARY_VALUES[named.key].kind
    read = _share if kind == "share" else number_of
    bounds = {
        key: problems.attempt(partial(read, one.value, f"{key!r} of {named.key!r}"), None)
        for key, one in fields.items()
    }
    at_least, at_most = bounds.get("at_least"), bounds.get("at_most")
    if not fields:
        raise SchemaError(named.line, f"{what} has no bound; give at_least, at_most or both")
    if at_least is not None and at_most is not None and at_least > at_most:
        raise SchemaError(
            named.line, f"{what} can't be met: at_least {at_least:g} is over at_most {at_most:g}"
        )
    return Threshold(named.key, at_least, at_most)


def _share(node: Node, what: str) -> float:
    fits = "a share between 0 and 1"
    number = number_of(node, what, fits)
    if not 0 <= number <= 1:
        raise SchemaError(line_of(node), f"{what} must be {fits}, got {shown(node)}")
    return number


def _gain_drop(node: Node, what: str) -> float:
    fits = "0 or more nats per token"
    number = number_of(node, what, fits)
    if number < 0:
        raise SchemaError(line_of(node), f"{what} must be {fits}, got {shown(node)}")
    return number


def read_regression(field: Field, problems: Problems) -> Regression | None:
    """True or false, or the limits of a regression; those that are wrong are noted.

    Raises:
        SchemaError: when it is neither a flag nor a mapping.
    """
    flag = flag_or_none(field.value)
    if flag is not None:
        return Regression() if flag else None
    if not isinstance(field.value, MappingNode):
        raise SchemaError(
            line_of(field.value),
            f"'regression' is {shown(field.value)}; write true, or limits such as "
            "{max_increase: 0.05, max_gain_drop: 0.1}",
        )
    fields = fields_of(field.value, "'regression'", problems, ("max_increase", "max_gain_drop"))
    limits = {
        key: problems.attempt(
            partial(_share if key == "max_increase" else _gain_drop, one.value, repr(key)), None
        )
        for key, one in fields.items()
    }
    return Regression(**limits)
