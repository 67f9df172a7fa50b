"""A web server on the loopback, in threads of its own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from pytest_failgain.capture.request_body import BodyError, read_body

HOST = "127.0.0.1"
# A client that stays silent for so long, in seconds, has gone.
_PATIENCE = 300
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it came: `path` with its query, `body` whole and uncompressed."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered. A body that is no bytes is sent piece by piece as it comes, to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes | Iterable[bytes] = b""


class Service(Protocol):
    """Answers requests, from several threads at once."""

    def reply(self, incoming: Incoming, /) -> Reply: ...

    def refuse(self, method: str, path: str, error: BodyError, /) -> Reply:
        """The reply to a request whose body can't be taken."""
        ...

    def broke(self, error: BaseException, /) -> None:
        """Told of what should not happen while a request is served."""
        ...


class LoopbackServer:
    """Serves `service` on a free port from when it is made until `close`."""

    def __init__(self, service: Service) -> None:
        self._server = _Server(service)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": _POLL},
            name=f"failgain endpoint on port {self.port}",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Take no more requests, and give the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, service: Service) -> None:
        self.service = service
        super().__init__((HOST, 0), _Handler)

    def server_bind(self) -> None:
        # Not the parent's, which asks the resolver for this machine's name.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        # Clients come and go as they like.
        if error is not None and not isinstance(error, OSError):
            self.service.broke(error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    # Without it there is no "100 Continue".
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE

    def _serve(self) -> None:
        service, method = self.server.service, self.command
        try:
            body = read_body(self.headers, self.rfile)
        except BodyError as error:
            self._send(service.refuse(method, self.path, error))
            return
        self._send(service.reply(Incoming(method, self.path, self.headers, body)))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815

    def _send(self, reply: Reply) -> None:
        body = reply.body
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if isinstance(body, bytes):
                self.send_header("Content-Length", str(len(body)))
            # A connection that is kept would belong to an event loop that is gone at the next run.
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command == "HEAD":
                return
            for piece in (body,) if isinstance(body, bytes) else body:
                self.wfile.write(piece)
                self.wfile.flush()
        finally:
            # What passes through is recorded when it ends, also where the client left early.
            close = getattr(body, "close", None)
            if close is not None:
                with suppress(OSError):
                    close()

    def version_string(self) -> str:
        return "failgain"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test's output is not the place for a log of requests."""
