"""The endpoint in front of a real API: what is passed on, passed back, and recorded."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from endpoint_client import (
    ARGUMENTS,
    CALL,
    TASK,
    TOOLS,
    ask,
    complete,
    output_of,
    respond,
    result_of,
    say,
)

from pytest_failgain import Endpoint, UsageError
from pytest_failgain.capture.chat_stream import completion_of
from pytest_failgain.capture.loopback_server import Incoming, LoopbackServer, Reply
from pytest_failgain.capture.upstream import Upstream

BODY = {"model": "any", "messages": [TASK], "tools": TOOLS}
JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}


@dataclass
class Api:
    """An API that answers everything in one way and remembers what it got."""

    status: int
    headers: Mapping[str, str]
    body: bytes | Callable[[], Iterable[bytes]]
    got: list[Incoming] = field(default_factory=list)

    def reply(self, incoming: Incoming, /) -> Reply:
        self.got.append(incoming)
        body = self.body if isinstance(self.body, bytes) else self.body()
        return Reply(self.status, self.headers, body)

    def refuse(self, *_: Any) -> Reply:
        raise AssertionError

    def broke(self, error: BaseException, /) -> None:
        raise error


@contextmanager
def in_front_of(
    body: bytes | Callable[[], Iterable[bytes]],
    status: int = 200,
    headers: Mapping[str, str] = JSON,
    **options: Any,
) -> Iterator[tuple[Endpoint, Api]]:
    api = Api(status, headers, body)
    server = LoopbackServer(api)
    try:
        with Endpoint(upstream=f"http://127.0.0.1:{server.port}/api/v1", **options) as endpoint:
            yield endpoint, api
    finally:
        server.close()


def test_client_sees_what_the_upstream_says_and_both_sides_record_it() -> None:
    with Endpoint(CALL) as real, Endpoint(upstream=real.base_url) as endpoint:
        message = say(endpoint, TASK)
        assert say(endpoint, TASK, message, result_of(message))["content"] == "Done."
    assert message["tool_calls"][0]["function"]["arguments"] == ARGUMENTS
    assert endpoint.problems == real.problems == ()
    assert endpoint.exchanges == real.exchanges


def test_stream_comes_bit_by_bit_and_is_recorded_whole() -> None:
    may_end = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b'data: {"id": "x", "choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
        assert may_end.wait(10)
        yield b'data: {"id": "x", "choices": [{"index": 0, "delta": {"content": "lo"}}]}\n\n'
        yield b"data: [DONE]\n\n"

    with in_front_of(pieces, headers=EVENTS) as (endpoint, _):
        parts = urlsplit(endpoint.base_url)
        raw = json.dumps({**BODY, "stream": True}).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", parts.port or 0), timeout=10) as connection:
            connection.sendall(head.encode() + raw)
            received = b""
            while b"Hel" not in received:
                received += connection.recv(4096)
            assert b"[DONE]" not in received
            may_end.set()
            while piece := connection.recv(4096):
                received += piece
    assert received.endswith(b"data: [DONE]\n\n")
    (exchange,) = endpoint.exchanges
    assert exchange.answer["choices"][0]["message"]["content"] == "Hello"
    assert endpoint.problems == ()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_streams_of_both_apis_are_recorded_as_the_upstream_meant_them(path: str) -> None:
    body = {**BODY, "input": "Add it.", "stream": True, "stream_options": {"include_usage": True}}
    with Endpoint(CALL) as real, Endpoint(upstream=real.base_url) as endpoint:
        received = ask(endpoint, path, body)
    (exchange,), (meant,) = endpoint.exchanges, real.exchanges
    if path.endswith("responses"):
        assert exchange.answer == meant.answer
        assert received.events[-1][0] == "response.completed"
    else:
        told = completion_of(data for _, data in received.events if data != "[DONE]")
        assert exchange.answer == told
        made = exchange.answer["choices"][0]["message"]["tool_calls"]
        assert made == meant.answer["choices"][0]["message"]["tool_calls"]


def test_key_is_passed_on_and_kept_nowhere() -> None:
    headers = {
        "Authorization": "Bearer sk-secret",
        "OpenAI-Organization": "org-secret",
        "Content-Type": "application/json",
        "Proxy-Authorization": "Basic secret",
    }
    answer = b'{"choices": []}'
    with in_front_of(answer, headers={**JSON, "Set-Cookie": "sk-secret"}) as (endpoint, api):
        received = ask(endpoint, "/v1/chat/completions?key=sk-secret", BODY, headers=headers)
    (got,) = api.got
    assert got.headers["Authorization"] == "Bearer sk-secret"
    assert got.headers["OpenAI-Organization"] == "org-secret"
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["Proxy-Authorization"] is None
    assert got.headers["Accept-Encoding"] == "identity"
    assert got.headers["Host"].startswith("127.0.0.1:")
    assert got.path == "/api/v1/chat/completions?key=sk-secret"
    assert "set-cookie" not in received.headers
    assert "secret" not in repr((endpoint.exchanges, endpoint.problems, vars(endpoint)))


def test_body_goes_on_letter_for_letter() -> None:
    raw = b'{ "messages":[],  "x": "caf\\u00e9" }'
    with in_front_of(b'{"choices": []}') as (endpoint, api):
        headers = {"Content-Encoding": "gzip"}
        ask(endpoint, "/v1/chat/completions", gzip.compress(raw), headers=headers)
    (got,) = api.got
    assert got.body == raw
    assert got.headers["Content-Encoding"] is None
    assert endpoint.exchanges[0].raw == raw


def test_answer_that_is_compressed_all_the_same_is_passed_back_and_read() -> None:
    answer = b'{"choices": [{"message": {"content": "Hello"}}]}'
    packed = gzip.compress(answer)
    with in_front_of(packed, headers={**JSON, "Content-Encoding": "gzip"}) as (endpoint, _):
        received = ask(endpoint, "/v1/chat/completions", BODY)
    assert received.headers["content-encoding"] == "gzip"
    assert gzip.decompress(received.body) == answer
    assert endpoint.exchanges[0].answer == json.loads(answer)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_error_of_the_upstream_is_passed_back_with_its_status(status: int) -> None:
    error = b'{"error": {"message": "Not like that."}}'
    headers = {**JSON, "Retry-After": "1"}
    with in_front_of(error, status=status, headers=headers) as (endpoint, api):
        received = ask(endpoint, "/v1/chat/completions", BODY)
        address = api.got[0].headers["Host"]
    assert (received.status, received.body) == (status, error)
    assert received.headers["retry-after"] == "1"
    (exchange,) = endpoint.exchanges
    assert (exchange.status, exchange.answer) == (status, json.loads(error))
    assert endpoint.problems == (f"the upstream {address} answered with status {status}",)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirection_is_passed_back_and_not_followed(status: int) -> None:
    headers = {"Location": f"http://127.0.0.1:{closed_port()}/v1"}
    with in_front_of(b"", status=status, headers=headers) as (endpoint, api):
        received = ask(endpoint, "/v1/chat/completions", BODY)
    assert (received.status, received.headers["location"]) == (status, headers["Location"])
    assert len(api.got) == 1


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_upstream_that_is_not_there_is_a_bad_gateway_and_told() -> None:
    port = closed_port()
    with Endpoint(upstream=f"http://127.0.0.1:{port}/v1") as endpoint:
        received = ask(endpoint, "/v1/chat/completions", BODY)
    assert received.status == 502
    (problem,) = endpoint.problems
    assert problem.startswith(f"the upstream 127.0.0.1:{port} can't be reached: ")
    assert received.json["error"]["message"] == problem
    (exchange,) = endpoint.exchanges
    assert exchange.status == 502


def test_upstream_that_stays_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with Endpoint(upstream=address, timeout=0.2) as endpoint:
            assert ask(endpoint, "/v1/chat/completions", BODY).status == 502
    assert "timed out" in endpoint.problems[0]


def test_upstream_that_breaks_off_in_a_stream_is_told_and_kept_as_far_as_it_came() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n49\r\n"
                    b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}, "x": "12"}]}\n\n'
                )

        thread = threading.Thread(target=serve)
        thread.start()
        with Endpoint(upstream=f"http://127.0.0.1:{listening.getsockname()[1]}/v1") as endpoint:
            received = ask(endpoint, "/v1/chat/completions", {**BODY, "stream": True})
        thread.join()
    assert b"Hel" in received.body
    assert endpoint.exchanges[0].answer["choices"][0]["message"]["content"] == "Hel"
    (problem,) = endpoint.problems
    assert "broke off" in problem


def test_client_that_leaves_a_stream_early_is_recorded_as_far_as_it_came() -> None:
    client_left = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b'data: {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}\n\n'
        assert client_left.wait(10)
        for _ in range(200):
            yield b": " + b"x" * 4096 + b"\n\n"

    with in_front_of(pieces, headers=EVENTS) as (endpoint, _):
        parts = urlsplit(endpoint.base_url)
        raw = json.dumps(BODY).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", parts.port or 0), timeout=10) as connection:
            connection.sendall(head.encode() + raw)
            while b"Hello" not in connection.recv(4096):
                pass
        client_left.set()
        wait_for(lambda: bool(endpoint.exchanges))
    assert endpoint.exchanges[0].answer["choices"][0]["message"]["content"] == "Hello"
    assert endpoint.problems == ()


def wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(500):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("waited in vain")


def test_answer_that_is_no_json_is_passed_back_and_told() -> None:
    with in_front_of(b"<html>", headers={"Content-Type": "text/html"}) as (endpoint, _):
        received = ask(endpoint, "/v1/chat/completions", BODY)
    assert received.body == b"<html>"
    assert endpoint.exchanges[0].answer == {}
    assert "answered with no JSON" in endpoint.problems[0]


def test_state_of_responses_is_restored_in_front_of_an_upstream_too() -> None:
    with Endpoint(CALL) as real, Endpoint(upstream=real.base_url) as endpoint:
        first = respond(endpoint, [TASK])
        respond(endpoint, [output_of(first)], previous_response_id=first["id"])
    whole = [TASK, *first["output"], output_of(first)]
    assert endpoint.exchanges[1].body["input"] == whole
    # What went on is what the client sent, since the upstream keeps its own state.
    assert real.exchanges[1].raw == endpoint.exchanges[1].raw
    assert json.loads(endpoint.exchanges[1].raw)["input"] == [output_of(first)]


def test_models_are_the_upstreams() -> None:
    answer = b'{"object": "list", "data": [{"id": "mine"}]}'
    with in_front_of(answer) as (endpoint, api):
        assert ask(endpoint, "/v1/models", method="GET").json["data"] == [{"id": "mine"}]
        ask(endpoint, "/models/mine", method="GET")
    assert [(got.method, got.path) for got in api.got] == [
        ("GET", "/api/v1/models"),
        ("GET", "/api/v1/models/mine"),
    ]
    assert endpoint.exchanges == ()


def test_requests_over_the_cap_cost_nothing_upstream() -> None:
    with in_front_of(b'{"choices": []}', max_requests=1) as (endpoint, api):
        ask(endpoint, "/v1/chat/completions", BODY)
        assert say(endpoint, TASK)["content"] == "Done."
    assert len(api.got) == len(endpoint.exchanges) == 1
    assert "over the cap of 1" in endpoint.problems[0]


def test_paths_that_are_not_served_are_not_passed_on() -> None:
    with in_front_of(b"{}") as (endpoint, api):
        assert ask(endpoint, "/v1/files", BODY).status == 404
    assert api.got == []


def test_own_key_stays_in_the_environment() -> None:
    with Endpoint(upstream="http://127.0.0.1:9/v1") as endpoint:
        assert "OPENAI_API_KEY" not in endpoint.environment
        assert endpoint.environment["OPENAI_BASE_URL"] == endpoint.base_url


def test_upstream_on_this_machine_is_asked_past_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Endpoint(CALL) as real, Endpoint(upstream=real.base_url) as endpoint:
        assert complete(endpoint, TASK)["object"] == "chat.completion"


@pytest.mark.parametrize(
    "url",
    ["", "api.openai.com/v1", "ftp://x/v1", "http://", "http://x:port/v1", "http://x/v1?key=1"],
)
def test_url_that_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="upstream must be the base URL"):
        Endpoint(upstream=url)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_timeout_must_be_above_zero(timeout: float) -> None:
    with pytest.raises(UsageError, match="timeout must be a number of seconds above 0"):
        Upstream("http://127.0.0.1/v1", timeout)


def test_url_with_a_password_is_refused_without_telling_it() -> None:
    with pytest.raises(UsageError, match="a user or a password in it") as raised:
        Endpoint(upstream="http://user:secret@127.0.0.1/v1")
    assert "secret" not in str(raised.value)
