"""Opens pages of a built site in a browser and prints what it saw as JSON: ``python site_browser.py`` with the site's
address, the pages and the browser as JSON on standard input.

It is a process of its own because Playwright leaves an event loop behind, which other tests would find.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import BrowserContext, sync_playwright

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
LOOKS = {"phone": (375, "light"), "desk": (1280, "dark")}
WIDE = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.body.querySelectorAll("*")].filter(item => item.getBoundingClientRect().right > width + 0.5)
        .map(item => item.outerHTML.slice(0, 120)).slice(0, 3);
}"""
SCROLLS = """() => [...document.querySelectorAll(".pst-scrollable-table-container, .highlight pre, figure.made")]
    .filter(item => item.clientWidth && item.scrollWidth > item.clientWidth + 1)
    .map(item => item.textContent.trim().slice(0, 80))"""
OVERLAP = """() => [...document.querySelectorAll("figure.made svg")].flatMap(svg => {
    const texts = [...svg.querySelectorAll("text")].filter(item => item.textContent.trim());
    const boxes = texts.map(item => item.getBoundingClientRect());
    return texts.flatMap((item, i) => texts.slice(i + 1).filter((other, k) => {
        const a = boxes[i], b = boxes[i + 1 + k];
        return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 4;
    }).map(other => `${item.textContent} | ${other.textContent}`));
})"""
EMPTY = """() => [...document.querySelectorAll("main th, main td:only-child, main pre, main h1, main h2, main h3")]
    .filter(item => !item.textContent.trim() && !item.querySelector("img, svg"))
    .map(item => item.outerHTML.slice(0, 120))"""
MOVE = """() => [...document.querySelectorAll("figure.made input[type=range]")].map(slider => {
    const figure = slider.closest("figure.made");
    const before = figure.innerHTML;
    slider.value = slider.value === slider.max ? slider.min : slider.max;
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    return figure.innerHTML !== before;
})"""


def look_at(context: BrowserContext, base: str, path: str, accessible: bool, shot: Path | None) -> dict[str, Any]:
    """Load a page; its errors, what is too wide, scrolls inside of it, overlaps or is empty, whether its sliders move
    anything, and, if ``accessible``, what axe-core objects to.
    """
    seen: list[str] = []
    page = context.new_page()
    page.on("console", lambda item: seen.append(item.text) if item.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("requestfailed", lambda request: seen.append(f"not loaded: {request.url}"))
    page.on("request", lambda request: None if request.url.startswith(base) else seen.append(f"loads {request.url}"))
    page.goto(f"{base}/{path}", wait_until="load")
    wide, overlap, empty, scrolls = (page.evaluate(script) for script in (WIDE, OVERLAP, EMPTY, SCROLLS))
    if shot is not None:
        page.screenshot(path=shot, full_page=False)
    axe = []
    if accessible:
        page.evaluate(AXE)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
        axe = [f"{item['id']}: {node['html'][:160]}" for item in result["violations"] for node in item["nodes"][:2]]
    moved = page.evaluate(MOVE)
    overlap += page.evaluate(OVERLAP)
    page.close()
    found = {"seen": seen, "axe": axe, "wide": wide, "overlap": overlap, "empty": empty}
    return {"path": path, "moved": moved, "scrolls": scrolls, **found}


def main() -> None:
    """Look at every page light at the width of a phone, where a page is too wide first, and at those named by ``again``
    dark at that of a desk too.
    """
    site = json.load(sys.stdin)
    results = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=site["browser"], args=ARGUMENTS)
        for name, (width, scheme) in LOOKS.items():
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            for path in site["pages"] if name == "phone" else site["again"]:
                shot = Path(site["shots"], f"{path.replace('/', '_')}_{name}.png") if site.get("shots") else None
                accessible = path in site["accessible"]
                results.append({"look": name, **look_at(context, site["base"], path, accessible, shot)})
            context.close()
        browser.close()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
