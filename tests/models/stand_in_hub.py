"""A model hub on this machine: the few of its endpoints that a download uses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

REPO = "org/tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class StandInHub:
    """Serves one repository, `REPO` at `COMMIT` and its branch `main`, and can be made to fail."""

    files: dict[str, bytes]
    endpoint: str = ""
    requests: list[str] = field(default_factory=list)
    api_status: int = 200
    api_error: str = ""
    body_status: int = 200
    cut_bodies: bool = False
    silent: bool = False

    @property
    def requested_files(self) -> set[str]:
        """The names of all files that were asked about or for."""
        marker = f"/{REPO}/resolve/{COMMIT}/"
        paths = (request.split(" ", 1)[1] for request in self.requests)
        return {path.removeprefix(marker) for path in paths if path.startswith(marker)}


@contextmanager
def serve(files: dict[str, bytes]) -> Iterator[StandInHub]:
    """Run a hub in a thread; in the body's end it is gone, and connections to it are refused."""
    hub = StandInHub(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, hub))
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, hub: StandInHub, *args: Any) -> None:
        self.hub = hub
        super().__init__(*args)

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append(f"{self.command} {path}")
        if self.hub.silent:
            time.sleep(1)
        elif path.startswith("/api/models/"):
            self._answer_api(path.removeprefix("/api/models/"))
        else:
            self._answer_file(path)

    def _answer_api(self, path: str) -> None:
        hub = self.hub
        if hub.api_status != 200:
            self._send(hub.api_status, {"X-Error-Code": hub.api_error})
        elif path in (REPO, f"{REPO}/revision/main", f"{REPO}/revision/{COMMIT}"):
            siblings = [
                {"rfilename": name, "size": len(content), "blobId": "0" * 40}
                for name, content in hub.files.items()
            ]
            self._send_json({"id": REPO, "modelId": REPO, "sha": COMMIT, "siblings": siblings})
        elif path == f"{REPO}/tree/{COMMIT}":
            self._send_json(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                    for name, content in hub.files.items()
                ]
            )
        elif path.startswith(f"{REPO}/"):
            self._send(404, {"X-Error-Code": "RevisionNotFound"})
        else:
            self._send(404, {"X-Error-Code": "RepoNotFound"})

    def _answer_file(self, path: str) -> None:
        name = path.removeprefix(f"/{REPO}/resolve/{COMMIT}/")
        content = self.hub.files.get(name)
        if content is None:
            self._send(404, {"X-Error-Code": "EntryNotFound"})
            return
        # The tag becomes the name of a file in the cache.
        headers = {"ETag": f'"{name.replace("/", "-")}"', "X-Repo-Commit": COMMIT}
        if self.command == "HEAD":
            self._send(200, {**headers, "Content-Length": str(len(content))})
        elif self.hub.body_status != 200:
            self._send(self.hub.body_status, {})
        else:
            self._send(200, headers, content[: len(content) // 2 if self.hub.cut_bodies else None])

    def _send_json(self, value: object) -> None:
        self._send(200, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _send(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
