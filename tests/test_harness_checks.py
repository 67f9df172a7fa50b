from __future__ import annotations

import enum
import functools
import itertools
import json
import types
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given

from pytest_failgain.errors import HarnessError, NotRecordedError, UsageError
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import VERBATIM, Harness, remedied
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.trajectory import Action, Step, Tool, ToolCall, Trajectory
from strategies import harnesses, quick, trajectories

TOOLS = (Tool("refund", "Pays back.", {"properties": {"order": {"type": "integer"}}}),)
TRAJECTORY = Trajectory(
    system="You handle orders.",
    goal="Refund order 42.",
    steps=(Step(Action("refund('42')"), "TypeError", failed=True, records={"described": "No."}),),
    tools=TOOLS,
)
USER = {"role": "user", "content": "Refund order 42."}


def checked(harness: Any, trajectory: Trajectory = TRAJECTORY) -> Prompt:
    return render(harness, trajectory, case_id="refund-42")


def error_of(harness: Any, trajectory: Trajectory = TRAJECTORY) -> str:
    """What is said of `harness`, after its name and the case's."""
    with pytest.raises(HarnessError) as caught:
        checked(harness, trajectory)
    label, _, problem = str(caught.value).partition(": ")
    assert label.startswith("harness '")
    assert label.endswith("', case 'refund-42'")
    return problem


def returning(result: object) -> Callable[[Trajectory], Any]:
    return lambda trajectory: result


def test_a_prompt_keeps_its_own_tools() -> None:
    other = (Tool("look"),)
    prompt = Prompt((USER,), tools=other, adaptations=("folded",))
    assert checked(returning(prompt)) == prompt
    assert checked(returning(Prompt(text="Go on."))) == Prompt(text="Go on.")
    assert "it returned a text that is empty" in error_of(returning(Prompt(text=" ")))
    assert "it returned no messages" in error_of(returning(Prompt(())))
    prompts = iter([prompt, Prompt((USER,))])
    assert "twice with the same trajectory" in error_of(lambda trajectory: next(prompts))


def test_a_record_that_was_not_kept_passes_as_what_it_is() -> None:
    def replay(trajectory: Trajectory) -> Prompt:
        raise NotRecordedError("never seen")

    with pytest.raises(NotRecordedError, match=r"^never seen$"):
        checked(replay)


def test_a_prompt_has_either_messages_or_text() -> None:
    with pytest.raises(UsageError, match="either messages or a text"):
        Prompt()
    with pytest.raises(UsageError, match="either messages or a text"):
        Prompt((USER,), "Go on.")


def test_messages_come_with_the_tools_of_the_trajectory() -> None:
    assert checked(VERBATIM) == Prompt(
        messages=(
            {"role": "system", "content": "You handle orders."},
            USER,
            {"role": "assistant", "content": "refund('42')"},
            {"role": "user", "content": "Observation: TypeError"},
        ),
        tools=TOOLS,
    )


def test_text_comes_alone() -> None:
    assert checked(lambda trajectory: trajectory.goal) == Prompt(text="Refund order 42.")


@quick
@given(trajectory=trajectories())
def test_the_reference_harness_passes_on_any_trajectory(trajectory: Trajectory) -> None:
    prompt = checked(VERBATIM, trajectory)
    assert prompt.messages is not None
    assert list(prompt.messages) == VERBATIM(trajectory)
    assert prompt.tools == trajectory.tools


@quick
@given(trajectory=trajectories(), harness=harnesses)
def test_remedies_before_any_harness_pass_on_any_trajectory(
    trajectory: Trajectory, harness: Harness
) -> None:
    prompt = checked(harness, trajectory)
    assert (prompt.messages is None) != (prompt.text is None)
    json.dumps(prompt.messages, allow_nan=False)


def test_the_error_names_the_harness_and_the_case() -> None:
    def my_history(trajectory: Trajectory) -> str:
        return ""

    name = "test_the_error_names_the_harness_and_the_case.my_history"
    with pytest.raises(HarnessError, match=f"^harness '{name}', case 'a-7': "):
        render(my_history, TRAJECTORY, case_id="a-7")
    described = remedied("described", my_history)
    with pytest.raises(HarnessError, match=rf"^harness '{name}\+described', case 'a-7': "):
        render(described, TRAJECTORY, case_id="a-7")


def raise_key_error(trajectory: Trajectory) -> list[Message]:
    raise KeyError("tool_call_id")


def test_an_exception_is_named_with_its_place_and_chained() -> None:
    with pytest.raises(HarnessError) as caught:
        checked(raise_key_error)
    line = raise_key_error.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        f"harness 'raise_key_error', case 'refund-42': it raised at {__file__}:{line}: "
        "KeyError: 'tool_call_id'"
    )
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_exception_without_a_message_is_named() -> None:
    def harness(trajectory: Trajectory) -> str:
        raise StopIteration

    assert error_of(harness).endswith(": StopIteration")


def test_an_exception_on_the_second_call_only_is_told_so() -> None:
    calls = itertools.count()

    def harness(trajectory: Trajectory) -> str:
        if next(calls):
            raise RuntimeError("already closed")
        return "text"

    said = error_of(harness)
    assert said.startswith("it raised on its second call with the same trajectory at ")
    assert said.endswith(": RuntimeError: already closed")


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt(), SystemExit(3), pytest.exit.Exception("enough")]
)
def test_what_ends_the_run_passes_through(stop: BaseException) -> None:
    def harness(trajectory: Trajectory) -> str:
        raise stop

    with pytest.raises(type(stop)) as caught:
        checked(harness)
    assert caught.value is stop


@pytest.mark.parametrize("outcome", [pytest.skip, pytest.fail, pytest.xfail])
def test_the_outcomes_of_pytest_pass_through(outcome: Any) -> None:
    def harness(trajectory: Trajectory) -> str:
        return str(outcome("not today"))

    with pytest.raises(outcome.Exception, match="not today"):
        checked(harness)


def test_a_function_of_something_else_is_told_what_it_gets() -> None:
    def harness(trajectory: Trajectory, model: str) -> str:
        return model

    for given_one in (harness, functools.partial(lambda: "text")):
        assert error_of(given_one).startswith(
            "it can't be called with one trajectory as its only argument: TypeError: "
        )


def test_what_can_not_be_called() -> None:
    assert error_of("verbatim") == "it is a str, which can't be called; give a function"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, "it returned None (is a return missing?); a harness returns a list of chat"),
        (USER, "it returned a dict ({'role': 'user', 'content': 'Refund order 42.'}) (put a"),
        (b"text", "it returned a bytes (b'text'); a harness returns a list of chat messages,"),
        (
            7,
            "it returned an int (7); a harness returns a list of chat messages, a text, or",
        ),
        ({"x"}, "it returned a set ({'x'}); a harness returns"),
    ],
)
def test_a_wrong_type_is_named_beside_the_right_ones(result: object, said: str) -> None:
    assert error_of(returning(result)).startswith(said)


async def asynchronous(trajectory: Trajectory) -> list[Message]:
    return [USER]


async def streaming(trajectory: Trajectory) -> AsyncIterator[Message]:
    yield USER


def generating(trajectory: Trajectory) -> Iterator[Message]:
    yield USER


@pytest.mark.parametrize("harness", [asynchronous, streaming])
def test_an_asynchronous_harness_is_told_how_to_wrap_it(harness: Any) -> None:
    said = error_of(harness)
    assert said.startswith("it is asynchronous: it returned a")
    assert said.endswith(
        "; give a plain function, such as lambda trajectory: asyncio.run(harness(trajectory))"
    )


def test_a_generator_is_no_list() -> None:
    assert error_of(generating) == ("it returned a generator; let it return a list of its messages")


@pytest.mark.parametrize("result", [[], ()])
def test_no_messages(result: object) -> None:
    assert error_of(returning(result)) == "it returned no messages"


@pytest.mark.parametrize("result", ["", " \n\t"])
def test_an_empty_text(result: object) -> None:
    assert error_of(returning(result)) == ("it returned a text that is empty or only white space")


@dataclass
class SdkMessage:
    role: str
    content: str


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            SdkMessage("user", "x"),
            (
                "messages[1] is a SdkMessage (SdkMessage(role='user', content='x')); a message is "
                "a dict with 'role' and 'content'"
            ),
        ),
        ("x", "messages[1] is a str ('x'); a message is a dict"),
        ({"content": "x"}, "messages[1] has no role; give a text such as 'user'"),
        ({"role": None, "content": "x"}, "messages[1] has the role None; give a text such as"),
        ({"role": "", "content": "x"}, "messages[1] has the role ''; give a text such as"),
        (
            {"role": "user", "content": {"text": "x"}},
            "messages[1]['content'] is a dict ({'text': 'x'}); give a text, None or a list of",
        ),
        ({"role": "user", "content": 4}, "messages[1]['content'] is an int (4); give a text"),
        (
            {"role": "user", "content": [{"type": "text", "text": "x"}, "y"]},
            "messages[1]['content'][1] is a str ('y'); a part is a dict",
        ),
        (
            {"role": "user", "content": [{"type": "image", "data": b"\x89PNG"}]},
            "messages[1]['content'][0]['data'] is a bytes (b'\\x89PNG'), which JSON can't hold;",
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [ToolCall("a", "{}")]},
            (
                "messages[1]['tool_calls'][0] is a ToolCall (ToolCall(name='a', arguments='{}')) "
                "without a function's name and arguments; give {'function': "
            ),
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "call00000"}]},
            "messages[1]['tool_calls'][0] is a dict ({'id': 'call00000'}) without a function's",
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": {"id": "call00000"}},
            "messages[1]['tool_calls'] is a dict ({'id': 'call00000'}); give a list",
        ),
        (
            {"role": "user", "content": "x", "cost": float("nan")},
            "messages[1]['cost'] is a float (nan), which JSON can't hold;",
        ),
        (
            {"role": "user", "content": "x", 3: "y"},
            "messages[1] has the key 3, an int (3); keys are texts",
        ),
    ],
)
def test_an_unusable_message_is_named_by_its_index(message: object, said: str) -> None:
    assert error_of(returning([USER, message])).startswith(said)


def test_a_message_that_contains_itself() -> None:
    message: dict[str, Any] = {"role": "user", "content": "x"}
    message["self"] = [message]
    assert error_of(returning([message])) == (
        "messages[0] is nested too deeply, or contains itself"
    )


def test_a_long_value_is_shortened_in_the_error() -> None:
    assert len(error_of(returning(["x" * 10_000]))) < 200


CALL = {"id": "call00000", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "Done.", "tool_calls": None},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": []},
    ],
)
def test_every_form_that_chat_apis_take_passes(message: Message) -> None:
    assert checked(returning([message])).messages == (message,)


def test_messages_become_plain_data() -> None:
    class Role(str, enum.Enum):
        USER = "user"

    message = types.MappingProxyType({"role": Role.USER, "content": ({"text": "x"},), "n": 1.5})
    [plain] = checked(returning((message,))).messages or ()
    assert plain == {"role": "user", "content": [{"text": "x"}], "n": 1.5}
    assert type(plain) is dict
    assert type(plain["role"]) is str


def test_later_changes_by_the_harness_do_not_reach_the_prompt() -> None:
    kept: list[dict[str, Any]] = []

    def harness(trajectory: Trajectory) -> Sequence[Message]:
        kept[:] = [{"role": "user", "content": [{"type": "text", "text": trajectory.goal}]}]
        return kept

    prompt = checked(harness)
    kept[0]["content"][0]["text"] = "changed"
    kept.append({"role": "user", "content": "more"})
    assert prompt.messages == (
        {"role": "user", "content": [{"type": "text", "text": "Refund order 42."}]},
    )


def fresh_trajectory() -> Trajectory:
    """One that a harness may spoil."""
    schema: dict[str, Any] = {"properties": {"order": {"type": "integer"}}, "required": ["order"]}
    step = Step(Action("refund('42')"), "TypeError", failed=True, records={"described": "No."})
    return Trajectory("", "Refund order 42.", (step,), (Tool("refund", "", schema),))


def pop_schema_entry(trajectory: Trajectory) -> None:
    parameters: Any = trajectory.tools[0].parameters
    parameters["properties"].pop("order", None)


def reorder_schema(trajectory: Trajectory) -> None:
    parameters: Any = trajectory.tools[0].parameters
    parameters["properties"] = parameters.pop("properties")


def append_to_schema(trajectory: Trajectory) -> None:
    parameters: Any = trajectory.tools[0].parameters
    parameters["required"].append("reason")


def rewrite_record(trajectory: Trajectory) -> None:
    [step] = trajectory.steps
    assert isinstance(step, Step)
    records: Any = step.records
    records["described"] = "Yes."


def force_goal(trajectory: Trajectory) -> None:
    object.__setattr__(trajectory, "goal", "Refund it.")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            pop_schema_entry,
            "trajectory['tools'][0]['parameters']['properties'] has the keys ['order'], then []",
        ),
        (
            reorder_schema,
            (
                "trajectory['tools'][0]['parameters'] has the keys ['properties', 'required'], "
                "then ['required', 'properties']"
            ),
        ),
        (
            append_to_schema,
            "the length of trajectory['tools'][0]['parameters']['required'] is 1, then 2",
        ),
        (
            rewrite_record,
            (
                "trajectory['steps'][0]['records']['described'] differs from character 0: 'No.', "
                "then 'Yes.'"
            ),
        ),
        (
            force_goal,
            "trajectory['goal'] differs from character 7: 'Refund order 42.', then 'Refund it.'",
        ),
    ],
)
def test_a_harness_that_changes_its_input_is_told_where(
    spoil: Callable[[Trajectory], None], said: str
) -> None:
    def harness(trajectory: Trajectory) -> Sequence[Message]:
        spoil(trajectory)
        return [USER]

    assert error_of(harness, fresh_trajectory()) == (
        f"it changed the trajectory that it was given: {said}; let it work on a copy"
    )


def test_a_change_on_the_second_call_only_is_found() -> None:
    calls = itertools.count()

    def harness(trajectory: Trajectory) -> Sequence[Message]:
        if next(calls):
            rewrite_record(trajectory)
        return [USER]

    assert error_of(harness, fresh_trajectory()).startswith("it changed the trajectory")


def counting(
    make: Callable[[int], Sequence[Mapping[str, Any]] | str],
) -> Callable[[Trajectory], Sequence[Mapping[str, Any]] | str]:
    """A harness that makes something else each time."""
    calls = itertools.count(1)
    return lambda trajectory: make(next(calls))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda n: [USER, {"role": "user", "content": f"It is now exactly 12:0{n}."}],
            (
                "messages[1]['content'] differs from character 22: '…ow exactly 12:01.', "
                "then '…ow exactly 12:02.'"
            ),
        ),
        (
            lambda n: f"Attempt {n}" + "x" * 1_000,
            (
                f"the text differs from character 8: 'Attempt 1{'x' * 40}…', "
                f"then 'Attempt 2{'x' * 40}…'"
            ),
        ),
        (lambda n: "a" * n, "the text differs from character 1: 'a', then 'aa'"),
        (lambda n: [USER] * n, "the length of messages is 1, then 2"),
        (
            lambda n: [{**USER, "cost": n}],
            "messages[0]['cost'] is 1, then 2",
        ),
        (
            lambda n: [dict(list(USER.items())[:: (-1) ** n])],
            "messages[0] has the keys ['content', 'role'], then ['role', 'content']",
        ),
        (
            lambda n: [{**USER, "strict": n if n == 1 else True}],
            "messages[0]['strict'] is 1, then True",
        ),
        (lambda n: "text" if n == 1 else [USER], "the text is 'text', then [{'role': 'user', "),
    ],
)
def test_a_harness_that_is_not_deterministic_is_told_where(
    make: Callable[[int], Sequence[Mapping[str, Any]] | str], said: str
) -> None:
    message = error_of(counting(make))
    assert message.startswith(
        f"it is not deterministic: called twice with the same trajectory, {said}"
    )
    assert message.endswith("; leave out times, random ids and what it keeps from earlier calls")


def test_one_list_that_grows_from_call_to_call_is_not_deterministic() -> None:
    kept: list[Message] = []

    def harness(trajectory: Trajectory) -> Sequence[Message]:
        kept.append(USER)
        return kept

    assert "the length of messages is 1, then 2" in error_of(harness)
