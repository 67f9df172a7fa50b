"""A filter of system calls, which the kernel applies to a process for good (seccomp-BPF)."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any

PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22

# System calls by their numbers on each architecture. Denied to every program: what reaches the
# network or another process's memory, what starts a process, what undoes a namespace, and what
# keeps data where no limit counts it.
_ALWAYS = {
    "shmget": (29, 194),
    "socket": (41, 198),
    "fork": (57, None),
    "vfork": (58, None),
    "msgget": (68, 186),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "pidfd_open": (434, 434),
    "memfd_secret": (447, 447),
}
# Where the user's other processes are in reach.
_SIGNALS = {
    "kill": (62, 129),
    "rt_sigqueueinfo": (129, 138),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_CLONE = (56, 220)
_PRCTL = (157, 167)
_CLONE3 = (435, 435)
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _DENY, _UNKNOWN, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_X32 = 0x40000000
_CLONE_THREAD = 0x10000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16


def deny_calls(libc: Any, *, contained: bool) -> bool:
    """Deny the calls above with EPERM, from now on and in every process that follows."""
    known = _ARCHITECTURES.get(os.uname().machine)
    if known is None:
        return False
    architecture, column = known
    denied = [*_ALWAYS.values(), *(() if contained else _SIGNALS.values())]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # Another way to call the same things.
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _DENY),
        # Its flags are out of a filter's sight. Told that it is missing, the C library uses clone.
        (_EQUAL, 0, 1, _CLONE3[column]),
        (_RETURN, 0, 0, _UNKNOWN),
    ]
    for numbers in denied:
        number = numbers[column]
        if number is not None:
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _DENY)]
    program += [
        (_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
        # So that it can't outlive the judge.
        (_EQUAL, 0, 3, _PRCTL[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 0, 1, PR_SET_PDEATHSIG),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, 2, header, 0, 0) == 0)
