"""Whatever is given to `read_transcript`: a result or a typed error, and soon."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from benchmarks.transcript_logs import LOGS
from conftest import SHARED
from pytest_failgain.errors import FailgainError
from pytest_failgain.transcripts.read import READERS, ReadTranscript, read_transcript

Json = dict[str, Any]

NAMES = [reader.name for reader in READERS]
# What is hostile may take longer than the second that a megabyte of a log may take at most.
HOSTILE_BOUND = 2.5
TRIED = 12


def read_timed(source: Any, format: str | None) -> tuple[ReadTranscript | None, float]:
    """What is read, None for a typed error, and the CPU time that it took, in seconds."""
    started = time.process_time()
    transcript = None
    with suppress(FailgainError):
        transcript = read_transcript(source, format)
    return transcript, time.process_time() - started


def survive(source: Any, format: str | None = None, bound: float = 1.0) -> None:
    """Read `source` and replay its failures; anything but a typed error goes through.

    `bound` is the CPU time that reading may take, in seconds.
    """
    transcript, spent = read_timed(source, format)
    if spent > bound:
        # A collection of all that other tests left behind may have come in between.
        spent = min(read_timed(source, format)[1] for _ in range(2))
    assert spent <= bound, f"reading took {spent:.1f} s"
    if transcript is None:
        return
    count = len(transcript.failures)
    assert all(isinstance(note, str) for note in transcript.notes)
    harness = transcript.as_recorded
    for index in {*range(min(count, TRIED)), count - 1} if count else ():
        case = transcript.failures[index]
        neutral = replace(case.failed, observation=case.observations.neutral, failed=False)
        harness(case.trajectory)
        harness(case.trajectory.then(case.failed))
        with suppress(FailgainError):
            harness(case.trajectory.then(neutral))


# Where logs of other shapes than those of LOGS go another way through a reader.
def other_shapes() -> Iterator[Any]:
    error: Json = {"error": "Error: no such day"}
    asked: Json = {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}
    heard = {"functionResponse": {"id": "c", "name": "f", "response": error}}
    yield {
        "systemInstruction": {"parts": [{"text": "x"}]},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {}}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "x"}]},
            {"role": "model", "parts": [{"thought": True, "text": "x"}, asked]},
            {"role": "user", "parts": [heard, {"inlineData": {"mimeType": "image/png"}}]},
        ],
    }
    yield [
        {"type": "init", "session_id": "s"},
        {"type": "message", "role": "assistant", "content": "x", "delta": True},
        {"type": "tool_use", "tool_name": "f", "tool_id": "t", "parameters": {"a": 1}},
        {"type": "tool_result", "tool_id": "t", "status": "error", "error": {"message": "no"}},
    ]
    yield [
        {"sessionId": "s", "projectHash": "h"},
        {"id": "u", "type": "user", "content": [{"text": "x"}, heard]},
        {"id": "g", "type": "gemini", "content": "", "toolCalls": [{"id": "c", "name": "f"}]},
        {"$set": {"messages": [{"id": "u", "type": "user", "content": "x"}]}},
        {"$rewindTo": "g"},
    ]
    function: Json = {"name": "f", "arguments": '{"a":'}
    events = [
        {"name": "gen_ai.user.message", "attributes": {"gen_ai.event.content": '{"content": "x"}'}},
        {"name": "gen_ai.choice", "body": {"message": {"tool_calls": [{"function": function}]}}},
        {"name": "gen_ai.tool.message", "attributes": {"id": "c", "content": "Error: no"}},
    ]
    indexed = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.tool_calls.0.name": "f"}
    ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f", "error.type": "E"}
    attributes = [{"key": "gen_ai.system", "value": {"arrayValue": {"values": []}}}]
    yield [
        {"name": "chat", "context": {"trace_id": "t"}, "attributes": {}, "events": events},
        {"name": "chat", "attributes": indexed, "status": {"code": 2, "message": "x"}},
        {"name": "execute_tool f", "attributes": ran, "otel_status_code": "ERROR"},
        {"traceId": "t", "spanId": "s", "attributes": attributes, "body": {"stringValue": "x"}},
    ]
    image = {"type": "image", "image": "data:x"}
    called = {"id": "c", "function": "f", "arguments": {"a": "attachment://1"}, "parse_error": "x"}
    yield {
        "epoch": 1,
        "attachments": {"1": "x"},
        "events": [{"event": "model", "tools": [{"name": "f", "parameters": {}}]}],
        "messages": [
            {"role": "user", "content": [image, {"type": "text", "text": "attachment://1"}]},
            {"role": "assistant", "content": [{"type": "reasoning"}], "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c", "content": "x", "tool_error": "no"},
        ],
    }
    retried = {"part_kind": "retry-prompt", "content": [{"loc": [1], "msg": "x"}]}
    yield [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [{"kind": "b"}]}]},
        {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "f", "args": {}}]},
        {"kind": "request", "parts": [{**retried, "tool_name": "f"}, retried]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "outcome": "failed"}]},
    ]
    text = {"type": "text", "text": "x"}
    yield {
        "steps": [
            {"step_id": 1, "source": "system", "message": [text, image]},
            {"step_id": 2, "source": "agent", "message": "x", "observation": {"results": [error]}},
            {"step_id": 3, "source": "agent", "message": "x", "extra": {"success": False}},
        ],
        "subagent_trajectories": [{"steps": []}],
        "agent": {"tool_definitions": [{"function": {"name": "f"}}]},
    }
    told = [{"role": "tool-response", "content": [text]}]
    replied = {"tool_calls": [{"id": "c", "function": function}]}
    yield {
        "system_prompt": {"system_prompt": "x"},
        "steps": [
            {"task": "x"},
            {"plan": "x"},
            {"step_number": 1, "model_input_messages": told, "model_output": "<code>x</code>"},
            {"step_number": 2, "model_output_message": replied, "error": {"message": "no"}},
            {"step_number": 3, "code_action": "x", "model_output": "y", "error": "no"},
        ],
    }


@cache
def seeds() -> tuple[str, ...]:
    """Logs that are whole: of every format, of other shapes, and those of the issue if there."""
    cases = sorted((SHARED / "cases").glob("*.json"))
    shared = (json.loads(path.read_text())["transcript"] for path in cases)
    texts = [log(2) for log in LOGS.values()]
    texts += [one if isinstance(one, str) else json.dumps(one) for one in shared]
    return (*texts, *map(json.dumps, other_shapes()))


# Mutations of bytes


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + rng.randrange(9) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    part = data[at : at + rng.randrange(60)]
    return data[:at] + part * rng.choice((2, 3, 50)) + data[at:]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    odd = rng.choice(
        (
            *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\\ud800", b"NaN", b"Infinity", b"9" * 5000),
            *(
                b"[" * 400,
                b'{"a":' * 400,
                b"\r\n",
                b"\x1b[0m",
                b"```",
                b"####",
                b"Action:",
                b"null",
            ),
        )
    )
    return data[:at] + odd + data[at:]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (cut, overwrite, repeat, insert)


def mutated_bytes(rng: random.Random) -> bytes:
    data = rng.choice(seeds()).encode()
    for _ in range(rng.randrange(1, 4)):
        data = rng.choice(BYTES)(data, rng)
    return data


# Mutations of the structure


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value] if depth % 2 else {"content": value}
    return value


def odd_value(rng: random.Random) -> Any:
    return rng.choice(
        (
            *(None, True, False, 0, -1, 10**30, 1.5, float("nan"), float("inf")),
            *("", " ", "\ud800", "\0", "x" * 5000, "[]", "{}", '{"a":', "null", "Error: x"),
            *([], {}, [None], [[]], {"": None}, ["x"], {"text": []}, {"type": "image"}),
            *("[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900),
            *(nested(30), nested(31), nested(400), [{"role": "user", "content": None}]),
        )
    )


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in `value` with each key or index in it."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            for key in one if isinstance(one, dict) else range(len(one)):
                found.append((one, key))
                waiting.append(one[key])
    return found


def mutate_structure(value: Any, rng: random.Random) -> None:
    found = places(value)
    if not found:
        return
    holder, key = rng.choice(found)
    how = rng.randrange(7)
    if how == 0 and isinstance(holder, dict):
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[rng.choice((f"{key}s", key.upper(), "content", "type", "id"))] = holder.pop(key)
    elif how == 2 and isinstance(holder, list):
        holder[key : key + 1] = [holder[key]] * rng.choice((0, 2, 3, 1000))
    elif how == 3 and isinstance(holder, list):
        rng.shuffle(holder)
    elif how == 4:
        other, at = rng.choice(found)
        holder[key], other[at] = copy.deepcopy(other[at]), copy.deepcopy(holder[key])
    elif how == 5:
        holder[key] = rng.choice((str(holder[key])[:50], [holder[key]], {"content": holder[key]}))
    else:
        holder[key] = odd_value(rng)


def structure_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return [{"role": "assistant", "content": text}]


def mutated_structure(rng: random.Random) -> Any:
    value = structure_of(rng.choice(seeds()))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        # What is nested too deep to be copied stays where it is.
        with suppress(RecursionError):
            mutate_structure(value, rng)
    return value


def written(value: Any, rng: random.Random) -> Any:
    """The value as it is, as JSON, or as JSON Lines."""
    how = rng.random()
    with suppress(RecursionError):
        if how < 0.3 and isinstance(value, list):
            return "\n".join(json.dumps(entry) for entry in value)
        if how < 0.7:
            return json.dumps(value)
    return value


def attempt(number: int) -> None:
    """The attempt of that number: one broken source, in its own format or in a named one."""
    rng = random.Random(number)
    kind = rng.randrange(10)
    source: Any
    if kind < 2:
        source = rng.randbytes(rng.randrange(2000))
    elif kind < 5:
        source = mutated_bytes(rng)
    else:
        source = written(mutated_structure(rng), rng)
    format = rng.choice(NAMES) if rng.random() < 0.5 else None
    try:
        survive(source, format)
    except RecursionError:
        raise AssertionError(f"attempt {number}: the stack was exhausted") from None
    except Exception as error:
        raise AssertionError(f"attempt {number}, format {format}: {error!r}") from error


def test_broken_sources_give_a_result_or_a_typed_error() -> None:
    for number in range(500):
        attempt(number)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_broken_sources_give_a_result_or_a_typed_error(part: int) -> None:
    for number in range(part * 500, part * 500 + 500):
        attempt(number)


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_stands_every_whole_log(name: str) -> None:
    for text in seeds():
        survive(text, name)


@pytest.mark.parametrize("name", NAMES)
def test_whole_log_is_told_as_its_format_and_all_its_failures_are_found(name: str) -> None:
    transcript = read_transcript(LOGS[name](3))
    assert (transcript.format, len(transcript.failures)) == (name, 3)
    for case in transcript.failures:
        assert case.failed.observation
        assert transcript.as_recorded(case.trajectory) != transcript.as_recorded(
            case.trajectory.then(case.failed)
        )


@pytest.mark.parametrize("name", NAMES)
def test_values_that_no_json_holds_are_no_crash(name: str) -> None:
    holder: dict[str, Any] = {}
    holder["messages"] = [holder]
    values: list[Any] = [{1: 2}, {"messages": [{1: 2}]}, [{"role": object()}], [b"x"], [set()]]
    for value in (*values, holder):
        survive(value, name)


HOSTILE = {
    "openings": "<code><execute_command>```bash\n",
    "no end": "Action: f\nAction Input: ",
    "errors": "Error: x\nTraceback (most recent call last):\n",
    "spaces": " ",
    "lines": "\n",
    "one word": "a",
    "digits": "1",
    "braces": "{[",
    "quotes": "'\"\\",
    "markdown": "#### x\n> y\n",
    "edits": "<<<<<<< SEARCH\n",
    "tags": "</error><error>",
    "dots": "a.",
    "exit code": "exit code ",
    "not found": "not found: ",
}


def with_text(name: str, hostile: str) -> Iterator[str]:
    """Logs in which one text is hostile: the first, one in the middle, or the last."""
    log = LOGS[name](2)
    count = len(long_texts(structure_of(log)))
    for index in {0, count // 2, count - 1}:
        value = structure_of(log)
        holder, key = long_texts(value)[index]
        holder[key] = f"{holder[key]}{hostile}"
        lines = isinstance(value, list) and "\n{" in log
        yield "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    yield f"{log}{hostile}"


def long_texts(value: Any) -> list[tuple[Any, Any]]:
    return [
        (holder, key)
        for holder, key in places(value)
        if isinstance(holder[key], str) and len(holder[key]) > 12
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_in_a_second_a_megabyte(name: str, hostile: str) -> None:
    text = hostile * (300_000 // len(hostile))
    for log in with_text(name, text):
        survive(log)
        survive(log, name)


@pytest.mark.slow
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_alone_is_read_in_a_second_a_megabyte(hostile: str) -> None:
    text = hostile * (1_000_000 // len(hostile))
    for name in (None, *NAMES):
        survive(f"x\n{text}", name, HOSTILE_BOUND)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_small_failing_steps_are_read_in_a_second_a_megabyte(name: str) -> None:
    steps = 1_000_000 // (len(LOGS[name](101)) - len(LOGS[name](1))) * 100
    text = LOGS[name](steps)
    assert len(text) > 700_000
    survive(text, None, len(text) / 1e6)


@pytest.mark.slow
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"role":"user","content":'])
def test_deep_nesting_is_an_error_and_soon(opening: str) -> None:
    text = opening * (1_000_000 // len(opening))
    for name in (None, *NAMES):
        survive(text, name)


def test_lines_that_are_each_others_parents_are_read() -> None:
    lines = [json.loads(line) for line in LOGS["claude-code"](3).splitlines()]
    for line, other in zip(lines, reversed(lines), strict=True):
        line["parentUuid"] = other["uuid"]
    survive("\n".join(map(json.dumps, lines)))


def test_cases_of_a_long_log_are_made_one_at_a_time() -> None:
    transcript = read_transcript(LOGS["openai-chat"](2000))
    started = time.process_time()
    for index in (0, 1000, -1):
        case = transcript.failures[index]
        transcript.as_recorded(case.trajectory.then(case.failed))
    assert time.process_time() - started < 1.0
