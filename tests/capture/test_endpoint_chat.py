"""Chat completions as the endpoint writes them, whole and as streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from endpoint_client import ARGUMENTS, CALL, TASK, TOOLS, ask, complete, result_of, say
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain import Endpoint, FailingCall, Script, ToolCall
from pytest_failgain.capture.chat import read_chat, write_chat
from pytest_failgain.capture.chat_stream import completion_of, stream_chat
from pytest_failgain.capture.script import Answer, Request
from pytest_failgain.capture.sse import events_in


class Saying(Script):
    """Says the same to everything."""

    def __init__(self, content: str | None, *calls: ToolCall) -> None:
        self.said = Answer(content, calls)

    def answer(self, request: Request, /) -> Answer:
        return self.said


def streamed(endpoint: Endpoint, *messages: Any, **fields: Any) -> list[Any]:
    """The data of the events that answer, "[DONE]" with them."""
    body = {"messages": list(messages), "tools": TOOLS, "stream": True, **fields}
    received = ask(endpoint, "/v1/chat/completions", body)
    assert received.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "content-length" not in received.headers
    assert all(name is None for name, _ in received.events)
    return [data for _, data in received.events]


def test_call_is_answered_with_all_that_clients_look_at() -> None:
    with Endpoint(CALL) as endpoint:
        completion = complete(endpoint, TASK, model="gpt-5-mini")
    assert completion["id"].startswith("chatcmpl-")
    assert completion["object"] == "chat.completion"
    assert isinstance(completion["created"], int)
    assert completion["model"] == "gpt-5-mini"
    (choice,) = completion["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "tool_calls")
    message = choice["message"]
    assert (message["role"], message["content"]) == ("assistant", None)
    (call,) = message["tool_calls"]
    assert call == {
        "id": call["id"],
        "type": "function",
        "function": {"name": "create_event", "arguments": ARGUMENTS},
    }
    assert isinstance(call["id"], str)
    usage = completion["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert min(usage["prompt_tokens"], usage["completion_tokens"]) >= 1


def test_text_is_answered_as_the_end() -> None:
    with Endpoint(CALL) as endpoint:
        message = say(endpoint, TASK)
        completion = complete(endpoint, TASK, message, result_of(message))
    (choice,) = completion["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == "Done."
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize("content", [None, "", "Let me see."])
def test_content_beside_a_call_is_sent_as_the_script_has_it(content: str | None) -> None:
    with Endpoint(FailingCall("create_event", ARGUMENTS, content=content)) as endpoint:
        message = say(endpoint, TASK)
        assert message["content"] == content
        assert message["tool_calls"]
        said = completion_of(streamed(endpoint, TASK)[:-1])["choices"][0]["message"]
        assert said["content"] == content


def test_arguments_go_out_letter_for_letter() -> None:
    arguments = '{"b":1,  "a": "é\\u00e9\\n",\t"c": [1.50]}'
    with Endpoint(FailingCall("create_event", arguments)) as endpoint:
        assert say(endpoint, TASK)["tool_calls"][0]["function"]["arguments"] == arguments
        said = completion_of(streamed(endpoint, TASK)[:-1])["choices"][0]["message"]
        assert said["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize("stop", ["\nObservation", ["nowhere", "\nObservation"]])
def test_stop_cuts_a_text(stop: Any) -> None:
    text = "Action: add[12 Oct]\nObservation: I made this up"
    with Endpoint(FailingCall(text=text, action_text="add[12 Oct]")) as endpoint:
        assert say(endpoint, TASK, stop=stop)["content"] == "Action: add[12 Oct]"
        said = completion_of(streamed(endpoint, TASK, stop=stop)[:-1])["choices"][0]["message"]
        assert said["content"] == "Action: add[12 Oct]"
        assert say(endpoint, TASK)["content"] == text


@pytest.mark.parametrize("stop", [None, [], [""], "", "nowhere"])
def test_stop_that_is_not_in_a_text_leaves_it(stop: Any) -> None:
    with Endpoint(FailingCall(text="add[12 Oct]")) as endpoint:
        assert say(endpoint, TASK, stop=stop)["content"] == "add[12 Oct]"


@pytest.mark.parametrize(
    ("wanted", "count"), [(1, 1), (3, 3), (0, 1), (None, 1), ("2", 1), (10**9, 1)]
)
def test_as_many_choices_come_as_were_asked_for(wanted: Any, count: int) -> None:
    with Endpoint(CALL) as endpoint:
        choices = complete(endpoint, TASK, n=wanted)["choices"]
        assert [choice["index"] for choice in choices] == list(range(count))
        assert all(choice["message"] == choices[0]["message"] for choice in choices)
        again = completion_of(streamed(endpoint, TASK, n=wanted)[:-1])["choices"]
        assert [choice["index"] for choice in again] == list(range(count))
        assert again[-1]["message"]["tool_calls"] == choices[-1]["message"]["tool_calls"]


def test_fields_that_mean_nothing_here_change_nothing() -> None:
    with Endpoint(CALL) as endpoint:
        plain = say(endpoint, TASK)
        fields = {"max_tokens": 1, "temperature": 9, "seed": "x", "nobody": {"knows": ["this"]}}
        assert say(endpoint, TASK, **fields) == plain
    assert endpoint.problems == ()


def test_client_of_the_older_functions_gets_one_and_its_record_ends_the_script() -> None:
    functions = [TOOLS[0]["function"]]
    with Endpoint(CALL) as endpoint:
        body = {"messages": [TASK], "functions": functions}
        choice = ask(endpoint, "/v1/chat/completions", body).json["choices"][0]
        assert choice["finish_reason"] == "function_call"
        made = choice["message"]["function_call"]
        assert made == {"name": "create_event", "arguments": ARGUMENTS}
        assert "tool_calls" not in choice["message"]
        result = {"role": "function", "name": "create_event", "content": "Error"}
        body = {"messages": [TASK, choice["message"], result], "functions": functions}
        message = ask(endpoint, "/v1/chat/completions", body).json["choices"][0]["message"]
    assert message["content"] == "Done."


def test_stream_has_chunks_with_indices_a_finish_and_the_end() -> None:
    with Endpoint(CALL) as endpoint:
        *chunks, end = streamed(endpoint, TASK, model="mine")
    assert end == "[DONE]"
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["model"] for chunk in chunks} == {"mine"}
    assert all("usage" not in chunk for chunk in chunks)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert {choice["index"] for choice in choices} == {0}
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + [
        "tool_calls"
    ]
    assert choices[0]["delta"]["role"] == "assistant"
    assert choices[-1]["delta"] == {}
    deltas = [call for choice in choices for call in choice["delta"].get("tool_calls", ())]
    assert {call["index"] for call in deltas} == {0}
    # The first names the call, those behind it bring nothing but its arguments, bit by bit.
    assert deltas[0]["function"] == {"name": "create_event", "arguments": ""}
    assert deltas[0]["type"] == "function"
    assert [set(call) for call in deltas[1:]] == [{"index", "function"}] * (len(deltas) - 1)
    assert len(deltas) >= 3
    assert "".join(call["function"]["arguments"] for call in deltas) == ARGUMENTS


def test_usage_comes_at_the_end_of_a_stream_where_it_is_asked_for() -> None:
    with Endpoint(CALL) as endpoint:
        *chunks, last, end = streamed(endpoint, TASK, stream_options={"include_usage": True})
        usage = complete(endpoint, TASK)["usage"]
        without = streamed(endpoint, TASK, stream_options={"include_usage": False})
    assert end == "[DONE]"
    assert (last["choices"], last["usage"]) == ([], usage)
    assert all(chunk["usage"] is None for chunk in chunks)
    assert all("usage" not in chunk for chunk in without[:-1])


def test_calls_side_by_side_have_indices_and_ids_of_their_own() -> None:
    calls = [ToolCall("add", '{"a": 1}'), ToolCall("add", '{"a": 1}'), ToolCall("look", "{}")]
    with Endpoint(Saying("I begin.", *calls)) as endpoint:
        message = say(endpoint, TASK)
        again = say(endpoint, TASK)
        whole = completion_of(streamed(endpoint, TASK)[:-1])["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["add", "add", "look"]
    assert len({call["id"] for call in message["tool_calls"]}) == 3
    assert again == message
    assert whole["tool_calls"] == message["tool_calls"]
    assert whole["content"] == "I begin."


def test_what_is_kept_of_a_stream_is_the_whole_completion() -> None:
    with Endpoint(CALL) as endpoint:
        *chunks, _ = streamed(endpoint, TASK, stream_options={"include_usage": True})
    (exchange,) = endpoint.exchanges
    told = completion_of(chunks)
    kept = exchange.answer["choices"][0]
    assert told["choices"][0]["message"]["tool_calls"] == kept["message"]["tool_calls"]
    assert told["usage"] == exchange.answer["usage"]
    assert told["object"] == exchange.answer["object"]


texts = st.none() | st.text(max_size=80)
calls = st.lists(
    st.builds(ToolCall, st.text(min_size=1, max_size=8), st.text(max_size=60)), max_size=3
)


@settings(max_examples=60)
@given(texts, calls, st.booleans())
def test_stream_says_what_the_completion_says(
    content: str | None, calls: list[ToolCall], include_usage: bool
) -> None:
    request = read_chat({"messages": [TASK]})
    written = write_chat(Answer(content, tuple(calls)), request, 7)
    stream = b"".join(stream_chat(written, include_usage=include_usage))
    assert stream.endswith(b"data: [DONE]\n\n")
    told = completion_of(events_in(stream))
    (choice,) = told["choices"]
    message = written["choices"][0]["message"]
    assert choice["message"]["content"] == message["content"]
    assert choice["message"].get("tool_calls") == message.get("tool_calls")
    assert choice["finish_reason"] == written["choices"][0]["finish_reason"]
    assert told.get("usage") == (written["usage"] if include_usage else None)


def test_events_are_read_in_every_form_that_the_format_allows() -> None:
    stream = (
        '\ufeff: a comment\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
        'event: x\rdata:{"b": 2}\r\r'
        "data: no JSON\n\ndata: [5]\n\ndata: [DONE]\n\n"
        'id: 4\nretry: 5\ndata: {"c": 3}'
    )
    assert list(events_in(stream.encode())) == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert list(events_in(b"")) == []


def test_chunks_of_other_servers_are_put_together() -> None:
    def chunk(delta: Any, **rest: Any) -> dict[str, Any]:
        return {"id": "x", "object": "chat.completion.chunk", "choices": [{"delta": delta, **rest}]}

    def part(**fields: Any) -> dict[str, Any]:
        return {"tool_calls": [fields]}

    told = completion_of(
        [
            chunk({"role": "assistant"}),
            chunk({"reasoning_content": "Hm"}),
            chunk({"reasoning_content": "m."}),
            chunk(part(index=0, id="a", function={"name": "add", "arguments": "{"})),
            chunk(part(index=1, id="b", function={"name": "look", "arguments": "{}"})),
            chunk(part(index=0, function={"arguments": "}"})),
            chunk(None),
            {"choices": None},
            {"choices": [5]},
            chunk({}, finish_reason="tool_calls"),
        ]
    )
    (choice,) = told["choices"]
    assert choice["message"]["reasoning_content"] == "Hmm."
    assert [json.dumps(call["function"]) for call in choice["message"]["tool_calls"]] == [
        '{"name": "add", "arguments": "{}"}',
        '{"name": "look", "arguments": "{}"}',
    ]
    assert [call["id"] for call in choice["message"]["tool_calls"]] == ["a", "b"]
    assert choice["finish_reason"] == "tool_calls"
    assert completion_of([]) == {}
    assert completion_of([chunk(part(index="odd")), chunk({"tool_calls": [5]})])["choices"]
