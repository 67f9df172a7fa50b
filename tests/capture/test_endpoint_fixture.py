"""The fixture `failgain_endpoint`, as a user's test uses it."""

from __future__ import annotations

import pytest

TEST = """
    import json
    import os
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    import pytest
    from pytest_failgain import FailingCall, FailingCallScript, UsageError

    CALL = FailingCall("add", {"date": "12 Oct"})
    OTHER = FailingCall("add", {"date": "3 May"})
    started = []

    def ask(endpoint):
        body = {"messages": [{"role": "user", "content": "Add it."}], "tools": [
            {"type": "function", "function": {"name": "add", "parameters": {}}}
        ]}
        request = Request(f"{endpoint.base_url}/chat/completions", json.dumps(body).encode())
        with urlopen(request) as answer:
            message = json.load(answer)["choices"][0]["message"]
        return message["tool_calls"][0]["function"]["arguments"]
"""


def run(pytester: pytest.Pytester, test: str, passed: int) -> None:
    lines = "\n".join(f"    {line}" for line in test.strip("\n").split("\n"))
    pytester.makepyfile(f"{TEST}\n{lines}")
    pytester.runpytest("-W", "error").assert_outcomes(passed=passed)


def test_endpoints_are_started_and_closed_after_the_test(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
def test_started(failgain_endpoint):
    started.append(failgain_endpoint(CALL))
    started.append(failgain_endpoint([OTHER, CALL], max_requests=1))
    started.append(failgain_endpoint(FailingCallScript(CALL)))
    started.append(failgain_endpoint(upstream=started[1].base_url))
    assert [ask(endpoint) for endpoint in started[:3]] == [
        CALL.arguments_text, OTHER.arguments_text, CALL.arguments_text
    ]
    assert len(started[2].exchanges) == 1

def test_closed():
    assert len(started) == 4
    for endpoint in started:
        with pytest.raises(URLError):
            urlopen(f"{endpoint.base_url}/models")
    assert len(started[0].exchanges) == 1
""",
        2,
    )


def test_environment_is_set_only_on_demand_and_until_the_end(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
BEFORE = dict(os.environ)

def variables():
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}

BEFORE = variables()

def test_nothing_is_set(failgain_endpoint):
    failgain_endpoint(CALL)
    assert variables() == BEFORE

def test_set(failgain_endpoint):
    endpoint = failgain_endpoint(CALL, set_environment=True)
    assert variables() == {**BEFORE, **endpoint.environment}
    assert os.environ["OPENAI_BASE_URL"] == endpoint.base_url
    latest = failgain_endpoint(CALL, set_environment=True)
    assert os.environ["OPENAI_BASE_URL"] == latest.base_url

def test_set_beside_the_tests_own(monkeypatch, failgain_endpoint):
    monkeypatch.setenv("OPENAI_BASE_URL", "mine")
    failgain_endpoint(CALL, set_environment=True)
    assert os.environ["OPENAI_BASE_URL"] != "mine"

def test_restored():
    assert variables() == BEFORE
""",
        4,
    )


def test_wrong_use_is_told(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
def test_no_script(failgain_endpoint):
    with pytest.raises(UsageError, match="a script or upstream=URL"):
        failgain_endpoint()
""",
        1,
    )
