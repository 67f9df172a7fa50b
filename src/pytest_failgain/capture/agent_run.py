"""One run of a user's agent on the endpoint, in a thread that may be left behind."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias

from pytest_failgain.capture.endpoint import Endpoint
from pytest_failgain.capture.exchange import Exchange
from pytest_failgain.capture.failing_call import FailingCall

RunAgent: TypeAlias = Callable[..., object]
"""`run_agent(base_url, task)`: runs the agent on the task, with its model at that address."""

_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What an agent sent in one run, and how the run ended.

    `problems` are the endpoint's. `raised` is what escaped from the agent, in words. `hung` says
    that it was waited for in vain.
    """

    exchanges: tuple[Exchange, ...]
    problems: tuple[str, ...] = ()
    raised: str | None = None
    hung: bool = False


def run_once(
    run_agent: RunAgent,
    failing_call: FailingCall,
    task: str,
    timeout: float,
    options: Mapping[str, str | None],
) -> AgentRun:
    """Run the agent, asynchronous or not, on a fresh endpoint whose model makes the call.

    It is waited for from outside, for `timeout` seconds, since frameworks swallow signals and
    cancellations. What ends a test or a test run on purpose passes through.
    """
    raised: list[BaseException] = []
    with Endpoint(failing_call) as endpoint:
        address = endpoint.base_url

        def work() -> None:
            try:
                result = run_agent(address, task, **options)
                if inspect.isawaitable(result):
                    asyncio.run(_awaited(result))
            except BaseException as error:  # told in words by who waits
                raised.append(error)
            finally:
                _close_event_loop()

        # Not the test's own thread or loop: what hangs in there is left behind.
        thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(work,),
            name="failgain-agent",
            daemon=True,
        )
        with _environment(endpoint.environment):
            thread.start()
            thread.join(timeout)
        hung = thread.is_alive()
    if raised and _ends_test(raised[0]):
        raise raised[0]
    told = _told(raised[0]) if raised else None
    return AgentRun(endpoint.exchanges, endpoint.problems, told, hung)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The process's environment with `variables`, and then as it was."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


async def _awaited(result: Awaitable[object]) -> object:
    return await result


def _close_event_loop() -> None:
    """Close the loop that a framework made for this thread, which ends here."""
    try:
        loop = asyncio.get_event_loop()
    except RuntimeError:  # no thread but the main one has a loop by itself
        return
    loop.close()


def _ends_test(error: BaseException) -> bool:
    """Whether an exception is no fault of the agent: Ctrl-C, `pytest.skip()` and its kin."""
    if isinstance(error, KeyboardInterrupt):
        return True
    pytest = sys.modules.get("pytest")
    names = ("skip", "fail", "xfail", "exit") if pytest else ()
    return isinstance(error, tuple(getattr(pytest, name).Exception for name in names))


def _told(error: BaseException) -> str:
    """An exception in one line: its type, message and place."""
    inner = getattr(error, "exceptions", ())
    # A group of one is what asynchronous tasks raise.
    if isinstance(inner, tuple) and len(inner) == 1:
        return _told(inner[0])
    message = " ".join(str(error).split())
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[: _LONGEST_MESSAGE - 1]}…"
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (at {PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{said}{place}"
