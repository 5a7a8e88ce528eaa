"""Publications: plans in the served folder, explained and released."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dither.errors import ServerUnavailable
from dither.ledger.recorded import canonical
from dither.publish import plan_file
from dither.server import schema
from dither.server.cards import fingerprint
from dither.server.context import Context
from dither.server.errors import NotFound
from dither.server.jobs import Asked
from dither.server.principal import Principal
from dither.server.problems import as_error, from_json
from dither.server.results import Job, PlanLine, PlanPreview
from dither.server.times import iso
from dither.server.use_cases.questions import scoped_key


class Plans:
    """Plans of publications: files ``*.toml`` in the served folder that name a card of it. They are not uploaded: a
    plan may name files, and those are the steward's who can write to the folder."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def list(self, who: Principal) -> tuple[PlanLine, ...]:
        """The plans of the folder."""
        with self._context.acting(who, "plans.list"):
            return tuple(
                PlanLine(name, table, tuple(_names(item) for item in plan_file.read_plan(Path(path)).get("tables", [])))
                for name, (path, table) in sorted(self._context.folder.plans().items())
            )

    def explain(self, who: Principal, plan: str) -> PlanPreview:
        """What a plan would publish and cost; reads no rows and charges nothing."""
        context = self._context
        with context.acting(who, "plans.explain", plan):
            path, table = self._place(plan)
            task = {"do": "explain_plan", "card": context.folder.get(table).document, "plan": path, "analyst": who.name}
            event = context.explaining.call(task, context.config.time_limit)
            if event is None:
                expected = "one that can be planned within the limits"
                raise ServerUnavailable("plan", expected, "another", "ask for fewer tables")
            if "problem" in event:
                raise as_error(from_json(event["problem"]))
            return PlanPreview(plan, table, event["cost"], event["text"], event["left"], event["refused"])

    def release(self, who: Principal, plan: str, *, key: str | None = None) -> Job:
        """Release a plan for the budget it states: a job, as a question is. Each of its tables is an answer."""
        context = self._context
        with context.acting(who, "plans.release", plan):
            path, table = self._place(plan)
            scoped = scoped_key(who, key)
            served = context.folder.get(table)
            parts = [who.name, served.identity, "plan", plan, list(fingerprint(path)), scoped]
            request = hashlib.sha256(canonical(parts).encode()).hexdigest()
            answers = schema.answers
            same = (
                answers.c.request == request,
                answers.c.user == who.name,
                answers.c.part == 0,
                answers.c.at <= self._context.clock.now(),
            )
            row = context.store.one(sa.select(answers.c.id, answers.c.at).where(*same))
            if row is not None:
                return Job(f"recorded-{row.id}", table, plan, "answered", iso(row.at), "publication", row.id)
            task: dict[str, Any] = {
                "do": "release_plan", "card": served.document, "plan": path, "analyst": who.name, "key": scoped
            }  # fmt: skip
            asked = Asked(who.name, table, "publication", plan, {}, request, task)
            return context.jobs.start(asked, context.event(who.name, "plans.release", plan))

    def _place(self, plan: str) -> tuple[str, str]:
        plans = self._context.folder.plans()
        if plan not in plans:
            raise NotFound.of("plan")
        return plans[plan]


def _names(wanted: Any) -> str:
    names = wanted.get("by", []) if isinstance(wanted, dict) else wanted
    return ", ".join(map(str, names)) or "everybody"
