"""What is measured of one rollout, by name. METHOD: the agent study of arXiv 2608.23651.

Repeats are counted among *failed* actions, against earlier failed ones of the same rollout, a given
failure included, as shares of the failed actions. Without a failed action they are not defined; a
reply that holds no action is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from pytest_failgain.errors import UsageError
from pytest_failgain.nearest import did_you_mean
from pytest_failgain.rollout.turns import Rollout, Turn

# A rollout that used up its steps, and in them did so many things once more, is stuck.
_STUCK_REPEATS = 2


@dataclass(frozen=True, slots=True)
class RolloutMeasure:
    """One figure of a rollout: `unit` is "share", "steps" or "tokens"; `of` is NaN if undefined."""

    name: str
    unit: str
    of: Callable[[Rollout], float]


def _success(rollout: Rollout) -> float:
    return float(rollout.outcome == "solved")


def _exact_repeats(rollout: Rollout) -> float:
    return _among_failures(rollout, lambda turn, earlier: turn.action in _texts(earlier))


def _canonical_repeats(rollout: Rollout) -> float:
    return _among_failures(rollout, lambda turn, earlier: turn.meaning in _meanings(earlier))


def _consecutive_repeats(rollout: Rollout) -> float:
    return _among_failures(rollout, lambda turn, earlier: turn.meaning in _meanings(earlier[-1:]))


def _extended_repeats(rollout: Rollout) -> float:
    """The whole of a failed action and more, such as a call with words behind it."""
    return _among_failures(
        rollout,
        lambda turn, earlier: (
            turn.meaning not in _meanings(earlier)
            and any(text and text in turn.action for text in _texts(earlier))
        ),
    )


def _next_action(rollout: Rollout) -> float:
    if rollout.given is None or not rollout.turns:
        return math.nan
    return float(rollout.turns[0].meaning == rollout.given_meaning)


def _stuck(rollout: Rollout) -> float:
    """Loops of actions that succeed count, too: the agent gets no further either way."""
    given = [] if rollout.given is None else [rollout.given_meaning]
    meanings = [*given, *(turn.meaning for turn in rollout.turns)]
    return _is_stuck(rollout, len(meanings) - len(set(meanings)))


def _stuck_on_failures(rollout: Rollout) -> float:
    repeats = _repeats(rollout, lambda turn, earlier: turn.meaning in _meanings(earlier))
    return _is_stuck(rollout, sum(repeats))


def _is_stuck(rollout: Rollout, repeats: int) -> float:
    return float(rollout.outcome == "limit" and repeats >= _STUCK_REPEATS)


def _written(writing: str) -> Callable[[Rollout], float]:
    return lambda rollout: _share([turn.writing == writing for turn in rollout.turns])


def _effective(rollout: Rollout) -> float:
    return _share([not turn.failed for turn in rollout.turns])


def _steps(rollout: Rollout) -> float:
    return float(len(rollout.turns))


def _generated_tokens(rollout: Rollout) -> float:
    """What a search went back from was generated as well."""
    return float(sum(turn.n_decoded for turn in rollout.turns))


def _prompt_tokens(rollout: Rollout) -> float:
    """Whole contexts, summed over the steps, as if nothing were cached."""
    return float(sum(turn.prompt_tokens for turn in rollout.turns))


@dataclass(frozen=True, slots=True)
class _Failed:
    """A failed action, of the model or given."""

    action: str
    meaning: Hashable


def _repeats(rollout: Rollout, is_one: Callable[[Turn, Sequence[_Failed]], bool]) -> list[bool]:
    """For each failed turn whether it `is_one`, judged by the failed actions before it."""
    earlier: list[_Failed] = []
    if rollout.given is not None:
        earlier.append(_Failed(rollout.given, rollout.given_meaning))
    found = []
    for turn in rollout.turns:
        if turn.failed and turn.action:
            found.append(is_one(turn, earlier))
            earlier.append(_Failed(turn.action, turn.meaning))
    return found


def _among_failures(rollout: Rollout, is_one: Callable[[Turn, Sequence[_Failed]], bool]) -> float:
    return _share(_repeats(rollout, is_one))


def _texts(failures: Sequence[_Failed]) -> list[str]:
    return [failure.action for failure in failures]


def _meanings(failures: Sequence[_Failed]) -> list[Hashable]:
    return [failure.meaning for failure in failures]


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else math.nan


ROLLOUT_MEASURES = {
    measure.name: measure
    for measure in (
        RolloutMeasure("success", "share", _success),
        RolloutMeasure("exact_repeat_rate", "share", _exact_repeats),
        RolloutMeasure("canonical_repeat_rate", "share", _canonical_repeats),
        RolloutMeasure("consecutive_repeat_rate", "share", _consecutive_repeats),
        RolloutMeasure("extended_repeat_rate", "share", _extended_repeats),
        RolloutMeasure("next_action_repeat", "share", _next_action),
        RolloutMeasure("stuck", "share", _stuck),
        RolloutMeasure("stuck_on_failures", "share", _stuck_on_failures),
        RolloutMeasure("valid_call_rate", "share", _written("valid")),
        RolloutMeasure("effective_call_rate", "share", _effective),
        RolloutMeasure("truncated_rate", "share", _written("truncated")),
        RolloutMeasure("prose_rate", "share", _written("prose")),
        RolloutMeasure("empty_rate", "share", _written("empty")),
        RolloutMeasure("steps", "steps", _steps),
        RolloutMeasure("generated_tokens", "tokens", _generated_tokens),
        RolloutMeasure("prompt_tokens", "tokens", _prompt_tokens),
    )
}


def rollout_measure_named(name: str) -> RolloutMeasure:
    """The measure called `name`.

    Raises:
        UsageError: when there is none of that name.
    """
    try:
        return ROLLOUT_MEASURES[name]
    except KeyError:
        raise UsageError(
            f"there is no rollout measure {name!r}; there are: {', '.join(ROLLOUT_MEASURES)}"
            f"{did_you_mean(name, ROLLOUT_MEASURES)}"
        ) from None
