"""The HTML report in a real browser: nothing is run or fetched, and the keyboard is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chromium import Browser, Page, chromium_path, running
from reported import SETTINGS, everything, with_records

from fake_scorer import measured
from pytest_failgain.options import Settings
from pytest_failgain.report.document import document_of
from pytest_failgain.report.html_report import html_report
from pytest_failgain.stash import Findings

# Starting the browser takes a second or two.
pytestmark = pytest.mark.slow

ATTACK = (
    "<script>document.title='hacked'</script><img src='https://evil.invalid/x.png' "
    "onerror=\"document.title='hacked'\">\"'><svg onload=document.title='hacked'>\n\u202e"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = chromium_path()
    if chromium is None:
        pytest.skip("no Chromium is on this machine: the page is tested by a parser alone")
    with running(chromium, tmp_path_factory.mktemp("profile")) as running_browser:
        yield running_browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page that has everything, with hostile texts in one measurement."""
    hostile = with_records(measured({ATTACK: -1.0}, harness=ATTACK), {ATTACK: ATTACK * 3})
    found = everything()
    found.measurements.append(replace(hostile, environment=ATTACK, by_construction=ATTACK))
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html_report(document_of(found, SETTINGS)), "utf-8")
    return path.as_uri()


def test_nothing_is_run_fetched_or_complained_of(browser: Browser, report: str) -> None:
    page = browser.open(report)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.complaints() == []
    assert page.requested() == [report]
    assert page.evaluate("document.title") == (
        "failgain: 2 harmful, 1 fine, 1 regression, 1 not comparable, 1 without a baseline"
    )
    assert page.evaluate("document.querySelectorAll('script, img, [onload]').length") == 0


def test_the_policy_is_in_force(browser: Browser, report: str) -> None:
    page = browser.open(report)
    page.evaluate(
        "document.body.append(Object.assign(new Image(), {src: 'https://evil.invalid/x.png'}))"
    )
    page.evaluate("document.body.setAttribute('style', 'display: none')")
    assert page.evaluate("getComputedStyle(document.body).display") == "block"
    refused = [line for line in page.complaints() if "Content Security Policy" in line]
    assert len(refused) == 2
    # The page's own style is not refused.
    assert page.evaluate("getComputedStyle(document.body).margin") != "8px"


FOCUSED = "document.activeElement.tagName + ' ' + document.activeElement.textContent.trim()"


def test_the_keyboard_reaches_and_opens_everything_that_is_folded(
    browser: Browser, report: str
) -> None:
    page = browser.open(report)
    opened = 0
    page.press("Tab")
    assert page.evaluate(FOCUSED) == "A Skip to the results"
    for _ in range(400):
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            # Only what got worse since the baseline is open from the start.
            if page.evaluate("document.activeElement.parentElement.matches('.worse')"):
                page.press("Enter")
            assert not page.evaluate("document.activeElement.parentElement.open")
            page.press("Enter")
            assert page.evaluate("document.activeElement.parentElement.open")
            opened += 1
        assert page.evaluate(
            "document.activeElement === document.body || "
            "getComputedStyle(document.activeElement).outlineStyle === 'solid'"
        )
        page.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
    folded = page.evaluate("document.querySelectorAll('details').length")
    # Settings; one regression; three measurements that have cases; and their cases.
    assert opened == folded == 1 + 1 + 3 + 21


def test_a_link_to_a_case_opens_it(browser: Browser, report: str) -> None:
    page = browser.open(report)
    opened = page.evaluate("document.querySelectorAll('details[open]:not(.worse)').length")
    page.evaluate("document.querySelector('main details:not(.worse)').open = true")
    page.evaluate("document.querySelector('table.cases a').focus()")
    page.press("Enter")
    assert opened == 0
    assert page.evaluate("location.hash") == "#m1c1"
    assert page.evaluate("document.getElementById('m1c1').parentElement.open")
    assert page.evaluate(
        "document.getElementById('m1c1').previousElementSibling.getBoundingClientRect().top >= 0"
    )


@pytest.mark.parametrize("width", [320, 400, 1400])
def test_only_tables_scroll_sideways(browser: Browser, report: str, width: int) -> None:
    page = browser.open(report, width)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_usual_table_fits_a_wide_screen(browser: Browser, report: str) -> None:
    page = browser.open(report, 1400)
    wide = "[...document.querySelectorAll('.scroll')].filter(one => !one.matches('details *'))"
    assert page.evaluate(f"{wide}.slice(0, 3).every(one => one.scrollWidth <= one.clientWidth)")


def test_the_colours_follow_the_readers_wish(browser: Browser, report: str) -> None:
    grounds = [
        browser.open(report, dark=dark).evaluate("getComputedStyle(document.body).backgroundColor")
        for dark in (False, True)
    ]
    assert grounds == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]


def test_an_empty_report_is_a_page_too(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    path.write_text(html_report(document_of(Findings([], [], [], {}), Settings())), "utf-8")
    page = browser.open(path.as_uri())
    assert page.complaints() == []
    assert "Nothing was measured" in page.evaluate("document.body.innerText")


def test_a_record_that_begins_with_a_line_break_keeps_it(browser: Browser, tmp_path: Path) -> None:
    record = "\n\n  send(to='a')  \n\tend\n"
    found = Findings([with_records(measured({"a": -1.0}), {"a": record})], [], [], {})
    path = tmp_path / "record.html"
    path.write_text(html_report(document_of(found, Settings())), "utf-8")
    page = browser.open(path.as_uri())
    assert page.evaluate("[...document.querySelectorAll('pre')].at(-1).textContent") == record


def pixels(page: Page, selector: str) -> str:
    """The colour behind the first element of a kind."""
    found: str = page.evaluate(
        f"getComputedStyle(document.querySelector({selector!r})).backgroundColor"
    )
    return found


def test_tokens_are_coloured_by_their_change(browser: Browser, report: str) -> None:
    page = browser.open(report)
    assert pixels(page, "ruby.u2") == pixels(page, "li.u2") == "rgb(253, 203, 155)"
    assert pixels(page, "ruby.d1") == pixels(page, "li.d1") == "rgb(223, 236, 248)"
