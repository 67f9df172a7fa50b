"""What came of a failing call: the kinds of record that agents leave, and of there being none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_failgain.capture.comparison import Comparison, shows
from pytest_failgain.capture.failing_call import FailingCall
from pytest_failgain.capture.pair import CapturedPair, tells_failure

OutcomeKind = Literal[
    "native",
    "text",
    "merged into an earlier message",
    "call not echoed",
    "error hidden",
    "tools changed",
    "call did not fail",
    "exception escaped",
    "no second request",
    "no request",
    "hung",
]

OUTCOME_KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)

_WITHOUT_RECORD: tuple[OutcomeKind, ...] = (
    "call did not fail",
    "exception escaped",
    "no second request",
    "no request",
    "hung",
)

_ADVICE: dict[OutcomeKind, str] = {
    "call did not fail": (
        "let the failing call be one that the agent's own tool rejects, or name its error with "
        "FailingCall(error=…)"
    ),
    "exception escaped": (
        "there is no record to measure: the agent ends where its tool fails; let it handle the "
        "tool's errors, or raise what the framework hands to the model"
    ),
    "no second request": (
        "there is no record to measure: see whether the agent may take more than one step, and "
        "whether it offers the tool and runs it"
    ),
    "no request": (
        "the client was not redirected: give it the base_url that run_agent is called with, and "
        "build it inside run_agent, since one that is built at import has its address already"
    ),
    "hung": "raise the timeout, or see what the agent waits for",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a failing call: its main kind, what else holds of it, and why, in words.

    The kind says in which form the call and its error are recorded, or why there is no record.
    `advice` is what to do where there is none.
    """

    kind: OutcomeKind
    reason: str
    flags: tuple[OutcomeKind, ...] = ()

    @property
    def has_record(self) -> bool:
        """Whether there is a record to measure."""
        return self.kind not in _WITHOUT_RECORD

    @property
    def advice(self) -> str:
        """What to do where there is no record; empty where there is one."""
        return _ADVICE.get(self.kind, "")

    @property
    def kinds(self) -> tuple[OutcomeKind, ...]:
        """All kinds that hold, the main one first."""
        return (self.kind, *self.flags)

    def __str__(self) -> str:
        return f"{' + '.join(self.kinds)}: {self.reason}"


def outcome_of(pair: CapturedPair, failing_call: FailingCall) -> Outcome:
    """What kind of record the later request of `pair` has of the call.

    Several kinds may hold. The main one is the form of the record: the call as a structured one, as
    text, or not at all; in the last case it matters more that the rest was merged. That the call
    did not fail goes before all others.
    """
    comparison, echo = pair.comparison, pair.echo
    error, shown = failing_call.error, None
    if error and error.strip():
        shown = shows(comparison.text, error)
    observation = pair.case.failed.observation or ""
    if not shown and _tells_of_none(comparison, observation) and (observation or shown is None):
        return Outcome("call did not fail", _no_failure(observation, error))
    merged = _merged(comparison)
    kinds: list[OutcomeKind] = []
    if echo.form == "native":
        kinds.append("native")
    elif echo.form == "text":
        kinds.append("text")
    if merged:
        kinds.append("merged into an earlier message")
    if not echo.form:
        kinds.append("call not echoed")
    if shown is False:
        kinds.append("error hidden")
    if comparison.tools_differ:
        kinds.append("tools changed")
    reasons = [*_form(pair), *_error(shown, pair, error), *_tools(comparison)]
    return Outcome(kinds[0], "; ".join(reasons), tuple(kinds[1:]))


def _tells_of_none(comparison: Comparison, observation: str) -> bool:
    """Whether something came back for the call, and no heuristic takes it for a failure."""
    told = [one.text for one in comparison.added if one.role != "assistant"]
    return bool(comparison.text.strip()) and not any(map(tells_failure, (observation, *told)))


def _merged(comparison: Comparison) -> bool:
    """Whether a message that was there before has got a part of the record."""
    inside = [one for one in comparison.added if one.in_earlier]
    outside = [one for one in comparison.added if not one.in_earlier and one.role != "assistant"]
    return any(tells_failure(one.text) for one in inside) or bool(inside and not outside)


def _no_failure(observation: str, error: str | None) -> str:
    lacks = f"does not have the error {_brief(error)}" if error else "reads like no error"
    return f"what came back is {_brief(observation)}, which {lacks}: the call did not fail"


def _form(pair: CapturedPair) -> Iterator[str]:
    comparison, echo = pair.comparison, pair.echo
    if echo.form == "native":
        answer = "with its result" if echo.result is not None else "without a result"
        yield f"the call stands as an assistant's tool call, {answer}"
    elif echo.form == "text":
        yield "the call stands in the assistant's text"
    if _merged(comparison):
        roles = dict.fromkeys(one.role for one in comparison.added if one.in_earlier)
        yield f"the record stands in an earlier message ({', '.join(roles)})"
    elif comparison.rewritten:
        roles = dict.fromkeys(new.role for _, new in comparison.rewritten)
        yield f"an earlier message was rewritten ({', '.join(roles)})"
    if not echo.form:
        yield "no assistant's message makes the call"
        others = dict.fromkeys(
            one.role for one in comparison.added if not one.in_earlier and one.text
        )
        if others:
            yield f"the record stands in a message of its own ({', '.join(others)})"
        elif not comparison.text.strip():
            yield "nothing of it is recorded"
    if comparison.dropped:
        yield f"{len(comparison.dropped)} of the earlier messages left out"


def _error(shown: bool | None, pair: CapturedPair, error: str | None) -> Iterator[str]:
    if shown is None:
        yield "whether the tool's own error is shown is unknown without FailingCall(error=…)"
    elif not shown:
        instead = pair.case.failed.observation or ""
        yield f"the error {_brief(error)} is not shown, but {_brief(instead)}"


def _tools(comparison: Comparison) -> Iterator[str]:
    changes = {
        "no longer offered": comparison.tools_dropped,
        "newly offered": comparison.tools_added,
        "offered in another form": comparison.tools_changed,
    }
    for change, names in changes.items():
        if names:
            yield f"{', '.join(names)} {change}"


def _brief(text: str | None, limit: int = 80) -> str:
    line = " ".join((text or "").split())
    return repr(line if len(line) <= limit else f"{line[: limit - 1]}…")
