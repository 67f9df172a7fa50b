"""Remedies change what is recorded of a failure, before a harness renders it.

A remedy is a function from trajectory to trajectory that comes before the harness, so it can be put
before *any* harness: `described` before the reference harness is the paper's abstraction, and
before yours it shows what yours would gain by it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeGuard

from pytest_failgain.spans import action_spans
from pytest_failgain.trajectory import Action, Step, Tool, ToolCall, Trajectory, UserTurn

# What a remedy makes of a failed step: leave it, as where something is said about it elsewhere;
# change it, and nothing but that; put something else, or nothing, in its place.
FAILED_STEP = ("left", "changed", "taken away")


@dataclass(frozen=True, slots=True)
class Remedy:
    """A named change of the trajectory, made before a harness renders it.

    `by_construction` says what follows for the gain from the remedy's definition alone, for
    reports: such a figure is no finding. `because` is the reason, which holds where no gain is
    measured as well. `acts_where` completes "it changes something only where …". `failed_step` is
    one of `FAILED_STEP`, and decides which remedies it can be joined with.
    """

    name: str
    transform: Callable[[Trajectory], Trajectory]
    by_construction: str | None = None
    because: str = ""
    acts_where: str = "the harness writes what it changes"
    failed_step: str = "left"


def _is_failure(step: Step | UserTurn) -> TypeGuard[Step]:
    return isinstance(step, Step) and step.failed


def _with_steps(trajectory: Trajectory, steps: Iterable[Step | UserTurn]) -> Trajectory:
    return replace(trajectory, steps=tuple(steps))


def _amend_failures(trajectory: Trajectory, amend: Callable[[Step], Step]) -> Trajectory:
    return _with_steps(
        trajectory, (amend(step) if _is_failure(step) else step for step in trajectory.steps)
    )


def _with_line(step: Step, line: str) -> Step:
    observation = f"{step.observation}\n{line}" if step.observation else line
    return replace(step, observation=observation)


INSTRUCTION = (
    "Some of your calls so far have failed. A call that failed must not be made again as it was; "
    "correct it first."
)


def instruct(trajectory: Trajectory) -> Trajectory:
    """Once a step failed, the system prompt ends with the instruction not to repeat it."""
    first = next(filter(_is_failure, trajectory.steps), None)
    if first is None:
        return trajectory
    instruction = first.records.get("instructed", INSTRUCTION)
    system = f"{trajectory.system}\n{instruction}" if trajectory.system else instruction
    return replace(trajectory, system=system)


NUDGE = "That did not get anywhere. Put it aside and try another way towards the goal."


def redirect(trajectory: Trajectory) -> Trajectory:
    """Right after a failed step, the user asks for something else; no longer once more follows."""
    last = trajectory.steps[-1] if trajectory.steps else None
    if last is None or not _is_failure(last):
        return trajectory
    return trajectory.then(UserTurn(last.records.get("redirected", NUDGE)))


def collapse_failures(trajectory: Trajectory) -> Trajectory:
    """Of failures with one action and one observation the last stays, with their number below."""
    times = Counter(map(_what_failed, filter(_is_failure, trajectory.steps)))
    still_to_come = times.copy()
    steps: list[Step | UserTurn] = []
    for step in trajectory.steps:
        if not _is_failure(step):
            steps.append(step)
            continue
        failure = _what_failed(step)
        still_to_come[failure] -= 1
        if still_to_come[failure] == 0:
            steps.append(_counted(step, times[failure]))
    return _with_steps(trajectory, steps)


def _what_failed(step: Step) -> tuple[Action, str | None]:
    return step.action, step.observation


def _counted(step: Step, times: int) -> Step:
    if times == 1:
        return step
    return _with_line(step, f"[Tried {times} times; it failed in the same way each time.]")


LEFT_OUT = "[What was tried here is left out.]"


def strip_arguments(trajectory: Trajectory) -> Trajectory:
    """Failed calls keep their name and lose their arguments; a text without a call is left out.

    What is said beside a call stays, and so does what the error quotes of it.
    """
    return _amend_failures(trajectory, _without_arguments)


def _without_arguments(step: Step) -> Step:
    action = _stripped(step.action)
    if not step.reply or action.calls:
        return replace(step, action=action)
    end = step.reply.rindex(step.action.text) + len(step.action.text)
    return replace(step, action=action, reply=f"{step.lead}{action.text}{step.reply[end:]}")


def _stripped(action: Action) -> Action:
    calls = tuple(ToolCall(call.name, "{}") for call in action.calls)
    spans = action_spans(action.text)
    if not spans.recognised:
        # Beside structured calls it is what the agent said about them, else all that it did.
        return Action(action.text if calls else LEFT_OUT, calls)
    text = action.text
    for start, end in reversed(spans.arguments):
        if text[start:end].strip():
            text = f"{text[:start]}...{text[end:]}"
    return Action(text, calls)


def advise(trajectory: Trajectory) -> Trajectory:
    """Below the error stands what would be admissible, where that is known.

    It is the advice that comes with the step, else the schema of the tool that was called, else
    the names of the tools that are offered.
    """

    def advised(step: Step) -> Step:
        advice = step.records.get("advised", _advice(step, trajectory.tools))
        return _with_line(step, advice) if advice else step

    return _amend_failures(trajectory, advised)


def _advice(step: Step, tools: tuple[Tool, ...]) -> str | None:
    for tool in tools:
        if tool.name == step.tool:
            schema = json.dumps(dict(tool.parameters), ensure_ascii=False, separators=(",", ":"))
            return f"Arguments of {tool.name}, as JSON Schema: {schema}"
    return f"Tools on offer: {', '.join(tool.name for tool in tools)}" if tools else None


def label_outcomes(trajectory: Trajectory) -> Trajectory:
    """Every observation begins with a label that tells how the step went, of good steps too."""
    return _with_steps(
        trajectory,
        (_labelled(step) if isinstance(step, Step) else step for step in trajectory.steps),
    )


def _labelled(step: Step) -> Step:
    if step.observation is None:
        return step
    label = step.records.get("labelled", "[failed]" if step.failed else "[ok]")
    return replace(step, observation=" ".join(filter(None, (label, step.observation))))


GLOSSES = {
    "unknown_tool": "no tool of that name exists",
    "missing_argument": "it lacked an argument that is required",
    "unexpected_argument": "it had an argument that the tool does not take",
    "type_error": "an argument was of the wrong type",
    "format_error": "an argument was not in the format that the tool takes",
    "permission_error": "its target may not be changed",
    "contact_not_found": "there is no such contact",
    "file_not_found": "there is no such file",
    "team_not_found": "there is no such team",
    "event_not_found": "there is no such event",
    "attendee_not_found": "there is no such attendee",
    "folder_not_found": "there is no such folder",
    "recipient_not_found": "there is no such recipient",
    "unsupported_conversion": "the tool does not do that conversion",
    "parse_error": "it was not one readable call",
    "arity_error": "it had too many arguments",
    "state_error": "it does not fit the present state",
    "test_failure": "a test did not pass",
    "runtime_error": "it stopped with an exception",
    "syntax_error": "it is not valid code",
    "timeout": "it ran out of time",
}


# What failed was a program then, and no call of a tool.
_PROGRAM_FAMILIES = {"test_failure", "runtime_error", "syntax_error", "timeout"}


def _describe(attempt: int, step: Step) -> str:
    gloss = GLOSSES.get(step.error_family or "", "it did not work")
    if step.tool is None and step.error_family in _PROGRAM_FAMILIES:
        return f"[Attempt {attempt}: the program failed because {gloss}. Write a different one.]"
    tool = f"the call to {step.tool}" if step.tool else "the call"
    return f"[Attempt {attempt}: {tool} failed because {gloss}. Make a different call.]"


def _describe_minimally(attempt: int, step: Step) -> str:
    return f"[Attempt {attempt} failed.]"


def _replace_failures(
    trajectory: Trajectory, name: str, write: Callable[[int, Step], str]
) -> Trajectory:
    steps: list[Step | UserTurn] = []
    attempt = 0
    for step in trajectory.steps:
        if _is_failure(step):
            attempt += 1
            text = step.records[name] if name in step.records else write(attempt, step)
            steps.append(UserTurn(text))
        else:
            steps.append(step)
    return _with_steps(trajectory, steps)


def describe_failures(trajectory: Trajectory) -> Trajectory:
    """Failed steps become a description from tool name and error family, without arguments."""
    return _replace_failures(trajectory, "described", _describe)


def describe_failures_minimally(trajectory: Trajectory) -> Trajectory:
    """Failed steps become a bare notice that an attempt failed."""
    return _replace_failures(trajectory, "described-minimal", _describe_minimally)


def drop_failures(trajectory: Trajectory) -> Trajectory:
    """Failed steps leave no trace: the retry starts from a clean context."""
    return _with_steps(trajectory, (step for step in trajectory.steps if not _is_failure(step)))


INSTRUCTED = Remedy(
    "instructed", instruct, acts_where="the harness writes the trajectory's system prompt"
)
REDIRECTED = Remedy("redirected", redirect, acts_where="the harness writes UserTurns")
COLLAPSED = Remedy(
    "collapsed",
    collapse_failures,
    acts_where="one and the same failure stands more than once",
    failed_step="changed",
)
STRIPPED = Remedy(
    "stripped",
    strip_arguments,
    acts_where="the harness writes the actions of failed steps, and these have arguments",
    failed_step="changed",
)
ADVISED = Remedy(
    "advised",
    advise,
    acts_where="the harness writes observations, and the failed step's records or the "
    "trajectory's tools tell what to advise",
    failed_step="changed",
)
LABELLED = Remedy("labelled", label_outcomes, acts_where="the harness writes observations")
DESCRIBED = Remedy(
    "described",
    describe_failures,
    acts_where="the harness writes UserTurns",
    failed_step="taken away",
)
DESCRIBED_MINIMAL = Remedy(
    "described-minimal",
    describe_failures_minimally,
    acts_where="the harness writes UserTurns",
    failed_step="taken away",
)
DROPPED = Remedy(
    "dropped",
    drop_failures,
    by_construction="gain 0",
    because="the retry's context is the one before the attempt",
    acts_where="the harness writes failed steps",
    failed_step="taken away",
)

# The order is the order of application. What is said because of a failure looks at it before a
# later remedy describes or drops it. Failures are counted before their arguments are stripped,
# which would make different calls alike, and before advice could make equal ones different.
REMEDIES = {
    remedy.name: remedy
    for remedy in (
        INSTRUCTED,
        REDIRECTED,
        COLLAPSED,
        STRIPPED,
        ADVISED,
        LABELLED,
        DESCRIBED,
        DESCRIBED_MINIMAL,
        DROPPED,
    )
}

_PLACES = {name: place for place, name in enumerate(REMEDIES)}


def in_order(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """`remedies` in the order of their application.

    Those that are not built-in come behind the built-in ones, but before any that takes the failed
    step away, as all that looks at it has to.
    """

    def place(remedy: Remedy) -> tuple[bool, int]:
        built_in = REMEDIES.get(remedy.name) == remedy
        return remedy.failed_step == "taken away", _PLACES[remedy.name] if built_in else len(
            REMEDIES
        )

    return tuple(sorted(remedies, key=place))


TAKING_AWAY = {one.name for one in REMEDIES.values() if one.failed_step == "taken away"}
CHANGING = {one.name for one in REMEDIES.values() if one.failed_step == "changed"}
