"""The walls: namespaces, unprivileged users, limits, Landlock and the filter of system calls.

Everything that the platform lacks is left out, and what there is gets reported. Linux has all of
it since 5.13, also for a user who is not root. Namespaces are what containers and distributions
often forbid; Landlock and the filter need no permission.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from .call_filter import PR_SET_PDEATHSIG, deny_calls

_NEWUSER = 0x10000000
_NAMESPACES = {
    "network": 0x40000000,
    "processes": 0x20000000,
    "files": 0x00020000,
    "ipc": 0x08000000,
}

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
# The rights to change something, by their bits; newer versions of Landlock know more of them.
_WRITE, _REMOVE_AND_MAKE, _MOVE, _TRUNCATE = 1 << 1, 0x1FF << 4, 1 << 13, 1 << 14
_SIGNALS_AND_ABSTRACT_SOCKETS, _O_PATH = 3, 0o10000000
# Where a user has sockets and terminals, which can be written to in a read-only folder, too.
_HIDDEN = ("/run", "/tmp", "/var/tmp", "/dev/shm", "/dev/pts")

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_SIGKILL = 9


class Walls(NamedTuple):
    """What was achieved so far. `users` are the numbers of a judge and a guest of their own."""

    names: frozenset[str]
    users: tuple[int, int] | None = None


def enter_namespaces(folder: str, wanted: frozenset[str]) -> Walls:
    """Leave the machine's namespaces. The next child is the first process of the new ones.

    A process namespace ends with its first process, and takes along whoever is in it.
    """
    libc = _libc()
    names: set[str] = set()
    users: tuple[int, int] | None = None
    # The range that the maps of most containers have, too.
    first = 20_000 + int.from_bytes(os.urandom(2), "big") % 40_000
    if os.geteuid() == 0:
        names |= _unshared(libc, wanted)
        readable = _open_to_all(os.path.dirname(os.__file__))
        if "processes" in names and ("files" in names or readable):
            users = (first, first + 1)
        elif readable:
            # The judge and the guest have to share a user then, so that one can end the other.
            _give(folder, first)
            if _become(first):
                names.add("user")
    # After that, what was left before can't be built in any more.
    alone = not names & _NAMESPACES.keys()
    if alone and "user_namespace" in wanted and _enter_user_namespace(libc):
        names |= {"user_namespace"} | _unshared(libc, wanted - names)
    return Walls(frozenset(names), users)


def _unshared(libc: Any, wanted: frozenset[str]) -> set[str]:
    return {
        name
        for name, flag in _NAMESPACES.items()
        if name in wanted and libc is not None and libc.unshare(flag) == 0
    }


def _enter_user_namespace(libc: Any) -> bool:
    user, group = os.geteuid(), os.getegid()
    if libc is None or libc.unshare(_NEWUSER) != 0:
        return False
    # A process that changed its user does not own its files in /proc any more.
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        for file, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{file}", "w") as stream:
                stream.write(line)
    except OSError:
        return False
    return True


def mount_read_only(folder: str, walls: Walls, file_bytes: int) -> Walls:
    """In a mount namespace: everything read-only, but a new and bounded file system at `folder`."""
    names = walls.names
    libc = _libc()
    if "files" not in names:
        return _without_files(folder, walls)
    attributes = struct.pack("QQQQ", _MS_RDONLY, 0, 0, 0)
    if (
        libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0
        or libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, len(attributes))
        != 0
    ):
        return _without_files(folder, walls)
    plain = _MS_NOSUID | _MS_NODEV
    hidden = [place for place in _HIDDEN if os.path.isdir(place) and not _holds_python(place)]
    for place in hidden:
        libc.mount(b"none", place.encode(), b"tmpfs", plain, b"size=64k")
        if folder.startswith(f"{place}/"):
            os.makedirs(folder)
    if walls.users and hidden:
        _bring_python(libc, f"{hidden[0]}/python")
    options = f"size={file_bytes},nr_inodes=1000,mode=1777".encode()
    if libc.mount(b"none", os.fsencode(folder), b"tmpfs", plain, options) != 0:
        return _without_files(folder, walls)
    os.chdir(folder)
    for place in hidden:
        libc.mount(b"none", place.encode(), None, plain | _MS_REMOUNT | _MS_RDONLY, None)
    if "processes" in names:
        libc.mount(b"none", b"/proc", b"proc", plain | _MS_NOEXEC, None)
    return walls


def _without_files(folder: str, walls: Walls) -> Walls:
    # Another user could not read a standard library in a closed folder.
    users = walls.users if _open_to_all(os.path.dirname(os.__file__)) else None
    if users is not None:
        _give(folder, users[1])
    return Walls(walls.names - {"files"}, users)


def _give(folder: str, user: int) -> None:
    with contextlib.suppress(OSError):
        os.chown(folder, user, -1)


def _bring_python(libc: Any, place: str) -> None:
    """Show the standard library at `place`: where it is may be closed to all but root."""
    moved: dict[str, str] = {}
    for number, path in enumerate(sys.path):
        if os.path.isdir(path):
            shown = f"{place}/{number}"
            os.makedirs(shown)
            if libc.mount(os.fsencode(path), shown.encode(), None, _MS_BIND | _MS_REC, None) == 0:
                moved[path] = sys.path[number] = shown
    sys.path_importer_cache.clear()
    # Packages that are imported already know where the rest of them is.
    for module in list(sys.modules.values()):
        folders = getattr(module, "__path__", None)
        if isinstance(folders, list):
            for number, path in enumerate(folders):
                home, _, name = path.rpartition("/")
                folders[number] = f"{moved[home]}/{name}" if home in moved else path


def _open_to_all(path: str) -> bool:
    """Whether any user may read the folder `path`."""
    while True:
        if not os.stat(path).st_mode & 0o001:
            return False
        if os.path.dirname(path) == path:
            return True
        path = os.path.dirname(path)


def _holds_python(place: str) -> bool:
    """Whether the interpreter's own files are under `place`, so that it can't be hidden."""
    roots = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.executable, *sys.path]
    return any(os.path.realpath(root).startswith(f"{os.path.realpath(place)}/") for root in roots)


def confine(user: int | None, limits: Mapping[str, Any], names: frozenset[str]) -> frozenset[str]:
    """Give up all privileges and take on the limits, for good. What of it worked is returned.

    With Landlock, nothing outside the working folder can be changed.
    """
    libc = _libc()
    done: set[str] = set()
    for limit, value in (
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", limits["cpu_seconds"]),
        ("RLIMIT_AS", limits["memory_bytes"]),
        ("RLIMIT_FSIZE", limits["file_bytes"]),
        ("RLIMIT_NOFILE", 64),
    ):
        if _limited(limit, value):
            done.add(limit)
    if user is not None and _become(user):
        done.add("user")
    if libc is not None:
        done |= _denied(libc, names)
    # This counts all processes of a user. Behind the filter a program starts none; so there, one
    # that shares its user need not be refused a thread because of what else is running.
    alone = user is not None or not names.isdisjoint(("user", "user_namespace"))
    if (alone or "filter" not in done) and _limited("RLIMIT_NPROC", limits["processes"]):
        done.add("RLIMIT_NPROC")
    return frozenset(done)


def _denied(libc: Any, names: frozenset[str]) -> set[str]:
    """Give up what only Linux knows of."""
    done = set()
    # No capabilities, whatever user it is; and none to be had from a file.
    libc.capset(struct.pack("II", 0x20080522, 0), bytes(24))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Only now, since a new user starts without.
    die_with_parent()
    hide_memory()
    if "landlock" in names and _landlocked(libc):
        done.add("landlock")
    if "filter" in names and deny_calls(libc, contained="processes" in names):
        done.add("filter")
    return done


def die_with_parent() -> None:
    """Be killed when the process that started this one ends."""
    libc = _libc()
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def _landlocked(libc: Any) -> bool:
    version = libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    changes = _WRITE | _REMOVE_AND_MAKE
    changes |= (_MOVE if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = struct.pack("Q", changes)
    if version >= 6:
        rules += struct.pack("QQ", 0, _SIGNALS_AND_ABSTRACT_SOCKETS)
    ruleset = libc.syscall(_LANDLOCK_CREATE, rules, len(rules), 0)
    if ruleset < 0:
        return False
    try:
        for path, allowed in ((".", changes), (os.devnull, changes & (_WRITE | _TRUNCATE))):
            place = os.open(path, _O_PATH)
            libc.syscall(_LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", allowed, place), 0)
            os.close(place)
        return bool(libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def hide_memory() -> None:
    """Let no other process of the user read or change this one."""
    libc = _libc()
    if libc is not None:
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _become(user: int) -> bool:
    try:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    except OSError:
        return False
    return True


def _limited(name: str, value: int) -> bool:
    number = getattr(resource, name, None)
    if number is None:
        return False
    # After the soft limit of CPU time comes a signal that can be ignored, after the hard one none.
    hard = value + 1 if name == "RLIMIT_CPU" else value
    try:
        _, most = resource.getrlimit(number)
        if most != resource.RLIM_INFINITY:
            value, hard = min(value, most), min(hard, most)
        resource.setrlimit(number, (value, hard))
    except (OSError, ValueError):
        return False
    return True


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
