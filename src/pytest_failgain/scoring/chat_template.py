"""Chat templates, written as transformers writes them, without transformers.

A template is a program that came with a model: it runs in jinja's sandbox and sees plain data only.
The one difference: a template that asks for today's date is given one that stays the same.

Imported when the first chat is written, since jinja2 takes its time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

# Names that reasoning goes by: templates read the first, some only the second.
_REASONING = ("reasoning_content", "thinking", "reasoning")


@dataclass(frozen=True, slots=True)
class WrittenChat:
    """A chat as text; `dated` tells whether today's date was asked for."""

    text: str
    dated: bool


def write_chat(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    special_tokens: Mapping[str, str],
    today: datetime,
) -> WrittenChat:
    """`messages` as the chat template `template` writes them on the day `today`.

    Raises:
        ValueError: when there are no messages.
        Exception: whatever the template raises, since it is a program.
    """
    if not messages:
        raise ValueError("there are no messages")
    asked: list[str] = []

    def strftime_now(form: str) -> str:
        asked.append(form)
        return today.strftime(form)

    text = _compiled(template).render(
        messages=[_message(message) for message in messages],
        tools=_plain(tools),
        documents=None,
        add_generation_prompt=add_generation_prompt,
        strftime_now=strftime_now,
        **special_tokens,
    )
    return WrittenChat(text, bool(asked))


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    # Many templates write "None" for what they find to be None, and cope with what is not there.
    plain: dict[str, Any] = _plain({k: value for k, value in message.items() if value is not None})
    thought = next((plain[key] for key in _REASONING if plain.get(key) is not None), None)
    if thought is None:
        return plain
    return {"thinking": thought, **plain, "reasoning_content": thought}


def _plain(value: Any) -> Any:
    """`value` rebuilt of JSON's types: other objects have methods that the sandbox can't judge."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            # Past what a subclass says of itself, as an enumeration's member does.
            return getattr(kind, f"__{kind.__name__}__")(value)
    return f"<{type(value).__name__}>"


class _Generation(Extension):
    """`{% generation %}`, which marks the assistant's text for training and writes it as it is."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller: Callable[[], str]) -> str:
        return caller()


class _Dict:
    """What `dict` is in a template: nothing of the class itself can be reached through it."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """What `namespace` is in a template: one without a way to Python's own attributes."""

    # `namespace(self=…)` is allowed, so no argument may have that name here.
    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *given = args
        attributes = dict(*given, **kwargs)
        for name in attributes:
            _check_public(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_public(name)
        super().__setitem__(name, value)


def _check_public(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(
            f"a chat template may not set {name!r}, which begins with an underscore"
        )


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja's own would write "<" and its like as escapes.
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["dict"] = _Dict()
    environment.globals["namespace"] = _Namespace
    return environment


@cache
def _compiled(template: str) -> Template:
    return _environment().from_string(template)
