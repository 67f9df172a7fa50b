"""What is added without pytest: names, readers that fail, and the order of remedies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_failgain import Extensions, Failgain, Remedy
from pytest_failgain.blocking.kinds import BLOCKS
from pytest_failgain.environments import build_environment
from pytest_failgain.errors import ExtensionError, HarnessError, TranscriptError, UsageError
from pytest_failgain.extensions import NO_EXTENSIONS, Addition, merged
from pytest_failgain.harnesses import remedied, with_remedy
from pytest_failgain.remedies import FAILED_STEP, REMEDIES, in_order
from pytest_failgain.trajectory import Action, Step, Trajectory, UserTurn
from pytest_failgain.transcripts.conversation import Call, Conversation, Result, Turn
from pytest_failgain.transcripts.document import Document
from pytest_failgain.transcripts.read import READERS, read_transcript

DIARY = "Dear diary\nToday it failed."
CONVERSATION = Conversation(
    (
        Turn("user", "Book it."),
        Turn("assistant", "book(1)", calls=(Call(Action("book(1)")),)),
        Turn("tool", "no", results=(Result("no", failed=True),)),
    )
)
FAILED = Trajectory("", "Book it.", (Step(Action("book(1)"), "no", failed=True),))


@dataclass
class Diary:
    """Reads what begins with `begins`, or does whatever it is told to."""

    found: Any = (CONVERSATION,)
    raises_in: str = ""
    error: Exception | None = None
    name: str = "diary"
    begins: str = "Dear diary"

    def recognises(self, document: Document) -> bool:
        if self.raises_in == "recognises":
            raise self.error or ValueError("no page")
        return document.text.startswith(self.begins)

    def read(self, document: Document) -> Sequence[Conversation]:
        if self.raises_in == "read":
            raise self.error or ValueError("no page")
        found: Sequence[Conversation] = self.found
        return found


def mine(name: str = "mine", failed_step: str = "left") -> Remedy:
    return Remedy(name, lambda trajectory: trajectory, failed_step=failed_step)


def test_added_reader_is_asked_before_the_built_in_ones() -> None:
    messages = '[{"role": "user", "content": "x"}]'
    assert read_transcript(messages).format == "openai-chat"
    assert read_transcript(messages, readers=[Diary(begins="[")]).format == "diary"
    assert read_transcript(messages, readers=[Diary()]).format == "openai-chat"
    assert read_transcript(messages, "diary", readers=[Diary()]).format == "diary"


def test_readers_are_asked_in_their_order() -> None:
    readers = [Diary(), Diary(name="other")]
    assert read_transcript(DIARY, readers=readers).format == "diary"
    assert read_transcript(DIARY, readers=readers[::-1]).format == "other"


@pytest.mark.parametrize("method", ["recognises", "read"])
def test_reader_that_raises_is_named(method: str) -> None:
    with pytest.raises(ExtensionError) as caught:
        read_transcript(DIARY, readers=[Diary(raises_in=method)])
    assert str(caught.value) == (
        f"the transcript reader 'diary' ({__name__}.Diary): {method}() raised for the transcript "
        "'transcript': ValueError: no page; let recognises() return False for what is of another "
        "format, and read() raise TranscriptError for what is broken"
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_a_reader_says_of_a_broken_transcript_is_told_as_it_is() -> None:
    error = TranscriptError("page 3 is torn")
    with pytest.raises(TranscriptError) as caught:
        read_transcript(DIARY, readers=[Diary(raises_in="read", error=error)])
    assert caught.value is error


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (None, "None"),
        ("text", "a str"),
        ({}, "a dict"),
        ([CONVERSATION, {}], "a sequence with a dict in it"),
    ],
)
def test_reader_that_returns_anything_else_is_named(found: object, named: str) -> None:
    with pytest.raises(ExtensionError, match=rf"Diary\): read\(\) returned {named}; it must"):
        read_transcript(DIARY, readers=[Diary(found)])


def test_reader_that_is_none_is_refused() -> None:
    readers: Any = [object]
    with pytest.raises(ExtensionError, match=r"^read_transcript\(readers=…\): .* is a class; give"):
        read_transcript(DIARY, readers=readers)


def test_reader_can_not_have_the_name_of_a_built_in_format() -> None:
    for reader in READERS:
        with pytest.raises(ExtensionError, match=f"{reader.name!r} has the name of a built-in one"):
            Extensions(readers=[Diary(name=reader.name)])


TAKEN = {"verbatim", "none", *REMEDIES, *BLOCKS}


@given(st.text(max_size=8).filter(lambda name: name not in TAKEN))
def test_names_are_words(name: str) -> None:
    is_word = name.replace("-", "a").replace(".", "a").replace("_", "a")
    fits = is_word.isascii() and is_word.isalnum() and name[0] not in "-."
    if fits:
        added = Extensions(remedies=[mine(name)]).remedies
        assert remedied(name, added=added).name == name
    else:
        with pytest.raises(ExtensionError, match=re.escape(repr(name))):
            Extensions(remedies=[mine(name)])


def test_what_was_added_can_not_be_changed_behind_the_back() -> None:
    remedies = [mine()]
    extensions = Extensions(remedies=remedies)
    remedies.append(mine("late"))
    assert [remedy.name for remedy in extensions.remedies] == ["mine"]


def test_nothing_added_is_nothing() -> None:
    assert merged([]) == NO_EXTENSIONS == Extensions()
    assert merged([Addition("remedies", [], "nobody")]) == NO_EXTENSIONS


def test_name_may_stand_once_in_each_kind() -> None:
    extensions = merged(
        [
            Addition("remedies", [mine("one")], "A"),
            Addition("readers", [Diary(name="one")], "B"),
            Addition("remedies", [mine("two")], "C"),
        ]
    )
    assert [remedy.name for remedy in extensions.remedies] == ["one", "two"]
    assert extensions.origins == {
        ("remedies", "one"): "A",
        ("readers", "one"): "B",
        ("remedies", "two"): "C",
    }
    with pytest.raises(ExtensionError) as caught:
        merged(
            [
                Addition("readers", [Diary()], "A"),
                Addition("readers", [Diary(error=OSError())], "B"),
            ]
        )
    assert str(caught.value) == (
        "B: the name 'diary' is taken by a transcript reader of A; give one of the two another name"
    )


def test_what_fails_without_an_origin_is_named_all_the_same() -> None:
    extensions = Extensions(environments={"mine": lambda settings: 1 / 0})  # type: ignore[dict-item, return-value]
    with pytest.raises(ExtensionError) as caught:
        build_environment("mine", extensions=extensions)
    assert str(caught.value) == (
        "the environment 'mine' can't be made: ZeroDivisionError: division by zero"
    )


def test_our_own_errors_of_a_factory_are_told_as_they_are() -> None:
    def refuse(settings: object) -> Any:
        raise UsageError("mine needs a licence")

    extensions = Extensions(environments={"mine": refuse}, scorers={"own": refuse})
    with pytest.raises(UsageError, match=r"^mine needs a licence$"):
        build_environment("mine", extensions=extensions)
    with pytest.raises(UsageError, match=r"^mine needs a licence$"):
        _ = Failgain("own", extensions=extensions).scorer


def test_built_in_environments_stay_what_they_are() -> None:
    extensions = Extensions(environments={"mine": lambda settings: 1})  # type: ignore[dict-item, return-value]
    assert build_environment("tool_calls", extensions=extensions).cases(2) == (
        build_environment("tool_calls").cases(2)
    )


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from(sorted(REMEDIES)), unique=True),
    st.lists(st.sampled_from(FAILED_STEP), max_size=3),
    st.randoms(use_true_random=False),
)
def test_remedies_have_one_order(names: list[str], kinds: list[str], random: Any) -> None:
    added = [mine(f"mine{i}", kind) for i, kind in enumerate(kinds)]
    mixed = [*(REMEDIES[name] for name in names), *added]
    ordered = in_order(mixed)
    random.shuffle(mixed)
    by_name = sorted(mixed, key=lambda one: one.name)  # those that are added stay as they were
    assert in_order(by_name) == ordered
    built_in = [one for one in ordered if one in REMEDIES.values()]
    assert built_in == [one for one in REMEDIES.values() if one.name in names]
    takes_away = [one.failed_step == "taken away" for one in ordered]
    assert takes_away == sorted(takes_away)
    for part in (ordered[: takes_away.count(False)], ordered[takes_away.count(False) :]):
        is_added = [one in added for one in part]
        assert is_added == sorted(is_added)


def test_added_remedy_looks_at_the_failure_before_another_takes_it_away() -> None:
    def apologise(trajectory: Trajectory) -> Trajectory:
        failures = [step for step in trajectory.steps if isinstance(step, Step) and step.failed]
        return trajectory.then(UserTurn(f"Sorry for {len(failures)}."))

    sorry = Remedy("sorry", apologise)
    harness = remedied("dropped+sorry", added=[sorry])
    assert harness.name == "dropped+sorry"
    assert harness(FAILED) == [
        {"role": "user", "content": "Book it."},
        {"role": "user", "content": "Sorry for 1."},
    ]
    assert with_remedy(remedied("sorry", added=[sorry]), REMEDIES["dropped"])(FAILED) == (
        harness(FAILED)
    )


def test_added_remedies_are_joined_by_what_they_make_of_the_failed_step() -> None:
    added = [mine("gone", "taken away"), mine("changed", "changed"), mine("left")]
    for name in (
        "gone+dropped",
        "described+gone",
        "gone+changed",
        "gone+stripped",
        "changed+dropped",
    ):
        with pytest.raises(UsageError, match=f"in '{name.replace('+', '.')}' can't be joined"):
            remedied(name, added=added)
    for name in ("gone+left", "changed+left", "changed+stripped", "left+dropped", "gone+labelled"):
        assert remedied(name, added=added).name == name


def test_added_remedies_are_known_only_where_they_are_given() -> None:
    with pytest.raises(UsageError, match=r"^there is no remedy 'mine' .*, dropped, and at"):
        remedied("mine")
    with pytest.raises(UsageError, match=r"dropped, mine, and at the decoder"):
        remedied("other", added=[mine()])


def test_remedy_that_returns_no_trajectory_is_named() -> None:
    nothing: Any = {"transform": lambda trajectory: None}
    broken = replace(mine(), **nothing)
    with pytest.raises(HarnessError) as caught:
        remedied("mine", added=[broken])(FAILED)
    assert str(caught.value) == (
        "the remedy 'mine' returned a NoneType; its transform must return a Trajectory, such as "
        "the one that it is given"
    )
