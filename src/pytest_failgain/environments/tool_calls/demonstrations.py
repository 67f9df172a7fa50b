"""What the office's agent did well before: dialogues in an office that no seed draws.

Lost models copy from them. None of their people, paths, days and other values is valid in the world
of a task, so that what is copied solves nothing.
"""

from __future__ import annotations

from pytest_failgain.call_text import Call
from pytest_failgain.environments.demonstrations import Demonstration
from pytest_failgain.environments.tool_calls.calls import ActionFormat
from pytest_failgain.environments.tool_calls.runtime import execute
from pytest_failgain.environments.tool_calls.world import (
    Conversion,
    Document,
    Meeting,
    Person,
    World,
)
from pytest_failgain.trajectory import Step

WORLD = World(
    people=(
        Person("Una Webb", "una.webb@tidewell.example", "garden"),
        Person("Ivo Stone", "ivo.stone@tidewell.example", "garden"),
        Person("Zara Quinn", "zara.quinn@tidewell.example", "kitchen"),
    ),
    folders=("letters", "stories"),
    protected_folders=(),
    documents=(
        Document("letters/thanks.md", "Thank you for the apple trees."),
        Document("stories/harvest.md", "Come to the harvest dinner."),
    ),
    meetings=(
        Meeting("mtg-301", "bee hives", "2031-05-14", "07:45", ("ivo.stone@tidewell.example",)),
    ),
    conversions=(Conversion("acre", "ha", 0.404686),),
)

# Each of the twelve tools is shown. The plainest stand last, nearest to the task: told the other
# way round, SmolLM2-135M wrote half as many valid first calls, with each of three seeds.
_DIALOGUES = (
    (
        "Find the document about the harvest in the folder stories and remove it.",
        (
            Call.of("list_folder", folder="stories"),
            Call.of("remove_document", path="stories/harvest.md"),
        ),
    ),
    (
        "Convert 20 acre to ha and save only the resulting number as stories/field.md.",
        (
            Call.of("convert_amount", amount=20, source="acre", target="ha"),
            Call.of("save_document", path="stories/field.md", text="8.0937"),
        ),
    ),
    (
        "Save the full names of the garden team as letters/helpers.md, separated by commas.",
        (
            Call.of("list_team", team="garden"),
            Call.of("save_document", path="letters/helpers.md", text="Una Webb, Ivo Stone"),
        ),
    ),
    (
        "Email zara.quinn@tidewell.example with the subject 'soup' and this message: Buy onions.",
        (
            Call.of(
                "email_contact",
                address="zara.quinn@tidewell.example",
                subject="soup",
                message="Buy onions.",
            ),
        ),
    ),
    (
        "Call off the meeting about the bee hives on 2031-05-14.",
        (
            Call.of("show_agenda", day="2031-05-14"),
            Call.of("call_off_meeting", meeting_id="mtg-301"),
        ),
    ),
    (
        "Save a copy of letters/thanks.md as stories/trees.md.",
        (
            Call.of("open_document", path="letters/thanks.md"),
            Call.of(
                "save_document", path="stories/trees.md", text="Thank you for the apple trees."
            ),
        ),
    ),
    (
        "Book a meeting with Una Webb on 2031-05-13 at 17:30, with the topic 'river walk'.",
        (
            Call.of("lookup_contact", full_name="Una Webb"),
            Call.of(
                "book_meeting",
                topic="river walk",
                day="2031-05-13",
                start="17:30",
                guests=["una.webb@tidewell.example"],
            ),
        ),
    ),
    (
        "Add a reminder for 2031-05-12 with the note 'feed the cat'.",
        (Call.of("add_reminder", note="feed the cat", day="2031-05-12"),),
    ),
)


def demonstrations(form: ActionFormat) -> tuple[Demonstration, ...]:
    """The dialogues with calls in the format `form`, one after the other in one office."""
    world, told = WORLD, []
    for goal, calls in _DIALOGUES:
        steps: list[Step] = []
        for call in calls:
            outcome = execute(world, call)
            world = outcome.world
            steps.append(outcome.step(form.write(call)))
        told.append(Demonstration(goal, tuple(steps)))
    return tuple(told)
