"""A scorer and a decoder without a model, and what is measured with them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from pytest_failgain.conditions import DEFAULT_CONDITIONS, Condition
from pytest_failgain.harnesses import VERBATIM, Harness
from pytest_failgain.measurement import Measurement, measure
from pytest_failgain.prompt import Prompt
from pytest_failgain.replies import CALL_LINES
from pytest_failgain.rollout.results import NotStarted, Rollouts, Setting
from pytest_failgain.rollout.turns import Rollout, Turn
from pytest_failgain.rows import Row
from pytest_failgain.scoring.protocol import (
    ModelIdentity,
    Pair,
    Refusal,
    Reply,
    ReplyRequest,
    Score,
)
from pytest_failgain.trajectory import Action, FailureCase, Observations, Step, Trajectory

IDENTITY = ModelIdentity("fake", "a hash", None, "fake", "float32", "cpu")

ERROR = "ValueError: no"
NEUTRAL = "Noted."
SUCCESS = "Done."

Logprobs = Callable[[Prompt, Action], Sequence[float]]


def prompt_text(prompt: Prompt) -> str:
    """All that the model would read."""
    if prompt.text is not None:
        return prompt.text + prompt.lead
    offered = "".join(f"{tool}\n" for tool in prompt.tools)
    messages = "\n".join(str(dict(message)) for message in prompt.messages or ())
    return f"{offered}{messages}{prompt.lead}"


def written(action: Action) -> str:
    """The action as text, structured calls in the way of most chat templates."""
    calls = (
        f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'
        for call in action.calls
    )
    return "".join([action.text, *calls])


def spans_of_tokens(text: str) -> tuple[tuple[int, int], ...]:
    """A token is a word, a run of white space, or one character of anything else."""
    return tuple(match.span() for match in re.finditer(r"\w+|\s+|.", text, re.DOTALL))


def hashed(prompt: Prompt, action: Action) -> list[float]:
    """Numbers between -8 and 0 that depend on all that stands before the token, and on it."""
    text = written(action)
    ends = [end for _, end in spans_of_tokens(text)]
    # Lengths of both parts, so that the boundary between prompt and action counts too.
    heads = [f"{len(prompt_text(prompt))}\0{prompt_text(prompt)}{text[:end]}" for end in ends]
    digests = [blake2b(head.encode(), digest_size=4).digest() for head in heads]
    return [-8 * int.from_bytes(digest, "big") / 2**32 for digest in digests]


def situation(prompt: Prompt) -> str:
    """The condition that `prompt` is of, where harness and case are this file's."""
    last = prompt_text(prompt).splitlines()[-1]
    answers = {ERROR: "failed", NEUTRAL: "neutral", SUCCESS: "succeeded", "[Attempt": "described"}
    return next((name for answer, name in answers.items() if answer in last), "before")


def by_situation(logprobs: Mapping[str, Sequence[float]], text: str) -> Logprobs:
    """The given log-probabilities of the action `text` by condition; -1 a token for all else."""

    def answer(prompt: Prompt, action: Action) -> Sequence[float]:
        given = logprobs.get(situation(prompt)) if action.text == text else None
        return [-1.0] * len(spans_of_tokens(action.text)) if given is None else given

    return answer


@dataclass
class FakeScorer:
    """Answers with `logprobs`, except where `refusal` gives a reason not to.

    A token counts as the model's first choice when its probability is over a half. `batches` notes
    how many pairs each call of `score` had.
    """

    logprobs: Logprobs = hashed
    refusal: Callable[[Prompt, Action], str | None] = lambda prompt, action: None
    adaptations: Callable[[Prompt], tuple[str, ...]] = lambda prompt: ()
    write: Callable[[Prompt, Action], str] = lambda prompt, action: written(action)
    identity: ModelIdentity = IDENTITY
    batches: list[int] = field(default_factory=list)

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        self.batches.append(len(pairs))
        return [self._score(pair.prompt, pair.action) for pair in pairs]

    def count_tokens(self, text: str) -> int:
        return len(spans_of_tokens(text))

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        return len(spans_of_tokens(prompt_text(prompt)))

    def _score(self, prompt: Prompt, action: Action) -> Score | Refusal:
        reason = self.refusal(prompt, action)
        if reason is not None:
            return Refusal(reason)
        text = self.write(prompt, action)
        logprobs = tuple(self.logprobs(prompt, Action(text)))
        return Score(
            text=text,
            token_logprobs=logprobs,
            argmax=tuple(logprob > math.log(0.5) for logprob in logprobs),
            token_spans=spans_of_tokens(text),
            context_tokens=len(spans_of_tokens(prompt_text(prompt))),
            adaptations=(*prompt.adaptations, *self.adaptations(prompt)),
        )


def failure_case(
    case_id: str = "a",
    action: Action | str = "send(to='Ann')",
    *,
    task_id: str | None = None,
    correct: str | None = "send(to='ann@corp.example')",
    distractors: Sequence[str] = (),
    success: str | None = SUCCESS,
    environment: str = "",
) -> FailureCase:
    """A case whose answers are those that `situation` knows; each its own task unless given."""
    return FailureCase(
        case_id=case_id,
        task_id=case_id if task_id is None else task_id,
        trajectory=Trajectory(system="You call tools.", goal=f"Do {case_id}."),
        failed=Step(Action.of(action), ERROR, failed=True),
        correct=None if correct is None else Action(correct),
        distractors=tuple(map(Action, distractors)),
        observations=Observations(neutral=NEUTRAL, success=success),
        environment=environment,
    )


def measured_by(
    logprobs: Mapping[str, Sequence[float]],
    action: str = "send(to='Ann')",
    *,
    cases: int = 1,
    harness: Harness = VERBATIM,
    conditions: Sequence[Condition] = DEFAULT_CONDITIONS,
) -> Measurement:
    """A measurement in which the failed action has the given log-probabilities by condition."""
    return measure(
        FakeScorer(by_situation(logprobs, action)),
        harness,
        [failure_case(f"case{i}", action) for i in range(cases)],
        conditions=conditions,
    )


def measured(
    gains: Mapping[str, float],
    *,
    harness: str = "verbatim",
    tasks: Mapping[str, str] | None = None,
    repeat: Mapping[str, float] | None = None,
    greedy: Sequence[str] = (),
    model: ModelIdentity = IDENTITY,
    by_construction: str | None = None,
) -> Measurement:
    """A measurement with these gains, in nats per token, by case id.

    The gain is spread evenly over the tokens; three quarters of it are surface. `repeat` gives the
    repeat probability after the record, without which there is no other candidate, and `greedy`
    the cases that greedy decoding repeats after it.
    """
    cases = [
        failure_case(
            case_id,
            f"send(to='{case_id}')",
            task_id=(tasks or {}).get(case_id),
            correct="send(to='Ann')" if repeat and case_id in repeat else None,
        )
        for case_id in gains
    ]
    rows: list[Row] = []
    for case in cases:
        gain = gains[case.case_id]
        levels = {"before": -4.0, "failed": -4.0 - gain, "neutral": -4.0 - 0.75 * gain}
        for condition, level in levels.items():
            repeats = condition == "failed" and case.case_id in greedy
            failed = _row(case, condition, "failed", level, repeats)
            rows.append(failed)
            if case.correct is not None:
                share = (repeat or {})[case.case_id] if condition == "failed" else 0.5
                # The correct action has what the failed one leaves of one.
                logprob = failed.logprob + math.log((1 - share) / share)
                rows.append(_row(case, condition, "correct", logprob, False, in_all=True))
    return Measurement(
        harness=harness,
        environment="own cases",
        model=model,
        cases=tuple(cases),
        rows=tuple(rows),
        by_construction=by_construction,
    )


def _row(
    case: FailureCase,
    condition: str,
    candidate: str,
    logprob: float,
    greedy: bool,
    *,
    in_all: bool = False,
) -> Row:
    """A row with `logprob` nats a token, or in all."""
    text = str(case.candidates()[candidate])
    spans = spans_of_tokens(text)
    each = logprob / len(spans) if in_all else logprob
    return Row(
        case_id=case.case_id,
        condition=condition,
        candidate=candidate,
        logprob=logprob if in_all else logprob * len(spans),
        n_tokens=len(spans),
        context_tokens={"before": 10, "failed": 25, "neutral": 22}[condition],
        argmax_matches=len(spans) if greedy else len(spans) - 1,
        text=text,
        token_logprobs=(each,) * len(spans),
        token_spans=spans,
    )


@dataclass
class ScriptedDecoder:
    """Writes what `script` answers to a request: a text, a whole reply, or a refusal.

    `batches` notes the requests of each call of `decode`.
    """

    script: Callable[[ReplyRequest], str | Reply | Refusal]
    identity: ModelIdentity = IDENTITY
    batches: list[list[ReplyRequest]] = field(default_factory=list)

    @property
    def requests(self) -> list[ReplyRequest]:
        """All that was asked for, in order."""
        return [request for batch in self.batches for request in batch]

    def decode(self, requests: Sequence[ReplyRequest]) -> list[Reply | Refusal]:
        self.batches.append([*requests])
        return [self._reply(request) for request in requests]

    def score(self, pairs: Sequence[Pair]) -> list[Score | Refusal]:
        return FakeScorer().score(pairs)

    def _reply(self, request: ReplyRequest) -> Reply | Refusal:
        answer = self.script(request)
        if not isinstance(answer, str):
            return answer
        n_tokens = len(spans_of_tokens(answer))
        prompt_tokens = len(spans_of_tokens(prompt_text(request.prompt)))
        return Reply(answer, "line", n_tokens, n_tokens, prompt_tokens)


def turn(
    action: str = "send(to='Ann')",
    *,
    failed: bool = True,
    writing: str = "valid",
    ended: str = "line",
    n_tokens: int = 5,
    n_decoded: int | None = None,
    prompt_tokens: int = 100,
    reply: str | None = None,
) -> Turn:
    """A turn in which the model wrote the call `action`, and nothing but that unless given."""
    return Turn(
        reply=action if reply is None else reply,
        action=action,
        meaning=CALL_LINES.canonical(action),
        failed=failed,
        error_family="contact_not_found" if failed else None,
        writing=writing,
        ended=ended,
        n_tokens=n_tokens,
        n_decoded=n_tokens if n_decoded is None else n_decoded,
        prompt_tokens=prompt_tokens,
        blocked=0,
    )


def rolled(
    *turns: Turn | str,
    task: str = "a",
    place: int = 0,
    sample: int = 0,
    outcome: str = "limit",
    given: str | None = None,
) -> Rollout:
    """A rollout of these turns; a text is a call that fails."""
    return Rollout(
        task_id=task,
        place=place,
        sample=sample,
        turns=tuple(turn(one) if isinstance(one, str) else one for one in turns),
        outcome=outcome,
        given=given,
        given_meaning=None if given is None else CALL_LINES.canonical(given),
    )


def solved_by(action: str = "send(to='ann@corp.example')", *, task: str = "a") -> Rollout:
    """A rollout whose only call solves the task."""
    return rolled(turn(action, failed=False), task=task, outcome="solved")


SETTING = Setting("tool_calls", "python calls", IDENTITY, (), 6, False, 8, 0.0, 1, 0)


def rolled_out(
    *rollouts: Rollout,
    harness: str = "verbatim",
    setting: Setting = SETTING,
    not_started: Sequence[NotStarted] = (),
    adaptations: Sequence[tuple[str, int]] = (),
    by_construction: str | None = None,
) -> Rollouts:
    """These rollouts of a harness, each at the place that it has here, one sample a task.

    The tasks are theirs and those that were not started, unless `setting` names some.
    """
    tasks = (*(one.task_id for one in rollouts), *(one.task_id for one in not_started))
    return Rollouts(
        harness=harness,
        setting=setting if setting.tasks else replace(setting, tasks=tasks),
        rollouts=tuple(
            one if setting.tasks else replace(one, place=place)
            for place, one in enumerate(rollouts)
        ),
        not_started=tuple(not_started),
        adaptations=tuple(adaptations),
        by_construction=by_construction,
    )
