"""Every option, declared once: command line, environment variable and ini key, in that precedence.

`--failgain-x`, `FAILGAIN_X` and `failgain_x` are the same option; `Settings` keeps where each value
came from, for the header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from pytest_failgain.errors import UsageError


@dataclass(frozen=True, slots=True)
class Settings:
    """The options' values. `sources` has, by field name, where a value that was given came from."""

    model: str | None = None
    revision: str | None = None
    dtype: str = "float32"
    device: str = "cpu"
    threads: int | None = None
    cases: int | None = None
    seed: int = 0
    cache_dir: Path | None = None
    offline: bool = False
    require_model: bool = False
    fold_system: bool = False
    sources: Mapping[str, str] | None = None

    def source(self, name: str) -> str | None:
        return (self.sources or {}).get(name)


@dataclass(frozen=True, slots=True)
class Option:
    """One option; `parse` turns its text into its value or raises ValueError saying what fits."""

    name: str
    parse: Callable[[str], Any]
    metavar: str
    help: str

    @property
    def flag(self) -> str:
        return f"--failgain-{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"FAILGAIN_{self.name.upper()}"

    @property
    def ini(self) -> str:
        return f"failgain_{self.name}"


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value.strip()


def _count(value: str) -> int:
    if not value.strip().isdecimal() or int(value) < 1:
        raise ValueError("must be a whole number of 1 or more")
    return int(value)


def _seed(value: str) -> int:
    if not value.strip().isdecimal():
        raise ValueError("must be a whole number of 0 or more")
    return int(value)


def _dtype(value: str) -> str:
    known = ("float32", "bfloat16", "float16")
    if value not in known:
        near = get_close_matches(value, known, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"must be one of {', '.join(known)}{hint}")
    return value


def _folder(value: str) -> Path:
    path = Path(_text(value)).expanduser()
    if path.exists() and not path.is_dir():
        raise ValueError("must be a folder, and there is a file of that name")
    return path


def _flag(value: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False, "": False}
    try:
        return words[value.strip().lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


OPTIONS = (
    Option("model", _text, "NAME", "model name, hub id, folder or .gguf file to measure with"),
    Option("revision", _text, "REV", "revision of a hub model: a branch, tag or commit"),
    Option("dtype", _dtype, "DTYPE", "float32 (default), bfloat16 or float16"),
    Option("device", _text, "DEVICE", "torch device, such as cpu (default) or cuda:0"),
    Option("threads", _count, "N", "threads for the model (default: the usable cores)"),
    Option("cases", _count, "N", "cases an environment gives, in place of a test's own number"),
    Option("seed", _seed, "N", "seed of the environments' cases (default: 0)"),
    Option("cache_dir", _folder, "DIR", "folder for fetched and converted models"),
    Option("offline", _flag, "", "use no network, even to fetch a model"),
    Option("require_model", _flag, "", "fail, rather than skip, tests that have no model"),
    Option("fold_system", _flag, "", "put the system prompt into the first user turn if need be"),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option's command line flag and ini key."""
    group = parser.getgroup("failgain", "failgain: how an agent records failed tool calls")
    for option in OPTIONS:
        help_text = f"{option.help} [env {option.variable}, ini {option.ini}]"
        if option.parse is _flag:
            group.addoption(
                option.flag,
                dest=option.ini,
                action="store_const",
                const="true",
                default=None,
                help=help_text,
            )
        else:
            group.addoption(
                option.flag, dest=option.ini, metavar=option.metavar, default=None, help=help_text
            )
        # `None` for the type lets a TOML true or 8 through, as well as the text of an ini file.
        kind: Any = "bool" if option.parse is _flag else "string"
        parser.addini(option.ini, option.help, type=kind, default=None)


def read_settings(config: pytest.Config, environ: Mapping[str, str]) -> Settings:
    """The settings of this run.

    Raises:
        UsageError: when a value does not fit; the message names the option, where the value came
            from, and what fits.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for option in OPTIONS:
        for text, source in _given(option, config, environ):
            if text is None:
                continue
            try:
                values[option.name] = option.parse(text)
            except ValueError as error:
                raise UsageError(f"{source}: {error}, not {text!r}") from None
            sources[option.name] = source
            break
    assert values.keys() <= {field.name for field in fields(Settings)}
    return Settings(**values, sources=sources)


def _given(
    option: Option, config: pytest.Config, environ: Mapping[str, str]
) -> tuple[tuple[str | None, str], ...]:
    ini = config.getini(option.ini)
    if isinstance(ini, bool):
        ini = "true" if ini else "false"
    return (
        (config.getoption(option.ini), option.flag),
        (environ.get(option.variable), option.variable),
        (ini or None, f"{option.ini} in {config.inipath.name if config.inipath else 'ini'}"),
    )
