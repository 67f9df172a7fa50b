"""The code blocks of README and docs, run as a reader would run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from published_rows import PublishedFile
from pytest_failgain.fixtures import ENVIRONMENT_NAMES
from pytest_failgain.models import default_cache_dir

PROJECT = Path(__file__).parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
# Taken here, since pytester gives the runs in it another home.
CACHE = default_cache_dir()

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE_NAME = re.compile(r"# (\w+\.py)\n")


def blocks(page: Path) -> tuple[dict[str, str], list[str]]:
    """The blocks that begin with a file's name, by that name, and the other blocks."""
    files: dict[str, str] = {}
    snippets: list[str] = []
    for block in _BLOCK.findall(page.read_text("utf-8")):
        named = _FILE_NAME.match(block)
        if named:
            files[named[1]] = block
        else:
            snippets.append(block)
    return files, snippets


def count_of_tests(page: Path) -> int:
    """How many tests pytest makes of a page's files: each environment makes one."""
    text = "".join(blocks(page)[0].values())
    asked_for = re.search(r"\bfailgain_environment\b", text)
    environments = asked_for and "indirect=True" not in text
    return len(ENVIRONMENT_NAMES) if environments else 1


NEEDS_NO_MODEL = PROJECT / "docs" / "without-a-model.md"
PAGES_WITH_FILES = [page for page in PAGES if blocks(page)[0] and page != NEEDS_NO_MODEL]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page: Path) -> None:
    for number, snippet in enumerate(blocks(page)[1]):
        exec(compile(snippet, f"{page.name}[{number}]", "exec"), {"__name__": "snippet"})


@pytest.mark.parametrize("page", PAGES_WITH_FILES, ids=lambda page: page.name)
def test_files_are_collected_and_skip_without_a_model(
    page: Path, pytester: pytest.Pytester
) -> None:
    for name, text in blocks(page)[0].items():
        pytester.path.joinpath(name).write_text(text, "utf-8")
    result = pytester.runpytest()
    result.assert_outcomes(skipped=count_of_tests(page))


def test_files_of_the_page_without_a_model_pass(project: pytest.Pytester) -> None:
    for name, text in blocks(NEEDS_NO_MODEL)[0].items():
        project.path.joinpath(name).write_text(text, "utf-8")
    result = project.runpytest()
    assert result.parseoutcomes() == {"passed": 8}
    result = project.runpytest("-m", "failgain_record")
    assert result.parseoutcomes() == {"passed": 3, "deselected": 5}


@pytest.mark.model
@pytest.mark.parametrize("page", PAGES_WITH_FILES, ids=lambda page: page.name)
def test_files_pass_with_the_embedded_model(page: Path, pytester: pytest.Pytester) -> None:
    for name, text in blocks(page)[0].items():
        pytester.path.joinpath(name).write_text(text, "utf-8")
    result = pytester.runpytest_subprocess(
        "--failgain-model=smollm2-135m",
        "--failgain-cases=12",
        f"--failgain-cache-dir={CACHE}",
        "--failgain-no-cache",
    )
    result.assert_outcomes(passed=count_of_tests(page))


def test_every_option_is_in_the_reference() -> None:
    from pytest_failgain.options import OPTIONS

    text = (PROJECT / "docs" / "reference.md").read_text("utf-8")
    for option in OPTIONS:
        assert f"| `{option.flag}` | `{option.variable}` | `{option.ini}` |" in text


def test_every_public_name_is_on_a_page() -> None:
    import pytest_failgain

    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert [name for name in pytest_failgain.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_the_workflow_of_the_docs_is_that_of_the_example_project() -> None:
    page = (PROJECT / "docs" / "ci.md").read_text("utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    workflow = PROJECT / "example_project" / ".github" / "workflows" / "failgain.yml"
    assert workflow.read_text("utf-8") == block


def test_commands_of_the_docs_have_no_unknown_option() -> None:
    from pytest_failgain.options import OPTIONS

    for page in PAGES:
        used = re.findall(r"--failgain-[a-z-]*[a-z]", page.read_text("utf-8"))
        assert {*used} <= {option.flag for option in OPTIONS}, page.name


def table_rows(page: str, first: str) -> dict[str, list[str]]:
    """The cells of each row of the table that has a row for `first`, by the name in the first."""
    text = (PROJECT / "docs" / page).read_text("utf-8")
    (table,) = (block for block in text.split("\n\n") if f"\n| `{first}` |" in block)
    rows = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
    return {row[0].strip(" `"): [cell.strip(" `|") for cell in row[1:]] for row in rows}


def test_the_table_of_conditions_is_theirs() -> None:
    from pytest_failgain.conditions import CONDITIONS

    rows = table_rows("method.md", "before")
    assert list(rows) == list(CONDITIONS)
    for name, condition in CONDITIONS.items():
        paper_name, _, isolates = rows[name]
        assert (paper_name, isolates) == (condition.paper_name, condition.isolates)


def test_the_table_of_measures_is_theirs() -> None:
    from pytest_failgain.conditions import CONDITIONS
    from pytest_failgain.measures import AFTER, ALL, CONTROLS, MEASURES, VARIANTS

    rows = table_rows("method.md", "gain")
    assert list(rows) == list(MEASURES)
    words = {ALL: "all", AFTER: "all but `before", CONTROLS: "controls", VARIANTS: "variants"}
    for name, measure in MEASURES.items():
        under, unit, _, paper = rows[name]
        assert unit == measure.unit
        assert under == words.get(measure.conditions, "".join(measure.conditions))
        for condition, paper_name in measure.paper.items():
            pattern = paper_name.replace(f"_{CONDITIONS[condition].paper_name}", "_<c>")
            assert paper_name in paper or pattern in paper


def test_the_page_of_results_holds_what_its_command_prints() -> None:
    results = PROJECT / "docs" / "results"
    printed = subprocess.run(
        [sys.executable, results / "compare.py"], capture_output=True, text=True, check=True
    ).stdout
    assert printed.count("\n| ") > 60
    assert printed.strip() in (results / "README.md").read_text("utf-8")


def test_the_page_of_results_tells_the_work_of_its_study() -> None:
    results = PROJECT / "docs" / "results"
    cells = json.loads((results / "smollm2-135m" / "study.json").read_text("utf-8"))["cells"]
    pairs, plain, tokens, seconds = (
        sum(cell["work"][name] for cell in cells)
        for name in ("pairs", "plain_tokens", "tokens", "seconds")
    )
    page = " ".join((results / "README.md").read_text("utf-8").split())
    assert f"Of {plain:,} tokens" in page
    assert f"each of {pairs:,} pairs" in page
    assert f"{tokens:,} went through the model: {1 - tokens / plain:.1%} avoided" in page
    assert f"{tokens / seconds:.0f} tokens a second" in page


def test_scores_of_the_same_items_are_set_side_by_side(oracle: Path, tmp_path: Path) -> None:
    published = PublishedFile(oracle, "toolshed")
    names = ("items", "ours", "released")
    items, ours, released = (tmp_path / f"{name}.jsonl" for name in names)
    items.write_text(published.lines(), "utf-8")
    theirs = [{"item_id": item, **row} for item, rows in published.rows.items() for row in rows]
    released.write_text("".join(f"{json.dumps(row)}\n" for row in theirs), "utf-8")
    likelier = [{**row, "logprob": row["logprob"] / 2} for row in theirs]
    ours.write_text("".join(f"{json.dumps(row)}\n" for row in likelier), "utf-8")
    printed = subprocess.run(
        [sys.executable, PROJECT / "docs" / "results" / "same_items.py", items, ours, released],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    gain = published.measurement().values.corrective_gain.mean()
    assert "| 13 items |" in printed
    assert f"| gain, failed | {gain / 2:+.2f} | {gain:+.2f} |" in printed
