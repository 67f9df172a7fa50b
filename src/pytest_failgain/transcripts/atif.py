"""ATIF, the trajectory format of Harbor: steps of a system, a user and an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_failgain.trajectory import Action
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, tool_from
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.draft import THOUGHTS, Draft, text_in
from pytest_failgain.transcripts.members import as_dict, as_dicts, as_text
from pytest_failgain.transcripts.result_members import members_failed

TOLD = "steps of ATIF told as chat messages"
ENVIRONMENT = "an observation that no agent's step asked for told as a user's turn"

_SOURCES = ("system", "user", "agent")
_MARKS = ("tool_result_is_error", "is_error", "isError")


class ATIFReader:
    """A trajectory, or a list of them; trajectories of subagents that it holds are read too."""

    name = "atif"

    def recognises(self, document: Document) -> bool:
        return any(map(_is_trajectory, document.entries))

    def read(self, document: Document) -> Sequence[Conversation]:
        return [_conversation(one) for one in _trajectories(document.entries)]


def _is_trajectory(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return False
    version = value.get("schema_version")
    if isinstance(version, str) and version.startswith("ATIF"):
        return True
    steps = as_dicts(value["steps"])
    return bool(steps) and all(
        "step_id" in step and step.get("source") in _SOURCES for step in steps
    )


def _trajectories(entries: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [entry for entry in reversed(entries) if isinstance(entry, dict)]
    while waiting:
        one = waiting.pop()
        if isinstance(one.get("steps"), list):
            yield one
        waiting.extend(reversed(as_dicts(one.get("subagent_trajectories"))))


def _conversation(trajectory: Mapping[str, Any]) -> Conversation:
    draft = Draft()
    draft.note(TOLD)
    for step in as_dicts(trajectory["steps"]):
        if step.get("source") == "agent":
            _act(step, draft)
        else:
            role = "system" if step.get("source") == "system" else "user"
            draft.say(role, text_in(step.get("message"), draft))
            for result in _results(step):
                draft.note(ENVIRONMENT)
                draft.say("user", text_in(result.get("content"), draft))
    offered = as_dict(trajectory.get("agent")).get("tool_definitions")
    return draft.conversation([tool_from(tool) for tool in as_dicts(offered)])


def _act(step: Mapping[str, Any], draft: Draft) -> None:
    text = text_in(step.get("message"), draft)
    if step.get("reasoning_content"):
        draft.note(THOUGHTS)
    calls = [
        draft.call(made.get("function_name"), made.get("arguments"), made.get("tool_call_id"))
        for made in as_dicts(step.get("tool_calls"))
    ]
    answers = _results(step)
    if calls:
        draft.reply(text, calls)
        draft.answer(*(_result(answer, step, draft) for answer in answers))
    elif text.strip() and answers:
        # An agent without structured calls acts by what it says.
        draft.reply(text, [Call(Action(text))])
        for result in (_result(answer, step, draft) for answer in answers):
            draft.hear(result)
    else:
        draft.reply(text, [])
        for answer in answers:
            draft.note(ENVIRONMENT)
            draft.say("user", text_in(answer.get("content"), draft))


def _results(step: Mapping[str, Any]) -> list[dict[str, Any]]:
    return as_dicts(as_dict(step.get("observation")).get("results"))


def _result(answer: Mapping[str, Any], step: Mapping[str, Any], draft: Draft) -> Result:
    text = text_in(answer.get("content"), draft)
    failed, mark = _marked(answer)
    if failed is None and len(_results(step)) == 1:
        # Of a step's own notes it is told which call they are of only where there is one.
        failed, mark = _marked(step)
    call_id = as_text(answer.get("source_call_id"))
    return Result(text, call_id or None, failed, mark)


def _marked(holder: Mapping[str, Any]) -> tuple[bool | None, str]:
    """What the writer's own `extra` says of a failure, and by which member."""
    extra = as_dict(holder.get("extra"))
    for key, value in extra.items():
        if key in _MARKS and isinstance(value, bool):
            return value, f"extra.{key}"
        failed = members_failed({key: value})
        if failed is not None:
            return failed, f"extra.{key}"
    return None, ""
