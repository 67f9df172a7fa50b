"""What a record shows and how long it is, told without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_failgain import call
from pytest_failgain.environments import build_environment
from pytest_failgain.environments.settings import EnvironmentSettings
from pytest_failgain.errors import HarnessError, UsageError
from pytest_failgain.harnesses import VERBATIM, Harness, harness_name, remedied
from pytest_failgain.prompt import Message, Prompt
from pytest_failgain.record_checks.assertions import (
    assert_failed_action_absent,
    assert_record_tokens_at_most,
)
from pytest_failgain.record_checks.parts import Part, lines, parts
from pytest_failgain.record_checks.shared_runs import SharedRuns
from pytest_failgain.record_checks.shown import shown
from pytest_failgain.record_checks.tokens import BY_WORDS, Plain, contains, count_tokens
from pytest_failgain.strategies import failure_cases
from pytest_failgain.trajectory import (
    Action,
    FailureCase,
    Step,
    Tool,
    ToolCall,
    Trajectory,
    UserTurn,
)
from pytest_failgain.transcripts.recorded import AsRecorded, RecordedCase
from strategies import quick, render_as_text, texts

ARGUMENTS = {"to": "ada@example.org", "subject": "Order 42", "copies": 3, "urgent": True}
MAIL = call("send_email", **ARGUMENTS)
ERROR = "TypeError: copies must be text"


def case_of(action: Action | ToolCall | str, error: str = ERROR, **rest: Any) -> FailureCase:
    trajectory = Trajectory("You send mail.", "Tell Ada about her order.", **rest)
    return FailureCase("mail-1", "mail", trajectory, Step(Action.of(action), error, failed=True))


def recording(record: str, role: str = "user") -> Harness:
    """A harness that says `record` once a step failed, and nothing of any step."""

    def render(trajectory: Trajectory) -> list[Message]:
        messages: list[Message] = [{"role": "user", "content": trajectory.goal}]
        if any(isinstance(step, Step) and step.failed for step in trajectory.steps):
            messages.append({"role": role, "content": record})
        return messages

    return render


def message_of(assertion: Callable[..., None], *args: Any, **kwargs: Any) -> list[str]:
    """The lines of the failure."""
    with pytest.raises(AssertionError) as caught:
        assertion(*args, **kwargs)
    return str(caught.value).splitlines()


def shows(record: str, action: Action | ToolCall | str = MAIL, error: str = ERROR) -> str:
    """As what the record is told to show the action; empty where it does not."""
    case = case_of(action, error)
    harness = recording(record)
    before, after = (
        Prompt(messages=tuple(harness(trajectory)))  # type: ignore[arg-type]
        for trajectory in (case.trajectory, case.trajectory.then(case.failed))
    )
    found = shown(case.failed.action, error, before, after).showings
    assert len(found) <= 1
    return found[0].form if found else ""


WRITTEN = MAIL.arguments
IN_JSON = json.dumps({"name": "send_email", "arguments": ARGUMENTS})
DRESSES = {
    "as it was written": f"send_email({WRITTEN})",
    "in JSON": f"You called {IN_JSON}.",
    "in JSON, indented": json.dumps({"name": "send_email", "arguments": ARGUMENTS}, indent=4),
    "in JSON, arguments first": json.dumps({"arguments": ARGUMENTS, "name": "send_email"}),
    "escaped for JSON": json.dumps({"error": f"bad call {IN_JSON}"}),
    "escaped for JSON twice": json.dumps({"body": json.dumps({"error": IN_JSON})}),
    "escaped for JSON five times": json.dumps(
        json.dumps(json.dumps(json.dumps(json.dumps(IN_JSON))))
    ),
    "escaped for HTML": f"<error>{IN_JSON}</error>".replace('"', "&quot;"),
    "as Python prints it": f"Error invoking tool 'send_email' with kwargs {ARGUMENTS!r} with error",
    "as a Python call": (
        "send_email(to='ada@example.org', subject='Order 42', copies=3, urgent=True)"
    ),
    "with keys in another order": f"send_email({json.dumps(dict(reversed(ARGUMENTS.items())))})",
    "in another order, in Python": (
        "send_email(urgent=True, to='ada@example.org', copies=3, subject='Order 42')"
    ),
    "in another order, arguments first": json.dumps(
        {"input": dict(sorted(ARGUMENTS.items())), "tool": "send_email"}
    ),
    "quoted line by line": "> send_email(\n>   to: ada@example.org\n>   subject: Order 42\n"
    ">   copies: 3\n>   urgent: true\n> )",
    "as text of an agent": f"Action: send_email\nAction Input: {WRITTEN}",
    "in YAML": "send_email:\n  to: ada@example.org\n  subject: 'Order 42'\n  copies: 3\n"
    "  urgent: true",
    "broken at other places": "send_email({'to': 'ada@\nexample.org', 'subject':\n'Order\n42', "
    "'copies': 3,\n'urgent':\ntrue})",
    "glued to other words": f"calledsend_email({WRITTEN})again",
}


@pytest.mark.parametrize("record", DRESSES.values(), ids=DRESSES.keys())
def test_an_action_is_found_in_every_dress(record: str) -> None:
    assert shows(f"That failed: {record}\nTry again.")


@pytest.mark.parametrize(
    ("record", "form"),
    [
        (f"send_email({WRITTEN})", "verbatim"),
        (json.dumps({"error": f"send_email({WRITTEN})"}), "JSON-escaped"),
        (json.dumps(json.dumps(f"send_email({WRITTEN})")), "JSON-escaped twice"),
        (f"send_email: {ARGUMENTS}", "written otherwise"),
        ("send_email to ada@example.org, subject Order 42, copies", "in part"),
    ],
)
def test_the_form_is_told(record: str, form: str) -> None:
    assert shows(record) == form


@pytest.mark.parametrize(
    "record",
    [
        "[Attempt 1: the call to send_email failed. Make a different call.]",
        ERROR,
        "There is no contact ada@example.org.",
        "send_email: subject 'Order 42' is taken",
        "Arguments of send_email: to, subject, copies, urgent",
        json.dumps({"name": "send_email", "properties": {"to": {"type": "string"}}}),
        "",
    ],
)
def test_a_name_or_a_short_value_passes(record: str) -> None:
    assert shows(record) == ""


def test_half_of_an_action_may_be_shown_but_never_more_than_sixteen_tokens() -> None:
    words = [f"word{index}" for index in range(100)]
    for length, allowed in ((4, 3), (9, 8), (16, 8), (20, 10), (32, 16), (100, 16)):
        action = " ".join(words[:length])
        assert shows(" ".join(words[:allowed]), action) == ""
        assert shows(" ".join(words[: allowed + 1]), action)


def test_a_long_name_of_a_tool_passes_as_a_whole() -> None:
    action = call("create_a_pull_request_review_comment_on_every_line", x=1)
    assert shows("create_a_pull_request_review_comment_on_every_line failed", action) == ""
    assert shows("create_a_pull_request_review_comment_on_every_line, x = 1", action)


@pytest.mark.parametrize(
    ("record", "is_shown"),
    [
        ("The call to list_files failed.", False),
        ("list_files (of the folder) failed", False),
        ("list_files() failed", True),
        ('{"name": "list_files", "arguments": {}}', True),
        (json.dumps('{"name": "list_files", "arguments": {}}'), True),
        ("list_files({})", True),
    ],
)
@pytest.mark.parametrize("action", [ToolCall("list_files", "{}"), "list_files()"])
def test_a_call_without_arguments_is_more_than_its_name(
    action: ToolCall | str, record: str, is_shown: bool
) -> None:
    assert bool(shows(record, action)) == is_shown


def test_an_action_without_words_is_found_letter_for_letter() -> None:
    assert shows("It wrote >>> +++ !!! <<<.", "+++ !!!") == "verbatim"
    assert shows("It wrote +++.", "+++ !!!") == ""
    assert shows("It wrote f('?!').", "f('?!')") == "verbatim"
    assert shows("It wrote f.", "f('?!')") == ""


@pytest.mark.parametrize(
    "action",
    [
        "<tool_call>\n" + IN_JSON + "\n</tool_call>",
        f"```json\n{IN_JSON}\n```",
        "send_email(to='ada@example.org', subject='Order 42', copies=3, urgent=True)",
    ],
)
def test_the_wrapping_of_a_text_action_does_not_hide_it(action: str) -> None:
    assert shows("send_email failed", action) == ""
    assert shows(f"send_email {ARGUMENTS} failed", action)
    assert shows(f"send_email {dict(reversed(ARGUMENTS.items()))} failed", action)


def test_each_of_several_calls_is_looked_for() -> None:
    action = Action(calls=(call("look"), MAIL, call("look", at="it")))
    assert shows(f"send_email({WRITTEN})", action)
    assert shows("look failed", action) == ""
    both = '{"name": "look", "arguments": {"at": 1}} {"name": "f", "arguments": {"id": [7, 8]}}'
    assert shows("f(id=[7, 8])", both)
    assert shows("look(at=1)", both)


def test_words_beside_calls_are_none_of_the_action() -> None:
    action = Action("Let me send that mail to Ada, with all that she asked for.", (MAIL,))
    assert shows("Let me send that mail to Ada, with all that she asked for.", action) == ""


def test_what_stands_in_the_prompt_before_is_not_counted() -> None:
    goal = f"Repair what this does: send_email({WRITTEN})"
    case = case_of(MAIL)
    quoted = replace(case, trajectory=replace(case.trajectory, goal=goal))
    assert_failed_action_absent(recording("It failed."), [quoted])
    message_of(assert_failed_action_absent, recording(f"send_email({WRITTEN})"), [quoted])
    # An earlier failure of the same action stays where it was, and one more is too many.
    earlier = replace(case, trajectory=case.trajectory.then(case.failed))
    assert_failed_action_absent(_first_failure_only, [earlier])
    message_of(assert_failed_action_absent, VERBATIM, [earlier])


def _first_failure_only(trajectory: Trajectory) -> Sequence[Message]:
    messages = VERBATIM(replace(trajectory, steps=trajectory.steps[:1]))
    assert isinstance(messages, list)
    return [*messages, {"role": "user", "content": f"{len(trajectory.steps)} steps so far."}]


def test_what_moves_is_not_shown_anew() -> None:
    task = f"Repair what this does: send_email({WRITTEN})"

    def render(trajectory: Trajectory) -> str:
        notices = ["A step failed."] * len(trajectory.steps)
        return "\n".join([*notices, task] if notices else [task, "Nothing failed."])

    assert_failed_action_absent(render, [case_of(MAIL)])


def test_text_prompts_tools_and_leads_are_looked_at() -> None:
    first, *_ = message_of(assert_failed_action_absent, render_as_text, [case_of(MAIL)])
    assert first.startswith("render_as_text: the failed action is shown in 1 of 1 cases")

    def lead(trajectory: Trajectory) -> Prompt:
        said = f"Not send_email({WRITTEN}) but " if trajectory.steps else ""
        return Prompt(text=trajectory.goal, lead=said)

    def tools(trajectory: Trajectory) -> Prompt:
        described = f"Failed: send_email({WRITTEN})" if trajectory.steps else ""
        return Prompt(({"role": "user", "content": "Go."},), tools=(Tool("f", described),))

    def thought(trajectory: Trajectory) -> list[Message]:
        said = f"send_email({WRITTEN}) failed" if trajectory.steps else "nothing yet"
        return [{"role": "assistant", "content": None, "reasoning_content": said}]

    for harness, place in (
        (lead, "the beginning of the reply"),
        (tools, "tools[0]"),
        (thought, "messages[0]['reasoning_content'] (assistant)"),
    ):
        lines = message_of(assert_failed_action_absent, harness, [case_of(MAIL)])
        assert f"  {place}, " in lines[2]


def test_the_failure_says_how_much_is_shown_where_and_what_to_try() -> None:
    quoting = case_of(MAIL, f"{ERROR}: {ARGUMENTS!r}, send_email")
    clean = replace(case_of("x = 1\ny = 2"), case_id="clean")

    def render(trajectory: Trajectory) -> list[Message]:
        messages: list[Message] = [{"role": "user", "content": trajectory.goal}]
        for step in trajectory.steps:
            assert isinstance(step, Step)
            if step.action.calls:
                messages.append({"role": "user", "content": f"Observation: {step.observation}"})
        return messages

    assert message_of(assert_failed_action_absent, render, [clean, quoting]) == [
        (
            f"{harness_name(render)}: the failed action is shown in 1 of 2 cases, at worst 15 of "
            "its 15 tokens in a row, at most 8 allowed, n = 2"
        ),
        "worst cases:  shared  of  allowed  where, and as what",
        (
            "                  15  15        8  messages[1]['content'] (user), inside the error "
            "text, written otherwise: \"to': 'ada@example.org', 'subject': 'Ord…copies': 3, "
            "'urgent': True}, send_email\"  (mail-1)"
        ),
        (
            "try: take the call out of the error text before it is recorded: keep the kind of "
            "error and what is allowed, not what was given."
        ),
    ]


def test_every_place_is_told() -> None:
    case = case_of(MAIL, f"{ERROR}: send_email({WRITTEN})", tools=(Tool("send_email"),))
    lines = message_of(assert_failed_action_absent, VERBATIM, [case])
    assert "messages[2]['tool_calls'][0] (assistant), as a call: " in lines[2]
    assert "messages[3]['content'] (tool), inside the error text, verbatim: " in lines[3]
    assert lines[4].startswith("try: describe the failure")
    assert lines[5].startswith("try: take the call out of the error text")


def test_the_worst_of_many_cases_come_first() -> None:
    cases = [
        replace(case_of(" ".join(f"word{i}" for i in range(length))), case_id=f"of-{length}")
        for length in (2, 40, 9, 5, 30, 20, 12)
    ]
    lines = message_of(assert_failed_action_absent, VERBATIM, cases)
    assert "at worst 40 of its 40 tokens in a row, at most 16 allowed, n = 7" in lines[0]
    told = [line.rpartition("(")[2] for line in lines[2:7]]
    assert told == ["of-40)", "of-30)", "of-20)", "of-12)", "of-9)"]


def test_the_limit_can_be_given() -> None:
    harness = recording("send_email failed: ada@example.org is unknown")
    assert_failed_action_absent(harness, [case_of(MAIL)])
    assert_failed_action_absent(harness, [case_of(MAIL)], max_shared_tokens=4)
    first, *_ = message_of(
        assert_failed_action_absent, harness, [case_of(MAIL)], max_shared_tokens=3
    )
    assert "at worst 4 of its 15 tokens in a row, at most 3 allowed" in first
    assert_failed_action_absent(recording(str(MAIL)), [case_of(MAIL)], max_shared_tokens=15)


@pytest.mark.parametrize(
    "assertion",
    [assert_failed_action_absent, partial(assert_record_tokens_at_most, maximum=1000)],
)
def test_no_case_and_what_is_none_is_refused(assertion: Callable[..., None]) -> None:
    assert message_of(assertion, VERBATIM, []) == [
        "verbatim: no case was checked (n = 0), so nothing can be asserted"
    ]
    with pytest.raises(UsageError, match=r"^cases\[1\] is a Trajectory, and no failure case"):
        assertion(VERBATIM, [case_of(MAIL), case_of(MAIL).trajectory])
    with pytest.raises(UsageError, match=r"^cases must be failure cases, not 3;"):
        assertion(VERBATIM, 3)
    with pytest.raises(HarnessError, match="case 'mail-1': it returned None"):
        assertion(lambda trajectory: None, [case_of(MAIL)])


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "3"])
def test_a_limit_that_is_no_count_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"^max_shared_tokens must be a whole number of tokens"):
        assert_failed_action_absent(VERBATIM, [case_of(MAIL)], max_shared_tokens=wrong)
    with pytest.raises(UsageError, match=r"^maximum must be a whole number of tokens"):
        assert_record_tokens_at_most(VERBATIM, [case_of(MAIL)], wrong)


OFFICE = {
    form: build_environment("tool_calls", EnvironmentSettings(action_format=form)).cases(12)
    for form in ("python", "json", "native")
}
PROGRAMS = build_environment("program_repair").cases(12)


@pytest.mark.parametrize("cases", [*OFFICE.values(), PROGRAMS], ids=[*OFFICE, "programs"])
def test_the_remedies_that_take_the_action_away_are_told_from_those_that_do_not(
    cases: Sequence[FailureCase],
) -> None:
    for name in ("described", "described-minimal", "dropped", "stripped"):
        assert_failed_action_absent(remedied(name), cases)
    for name in ("verbatim", "instructed", "redirected", "collapsed", "advised", "labelled"):
        first, *rest = message_of(assert_failed_action_absent, remedied(name), cases)
        assert first.startswith(f"{name}: the failed action is shown in 12 of 12 cases, at worst ")
        assert rest[-1].startswith("try: ")


def test_a_replayed_record_can_be_checked() -> None:
    case = case_of(MAIL)
    before = Prompt(({"role": "user", "content": "Go."},))
    shown_after = Prompt(({"role": "user", "content": "Go."}, {"role": "user", "content": WRITTEN}))
    recorded = AsRecorded((RecordedCase(case, before, shown_after),))
    assert "as recorded: " in message_of(assert_failed_action_absent, recorded, [case])[0]
    assert_failed_action_absent(AsRecorded((RecordedCase(case, before, before),)), [case])


def test_lengths_are_told_with_the_longest_first() -> None:
    cases = [
        replace(case_of(f"act({n})", "error " * n), case_id=f"of-{n}") for n in (1, 40, 10, 20)
    ]
    assert_record_tokens_at_most(VERBATIM, cases, 47)
    lines = message_of(assert_record_tokens_at_most, VERBATIM, cases, 20)
    assert lines[:4] == [
        (
            "verbatim: the record has 47 tokens at worst (mean 24.8), at most 20 allowed, more in "
            "2 of 4 cases, n = 4"
        ),
        "worst cases:  tokens  failed action",
        "                  47  act(40)  (of-40)",
        "                  27  act(20)  (of-20)",
    ]
    assert len(lines) == 5


def test_tokens_are_counted_in_what_is_added_less_what_is_gone() -> None:
    def render(trajectory: Trajectory) -> list[Message]:
        notice = "one two three four five" if trajectory.steps else "one two"
        return [{"role": "user", "content": trajectory.goal}, {"role": "user", "content": notice}]

    assert_record_tokens_at_most(render, [case_of(MAIL)], 3)
    assert "has 3 tokens" in message_of(assert_record_tokens_at_most, render, [case_of(MAIL)], 2)[0]
    assert_record_tokens_at_most(remedied("dropped"), [case_of(MAIL)], 0)


def test_tokens_can_be_counted_as_a_model_does() -> None:
    harness = recording("abc")
    assert_record_tokens_at_most(harness, [case_of(MAIL)], 1)
    first, *_ = message_of(assert_record_tokens_at_most, harness, [case_of(MAIL)], 1, len)
    assert "has 3 tokens" in first


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("send_email(x)", 6), ("abcdefg", 2), ("日本語", 3), ("a  b\n", 2), ("🦊…", 2)],
)
def test_tokens_are_pieces_of_words_and_single_other_characters(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a\\nb", "a b"),
        ('\\\\\\"x\\\\\\"', '"x"'),
        ("caf\\u00e9 \\\\u0065", "café e"),
        ("\\ud83e\\udd8a!", "🦊!"),
        ("\\ud83e!", " !"),
        ("&quot;a&quot; &#39;&amp; &unknown;", '"a" \'& &unknown;'),
        ("AT&T", "AT&T"),
        ("end\\", "end"),
    ],
)
def test_escapes_are_undone(text: str, plain: str) -> None:
    assert Plain.of(text).text == plain


@quick
@given(st.text(alphabet=st.sampled_from('\\nu"a&;é🦊 '), max_size=20))
def test_a_place_without_escapes_leads_back_to_the_text(text: str) -> None:
    plain = Plain.of(text)
    origins = [plain.origin(place) for place in range(len(plain.text))]
    assert origins == sorted(set(origins))
    for place, origin in enumerate(origins):
        # What an escape stands for begins with a backslash there; all else is itself.
        assert plain.text[place] == text[origin] or text[origin] in "\\&"


@quick
@given(texts, st.integers(1, 3))
def test_escaping_changes_no_word(text: str, times: int) -> None:
    escaped = text
    for _ in range(times):
        escaped = json.dumps(escaped)
    assert BY_WORDS.tokens(Plain.of(escaped).text) == BY_WORDS.tokens(Plain.of(text).text)


TOKENS = st.lists(st.sampled_from("abc"), max_size=8)


def occurrences(run: Sequence[str], texts: Sequence[Sequence[str]]) -> int:
    return sum(
        list(text[start : start + len(run)]) == list(run)
        for text in texts
        for start in range(len(text))
    )


@quick
@given(st.lists(TOKENS, min_size=1, max_size=2), st.lists(TOKENS, max_size=2), TOKENS, TOKENS)
def test_the_longest_surplus_is_what_trying_all_runs_finds(
    wanted: list[list[str]], others: list[list[str]], one: list[str], two: list[str]
) -> None:
    runs = {
        tuple(sequence[start:end])
        for sequence in wanted
        for end in range(len(sequence) + 1)
        for start in range(end)
    }
    more = {run for run in runs if occurrences(run, [one, two]) > occurrences(run, others)}
    found = SharedRuns(wanted).longest_surplus([one, two], others)
    longest = max(map(len, more), default=0)
    assert max(run.length for run in found) == longest
    for text, run in zip((one, two), found, strict=True):
        assert not run.length or tuple(text[run.end - run.length : run.end]) in more


def test_a_run_is_found_where_it_stands() -> None:
    assert contains(["a", "b", "ab", "c"], ["ab", "c"]) == 2
    assert contains(["ab"], ["a"]) == -1
    assert contains(["a"], []) == -1


@quick
@given(failure_cases())
def test_the_whole_action_is_always_found_and_a_clean_retry_never_shows_it(
    case: FailureCase,
) -> None:
    if not case.failed.action.calls and len(case.failed.action.text) < 8:
        # It may be glued to what is said around it, as "a" is in "bad".
        case = replace(case, failed=replace(case.failed, reply=""))
    message_of(assert_failed_action_absent, VERBATIM, [case])
    assert_failed_action_absent(remedied("dropped"), [case])
    assert_record_tokens_at_most(remedied("dropped"), [case], 0)


def test_the_texts_of_a_prompt_are_told_with_their_places() -> None:
    prompt = Prompt(
        (
            {"role": "user", "content": [{"type": "text", "text": "Go."}, {"type": "image"}]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}],
            },
            {"role": "assistant", "content": [{"type": "tool_use", "name": "g", "input": {}}]},
            {"role": "tool", "tool_call_id": "1", "name": "f", "content": "one\n\n two\n"},
        ),
    )
    assert parts(prompt) == [
        Part("Go.", "messages[0]['content'][0]", "user"),
        Part('{"type": "image"}', "messages[0]['content'][1]", "user"),
        Part('f({"a": 1})', "messages[1]['tool_calls'][0]", "assistant", is_call=True),
        Part("g({})", "messages[2]['content'][0]", "assistant", is_call=True),
        Part("f", "messages[3]['name']", "tool"),
        Part("one\n\n two\n", "messages[3]['content']", "tool"),
    ]
    assert [(line.text, line.at) for line in lines(prompt)][-2:] == [
        ("one", "messages[3]['content'], line 1"),
        (" two", "messages[3]['content'], line 3"),
    ]


def test_user_turns_after_the_failure_count_as_the_record() -> None:
    case = case_of(MAIL)

    def render(trajectory: Trajectory) -> list[Message]:
        asked = [UserTurn(f"Not send_email({WRITTEN})!")] if trajectory.steps else []
        return list(VERBATIM(replace(trajectory, steps=tuple(asked))))  # type: ignore[arg-type]

    assert "verbatim: " in message_of(assert_failed_action_absent, render, [case])[2]
