"""The Responses API as the endpoint speaks it: whole, as a stream, and going on by an id."""

from __future__ import annotations

from typing import Any

import pytest
from endpoint_client import (
    ARGUMENTS,
    CALL,
    ERROR,
    FLAT_TOOLS,
    TASK,
    ask,
    output_of,
    respond,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain import Endpoint, FailingCall, ToolCall
from pytest_failgain.capture.request import Answer
from pytest_failgain.capture.responses import chat_messages, read_responses, write_responses
from pytest_failgain.capture.responses_stream import response_of, stream_responses
from pytest_failgain.capture.sse import events_in


def streamed(endpoint: Endpoint, given: Any, **fields: Any) -> list[tuple[str | None, Any]]:
    body = {"input": given, "tools": FLAT_TOOLS, "stream": True, **fields}
    received = ask(endpoint, "/v1/responses", body)
    assert received.headers["content-type"] == "text/event-stream; charset=utf-8"
    return received.events


def said(response: Any) -> str:
    (item,) = response["output"]
    assert item["type"] == "message"
    (part,) = item["content"]
    return str(part["text"])


def inputs(endpoint: Endpoint) -> list[Any]:
    return [exchange.body["input"] for exchange in endpoint.exchanges]


def test_call_is_answered_with_all_that_clients_look_at() -> None:
    with Endpoint(CALL) as endpoint:
        response = respond(endpoint, "Add Dentist.", model="gpt-5", instructions="Be brief.")
    assert response["id"].startswith("resp_")
    assert (response["object"], response["status"]) == ("response", "completed")
    assert isinstance(response["created_at"], int)
    assert (response["model"], response["instructions"]) == ("gpt-5", "Be brief.")
    assert response["error"] is response["incomplete_details"] is None
    assert response["tools"] == FLAT_TOOLS
    (call,) = response["output"]
    assert call == {
        "id": call["id"],
        "type": "function_call",
        "status": "completed",
        "call_id": call["call_id"],
        "name": "create_event",
        "arguments": ARGUMENTS,
    }
    usage = response["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_tokens_details"]["cached_tokens"] == 0
    assert usage["output_tokens_details"]["reasoning_tokens"] == 0


def test_text_is_answered_as_a_message_with_annotations() -> None:
    with Endpoint(CALL) as endpoint:
        first = respond(endpoint, "Add Dentist.")
        items = [{"role": "user", "content": "Add Dentist."}, *first["output"], output_of(first)]
        response = respond(endpoint, items)
    (message,) = response["output"]
    assert (message["type"], message["role"], message["status"]) == (
        "message",
        "assistant",
        "completed",
    )
    (part,) = message["content"]
    assert (part["type"], part["text"], part["annotations"]) == ("output_text", "Done.", [])


def test_content_beside_a_call_is_a_message_before_it_and_none_where_it_is_null() -> None:
    with Endpoint(FailingCall("create_event", ARGUMENTS, content="Let me see.")) as endpoint:
        kinds = [item["type"] for item in respond(endpoint, "Add it.")["output"]]
    assert kinds == ["message", "function_call"]


def test_stream_of_a_call_has_every_event_in_order() -> None:
    with Endpoint(CALL) as endpoint:
        events = streamed(endpoint, "Add Dentist.")
    names = [name for name, _ in events]
    deltas = names.count("response.function_call_arguments.delta")
    assert deltas >= 2
    assert names == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        *["response.function_call_arguments.delta"] * deltas,
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [data["type"] for _, data in events] == names
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    by_name = dict(events)
    added, done = by_name["response.output_item.added"], by_name["response.output_item.done"]
    assert (added["output_index"], added["item"]["arguments"]) == (0, "")
    assert added["item"]["status"] == "in_progress"
    assert done["item"]["arguments"] == ARGUMENTS
    arguments = [data for name, data in events if name and "arguments" in name]
    assert {data["item_id"] for data in arguments} == {done["item"]["id"]}
    assert "".join(data.get("delta", "") for data in arguments) == ARGUMENTS
    assert arguments[-1]["arguments"] == ARGUMENTS
    begun = by_name["response.created"]["response"]
    assert (begun["status"], begun["output"], begun["usage"]) == ("in_progress", [], None)
    completed = by_name["response.completed"]["response"]
    assert completed == endpoint.exchanges[0].answer
    assert completed["output"] == [done["item"]]


def test_stream_of_a_text_has_every_event_in_order() -> None:
    with Endpoint(FailingCall(text="Add it, please.")) as endpoint:
        events = streamed(endpoint, "Add Dentist.", tools=[])
    names = [name for name, _ in events]
    assert names[2:4] == ["response.output_item.added", "response.content_part.added"]
    assert names[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    texts = [data for name, data in events if name == "response.output_text.delta"]
    assert len(texts) >= 2
    assert "".join(data["delta"] for data in texts) == "Add it, please."
    assert {(data["output_index"], data["content_index"]) for data in texts} == {(0, 0)}


@settings(max_examples=60)
@given(
    st.none() | st.text(max_size=60),
    st.lists(
        st.builds(ToolCall, st.text(min_size=1, max_size=8), st.text(max_size=60)), max_size=3
    ),
)
def test_stream_says_what_the_response_says(content: str | None, calls: list[ToolCall]) -> None:
    request = read_responses({"input": "Add it."})
    written = write_responses(Answer(content, tuple(calls)), request, 7)
    events = list(events_in(b"".join(stream_responses(written))))
    assert response_of(events) == written
    # Of one that broke off before its end, the items that were done are there.
    assert response_of(events[:-1])["output"] == written["output"]


def test_response_of_a_stream_that_tells_nothing_is_empty() -> None:
    assert response_of([]) == {}
    assert response_of([{"type": "error", "message": "busy"}]) == {}


def test_request_that_goes_on_from_a_response_is_whole() -> None:
    with Endpoint(CALL) as endpoint:
        first = respond(endpoint, [TASK])
        output = output_of(first)
        second = respond(endpoint, [output], previous_response_id=first["id"])
        question = {"role": "user", "content": "And tomorrow?"}
        respond(endpoint, [question], previous_response_id=second["id"])
    assert said(second) == "Done."
    assert inputs(endpoint) == [
        [TASK],
        [TASK, *first["output"], output],
        [TASK, *first["output"], output, *second["output"], question],
    ]
    assert [exchange.restored for exchange in endpoint.exchanges] == [0, 2, 4]
    # What was sent stays what it was.
    assert b"And tomorrow?" in endpoint.exchanges[2].raw
    assert ERROR.encode() not in endpoint.exchanges[2].raw
    assert endpoint.problems == ()


def test_two_may_go_on_from_one_response() -> None:
    with Endpoint(CALL) as endpoint:
        first = respond(endpoint, "Add Dentist.")
        for text in ("Error: one", "Error: two"):
            respond(endpoint, [output_of(first, text)], previous_response_id=first["id"])
    _, one, two = inputs(endpoint)
    assert [item["output"] for item in (one[-1], two[-1])] == ["Error: one", "Error: two"]
    assert one[:-1] == two[:-1]
    assert one[0] == {"role": "user", "content": "Add Dentist."}


def test_response_that_is_not_known_is_told() -> None:
    with Endpoint(CALL) as endpoint:
        respond(endpoint, "Go on.", previous_response_id="resp_elsewhere")
    assert endpoint.problems == (
        "the request goes on from a response 'resp_elsewhere' that is not known here",
    )
    assert inputs(endpoint) == ["Go on."]


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_requests_of_a_conversation_go_on_from_each_other(conversation: Any) -> None:
    with Endpoint(CALL) as endpoint:
        first = respond(endpoint, [TASK], conversation=conversation)
        # The client posts twice more, as if no answer had come.
        respond(endpoint, [TASK], conversation=conversation)
        again = respond(endpoint, [TASK], conversation=conversation)
        output = output_of(again)
        second = respond(endpoint, [output], conversation=conversation)
        other = respond(endpoint, [TASK], conversation="conv_2")
    assert again["output"] == first["output"] == other["output"]
    assert said(second) == "Done."
    assert inputs(endpoint) == [*[[TASK]] * 3, [TASK, *again["output"], output], [TASK]]


def test_items_that_are_referred_to_are_put_in() -> None:
    with Endpoint(CALL) as endpoint:
        first = respond(endpoint, [TASK])
        (call,) = first["output"]
        reference = {"type": "item_reference", "id": call["id"]}
        unknown = {"type": "item_reference", "id": "fc_elsewhere"}
        respond(endpoint, [TASK, unknown, reference, output_of(first)])
    assert inputs(endpoint)[1] == [TASK, unknown, call, output_of(first)]
    assert endpoint.exchanges[1].restored == 1


def test_stored_answer_may_have_been_streamed() -> None:
    with Endpoint(CALL) as endpoint:
        _, end = streamed(endpoint, [TASK])[-1]
        first = end["response"]
        second = respond(endpoint, [output_of(first)], previous_response_id=first["id"])
    assert said(second) == "Done."
    assert inputs(endpoint)[1] == [TASK, *first["output"], output_of(first)]


def test_input_is_read_as_chat_messages() -> None:
    body = {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Add it."}]},
            {"type": "reasoning", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "A"}],
            },
            {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{}"},
            {"type": "function_call", "call_id": "2", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "Error"},
            {"type": "custom_tool_call", "call_id": "3", "name": "run", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "3", "output": "x"},
            {"role": "assistant", "content": "Done."},
        ],
    }

    def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    assert list(chat_messages(body)) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add it."},
        {
            "role": "assistant",
            "content": "A",
            "tool_calls": [call("1", "add", "{}"), call("2", "add", "{}")],
        },
        {"role": "tool", "tool_call_id": "1", "content": "Error"},
        {"role": "assistant", "content": None, "tool_calls": [call("3", "run", "ls")]},
        {"role": "tool", "tool_call_id": "3", "content": "x"},
        {"role": "assistant", "content": "Done."},
    ]
