"""What the scripted model says first to each agent of the gallery: calls with a wrong date."""

from __future__ import annotations

import json

from pytest_failgain import FailingCall, ToolCall


def _failing_call(title: str, said: str, date: str, time: str) -> FailingCall:
    """A call that takes the date as the user `said` it; right would have been `date`."""

    def call(date: str, time: str = time) -> ToolCall:
        return ToolCall(
            "create_event", f'{{"title": "{title}", "date": "{date}", "time": "{time}"}}'
        )

    return FailingCall(
        "create_event",
        call(said).arguments,
        task=f"Add '{title}' to my calendar on {said} at {time}.",
        error=f"'date' must be YYYY-MM-DD, got '{said}'",
        success=f"Created '{title}' on {date} at {time}.",
        correct=call(date),
        distractors=(
            ToolCall("list_events", f'{{"date": "{date}"}}'),
            call(date.replace("-", "/")),
        ),
    )


FAILING_CALLS = (
    _failing_call("Dentist", "12 Oct", "2026-10-12", "09:30"),
    _failing_call("Team lunch", "3rd of November", "2026-11-03", "12:00"),
    _failing_call("Flight to Oslo", "12/24/2026", "2026-12-24", "07:45"),
)


def as_code(call: FailingCall) -> FailingCall:
    """The same for agents that write Python: a program that makes the call and prints."""

    def program(action: ToolCall) -> str:
        arguments = ", ".join(
            f"{name}={value!r}" for name, value in json.loads(action.arguments).items()
        )
        return f"result = {action.name}({arguments})\nprint(result)"

    others = [call.correct, *call.distractors]
    correct, *distractors = (program(one) for one in others if isinstance(one, ToolCall))
    failing = program(ToolCall(call.name, call.arguments_text))
    return FailingCall(
        text=f"Thought: I will add the event.\n<code>\n{failing}\n</code>",
        action_text=failing,
        task=call.task,
        error=call.error,
        success=call.success,
        correct=correct,
        distractors=tuple(distractors),
    )
