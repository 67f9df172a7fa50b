"""`python -m pytest_failgain study`."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_failgain import __version__
from pytest_failgain.errors import UsageError
from pytest_failgain.model_options import add_model_options
from pytest_failgain.models import KNOWN

if TYPE_CHECKING:
    from pytest_failgain.progress import Progress
    from pytest_failgain.study.folder import StudyFolder
    from pytest_failgain.study.plan import ModelSettings, StudyPlan
    from pytest_failgain.study.results import Cell, NotMeasured, ScalingRow, Study
    from pytest_failgain.study.run import StudyScorer

_DESCRIPTION = """\
Score every case under every condition of the published method with one or
several models, into a folder of JSON rows, tables and figures. A study that
was stopped goes on where it was when the same command is run again.
"""

_EXAMPLES = """\
examples:
  study smollm2-135m
  study smollm2-135m Qwen/Qwen2.5-0.5B-Instruct --out two-models
  study smollm2-135m --environment tool_calls=275 --seed 1
  study smollm2-135m --cases probe_toolshed.jsonl
"""


def add_parser(commands: Any) -> None:
    """Add the command `study` to the sub-commands of a parser."""
    study: argparse.ArgumentParser = commands.add_parser(
        "study",
        help="run the whole published method on models and cases",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    study.add_argument(
        "models",
        nargs="+",
        metavar="model",
        help=f"a known name ({', '.join(KNOWN)}), a hub id (org/name), a directory or a GGUF file",
    )
    study.add_argument(
        "--out",
        type=_folder,
        default=Path("failgain-study"),
        metavar="DIR",
        help="folder to write to (default: failgain-study)",
    )
    study.add_argument(
        "--environment",
        action="append",
        default=[],
        metavar="NAME[=COUNT]",
        help="an environment, and how many of its cases (default: tool_calls=100 and "
        "program_repair=60, or none with --cases)",
    )
    study.add_argument(
        "--cases",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a file of failure cases, or of the published experiment's items; once for each file",
    )
    study.add_argument(
        "--conditions",
        metavar="NAMES",
        help="conditions, joined by commas (default: all); before and failed are always scored",
    )
    study.add_argument(
        "--seed", type=_seed, metavar="N", help="seed of the environments' cases (default: 0)"
    )
    study.add_argument("--mbpp", type=Path, help="a file of MBPP, to make program_repair of")
    add_model_options(study)
    study.set_defaults(run=run)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 0 or more")
    return int(text)


def _folder(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty text is no folder")
    return Path(text)


def run(options: argparse.Namespace) -> int:
    """Run the study, write its folder, and say what came out: 1 if anything was not measured.

    Raises:
        FailgainError: when the study can't begin, or its folder can't be written to.
    """
    from pytest_failgain.progress import StderrProgress
    from pytest_failgain.study.folder import StudyFolder
    from pytest_failgain.study.record import study_record
    from pytest_failgain.study.results import Study
    from pytest_failgain.study.run import run_study

    progress = StderrProgress()
    plan = _plan(options, progress)
    folder = StudyFolder(options.out)
    with folder.locked():
        started = _now()
        folder.begin(study_record(plan, Study(), started))

        def keep(study: Study) -> None:
            folder.write_table("estimates", study.estimates)
            folder.write_table("breakdowns", study.groups)
            folder.begin(study_record(plan, study, started))

        try:
            study = run_study(
                plan,
                folder,
                _load,
                progress=progress,
                on_cell=keep,
                on_not_measured=_say_not_measured,
            )
        except KeyboardInterrupt:
            _say(
                "interrupted: nothing that was scored is lost; run the same command again to go "
                f"on in {folder.path}"
            )
            return 130
        _write_results(folder, plan, study, started)
    _say_results(folder, study)
    return 1 if study.not_measured else 0


def _plan(options: argparse.Namespace, progress: Progress) -> StudyPlan:
    from pytest_failgain.conditions import CONDITIONS
    from pytest_failgain.environments.settings import EnvironmentSettings
    from pytest_failgain.models import default_cache_dir
    from pytest_failgain.study.plan import (
        DEFAULT_COUNTS,
        ModelSettings,
        StudyPlan,
        cases_of_environment,
        cases_of_file,
        check_names,
        conditions_named,
    )

    environments = options.environment
    if not environments and not options.cases:
        environments = list(DEFAULT_COUNTS)
    if options.mbpp and not any(one.startswith("program_repair") for one in environments):
        raise UsageError(
            f"--mbpp {options.mbpp} is of use for program_repair alone; add "
            "--environment program_repair=60"
        )
    if options.seed is not None and not environments:
        raise UsageError("--seed changes the cases of environments, and there are none; leave it")
    if len(set(options.models)) < len(options.models):
        raise UsageError(f"a model stands twice among {', '.join(options.models)}; name each once")
    wanted = CONDITIONS if options.conditions is None else options.conditions.split(",")
    conditions = conditions_named([name.strip() for name in wanted])
    settings = EnvironmentSettings(
        seed=options.seed or 0,
        mbpp=options.mbpp,
        kept_in=options.cache_dir or default_cache_dir(),
        progress=progress,
        on_note=lambda subject, note: _say(f"note: {note}"),
    )
    case_sets = [cases_of_file(path) for path in options.cases]
    case_sets += [cases_of_environment(request, settings) for request in environments]
    check_names(case_sets)
    return StudyPlan(
        models=tuple(options.models),
        case_sets=tuple(case_sets),
        conditions=conditions,
        settings=ModelSettings(
            dtype=options.dtype,
            device=options.device,
            threads=options.threads,
            cache_dir=options.cache_dir,
            offline=options.offline,
            fold_system=options.fold_system,
            prompt_format=options.prompt_format,
        ),
    )


def _load(
    spec: str, settings: ModelSettings, folder: StudyFolder, progress: Progress
) -> StudyScorer:
    from pytest_failgain.scoring.loading import load_scorer

    return load_scorer(
        spec,
        dtype=settings.dtype,
        device=settings.device,
        threads=settings.threads,
        cache_dir=settings.cache_dir,
        offline=settings.offline,
        fold_system=settings.fold_system,
        prompt_format=settings.prompt_format,
        scores_in=folder.path,
        progress=progress,
        # The scores are in the study's own folder.
        warn=lambda warning: _say(f"warning: {warning.replace('--failgain-cache-dir', '--out')}"),
    )


def _write_results(
    folder: StudyFolder, plan: StudyPlan, study: Study, started: datetime.datetime
) -> None:
    from pytest_failgain.machine import describe
    from pytest_failgain.study.record import study_record
    from pytest_failgain.study.summary import study_page

    scaling = _scaling(study)
    folder.write_table("scaling", scaling)
    made_with = f"pytest-failgain {__version__}, {started:%Y-%m-%d}; {describe()}."
    # The page first: it is what one can least do without, and drawing may fail.
    folder.write_page(study_page(study, made_with, scaling))
    figures = _drawn(folder, study)
    folder.write_page(study_page(study, made_with, scaling, figures))
    folder.finish(study_record(plan, study, started, _now()), figures)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _scaling(study: Study) -> list[ScalingRow]:
    try:
        return study.scaling()
    except UsageError as error:
        _say(f"note: no line through the models' sizes: {error}")
        return []


def _drawn(folder: StudyFolder, study: Study) -> Sequence[Path]:
    from pytest_failgain.study.figures import draw_figures

    try:
        return draw_figures(study.estimates, study.groups, folder.figures)
    except UsageError as error:
        _say(f"note: no figures were drawn: {error}")
        return []
    except OSError as error:
        raise folder.unwritable(error) from error


def _say(text: str) -> None:
    print(own_options(text), file=sys.stderr)


def own_options(text: str) -> str:
    """`text` with the options of a pytest run that it names as this command has them."""
    return text.replace("--failgain-", "--")


def _say_not_measured(problem: NotMeasured) -> None:
    _say(f"error: {problem.place} is not measured: {problem.reason}")


def _say_results(folder: StudyFolder, study: Study) -> None:
    lines = [_outcome(cell, study) for cell in study.cells]
    lines += [f"not measured: {problem.place}" for problem in study.not_measured]
    try:
        print(*lines, f"all of it: {folder.path / 'summary.md'}", sep="\n", flush=True)
    except OSError:
        # Nobody reads on, as behind a pipe to head. All is in the folder.
        sys.stdout = None


def _outcome(cell: Cell, study: Study) -> str:
    from pytest_failgain.progress import duration
    from pytest_failgain.report.numbers import signed
    from pytest_failgain.study.tables import FEWEST_CASES, Estimates

    gain = Estimates(study.estimates).find(cell.model, cell.environment, "gain_per_token", "failed")
    outcome = (
        f"gain {signed(gain)} nats per token"
        if gain
        else f"no means of fewer than {FEWEST_CASES} cases"
    )
    work = cell.work
    return (
        f"{cell.model} on {cell.environment}: {outcome}, {cell.n} cases of {cell.n_tasks} tasks; "
        f"{work.tokens:,} tokens computed where plain passes take {work.plain_tokens:,}, in "
        f"{duration(work.seconds)}"
    )
