"""The fixtures. Everything heavy is imported by the fixture that needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from pytest_failgain.stash import FINDINGS, SETTINGS

if TYPE_CHECKING:
    from pytest_failgain.capture.endpoint import Endpoint
    from pytest_failgain.environments.protocol import Environment
    from pytest_failgain.extensions import Extensions
    from pytest_failgain.failgain import Failgain
    from pytest_failgain.harnesses import Harness, RemediedHarness
    from pytest_failgain.scoring.protocol import Scorer
    from pytest_failgain.transcript import Transcript

# Written out, because collecting tests must not import what the names stand for.
ENVIRONMENT_NAMES = ("tool_calls", "program_repair")
REMEDY_NAMES = (
    "instructed",
    "redirected",
    "collapsed",
    "stripped",
    "advised",
    "labelled",
    "described",
    "described-minimal",
    "dropped",
)

NO_MODEL = (
    "no model to measure with: pass --failgain-model smollm2-135m, or set FAILGAIN_MODEL or the "
    "ini key failgain_model"
)


@pytest.fixture(scope="session")
def failgain(request: pytest.FixtureRequest, failgain_extensions: Extensions) -> Failgain:
    """Measures harnesses with the model of this run; skips the test where none is given."""
    config = request.config
    settings, findings = config.stash[SETTINGS], config.stash[FINDINGS]
    if settings.model is None:
        if settings.require_model:
            from pytest_failgain.errors import UsageError

            raise UsageError(f"{NO_MODEL} (failgain_require_model is on)")
        pytest.skip(NO_MODEL)
    from pytest_failgain.failgain import Failgain
    from pytest_failgain.live import pytest_progress

    return Failgain(
        settings.model,
        revision=settings.revision,
        dtype=settings.dtype,
        device=settings.device,
        threads=settings.threads,
        cache_dir=settings.cache_dir,
        offline=settings.offline,
        fold_system=settings.fold_system,
        prompt_format=settings.prompt_format,
        keep_scores=not settings.no_cache,
        cases=settings.cases,
        seed=settings.seed,
        mbpp=settings.mbpp,
        allow_code_execution=settings.allow_code_execution,
        extensions=failgain_extensions,
        progress=pytest_progress(config),
        baseline=settings.baseline_file(config.rootpath),
        update_baseline=settings.update_baseline,
        baseline_command=settings.baseline_command,
        on_measured=findings.measurements.append,
        on_rolled_out=findings.rollouts.append,
        on_compared=findings.comparisons.append,
        on_note=findings.notes.__setitem__,
    )


@pytest.fixture(scope="session")
def failgain_model(failgain: Failgain) -> Scorer:
    """The loaded model, which gives log-probabilities of actions after prompts."""
    return failgain.scorer


@pytest.fixture
def failgain_transcript(request: pytest.FixtureRequest) -> Callable[..., Transcript]:
    """Starts a failure case written by hand: `failgain_transcript("case id")`.

    Without an id, the test's own name is the id.
    """
    from pytest_failgain.transcript import Transcript

    def start(case_id: str | None = None) -> Transcript:
        return Transcript(case_id or request.node.name)

    return start


@pytest.fixture
def failgain_endpoint(request: pytest.FixtureRequest) -> Iterator[Callable[..., Endpoint]]:
    """Starts an endpoint in a model's place: `failgain_endpoint(FailingCall("add", {...}))`.

    It takes what an `Endpoint` takes; several can be started, and all are closed after the test.
    With `set_environment=True` its variables are set until then, through `monkeypatch`.
    """
    from pytest_failgain.capture.endpoint import Endpoint

    with ExitStack() as open_ones:

        def start(*script: Any, set_environment: bool = False, **options: Any) -> Endpoint:
            endpoint = open_ones.enter_context(Endpoint(*script, **options))
            if set_environment:
                monkeypatch = request.getfixturevalue("monkeypatch")
                for name, value in endpoint.environment.items():
                    monkeypatch.setenv(name, value)
            return endpoint

        yield start


@pytest.fixture(scope="session", params=ENVIRONMENT_NAMES)
def failgain_environment(
    request: pytest.FixtureRequest, failgain_extensions: Extensions
) -> Environment:
    """Each environment in turn; `failgain_environment.cases(30)` gives failure cases.
    The hook pytest_failgain_environments adds others.
    """
    from pytest_failgain.environments import build_environment
    from pytest_failgain.environments.settings import EnvironmentSettings
    from pytest_failgain.live import pytest_progress
    from pytest_failgain.models import default_cache_dir

    config = request.config
    settings = config.stash[SETTINGS]
    return build_environment(
        request.param,
        EnvironmentSettings(
            seed=settings.seed,
            mbpp=settings.mbpp,
            allow_code_execution=settings.allow_code_execution,
            kept_in=None if settings.no_cache else settings.cache_dir or default_cache_dir(),
            progress=pytest_progress(config),
            on_note=config.stash[FINDINGS].notes.__setitem__,
        ),
        count=settings.cases,
        extensions=failgain_extensions,
    )


@pytest.fixture(scope="session", params=REMEDY_NAMES)
def failgain_remedy(
    request: pytest.FixtureRequest, failgain_extensions: Extensions
) -> RemediedHarness:
    """Each remedy in turn, as a harness on top of the reference harness.
    The hook pytest_failgain_remedies adds others.
    """
    from pytest_failgain.harnesses import remedied

    return remedied(request.param, added=failgain_extensions.remedies)


@pytest.fixture(scope="session")
def failgain_extensions(request: pytest.FixtureRequest) -> Extensions:
    """What conftests and plugins add to environments, remedies, transcript readers and scorers."""
    from pytest_failgain.hooks import answers_of

    return answers_of(request.config).everywhere()


@pytest.fixture(scope="session")
def failgain_harness() -> Harness:
    """The harness under test. Override it with your own; this one is the reference, verbatim."""
    from pytest_failgain.harnesses import VERBATIM

    return VERBATIM
