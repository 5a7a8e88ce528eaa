"""Drives a browser through the pages: ``python page_browser.py`` reads the site's address and what is known of it as a
line of JSON, then names of scenarios, one a line, and writes what it saw in each as a line of JSON.

It is a process of its own because Playwright leaves an event loop behind, which other tests would find.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ARGUMENTS = [
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
WIDTHS = {"desk": 1280, "phone": 375}
AT_PHONE = ("color-contrast", "scrollable-region-focusable", "target-size", "aria-hidden-focus")
"""The rules of axe-core that depend on the layout: the others are held at the desk, on the same document."""
CLASSES = "() => [...document.querySelectorAll('body *')].map(item => `${item.localName} ${item.className}`)"
WIDE = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.body.querySelectorAll("*")].filter(item => item.getBoundingClientRect().right > width + 0.5)
        .map(item => item.outerHTML.slice(0, 120)).slice(0, 5);
}"""
VIOLATION = "event => console.error('csp: ' + event.violatedDirective)"
FOCUSED = """() => {
    const item = document.activeElement;
    return [item.innerText, getComputedStyle(item).outlineStyle];
}"""
PASSWORD = "correct horse battery"
PATHS = {
    "ann": ["/ask", "/ask?table=hostile", "/ask?sql=SELECT%20amount", "/ask/guided", "/ask/guided?table=hostile",
            "/ask?table=closed", "/tables", "/tables/closed", "/tables/visits", "/tables/hostile", "/history",
            "/answers/{answer}", "/answers/{hostile}",
            "/account", "/published", "/nowhere/at/all"],
    "sam": ["/steward", "/steward/visits", "/people", "/limits", "/incidents", "/ledger", "/ledger/visits", "/events",
            "/publishing", "/publishing/tables", "/tables/hostile", "/published/{answer}"],
    "aud": ["/ledger", "/ledger/hostile", "/steward/hostile", "/tables", "/events", "/published"],
    "rea": ["/published", "/published/{answer}"],
    "": ["/sign-in", "/welcome/no-such-link", "/welcome/{link}"],
}  # fmt: skip


class Watched:
    """A page whose errors, refused loads and requests to elsewhere are written down."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(240_000)  # of a loaded machine
        self.base = base
        self.seen: list[str] = []
        self.clicks = 0
        self.page.on("console", lambda item: self._console(item.type, item.text))
        self.page.on("pageerror", lambda error: self.seen.append(f"error: {error}"))
        self.page.on("request", lambda request: self._request(request.url))
        self.page.add_init_script(f"document.addEventListener('securitypolicyviolation', {VIOLATION})")

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "status of 4" not in text:
            self.seen.append(f"{kind}: {text}")

    def _request(self, url: str) -> None:
        if not url.startswith((self.base, "data:", "about:")):
            self.seen.append(f"elsewhere: {url}")

    def go(self, path: str) -> int:
        response = self.page.goto(self.base + path, wait_until="load")
        assert response is not None
        return response.status

    def click(self, selector: str) -> None:
        self.clicks += 1
        self.page.click(selector)
        self.page.wait_for_load_state("load")

    def sign_in(self, name: str) -> None:
        self.go("/sign-in")
        self.page.fill("#name", name)
        self.page.fill("#password", PASSWORD)
        self.click("form[action='/sign-in'] button")

    def axe(self, *rules: str) -> list[str]:
        """What axe-core objects to: all its rules, or these."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
        result = self.page.evaluate("options => axe.run(document, options)", options)
        return [f"{item['id']}: {item['nodes'][0]['html'][:200]}" for item in result["violations"]]

    def text(self, selector: str = "main") -> str:
        return self.page.inner_text(selector)

    def too_wide(self) -> list[str]:
        """What makes the page wider than the window; nothing if it is not."""
        return list(self.page.evaluate(WIDE))


@contextmanager
def watched(browser: Browser, site: dict[str, Any], **options: Any) -> Iterator[Watched]:
    context = browser.new_context(**options)
    try:
        yield Watched(context, site["base"])
    finally:
        context.close()


def every_page(browser: Browser, site: dict[str, Any]) -> list[dict[str, Any]]:
    """Every page, for every role, at both widths; in dark, which differs in its colors alone, where there is something
    on a page that was not seen in dark before.
    """
    results = []
    in_dark: set[str] = set()
    for who, paths in PATHS.items():
        with watched(browser, site) as view:
            if who:
                view.sign_in(who)
            for pattern in paths:
                path = pattern.format(**site["known"])
                view.seen.clear()
                status = view.go(path)
                parts = set(view.page.evaluate(CLASSES))
                wanted = [("desk", "light"), ("phone", "light")] + ([] if parts <= in_dark else [("phone", "dark")])
                in_dark |= parts
                for width, scheme in wanted:
                    view.page.set_viewport_size({"width": WIDTHS[width], "height": 900})
                    view.page.emulate_media(color_scheme=scheme)
                    if site.get("shots"):
                        plain = re.sub("[^a-z]+", "_", f"{who}{pattern}")
                        view.page.screenshot(path=f"{site['shots']}/{plain}_{width}_{scheme}.png", full_page=True)
                    rules = ("color-contrast",) if scheme == "dark" else AT_PHONE if width == "phone" else ()
                    axe = view.axe(*rules)
                    look = {"who": who, "path": path, "status": status, "at": view.page.url, "width": width}
                    look |= {"scheme": scheme, "axe": axe, "seen": [*view.seen], "wide": view.too_wide()}
                    results.append(look | {"title": view.page.title()})
    return results


def first_answer(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """A new analyst signs in and gets a first answer."""
    with watched(browser, site) as view:
        view.sign_in("new")
        before = view.text("#explanation")
        view.click("button[value=ask]")
        view.page.wait_for_url("**/answers/*")
        return {"clicks": view.clicks, "at": view.page.url, "before": before, "text": view.text(), "seen": view.seen}


def without_script(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """The same, and the guided form, without JavaScript."""
    with watched(browser, site, java_script_enabled=False) as view:
        view.sign_in("ann")
        view.go("/ask/guided?table=visits")
        view.page.check("input[value='avg:amount']")
        view.page.check("input[name=group][value=region]")
        view.page.select_option("#column1", "amount")
        view.page.select_option("#operator1", ">=")
        view.page.fill("#value1", "10")
        view.page.fill("#epsilon", "0.25")
        view.click("main form[action='/ask/guided'][method=post] button")
        sql, cost = view.page.input_value("#sql"), view.text("#explanation")
        view.page.fill("#epsilon", "0.125")
        view.click("button[value=explain]")
        cheaper = view.text("#explanation")
        view.click("button[value=ask]")
        while "/jobs/" in view.page.url:  # a loaded machine
            view.click("a[href^='/jobs/']")
        return {"sql": sql, "cost": cost, "cheaper": cheaper, "at": view.page.url, "text": view.text()}


def while_writing(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """Suggestions and the cost while a question is written, by keyboard alone."""
    with watched(browser, site) as view:
        view.sign_in("ann")
        view.go("/ask?table=visits")
        view.page.focus("#sql")
        view.page.keyboard.press("Control+a")
        view.page.keyboard.type("SELECT COU")
        suggested = view.page.locator("#completions li").all_inner_texts()
        axe = view.axe()
        view.page.keyboard.press("Tab")
        view.page.keyboard.type("*) AS n FROM vis")
        view.page.keyboard.press("Tab")
        sql = view.page.input_value("#sql")
        view.page.fill("#epsilon", "0.03")
        view.page.locator("#explanation .lead", has_text="0.03").wait_for()
        cost = view.text("#explanation")
        view.page.fill("#sql", "SELECT amount FROM visits")
        view.page.wait_for_selector("#explanation [role=alert]")
        refused = view.text("#explanation")
        view.go("/history")
        history = view.text()
        result = {"suggested": suggested, "axe": axe, "sql": sql, "cost": cost, "refused": refused, "history": history}
        return result | {"seen": view.seen}


def by_keyboard(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """Signing in and asking with the keyboard alone; what has the focus is outlined."""
    with watched(browser, site) as view:
        view.go("/sign-in")
        view.page.keyboard.press("Tab")
        skip = view.page.evaluate("document.activeElement.innerText")
        view.page.keyboard.press("Enter")
        view.page.wait_for_function("location.hash !== ''")
        at = view.page.evaluate("document.activeElement.id")
        view.page.keyboard.press("Tab")
        view.page.keyboard.type("ann")
        view.page.keyboard.press("Tab")
        view.page.keyboard.type(PASSWORD)
        view.page.keyboard.press("Enter")
        view.page.wait_for_url("**/ask")
        outlines = []
        for _ in range(30):
            view.page.keyboard.press("Tab")
            name, style = view.page.evaluate(FOCUSED)
            outlines.append(style)
            if name == "Ask and spend":
                view.page.keyboard.press("Enter")
                view.page.wait_for_url("**/answers/*")
                break
        return {"skip": skip, "at": at, "outlines": outlines, "end": view.page.url, "seen": view.seen}


def stewards(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """A second steward approves a limit, publishes what was proposed, adds somebody, and verifies the ledger."""
    result: dict[str, Any] = {}
    with watched(browser, site) as view:
        view.sign_in("sam")
        view.go("/limits")
        result["own"] = view.page.locator("form[action='/limits/approve']").count()
    with watched(browser, site) as view:
        view.sign_in("sue")
        result["todo"] = view.text()
        view.go("/limits")
        view.click("form[action='/limits/approve'] button")
        result["approved"] = view.text()
        view.go("/publishing")
        view.click(f"form[action='/answers/{site['known']['shared']}/publish'] button")
        result["published"] = view.text("h1")
        view.go("/publishing/tables")
        result["plan"] = view.text()
        with held(site):
            view.click("main form button")
            result["job"] = {"at": view.page.url, "text": view.text(), "axe": view.axe()}
            if site.get("shots"):
                view.page.screenshot(path=f"{site['shots']}/sue_job_desk_light.png", full_page=True)
        view.page.wait_for_url("**/history")
        result["tables"] = view.text()
        view.go("/ledger/visits")
        result["receipt"] = view.text(".secret")
        view.page.fill("#receipt", result["receipt"])
        view.click("form[action$='/verify'] button")
        result["verified"] = view.text()
        view.go("/people")
        view.page.click("text=Add somebody")
        view.page.fill("#name", "eve")
        view.click("form[action='/people'] button")
        link = view.text(".secret")
        result["seen"] = view.seen
    with watched(browser, site) as view:
        view.page.goto(link)
        view.page.fill("#password", PASSWORD)
        view.click("main form button")
        result["eve"] = [view.page.url, view.text()]
        result["again"] = view.go(link.removeprefix(site["base"]))
        result["seen"] += view.seen
    return result


@contextmanager
def held(site: dict[str, Any]) -> Iterator[None]:
    """No question ends in this block: the workers are stopped, but the one that explains."""
    process, explaining = site["known"]["process"], site["known"]["explaining"].split()
    children = [part for task in Path(f"/proc/{process}/task").iterdir() for part in _text(task / "children").split()]
    is_worker = [part for part in children if "dither.server.worker" in _text(Path(f"/proc/{part}/cmdline"))]
    workers = [int(part) for part in is_worker if part not in explaining]
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has just ended
        return ""


def cancelling(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """A question that takes long, met and cancelled in another tab: the workers are held while it waits."""
    context = browser.new_context()
    try:
        asking, looking = Watched(context, site["base"]), Watched(context, site["base"])
        asking.sign_in("ann")
        asking.go("/ask?table=visits")
        asking.page.fill("#sql", "SELECT COUNT(*) AS cancelled FROM visits")
        with held(site):
            asking.page.click("button[value=ask]", no_wait_after=True)
            link = looking.page.locator("a[href^='/jobs/']").first
            for _ in range(1000):
                looking.go("/ask?table=visits")
                if link.count():
                    break
                looking.page.wait_for_timeout(50)
            result: dict[str, Any] = {"notice": looking.text(".notice")}
            looking.click("a[href^='/jobs/']")
            result["under way"], result["axe"] = looking.text(), looking.axe()
            result["wide"] = looking.too_wide()
            looking.click("form[action$='/cancel'] button")
            looking.page.locator("#job[data-state=cancelled]").wait_for()
        result["cancelled"] = looking.text()
        looking.go("/history")
        result["history"] = looking.text()
        asking.page.wait_for_url("**/jobs/*")
        return result | {"seen": asking.seen + looking.seen}
    finally:
        context.close()


def closed_table(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """A table that was closed after incidents: what an analyst reads, and how a steward opens it again."""
    result: dict[str, Any] = {}
    with watched(browser, site) as view:
        view.sign_in("ann")
        view.go("/tables/closed")
        result["table"] = view.text()
        view.go("/ask?table=closed")
        result["explained"] = view.text("#explanation")
        view.click("button[value=ask]")
        result["asked"] = view.text("#explanation")
        result["seen"] = view.seen
    with watched(browser, site) as view:
        view.sign_in("sam")
        result["todo"] = view.text()
        view.go("/incidents")
        view.page.fill("form[action='/incidents/reopen'] input[name=reason]", "a disk was full")
        view.click("form[action='/incidents/reopen'] button")
        result["reopened"] = view.text()
        result["seen"] += view.seen
    return result


def new_token(browser: Browser, site: dict[str, Any]) -> dict[str, Any]:
    """A token is shown once."""
    with watched(browser, site) as view:
        view.sign_in("new")
        view.go("/account")
        view.page.fill("#label", "my notebook")
        view.click("form[action='/account/tokens'] button")
        result: dict[str, Any] = {"token": view.text(".secret"), "axe": view.axe()}
        view.page.set_viewport_size({"width": WIDTHS["phone"], "height": 900})
        result["wide"] = view.too_wide()
        view.go("/account")
        return result | {"again": view.text(), "seen": view.seen}


SCENARIOS: dict[str, Callable[[Browser, dict[str, Any]], Any]] = {
    "every_page": every_page,
    "first_answer": first_answer,
    "without_script": without_script,
    "while_writing": while_writing,
    "by_keyboard": by_keyboard,
    "stewards": stewards,
    "cancelling": cancelling,
    "closed_table": closed_table,
    "new_token": new_token,
}


def main() -> None:
    site = json.loads(sys.stdin.readline())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=site["browser"], args=ARGUMENTS)
        try:
            for line in sys.stdin:
                began, name = time.monotonic(), line.strip()
                try:
                    result = SCENARIOS[name](browser, site)
                except Exception as error:
                    result = {"error": str(error)}
                print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
                print(json.dumps(result), flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
