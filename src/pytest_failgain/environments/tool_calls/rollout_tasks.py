"""The tasks of rollouts: as many that one call solves as longer ones.

Small models solve few of the longer ones, and cases need only two templates of the short kind.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import chain

from pytest_failgain.call_text import Call
from pytest_failgain.environments.tool_calls.imagined import imagined_topic
from pytest_failgain.environments.tool_calls.tasks import (
    Draft,
    Task,
    Template,
    changeable_document,
    drawn,
    is_off,
    takes_place,
)
from pytest_failgain.environments.tool_calls.world import STARTS, World, workday

# The subject and the text of short mails.
MESSAGES = {
    "bicycle": "Your bicycle is blocking the loading bay.",
    "delivery": "The new chairs arrive before lunch.",
    "headset": "Somebody left a headset on your desk.",
    "heating": "The heating is off until noon.",
    "keys": "I left the keys at the reception.",
    "photos": "The photos from the open house are ready.",
    "projector": "Please bring the projector back today.",
    "reply": "Thank you for the quick answer.",
}


def rollout_tasks(seed: int, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Tasks that one call solves and longer ones taking turns, and within either the templates.

    `tasks` are the seed's, to which more of the short kind are added.
    """
    short: dict[str, list[Task]] = {}
    for task in (*tasks, *drawn(TEMPLATES, f"tool_calls rollout {seed}", f"office-{seed}-short")):
        if len(task.solution) == 1:
            short.setdefault(task.template, []).append(task)
    one_call = chain.from_iterable(zip(*short.values(), strict=True))
    longer = (task for task in tasks if len(task.solution) > 1)
    return tuple(chain.from_iterable(zip(one_call, longer, strict=False)))


def _remove(world: World, rng: random.Random) -> Draft:
    path = changeable_document(world, rng).path
    return Draft(
        f"Remove the document {path}.",
        (Call.of("remove_document", path=path),),
        lambda after: after.document_at(path) is None,
    )


def _mail(world: World, rng: random.Random) -> Draft:
    address = rng.choice(world.people).address
    subject, message = rng.choice(list(MESSAGES.items()))
    return Draft(
        f"Email {address} with the subject '{subject}' and this message: {message}",
        (Call.of("email_contact", address=address, subject=subject, message=message),),
        lambda after: any(
            mail.address == address and mail.subject == subject and message in mail.message
            for mail in after.mails
        ),
    )


def _call_off_by_id(world: World, rng: random.Random) -> Draft:
    identity = rng.choice(world.meetings).identity
    return Draft(
        f"Call off the meeting with the id {identity}.",
        (Call.of("call_off_meeting", meeting_id=identity),),
        lambda after: is_off(after, identity),
    )


def _meet_address(world: World, rng: random.Random) -> Draft:
    address, topic = rng.choice(world.people).address, imagined_topic(world, rng)
    day, start = workday(rng), rng.choice(STARTS)
    return Draft(
        f"Book a meeting with {address} on {day} at {start}, with the topic '{topic}'.",
        (Call.of("book_meeting", topic=topic, day=day, start=start, guests=[address]),),
        lambda after: takes_place(after, topic, day, start, {address}),
    )


TEMPLATES: Mapping[str, Template] = {
    "remove": _remove,
    "mail": _mail,
    "call_off_by_id": _call_off_by_id,
    "meet_address": _meet_address,
}
