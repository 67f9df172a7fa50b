"""A client of the endpoint that shows what really went over the wire."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pytest_failgain import Endpoint, FailingCall

ERROR = "'date' must be YYYY-MM-DD, got '12 Oct'"
ARGUMENTS = '{"title": "Dentist", "date": "12 Oct"}'
CALL = FailingCall("create_event", ARGUMENTS, error=ERROR)
TASK = {"role": "user", "content": "Add Dentist on 12 Oct."}
PARAMETERS = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "date": {"type": "string"}},
    "required": ["title", "date"],
}


def tool(name: str, parameters: Mapping[str, Any] = PARAMETERS) -> dict[str, Any]:
    """A tool as chat completions offer it."""
    return {"type": "function", "function": {"name": name, "parameters": dict(parameters)}}


def flat_tool(name: str, parameters: Mapping[str, Any] = PARAMETERS) -> dict[str, Any]:
    """A tool as the Responses API offers it."""
    return {"type": "function", "name": name, "parameters": dict(parameters)}


TOOLS = [tool("create_event")]
FLAT_TOOLS = [flat_tool("create_event")]


@dataclass(frozen=True)
class Received:
    """An answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str | None, Any]]:
        """The events of a stream, each with its name and its data; "[DONE]" stays a text."""
        found = []
        assert self.body.endswith(b"\n\n")
        for block in self.body.decode().removesuffix("\n\n").split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            data = lines["data"]
            found.append((lines.get("event"), data if data == "[DONE]" else json.loads(data)))
        return found


def ask(
    endpoint: Endpoint,
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> Received:
    """Send `body` as it is where it is bytes, else as JSON; `path` is that behind the host."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(endpoint.base_url).netloc, timeout=10)
    try:
        connection.request(method, path, data, dict(headers or {}))
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Received(answer.status, named, answer.read())
    finally:
        connection.close()


def ask_raw(endpoint: Endpoint, data: bytes) -> bytes:
    """All that comes back for `data` until the server closes the connection."""
    parts = urlsplit(endpoint.base_url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 0), timeout=10) as connection:
        connection.sendall(data)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def complete(endpoint: Endpoint, *messages: Any, tools: Any = TOOLS, **fields: Any) -> Any:
    """The chat completion that answers these messages."""
    body = {"model": "any", "messages": list(messages), "tools": tools, **fields}
    received = ask(endpoint, "/v1/chat/completions", body)
    assert received.status == 200
    return received.json


def say(endpoint: Endpoint, *messages: Any, tools: Any = TOOLS, **fields: Any) -> Any:
    """The assistant's message that answers these messages."""
    return complete(endpoint, *messages, tools=tools, **fields)["choices"][0]["message"]


def respond(endpoint: Endpoint, given: Any, *, tools: Any = FLAT_TOOLS, **fields: Any) -> Any:
    """The response of the Responses API to this input."""
    body = {"model": "any", "input": given, "tools": tools, **fields}
    received = ask(endpoint, "/v1/responses", body)
    assert received.status == 200
    return received.json


def result_of(message: Any, text: str = f"Error: {ERROR}") -> dict[str, Any]:
    """The tool's message that answers the first call of an assistant's."""
    return {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": text}


def output_of(response: Any, text: str = f"Error: {ERROR}") -> dict[str, Any]:
    """The item that answers the call of a response."""
    (call,) = (item for item in response["output"] if item["type"] == "function_call")
    return {"type": "function_call_output", "call_id": call["call_id"], "output": text}
