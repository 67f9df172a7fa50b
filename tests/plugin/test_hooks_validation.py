"""What can't be added, and what is told of it: who adds it, which hook, what, and what to do."""

from __future__ import annotations

import pytest
from extending_projects import ALL, ENVIRONMENT, IMPORTS, READER, REMEDY, SCORER

RETURNS = """
def pytest_failgain_{hook}(config):
    return {value}
"""

NAMES = (
    "it must be a text of letters, digits and '_', '.', '-' that begins with none of the last two"
)

REFUSED = {
    "a list of environments": (
        "environments",
        "[1]",
        " gives a list; it must give a dict from names to functions that make environments",
    ),
    "a name with +": (
        "environments",
        "{'a+b': str}",
        f": 'a+b' can't be the name of an environment: {NAMES}",
    ),
    "a name with a space": ("scorers", "{'a b': str}", ": 'a b' can't be the name of a scorer: "),
    "no text as a name": ("environments", "{3: str}", ": 3 can't be the name of an environment: "),
    "a name that begins as an option": ("scorers", "{'-x': str}", ": '-x' can't be the name of "),
    "a built-in environment's name": (
        "environments",
        "{'tool_calls': lambda settings: 1}",
        ": the environment 'tool_calls' has the name of a built-in one; give it another",
    ),
    "an environment instead of a function": (
        "environments",
        "{'mine': 3}",
        (
            ": the environment 'mine' is an int, which can't be called; give a function that makes "
            "the environment, such as lambda settings: MyEnvironment()"
        ),
    ),
    "a function without settings": (
        "environments",
        "{'mine': lambda: 3}",
        (
            ": the environment 'mine' can't be called with EnvironmentSettings alone (too many "
            "positional arguments); give a function that makes the environment, such as *"
        ),
    ),
    "one remedy alone": (
        "remedies",
        "Remedy('mine', replace)",
        " gives a Remedy; it must give a list of Remedy objects",
    ),
    "remedies by name": (
        "remedies",
        "{'mine': Remedy('mine', replace)}",
        " gives a dict; it must give a list of Remedy objects",
    ),
    "falsely empty": ("remedies", "''", " gives a str; it must give a list of Remedy objects"),
    "no remedy": (
        "remedies",
        "['apologised']",
        ": 'apologised' is no Remedy; give Remedy(name, transform), as pytest_failgain has it",
    ),
    "a transform that can't be called": (
        "remedies",
        "[Remedy('mine', 'text')]",
        (
            ": Remedy(name='mine', * has the transform 'text', which can't be called; give a "
            "function from trajectory to trajectory"
        ),
    ),
    "another treatment of failed steps": (
        "remedies",
        "[Remedy('mine', replace, failed_step='dropped')]",
        (
            ": Remedy(name='mine', * has failed_step 'dropped'; it must be one of left, changed, "
            "taken away"
        ),
    ),
    "a built-in remedy's name": (
        "remedies",
        "[Remedy('dropped', replace)]",
        ": the remedy 'dropped' has the name of a built-in one; give it another",
    ),
    "a block's name": ("remedies", "[Remedy('masked', replace)]", ": the remedy 'masked' has the "),
    "the name of no remedy": ("remedies", "[Remedy('none', replace)]", ": the remedy 'none' has "),
    "a remedy twice": (
        "remedies",
        "[Remedy('mine', replace), Remedy('mine', sorted)]",
        ": the remedy 'mine' stands twice; give one of the two another name",
    ),
    "a reader without its methods": (
        "readers",
        "[3]",
        (
            ": 3 is no reader of transcripts, since it lacks name, recognises, read; give an "
            "object with name, recognises(document) and read(document)"
        ),
    ),
    "a class of readers": (
        "readers",
        "[FakeScorer]",
        ": <class 'fake_scorer.FakeScorer'> is a class; give an object of it, FakeScorer()",
    ),
    "a built-in model's name": (
        "scorers",
        "{'smollm2-135m': lambda settings: 1}",
        ": the scorer 'smollm2-135m' has the name of a built-in one; give it another",
    ),
    "a scorer instead of a function": (
        "scorers",
        "{'mine': FakeScorer()}",
        ": the scorer 'mine' is a FakeScorer, which can't be called; give a function that makes *",
    ),
}


def test_name_of_a_built_in_format_is_refused(project: pytest.Pytester) -> None:
    project.makeconftest(IMPORTS + READER.replace('"diary"', '"openai-chat"'))
    check_usage_error(
        project,
        "pytest_failgain_readers of conftest.py: the transcript reader 'openai-chat' has the name "
        "of a built-in one; give it another",
    )


def check_usage_error(project: pytest.Pytester, *lines: str) -> None:
    """Nothing of the project is collected, and the error is all that is told."""
    project.makepyfile("def test_it(): pass")
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {_literal(lines[0])}", *map(_literal, lines[1:])])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def _literal(line: str) -> str:
    return line.replace("[", "[[]")


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_not_be_added_is_refused_before_a_test_is_collected(
    project: pytest.Pytester, what: str
) -> None:
    hook, value, problem = REFUSED[what]
    project.makeconftest(IMPORTS + RETURNS.format(hook=hook, value=value))
    end = "" if problem.endswith("*") else "*" if problem.endswith(" ") else ""
    check_usage_error(project, f"pytest_failgain_{hook} of conftest.py{problem}{end}")


def test_name_that_two_plugins_give_is_refused_with_both(project: pytest.Pytester) -> None:
    project.makeconftest(IMPORTS + REMEDY)
    (project.path / "a_plugin.py").write_text(IMPORTS + REMEDY, "utf-8")
    project.syspathinsert()
    project.makeini("[pytest]\naddopts = -p a_plugin")
    check_usage_error(
        project,
        "pytest_failgain_remedies of the plugin 'a_plugin': the name 'apologised' is taken by a "
        "remedy of pytest_failgain_remedies of conftest.py; give one of the two another name",
    )


def test_name_that_two_folders_give_is_refused_in_the_second(project: pytest.Pytester) -> None:
    for folder in ("one", "two"):
        (project.path / folder).mkdir()
        (project.path / folder / "conftest.py").write_text(IMPORTS + REMEDY, "utf-8")
        test = project.path / folder / f"test_{folder}.py"
        test.write_text("def test_it(failgain_remedy): pass", "utf-8")
    result = project.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR collecting two/test_two.py _*",
            "pytest_failgain_remedies of *: the name 'apologised' is taken by a remedy of *",
            "*= short test summary info =*",
        ]
    )


def test_hook_that_raises_is_told_with_its_line(project: pytest.Pytester) -> None:
    project.makeconftest("def pytest_failgain_readers(config):\n    return config.nothing")
    check_usage_error(
        project,
        f"pytest_failgain_readers of conftest.py raised at {project.path / 'conftest.py'}:2: "
        "AttributeError: 'Config' object has no attribute 'nothing'",
    )


def test_hook_that_wraps_is_refused(project: pytest.Pytester) -> None:
    wrapper = "import pytest\n@pytest.hookimpl(wrapper=True)\n"
    project.makeconftest(f"{wrapper}def pytest_failgain_readers(config):\n    return (yield)")
    check_usage_error(
        project,
        "pytest_failgain_readers of conftest.py is a wrapper, but what others add can't be "
        "changed; let it return what it adds itself",
    )


@pytest.mark.parametrize("optional", [False, True])
def test_misspelt_hook_is_refused_with_the_nearest(
    project: pytest.Pytester, optional: bool
) -> None:
    marker = "import pytest\n@pytest.hookimpl(optionalhook=True)\n" * optional
    project.makeconftest(f"{marker}def pytest_failgain_enviroments(config): pass")
    check_usage_error(
        project,
        f"{project.path / 'conftest.py'}: there is no hook pytest_failgain_enviroments; did you "
        "mean pytest_failgain_environments?",
    )


def test_hook_that_is_like_none_is_refused_with_all(project: pytest.Pytester) -> None:
    project.makeconftest("def pytest_failgain_xyz(config): pass")
    check_usage_error(
        project,
        "*conftest.py: there is no hook pytest_failgain_xyz; there are pytest_failgain_environments"
        ", pytest_failgain_remedies, pytest_failgain_readers, pytest_failgain_scorers",
    )


def test_optional_hook_that_is_like_none_may_be_of_a_later_version(
    project: pytest.Pytester,
) -> None:
    marker = "import pytest\n@pytest.hookimpl(optionalhook=True)\n"
    project.makeconftest(f"{marker}def pytest_failgain_xyz(config): pass")
    project.makepyfile("def test_it(): pass")
    project.runpytest().assert_outcomes(passed=1)


def test_what_is_wrong_in_a_folder_is_told_when_it_is_collected(project: pytest.Pytester) -> None:
    folder = project.path / "one"
    folder.mkdir()
    (folder / "test_it.py").write_text("def test_it(failgain_remedy): pass", "utf-8")
    conftest = folder / "conftest.py"
    conftest.write_text("def pytest_failgain_remedy(config): pass", "utf-8")
    result = project.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR collecting one _*",
            f"{conftest}: there is no hook pytest_failgain_remedy; did you mean *_remedies?",
            "*= short test summary info =*",
        ],
        consecutive=True,
    )
    conftest.write_text("def pytest_failgain_remedies(config): return 3", "utf-8")
    result = project.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR collecting one/test_it.py _*",
            "pytest_failgain_remedies of one/conftest.py gives an int; it must give a list of *",
            "*= short test summary info =*",
        ],
        consecutive=True,
    )


def test_argument_that_no_hook_has_is_refused_by_pytest_itself(project: pytest.Pytester) -> None:
    project.makeconftest("def pytest_failgain_remedies(settings): return []")
    project.makepyfile("def test_it(): pass")
    result = project.runpytest_subprocess()
    assert result.ret != 0
    result.stderr.fnmatch_lines(
        [
            "*Plugin '*conftest.py' for hook 'pytest_failgain_remedies'",
            "hookimpl definition: pytest_failgain_remedies(settings)",
            "Argument(s) {'settings'} are declared in the hookimpl but can not be found in the *",
        ]
    )


ROOMS = "pytest_failgain_environments of conftest.py: the environment 'rooms'"
FAKE = "pytest_failgain_scorers of conftest.py: the scorer 'fake'"

# A conftest, and the lines that end the report.
FAULTY = {
    "environment that raises": (
        ENVIRONMENT.replace("self.settings = settings", "settings.nothing"),
        "conftest.py:*: AttributeError",
        "*",
        f"{ROOMS} can't be made: AttributeError: 'EnvironmentSettings' object has no attribute *",
    ),
    "environment without cases": (
        ENVIRONMENT.replace("def cases", "def examples"),
        (
            f"{ROOMS} came out as a Rooms, which has no cases(): return an object with a name and "
            "a method cases(count=None) that gives failure cases"
        ),
    ),
    "environment without a name": (
        ENVIRONMENT.replace("    name =", "    title ="),
        (
            f"{ROOMS} came out with the name None, under which reports would show it: let the "
            "attribute name of a Rooms be 'rooms'"
        ),
    ),
    "scorer that raises": (
        SCORER.replace("return FakeScorer()", "return 1 / 0"),
        "conftest.py:*: ZeroDivisionError",
        "*",
        f"{FAKE} can't be made: ZeroDivisionError: division by zero",
    ),
    "no scorer": (
        SCORER.replace("return FakeScorer()", "pass"),
        (
            f"{FAKE} came out as None, which has no score(): return an object with an identity and "
            "a method score(pairs) (see pytest_failgain.scoring.protocol)"
        ),
    ),
    "scorer without an identity": (
        SCORER.replace("return FakeScorer()", "return FakeScorer(identity='me')"),
        (
            f"{FAKE} has the identity 'me': let the attribute identity of a FakeScorer be a "
            "ModelIdentity (see pytest_failgain.scoring.protocol)"
        ),
    ),
}


@pytest.mark.parametrize("what", FAULTY)
def test_what_fails_in_use_names_its_hook_and_shows_the_users_line(
    project: pytest.Pytester, what: str
) -> None:
    text, *lines = FAULTY[what]
    project.makeconftest(IMPORTS + text)
    fixture = "failgain_model" if "scorer" in what else "failgain_environment"
    rooms = '@pytest.mark.parametrize("failgain_environment", ["rooms"], indirect=True)\n'
    marker = "" if "scorer" in what else rooms
    project.makepyfile(f"import pytest\n\n{marker}def test_it({fixture}): pass")
    result = project.runpytest("--failgain-model=fake")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([_literal(line) for line in lines])
    result.stdout.no_fnmatch_line("*pytest_failgain/*.py:*")


def test_remedy_that_returns_nothing_is_named(project: pytest.Pytester) -> None:
    project.makeconftest(ALL.replace("return trajectory.then", "trajectory.then"))
    project.makepyfile(
        "def test_it(failgain):\n"
        "    failgain.measure(failgain.remedy('apologised'), failgain.environment('rooms').cases())"
    )
    result = project.runpytest("--failgain-model=fake")
    result.stdout.fnmatch_lines(["*the remedy 'apologised' returned a NoneType; its transform *"])


def test_misspelt_scorer_is_refused_with_the_nearest(project: pytest.Pytester) -> None:
    project.makeconftest(IMPORTS + SCORER)
    project.makepyfile("def test_it(failgain_model): pass")
    result = project.runpytest("--failgain-model=fakes:tiny")
    result.stdout.fnmatch_lines(
        ["there is no scorer 'fakes' for the model 'fakes:tiny'; did you mean 'fake'?"]
    )


def test_unknown_names_are_refused_with_all_that_there_are(project: pytest.Pytester) -> None:
    project.makeconftest(ALL)
    project.makepyfile(
        """
        def test_environment(failgain): failgain.environment("room")
        def test_remedy(failgain): failgain.remedy("sorry")
        """
    )
    result = project.runpytest("--failgain-model=fake")
    result.stdout.fnmatch_lines(
        [
            "*no environment 'room'; there are: tool_calls, program_repair, rooms; did you *",
            "*no remedy 'sorry' (in 'sorry'); there are: verbatim, *, dropped, apologised, and *",
        ]
    )


def test_nothing_acts_in_an_environment_of_cases_alone(project: pytest.Pytester) -> None:
    project.makeconftest(ALL)
    project.makepyfile(
        "def test_it(failgain):\n"
        "    failgain.rollout(failgain.remedy('verbatim'), failgain.environment('rooms'))"
    )
    result = project.runpytest("--failgain-model=fake", "--failgain-cases=2")
    result.stdout.fnmatch_lines(
        ["*can act in *'rooms', which lacks variant, replies, reply_tokens, episodes*"]
    )
