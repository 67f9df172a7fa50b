"""Programs that try to get out of the sandbox, or to pass without a right answer, as data.

All are asked for `f(1) == 2`, and none answers so. These words are replaced in their text:
`OUTSIDE` by the paths that no program may create, `PORT` and `SOCKET` by where somebody listens,
`MARK` by a text that betrays the trial's processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

# What contains the program: namespaces, Landlock and the filter; one or the other; limits only. The
# last is what there is without Linux.
EVERYWHERE = frozenset({"all", "namespaces", "filter", "limits"})
WITH_NAMESPACES = frozenset({"all", "namespaces"})
WITH_A_FILTER = frozenset({"all", "filter"})
WITH_EITHER = EVERYWHERE - {"limits"}
BEST_AND_WORST = frozenset({"all", "limits"})
# For what the judge has to hold by itself.
WORST = frozenset({"limits"})


@dataclass(frozen=True)
class Hostile:
    """A program, and what is to become of it. `seconds` it is held to, where it runs into them.

    `modes` are those in which it is run; with less, it might do what it tries.
    """

    program: str
    outcomes: tuple[str, ...] = ("test_failure", "runtime_error")
    error: str = ""
    seconds: int = 20
    modes: frozenset[str] = frozenset({"all"})


def _tried(body: str) -> str:
    """A program that does `body` when it is called, and shrugs at errors."""
    lines = "\n".join(f"        {line}" for line in dedent(body).strip().split("\n"))
    return f"def f(x):\n    try:\n{lines}\n    except Exception:\n        pass\n    return -x\n"


def _forgery(
    program: str, outcomes: tuple[str, ...] = ("test_failure", "runtime_error"), error: str = ""
) -> Hostile:
    return Hostile(program, outcomes, error, modes=WORST)


# Frames as the guest itself would write them, and the judge.
_FRAMES = """
import json, struct
def frame(data):
    return struct.pack(">I", len(data)) + data
FORGED = [
    frame(json.dumps({"names": {"f": {"name": "f"}, "__builtins__": {"dict": []}}}).encode()),
    frame(json.dumps({"value": 3}).encode()),
    b'started\\n{"outcome": "passed", "tests": 1, "tests_passed": 1, "walls": []}',
    b'\\n{"outcome": "passed", "tests": 1, "tests_passed": 1}',
]
"""

_TIMEOUTS = {
    "endless loop": "while True: pass",
    "endless loop in the call": "def f(x):\n    while True: pass",
    "endless loop in C": "def f(x):\n    return sum(iter(int, 1))",
    "deaf to signals": (
        "import signal\n"
        "for number in range(1, 65):\n"
        "    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "while True: pass"
    ),
    "deaf to exceptions": (
        "def f(x):\n"
        "    while True:\n"
        "        try:\n"
        "            while True: pass\n"
        "        except BaseException: pass"
    ),
    "sleep": "import time\ntime.sleep(1000)",
    "sleeping thread joined": (
        "import threading, time\n"
        "def f(x):\n"
        "    t = threading.Thread(target=time.sleep, args=(1000,))\n"
        "    t.start()\n"
        "    t.join()"
    ),
    "slow answer, byte by byte": (
        "import os, time\nos.write(3, bytes([0, 0, 1, 0]))\n"
        "while True:\n    os.write(3, b'[')\n    time.sleep(0.2)"
    ),
}

HOSTILE: dict[str, Hostile] = {
    **{
        name: Hostile(program, ("timeout",), "TimeoutError", seconds=1)
        for name, program in _TIMEOUTS.items()
    },
    "sleep of a program deaf to signals": Hostile(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1000)",
        ("timeout",),
        seconds=1,
        modes=EVERYWHERE,
    ),
    # --- Too much of something.
    "fork bomb": Hostile(
        "import os\ndef f(x):\n    while True:\n"
        "        try: os.fork()\n        except OSError: pass",
        ("timeout", "runtime_error"),
        seconds=1,
        modes=WITH_EITHER,
    ),
    "thread bomb": Hostile(
        "import threading, time\ndef f(x):\n"
        "    while True: threading.Thread(target=time.sleep, args=(1000,)).start()",
        ("runtime_error",),
        modes=WITH_EITHER,
    ),
    "memory hog": Hostile(
        "def f(x):\n    return len(bytearray(10**10))",
        ("runtime_error",),
        "MemoryError",
        modes=BEST_AND_WORST,
    ),
    "memory hog in small pieces": Hostile(
        "x = []\nwhile True: x.append([x])", ("runtime_error",), "MemoryError"
    ),
    "memory hog that holds on to it": Hostile(
        "import builtins\nbuiltins.hoard = hoard = []\n"
        "def f(x):\n    while True: hoard.append(bytes(100))",
        ("runtime_error",),
        "MemoryError",
        modes=BEST_AND_WORST,
    ),
    "memory outside its own": Hostile(
        _tried("""
            import os
            held = []
            for _ in range(40):
                held.append(os.memfd_create("x"))
                os.truncate(held[-1], 2**30)
            return 2
        """),
        modes=WITH_A_FILTER,
    ),
    "shared memory of System V": Hostile(
        _tried("""
            import ctypes
            if ctypes.CDLL(None).shmget(0, 1 << 28, 0o1600) >= 0:
                return 2
        """),
        modes=WITH_A_FILTER,
    ),
    "huge output": Hostile(
        "import sys, os\nfor _ in range(100):\n    print('x' * 10**6)\n"
        "    sys.stderr.write('y' * 10**6)\n    os.write(1, b'z' * 10**6)\n"
        "def f(x):\n    return -x",
        ("test_failure",),
        "AssertionError",
        modes=BEST_AND_WORST,
    ),
    "file over the limit": Hostile(
        "def f(x):\n    with open('big', 'wb') as stream:\n"
        "        for _ in range(64): stream.write(bytes(1 << 20))\n    return 2",
        ("runtime_error",),
        "OSError",
        modes=BEST_AND_WORST,
    ),
    "files over the limit together": Hostile(
        "def f(x):\n    for n in range(64):\n"
        "        open(str(n), 'wb').write(bytes(1 << 20))\n    return 2",
        ("runtime_error",),
        "OSError",
        modes=WITH_NAMESPACES,
    ),
    "open files": Hostile(
        "import os\ndef f(x):\n    while True: os.dup(0)", ("runtime_error",), "OSError"
    ),
    "gigabytes into the link": Hostile(
        "import os\nwhile True: os.write(3, b'[' * (1 << 20))",
        ("runtime_error",),
        modes=BEST_AND_WORST,
    ),
    "a long message into the link": Hostile(
        "import os, struct\nos.write(3, struct.pack('>I', 16 << 20))\n"
        "while True: os.write(3, b'[],' * (1 << 18))",
        ("runtime_error",),
    ),
    "large value": Hostile(
        "def f(x):\n    return 'x' * (20 << 20)", ("test_failure",), modes=BEST_AND_WORST
    ),
    "large global": Hostile("x = 'x' * (20 << 20)\ndef f(x):\n    return -x", ("test_failure",)),
    "deep recursion": Hostile("def f(x):\n    return f(x)", ("runtime_error",), "RecursionError"),
    "recursion without a limit": Hostile(
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(x):\n    return f(x)",
        ("runtime_error", "timeout"),
        seconds=1,
    ),
    "nested brackets": Hostile("(" * 100_000 + ")" * 100_000, ("syntax_error",), "SyntaxError"),
    "long chain of operators": Hostile(
        "x = " + "-" * 100_000 + "1", ("syntax_error", "runtime_error", "test_failure")
    ),
    "printing a huge integer": Hostile(
        "def f(x):\n    print(10**6000)\n    return -x", ("test_failure", "runtime_error")
    ),
    "integer with a million digits": Hostile("def f(x):\n    return 10**10**6", ("test_failure",)),
    "endless generator": Hostile(
        "def f(x):\n    while True:\n        yield 2", ("test_failure",), "AssertionError"
    ),
    "list that holds itself": Hostile(
        "def f(x):\n    a = []\n    a.append(a)\n    return a", ("test_failure",), "AssertionError"
    ),
    "deep folders": Hostile(
        "import os\nfor _ in range(900):\n    os.mkdir('d')\n    os.chdir('d')\n"
        "def f(x):\n    return -x",
        modes=BEST_AND_WORST,
    ),
    "closed folders": Hostile(
        "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').close()\nos.chmod('a/b', 0)\n"
        "os.chmod('a', 0)\nos.chmod('.', 0)\ndef f(x):\n    return -x",
        modes=BEST_AND_WORST,
    ),
    # --- Other people's things.
    "files elsewhere": Hostile(
        "import os\nfor path in OUTSIDE:\n    try: open(path, 'w').write('x')\n"
        "    except OSError: pass\n    try: os.mkdir(path + 'd')\n    except OSError: pass\n"
        "def f(x):\n    return -x",
        ("test_failure",),
        modes=WITH_EITHER,
    ),
    "symbolic links": Hostile(
        "import os\nfor n, path in enumerate(OUTSIDE):\n"
        "    try:\n        os.symlink(path, f'link{n}')\n        open(f'link{n}', 'w').write('x')\n"
        "    except OSError: pass\n"
        "def f(x):\n    return -x",
        ("test_failure",),
        modes=WITH_EITHER,
    ),
    "hard links and moves": Hostile(
        "import os\nopen('mine', 'w').close()\nfor path in OUTSIDE:\n"
        "    for way in os.link, os.rename:\n"
        "        try: way('mine', path)\n        except OSError: pass\n"
        "def f(x):\n    return -x",
        ("test_failure",),
        modes=WITH_EITHER,
    ),
    "network": Hostile(
        _tried("""
            import socket
            socket.create_connection(("127.0.0.1", PORT), 1).sendall(b"out")
            return 2
        """),
        ("test_failure",),
        modes=WITH_EITHER,
    ),
    "UNIX socket": Hostile(
        _tried("""
            import socket
            link = socket.socket(socket.AF_UNIX)
            link.connect(SOCKET)
            link.sendall(b"out")
            return 2
        """),
        ("test_failure",),
        modes=WITH_A_FILTER,
    ),
    "the host's processes": Hostile(
        _tried("""
            import os
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if pid != "1" and int(pid) != os.getpid() and b"pytest" in open(
                    f"/proc/{pid}/cmdline", "rb").read():
                    return 2
        """),
        ("test_failure",),
        modes=WITH_NAMESPACES,
    ),
    "memory of other processes": Hostile(
        _tried("""
            import os
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if int(pid) != os.getpid():
                    try: open(f"/proc/{pid}/mem", "rb+").close()
                    except OSError: continue
                    return 2
        """),
        ("test_failure",),
        modes=WITH_EITHER,
    ),
    "ptrace": Hostile(
        _tried("""
            import ctypes, os
            if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0:
                return 2
        """),
        ("test_failure",),
        modes=BEST_AND_WORST,
    ),
    "namespaces of its own": Hostile(
        _tried("""
            import ctypes
            libc = ctypes.CDLL(None)
            if libc.unshare(0x10000000) == 0 or libc.unshare(0x20000) == 0:
                return 2
        """),
        ("test_failure",),
        modes=WITH_A_FILTER,
    ),
    "mounts and users": Hostile(
        _tried("""
            import ctypes, os
            libc = ctypes.CDLL(None)
            if libc.mount(b"none", b"/", None, 0x1020, None) == 0:
                return 2
            if libc.umount2(b"/proc", 2) == 0 or libc.umount2(b".", 2) == 0:
                return 2
            for change in os.setuid, os.setgid, os.seteuid:
                for user in {0, 1, 12345} - {os.getuid()}:
                    try: change(user)
                    except OSError: continue
                    return 2
            os.chroot(".")
            return 2
        """),
        ("test_failure",),
        modes=WITH_EITHER,
    ),
    "permissions of others' files": Hostile(
        _tried("""
            import os, sys
            for path in "/", "/etc/passwd", "/tmp", os.__file__, sys.executable:
                try: os.chmod(path, os.stat(path).st_mode)
                except OSError: continue
                return 2
        """),
        ("test_failure",),
        modes=WITH_NAMESPACES,
    ),
    # --- Life after death.
    "SIGKILL to its parent": Hostile(
        "import os\nos.kill(os.getppid(), 9)\ndef f(x):\n    return -x", modes=WITH_EITHER
    ),
    "SIGKILL to process 1": Hostile(
        "import os\nos.kill(1, 9)\ndef f(x):\n    return -x", modes=WITH_NAMESPACES
    ),
    "signals to process 1": Hostile(
        "import os\nfor n in range(1, 32):\n    try: os.kill(1, n)\n    except OSError: pass\n"
        "def f(x):\n    return -x",
        modes=WITH_NAMESPACES,
    ),
    "SIGKILL to all": Hostile(
        "import os\nos.kill(-1, 9)\ndef f(x):\n    return -x", modes=WITH_NAMESPACES
    ),
    "thread that goes on": Hostile(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\ndef f(x):\n    return -x",
        modes=BEST_AND_WORST,
    ),
    "zombie": Hostile(
        "import os\ndef f(x):\n    if os.fork() == 0: os._exit(0)\n    return -x",
        modes=BEST_AND_WORST,
    ),
    "child that goes on": Hostile(
        "import os, time\ndef f(x):\n    if os.fork() == 0: time.sleep(1000)\n    return -x",
        modes=BEST_AND_WORST,
    ),
    "grandchild in a session of its own": Hostile(
        "import os, time\ndef f(x):\n    if os.fork() == 0:\n        os.setsid()\n"
        "        if os.fork() == 0: time.sleep(1000)\n        os._exit(0)\n    return -x",
        modes=WITH_EITHER,
    ),
    "grandchild without the death signal": Hostile(
        "import ctypes, os, time\nprctl = ctypes.CDLL(None).prctl\ndef f(x):\n"
        "    prctl(1, 0, 0, 0, 0)\n    if os.fork() == 0:\n        os.setsid()\n"
        "        time.sleep(1000)\n    return -x",
        modes=WITH_EITHER,
    ),
    "sleep without the death signal": Hostile(
        "import ctypes, os, time\nctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\nos.setsid()\n"
        "os.close(3)\ntime.sleep(1000)\ndef f(x):\n    return -x",
        modes=BEST_AND_WORST,
    ),
    "another program": Hostile(
        "import os\ndef f(x):\n    os.execv('/bin/sleep', ['MARK', '1000'])",
        ("timeout",),
        seconds=1,
        modes=BEST_AND_WORST,
    ),
    "another program that answers": Hostile(
        "import os\ndef f(x):\n    os.execv('/bin/sh', ['MARK', '-c', 'echo passed >&3'])"
    ),
    # --- Nothing to hold on to.
    "exit before the asserts": Hostile(
        "import os\nos._exit(0)",
        ("runtime_error",),
        "SystemExit: the program ended its own",
        modes=BEST_AND_WORST,
    ),
    "exit in the call": Hostile(
        "import os\ndef f(x):\n    os._exit(0)", ("runtime_error",), "SystemExit: the program ended"
    ),
    "segmentation fault": Hostile(
        "import ctypes\ndef f(x):\n    ctypes.string_at(0)",
        ("runtime_error",),
        "SystemError",
        modes=BEST_AND_WORST,
    ),
    "abort": Hostile("import os\ndef f(x):\n    os.abort()", ("runtime_error",), "SystemError"),
    "every file closed": Hostile(
        "import os\nos.closerange(0, 1000)\ndef f(x):\n    return -x",
        ("runtime_error",),
        modes=BEST_AND_WORST,
    ),
    "deleted folder": Hostile(
        "import os, shutil\nshutil.rmtree(os.getcwd(), ignore_errors=True)\n"
        "def f(x):\n    return -x",
        modes=BEST_AND_WORST,
    ),
    "input": Hostile("def f(x):\n    return input()", ("runtime_error",), "EOFError"),
    "missing module": Hostile(
        "import numpy_of_another_world", ("runtime_error",), "ModuleNotFoundError"
    ),
    "the plugin's own modules": Hostile(
        "import pytest, pytest_failgain",
        ("runtime_error",),
        "ModuleNotFoundError",
        modes=BEST_AND_WORST,
    ),
    "the sandbox's own modules": Hostile(
        "import inside.main\nfrom inside import judge\nimport sys\n"
        "def f(x):\n    return sys.path[99]",
        ("runtime_error",),
    ),
    "SystemExit": Hostile("def f(x):\n    raise SystemExit(0)", ("runtime_error",), "SystemExit"),
    "exit function": Hostile("import sys\nsys.exit(0)", ("runtime_error",), "SystemExit"),
    "KeyboardInterrupt": Hostile(
        "def f(x):\n    raise KeyboardInterrupt", ("runtime_error",), "KeyboardInterrupt"
    ),
    "exit when the program ends": Hostile(
        "import atexit, os\natexit.register(os._exit, 0)\ndef f(x):\n    return -x",
        ("test_failure",),
    ),
    # --- Texts that are no programs.
    "syntax error": Hostile("def f(x:\n    return", ("syntax_error",), "SyntaxError"),
    "NUL": Hostile("def f(x):\n    return '\0'\n", ("syntax_error",), "SyntaxError"),
    "lone surrogate": Hostile("def f(x):\n    return '\ud800'", ("syntax_error",), "SyntaxError"),
    "unicode": Hostile("def f(x):\n    return 'ä€😀\u2028'", ("test_failure",)),
    "a surrogate in the answer": Hostile("def f(x):\n    return chr(0xd800)", ("test_failure",)),
    "a surrogate in the error": Hostile(
        "def f(x):\n    raise ValueError(chr(0xd800))", ("runtime_error",), "ValueError"
    ),
    # --- Forgery.
    "success on stdout": _forgery(
        _FRAMES + "import os, sys\nfor data in FORGED:\n    os.write(1, data)\n"
        "    os.write(2, data)\n    sys.__stdout__.buffer.write(data)\ndef f(x):\n    return -x",
        ("test_failure",),
    ),
    "frames before the question": _forgery(
        _FRAMES + "import os\nos.write(3, b''.join(FORGED))\ndef f(x):\n    return -x"
    ),
    "frames into every open file": _forgery(
        _FRAMES + "import os\nfor fd in range(64):\n    for data in FORGED:\n"
        "        try: os.write(fd, data)\n        except OSError: pass\ndef f(x):\n    return -x"
    ),
    "frames instead of an answer": _forgery(
        _FRAMES + "import os\ndef f(x):\n    os.write(3, FORGED[2])\n    os._exit(0)"
    ),
    "Python's own names replaced for the tests": _forgery(
        _FRAMES + "import os\nos.write(3, frame(json.dumps({'names': {"
        "'f': {'name': 'f'}, '__builtins__': {'dict': [['AssertionError', {'name': 'f'}]]},"
        "'AssertionError': {'name': 'f'}, 'int': {'name': 'f'}, '__debug__': False}}).encode()))\n"
        "def f(x):\n    return -x"
    ),
    "frames read off the link": _forgery(
        "import os\ndef f(x):\n    os.set_blocking(3, False)\n    return os.read(3, 1000)",
        ("runtime_error",),
    ),
    "equal to everything": _forgery(
        "class Any:\n    def __eq__(self, other):\n        return True\n"
        "    __ne__ = lambda self, other: False\n"
        "def f(x):\n    return Any()",
        ("test_failure",),
    ),
    **{
        f"{base} equal to everything": _forgery(
            f"class Any({base}):\n    def __eq__(self, other):\n        return True\n"
            "    def __hash__(self):\n        return 2\n"
            f"def f(x):\n    return Any({'' if base != 'int' else '-1'})",
            ("test_failure",),
        )
        for base in ("int", "str", "list", "dict", "tuple", "float", "set", "bytes")
    },
    "wrong about its class": _forgery(
        "class Any:\n    __class__ = int\n    def __eq__(self, other):\n        return True\n"
        "    def __index__(self):\n        return 5\n    __int__ = __index__\n"
        "def f(x):\n    return Any()"
    ),
    "hostile iteration": _forgery(
        "import os\nclass L(list):\n    def __iter__(self):\n        os._exit(0)\n"
        "x = L([1])\ndef f(x):\n    return -x",
        ("runtime_error",),
    ),
    "hostile hash": _forgery(
        "class K:\n    def __hash__(self):\n        raise SystemExit\n"
        "class D(dict):\n    def items(self):\n        raise SystemExit(0)\n"
        "def f(x):\n    return D()",
        ("runtime_error",),
        "SystemExit",
    ),
    "hostile text of an error": _forgery(
        "class E(Exception):\n    def __str__(self):\n        raise SystemExit(0)\n"
        "def f(x):\n    raise E",
        ("runtime_error",),
        "E",
    ),
    "hostile name of an error": _forgery(
        "class M(type):\n    @property\n    def __name__(cls):\n        raise SystemExit(0)\n"
        "class E(Exception, metaclass=M):\n    pass\ndef f(x):\n    raise E",
        ("runtime_error",),
    ),
    "an error that is called AssertionError": _forgery(
        "class AssertionError(Exception):\n    pass\ndef f(x):\n    raise AssertionError('no')",
        ("runtime_error",),
        "AssertionError",
    ),
    "an error that is called like the judge's": _forgery(
        "class GuestSlowError(BaseException):\n    pass\ndef f(x):\n    raise GuestSlowError",
        ("runtime_error",),
    ),
    "builtins replaced": _forgery(
        "import builtins\n"
        "for name in ('sum', 'len', 'isinstance', 'type', 'open', 'str', 'int', 'list',\n"
        "             'AssertionError', 'BaseException', 'compile', 'exec', '__import__'):\n"
        "    setattr(builtins, name, lambda *a, **k: 2)\n"
        "def f(x):\n    return -x"
    ),
    "asserts replaced": _forgery(
        "import builtins, sys, os\nbuiltins.AssertionError = SystemExit\n"
        "sys.settrace(lambda *a: None)\nsys.excepthook = lambda *a: os._exit(0)\n"
        "sys.exit = os._exit = exit = quit = lambda *a: None\ndef f(x):\n    return -x",
        ("test_failure",),
        "AssertionError",
    ),
    "the guest's own code replaced": _forgery(
        "import gc, sys, types\n"
        "for module in [m for n, m in sys.modules.items() if n.startswith('inside')]:\n"
        "    for name, value in list(vars(module).items()):\n"
        "        if isinstance(value, types.FunctionType):\n"
        "            value.__code__ = (lambda *a, **k: 2).__code__\n"
        "def f(x):\n    return -x"
    ),
    "a search for the tests": _forgery(
        _tried("""
            import gc, os, sys
            wanted = "assert" + " f(1)"
            spaces = [each for each in gc.get_objects() if isinstance(each, dict)]
            frame = sys._getframe()
            while frame:
                spaces.append(frame.f_locals)
                frame = frame.f_back
            texts = [v for space in spaces for v in space.values() if isinstance(v, str)]
            found = [text for text in texts if wanted in text and text is not wanted]
            if found or wanted in str(sys.argv) + str(os.environ) + sys.stdin.read():
                return 2
            if wanted.encode() in open("/proc/self/cmdline", "rb").read():
                return 2
        """),
        ("test_failure",),
    ),
    "the environment": _forgery(
        _tried("""
            import os, sys
            if os.environ or len(sys.argv) > 1 or sys.stdin.read():
                return 2
        """),
        ("test_failure",),
    ),
    "a path to modules of its own": _forgery(
        "import os, sys\nopen('datetime.py', 'w').write('import os; os._exit(0)')\n"
        "sys.path.insert(0, os.getcwd())\n"
        "def f(x):\n    import _io\n    os.write(3, b'')\n"
        "    from datetime import date\n    return date(1, 1, 1)",
    ),
}
