"""`Failgain`: everything that the fixtures do, without pytest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_failgain.baseline.comparison import Comparison
from pytest_failgain.baseline.keeper import BaselineKeeper, ignore_comparison
from pytest_failgain.conditions import DEFAULT_CONDITIONS, Condition, condition_named
from pytest_failgain.environments import build_environment
from pytest_failgain.environments.protocol import Environment, RolloutEnvironment
from pytest_failgain.environments.settings import EnvironmentSettings, ignore_note
from pytest_failgain.errors import UsageError
from pytest_failgain.extensions import NO_EXTENSIONS, Extensions
from pytest_failgain.harnesses import VERBATIM, Harness, RemediedHarness, remedied
from pytest_failgain.measurement import Measurement, measure
from pytest_failgain.models import default_cache_dir
from pytest_failgain.progress import NoProgress, Progress
from pytest_failgain.rollout.results import Rollouts
from pytest_failgain.rollout.run import rollout
from pytest_failgain.scoring.protocol import Decoder, Scorer
from pytest_failgain.scoring.settings import ScorerSettings
from pytest_failgain.trajectory import FailureCase
from pytest_failgain.transcripts.document import Source
from pytest_failgain.transcripts.failures import IsFailure
from pytest_failgain.transcripts.read import ReadTranscript, read_transcript

if TYPE_CHECKING:
    from pytest_failgain.capture.agent_run import RunAgent
    from pytest_failgain.capture.failing_call import FailingCall
    from pytest_failgain.capture.measured_agent import AgentMeasurement

_Result = TypeVar("_Result", bound=Measurement)


class Failgain:
    """Measures harnesses with one model, and lets it act with them.

    `model` is a name, hub id, directory or .gguf file, or a scorer of your own, by itself or by its
    name in `extensions`. It is loaded when the first measurement needs it. `extensions` are
    environments, remedies, transcript readers and scorers beside the built-in ones. `prompt_format`
    is what writes chat messages for it: its own "template", the "plain" format of headed turns, or
    "auto", the template where there is one with a system role and else the plain format. With
    `keep_scores`, scores, replies and the outcomes of
    executed programs are kept in the cache folder and not found again. `cases`, if given, is the
    number of cases and of tasks that an environment gives wherever a number is asked for. `mbpp` is
    a file of problems for the environment `program_repair`, and `allow_code_execution` lets a
    model's own programs run there. `baseline` is the file that `assert_no_regression` compares
    measurements with; with `update_baseline` nothing is a regression, since what is compared is to
    be the new baseline, which `on_compared` is told of (see `baseline.file.update_baseline`).
    `baseline_command` is what failures tell a user to run for that.
    `on_note` is told what there is to know about an environment's cases and about the cache folder,
    as a subject and a text; see `EnvironmentSettings`.

        failgain = Failgain(model="smollm2-135m")
        cases = failgain.environment("tool_calls").cases(30)
        failgain.measure(failgain.remedy("described"), cases).summary()
    """

    def __init__(
        self,
        model: str | Scorer,
        *,
        revision: str | None = None,
        dtype: str = "float32",
        device: str = "cpu",
        threads: int | None = None,
        cache_dir: Path | str | None = None,
        offline: bool = False,
        fold_system: bool = False,
        prompt_format: str = "template",
        keep_scores: bool = True,
        cases: int | None = None,
        seed: int = 0,
        mbpp: Path | str | None = None,
        allow_code_execution: bool = False,
        extensions: Extensions = NO_EXTENSIONS,
        baseline: Path | str | None = None,
        update_baseline: bool = False,
        baseline_command: str = "pytest --failgain-update-baseline",
        progress: Progress | None = None,
        on_measured: Callable[[Measurement], None] | None = None,
        on_rolled_out: Callable[[Rollouts], None] | None = None,
        on_compared: Callable[[Comparison], None] | None = None,
        on_note: Callable[[str, str], None] = ignore_note,
    ) -> None:
        folder = None if cache_dir is None else Path(cache_dir)
        self._progress = progress or NoProgress()
        self._on_measured = on_measured
        self._on_rolled_out = on_rolled_out
        self._cases = cases
        self._extensions = extensions
        self._baseline = (
            None
            if baseline is None
            else BaselineKeeper(
                Path(baseline),
                {"prompt_format": prompt_format, "fold_system": fold_system, "seed": seed},
                updating=update_baseline,
                command=baseline_command,
                on_compared=on_compared or ignore_comparison,
            )
        )
        self._settings = EnvironmentSettings(
            seed=seed,
            mbpp=None if mbpp is None else Path(mbpp),
            allow_code_execution=allow_code_execution,
            kept_in=(folder or default_cache_dir()) if keep_scores else None,
            progress=self._progress,
            on_note=on_note,
        )
        self._scorer: Scorer | None = None if isinstance(model, str) else model

        def settings(model: str) -> ScorerSettings:
            return ScorerSettings(
                model,
                revision=revision,
                dtype=dtype,
                device=device,
                threads=threads,
                cache_dir=folder or default_cache_dir(),
                offline=offline,
                fold_system=fold_system,
                prompt_format=prompt_format,
                keep_scores=keep_scores,
                progress=self._progress,
                on_note=partial(on_note, "scores"),
            )

        def load() -> Scorer:
            from pytest_failgain.scoring.loading import load_scorer

            assert isinstance(model, str)
            added = extensions.scorer(model, settings)
            return added or load_scorer(
                model,
                revision=revision,
                dtype=dtype,
                device=device,
                threads=threads,
                cache_dir=folder,
                offline=offline,
                fold_system=fold_system,
                prompt_format=prompt_format,
                keep_scores=keep_scores,
                progress=self._progress,
                warn=partial(on_note, "scores"),
            )

        self._load = load

    @property
    def scorer(self) -> Scorer:
        """The scorer, loaded at first use.

        Raises:
            ModelError: when the model can't be found, fetched, converted or loaded.
            UsageError: when there is no such prompt format.
            ExtensionError: when it is an added one, and can't be made.
        """
        if self._scorer is None:
            self._scorer = self._load()
        return self._scorer

    def environment(
        self, name: str, *, action_format: str | None = None, verbosity: str = "standard"
    ) -> Environment:
        """The environment called `name`, with this object's settings and number of cases.

        Without `action_format`, actions are written as the environment does by itself.

        Raises:
            UsageError: when there is none of that name, or an argument is not one that it takes.
            ExtensionError: when it is an added one, and can't be made.
        """
        settings = replace(self._settings, action_format=action_format, verbosity=verbosity)
        return build_environment(name, settings, count=self._cases, extensions=self._extensions)

    def remedy(self, name: str, harness: Harness = VERBATIM) -> RemediedHarness:
        """`harness` with the remedies that `name` joins by "+"; see `harnesses.remedied`.

        Raises:
            UsageError: when a part of the name is no remedy.
        """
        return remedied(name, harness, added=self._extensions.remedies)

    def read_transcript(
        self, source: Source, format: str | None = None, *, is_failure: IsFailure | None = None
    ) -> ReadTranscript:
        """Read the log of an agent, with added readers too; see `transcripts.read.read_transcript`.

        Raises:
            FailgainError: of the kinds that `transcripts.read.read_transcript` names.
        """
        return read_transcript(
            source, format, is_failure=is_failure, readers=self._extensions.readers
        )

    def measure(
        self,
        harness: Harness,
        cases: Sequence[FailureCase],
        *,
        conditions: Sequence[Condition | str] = DEFAULT_CONDITIONS,
    ) -> Measurement:
        """Score the candidates of every case, as `harness` writes it; see `measurement.measure`.

        Raises:
            FailgainError: of the kinds that `measurement.measure` names, and `ModelError`.
        """
        return self._told(self._measured(harness, cases, conditions))

    def measure_agent(
        self,
        run_agent: RunAgent,
        failing_calls: Sequence[FailingCall],
        *,
        task: str = "",
        conditions: Sequence[Condition | str] = DEFAULT_CONDITIONS,
        timeout: float = 60.0,
    ) -> AgentMeasurement:
        """Let an agent fail on each call, and measure what its own harness then sends.

        `run_agent(base_url, task)` is the agent, unchanged, with its client led to `base_url`,
        where a scripted model makes the call; see `capture.agent.capture_agent`. Calls that leave
        no record are skipped cases with their reason.

            call = FailingCall("create_event", {"date": "12 Oct"}, task="Add the dentist.")
            failgain.measure_agent(run_agent, failing_calls=[call]).captures

        Raises:
            UsageError: when a failing call is not usable; see `capture.agent.capture_agent`.
            FailgainError: of the kinds that `measurement.measure` names, and `ModelError`.
        """
        from pytest_failgain.capture.agent import capture_agent
        from pytest_failgain.capture.measured_agent import measure_captures

        captures = capture_agent(run_agent, failing_calls, task=task, timeout=timeout)
        return self._told(
            measure_captures(
                run_agent,
                captures,
                lambda harness, cases: self._measured(harness, cases, conditions),
            )
        )

    def _measured(
        self,
        harness: Harness,
        cases: Sequence[FailureCase],
        conditions: Sequence[Condition | str],
    ) -> Measurement:
        return measure(
            self.scorer,
            harness,
            cases,
            conditions=[
                condition_named(condition) if isinstance(condition, str) else condition
                for condition in conditions
            ],
            progress=self._progress,
        )

    def _told(self, result: _Result) -> _Result:
        """`result`, which whoever wants to know of measurements is told of."""
        if self._baseline:
            result = replace(result, baseline=self._baseline)
        if self._on_measured is not None:
            self._on_measured(result)
        return result

    def rollout(
        self,
        harness: Harness,
        environment: Environment,
        tasks: int = 24,
        max_steps: int = 6,
        *,
        primed: bool = False,
        block: str | None = None,
        demonstrations: int = 8,
        temperature: float = 0.0,
        samples: int = 1,
        seed: int | None = None,
    ) -> Rollouts:
        """Let the model act in `environment` with `harness`; see `rollout.run.rollout`.

        Without a `seed`, replies are drawn with that of the environments' cases.

            environment = failgain.environment("tool_calls")
            failgain.rollout(failgain.remedy("described+searched"), environment).summary()

        Raises:
            FailgainError: of the kinds that `rollout.run.rollout` names, and `ModelError`.
        """
        if not isinstance(environment, RolloutEnvironment):
            given = getattr(environment, "name", environment)
            parts = ("name", "variant", "cases", "replies", "reply_tokens", "episodes")
            missing = ", ".join(part for part in parts if not hasattr(environment, part))
            raise UsageError(
                f"nothing can act in the environment {given!r}, which lacks {missing}: give one "
                'such as failgain.environment("tool_calls"), or your own RolloutEnvironment'
            )
        scorer = self.scorer
        if not isinstance(scorer, Decoder):
            raise UsageError(
                f"{type(scorer).__name__} scores but writes no replies: give a model, or a scorer "
                "with decode() (see scoring.protocol.Decoder)"
            )
        result = rollout(
            scorer,
            harness,
            environment,
            tasks,
            max_steps,
            primed=primed,
            block=block,
            demonstrations=demonstrations,
            temperature=temperature,
            samples=samples,
            seed=self._settings.seed if seed is None else seed,
            progress=self._progress,
        )
        if self._on_rolled_out is not None:
            self._on_rolled_out(result)
        return result
