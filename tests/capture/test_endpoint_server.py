"""The endpoint as a server: what it takes, what it refuses, and how it ends connections."""

from __future__ import annotations

import gzip
import json
import os
import socket
import struct
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from endpoint_client import CALL, TASK, TOOLS, ask, ask_raw, complete, say

from pytest_failgain import Endpoint, FailingCall, FailingCallScript, UsageError
from pytest_failgain.capture import request_body
from pytest_failgain.capture.exchange import Exchange
from pytest_failgain.capture.script import Answer, Request

BODY = {"model": "any", "messages": [TASK], "tools": TOOLS}
RAW = json.dumps(BODY).encode()


def head(*lines: str, path: str = "/v1/chat/completions") -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: here", *lines, "", ""]).encode()


def test_address_is_on_the_loopback_and_each_endpoint_has_its_own() -> None:
    with Endpoint(CALL) as one, Endpoint(CALL) as other:
        parts = urlsplit(one.base_url)
        assert (parts.scheme, parts.hostname, parts.path) == ("http", "127.0.0.1", "/v1")
        assert parts.port
        assert one.base_url != other.base_url


def test_closed_endpoint_takes_no_requests_and_keeps_what_it_recorded() -> None:
    endpoint = Endpoint(CALL).start()
    say(endpoint, TASK)
    endpoint.close()
    endpoint.close()
    with pytest.raises(OSError, match=r"."):
        ask(endpoint, "/v1/models", method="GET")
    assert len(endpoint.exchanges) == 1


def test_endpoint_is_started_once_and_has_no_address_before() -> None:
    endpoint = Endpoint(CALL)
    with pytest.raises(UsageError, match="no address before start"):
        _ = endpoint.base_url
    with pytest.raises(UsageError, match="no address before start"):
        _ = endpoint.environment
    endpoint.close()
    with endpoint, pytest.raises(UsageError, match="started before"):
        endpoint.start()
    with pytest.raises(UsageError, match="started before"):
        endpoint.start()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "a script or upstream=URL"),
        ((CALL,), {"upstream": "http://127.0.0.1/v1"}, "a script or upstream=URL"),
        ((CALL,), {"max_requests": 0}, "max_requests must be 1 or more, not 0"),
        (([],), {}, "at least one failing call"),
        (("create_event",), {}, "'create_event' is no script"),
        (([CALL, "create_event"],), {}, "is no script"),
    ],
)
def test_what_no_endpoint_can_be_made_of_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Endpoint(*arguments, **options)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "/chat/completions/",
        "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        "/v1/v1/chat/completions",
    ],
)
def test_paths_are_served_whatever_stands_before_their_end(path: str) -> None:
    with Endpoint(CALL) as endpoint:
        received = ask(endpoint, path, BODY)
        assert received.json["object"] == "chat.completion"
    assert endpoint.problems == ()
    assert endpoint.exchanges[0].path == path.partition("?")[0]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/completions"),
        ("POST", "/v1/embeddings"),
        ("POST", "/"),
        ("GET", "/v1/chat/completions"),
        ("DELETE", "/v1/responses/resp_1"),
        ("PUT", "/v1/responses"),
        ("POST", "/v1/models"),
    ],
)
def test_other_requests_are_not_found_and_told(method: str, path: str) -> None:
    with Endpoint(CALL) as endpoint:
        received = [ask(endpoint, path, b"{}", method=method) for _ in range(2)]
    assert [one.status for one in received] == [404, 404]
    assert received[0].json["error"]["message"] == f"there is no {method} {path} here"
    assert endpoint.exchanges == ()
    (problem,) = endpoint.problems
    assert problem.startswith(f"{method} {path} is not served: only POST to …/chat/completions")
    assert problem.endswith("(2 times)")


def test_query_of_a_path_that_is_not_served_is_not_told() -> None:
    with Endpoint(CALL) as endpoint:
        ask(endpoint, "/v1/files?key=secret", method="GET")
    assert "secret" not in str(endpoint.problems)


def test_models_are_listed_and_any_model_is_there() -> None:
    with Endpoint(CALL) as endpoint:
        for path in ("/v1/models", "/models", "/v1/models/"):
            listed = ask(endpoint, path, method="GET").json
            assert listed["object"] == "list"
            assert [model["object"] for model in listed["data"]] == ["model"]
        assert ask(endpoint, "/v1/models/gpt-5", method="GET").json["id"] == "gpt-5"
    assert endpoint.problems == ()


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
def test_questions_about_the_server_are_harmless(method: str) -> None:
    with Endpoint(CALL) as endpoint:
        received = ask(endpoint, "/v1/chat/completions", method=method)
    assert (received.status, received.body) == (204, b"")
    assert endpoint.problems == ()
    assert endpoint.exchanges == ()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/chat/completions", BODY),
        ("POST", "/v1/chat/completions", {**BODY, "stream": True}),
        ("POST", "/v1/responses", {"input": "Add it.", "stream": True}),
        ("POST", "/v1/nothing", b"{}"),
        ("POST", "/v1/responses", b"no JSON"),
        ("GET", "/v1/models", None),
        ("HEAD", "/v1", None),
    ],
)
def test_every_answer_ends_its_connection(method: str, path: str, body: Any) -> None:
    with Endpoint(CALL) as endpoint:
        received = ask(endpoint, path, body, method=method, headers={"Connection": "keep-alive"})
        assert received.headers["connection"] == "close"


def test_second_request_on_a_connection_is_not_answered() -> None:
    request = head(f"Content-Length: {len(RAW)}") + RAW
    with Endpoint(CALL) as endpoint:
        received = ask_raw(endpoint, request + request)
    assert received.count(b"HTTP/1.1 200") == 1
    assert len(endpoint.exchanges) == 1


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe\xfa", b"[" * 200_000], ids=lambda body: repr(body[:5])
)
def test_body_that_is_no_json_object_is_refused_and_told(body: bytes) -> None:
    with Endpoint(CALL) as endpoint:
        received = ask(endpoint, "/v1/chat/completions", body)
    assert received.status == 400
    assert received.json["error"]["message"] == "the body is no JSON object"
    assert endpoint.problems == ("POST /v1/chat/completions: the body is no JSON object",)
    assert endpoint.exchanges == ()


def test_chunked_body_is_put_together() -> None:
    chunks = b"".join(
        b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in (RAW[:5], RAW[5:90], RAW[90:])
    )
    data = head("Transfer-Encoding: chunked") + chunks + b"0\r\nX-Trailer: 1\r\n\r\n"
    with Endpoint(CALL) as endpoint:
        assert b" 200 " in ask_raw(endpoint, data)
    assert endpoint.exchanges[0].raw == RAW


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(RAW, mtime=0)),
        ("x-gzip", gzip.compress(RAW, mtime=0)),
        ("GZIP", gzip.compress(RAW, mtime=0)),
        ("deflate", zlib.compress(RAW)),
        ("identity", RAW),
    ],
)
def test_compressed_body_is_unpacked(encoding: str, packed: bytes) -> None:
    with Endpoint(CALL) as endpoint:
        headers = {"Content-Encoding": encoding}
        assert ask(endpoint, "/v1/chat/completions", packed, headers=headers).status == 200
    assert endpoint.exchanges[0].raw == RAW
    assert endpoint.problems == ()


@pytest.mark.parametrize(
    ("headers", "body", "status", "message"),
    [
        (["Content-Encoding: br", "Content-Length: 3"], b"abc", 415, "compressed as 'br'"),
        (["Content-Encoding: gzip", "Content-Length: 3"], b"abc", 400, "body is broken"),
        (
            ["Content-Encoding: gzip", "Content-Length: 20"],
            gzip.compress(RAW, mtime=0)[:20],
            400,
            "broke",
        ),
        (["Content-Length: many"], b"", 400, "the body's length 'many' is no number"),
        (["Content-Length: -1"], b"", 400, "the body's length '-1' is no number"),
        (["Content-Length: 99999999999"], b"", 413, "longer than 67108864 bytes"),
        (["Transfer-Encoding: chunked"], b"zz\r\n", 400, "the body's length 'zz' is no number"),
        (["Transfer-Encoding: chunked"], b"fffffffffff\r\n", 413, "longer than 67108864"),
        (["Transfer-Encoding: chunked"], b"1" * 2000, 400, "between the chunks"),
    ],
)
def test_body_that_cannot_be_taken_is_refused_and_told(
    headers: list[str], body: bytes, status: int, message: str
) -> None:
    with Endpoint(CALL) as endpoint:
        received = ask_raw(endpoint, head(*headers) + body)
    assert received.startswith(f"HTTP/1.1 {status} ".encode())
    (problem,) = endpoint.problems
    assert message in problem
    assert message in json.loads(received.partition(b"\r\n\r\n")[2])["error"]["message"]


def test_compressed_body_may_not_grow_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body.unpacked, "__defaults__", (1000,))
    packed = gzip.compress(b" " * 2000)
    with pytest.raises(request_body.BodyError, match="longer than 1000 bytes"):
        request_body.unpacked(packed)
    assert request_body.unpacked(packed, 2000) == b" " * 2000


def test_client_that_asks_first_is_told_to_go_on() -> None:
    with Endpoint(CALL) as endpoint:
        parts = urlsplit(endpoint.base_url)
        with socket.create_connection(("127.0.0.1", parts.port or 0), timeout=10) as connection:
            connection.sendall(head("Expect: 100-continue", f"Content-Length: {len(RAW)}"))
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(RAW)
            assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_clients_that_go_away_are_no_problem(capfd: pytest.CaptureFixture[str]) -> None:
    with Endpoint(CALL) as endpoint:
        parts = urlsplit(endpoint.base_url)
        for sent in (b"", b"POST /v1", head("Content-Length: 50"), head("Content-Length: 2")):
            connection = socket.create_connection(("127.0.0.1", parts.port or 0), timeout=10)
            connection.sendall(sent)
            # Closed with a reset rather than with a farewell.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        assert say(endpoint, TASK)["tool_calls"]
    assert endpoint.problems == ()
    assert capfd.readouterr() == ("", "")


def test_requests_are_served_beside_each_other_in_daemon_threads() -> None:
    threads = []

    class Watching(FailingCallScript):
        def answer(self, request: Request, /) -> Answer:
            threads.append(threading.current_thread())
            return super().answer(request)

    with Endpoint(Watching(CALL)) as endpoint:
        port = urlsplit(endpoint.base_url).port or 0
        # One client that never sends its body keeps nobody waiting.
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(head("Content-Length: 50"))
            with ThreadPoolExecutor(8) as pool:
                said = list(pool.map(lambda _: say(endpoint, TASK), range(24)))
    assert len(endpoint.exchanges) == 24
    assert all(message == said[0] for message in said)
    assert threading.main_thread() not in threads
    assert all(thread.daemon for thread in threads)


def test_numbers_of_answers_are_all_different() -> None:
    with Endpoint(CALL) as endpoint, ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: complete(endpoint, TASK)["id"], range(24)))
    assert len(set(ids)) == 24
    assert [one.answer["id"] for one in endpoint.exchanges] == sorted(ids)


def test_bodies_are_kept_as_they_came_and_headers_nowhere() -> None:
    raw = b'{ "messages" : [{"role": "user", "content": "caf\\u00e9 \xc3\xa9"}],  "seed":1}'
    headers = {"Authorization": "Bearer sk-secret", "X-Api-Key": "sk-secret"}
    with Endpoint(CALL) as endpoint:
        ask(endpoint, "/v1/chat/completions?key=sk-secret", raw, headers=headers)
        ask(endpoint, "/v1/elsewhere?key=sk-secret", raw, headers=headers)
    (exchange,) = endpoint.exchanges
    assert exchange.raw == raw
    assert exchange.body == json.loads(raw)
    assert (exchange.api, exchange.status, exchange.restored) == ("chat", 200, 0)
    assert exchange.answer["choices"][0]["message"]["content"] == "Done."
    assert not {"headers", "header"} & {*Exchange.__dataclass_fields__}
    assert "sk-secret" not in repr((endpoint.exchanges, endpoint.problems, vars(endpoint)))


def test_requests_over_the_cap_are_ended_not_kept_and_told() -> None:
    with Endpoint(CALL, max_requests=2) as endpoint:
        said = [say(endpoint, TASK) for _ in range(5)]
    assert [bool(message.get("tool_calls")) for message in said] == [True, True] + [False] * 3
    assert [message["content"] for message in said[2:]] == ["Done."] * 3
    assert len(endpoint.exchanges) == 2
    (problem,) = endpoint.problems
    assert problem.startswith("requests over the cap of 2, answered with the final text and not")
    assert "kept: 3;" in problem
    assert "max_requests=" in problem


def test_environment_leads_clients_here_past_proxies_and_without_telemetry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_PROXY", "intern.example, localhost")
    monkeypatch.setenv("no_proxy", "other.example")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    before = dict(os.environ)
    with Endpoint(CALL) as endpoint:
        variables = endpoint.environment
        assert variables["OPENAI_BASE_URL"] == variables["OPENAI_API_BASE"] == endpoint.base_url
    assert variables["OPENAI_API_KEY"] not in ("", "sk-secret")
    assert variables["NO_PROXY"] == variables["no_proxy"]
    assert variables["NO_PROXY"].split(",") == [
        "intern.example",
        "localhost",
        "other.example",
        "127.0.0.1",
    ]
    assert variables["OPENAI_AGENTS_DISABLE_TRACING"] == "1"
    assert variables["CREWAI_DISABLE_TELEMETRY"] == "true"
    assert variables["AGNO_TELEMETRY"] == variables["LANGSMITH_TRACING"] == "false"
    assert variables["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert dict(os.environ) == before


def test_bodies_of_any_shape_are_answered() -> None:
    odd: list[Any] = [None, 5, "x", [], {}, [None, 5, "x", [[]], {}], {"x": []}]
    keys = ("messages", "tools", "tool_choice", "stop", "n", "stream_options", "response_format")
    message = {"role": "assistant", "content": [{}, 5], "tool_calls": [5, {"function": 5}, {}]}
    with Endpoint(CALL, max_requests=10_000) as endpoint:
        for key in keys:
            for value in odd:
                body = {**BODY, key: value}
                assert ask(endpoint, "/v1/chat/completions", body).status == 200, body
        for value in (*odd, 0, [{"function": {"name": 5, "arguments": {}}}]):
            for message_key in ("tool_calls", "content", "role", "function_call", "tool_call_id"):
                sent = {**BODY, "messages": [TASK, {**message, message_key: value}]}
                assert ask(endpoint, "/v1/chat/completions", sent).status == 200, sent
        for key in ("input", "instructions", "tools", "text", "conversation", "tool_choice"):
            for value in (*odd, [{"type": "function_call"}, {"type": 5, "role": 5}]):
                sent = {"input": "Add it.", key: value}
                assert ask(endpoint, "/v1/responses", sent).status == 200, sent
    assert endpoint.problems == ()


def test_script_that_breaks_ends_the_agent_and_is_told() -> None:
    class Broken:
        def __init__(self, result: Any) -> None:
            self.result = result

        def answer(self, request: Any, /) -> Any:
            if isinstance(self.result, Exception):
                raise self.result
            return self.result

    for result, told in (
        (KeyError("date"), "the script Broken raised KeyError: 'date'; the final text was sent"),
        ("Hello", "the script Broken returned 'Hello' and no Answer; the final text was sent"),
    ):
        with Endpoint(Broken(result)) as endpoint:
            assert say(endpoint, TASK)["content"] == "Done."
        assert endpoint.problems == (told,)


def test_neither_server_nor_script_is_imported_with_the_package(pytester: pytest.Pytester) -> None:
    code = (
        "import sys, pytest_failgain.capture.endpoint; "
        "print(sorted({'numpy', 'torch', 'hypothesis', 'pytest', 'openai'} & {*sys.modules}))"
    )
    result = pytester.run(sys.executable, "-c", code)
    result.stdout.fnmatch_lines(["[[]]"])


def test_several_failing_calls_may_be_given_as_a_list() -> None:
    other = FailingCall("create_event", {"date": "3 May"})
    with Endpoint([CALL, other]) as endpoint:
        assert say(endpoint, TASK)["tool_calls"][0]["function"]["arguments"] == CALL.arguments
