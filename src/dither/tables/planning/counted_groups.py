"""Groups with private keys that are only counted, or averaged over, by the SQL around them: refused before the charge.

A group is shown from a threshold on, and smaller ones are missing: the number of groups, or their mean size, is then
that of the large groups alone. Where each group is one person's, as those of the number of a visit are, none is left,
and the answer was 0. Nothing public says how many groups are that small, so no ± could hold.

The keys themselves may be shown, used in conditions and joined on: whoever reads them knows which groups an answer is
of. What is refused is SQL in which no key leaves the block that groups by it. What was meant is a table with a row for
each person and key, or the number of different keys, both of which can be asked for.
"""

from __future__ import annotations

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.planning.plan import Plan
from dither.tables.query import nodes
from dither.tables.query.relations import base_of


def refuse_counted_groups(plan: Plan) -> None:
    """Refuse a question whose SQL uses groups with private keys but none of their keys."""
    post, parts = plan.query.post, plan.aggregations
    if post is None or not any(part.selection for part in parts) or any(part.query.rolled_up for part in parts):
        return
    tree = nodes.parsed(post.sql)
    part_of = dict(zip(post.tables, parts, strict=True))
    blocks = [(select, part_of[name]) for select in tree.find_all(exp.Select) if (name := _table(select)) in part_of]
    inside = {id(node) for select, _ in blocks for node in select.walk()}
    outside = [node for node in tree.walk() if id(node) not in inside]
    if any(isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count) for node in outside):
        return
    used = {node.name.casefold() for node in outside if isinstance(node, exp.Identifier)}
    for select, part in blocks:
        private = {group.name for group, keys in zip(part.query.groups, part.keys, strict=True) if keys is None}
        is_shown = select.find_ancestor(exp.Select, exp.CTE) is None
        leaving = [item.alias_or_name for item in select.expressions if private & _columns(item)]
        if private and not is_shown and not used & {name.casefold() for name in leaving}:
            raise _refusal(part, sorted(private))


def _table(select: exp.Select) -> str:
    """The table that a SELECT reads, where it reads one alone."""
    start = select.args.get("from_")
    return start.this.name if start is not None and isinstance(start.this, exp.Table) else ""


def _columns(node: exp.Expr) -> set[str]:
    return {column.name for column in node.find_all(exp.Column)}


def _refusal(part: Plan, private: list[str]) -> InvalidArgument:
    keys = ", ".join(private)
    unit = base_of(part.card).unit
    fix = f"COUNT(DISTINCT {private[0]}) counts them; or show {keys} in the answer"
    if unit is not None:
        fix = f"add {unit} to GROUP BY, for a row for each person and {keys}; {fix}"
    expected = "groups whose keys are shown, or are public: small groups are missing from others"
    return InvalidArgument("SQL", expected, f"groups by {keys} that are only counted or aggregated", fix)
