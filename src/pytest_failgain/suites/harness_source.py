"""The harness that "package.module:function" names."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType, TracebackType

from pytest_failgain.errors import HarnessError, UsageError
from pytest_failgain.harnesses import VERBATIM, Harness
from pytest_failgain.nearest import did_you_mean
from pytest_failgain.suites import suite


def harness_named(text: str, place: str, folder: Path | None = None) -> Harness:
    """The reference harness, or what "package.module:function" names, imported.

    `place` says in errors which file and line named it. A module in `folder`, where it was named,
    must not be another one of the same name that was imported before.

    Raises:
        UsageError: when there is no such module or function, or it can't be called.
        HarnessError: when the module can't be imported, with what it raised as the cause.
    """
    if text == suite.VERBATIM:
        return VERBATIM
    module_name, _, path = text.partition(":")
    found: object = _imported(module_name, place)
    if folder is not None:
        _check_origin(module_name, folder, place)
    walked = module_name
    for name in path.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{place}: {walked!r} has no {name!r}{did_you_mean(name, dir(found))}")
        found = getattr(found, name)
        walked = f"{walked}.{name}"
    if type(found).__name__ == "FixtureFunctionDefinition":  # pytest keeps the class to itself
        raise UsageError(
            f"{place}: {text!r} is a fixture; to measure what the fixture failgain_harness gives, "
            "leave the harness out"
        )
    if not callable(found):
        raise UsageError(
            f"{place}: {text!r} is of the type {type(found).__name__}, which can't be called; "
            "name a function from a trajectory to chat messages"
        )
    harness: Harness = found
    return harness


def search_beside(path: Path, import_mode: str) -> None:
    """Let modules be found as a test module at `path` would find them in pytest's `import_mode`.

    That puts the folder, or the first one above it that is no package, on `sys.path`.
    """
    folder = root_beside(path)
    if import_mode == "importlib" or str(folder) in sys.path:
        return
    sys.path.insert(len(sys.path) if import_mode == "append" else 0, str(folder))
    importlib.invalidate_caches()


def root_beside(path: Path) -> Path:
    """The folder of the file at `path`, or the first one above it that is no package."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _check_origin(name: str, folder: Path, place: str) -> None:
    """Refuse a module that was imported from elsewhere, where `folder` has one of that name."""
    top = name.partition(".")[0]
    spec = PathFinder.find_spec(top, [str(folder)])
    imported = getattr(sys.modules[top], "__file__", None)
    if spec is None or spec.origin is None or imported is None:
        return
    if Path(spec.origin).resolve() != Path(imported).resolve():
        raise UsageError(
            f"{place}: the module {top!r} was imported from {imported} before, and not from "
            f"{spec.origin}; give one of the two another name"
        )


def _imported(name: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and _is_part(error.name, name):
            raise UsageError(
                f"{place}: there is no module {error.name!r}{_nearest_module(error.name)} Modules "
                "are found as a test module beside this file finds them: for code in src, install "
                'the project, or set pythonpath = ["src"] for pytest'
            ) from None
        error.__traceback__ = _from_the_module(error.__traceback__)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise HarnessError(f"{place}: can't import the module {name!r}: {said}") from error


def _is_part(missing: str | None, name: str) -> bool:
    """Whether the missing module is the wanted one or a package that it would be in."""
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _nearest_module(missing: str | None) -> str:
    package, _, last = (missing or "").rpartition(".")
    paths = getattr(sys.modules.get(package), "__path__", []) if package else None
    names = [module.name for module in pkgutil.iter_modules(paths)]
    # Closer than elsewhere: a resemblance to one of hundreds of installed modules is by chance.
    near = difflib.get_close_matches(last, names, n=1, cutoff=0.8)
    return f"; did you mean {'.'.join(filter(None, (package, *near)))!r}?" if near else "."


def _from_the_module(entry: TracebackType | None) -> TracebackType | None:
    """The entries from the imported module's own on, without those of the import system."""
    while entry is not None:
        name = entry.tb_frame.f_globals.get("__name__", "")
        if name != __name__ and name.partition(".")[0] not in ("importlib", "_frozen_importlib"):
            return entry
        entry = entry.tb_next
    return None
