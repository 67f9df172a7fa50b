"""Harnesses turn a trajectory into a prompt; remedies change what a harness records of a failure.

A remedy is a function from trajectory to trajectory that comes before the harness, so it can be put
before *any* harness: `described` before the reference harness is the paper's abstraction, and
before yours it shows what yours would gain by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pytest_failgain.errors import UsageError
from pytest_failgain.prompt import Message
from pytest_failgain.trajectory import Step, Trajectory, UserTurn


class Harness(Protocol):
    """Any callable from a trajectory to chat messages or to text.

    Its `name` attribute, if it has one, stands in reports; else the name it was defined with.
    """

    def __call__(self, trajectory: Trajectory, /) -> Sequence[Message] | str: ...


@dataclass(frozen=True, slots=True)
class Remedy:
    """A named change of the trajectory, made before a harness renders it.

    `by_construction` says what follows from the remedy's definition alone, for reports: such a
    figure is no finding.
    """

    name: str
    transform: Callable[[Trajectory], Trajectory]
    by_construction: str | None = None


@dataclass(frozen=True, slots=True)
class RemediedHarness:
    """`base` with `remedies` put before it, in their order."""

    name: str
    base: Harness
    remedies: tuple[Remedy, ...] = ()

    def __call__(self, trajectory: Trajectory, /) -> Sequence[Message] | str:
        for remedy in self.remedies:
            trajectory = remedy.transform(trajectory)
        return self.base(trajectory)

    @property
    def by_construction(self) -> str | None:
        """What the remedy makes certain before anything is measured, or None.

        Beside a second remedy nothing is certain: each changes what the other's note rests on.
        """
        return self.remedies[0].by_construction if len(self.remedies) == 1 else None


def render_verbatim(trajectory: Trajectory) -> list[Message]:
    """Chat messages in which every step stands as it happened.

    Text actions are answered by a user turn "Observation: …", the layout of the published
    experiment; structured calls by tool messages, the layout of chat APIs.
    """
    messages: list[Message] = []
    if trajectory.system:
        messages.append({"role": "system", "content": trajectory.system})
    messages.append({"role": "user", "content": trajectory.goal})
    for index, step in enumerate(trajectory.steps):
        if isinstance(step, UserTurn):
            messages.append({"role": "user", "content": step.text})
        elif step.action.calls:
            messages.extend(_native_turns(index, step))
        else:
            messages.append({"role": "assistant", "content": step.action.text})
            if step.observation is not None:
                messages.append({"role": "user", "content": f"Observation: {step.observation}"})
    return messages


def _native_turns(index: int, step: Step) -> list[Message]:
    # Nine alphanumerics: the one form of id that every known chat template accepts.
    ids = [f"call{index:03d}{number:02d}" for number in range(len(step.action.calls))]
    calls = [
        {
            "id": identity,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for identity, call in zip(ids, step.action.calls, strict=True)
    ]
    turns: list[Message] = [
        {"role": "assistant", "content": step.action.text, "tool_calls": calls},
    ]
    if step.observation is not None:
        turns.extend(
            {
                "role": "tool",
                "tool_call_id": identity,
                "name": call.name,
                "content": step.observation,
            }
            for identity, call in zip(ids, step.action.calls, strict=True)
        )
    return turns


VERBATIM = RemediedHarness("verbatim", render_verbatim)

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
        if isinstance(step, Step) and step.failed:
            attempt += 1
            text = step.records[name] if name in step.records else write(attempt, step)
            steps.append(UserTurn(text))
        else:
            steps.append(step)
    return replace(trajectory, steps=tuple(steps))


def describe_failures(trajectory: Trajectory) -> Trajectory:
    """Failed steps become a description from tool name and error family, without arguments."""
    return _replace_failures(trajectory, "described", _describe)


def describe_failures_minimally(trajectory: Trajectory) -> Trajectory:
    """Failed steps become a bare notice that an attempt failed."""
    return _replace_failures(trajectory, "described-minimal", _describe_minimally)


def drop_failures(trajectory: Trajectory) -> Trajectory:
    """Failed steps leave no trace: the retry starts from a clean context."""
    kept = (step for step in trajectory.steps if isinstance(step, UserTurn) or not step.failed)
    return replace(trajectory, steps=tuple(kept))


INSTRUCTION = (
    "Some of your calls so far have failed. A call that failed must not be made again as it was; "
    "correct it first."
)


def instruct(trajectory: Trajectory) -> Trajectory:
    """Once a step failed, the system prompt ends with the instruction not to repeat it."""
    failures = [step for step in trajectory.steps if isinstance(step, Step) and step.failed]
    if not failures:
        return trajectory
    instruction = failures[0].records.get("instructed", INSTRUCTION)
    system = f"{trajectory.system}\n{instruction}" if trajectory.system else instruction
    return replace(trajectory, system=system)


DESCRIBED = Remedy("described", describe_failures)
DESCRIBED_MINIMAL = Remedy("described-minimal", describe_failures_minimally)
INSTRUCTED = Remedy("instructed", instruct)
DROPPED = Remedy(
    "dropped",
    drop_failures,
    by_construction="gain 0: the retry's context is the one before the attempt",
)

# The order is the order of application: an instruction is given because of failures that a later
# remedy may describe or drop, so it has to look at them first.
REMEDIES = {remedy.name: remedy for remedy in (INSTRUCTED, DESCRIBED, DESCRIBED_MINIMAL, DROPPED)}

_REWRITING = {DESCRIBED.name, DESCRIBED_MINIMAL.name, DROPPED.name}


def remedied(name: str, harness: Harness = VERBATIM) -> RemediedHarness:
    """`harness` with the remedies that `name` joins by "+", as in "verbatim+instructed".

    "verbatim" stands for the harness as it is. Remedies are applied in one fixed order, whatever
    their order in the name.

    Raises:
        UsageError: when a part of the name is no remedy, or stands twice, or when two of them
            would each take the failed step away.
    """
    parts = [part.strip() for part in name.split("+")]
    for part in parts:
        if part != "verbatim" and part not in REMEDIES:
            raise UsageError(
                f"there is no remedy {part!r} (in {name!r}); there are: verbatim, "
                f"{', '.join(REMEDIES)}; join several with '+'"
            )
        if parts.count(part) > 1:
            raise UsageError(f"the remedy {part!r} stands twice in {name!r}; name it once")
    rewriting = [part for part in parts if part in _REWRITING]
    if len(rewriting) > 1:
        raise UsageError(
            f"{' and '.join(rewriting)} in {name!r} can't be joined: each takes the failed step "
            "away, so only the first would do anything; choose one"
        )
    chosen = tuple(remedy for remedy in REMEDIES.values() if remedy.name in parts)
    if harness is not VERBATIM:
        parts = [harness_name(harness), *(part for part in parts if part != "verbatim")]
    return RemediedHarness("+".join(parts), harness, chosen)


def with_remedy(harness: Harness, remedy: Remedy) -> RemediedHarness:
    """`harness` with one remedy more, at its place in the order; itself if it has that one."""
    if not isinstance(harness, RemediedHarness):
        return RemediedHarness(f"{harness_name(harness)}+{remedy.name}", harness, (remedy,))
    if remedy in harness.remedies:
        return harness
    order = list(REMEDIES.values())
    remedies = sorted(
        (*harness.remedies, remedy), key=lambda one: order.index(one) if one in order else -1
    )
    return RemediedHarness(f"{harness.name}+{remedy.name}", harness.base, tuple(remedies))


def harness_name(harness: Harness) -> str:
    """The harness's `name` attribute, else the name it was defined with."""
    given = getattr(harness, "name", None)
    if isinstance(given, str) and given:
        return given
    defined: str = getattr(harness, "__qualname__", type(harness).__qualname__)
    return defined.replace("<locals>.", "")
