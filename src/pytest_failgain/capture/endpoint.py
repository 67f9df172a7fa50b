"""The server that an agent's client talks to in a model's place."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_failgain.capture.chat import UNNAMED_MODEL, read_chat, write_chat
from pytest_failgain.capture.chat_stream import stream_chat
from pytest_failgain.capture.endings import ending
from pytest_failgain.capture.environment import client_environment
from pytest_failgain.capture.exchange import Exchange
from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.capture.loopback_server import HOST, Incoming, LoopbackServer, Reply
from pytest_failgain.capture.request import Answer, Request, cut_at_stop
from pytest_failgain.capture.request_body import BodyError
from pytest_failgain.capture.responses import read_responses, write_responses
from pytest_failgain.capture.responses_stream import stream_responses
from pytest_failgain.capture.script import FINAL, FailingCallScript, Script, script_of
from pytest_failgain.capture.stored_responses import StoredResponses
from pytest_failgain.capture.upstream import TIMEOUT, Upstream
from pytest_failgain.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import Self

    from pytest_failgain.transcripts.read import ReadTranscript

MAX_REQUESTS = 60
_JSON = {"Content-Type": "application/json"}
_EVENTS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_APIS = {"/chat/completions": "chat", "/responses": "responses"}


class Endpoint:
    """An OpenAI-compatible server on the loopback, scripted or in front of a real one.

    With `script` (a `Script`, a `FailingCall`, or several) it answers as the script says. With
    `upstream` (the base URL of an OpenAI-compatible API) it passes every request on, with the
    client's own key, and what comes back to the client. Either way it keeps both as `exchanges`,
    without headers.

        with Endpoint(FailingCall("create_event", {"date": "12 Oct"})) as endpoint:
            run_agent(endpoint.base_url)
        endpoint.exchanges

    No client is stopped by an error: requests beyond `max_requests` are answered with the final
    text, not kept, and told of in `problems`. `timeout` is how many seconds the upstream may be
    silent.

    Raises:
        UsageError: when there is not exactly one of script and upstream, or one of them is not
            usable.
    """

    def __init__(
        self,
        script: Script | FailingCall | Sequence[FailingCall] | None = None,
        *,
        upstream: str | None = None,
        max_requests: int = MAX_REQUESTS,
        timeout: float = TIMEOUT,
    ) -> None:
        if (script is None) == (upstream is None):
            raise UsageError("an endpoint takes a script or upstream=URL; give one of the two")
        if max_requests < 1:
            raise UsageError(f"max_requests must be 1 or more, not {max_requests!r}")
        self._script = None if script is None else script_of(script)
        self._upstream = None if upstream is None else Upstream(upstream, timeout)
        self._max_requests = max_requests
        self._server: LoopbackServer | None = None
        self._port: int | None = None
        # Guards all that follows: requests come in several threads.
        self._lock = threading.Lock()
        self._exchanges: dict[int, Exchange] = {}
        self._requests: list[Request] = []
        self._problems: dict[str, int] = {}
        self._stored = StoredResponses()
        self._count = 0

    def start(self) -> Self:
        """Serve, until `close`.

        Raises:
            UsageError: when it was started before.
        """
        if self._port is not None:
            raise UsageError("this endpoint was started before; make a new one for another run")
        self._server = LoopbackServer(self)
        self._port = self._server.port
        return self

    def close(self) -> None:
        """Stop serving; what was recorded stays."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def base_url(self) -> str:
        """What to give to a client, as "http://127.0.0.1:PORT/v1".

        Raises:
            UsageError: when it was not started yet.
        """
        if self._port is None:
            raise UsageError("the endpoint has no address before start(), or outside a with block")
        return f"http://{HOST}:{self._port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead clients here, keep them off proxies, and their telemetry quiet.

        They must be set before the agent's modules are imported where these make their clients. In
        front of an upstream the user's own key stays.

        Raises:
            UsageError: when it was not started yet.
        """
        return client_environment(self.base_url, os.environ, with_key=self._upstream is None)

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The requests and what each was answered, in the order in which they came."""
        with self._lock:
            return tuple(exchange for _, exchange in sorted(self._exchanges.items()))

    @property
    def problems(self) -> tuple[str, ...]:
        """What was not as it should be, in words, each with how often where more than once."""
        with self._lock:
            told = [
                problem if times == 1 else f"{problem} ({times} times)"
                for problem, times in self._problems.items()
            ]
            beyond = self._count - self._max_requests
        if beyond > 0:
            told.append(
                f"requests over the cap of {self._max_requests}, answered with the final text and "
                f"not kept: {beyond}; does the agent end? Give max_requests=… to allow more"
            )
        return tuple(told)

    @property
    def transcript(self) -> ReadTranscript:
        """What the agent did, as its requests tell it.

        Raises:
            TranscriptError: when there was no request, or none of a format that is known.
        """
        from pytest_failgain.capture.captured_transcript import read_exchanges

        return read_exchanges(self.exchanges)

    def reply(self, incoming: Incoming, /) -> Reply:
        """The reply to a request; called by the server."""
        path = urlsplit(incoming.path).path.rstrip("/")
        api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
        if incoming.method in ("HEAD", "OPTIONS"):
            return Reply(204, {"Allow": "GET, HEAD, OPTIONS, POST"})
        if incoming.method == "POST" and api is not None:
            return self._answer(api, incoming)
        if incoming.method == "GET" and _asks_for_models(path):
            if self._upstream is not None:
                return self._upstream.reply(incoming, on_problem=self._report)
            return _models(path)
        self._report(
            f"{incoming.method} {path or '/'} is not served: only POST to …/chat/completions and "
            "…/responses, and GET …/models, are"
        )
        return _error(404, f"there is no {incoming.method} {path or '/'} here")

    def refuse(self, method: str, path: str, error: BodyError, /) -> Reply:
        """The reply to a request whose body can't be taken; called by the server."""
        self._report(f"{method} {urlsplit(path).path}: {error}")
        return _error(error.status, str(error))

    def broke(self, error: BaseException, /) -> None:
        """Told of what should not happen; called by the server."""
        self._report(f"the endpoint itself failed with {type(error).__name__}: {error}")

    def _report(self, problem: str) -> None:
        with self._lock:
            self._problems[problem] = self._problems.get(problem, 0) + 1

    def _answer(self, api: str, incoming: Incoming) -> Reply:
        path = urlsplit(incoming.path).path
        try:
            body = json.loads(incoming.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            problem = "the body is no JSON object"
            self._report(f"POST {path}: {problem}")
            return _error(400, problem)
        with self._lock:
            self._count += 1
            number = self._count
            beyond = number > self._max_requests
        if self._upstream is not None and not beyond:
            return self._pass_on(self._upstream, api, body, number, incoming)
        with self._lock:
            answered = self._scripted(api, body, number, incoming, beyond)
        return _sent(api, body, answered)

    def _scripted(
        self, api: str, body: dict[str, Any], number: int, incoming: Incoming, beyond: bool
    ) -> dict[str, Any]:
        """The answer as JSON, which is kept with its request but for those beyond the cap."""
        whole, restored = self._restored(api, body, incoming.body)
        request = _read(api, whole, () if beyond else self._requests)
        answer = self._said(request, beyond)
        if answer.content is not None:
            answer = replace(answer, content=cut_at_stop(answer.content, request.stop))
        written = (write_chat if api == "chat" else write_responses)(answer, request, number)
        if not beyond:
            self._requests.append(replace(request, earlier=()))
            self._keep(number, api, whole, written, incoming, restored)
        return written

    def _said(self, request: Request, beyond: bool) -> Answer:
        script = self._script
        final = script.final if isinstance(script, FailingCallScript) else FINAL
        if script is None or beyond:
            return ending(request, final)
        try:
            # A script is the user's own code, whatever its type says.
            answer: object = script.answer(request)
            if isinstance(answer, Answer):
                return answer
            problem = f"returned {answer!r} and no Answer"
        except Exception as error:  # whatever it is, the client must come to an end
            problem = f"raised {type(error).__name__}: {error}"
        self._note(f"the script {type(script).__name__} {problem}; the final text was sent")
        return ending(request, final)

    def _restored(self, api: str, body: dict[str, Any], raw: bytes) -> tuple[dict[str, Any], int]:
        if api == "chat":
            return body, 0
        whole, restored, problem = self._stored.whole(body, raw)
        if problem:
            self._note(problem)
        return whole, restored

    def _keep(
        self,
        number: int,
        api: str,
        whole: dict[str, Any],
        answer: dict[str, Any],
        incoming: Incoming,
        restored: int,
        status: int = 200,
    ) -> None:
        path = urlsplit(incoming.path).path
        self._exchanges[number] = Exchange(
            api, path, incoming.body, whole, answer, restored=restored, status=status
        )
        if api == "responses":
            self._stored.keep(whole, incoming.body, answer)

    def _note(self, problem: str) -> None:
        """`_report` for who has the lock."""
        self._problems[problem] = self._problems.get(problem, 0) + 1

    def _pass_on(
        self, upstream: Upstream, api: str, body: dict[str, Any], number: int, incoming: Incoming
    ) -> Reply:
        with self._lock:
            whole, restored = self._restored(api, body, incoming.body)

        def keep(status: int, answer: dict[str, Any]) -> None:
            with self._lock:
                self._keep(number, api, whole, answer, incoming, restored, status)

        return upstream.reply(incoming, api=api, on_answer=keep, on_problem=self._report)


def _read(api: str, body: Mapping[str, Any], earlier: Sequence[Request]) -> Request:
    return (read_chat if api == "chat" else read_responses)(body, earlier)


def _sent(api: str, body: Mapping[str, Any], answer: dict[str, Any]) -> Reply:
    if not body.get("stream"):
        return Reply(200, _JSON, json.dumps(answer).encode())
    return Reply(200, _EVENTS, _stream(api, body, answer))


def _stream(api: str, body: Mapping[str, Any], answer: dict[str, Any]) -> Iterator[bytes]:
    if api == "responses":
        return stream_responses(answer)
    options = body.get("stream_options")
    include_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return stream_chat(answer, include_usage=include_usage)


def _asks_for_models(path: str) -> bool:
    return path.endswith("/models") or "/models/" in path


def _models(path: str) -> Reply:
    name = path.partition("/models/")[2]
    model = {"id": name or UNNAMED_MODEL, "object": "model", "created": 0, "owned_by": "failgain"}
    answer = model if name else {"object": "list", "data": [model]}
    return Reply(200, _JSON, json.dumps(answer).encode())


def _error(status: int, message: str) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Reply(status, _JSON, json.dumps({"error": error}).encode())
