"""Make ``docs/answer-page.png``, the picture in the README: the page of an answer to a question about the demo's shop.

    python scripts/picture_of_answer.py

It asks the question, writes the page by ``dither.present`` as ``dither query --report`` does, and takes the picture in
Chromium. The noise is new every time, and so are the digits in the picture.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import dither as dp
from dither.cli import demo

ROOT = Path(__file__).parents[1]
SQL = "SELECT region, COUNT(*) AS visits, AVG(amount) AS spend FROM visits GROUP BY region"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def write_page(page: Path) -> None:
    """Ask, and write the page."""
    table = dp.open(
        demo.make_visits(20_000),
        name="visits",
        unit="customer",
        max_rows=12,
        keys={"region": list(demo.REGIONS)},
        bounds={"amount": (0, 150)},
        budget=dp.PureDP(2),
    )
    with table:
        answer = table.sql(SQL).release(epsilon=0.5)
    page.write_text(dp.present.html(answer, title="Visits by region"), encoding="utf-8")


def main() -> int:
    """Take the picture."""
    browser = os.environ.get("DITHER_TEST_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        print("no Chromium is installed: run make browser", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder, "answer.html")
        write_page(page)
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--headless"])
        view = window.new_page(viewport={"width": 760, "height": 815})
        view.goto(page.as_uri())
        view.screenshot(path=ROOT / "docs" / "answer-page.png")
        window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
