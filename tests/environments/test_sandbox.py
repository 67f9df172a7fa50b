from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hostile_programs import HOSTILE, Hostile
from hypothesis import given, settings
from test_sandbox_wire import plain_values

from pytest_failgain.environments.sandbox import Frame, Limits, Trial, Verdict, run_program
from pytest_failgain.environments.sandbox.runner import WALLS
from pytest_failgain.errors import UsageError

pytestmark = pytest.mark.slow

if not hasattr(os, "fork"):
    pytest.skip("the sandbox needs Linux or macOS", allow_module_level=True)

NAMESPACES = frozenset({"user_namespace", "network", "processes", "files", "ipc"})
MODES = {
    "all": WALLS,
    "namespaces": NAMESPACES,
    "filter": WALLS - NAMESPACES,
    # What the promises that are kept without Linux leave open: files of the user, the network, and
    # processes that leave their group.
    "limits": frozenset[str](),
}
# Far more than any trial of these takes; it only tells an end from none.
SOON = 15.0


def trial(program: str, *tests: str, limits: Limits | None = None, seed: int = 0) -> Trial:
    tests = tests or ("assert f(1) == 2",)
    return Trial(textwrap.dedent(program), tests, limits or Limits(), seed)


@pytest.fixture(scope="module")
def built() -> dict[str, frozenset[str]]:
    """The walls that this platform has, in each mode."""
    harmless = trial("def f(x):\n    return 2")
    return {mode: run_program(harmless, walls=walls).walls for mode, walls in MODES.items()}


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A text in the command line of every process of the trials, as the place of their folders."""
    mark = f"sandbox-{uuid.uuid4().hex}"
    place = Path(tempfile.mkdtemp(prefix=mark, dir="/tmp"))
    place.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield mark
    shutil.rmtree(place)


def alive(mark: str) -> list[str]:
    """The processes whose command line or working folder has `mark`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes().decode(errors="replace")
            with contextlib.suppress(OSError):
                line += os.readlink(process / "cwd")
            if mark in line:
                found.append(f"{process.name}: {line[-200:]}")
    return found


def all_gone(mark: str) -> bool:
    end = time.monotonic() + SOON
    while alive(mark):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def state_of_this_process() -> dict[str, object]:
    return {
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "folder": os.getcwd(),
        "environment": {**os.environ, "PYTEST_CURRENT_TEST": ""},
        "threads": threading.active_count(),
        "modules": len([name for name in sys.modules if name.startswith("inside")]),
        "umask": os.umask(os.umask(0o22)),
    }


def open_files() -> set[tuple[str, str]]:
    """The open file descriptors, each with what it is open on."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


@pytest.fixture(autouse=True)
def unharmed() -> Iterator[None]:
    """Whatever a trial does, this process is as it was, and has no child left."""
    os.umask(0o22)
    before, files = state_of_this_process(), open_files()
    yield
    assert state_of_this_process() == before
    # What other tests left open may be closed meanwhile.
    assert open_files() <= files
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


class Outside:
    """Places that no program may touch, and listeners to which none may talk."""

    def __init__(self) -> None:
        name = f"failgain-outside-{uuid.uuid4().hex}"
        self._open = Path(tempfile.mkdtemp(prefix="failgain-open-", dir="/var/tmp"))
        self._open.chmod(0o777)
        folders = ["/tmp", "/var/tmp", "/dev/shm", str(Path.home()), str(self._open), "..", "/"]
        self.paths = [os.path.join(folder, name) for folder in folders]
        self.socket = str(self._open / "socket")
        self._listeners = [socket.create_server(("127.0.0.1", 0))]
        self.port = self._listeners[0].getsockname()[1]
        if hasattr(socket, "AF_UNIX"):
            self._listeners.append(socket.socket(socket.AF_UNIX))
            self._listeners[1].bind(self.socket)
            os.chmod(self.socket, 0o777)
            self._listeners[1].listen()

    def touched(self) -> list[str]:
        found = [path for path in self.paths if os.path.lexists(path)]
        found += [path for path in self.paths if os.path.lexists(path + "d")]
        found += [str(path) for path in self._open.iterdir() if path.name != "socket"]
        for listener in self._listeners:
            listener.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                found.append(f"a connection to {listener.getsockname()}")
        return found

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        shutil.rmtree(self._open)


@pytest.fixture
def outside() -> Iterator[Outside]:
    outside = Outside()
    yield outside
    outside.close()


def hostile_cases() -> Iterator[Any]:
    for name, hostile in HOSTILE.items():
        for mode in MODES:
            if mode in hostile.modes:
                quick = mode == "all" and "timeout" not in hostile.outcomes
                marks = () if quick else (pytest.mark.slow,)
                yield pytest.param(hostile, mode, id=f"{name}-{mode}", marks=marks)


@pytest.mark.parametrize(("hostile", "mode"), tuple(hostile_cases()))
def test_hostile_programs_fail_and_leave_nothing_behind(
    hostile: Hostile,
    mode: str,
    mark: str,
    built: dict[str, frozenset[str]],
    request: pytest.FixtureRequest,
) -> None:
    if mode != "limits" and "limits" not in hostile.modes:
        needed = {"processes", "files"} if mode in ("all", "namespaces") else {"filter", "landlock"}
        if not needed <= built[mode]:
            pytest.skip(f"this platform does not let a program be shut in by {sorted(needed)}")
    program = hostile.program.replace("MARK", mark)
    reaches_out = any(word in program for word in ("OUTSIDE", "PORT", "SOCKET"))
    if reaches_out:
        outside = request.getfixturevalue("outside")
        program = program.replace("OUTSIDE", repr(outside.paths))
        program = program.replace("PORT", str(outside.port)).replace("SOCKET", repr(outside.socket))
    limits = Limits(
        cpu_seconds=hostile.seconds, wall_seconds=hostile.seconds, memory_bytes=128 << 20
    )

    started = time.monotonic()
    verdict = run_program(Trial(program, ("assert f(1) == 2",), limits), walls=MODES[mode])

    assert time.monotonic() - started < hostile.seconds + SOON
    assert verdict.outcome in hostile.outcomes, verdict
    assert verdict.error.startswith(hostile.error)
    assert verdict.tests_passed == 0
    verdict.error.encode()
    assert all_gone(mark), alive(mark)
    assert os.listdir(tempfile.gettempdir()) == []
    if reaches_out:
        assert outside.touched() == []


def test_a_full_machine_has_all_walls(built: dict[str, frozenset[str]]) -> None:
    if sys.platform != "linux" or "processes" not in built["all"]:
        pytest.skip("this platform has no namespaces to offer")
    achieved = built["all"]
    assert achieved >= WALLS - {"user_namespace"}
    assert ("user" if os.geteuid() == 0 else "user_namespace") in achieved
    assert {name for name in achieved if name.startswith("RLIMIT_")} == {
        f"RLIMIT_{name}" for name in ("AS", "CORE", "CPU", "FSIZE", "NOFILE", "NPROC")
    }


@pytest.mark.parametrize(
    "walls",
    [*MODES.values(), *(WALLS - {wall} for wall in sorted(WALLS))],
    ids=[*MODES, *(f"no {wall}" for wall in sorted(WALLS))],
)
def test_right_programs_pass_whatever_wall_is_missing(walls: frozenset[str]) -> None:
    program = """
        import ctypes.util, heapq, datetime, decimal, email.message, json.tool, random
        open("own", "w", encoding="cp1250").close()
        open("own", "w").write("x")
        def f(x):
            return datetime.date(2000, 1, x), decimal.Decimal(open("own").read() == "x")
    """
    tests = ("import datetime, decimal", "assert f(2) == (datetime.date(2000, 1, 2), 1)")
    verdict = run_program(trial(program, *tests), walls=walls)
    assert verdict.outcome == "passed", verdict
    assert verdict.walls.isdisjoint(WALLS - walls)


# --- What passes.


@settings(max_examples=15, deadline=None)
@given(plain_values)
def test_plain_values_come_back_as_they_are(value: object) -> None:
    program = f"from math import inf, nan\nGIVEN = {value!r}\ndef f(x):\n    return x"
    verdict = run_program(
        trial(
            program,
            SAME,
            f"from math import inf, nan\nassert same(f({value!r}), {value!r})",
            "assert same(f(GIVEN), GIVEN)",
        )
    )
    assert verdict.passed, (verdict, value)


SAME = """
def same(a, b):
    return type(a) is type(b) and (a == b or repr(a) == repr(b))
"""


RIGHT_PROGRAMS = {
    "generator": (
        """
            def f(x):
                yield from range(x)
        """,
        """
            assert list(f(3)) == [0, 1, 2]
            assert next(f(3)) == 0
            assert sum(f(3)) == 3
        """,
    ),
    "map, filter, zip, enumerate, reversed": (
        """
            def f(x):
                return map(abs, x)
            def g(x):
                return zip(x, reversed(x))
        """,
        """
            assert list(f([-1, 2])) == [1, 2]
            assert tuple(g([1, 2])) == ((1, 2), (2, 1))
        """,
    ),
    "an iterator as an argument": (
        """
            def f(x):
                return sum(x)
        """,
        """
            assert f(iter([1, 2])) == 3
            assert f(x for x in (1, 2)) == 3
        """,
    ),
    "views of a dictionary": (
        """
            D = {'a': 1, 'b': 2}
            def keys():
                return D.keys()
            def values():
                return D.values()
            def items():
                return D.items()
        """,
        """
            assert keys() == {'a', 'b'}
            assert list(values()) == [1, 2]
            assert items() == {('a', 1), ('b', 2)}
        """,
    ),
    "subclasses of the collections": (
        """
            from collections import *
            P = namedtuple('P', 'x y')
            def counter(x):
                return Counter(x)
            def default(x):
                d = defaultdict(list)
                d[x].append(x)
                return d
            def point(x, y):
                return P(x, y)
            def ordered(x):
                return OrderedDict(x)
            def ends(x):
                return deque(x)
        """,
        """
            from collections import Counter, deque
            assert counter('aab') == {'a': 2, 'b': 1} == Counter('aab')
            assert default(1) == {1: [1]}
            assert point(1, y=2) == (1, 2)
            assert ordered([(1, 2)]) == {1: 2}
            assert ends([1, 2]) == deque([1, 2])
        """,
    ),
    "enumerations of numbers and texts": (
        """
            from enum import Enum, IntEnum
            class A(IntEnum):
                X = 3
            class B(str, Enum):
                Y = 'y'
            def f(x):
                return [A.X, B.Y]
        """,
        """
            assert f(1) == [3, 'y']
        """,
    ),
    "dates and exact numbers": (
        """
            from datetime import *
            from decimal import Decimal
            from fractions import Fraction
            def f(x):
                return [date(2024, 2, 29), datetime(1, 2, 3, 4, 5, 6, 7), time(1, 2),
                    timedelta(1, 2, 3), Decimal('1.10'), Fraction(1, 3)]
        """,
        """
            import datetime as d, decimal, fractions
            assert f(1) == [d.date(2024, 2, 29), d.datetime(1, 2, 3, 4, 5, 6, 7),
                d.time(1, 2), d.timedelta(1, 2, 3), decimal.Decimal('1.1'),
                fractions.Fraction(1, 3)]
        """,
    ),
    "helpers, classes and recursion": (
        """
            from __future__ import annotations
            from dataclasses import dataclass
            @dataclass
            class Node:
                value: int
                next: Node | None = None
            def f(x):
                node = None
                for n in range(x):
                    node = Node(n, node)
                return length(node)
            def length(node):
                return 1 + length(node.next) if node else 0
        """,
        """
            assert f(100) == 100
        """,
    ),
    "state between calls": (
        """
            import itertools
            ids = itertools.count(1)
            seen = []
            def f(x):
                seen.append(x)
                return len(seen)
            def new():
                return next(ids)
        """,
        """
            assert f(5) == 1
            assert f(5) == 2
            assert new() == 1
            assert new() == 2
        """,
    ),
    "functions as arguments and results": (
        """
            def twice(g, x):
                return g(g(x))
            def inc(x):
                return x + 1
            def which(x):
                return [inc] if x else twice
        """,
        """
            assert twice(inc, 1) == 3
            assert which(1)[0](1) == 2
            assert which(0)(inc, 2) == 4
        """,
    ),
    "the standard library": (
        """
            import heapq, bisect, itertools, re, array, math, string, functools, statistics
            from typing import List
            @functools.lru_cache
            def f(x: int) -> List[int]:
                heap = [3, 1, 2]
                heapq.heapify(heap)
                return [heapq.heappop(heap), bisect.bisect([1, 3], 2), math.gcd(4, 6),
                    *array.array('i', [7]), *map(int, re.findall(r'\\d', 'a1b2')),
                    *next(itertools.permutations([8, 9]))]
        """,
        """
            assert f(1) == [1, 1, 2, 7, 1, 2, 8, 9]
        """,
    ),
    "errors that the tests expect": (
        """
            class Mine(ValueError):
                pass
            def f(x):
                if x < 0: raise ValueError('negative')
                return [1][x]
            def g(x):
                raise UnicodeDecodeError('ascii', b'x', 0, 1, 'odd')
        """,
        """
            def raised(kind, function, *arguments):
                try:
                    function(*arguments)
                except kind as error:
                    return str(error)
            assert raised(ValueError, f, -1) == 'negative'
            assert raised(IndexError, f, 1) == 'list index out of range'
            assert raised(Exception, g, 1).startswith("'ascii' codec can't decode")
        """,
    ),
    "keyword arguments": (
        """
            def f(a, *rest, b=0, **more):
                return [a, rest, b, more]
        """,
        """
            assert f(1, 2, b=3, c=4) == [1, (2,), 3, {'c': 4}]
            assert f(*[1], **{'x y': 2}) == [1, (), 0, {'x y': 2}]
        """,
    ),
    "constants": (
        """
            PI = 3.5
            NAMES = ['a']
            def f(x):
                return PI * x
        """,
        """
            assert f(2) == PI * 2 and NAMES == ['a']
        """,
    ),
    "asserts with messages, loops and names": (
        """
            def f(x):
                return x * x
        """,
        """
            import math
            for x in range(3):
                assert f(x) == x ** 2, x
            assert math.isclose(f(0.1), 0.01), 'close'
            expected = [f(x) for x in range(3)]
            assert expected == [0, 1, 4] and all(f(x) >= 0 for x in (-1, 1))
        """,
    ),
    "a function called like one of Python's": (
        """
            def sum(a, b):
                return a * b
        """,
        """
            assert sum(2, 3) == 6
        """,
    ),
    "output of the program and the tests": (
        """
            def f(x):
                print('x' * 100_000)
                return x
        """,
        """
            print('y' * 100_000)
            assert f(1) == 1
        """,
    ),
    "files in its own folder": (
        """
            def f(x):
                with open('a.txt', 'w') as s: s.write('é')
                return open('a.txt').read()
        """,
        """
            assert f(1) == 'é'
        """,
    ),
    "threads": (
        """
            from concurrent.futures import ThreadPoolExecutor
            def f(x):
                with ThreadPoolExecutor(2) as pool:
                    return list(pool.map(abs, [-1, -2]))
        """,
        """
            assert f(1) == [1, 2]
        """,
    ),
    "a guard for the main program": (
        """
            def f(x):
                return __name__
            if __name__ == '__main__':
                input()
        """,
        """
            assert f(1) == 'solution'
        """,
    ),
    "large numbers and values": (
        """
            def f(x):
                return [2 ** 5000, -(2 ** 53), list(range(x)), 'x' * x]
        """,
        """
            assert f(10 ** 5) == [2 ** 5000, -(2 ** 53), list(range(10 ** 5)), 'x' * 10 ** 5]
        """,
    ),
    "odd characters": (
        """
            def f(x):
                return x + 'ä\u2028\x0c'
        """,
        """
            assert f('\\ud800\\0') == '\\ud800\\0ä\u2028\x0c'
        """,
    ),
}


@pytest.mark.parametrize(("program", "tests"), RIGHT_PROGRAMS.values(), ids=RIGHT_PROGRAMS)
def test_right_programs_pass(program: str, tests: str) -> None:
    verdict = run_program(trial(program, textwrap.dedent(tests)))
    assert verdict.outcome == "passed", verdict
    assert verdict.tests_passed == verdict.tests > 0
    assert (verdict.error, verdict.frames) == ("", ())


def test_a_program_can_not_replace_the_functions_that_the_tests_use() -> None:
    program = """
        def abs(x):
            return 0
        def len(x):
            return 2
        class set:
            def __eq__(self, other):
                return True
        def f(x):
            return [5, 5, 5]
    """
    for test in ("assert abs(f(1)[0] - 2) < 1", "assert len(f(1)) == 2", "assert set(f(1)) == {2}"):
        assert run_program(trial(program, test)).outcome == "test_failure"


# --- What a verdict says.


@pytest.mark.parametrize(
    ("program", "test"),
    [
        # A class of its own for `==`, or one that is lost on the way.
        (
            "from collections import OrderedDict as D\ndef f(): return D([(2, 1), (1, 2)])",
            "from collections import OrderedDict as D\nassert f() == D([(1, 2), (2, 1)])",
        ),
        (
            "from datetime import *\ndef f(): return datetime(2020, 1, 1, tzinfo=timezone.utc)",
            "from datetime import datetime\nassert f() == datetime(2020, 1, 1)",
        ),
        # Functions of the tests' own, though one of them is what is tested.
        ("def filter(x): return x\ndef set(x): return 1", "assert set(filter([1])) == set([2])"),
        # An end of a loop in the test.
        ("def f(x): raise StopIteration", "assert all(map(f, [1, 2]))"),
        # Silence, and a test that catches everything.
        (
            "import os\ndef f(x): os._exit(0)",
            "try:\n    right = f(1)\nexcept:\n    right = True\nassert right",
        ),
    ],
    ids=["ordered dict", "time zone", "set", "StopIteration", "catch-all"],
)
def test_a_wrong_answer_does_not_pass(program: str, test: str) -> None:
    assert run_program(Trial(program, (test,))).outcome != "passed"


def test_ordered_dicts_compare_in_their_order() -> None:
    program = "from collections import OrderedDict as D\ndef f(): return D([(2, 1), (1, 2)])"
    tests = (
        "from collections import OrderedDict as D",
        "assert f() == D([(2, 1), (1, 2)])",
        "assert f() == {1: 2, 2: 1}",
    )
    assert run_program(Trial(program, tests)).passed


def test_tests_may_use_a_module_that_the_program_imports() -> None:
    program = "import math\ndef f(x): return math.sqrt(x)"
    assert run_program(Trial(program, ("assert math.isclose(f(4), 2)",))).passed


def test_tests_do_not_use_another_module_under_its_name() -> None:
    program = "import cmath as math\ndef f(x): return 2"
    verdict = run_program(Trial(program, ("assert math.isclose(f(4), 2)",)))
    assert not verdict.passed


def test_what_can_not_be_handed_to_a_program_is_named() -> None:
    verdict = run_program(Trial("def f(x): return 1", ("assert f(lambda: 1) == 1",)))
    assert verdict.error == "NotPlainError: a test can't hand function to a program"


def test_a_failed_assert_is_told_by_its_line_and_those_before_are_counted() -> None:
    tests = ("assert f(1) == 1", "x = 3", "assert f(2) == x, 'no'", "assert f(3) == 3")
    verdict = run_program(trial("def f(x):\n    return x", *tests))
    assert verdict.outcome == "test_failure"
    assert (verdict.tests, verdict.tests_passed) == (3, 1)
    assert verdict.error == "AssertionError: no"
    assert verdict.frames == (Frame("tests.py", 3, "<module>", "assert f(2) == x, 'no'"),)


def test_an_error_is_told_by_the_statements_that_led_to_it() -> None:
    program = (
        "def f(x):\n"
        "    total = 0\n"
        "    for each in [x]:\n"
        "        total += g(\n"
        "            each,\n"
        "            0,\n"
        "        )\n"
        "    return total\n"
        "def g(a, b):\n"
        "    return [y for y in\n"
        "            [a / b]]\n"
    )
    verdict = run_program(trial(program))
    assert verdict.outcome == "runtime_error"
    assert verdict.error == "ZeroDivisionError: division by zero"
    assert verdict.frames == (
        Frame("tests.py", 1, "<module>", "assert f(1) == 2"),
        Frame("solution.py", 4, "f", "total += g("),
        Frame("solution.py", 10, "g", "return [y for y in"),
    )


@pytest.mark.parametrize("brackets", ["[]", "set", "{}"])
def test_comprehensions_have_no_frame_on_any_python(brackets: str) -> None:
    inner = {
        "[]": "[1 // y for y in x]",
        "set": "{1 // y for y in x}",
        "{}": "{y: 1 // y for y in x}",
    }
    program = f"def f(x):\n    return {inner[brackets]}"
    verdict = run_program(trial(program, "assert f([0]) == 1"))
    assert [(frame.line, frame.function) for frame in verdict.frames] == [(1, "<module>"), (2, "f")]


def test_an_error_while_loading_is_told_without_the_tests() -> None:
    verdict = run_program(trial("x = 1\nif x:\n    y = undefined\n"))
    assert verdict.outcome == "runtime_error"
    assert verdict.error == "NameError: name 'undefined' is not defined"
    assert verdict.frames == (Frame("solution.py", 3, "<module>", "y = undefined"),)


def test_a_syntax_error_is_told_by_its_line() -> None:
    verdict = run_program(trial("x = 1\ndef f(x)\n    return x"))
    assert verdict.outcome == "syntax_error"
    assert verdict.error.startswith("SyntaxError")
    assert verdict.frames == (Frame("solution.py", 2, "", "def f(x)"),)
    assert (verdict.tests, verdict.tests_passed) == (1, 0)


def test_a_missing_function_is_an_error_of_the_test() -> None:
    verdict = run_program(trial("def g(x):\n    return x"))
    assert (verdict.outcome, verdict.error) == (
        "runtime_error",
        "NameError: name 'f' is not defined",
    )


def test_a_value_that_is_no_plain_data_equals_nothing() -> None:
    verdict = run_program(trial("def f(x):\n    return object()"))
    assert verdict.outcome == "test_failure"


@pytest.mark.parametrize(
    ("program", "ends_by_itself"),
    [
        ("def f(x):\n    while True: pass", True),
        ("import time\ndef f(x):\n    time.sleep(100)", False),
    ],
)
def test_only_a_timeout_by_its_own_work_has_figures(program: str, ends_by_itself: bool) -> None:
    """What a busy machine may have caused is not to be taken for the program's nature."""
    limits = Limits(cpu_seconds=1, wall_seconds=30.0 if ends_by_itself else 1.0)
    verdict = run_program(trial(program, limits=limits))
    assert verdict.outcome == "timeout"
    assert (verdict.cpu_seconds is not None) == ends_by_itself


def test_the_figures_are_those_of_the_program() -> None:
    program = "def f(x):\n    hog = bytearray(100 << 20)\n    return sum(range(5_000_000)) * 0 + 2"
    verdict = run_program(trial(program))
    assert verdict.passed
    assert verdict.cpu_seconds is not None
    assert 0.02 < verdict.cpu_seconds < 5
    assert verdict.memory_bytes is not None
    assert 100 << 20 < verdict.memory_bytes < 200 << 20


def test_a_test_that_takes_too_long_ends_too() -> None:
    """A program may answer with what makes a test long."""
    tests = ("assert sum(range(f(1))) == 2",)
    limits = Limits(cpu_seconds=1, wall_seconds=0.5)
    verdict = run_program(trial("def f(x):\n    return 10**15", *tests, limits=limits))
    assert verdict.outcome == "timeout"


def test_sets_have_the_order_of_the_seed() -> None:
    program = "def f(x):\n    return list({'a', 'b', 'c', 'd', 'e', 'f', 'g'})"
    test = "assert ''.join(f(1)) == 1, ''.join(f(1))"
    orders = [run_program(trial(program, test, seed=seed)).error for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_verdicts_survive_as_dictionaries() -> None:
    verdict = run_program(trial("def f(x):\n    return x"))
    assert Verdict.from_dict(verdict.as_dict()) == verdict


# --- The process that asks.


def test_many_at_once_do_not_disturb_each_other() -> None:
    def one(number: int) -> bool:
        program = f"open('x', 'w').write('{number}')\ndef f(x):\n    return open('x').read()"
        return run_program(trial(program, f"assert f(1) == '{number}'")).passed

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(16)))


@pytest.mark.parametrize("tests", [("f(1) == 2",), (), ("assert",), ("assert '\ud800'",)])
def test_tests_that_are_none_are_refused(tests: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        run_program(Trial("def f(x):\n    return 2", tests))


def test_a_python_that_can_not_be_started_is_an_error_of_usage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for executable in ("", None, "/nowhere/python"):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(UsageError, match="did not start"):
            run_program(trial("def f(x):\n    return 2"))


def test_no_folder_for_temporary_files_is_an_error_of_usage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="did not start"):
        run_program(trial("def f(x):\n    return 2"))


def test_a_temporary_folder_may_be_anywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "with 'quotes' and ünïcode"
    place.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    for walls in MODES.values():
        program = "open('a', 'w').write('b')\ndef f(x):\n    return open('a').read()"
        verdict = run_program(trial(program, "assert f(1) == 'b'"), walls=walls)
        assert verdict.passed, (verdict, walls)
    assert list(place.iterdir()) == []


def test_settings_of_this_process_do_not_reach_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "heapq.py").write_text("1 / 0")
    (tmp_path / "sitecustomize.py").write_text("1 / 0")
    for name, value in {
        "PYTHONPATH": str(tmp_path),
        "PYTHONOPTIMIZE": "2",
        "PYTHONHASHSEED": "5",
        "PYTHONSTARTUP": str(tmp_path / "heapq.py"),
        "PYTHONWARNINGS": "error",
        "PYTHONINSPECT": "1",
        "SECRET": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    program = """
        import heapq, os
        def f(x):
            '''The text.'''
            assert x == 1
            return [f.__doc__, dict(os.environ), hash('a'), '\\d']
    """
    monkeypatch.chdir(tmp_path)
    expected = f"assert f(1) == ['The text.', {{}}, {_hash_of_a()}, '\\\\d']"
    assert run_program(trial(program, expected)).passed
    os.umask(0o077)
    handlers = {
        number: signal.signal(number, signal.SIG_IGN)
        for number in (signal.SIGCHLD, signal.SIGXCPU, signal.SIGALRM, signal.SIGTERM)
    }
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGXCPU})
    try:
        assert run_program(trial(program, expected)).passed
    finally:
        os.umask(0o022)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _hash_of_a() -> str:
    """Of seed 0."""
    return subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"],
        env={"PYTHONHASHSEED": "0"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


CALLER = """
import signal, sys, tempfile
# A shell starts what it runs in the background with this one ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
tempfile.tempdir = sys.argv[1]
from pytest_failgain.environments.sandbox import Limits, Trial, run_program
from pytest_failgain.environments.sandbox.runner import WALLS
program = "import time, signal\\nsignal.signal(15, signal.SIG_IGN)\\ntime.sleep(1000)"
walls = WALLS if sys.argv[2] == "all" else frozenset(sys.argv[2].split())
print("ready", flush=True)
run_program(Trial(program, ("assert 1",), Limits(cpu_seconds=60, wall_seconds=60.0)), walls=walls)
"""


@pytest.mark.parametrize(
    ("mode", "number"),
    [*((mode, signal.SIGKILL) for mode in MODES), ("all", signal.SIGINT), ("all", signal.SIGTERM)],
)
def test_a_trial_ends_with_the_process_that_asked(
    mark: str, mode: str, number: signal.Signals
) -> None:
    if sys.platform != "linux" and number != signal.SIGINT:
        pytest.skip("only Linux ends a process with the one that started it")
    walls = " ".join(MODES[mode])
    command = [sys.executable, "-c", CALLER, tempfile.gettempdir(), walls]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        end = time.monotonic() + SOON
        # The asking one, the one that waits, the judge and the guest.
        while len(alive(mark)) < 4 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(alive(mark)) == 4
        process.send_signal(number)
        process.wait(SOON)
    assert all_gone(mark), alive(mark)
    if number == signal.SIGINT:
        assert os.listdir(tempfile.gettempdir()) == []


def test_an_optimized_python_runs_the_asserts_all_the_same() -> None:
    code = (
        "from pytest_failgain.environments.sandbox import Trial, run_program\n"
        "print(run_program(Trial('def f(x):\\n    assert x\\n    return x', "
        "('assert f(1) == 2',))).outcome)\n"
        "print(run_program(Trial('def f(x):\\n    assert x\\n    return x', "
        "('assert f(0) == 0',))).error)"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["test_failure", "AssertionError"]
