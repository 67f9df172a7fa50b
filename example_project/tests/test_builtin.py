"""What pytest-failgain brings along: its environments, and its remedies for a verbatim record.

They show how much of the harm is to be expected of a model, whatever agent is built on it.
"""

from __future__ import annotations

import pytest

from pytest_failgain import (
    Failgain,
    Measurement,
    assert_corrective_gain_at_least,
    assert_inversion_removed,
    inversion_removed,
)
from pytest_failgain.environments.protocol import Environment
from pytest_failgain.harnesses import RemediedHarness

in_the_office = pytest.mark.parametrize("failgain_environment", ["tool_calls"], indirect=True)
four_remedies = pytest.mark.parametrize(
    "failgain_remedy", ["instructed", "described", "described-minimal", "dropped"], indirect=True
)
with_programs = pytest.mark.parametrize("failgain_environment", ["program_repair"], indirect=True)

# Nats per action token. Both descriptions measured +0.08 with smollm2-135m; "dropped" is 0 by
# construction; "instructed" has no floor, since it does not help.
FLOOR = {"described": -0.1, "described-minimal": -0.1, "dropped": -0.001}


@pytest.fixture(scope="module")
def verbatim(failgain: Failgain, failgain_environment: Environment) -> Measurement:
    return failgain.measure(failgain.remedy("verbatim"), failgain_environment.cases(30))


def test_a_verbatim_record_backfires(verbatim: Measurement) -> None:
    gain = verbatim.estimates["corrective_gain_per_token"]
    assert gain.value < -0.5
    assert gain.high < 0
    assert verbatim.estimates["negative_share"].value >= 0.9


@in_the_office
@four_remedies
def test_each_remedy(
    failgain: Failgain,
    failgain_environment: Environment,
    failgain_remedy: RemediedHarness,
    verbatim: Measurement,
) -> None:
    result = failgain.measure(failgain_remedy, failgain_environment.cases(30))
    if failgain_remedy.name == "instructed":
        # Told not to repeat a call that it can read above, the model repeats it all the same.
        assert inversion_removed(result, verbatim).value < 0.3
    else:
        assert_corrective_gain_at_least(result, FLOOR[failgain_remedy.name])
        assert_inversion_removed(result, verbatim, at_least=0.6)


@with_programs
def test_a_description_helps_with_programs_too(
    failgain: Failgain, failgain_environment: Environment, verbatim: Measurement
) -> None:
    described = failgain.measure(failgain.remedy("described"), failgain_environment.cases(30))
    assert_inversion_removed(described, verbatim, at_least=0.8)
