"""A real OpenAI-compatible API behind the endpoint: requests passed on, answers passed back."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from pytest_failgain.capture.chat_stream import completion_of
from pytest_failgain.capture.loopback_server import Incoming, Reply
from pytest_failgain.capture.request_body import LARGEST_BODY, BodyError, unpacked
from pytest_failgain.capture.responses_stream import response_of
from pytest_failgain.capture.sse import events_in
from pytest_failgain.errors import UsageError

TIMEOUT = 600.0
_PIECE = 64 * 1024
# They are of one connection, or say how a body was packed that is unpacked here.
_OF_THE_CONNECTION = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_NOT_PASSED_BACK = (_OF_THE_CONNECTION - {"content-encoding"}) | {"date", "server", "set-cookie"}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Upstream:
    """The API at `url`, the base URL that a client would be given.

    Nothing else is asked: redirections are passed back and not followed. `timeout` is how many
    seconds it may be silent.

    Raises:
        UsageError: when `url` is no such URL, or `timeout` not above 0.
    """

    url: str
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
            _ = parts.port  # which raises where it is none
        except ValueError:
            usable = False
        if not usable:
            raise UsageError(
                f"upstream must be the base URL of an OpenAI-compatible API, such as "
                f"'https://api.openai.com/v1', not {self.url!r}"
            )
        if "@" in parts.netloc:
            raise UsageError(
                "the upstream's URL has a user or a password in it, which is not sent; leave it "
                "out and give the key to the agent's client, whose header is passed on"
            )
        if not self.timeout > 0:
            raise UsageError(f"timeout must be a number of seconds above 0, not {self.timeout!r}")

    def reply(
        self,
        incoming: Incoming,
        *,
        api: str = "",
        on_answer: Callable[[int, dict[str, Any]], None] = lambda status, answer: None,
        on_problem: Callable[[str], None],
    ) -> Reply:
        """What the upstream answers, as it comes.

        At the end `on_answer` gets the status and the answer as JSON, a stream put together. What
        is amiss is told to `on_problem`.
        """
        request = urllib.request.Request(
            self._address(incoming.path),
            data=incoming.body if incoming.method == "POST" else None,
            headers=_passed_on(incoming.headers),
            method=incoming.method,
        )
        try:
            answer = self._opener().open(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            answer = error
            on_problem(f"the upstream {self._host} answered with status {error.code}")
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            problem = (
                f"the upstream {self._host} can't be reached: {reason or type(error).__name__}"
            )
            on_problem(problem)
            written = {"error": {"message": problem, "type": "upstream_error", "code": None}}
            on_answer(502, written)
            return Reply(502, {"Content-Type": "application/json"}, json.dumps(written).encode())
        headers = _passed_back(answer.headers)
        return Reply(answer.status, headers, self._passing(answer, api, on_answer, on_problem))

    @property
    def _host(self) -> str:
        """Host and port alone: whatever else is in the URL is nobody's business."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def _address(self, path: str) -> str:
        beyond = path.removeprefix("/v1") if path.startswith("/v1/") else path
        return self.url.rstrip("/") + beyond

    def _opener(self) -> urllib.request.OpenerDirector:
        # A server on this machine is asked past any proxy.
        local = urlsplit(self.url).hostname in _LOOPBACK
        proxies = urllib.request.ProxyHandler({} if local else None)
        return urllib.request.build_opener(proxies, _NoRedirection)

    def _passing(
        self,
        answer: Any,
        api: str,
        on_answer: Callable[[int, dict[str, Any]], None],
        on_problem: Callable[[str], None],
    ) -> Iterator[bytes]:
        pieces: list[bytes] = []
        kept = 0
        try:
            while piece := answer.read1(_PIECE):
                kept += len(piece)
                if kept <= LARGEST_BODY:
                    pieces.append(piece)
                yield piece
        except (OSError, http.client.HTTPException) as error:
            on_problem(f"the upstream {self._host} broke off: {error or type(error).__name__}")
        finally:
            answer.close()
            read = _read(api, b"".join(pieces), answer.headers)
            if read is None:
                on_problem(f"the upstream {self._host} answered with no JSON")
            on_answer(answer.status, read or {})


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """Another address would be given the client's key."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _passed_on(headers: Message) -> dict[str, str]:
    passed = {
        name: value for name, value in headers.items() if name.lower() not in _OF_THE_CONNECTION
    }
    # What is packed could not be read here as it comes.
    return {**passed, "Accept-Encoding": "identity"}


def _passed_back(headers: Message) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED_BACK}


def _read(api: str, body: bytes, headers: Message) -> dict[str, Any] | None:
    """The answer as JSON; None where it is none."""
    if (headers.get("Content-Encoding") or "").lower() in ("gzip", "deflate"):
        try:
            body = unpacked(body)
        except BodyError:
            return None
    if "event-stream" in (headers.get("Content-Type") or ""):
        events = events_in(body)
        return completion_of(events) if api == "chat" else response_of(events)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
