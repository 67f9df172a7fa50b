"""What the capture endpoint keeps of each request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that an agent sent, and what it was answered.

    `api` is "chat" or "responses". `raw` is the body byte for byte; headers are never kept.
    `body` is the parsed request in which what a client refers to by `previous_response_id` stands
    in full: `restored` items come from there. `answer` is the text or the call that was sent back,
    as the JSON of the answer, and `status` its HTTP status.
    """

    api: str
    path: str
    raw: bytes
    body: dict[str, Any]
    answer: dict[str, Any]
    restored: int = 0
    status: int = 200
