"""A folder is backfilled from Dagster's own UI, in a real browser."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus

from recipes_orchestration.engine.engine import open_engine
from recipes_orchestration.orchestration.events import step_key
from recipes_orchestration.orchestration.instance import DEFAULT_YAML
from recipes_orchestration.orchestration.recording import record_pages

from .archive import Archive, find_pages, make_archive
from .dagster_dev import DagsterDev, running_dagster

pytestmark = [pytest.mark.ui, pytest.mark.slow, pytest.mark.usefixtures("restored_path")]

IMAGES = Path(__file__).parent.parent / "docs" / "images"
KEEP = os.environ.get("RECIPES_KEEP_SCREENSHOTS") == "1"
LETTERS = {"letters-1891/0001", "letters-1891/0002"}

STEPS = '''
def lines(page, context):
    """Finds the text lines of a page."""
    return {"width": page.image.width, "height": page.image.height, "lines": []}


def read(page, context):
    """Reads the text of the lines."""
    return {"text": "Dear sir, I have received your letter of " + page.page_id}


def names(page, context):
    """Finds the persons named in the text."""
    return {"names": []}


def embed(page, context):
    """Makes the text searchable."""
    return {"model": "none", "vector": [0.0]}
'''
RECIPE = """\
recipe: letters
source: letters
steps:
  - {name: lines, run: "letter_steps:lines"}
  - {name: read, run: "letter_steps:read", needs: [lines]}
  - {name: names, run: "letter_steps:names", needs: [read]}
  - {name: embed, run: "letter_steps:embed", needs: [read]}
"""


@pytest.fixture
def browser() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium is not installed (apt install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.add_argument("--window-size=1400,900")
    opened = webdriver.Chrome(options=options, service=Service(driver))
    try:
        opened.set_window_size(1400, 1044)  # headless Chromium counts a title bar of 143 px
        yield opened
    finally:
        opened.quit()


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    names = [f"letters-1891/p{n}.png" for n in range(4)]
    names += [f"letters-1892/p{n}.png" for n in range(2)]
    archive = make_archive(tmp_path / "project", names, batch_size=2)
    (archive.folder / "letter_steps.py").write_text(STEPS)
    (archive.folder / "recipes" / "measure.yaml").unlink()
    (archive.folder / "recipes" / "letters.yaml").write_text(RECIPE)
    return archive


def visible(browser: Any, xpath: str, seconds: float = 60) -> Any:
    from selenium.webdriver.support import expected_conditions
    from selenium.webdriver.support.wait import WebDriverWait

    wait = WebDriverWait(browser, seconds, ignored_exceptions=drawn_anew())
    return wait.until(expected_conditions.element_to_be_clickable(("xpath", xpath)), xpath)


def click(browser: Any, xpath: str, seconds: float = 60) -> None:
    """Clicks it once it is there."""
    from selenium.webdriver.support import expected_conditions
    from selenium.webdriver.support.wait import WebDriverWait

    look = expected_conditions.element_to_be_clickable(("xpath", xpath))

    def clicked(driver: Any) -> bool:
        if element := look(driver):
            element.click()
        return bool(element)

    WebDriverWait(browser, seconds, ignored_exceptions=drawn_anew()).until(clicked, xpath)


def drawn_anew() -> list[type[Exception]]:
    """What is said when the page changed between a look and a click."""
    from selenium.common.exceptions import (
        ElementClickInterceptedException,
        NoSuchElementException,
        StaleElementReferenceException,
    )

    return [
        ElementClickInterceptedException,
        NoSuchElementException,
        StaleElementReferenceException,
    ]


def shoot(browser: Any, name: str) -> None:
    if KEEP:
        time.sleep(3)
        IMAGES.mkdir(parents=True, exist_ok=True)
        assert browser.save_screenshot(str(IMAGES / name))


def launch_folder(browser: Any, dev: DagsterDev, folder: str, partitions: int) -> None:
    """What a person does. The UI filters dynamic partitions by a part of their name."""
    location = "recipes_orchestration.definitions"
    browser.get(f"{dev.url}/locations/{location}/asset-groups/letters")
    click(browser, "//button[contains(., 'Materialize all')]")
    click(browser, "//*[text()='Select a partition or create one']")
    visible(browser, "//input[@placeholder='Filter partitions']").send_keys(f"{folder}/")
    click(browser, f"//label[contains(., 'Select all ({partitions})')]")
    click(browser, "//*[contains(text(), 'Launch runs to materialize')]")
    click(browser, "//button[contains(., 'Launch backfill')]")


def finished(instance: dg.DagsterInstance, seconds: float = 180) -> list[Any]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        backfills = instance.get_backfills()
        if backfills and all(each.status != BulkActionStatus.REQUESTED for each in backfills):
            return list(backfills)
        time.sleep(1)
    raise AssertionError(f"no backfill ended in {seconds:g} s: {instance.get_backfills()}")


def test_a_folder_is_backfilled_from_the_ui_and_turns_green(
    archive: Archive, tmp_path: Path, browser: Any
):
    home = tmp_path / "home"
    home.mkdir()
    shutil.copyfile(DEFAULT_YAML, home / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        with open_engine(archive.project()) as engine:
            record_pages(engine, instance, "letters", find_pages(engine).batches)
        with running_dagster(archive.folder, home) as dev:
            launch_folder(browser, dev, "letters-1891", 2)
            (backfill,) = finished(instance)
            assert backfill.status == BulkActionStatus.COMPLETED_SUCCESS, dev.told()
            for step in ("lines", "read", "names", "embed"):
                assert instance.get_materialized_partitions(step_key("letters", step)) == LETTERS
            browser.get(f"{dev.url}/assets/letters/read?view=partitions")
            visible(browser, "//*[contains(text(), 'Materialized (2)')]")
            visible(browser, "//*[contains(text(), 'Missing (1)')]")
            click(browser, "//*[text()='letters-1891/0001']")
            shoot(browser, "backfill.png")
