"""A headless Chromium, driven over a pipe with its own protocol: no port, no driver, no package."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE = 60.0

Message = dict[str, Any]


def chromium_path() -> str | None:
    """Where a Chromium is on this machine; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Browser:
    """A running browser; `events` has all that it reported without being asked."""

    to_browser: IO[bytes]
    messages: Queue[Message]
    events: list[Message] = field(default_factory=list)
    _number: int = 0

    def call(self, method: str, session: str | None = None, **params: Any) -> Message:
        """What the browser answers to one command of its protocol."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if session:
            command["sessionId"] = session
        self.to_browser.write(json.dumps(command).encode() + b"\0")
        self.to_browser.flush()
        while True:
            message = self.messages.get(timeout=_PATIENCE)
            if message.get("id") == self._number:
                assert "error" not in message, (method, message)
                result: Message = message["result"]
                return result
            self.events.append(message)

    def open(self, url: str, width: int = 1400, height: int = 900, dark: bool = False) -> Page:
        """A new tab with what is at `url`, loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Page.navigate", url=url)
        ends = time.monotonic() + _PATIENCE
        while page.evaluate("document.readyState") != "complete":
            assert time.monotonic() < ends, f"{url} was not loaded in {_PATIENCE:.0f} s"
            time.sleep(0.02)
        return page


@dataclass
class Page:
    """One tab."""

    browser: Browser
    session: str

    def call(self, method: str, **params: Any) -> Message:
        return self.browser.call(method, self.session, **params)

    def evaluate(self, script: str) -> Any:
        """The value of an expression, which the page's own policy does not bind."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
                **text,
            )

    def events(self, *methods: str) -> list[Message]:
        """What the browser reported of this tab so far."""
        self.call("Runtime.evaluate", expression="0")
        return [
            event
            for event in self.browser.events
            if event.get("sessionId") == self.session and event["method"] in methods
        ]

    def complaints(self) -> list[str]:
        """What stands in the console, and what scripts ran into."""
        return [
            json.dumps(event["params"])
            for event in self.events(
                "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"
            )
        ]

    def requested(self) -> list[str]:
        """Every address that was asked for."""
        asked = self.events("Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in asked]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def running(chromium: str, profile: Path) -> Iterator[Browser]:
    """A browser with a new profile in the folder `profile`, ended behind the block."""
    theirs_in, ours_out = _high(*os.pipe())
    ours_in, theirs_out = _high(*os.pipe())
    # It reads commands from descriptor 3 and writes to 4, which only a shell can put there.
    process = subprocess.Popen(
        [
            "bash",
            "-c",
            f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}',
            "bash",
            chromium,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            f"--user-data-dir={profile}",
        ],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    messages: Queue[Message] = Queue()
    with open(ours_in, "rb") as answers, open(ours_out, "wb") as commands:
        reader = threading.Thread(target=_read, args=(answers, messages), daemon=True)
        reader.start()
        browser = Browser(commands, messages)
        try:
            yield browser
        finally:
            with contextlib.suppress(OSError, Empty):
                browser.call("Browser.close")
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            reader.join(_PATIENCE)


def _high(*descriptors: int) -> tuple[int, ...]:
    """The descriptors under numbers that are not in the way of 3 and 4."""
    moved = tuple(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in descriptors)
    for one in descriptors:
        os.close(one)
    return moved


def _read(answers: IO[bytes], messages: Queue[Message]) -> None:
    rest = b""
    while chunk := os.read(answers.fileno(), 1 << 20):
        *whole, rest = (rest + chunk).split(b"\0")
        for message in whole:
            messages.put(json.loads(message))
