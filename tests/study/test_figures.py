from __future__ import annotations

import builtins
import itertools
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_failgain.conditions import CONDITIONS
from pytest_failgain.errors import UsageError
from pytest_failgain.measures import MEASURES, VARIANTS
from pytest_failgain.study.figures import (
    breakdowns,
    draw_figures,
    gain_by_model,
    repeat_probability,
    surface_and_semantic,
    variants,
)
from pytest_failgain.study.tables import EstimateRow, GroupRow

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.collections import LineCollection  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.image import imread  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402
from matplotlib.text import Text  # noqa: E402

MODELS = (
    "smollm2-135m",
    "HuggingFaceTB/SmolLM2-360M-Instruct",
    "Qwen/Qwen2.5-0.5B-Instruct",
    "Qwen/Qwen3-0.6B",
    "meta-llama/Llama-3.2-1B-Instruct",
    "Qwen/Qwen2.5-1.5B-Instruct",
    "HuggingFaceTB/SmolLM2-1.7B-Instruct",
)
ENVIRONMENTS = ("tool_calls", "program_repair", "support_desk")

# The means of the first model in the first environment: near what is published.
MEANS = {
    ("gain_per_token", "failed"): (-1.03, 0.18),
    ("argument_gain_per_token", "failed"): (-0.78, 0.22),
    ("surface_per_token", "neutral"): (0.86, 0.16),
    ("semantic_per_token", "neutral"): (0.17, 0.07),
    ("surface_per_token", "neutral-padded"): (0.95, 0.15),
    ("semantic_per_token", "neutral-padded"): (0.08, 0.06),
    ("repeat_probability", "before"): (0.06, 0.03),
    ("repeat_probability", "failed"): (0.54, 0.08),
    ("repeat_probability", "described"): (0.11, 0.05),
    ("change_from_failed_per_token", "echoed"): (0.21, 0.06),
    ("change_from_failed_per_token", "terse"): (0.04, 0.05),
    ("change_from_failed_per_token", "verbose"): (-0.06, 0.05),
    ("change_from_failed_per_token", "instructed"): (-0.03, 0.04),
    ("change_from_failed_per_token", "twice"): (0.31, 0.07),
    ("change_from_failed_per_token", "three-times"): (0.42, 0.09),
    ("change_from_failed_per_token", "early"): (-0.12, 0.08),
    ("change_from_failed_per_token", "other-failed"): (-0.64, 0.15),
    ("change_from_failed_per_token", "described"): (-0.91, 0.17),
    ("change_from_failed_per_token", "described-minimal"): (-0.98, 0.18),
}

GROUPS = {
    "operator": "arg_typo date_format drop_arg hallucinated_entity name_for_email readonly_target "
    "tool_typo type_swap",
    "error_family": "attendee_not_found contact_not_found event_not_found file_not_found "
    "format_error missing_argument permission_error team_not_found type_error "
    "unexpected_argument unknown_tool unsupported_conversion",
    "template": "archive cancel_event convert email_file roster schedule",
    "depth": "0 1 2 10",
    "action_tokens": "1-9 10-19 20-39 40+",
}


def estimate(
    measure: str,
    condition: str,
    value: float,
    half: float,
    model: str = MODELS[0],
    environment: str = ENVIRONMENTS[0],
    n: int = 100,
) -> EstimateRow:
    return EstimateRow(
        model=model,
        environment=environment,
        measure=measure,
        condition=condition,
        unit=MEASURES[measure].unit,
        paper="",
        value=value,
        low=max(value - half, 0) if measure == "repeat_probability" else value - half,
        high=value + half,
        n=n,
        n_tasks=n // 2,
        p=0.01,
        p_holm=math.nan,
        d_z=0.5,
    )


def group(
    by: str,
    name: str,
    value: float,
    half: float = 0.2,
    model: str = MODELS[0],
    environment: str = ENVIRONMENTS[0],
    n: int = 12,
) -> GroupRow:
    return GroupRow(
        model=model,
        environment=environment,
        by=by,
        group=name,
        measure="gain_per_token",
        condition="failed",
        unit="nats per token",
        value=value,
        low=value - half,
        high=value + half,
        n=n,
        n_tasks=n,
    )


def study(models: int, environments: int) -> tuple[list[EstimateRow], list[GroupRow]]:
    estimates, groups = [], []
    for row, model in enumerate(MODELS[:models]):
        for column, environment in enumerate(ENVIRONMENTS[:environments]):
            strength = (1 - 0.13 * row) * (1, 0.45, -0.3)[column]
            for (measure, condition), (mean, half) in MEANS.items():
                probability = measure == "repeat_probability"
                value = mean * (1 - 0.1 * row - 0.05 * column) if probability else mean * strength
                spread = half * (1 + 0.2 * column)
                estimates.append(
                    estimate(
                        measure, condition, value, spread, model, environment, 100 - 40 * column
                    )
                )
            for by, names in GROUPS.items():
                for place, name in enumerate(names.split()):
                    value = -strength * (1.4 - 0.17 * place)
                    half = 0.15 + 0.05 * ((place + row) % 4)
                    groups.append(group(by, name, value, half, model, environment, 3 + 5 * place))
    return estimates, groups


def marked(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_marker() not in ("None", "none", "", None)]


def zero_lines(axes: Axes) -> int:
    """How many vertical lines stand at 0."""
    return sum(np.array_equal(line.get_xdata(), (0, 0)) for line in axes.lines)


def points(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """The x and y of every marker, by the label of its series."""
    return {
        str(line.get_label()): [(float(x), float(y)) for x, y in np.array(line.get_data()).T]
        for line in marked(axes)
    }


def segments(axes: Axes, wide: bool) -> list[tuple[float, float]]:
    """The ends of the horizontal lines, those of a dumbbell being wide."""
    return [
        (float(segment[0][0]), float(segment[1][0]))
        for lines in axes.collections
        if isinstance(lines, LineCollection) and (np.max(lines.get_linewidth()) > 3) == wide
        for segment in lines.get_segments()
    ]


def whiskers(axes: Axes) -> list[tuple[float, float]]:
    return segments(axes, wide=False)


def bars(axes: Axes) -> list[tuple[float, float]]:
    return [
        (bar.get_x(), bar.get_x() + bar.get_width())
        for container in axes.containers
        for bar in container
        if isinstance(bar, Rectangle)
    ]


def row_names(axes: Axes) -> list[str]:
    return [label.get_text().replace("\n", "") for label in axes.get_yticklabels()]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def titles(figure: Figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes]


def shown(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def drawn_texts(figure: Figure) -> list[Text]:
    """The texts that are in the picture: matplotlib keeps labels of ticks out of view as well."""
    hidden: set[Text] = set()
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in axis.get_major_ticks():
                if not min(limits) <= tick.get_loc() <= max(limits):
                    hidden |= {tick.label1, tick.label2}
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text.get_visible()
        and text.get_text().strip()
        and text not in hidden
    ]


def study_figures(models: int, environments: int) -> dict[str, Figure]:
    estimates, groups = study(models, environments)
    return {
        "gain": shown(gain_by_model(estimates)),
        "parts": shown(surface_and_semantic(estimates)),
        "probability": shown(repeat_probability(estimates)),
        "variants": shown(variants(estimates)),
        "breakdowns": shown(breakdowns(groups, ENVIRONMENTS[0])),
    }


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of a study of one model in two environments."""
    return draw_figures(*study(1, 2), tmp_path_factory.mktemp("usual") / "new" / "figures")


@pytest.fixture
def long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of models that fit on no line."""
    folder = "/home/somebody/a-folder-of-models/another_folder/"
    names = [f"{folder}{name.replace('/', '-')}{'x' * 40}" for name in MODELS]
    monkeypatch.setitem(globals(), "MODELS", names)


def check_texts(figure: Figure) -> None:
    """Every text is in the picture, at a readable size, and on no other."""
    figure.dpi = 150
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    texts = drawn_texts(figure)
    assert len(texts) > 5
    boxes = [(text, text.get_window_extent(renderer)) for text in texts]
    for text, box in boxes:
        assert float(text.get_fontsize()) >= 8, text
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.width, text
        assert box.y1 <= figure.bbox.height, text
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        # A pixel: lines of one block touch by rounding.
        apart = (
            first.x1 <= second.x0 + 1
            or second.x1 <= first.x0 + 1
            or first.y1 <= second.y0 + 1
            or second.y1 <= first.y0 + 1
        )
        assert apart, (one, other)


@pytest.mark.slow
@pytest.mark.parametrize(("models", "environments"), [(1, 1), (7, 3)])
def test_every_text_can_be_read(models: int, environments: int) -> None:
    for figure in study_figures(models, environments).values():
        check_texts(figure)


@pytest.mark.slow
@pytest.mark.usefixtures("long_names")
def test_every_text_can_be_read_with_long_names() -> None:
    for figure in study_figures(7, 1).values():
        check_texts(figure)


def test_writes_every_figure_under_a_stable_name(usual: list[Path]) -> None:
    assert [path.name for path in usual] == [
        "gain-by-model.png",
        "surface-and-semantic.png",
        "repeat-probability.png",
        "variants.png",
        "breakdowns-tool_calls.png",
        "breakdowns-program_repair.png",
    ]
    assert sorted(usual[0].parent.iterdir()) == sorted(usual)
    # 150 dots an inch, and something on the white.
    for path in usual:
        image = imread(path)
        assert image.shape[1] > 750
        assert image.min() < 0.5


def test_no_file_tells_the_version_of_matplotlib(usual: list[Path]) -> None:
    for path in usual:
        assert b"Software" not in path.read_bytes()
        assert b"matplotlib" not in path.read_bytes()


def test_equal_rows_give_equal_files_whatever_the_users_settings(
    usual: list[Path], tmp_path: Path
) -> None:
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "savefig.facecolor": "red"}):
        own = draw_figures(*study(1, 2), tmp_path)
        assert matplotlib.rcParams["font.size"] == 20
    for one, other in zip(usual, own, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_figures_with_nothing_to_show_are_not_written(tmp_path: Path) -> None:
    assert draw_figures([], [], tmp_path) == []
    estimates = [
        estimate("gain_per_token", "neutral", -0.8, 0.1),
        estimate("change_from_failed_per_token", "described", math.nan, 0.1),
        estimate("repeat_probability", "before", 0.1, 0.1),
    ]
    groups = [group("operator", "drop_arg", -1, n=2), group("unheard_of", "a", -1)]
    written = draw_figures(estimates, groups, tmp_path)
    assert [path.name for path in written] == ["repeat-probability.png"]


def test_an_environments_name_makes_one_file_in_the_folder(tmp_path: Path) -> None:
    names = ["../a", "a b", "a/b"]
    groups = [
        group("operator", operator, -1, environment=name)
        for name in names
        for operator in ("drop_arg", "arg_typo")
    ]
    written = draw_figures([], groups, tmp_path)
    assert len(set(written)) == 3
    assert sorted(tmp_path.iterdir()) == sorted(written)


def test_gain_has_a_panel_an_environment_and_two_points_a_model() -> None:
    figure = shown(gain_by_model(study(3, 2)[0]))
    assert titles(figure) == ["tool_calls", "program_repair"]
    assert legend(figure) == ["whole action", "its arguments alone"]
    for axes in figure.axes:
        assert row_names(axes) == list(MODELS[:3])
        assert axes.yaxis_inverted()
        assert {label: len(places) for label, places in points(axes).items()} == {
            "whole action": 3,
            "its arguments alone": 3,
        }
    first = figure.axes[0]
    assert points(first)["whole action"][0][0] == pytest.approx(-1.03)
    assert points(first)["its arguments alone"][0][0] == pytest.approx(-0.78)
    assert whiskers(first)[0] == pytest.approx((-1.21, -0.85))
    assert [text.get_text() for text in first.texts] == ["n = 100"] * 3
    assert figure.axes[-1].get_xlabel() == (
        "corrective gain (nats per token)\n← repeat likelier     less likely →"
    )


def test_points_lie_in_the_row_of_their_model() -> None:
    rows = [
        estimate("gain_per_token", "failed", value, 0.1, model)
        for value, model in ((-1.0, "a"), (-0.5, "b"), (0.25, "c"))
    ]
    rows.append(estimate("argument_gain_per_token", "failed", -0.4, 0.1, "b"))
    (axes,) = shown(gain_by_model(rows)).axes
    assert row_names(axes) == ["a", "b", "c"]
    whole = points(axes)["whole action"]
    assert [(x, round(y)) for x, y in whole] == [(-1.0, 0), (-0.5, 1), (0.25, 2)]
    assert [(x, round(y)) for x, y in points(axes)["its arguments alone"]] == [(-0.4, 1)]


@pytest.mark.parametrize("bound", ["low", "high"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_interval_without_bounds_is_no_whisker(bound: str, value: float) -> None:
    known = estimate("gain_per_token", "failed", -1.0, 0.2, "a")
    unknown = estimate("gain_per_token", "failed", -0.5, 0.2, "b")
    unknown = replace(unknown, **{bound: value})  # type: ignore[arg-type]
    (axes,) = shown(gain_by_model([known, unknown])).axes
    assert [x for x, _ in points(axes)["whole action"]] == [-1.0, -0.5]
    assert whiskers(axes) == [pytest.approx((-1.2, -0.8))]


def test_a_study_of_single_cases_draws(tmp_path: Path) -> None:
    estimates, groups = study(1, 1)
    estimates = [replace(row, low=math.nan, high=math.nan, n=1) for row in estimates]
    groups = [replace(row, low=math.nan, high=math.nan) for row in groups]
    assert len(draw_figures(estimates, groups, tmp_path)) == 5
    (axes,) = shown(surface_and_semantic(estimates)).axes
    assert whiskers(axes) == []
    assert len(bars(axes)) == 4


def test_a_model_without_the_measure_has_no_row_in_the_panel() -> None:
    rows = [
        estimate("gain_per_token", "failed", -1.0, 0.2, "a"),
        estimate("gain_per_token", "failed", math.nan, 0.2, "b"),
        estimate("gain_per_token", "failed", -0.7, 0.2, "b", "program_repair"),
        estimate("repeat_probability", "failed", 0.5, 0.2, "c", "support_desk"),
    ]
    figure = shown(gain_by_model(rows))
    assert titles(figure) == ["tool_calls", "program_repair"]
    assert [row_names(axes) for axes in figure.axes] == [["a"], ["b"]]


def test_rows_are_equally_high_in_panels_of_unequal_length() -> None:
    rows = [estimate("gain_per_token", "failed", -1.0, 0.2, name) for name in "abcdef"]
    rows.append(estimate("gain_per_token", "failed", -1.0, 0.2, "a", "program_repair"))
    figure = shown(gain_by_model(rows))
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    six, one = (axes.get_position().height for axes in figure.axes)
    assert six == pytest.approx(6 * one, rel=0.02)


def parts(surface: float, semantic: float, control: str = "neutral") -> list[EstimateRow]:
    return [
        estimate("surface_per_token", control, surface, 0.1),
        estimate("semantic_per_token", control, semantic, 0.05),
    ]


@pytest.mark.parametrize(
    ("surface", "semantic", "expected", "whisker"),
    [
        (0.75, 0.25, [(0, 0.75), (0.75, 1)], (0.95, 1.05)),
        (-0.75, -0.25, [(0, -0.75), (-0.75, -1)], (-1.05, -0.95)),
        (0.75, -0.25, [(0, 0.75), (0, -0.25)], (-0.3, -0.2)),
    ],
)
def test_bars_add_up_to_the_negative_gain(
    surface: float,
    semantic: float,
    expected: Sequence[tuple[float, float]],
    whisker: tuple[float, float],
) -> None:
    gain = estimate("gain_per_token", "failed", -(surface + semantic), 0.1)
    figure = shown(surface_and_semantic([*parts(surface, semantic), gain]))
    (axes,) = figure.axes
    assert bars(axes) == [pytest.approx(bar) for bar in expected]
    assert whiskers(axes)[1] == pytest.approx(whisker)
    (marks,) = points(axes).values()
    assert [x for x, _ in marks] == [surface + semantic]
    assert legend(figure) == [
        "surface: the action's text",
        "semantic: being marked as failed",
        "-gain, their sum",
    ]
    assert "nats per token" in axes.get_xlabel()
    assert axes.get_xlabel().endswith("← repeat less likely     likelier →")


def test_each_control_has_its_own_bars() -> None:
    figure = shown(surface_and_semantic(study(2, 3)[0]))
    assert titles(figure) == list(ENVIRONMENTS)
    for axes, n in zip(figure.axes, (100, 60, 20), strict=True):
        assert len(bars(axes)) == 8
        assert len(whiskers(axes)) == 8
        assert [text.get_text() for text in axes.texts] == [
            f"neutral, n = {n}",
            f"neutral-padded, n = {n}",
        ] * 2


def test_a_part_alone_is_drawn_without_the_other_and_without_the_gain() -> None:
    figure = shown(surface_and_semantic(parts(0.75, math.nan)))
    (axes,) = figure.axes
    assert bars(axes) == [pytest.approx((0, 0.75))]
    assert points(axes) == {}
    assert legend(figure) == ["surface: the action's text"]


def test_repeat_probability_goes_from_before_to_after() -> None:
    figure = shown(repeat_probability(study(2, 1)[0]))
    (axes,) = figure.axes
    assert legend(figure) == [
        "before the failure",
        "after the usual record",
        "after the described one",
    ]
    places = points(axes)
    assert [x for x, _ in places["before the failure"]] == pytest.approx([0.06, 0.054])
    assert [x for x, _ in places["after the usual record"]] == pytest.approx([0.54, 0.486])
    assert [x for x, _ in places["after the described one"]] == pytest.approx([0.11, 0.099])
    connectors = segments(axes, wide=True)
    assert connectors == [pytest.approx((0.06, 0.54)), pytest.approx((0.054, 0.486))]
    assert len(whiskers(axes)) == 6
    low, high = axes.get_xlim()
    assert low < 0
    assert high > 1
    assert "(probability)" in axes.get_xlabel()
    assert "not succeeding more" in figure.legends[0].get_title().get_text()


def test_repeat_probability_without_a_before_has_no_connector() -> None:
    rows = [
        estimate("repeat_probability", "failed", 0.5, 0.1),
        estimate("repeat_probability", "described", 0.2, 0.1),
    ]
    figure = shown(repeat_probability(rows))
    (axes,) = figure.axes
    assert set(points(axes)) == {"after the usual record", "after the described one"}
    assert sum(len(lines.get_paths()) for lines in axes.collections) == 2


def test_variants_set_the_remedies_apart_in_the_order_of_the_conditions() -> None:
    figure = shown(variants(list(reversed(study(2, 2)[0]))))
    first, second = figure.axes
    assert (first.get_title(), second.get_title()) == (
        "program_repair (n = 60)",
        "tool_calls (n = 100)",
    )
    rows = sorted(zip(first.get_yticks(), first.get_yticklabels(), strict=True), key=lambda r: r[0])
    names = [label.get_text() for _, label in rows]
    remedies = ["instructed", "described", "described-minimal"]
    others = [name for name in CONDITIONS if name in VARIANTS and name not in remedies]
    assert names == ["remedies", *remedies, "other manipulations", *others]
    bold = {label.get_text() for _, label in rows if label.get_fontweight() == "bold"}
    assert bold == {"remedies", "other manipulations"}
    assert legend(figure) == [MODELS[1], MODELS[0]]
    for axes in (first, second):
        assert axes.yaxis_inverted()
        assert [len(places) for places in points(axes).values()] == [10, 10]
        assert len(whiskers(axes)) == 20
        assert "from the usual record (nats per token)" in axes.get_xlabel()
        assert axes.get_xlabel().endswith("← repeat less likely     likelier →")
        assert zero_lines(axes) == 1
    assert "not succeeding more" in figure.legends[0].get_title().get_text()


def test_variants_lie_in_their_row() -> None:
    rows = [
        estimate("change_from_failed_per_token", name, value, 0.1, model)
        for model, values in (("a", (-1.0, 0.5)), ("b", (-2.0, 0.25)))
        for name, value in zip(("described", "terse"), values, strict=True)
    ]
    (axes,) = shown(variants(rows)).axes
    ticks = dict(zip(row_names(axes), axes.get_yticks(), strict=True))
    half = (ticks["terse"] - ticks["other manipulations"]) / 2
    for label, values in (("a", (-1.0, 0.5)), ("b", (-2.0, 0.25))):
        for (x, y), value, name in zip(
            points(axes)[label], values, ("described", "terse"), strict=True
        ):
            assert x == value
            assert abs(y - ticks[name]) < half


def test_more_models_than_colours_differ_in_look() -> None:
    rows = [
        estimate("change_from_failed_per_token", "described", -1, 0.1, f"model {index}")
        for index in range(20)
    ]
    (axes,) = shown(variants(rows)).axes
    looks = {(line.get_color(), line.get_marker()) for line in marked(axes)}
    assert len(looks) == 20


def test_controls_are_no_variants() -> None:
    rows = [estimate("change_from_failed_per_token", "described", -1, 0.1)]
    others = ("before", "failed", "neutral")
    rows += [
        estimate("change_from_failed_per_token", name, -1, 0.1, "b", "elsewhere") for name in others
    ]
    (axes,) = shown(variants(rows)).axes
    assert row_names(axes) == ["remedies", "described"]
    assert list(points(axes)) == [MODELS[0]]


def blocks(figure: Figure) -> dict[str, list[str]]:
    """The labels of the groups below each heading."""
    return {
        axes.texts[0].get_text(): row_names(axes)
        for axes in figure.axes
        if axes.texts and axes.texts[0].get_text()
    }


def test_groups_come_in_their_order_with_their_number_of_cases() -> None:
    rows = [
        group("action_tokens", "40+", -1.0),
        group("action_tokens", "10-39", -1.0),
        group("action_tokens", "1-9", -1.0),
        group("depth", "10", -1.0, n=4),
        group("depth", "2", -0.5, n=3),
        group("depth", "0", -0.1, n=2),
        group("template", "roster", 0.5),
        group("template", "archive", 0.6),
        group("operator", "drop_arg", -0.2),
        group("operator", "arg_typo", 0.3),
        group("operator", "type_swap", -0.9, n=30),
        group("error_family", "type_error", -0.1),
        group("error_family", "format_error", math.nan),
        group("error_family", "parse_error", 0.4),
    ]
    assert blocks(shown(breakdowns(rows, "tool_calls"))) == {
        "operator": ["type_swap  (n = 30)", "drop_arg  (n = 12)", "arg_typo  (n = 12)"],
        "error family": ["type_error  (n = 12)", "parse_error  (n = 12)"],
        "template": ["roster  (n = 12)", "archive  (n = 12)"],
        "steps before the failure": ["2  (n = 3)", "10  (n = 4)"],
        "tokens of the action": ["1-9  (n = 12)", "10-39  (n = 12)", "40+  (n = 12)"],
    }


def test_a_single_group_is_the_whole_and_not_shown() -> None:
    several = [group("operator", "drop_arg", -1), group("operator", "arg_typo", -1)]
    figure = shown(breakdowns([*several, group("depth", "0", -1)], "tool_calls"))
    assert list(blocks(figure)) == ["operator"]
    assert breakdowns([group("depth", "0", -1)], "tool_calls") is None


def test_breakdowns_have_a_column_a_model() -> None:
    rows = [
        group("operator", "drop_arg", -0.2, model="a", n=10),
        group("operator", "arg_typo", -0.4, model="a"),
        group("operator", "drop_arg", -0.8, model="b", n=14),
        group("operator", "drop_arg", -0.8, model="c", environment="program_repair"),
        replace(group("operator", "drop_arg", -9, model="d"), condition="described"),
        replace(group("operator", "drop_arg", -9, model="d"), measure="gain"),
    ]
    figure = shown(breakdowns(rows, "tool_calls"))
    first, second = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    # On the mean over both models -0.5 and -0.4.
    assert row_names(first) == ["drop_arg  (n = 10 to 14)", "arg_typo  (n = 12)"]
    assert [places for axes in (first, second) for places in points(axes).values()] == [
        [(-0.2, 0), (-0.4, 1)],
        [(-0.8, 0)],
    ]
    assert whiskers(second) == [pytest.approx((-1.0, -0.6))]
    assert [zero_lines(axes) for axes in figure.axes] == [1, 1]
    assert figure.get_supxlabel() == (
        "corrective gain (nats per token)\n← repeat likelier     less likely →"
    )


def test_a_name_with_a_dollar_is_no_formula() -> None:
    rows = [estimate("gain_per_token", "failed", -1.0, 0.2, "a$b_c$")]
    figure = shown(gain_by_model(rows))
    label = figure.axes[0].get_yticklabels()[0]
    assert not label.get_parse_math()


def test_without_matplotlib_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"pip install 'pytest-failgain\[study\]'"):
        draw_figures(*study(1, 1), tmp_path)


def test_the_module_imports_no_matplotlib_and_the_figures_no_pyplot(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import pytest_failgain.study.figures as figures\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from pytest_failgain.study.tables import GroupRow\n"
        "rows = [\n"
        "    GroupRow('m', 'e', 'depth', name, 'gain_per_token', 'failed', '', -1, -2, 0, 9, 9)\n"
        "    for name in '01'\n"
        "]\n"
        "assert len(figures.draw_figures([], rows, Path(sys.argv[1]))) == 1\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
