"""Every option, declared once: command line, environment variable and ini key, in that precedence.

`--failgain-x`, `FAILGAIN_X` and `failgain_x` are the same option; `Settings` keeps where each value
came from, for the header.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from pytest_failgain.choices import DTYPES, PROMPT_FORMATS

DEFAULT_BASELINE = "failgain-baseline.json"
"""The name of the baseline file, which is in the root directory of the run."""

# What is of one run only.
_NOT_REPEATED = ("update_baseline", "json", "html")


# Named tuples, since every pytest run waits for these classes to be made.
class Settings(NamedTuple):
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
    no_cache: bool = False
    require_model: bool = False
    fold_system: bool = False
    prompt_format: str = "template"
    mbpp: Path | None = None
    allow_code_execution: bool = False
    baseline: Path | None = None
    update_baseline: bool = False
    json: Path | None = None
    html: Path | None = None
    sources: Mapping[str, str] | None = None

    @property
    def writes_files(self) -> bool:
        """Whether the run is to leave files behind."""
        return self.update_baseline or self.json is not None or self.html is not None

    @property
    def baseline_command(self) -> str:
        """What writes the baseline, with the options that were given on the command line."""
        given = [
            option.flag if option.kind is FLAG else f"{option.flag}={getattr(self, option.name)}"
            for option in OPTIONS
            if option.name not in _NOT_REPEATED and self.source(option.name) == option.flag
        ]
        return shlex.join(["pytest", *given, "--failgain-update-baseline"])

    def baseline_file(self, rootpath: Path) -> Path:
        """The file that a run in `rootpath` compares with."""
        return self.baseline or rootpath / DEFAULT_BASELINE

    def source(self, name: str) -> str | None:
        return (self.sources or {}).get(name)


class Kind(NamedTuple):
    """What an option takes: `fits` says it to a person, `ini` is pytest's name of its TOML type.

    `parse` turns a text into the value, or raises ValueError, with a hint to end the message with.
    """

    parse: Callable[[str], Any]
    fits: str
    ini: Literal["string", "int", "bool"] = "string"


class Option(NamedTuple):
    """One option, under its three names."""

    name: str
    kind: Kind
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
        raise ValueError
    return value.strip()


def _count(value: str) -> int:
    if not value.strip().isdecimal() or int(value) < 1:
        raise ValueError
    return int(value)


def _seed(value: str) -> int:
    if not value.strip().isdecimal():
        raise ValueError
    return int(value)


def _folder(value: str) -> Path:
    path = Path(_text(value)).expanduser()
    if _asked(path.exists) and not _asked(path.is_dir):
        raise ValueError(", which is a file")
    return path


def _file(value: str) -> Path:
    path = Path(_text(value)).expanduser()
    if not _asked(path.is_file):
        raise ValueError(", which is a folder" if path.is_dir() else ", which is not there")
    return path


def _asked(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError as error:
        raise ValueError(f", which can't be looked at: {error.strerror}") from None


def _output(value: str) -> Path:
    # Written at the end of a run, when a test may have left for another folder.
    path = Path(_text(value)).expanduser().absolute()
    if _asked(path.is_dir):
        raise ValueError(", which is a folder")
    return path


def _flag(value: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False, "": False}
    try:
        return words[value.strip().lower()]
    except KeyError:
        raise ValueError from None


def _one_of(*names: str) -> Kind:
    def parse(value: str) -> str:
        if value.strip() not in names:
            near = get_close_matches(value, names, n=1)
            raise ValueError(f" (did you mean {near[0]}?)" if near else "")
        return value.strip()

    return Kind(parse, f"must be one of {', '.join(names)}")


TEXT = Kind(_text, "must be a non-empty text")
COUNT = Kind(_count, "must be a whole number of 1 or more", "int")
SEED = Kind(_seed, "must be a whole number of 0 or more", "int")
DTYPE = _one_of(*DTYPES)
PROMPT_FORMAT = _one_of(*PROMPT_FORMATS)
FOLDER = Kind(_folder, "must be a folder")
FILE = Kind(_file, "must be a file")
OUTPUT = Kind(_output, "must be a file to write")
FLAG = Kind(_flag, "must be true or false", "bool")

OPTIONS = (
    Option(
        "model",
        TEXT,
        "NAME",
        "model name, hub id, folder or .gguf file to measure with, or an added scorer",
    ),
    Option("revision", TEXT, "REV", "revision of a hub model: a branch, tag or commit"),
    Option("dtype", DTYPE, "DTYPE", "float32 (default), bfloat16 or float16"),
    Option("device", TEXT, "DEVICE", "torch device, such as cpu (default) or cuda:0"),
    Option("threads", COUNT, "N", "threads for the model (default: the usable cores)"),
    Option(
        "cases", COUNT, "N", "cases and tasks an environment gives, in place of a test's own number"
    ),
    Option("seed", SEED, "N", "seed of the environments' cases (default: 0)"),
    Option("cache_dir", FOLDER, "DIR", "folder for models and results"),
    Option("offline", FLAG, "", "use no network, even to fetch a model"),
    Option("no_cache", FLAG, "", "neither use nor keep scores, replies and outcomes of programs"),
    Option("require_model", FLAG, "", "fail, rather than skip, tests that have no model"),
    Option("fold_system", FLAG, "", "put the system prompt into the first user turn if need be"),
    Option("prompt_format", PROMPT_FORMAT, "FORMAT", "template (default), plain or auto"),
    Option("mbpp", FILE, "FILE", "sanitized-mbpp.json or mbpp.jsonl, to make program_repair of"),
    Option("allow_code_execution", FLAG, "", "run, in a sandbox, programs that a model wrote"),
    Option("baseline", OUTPUT, "FILE", "file to compare with (failgain-baseline.json)"),
    Option("update_baseline", FLAG, "", "write what is compared with it into the baseline"),
    Option("json", OUTPUT, "FILE", "write all results to this JSON file"),
    Option("html", OUTPUT, "FILE", "write a report to this HTML file"),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option's command line flag and ini key."""
    group = parser.getgroup("failgain", "failgain: how an agent records failed tool calls")
    for option in OPTIONS:
        help_text = f"{option.help} [env {option.variable}, ini {option.ini}]"
        if option.kind is FLAG:
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
        parser.addini(option.ini, option.help, type=option.kind.ini, default=None)


def read_settings(config: pytest.Config, environ: Mapping[str, str]) -> Settings:
    """The settings of this run.

    Raises:
        pytest.UsageError: when a value does not fit; the message names the option, where the value
            came from, and what fits.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for option in OPTIONS:
        given = _given(option, config, environ)
        if given is None:
            continue
        text, source = given
        try:
            values[option.name] = option.kind.parse(text)
        except ValueError as hint:
            raise pytest.UsageError(f"{source}: {option.kind.fits}, not {text!r}{hint}") from None
        sources[option.name] = source
    assert values.keys() <= set(Settings._fields)
    return Settings(**values, sources=sources)


def _given(
    option: Option, config: pytest.Config, environ: Mapping[str, str]
) -> tuple[str, str] | None:
    """The text of the option's value and where it came from, or None if nothing gives it."""
    text = config.getoption(option.ini)
    if text is not None:
        return text, option.flag
    if option.variable in environ:
        return environ[option.variable], option.variable
    overrides: list[str] = config.getoption("override_ini") or []
    overridden = any(entry.partition("=")[0] == option.ini for entry in overrides)
    file = config.inipath
    source = f"-o {option.ini}" if file is None or overridden else f"{option.ini} in {file.name}"
    try:
        value = config.getini(option.ini)
    except (TypeError, ValueError, pytest.UsageError) as error:
        # It is not of the option's type in a TOML file. Only from pytest 9.2 is that a usage error.
        raise pytest.UsageError(f"{source}: {option.kind.fits} ({error})") from None
    if value is None:
        return None
    if option.kind in (FOLDER, FILE, OUTPUT) and value and file is not None:
        # As pytest's own paths: relative to the file, wherever the run was started.
        value = file.parent / Path(value.strip()).expanduser()
    return str(value), source
