"""The baseline file: JSON, made to be read in a diff.

{"failgain_baseline": 1,
 "entries": {
   "tool_calls": {                          the environment
     "render_messages": {                   the harness
       "model": {"name": "smollm2-135m", "source": "…", "revision": null,
                 "weights": "0f3c…", "template": "91ab…", "dtype": "float32"},
       "settings": {"prompt_format": "template", "fold_system": false, "seed": 0},
       "cases": {
         "refund-42": {"task": "refund", "decision": "5be0…", "gain_per_token": -0.0312,
                       "repeat_probability": 0.1402, "greedy_repeat": false,
                       "record": ["the lines of", "the record"]}}}}}}
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from filelock import FileLock

from pytest_failgain.atomic import remove_leftovers, write_atomically
from pytest_failgain.baseline.entry import Entry, KeptCase, Model
from pytest_failgain.errors import CaseError, UsageError
from pytest_failgain.json_fields import Fields
from pytest_failgain.models import default_cache_dir

FORMAT = 1

_Key = tuple[str, str]


def read_baseline(path: Path) -> dict[_Key, Entry]:
    """The entries of the file at `path` by (environment, harness); none where there is no file.

    Raises:
        UsageError: when it can't be read, is of another format, or was damaged, as by a merge.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"can't read the baseline {path}: {error}; give a file with --failgain-baseline"
        ) from error
    try:
        value = json.loads(content, object_pairs_hook=_unique)
        return {(one.environment, one.harness): one for one in _read(value)}
    except (CaseError, ValueError, RecursionError) as error:
        marked = next((n for n, at in enumerate(content.split("\n"), 1) if at[:7] == "<<<<<<<"), 0)
        if marked:
            raise UsageError(
                f"the baseline {path} holds both sides of a merge (line {marked}): take one of "
                "them, then write it anew with --failgain-update-baseline"
            ) from None
        raise UsageError(
            f"the baseline {path} can't be used: {error if content.strip() else 'it is empty'}; "
            "restore it, or delete it and write it anew with --failgain-update-baseline"
        ) from None


def update_baseline(path: Path, measured: Iterable[Entry], *, whole: bool = True) -> list[Entry]:
    """Put `measured` into the file at `path` and leave its other entries as they are.

    An entry that differs from the kept one by no more than rounding stays as it is, and of entries
    of one name with different cases all cases are kept. Unless `measured` is the `whole` of what
    there is to measure, cases of an entry that it lacks stay, too. The file is replaced whole or
    not at all, and not touched where nothing changes. Returns what was written.

    Raises:
        UsageError: when the file there can't be read or the new one can't be written, or when two
            of `measured` have one name and different values for a case.
    """
    new = {(entry.environment, entry.harness): entry for entry in _merged(measured)}
    try:
        with _alone(path):
            known = read_baseline(path)
            if not whole:
                new = {key: _beside_kept(entry, known.get(key)) for key, entry in new.items()}
            written = {
                key: entry
                for key, entry in new.items()
                if key not in known or not entry.equals(known[key])
            }
            if written:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, _written({**known, **written}))
                remove_leftovers(path)
    except OSError as error:
        raise UsageError(
            f"can't write the baseline {path}: {error.strerror or error}; make it writable, or "
            "give another with --failgain-baseline"
        ) from error
    return list(written.values())


def _beside_kept(entry: Entry, known: Entry | None) -> Entry:
    """`entry` with the cases that are kept of the same model and settings."""
    if known is None or not entry.is_alike(known):
        return entry
    return entry.filled_up(known)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let no other run update the same file until this one is done."""
    # Not beside the file, which is in the user's repository.
    digest = blake2b(os.fsencode(path.resolve()), digest_size=16).hexdigest()
    lock = FileLock(default_cache_dir() / "locks" / f"{digest}.lock")
    with contextlib.ExitStack() as held:
        # Where there is no place for a lock, there is hardly a second run either.
        with contextlib.suppress(OSError):
            Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock)
        yield


def _merged(measured: Iterable[Entry]) -> Iterator[Entry]:
    """One entry for each name."""
    by_name: dict[_Key, list[Entry]] = {}
    for entry in measured:
        by_name.setdefault((entry.environment, entry.harness), []).append(entry)
    for entries in by_name.values():
        whole = entries[0]
        for other in entries[1:]:
            whole = whole.joined(other)
        yield whole


def _written(entries: Mapping[_Key, Entry]) -> bytes:
    by_environment: dict[str, dict[str, Any]] = {}
    for (environment, harness), entry in sorted(entries.items()):
        by_environment.setdefault(environment, {})[harness] = {
            "model": asdict(entry.model),
            "settings": dict(entry.settings),
            "cases": {
                case_id: {**asdict(case), "record": case.record.split("\n")}
                for case_id, case in entry.cases.items()
            },
        }
    whole = {"failgain_baseline": FORMAT, "entries": by_environment}
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    # Half a character has no UTF-8, but this is how JSON writes it.
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _read(value: object) -> Iterator[Entry]:
    if not isinstance(value, dict):
        raise CaseError("it holds no JSON object")
    whole = _complete(value, ("failgain_baseline", "entries"), "")
    version = whole.required("failgain_baseline", "the number of the format")
    if version != FORMAT:
        raise CaseError(
            f"it is of format {version!r}, and this version of pytest-failgain reads {FORMAT}"
        )
    for environment, harnesses in whole.mapping("entries").items():
        at = f"entries.{environment}"
        for harness, entry in Fields({at: harnesses}, (at,)).mapping(at).items():
            yield _entry(environment, harness, entry, f"{at}.{harness}")


def _entry(environment: str, harness: str, value: object, at: str) -> Entry:
    entry = _complete(value, ("model", "settings", "cases"), at)
    names = [one.name for one in fields(Model)]
    model = _complete(entry.value("model"), names, f"{at}.model")
    return Entry(
        harness=harness,
        environment=environment,
        model=Model(
            name=model.text("name"),
            source=model.text("source"),
            revision=model.text_or_none("revision"),
            weights=model.text("weights"),
            template=model.text("template"),
            dtype=model.text("dtype"),
        ),
        settings=entry.mapping("settings"),
        cases={
            case_id: _case(case, f"{at}.cases.{case_id}")
            for case_id, case in entry.mapping("cases").items()
        },
    )


def _case(value: object, at: str) -> KeptCase:
    case = _complete(value, [one.name for one in fields(KeptCase)], at)
    share = case.value("repeat_probability")
    if share is not None and not 0 <= case.number("repeat_probability") <= 1:
        raise CaseError(f"{case.path('repeat_probability')!r} must be between 0 and 1, not {share}")
    return KeptCase(
        task=case.text("task"),
        decision=case.text("decision"),
        gain_per_token=case.number("gain_per_token"),
        repeat_probability=None if share is None else case.number("repeat_probability"),
        greedy_repeat=case.flag("greedy_repeat", False),
        record="\n".join(case.texts("record")),
    )


def _complete(value: object, names: Sequence[str], at: str) -> Fields:
    """An object with all of these fields: one that lacks a value would not be held to it."""
    found = Fields(value, names, at)
    for name in names:
        found.required(name, "there")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a name stands in it twice: a merge that kept both sides leaves that."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise CaseError(f"{twice!r} stands twice in one place")
    return values
