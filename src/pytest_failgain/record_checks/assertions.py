"""Assertions on what a harness writes of a failure, without a model.

Each fails with the headline figure, its threshold and n on the first line; then the worst cases;
then what to try. No case fails every one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_failgain.errors import UsageError
from pytest_failgain.harness_checks import render
from pytest_failgain.harnesses import Harness, harness_name
from pytest_failgain.padding import CountTokens
from pytest_failgain.record_checks.parts import Part, parts, surplus
from pytest_failgain.record_checks.shown import Showing, Shown, shown
from pytest_failgain.record_checks.tokens import count_tokens as count_simply
from pytest_failgain.trajectory import FailureCase

_WORST_SHOWN = 5
_PLACES_SHOWN = 3

DESCRIBE = (
    "try: describe the failure instead of showing the call (remedy 'described'), and let "
    "failgain.measure tell what that does to the model."
)
CLEAN = (
    "try: take the call out of the error text before it is recorded: keep the kind of error and "
    "what is allowed, not what was given."
)
SHORTEN = (
    "try: cut what the error text repeats, as the frames of a traceback, or describe the failure "
    "(remedies 'described' and 'described-minimal')."
)


def assert_failed_action_absent(
    harness: Harness, cases: Iterable[FailureCase], *, max_shared_tokens: int | None = None
) -> None:
    """After the failed step, `harness` shows nothing of the failed action that was not there.

    An action is found however it is dressed: as a call or in words, inside the error text, escaped
    for JSON any number of times, quoted as Python or JSON, its arguments in another order, wrapped
    in other white space and punctuation, or in part. What counts is the longest run of its tokens,
    pieces of words of at most six letters or digits. By default half of an action's tokens may be
    shown, between 8 and 16, but not all of them; its tool's name always. So a name or a short value
    passes. `max_shared_tokens` is another limit, for every case.

    Raises:
        AssertionError: when more is shown in a case, or there is no case.
        HarnessError: when the harness fails on a case (see `harness_checks.render`).
        UsageError: when `max_shared_tokens` is no count, or `cases` holds anything but cases.
    """
    __tracebackhide__ = True
    if max_shared_tokens is not None:
        _check_count("max_shared_tokens", max_shared_tokens)
    found = [
        (case, _shown(harness, case, max_shared_tokens)) for case in checked_cases(harness, cases)
    ]
    showing = [(case, one) for case, one in found if one.showings]
    if not showing:
        return
    showing.sort(key=lambda pair: (-pair[1].excess, -pair[1].longest))
    worst = showing[0][1]
    headline = (
        f"the failed action is shown in {len(showing)} of {len(found)} cases, at worst "
        f"{worst.longest} of its {worst.of} tokens in a row, at most {worst.allowed} allowed, "
        f"n = {len(found)}"
    )
    places = [place for _, one in showing for place in one.showings]
    advice = [DESCRIBE] if any(not place.in_error for place in places) else []
    advice += [CLEAN] if any(place.in_error for place in places) else []
    fail(harness, [f"{headline}"], _worst_showings(showing), *advice)


def assert_record_tokens_at_most(
    harness: Harness,
    cases: Iterable[FailureCase],
    maximum: int,
    count_tokens: CountTokens | None = None,
) -> None:
    """In no case does the failed step add more than `maximum` tokens to the prompt.

    Tokens are counted in the texts of the prompts after and before it, by `count_tokens`, such as
    `failgain_model.count_tokens`, or else by a simple tokenizer (see `record_checks.tokens`). What
    a chat template writes around messages is not counted.

    Raises:
        AssertionError: when it does, or there is no case.
        HarnessError: when the harness fails on a case (see `harness_checks.render`).
        UsageError: when `maximum` is no count, or `cases` holds anything but cases.
    """
    __tracebackhide__ = True
    _check_count("maximum", maximum)
    count = count_tokens or count_simply
    lengths = [
        (_record_tokens(harness, case, count), case) for case in checked_cases(harness, cases)
    ]
    longer = sorted((pair for pair in lengths if pair[0] > maximum), key=lambda pair: -pair[0])
    if not longer:
        return
    mean = sum(length for length, _ in lengths) / len(lengths)
    headline = (
        f"the record has {longer[0][0]} tokens at worst (mean {mean:.1f}), at most {maximum} "
        f"allowed, more in {len(longer)} of {len(lengths)} cases, n = {len(lengths)}"
    )
    lines = ["worst cases:  tokens  failed action"]
    lines += [
        f"              {length:>6}  {_in_short(str(case.failed.action))}  ({case.case_id})"
        for length, case in longer[:_WORST_SHOWN]
    ]
    fail(harness, [headline], lines, SHORTEN)


def checked_cases(harness: Harness, cases: Iterable[FailureCase]) -> Sequence[FailureCase]:
    """`cases` as a sequence that has some.

    Raises:
        AssertionError: when there is none.
        UsageError: when it holds, or is, something else.
    """
    __tracebackhide__ = True
    if not isinstance(cases, Iterable):
        raise UsageError(
            f"cases must be failure cases, not {cases!r}; give a list of them, such as "
            "failgain.environment('tool_calls').cases(30) or read_transcript(…).failures"
        )
    found = list(cases)
    for index, case in enumerate(found):
        if not isinstance(case, FailureCase):
            raise UsageError(
                f"cases[{index}] is a {type(case).__name__}, and no failure case; make one with "
                "Transcript(…), an environment or read_transcript"
            )
    if not found:
        raise AssertionError(
            f"{harness_name(harness)}: no case was checked (n = 0), so nothing can be asserted"
        )
    return found


def fail(harness: Harness, headlines: Sequence[str], worst: Iterable[str], *advice: str) -> None:
    """Fail with the headline, the worst cases and what to try."""
    __tracebackhide__ = True
    first, *others = headlines
    raise AssertionError(
        "\n".join(
            [
                f"{harness_name(harness)}: {first}",
                *(f"also: {other}" for other in others),
                *worst,
                *advice,
            ]
        )
    )


def _check_count(name: str, value: object) -> None:
    __tracebackhide__ = True
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{name} must be a whole number of tokens, 0 or more, not {value!r}")


def _shown(harness: Harness, case: FailureCase, max_tokens: int | None) -> Shown:
    __tracebackhide__ = True
    before = render(harness, case.trajectory, case_id=case.case_id)
    after = render(harness, case.trajectory.then(case.failed), case_id=case.case_id)
    step = case.failed
    return shown(step.action, step.observation or "", before, after, max_tokens)


def _record_tokens(harness: Harness, case: FailureCase, count: CountTokens) -> int:
    __tracebackhide__ = True
    before = parts(render(harness, case.trajectory, case_id=case.case_id))
    after = parts(render(harness, case.trajectory.then(case.failed), case_id=case.case_id))
    return _counted(surplus(after, before), count) - _counted(surplus(before, after), count)


def _counted(texts: Iterable[Part], count: CountTokens) -> int:
    return sum(count(part.text) for part in texts)


def _worst_showings(showing: Sequence[tuple[FailureCase, Shown]]) -> list[str]:
    lines = ["worst cases:  shared  of  allowed  where, and as what"]
    for case, one in showing[:_WORST_SHOWN]:
        places = sorted(one.showings, key=lambda place: -place.tokens)
        for index, place in enumerate(places[:_PLACES_SHOWN]):
            figures = (
                f"{place.tokens:>6}  {one.of:>2}  {one.allowed:>7}" if index == 0 else " " * 19
            )
            lines.append(f"              {figures}  {_where(place)}  ({case.case_id})")
    return lines


def _where(place: Showing) -> str:
    inside = ", inside the error text" if place.in_error else ""
    return f"{place.part.place}{inside}, {place.form}: {place.excerpt!r}"


def _in_short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
