"""What the scripted model answers: from what a request says, in a form that the client takes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from endpoint_client import (
    ARGUMENTS,
    CALL,
    ERROR,
    FLAT_TOOLS,
    PARAMETERS,
    TASK,
    TOOLS,
    flat_tool,
    output_of,
    respond,
    result_of,
    say,
    tool,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain import Endpoint, FailingCall, FailingCallScript, UsageError
from pytest_failgain.capture.chat import read_chat
from pytest_failgain.capture.endings import least_value
from pytest_failgain.capture.script import Answer, Request, call_id

SYSTEM = {"role": "system", "content": "Keep the calendar."}
OTHER = FailingCall("create_event", '{"title": "Lunch", "date": "3 May"}')


def request(*messages: Any, tools: Any = TOOLS, earlier: Any = (), **fields: Any) -> Request:
    return read_chat({"messages": list(messages), "tools": tools, **fields}, earlier)


def answered(script: FailingCallScript, *messages: Any, **fields: Any) -> Answer:
    return script.answer(request(*messages, **fields))


def is_call(answer: Answer, call: FailingCall = CALL) -> bool:
    return answer.calls == call.action.calls


def made(call: FailingCall = CALL, identity: str = "call_1", **function: Any) -> dict[str, Any]:
    """An assistant's message that makes the call."""
    function = {"name": call.name, "arguments": call.arguments_text, **function}
    calls = [{"id": identity, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_call_is_made_until_its_record_comes_however_often_the_request_does() -> None:
    with Endpoint(CALL) as endpoint:
        first = [say(endpoint, SYSTEM, TASK) for _ in range(3)]
        record = [SYSTEM, TASK, first[0], result_of(first[0])]
        last = [say(endpoint, *record) for _ in range(3)]
        # The first one once more, from a client that starts again.
        again = say(endpoint, SYSTEM, TASK)
    assert first == [first[0]] * 3
    assert again == first[0]
    assert [message["content"] for message in last] == ["Done."] * 3
    assert first[0]["tool_calls"][0]["id"] == call_id(0)


def test_ids_are_the_same_in_every_run() -> None:
    said = []
    for _ in range(2):
        with Endpoint([CALL, OTHER]) as endpoint:
            said.append(say(endpoint, TASK))
    assert said[0] == said[1]


# What clients make of a failed call, each behind the request [SYSTEM, TASK].
RECORDS: dict[str, list[dict[str, Any]]] = {
    "native, by the call alone": [SYSTEM, TASK, made(), {"role": "tool", "content": "Try again."}],
    "native, arguments written anew": [
        SYSTEM,
        TASK,
        made(arguments='{"date":"12 Oct","title":"Dentist"}'),
    ],
    "the id alone": [SYSTEM, user(f"{call_id(0)} failed.")],
    "the error alone": [SYSTEM, user(f"The last attempt failed: {ERROR}")],
    "the error at the end of the task": [SYSTEM, user(f"{TASK['content']}\n{ERROR}")],
    "the arguments quoted": [user(f"The call create_event with {ARGUMENTS} failed.")],
    "the arguments as Python shows them": [
        user("create_event failed on {'title': 'Dentist', 'date': '12 Oct'}")
    ],
    "the call as Python writes it": [
        user("create_event(title='Dentist', date='12 Oct') raised an error")
    ],
    "anything at all behind the request": [SYSTEM, TASK, user("Something went wrong.")],
    "something behind the task": [SYSTEM, user(f"{TASK['content']}\nIt failed.")],
    "a call in parts": [
        SYSTEM,
        TASK,
        {"role": "user", "content": [{"type": "text", "text": f"Error: {ERROR}"}]},
    ],
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=list(RECORDS))
def test_record_of_the_call_ends_the_script(record: list[dict[str, Any]]) -> None:
    with Endpoint(CALL) as endpoint:
        assert say(endpoint, SYSTEM, TASK)["tool_calls"]
        assert say(endpoint, *record)["content"] == "Done."


def test_call_itself_is_a_record_to_who_knows_no_earlier_request() -> None:
    script = FailingCallScript(CALL)
    assert is_call(answered(script, SYSTEM, TASK))
    assert not answered(script, SYSTEM, TASK, made()).calls
    assert not answered(script, SYSTEM, TASK, made(identity=call_id(0), name="other")).calls


@pytest.mark.parametrize(
    "messages",
    [
        [user(f"Add Dentist. The form is {ARGUMENTS}.")],
        [SYSTEM, user(f"Some calls fail with {ERROR}")],
        [SYSTEM, assistant("How can I help?"), TASK],
        [SYSTEM, TASK, made(OTHER), {"role": "tool", "tool_call_id": "call_1", "content": "ok"}],
    ],
)
def test_first_request_is_answered_with_the_call_whatever_it_quotes(messages: list[Any]) -> None:
    with Endpoint(CALL) as endpoint:
        assert say(endpoint, *messages)["tool_calls"]
        assert say(endpoint, *messages)["tool_calls"]


def test_another_conversation_beside_the_first_gets_the_call_as_well() -> None:
    with Endpoint(CALL) as endpoint:
        said = say(endpoint, SYSTEM, TASK)
        assert say(endpoint, SYSTEM, user("Another task."))["tool_calls"]
        assert say(endpoint, SYSTEM, TASK, said, result_of(said))["content"] == "Done."
        assert say(endpoint, SYSTEM, user("A third task."))["tool_calls"]


def test_several_calls_are_made_in_turn_and_each_request_gets_its_own_again() -> None:
    calls = [CALL, OTHER, CALL]
    with Endpoint(calls) as endpoint:
        messages: list[Any] = [SYSTEM, TASK]
        said: list[Any] = []
        requests = []
        for number, _ in enumerate((*calls, None)):
            requests.append(list(messages))
            message = say(endpoint, *messages)
            said.append(message)
            if message.get("tool_calls"):
                assert message["tool_calls"][0]["id"] == call_id(number)
                messages += [message, result_of(message)]
        repeated = [say(endpoint, *one) for one in requests]
    made_calls = [
        message["tool_calls"][0]["function"]["arguments"]
        for message in said
        if message["content"] is None
    ]
    assert made_calls == [call.arguments for call in calls]
    assert said[-1]["content"] == "Done."
    assert repeated == said


def test_several_calls_are_made_in_turn_where_only_errors_come_back() -> None:
    with Endpoint([CALL, OTHER]) as endpoint:
        first = say(endpoint, TASK)
        second = say(endpoint, TASK, user("It failed."))
        end = say(endpoint, TASK, user("It failed."), user("It failed again."))
    arguments = [one["tool_calls"][0]["function"]["arguments"] for one in (first, second)]
    assert arguments == [CALL.arguments, OTHER.arguments]
    assert end["content"] == "Done."


def test_error_of_the_first_call_is_no_record_of_the_same_one_made_later() -> None:
    with Endpoint([CALL, CALL]) as endpoint:
        say(endpoint, TASK)
        assert say(endpoint, TASK, user("It failed."))["tool_calls"][0]["id"] == call_id(1)
        say(endpoint, user("Another task."))
        second = say(endpoint, user("Another task."), user(ERROR))
    assert second["tool_calls"][0]["id"] == call_id(1)


def test_text_call_is_made_and_recognised_in_what_the_assistant_said() -> None:
    text = "I will add it.\n```bash\ncal add '12 Oct'\n```"
    script = FailingCallScript(FailingCall(text=text, action_text="cal add '12 Oct'"))
    assert answered(script, TASK, tools=[]).content == text
    told = answered(script, TASK, assistant("```\ncal add '12 Oct'\n```"), tools=[])
    assert told.content == "Done."


def test_script_needs_a_call() -> None:
    with pytest.raises(UsageError, match="needs at least one failing call"):
        FailingCallScript([])


def test_without_tools_or_where_calls_are_forbidden_the_answer_is_text() -> None:
    script = FailingCallScript(CALL)
    assert answered(script, TASK, tools=[]) == Answer("Done.")
    assert answered(script, TASK, tools=None) == Answer("Done.")
    assert answered(script, TASK, tool_choice="none") == Answer("Done.")


def test_request_that_could_not_be_answered_with_the_call_counts_for_nothing() -> None:
    with Endpoint(CALL) as endpoint:
        # Such as one that asks for a title, or for a plan.
        assert say(endpoint, TASK, tools=[])["content"] == "Done."
        assert say(endpoint, TASK, user("Go on."))["tool_calls"]


def test_final_text_is_the_users_own() -> None:
    script = FailingCallScript(CALL, final="That did not work.")
    with Endpoint(script, max_requests=2) as endpoint:
        message = say(endpoint, TASK)
        assert say(endpoint, TASK, message, result_of(message))["content"] == "That did not work."
        assert say(endpoint, TASK)["content"] == "That did not work."


DEMANDS: list[Any] = [
    "required",
    "any",
    {"type": "function", "function": {"name": "create_event"}},
    {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}},
]


@pytest.mark.parametrize("choice", DEMANDS)
def test_demanded_call_at_the_end_fits_its_schema(choice: Any) -> None:
    with Endpoint(CALL) as endpoint:
        message = say(endpoint, TASK, tool_choice=choice)
        end = say(endpoint, TASK, message, result_of(message), tool_choice=choice)
    (call,) = end["tool_calls"]
    assert call["function"]["name"] == "create_event"
    arguments = json.loads(call["function"]["arguments"])
    assert arguments != json.loads(ARGUMENTS)
    jsonschema.validate(arguments, PARAMETERS)
    assert call["id"] != message["tool_calls"][0]["id"]


@pytest.mark.parametrize(
    "choice", ["auto", None, {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}]
)
def test_call_that_is_not_demanded_is_not_made_at_the_end(choice: Any) -> None:
    assert not answered(FailingCallScript(CALL), TASK, made(), tool_choice=choice).calls


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["create_event", "final_answer"], "final_answer"),
        (["submit", "create_event"], "submit"),
        (["create_event", "task_complete"], "task_complete"),
        (["create_event", "finish", "list_events"], "finish"),
        (["create_event", "delete_all", "list_events"], "list_events"),
        (["create_event", "delete_all"], "delete_all"),
        (["create_event", "delete_all", "weekend"], "delete_all"),
        (["create_event"], "create_event"),
    ],
)
def test_end_is_the_tool_that_ends_else_one_that_changes_nothing(
    names: list[str], chosen: str
) -> None:
    script = FailingCallScript(CALL)
    tools = [tool(name) for name in names]
    (call,) = answered(script, TASK, made(), tools=tools, tool_choice="required").calls
    assert call.name == chosen


def test_tool_that_is_named_is_the_one_that_is_called() -> None:
    choice = {"type": "function", "function": {"name": "create_event"}}
    tools = [tool("final_answer"), *TOOLS]
    script = FailingCallScript(CALL)
    (call,) = answered(script, TASK, made(), tools=tools, tool_choice=choice).calls
    assert call.name == "create_event"


def test_final_answer_of_a_tool_is_the_final_text() -> None:
    parameters = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
    }
    tools = [*TOOLS, tool("final_answer", parameters)]
    script = FailingCallScript(CALL, final="No.")
    (call,) = answered(script, TASK, made(), tools=tools, tool_choice="required").calls
    assert (call.name, json.loads(call.arguments)) == ("final_answer", {"answer": "No."})


def test_responses_api_demands_calls_in_its_own_words() -> None:
    tools = [*FLAT_TOOLS, flat_tool("final_answer")]
    with Endpoint(CALL) as endpoint:
        first = respond(endpoint, [TASK], tools=tools, tool_choice="required")
        items = [TASK, *first["output"], output_of(first)]
        end = respond(endpoint, items, tools=tools, tool_choice="required")
        named = {"type": "function", "name": "create_event"}
        other = respond(endpoint, items, tools=tools, tool_choice=named)
    assert [item["name"] for item in (*end["output"], *other["output"])] == [
        "final_answer",
        "create_event",
    ]


SCHEMA = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["summary", "count"],
}


def test_demanded_schema_is_kept_to_at_the_end() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "out", "schema": SCHEMA}}
    script = FailingCallScript(CALL)
    end = answered(script, TASK, made(), response_format=wanted)
    assert json.loads(end.content or "") == {"summary": "Done.", "count": 0}
    end = answered(script, TASK, made(), response_format={"type": "json_object"})
    assert json.loads(end.content or "") == {}
    assert answered(script, TASK, made(), response_format={"type": "text"}).content == "Done."
    with Endpoint(CALL) as endpoint:
        text = {"format": {"type": "json_schema", "name": "out", "schema": SCHEMA}}
        first = respond(endpoint, [TASK])
        end_of = respond(endpoint, [TASK, *first["output"], output_of(first)], text=text)
    said = end_of["output"][0]["content"][0]["text"]
    assert json.loads(said) == {"summary": "Done.", "count": 0}


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        (
            "Write Final Answer: when done.",
            "Thought: I now know the final answer\nFinal Answer: Done.",
        ),
        ("<code>\nfinal_answer(x)\n</code>", '<code>\nfinal_answer("Done.")\n</code>'),
        ("```py\nfinal_answer(x)\n```", 'Code:\n```py\nfinal_answer("Done.")\n```<end_code>'),
        (
            "```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```",
            (
                "THOUGHT: Done.\n\n```mswea_bash_command\n"
                "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"
            ),
        ),
        (
            "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
            "THOUGHT: Done.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```",
        ),
        ("Say what you think.", "Done."),
    ],
)
def test_agent_that_reads_text_is_ended_as_its_prompt_says(
    instructions: str, expected: str
) -> None:
    script = FailingCallScript(FailingCall(text="add(12 Oct)"))
    said = [{"role": "system", "content": instructions}, TASK, assistant("add(12 Oct)")]
    assert answered(script, *said, tools=[]).content == expected


def test_final_text_that_is_in_that_form_already_stays() -> None:
    script = FailingCallScript(FailingCall(text="add(12 Oct)"), final="Final Answer: no")
    said = [user("Write Final Answer: when done."), assistant("add(12 Oct)")]
    assert answered(script, *said, tools=[]).content == "Final Answer: no"


SCHEMAS: list[Any] = [
    {"type": "string", "minLength": 12},
    {"type": "string", "maxLength": 2},
    {"type": "integer", "minimum": 3},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"enum": ["red", "blue"]},
    {"const": {"a": 1}},
    {"type": "string", "default": "x"},
    {"type": ["null", "string"]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2},
    {"type": "array", "items": {"type": "integer"}},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {
        "$defs": {
            "Event": {
                "type": "object",
                "required": ["at"],
                "properties": {"at": {"type": "string"}},
            }
        },
        "type": "object",
        "required": ["event"],
        "properties": {"event": {"$ref": "#/$defs/Event"}, "more": {"type": "integer"}},
    },
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_least_value_fits_its_schema(schema: Any) -> None:
    jsonschema.validate(least_value(schema, "Done."), schema)


def test_least_value_has_nothing_that_may_be_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
    assert least_value(schema) == {}


def test_schema_without_an_end_has_one() -> None:
    endless = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "required": ["next"],
    }
    assert json.dumps(least_value(endless))
    assert least_value({"$ref": "#"}) is None
    assert least_value({"$ref": "#/$defs/nowhere"}) is None
    wide = {"type": "array", "items": {"$ref": "#"}, "minItems": 1}
    assert json.dumps(least_value(wide))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "items", "enum", "anyOf", "$ref", "a"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=80)
@given(json_values)
def test_least_value_of_any_schema_is_json(schema: Any) -> None:
    json.dumps(least_value(schema, "Done."))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["Hello.", "Add it.", "What now?", "12 Oct"]), min_size=1, max_size=4),
    st.integers(1, 4),
)
def test_same_request_has_the_same_answer_whatever_came_in_between(
    texts: list[str], times: int
) -> None:
    script = FailingCallScript([CALL, OTHER])
    first = request(*map(user, texts))
    record = request(*map(user, texts), made(identity=call_id(0)), user("Error"))
    earlier: list[Request] = []
    answers = []
    for one in (first, record) * times:
        answers.append(script.answer(request(*one.messages, earlier=earlier)))
        earlier.append(one)
    assert [is_call(answer) for answer in answers] == [True, False] * times
    assert [is_call(answer, OTHER) for answer in answers] == [False, True] * times
