from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain.call_text import Call
from pytest_failgain.environments.settings import VERBOSITIES
from pytest_failgain.environments.tool_calls.calls import ACTION_FORMATS, JSON, NATIVE, PYTHON
from pytest_failgain.environments.tool_calls.environment import ToolCallsEnvironment
from pytest_failgain.environments.tool_calls.failures import Failure
from pytest_failgain.environments.tool_calls.runtime import Outcome, attempt, execute
from pytest_failgain.environments.tool_calls.tools import TOOLS
from pytest_failgain.environments.tool_calls.world import World
from pytest_failgain.remedies import GLOSSES
from pytest_failgain.trajectory import Action, ToolCall

TASKS = ToolCallsEnvironment().tasks
WORLD = TASKS[0].world
SOMEBODY = WORLD.people[0]
MEETING = WORLD.meetings[0]
PATH = WORLD.documents[0].path
DAY = "2027-05-06"


def python(text: str, world: World = WORLD) -> Outcome:
    return attempt(world, Action(text), PYTHON)


def failure_of(outcome: Outcome) -> Failure:
    assert outcome.failure is not None, outcome.answer
    return outcome.failure


def book(**changed: object) -> Call:
    arguments = {"topic": "rent", "day": DAY, "start": "14:00", "guests": [SOMEBODY.address]}
    return Call.of("book_meeting", **{**arguments, **changed})


# One call, or text, for each family that the runtime knows.
FAILING: dict[str, str] = {
    "parse_error": "I would list the folder.",
    "unknown_tool": "open_doc(path='plans/gate.md')",
    "arity_error": "list_team('finance', 'training')",
    "unexpected_argument": "list_team(team='finance', size=3)",
    "missing_argument": "save_document(path='plans/gate.md')",
    "type_error": "list_team(team=3)",
    "format_error": "show_agenda(day='6 May 2027')",
    "permission_error": "remove_document(path='policies/travel.md')",
    "contact_not_found": "lookup_contact(full_name='Nobody Known')",
    "file_not_found": "open_document(path='plans/nothing.md')",
    "team_not_found": "list_team(team='astronomy')",
    "event_not_found": "call_off_meeting(meeting_id='mtg-1')",
    "attendee_not_found": "book_meeting('rent', '2027-05-06', '14:00', ['no@where.example'])",
    "folder_not_found": "list_folder(folder='attic')",
    "recipient_not_found": "email_contact(address='no@where.example', subject='', message='')",
    "unsupported_conversion": "convert_amount(amount=3, source='mi', target='parsec')",
}


@pytest.mark.parametrize(("family", "text"), FAILING.items())
def test_each_family_has_its_trigger(family: str, text: str) -> None:
    outcome = python(text)
    assert failure_of(outcome).family == family
    assert outcome.world == WORLD


def test_calling_off_twice_does_not_fit_the_state() -> None:
    call = Call.of("call_off_meeting", meeting_id=MEETING.identity)
    once = execute(WORLD, call)
    assert failure_of(execute(once.world, call)).family == "state_error"


@pytest.mark.parametrize("text", FAILING.values())
def test_more_verbosity_tells_more(text: str) -> None:
    failure = failure_of(python(text))
    assert len(failure.terse) < len(failure.standard) < len(failure.verbose)
    assert failure.verbose.startswith(failure.standard)
    assert failure.echoed(text).startswith(failure.standard)
    assert text in failure.echoed(text)
    assert all(text not in failure.told(verbosity) for verbosity in VERBOSITIES)


@pytest.mark.parametrize("family", FAILING)
def test_every_family_is_known_to_the_descriptions(family: str) -> None:
    assert family in GLOSSES


def test_a_known_tool_is_named_even_if_the_call_fails() -> None:
    assert python(FAILING["missing_argument"]).tool == "save_document"
    assert python(FAILING["unknown_tool"]).tool is None


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("nothing(1, 2, 3, x=3)", "unknown_tool"),
        ("list_team('a', 'b', group='c')", "arity_error"),
        ("list_team('a', team='b', group='c')", "arity_error"),
        ("save_document(path=3, contents='b')", "unexpected_argument"),
        ("save_document(path=3)", "missing_argument"),
        ("book_meeting('rent', 'May', '14:00', 'nobody')", "type_error"),
        ("book_meeting('rent', 'May', '2 pm', ['nobody'])", "format_error"),
        ("save_document(path='attic/x.md', text='')", "folder_not_found"),
    ],
)
def test_the_first_failing_check_decides(text: str, family: str) -> None:
    assert failure_of(python(text)).family == family


def test_a_repeated_argument_is_refused_and_not_silently_dropped() -> None:
    team = WORLD.teams[0]
    native = Action(calls=(ToolCall("list_team", f'{{"team": "x", "team": "{team}"}}'),))
    text = f'{{"name": "list_team", "arguments": {{"team": "x", "team": "{team}"}}}}'
    for outcome in (
        python(f"list_team(team='x', team='{team}')"),
        attempt(WORLD, Action(text), JSON),
        attempt(WORLD, native, NATIVE),
    ):
        assert failure_of(outcome).family == "arity_error"


@pytest.mark.parametrize(
    ("changed", "family"),
    [
        ({"guests": (SOMEBODY.address,)}, "type_error"),
        ({"guests": [SOMEBODY.address, 3]}, "type_error"),
        ({"guests": {SOMEBODY.address: 1}}, "type_error"),
        ({"topic": None}, "type_error"),
        ({"day": "2027-5-6"}, "format_error"),
        ({"day": "20270506"}, "format_error"),
        ({"day": "2027-02-29"}, "format_error"),
        ({"day": "\uff12\uff10\uff12\uff17-05-06"}, "format_error"),
        ({"start": "24:00"}, "format_error"),
        ({"start": "9:30"}, "format_error"),
        ({"guests": [SOMEBODY.address, "Somebody Else"]}, "format_error"),
    ],
)
def test_values_are_checked_strictly(changed: dict[str, object], family: str) -> None:
    assert failure_of(execute(WORLD, book(**changed))).family == family
    assert execute(WORLD, book()).failure is None


@pytest.mark.parametrize(
    ("amount", "family"),
    [
        ("True", "type_error"),
        ("'3'", "type_error"),
        ("3j", "type_error"),
        ("1e999", "format_error"),
        ("0x1" + "0" * 9000, "format_error"),
    ],
)
def test_only_a_finite_number_is_an_amount(amount: str, family: str) -> None:
    text = f"convert_amount(amount={amount}, source='mi', target='km')"
    assert failure_of(python(text)).family == family


@pytest.mark.parametrize(
    "text",
    [
        "list_team(team='{}')",
        "list_team('{}')",
        "  list_team( team = '{}' )\n",
        "`list_team(team='{}')`",
        "```\nlist_team(team='{}')\n```",
        "```python\nlist_team(team='{}')\n```",
        "```python list_team(team='{}')```",
        "```python\nlist_team(team='{}')",
        "Action: list_team(team='{}')",
        "Assistant: call: `list_team(team='{}')`",
        "Tool:\n```\nlist_team(team='{}')\n```",
        "```\nAction: list_team(team='{}')\n```",
    ],
)
def test_the_dressing_around_a_call_is_put_aside(text: str) -> None:
    outcome = python(text.format(WORLD.teams[0]))
    assert outcome.answer == execute(WORLD, Call.of("list_team", team=WORLD.teams[0])).answer


@pytest.mark.parametrize(
    "text",
    [
        "list_team",
        "list_team(team=finance)",
        "list_team(team='a' + 'b')",
        "list_team(team=f'{1}')",
        "list_team(**{'team': 'a'})",
        "list_team(*['a'])",
        "office.list_team(team='a')",
        "list_team(team='a'); list_team(team='b')",
        "list_team(team='a')\nlist_team(team='b')",
        "list_team(team={[]: 1})",
        "list_team(team='a",
        "list_team(team='a')\x00",
        "list_team(team=" + "[" * 3000 + "]" * 3000 + ")",
        "list_team(team=" + "-" * 3000 + "1)",
        "list_team(team='" + "a" * 20_000 + "')",
        "__import__('os').getcwd()",
    ],
)
def test_what_is_not_one_literal_call_is_a_parse_error(text: str) -> None:
    assert failure_of(python(text)).family == "parse_error"


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "3",
        "null",
        '{"name": "list_team"}',
        '{"name": 3, "arguments": {}}',
        '{"name": "list_team", "arguments": ["finance"]}',
        '{"name": "list_team", "arguments": {}, "id": 1}',
        '{"name": "list_team", "arguments": "finance"}',
        "[" * 3000,
        "list_team(team='finance')",
    ],
)
def test_what_is_not_one_json_call_is_a_parse_error(text: str) -> None:
    assert failure_of(attempt(WORLD, Action(text), JSON)).family == "parse_error"


def test_json_arguments_may_stand_in_a_string() -> None:
    arguments = json.dumps({"team": WORLD.teams[0]})
    text = json.dumps({"name": "list_team", "arguments": arguments})
    assert attempt(WORLD, Action(f"```json\n{text}\n```"), JSON).failure is None


def test_native_actions_hold_one_call() -> None:
    call = ToolCall("list_team", json.dumps({"team": WORLD.teams[0]}))
    assert attempt(WORLD, Action(calls=(call,)), NATIVE).failure is None
    for action in (Action(calls=(call, call)), Action("list_team(team='finance')")):
        assert failure_of(attempt(WORLD, action, NATIVE)).family == "parse_error"


def test_half_a_surrogate_pair_never_reaches_a_tokenizer() -> None:
    saved = python(r"save_document(path='plans/odd.md', text='\ud800')")
    opened = execute(saved.world, Call.of("open_document", path="plans/odd.md"))
    assert saved.failure is None
    assert opened.observation().encode() == rb"\ud800"


def test_each_writing_tool_changes_what_it_says() -> None:
    saved = execute(WORLD, Call.of("save_document", path="plans/new.md", text="Hello."))
    assert execute(saved.world, Call.of("open_document", path="plans/new.md")).answer == "Hello."
    assert "plans/new.md" in execute(saved.world, Call.of("list_folder", folder="plans")).answer

    removed = execute(WORLD, Call.of("remove_document", path=PATH))
    assert execute(removed.world, Call.of("open_document", path=PATH)).failure is not None

    booked = execute(WORLD, book())
    identity = booked.answer.removeprefix("Booked as ").rstrip(".")
    agenda = ast.literal_eval(execute(booked.world, Call.of("show_agenda", day=DAY)).answer)
    assert [entry["id"] for entry in agenda if entry["topic"] == "rent"] == [identity]

    off = execute(booked.world, Call.of("call_off_meeting", meeting_id=identity))
    assert identity not in execute(off.world, Call.of("show_agenda", day=DAY)).answer

    call = Call.of("email_contact", address=SOMEBODY.address, subject="Hi", message="There")
    assert [mail.subject for mail in execute(WORLD, call).world.mails] == ["Hi"]

    reminded = execute(WORLD, Call.of("add_reminder", note="Stretch", day=DAY))
    assert [reminder.note for reminder in reminded.world.reminders] == ["Stretch"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
WORLDLY_VALUES = st.sampled_from(
    [
        *(person.name for person in WORLD.people),
        *(person.address for person in WORLD.people),
        *(document.path for document in WORLD.documents),
        *(meeting.identity for meeting in WORLD.meetings),
        *WORLD.teams,
        *WORLD.folders,
        *("mi", "km", DAY, "14:00", [SOMEBODY.address], 7),
    ]
)
NAMES = st.sampled_from(
    sorted({parameter.name for tool in TOOLS.values() for parameter in tool.parameters})
)


@st.composite
def plausible_calls(draw: st.DrawFn) -> Call:
    """Calls of real tools, most with just the arguments that they take."""
    tool = draw(st.sampled_from(list(TOOLS.values())))
    names = [parameter.name for parameter in tool.parameters]
    names = draw(st.just(names) | st.lists(NAMES, max_size=5, unique=True))
    return Call.of(tool.name, **{name: draw(WORLDLY_VALUES | JSON_VALUES) for name in names})


@given(plausible_calls())
def test_a_failed_call_never_changes_the_world(call: Call) -> None:
    before = repr(WORLD)
    outcome = execute(WORLD, call)
    assert repr(WORLD) == before
    if outcome.failure is not None:
        assert outcome.world == WORLD
        assert outcome.failure.family in GLOSSES


@given(plausible_calls(), st.lists(JSON_VALUES, max_size=3), st.lists(NAMES, max_size=2))
def test_execution_never_raises(call: Call, positional: list[object], again: list[str]) -> None:
    keywords = (*call.keywords, *((name, 1) for name in again))
    outcome = execute(WORLD, Call(call.tool, keywords, tuple(positional)))
    for verbosity in VERBOSITIES:
        outcome.observation(verbosity).encode()


@given(st.data(), plausible_calls(), st.sampled_from(["python", "json"]))
def test_malformed_text_never_raises_and_never_leaves_a_trace(
    data: st.DataObject, call: Call, name: str
) -> None:
    form = ACTION_FORMATS[name]
    text = form.write(call).text
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    junk = data.draw(st.text(max_size=5) | st.sampled_from(["(", "'", "\\", "```", "{", "\n"]))
    garbled = text[:start] + junk + text[stop:]
    if garbled.strip():
        outcome = attempt(WORLD, Action(garbled), form)
        assert outcome.failure is None or outcome.world == WORLD
        outcome.observation().encode()


@given(st.text(min_size=1).filter(str.strip), st.sampled_from(list(ACTION_FORMATS.values())))
def test_any_text_is_read_or_refused(text: str, form: Any) -> None:
    for action in (Action(text), Action(calls=(ToolCall(text, text),))):
        outcome = attempt(WORLD, action, form)
        assert outcome.failure is not None
        outcome.observation("verbose").encode()


@given(
    st.sampled_from([call for task in TASKS for call in task.solution]),
    st.sampled_from(list(ACTION_FORMATS.values())),
)
def test_what_is_written_is_read_back(call: Call, form: Any) -> None:
    assert form.read(form.write(call)) == call
