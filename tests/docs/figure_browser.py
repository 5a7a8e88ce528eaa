"""Moves the sliders of the figures of a page in a browser and prints what it then shows as JSON: ``python
figure_browser.py`` with the page, the browser and the positions of the sliders as JSON on standard input.

It is a process of its own because Playwright leaves an event loop behind, which other tests would find.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from playwright.sync_api import sync_playwright

ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
MOVE = """([name, values]) => {
    const figure = document.querySelector(`figure[data-figure="${name}"]`);
    for (const [control, value] of Object.entries(values)) {
        const slider = [...figure.querySelectorAll("input[type=range]")].find(item => item.id.endsWith(`-${control}`));
        slider.value = value;
        slider.dispatchEvent(new Event("input", {bubbles: true}));
    }
    const svg = figure.querySelector("svg");
    return {
        says: figure.querySelector(".made-says").textContent,
        title: svg.getAttribute("aria-label"),
        texts: [...svg.querySelectorAll("text")].map(item => item.textContent),
    };
}"""


def main() -> None:
    """Read what to move from standard input, move it, write what the figures show."""
    given = json.load(sys.stdin)
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given["browser"], args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(given["address"], wait_until="load")
        seen: dict[str, Any] = {name: page.evaluate(MOVE, [name, values]) for name, values in given["moves"].items()}
        browser.close()
    json.dump({**seen, "errors": errors}, sys.stdout)


if __name__ == "__main__":
    main()
