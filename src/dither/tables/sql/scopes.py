"""What a name in SQL stands for: one place for the rules of tables, of columns and of names that AS gives.

*Tables.* A name in FROM is that of the nearest WITH around it: a redefinition ends the scope of the outer name. An item
of WITH sees the items before it, and itself only after RECURSIVE. Two items of one WITH have different names.

*Columns.* A name is looked up in the innermost query first, and in the query around it only where the inner one has no
such column; a table's name before it is looked up in the same order, and ends there. Of several tables of one FROM,
exactly one has the column: otherwise it is ambiguous, which is an error also where an outer query has it.

*Names by AS.* In SELECT, a column of the rows goes before an earlier AS. A name alone in ORDER BY is that of AS. In
GROUP BY, HAVING and QUALIFY, and inside an expression of ORDER BY, a name that is a column and, by AS, something else
is refused: engines differ. A column that is neither grouped nor aggregated cannot stand in HAVING and QUALIFY, so that
AS is meant there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from sqlglot import exp

from dither.tables.card.values import clip
from dither.tables.query.operations.base import refuse_sql
from dither.tables.query.relations import Rows, ambiguous
from dither.tables.query.tree import Column, Expression
from dither.tables.sql.aggregates import is_aggregate, name_of, number, read, read_if_known, row_leaf

Clause = Literal["SELECT", "HAVING", "QUALIFY", "ORDER BY", "DISTINCT ON", "LIMIT"]
Item = tuple[str | None, exp.Expr]
"""A column after SELECT, with its name by AS."""
_READS = "the item of WITH that is read"


# -- tables -----------------------------------------------------------------------------------------------------------


def with_item(table: exp.Table) -> exp.CTE | None:
    """Return the item of WITH that a name in FROM refers to; None for a table of the card or a path.

    >>> from dither.tables.sql.text import statement
    >>> text = "WITH a AS (SELECT * FROM t) SELECT * FROM (WITH a AS (SELECT x FROM a) SELECT * FROM a)"
    >>> found = [with_item(table) for table in statement(text, "t")[0].find_all(exp.Table)]
    >>> [item and item.this.sql() for item in found]
    ['SELECT x FROM a', None, 'SELECT * FROM t']
    """
    if table.args.get("db") or not isinstance(table.this, exp.Identifier):
        return None
    below: exp.Expr = table
    node = table.parent
    while node is not None:
        visible: list[exp.Expr] = []
        if isinstance(node, exp.With):
            place = next(i for i, item in enumerate(node.expressions) if item is below)
            visible = node.expressions[: place + 1 if node.args.get("recursive") else place]
        elif node.args.get("with_") is not None and below is not node.args["with_"]:
            visible = node.args["with_"].expressions
        for item in visible:
            if isinstance(item, exp.CTE) and item.alias.casefold() == table.name.casefold():
                return item
        below, node = node, node.parent
    return None


def bind_tables(tree: exp.Query) -> list[exp.CTE]:
    """Return the items of all WITH clauses, each after those it may read, and mark every table with the item that it
    reads. Copies keep the mark (:func:`read_item`), so that a subtree can be moved without changing what its names
    mean.
    """
    items = list(_in_order(tree))
    for clause in tree.find_all(exp.With):
        names = [item.alias.casefold() for item in clause.expressions]
        twice = next((item.alias for item in clause.expressions if names.count(item.alias.casefold()) > 1), None)
        if twice is not None:
            raise refuse_sql("different names after WITH", f"{clip(twice)!r} twice", "rename one")
    for table in tree.find_all(exp.Table):
        item_read = with_item(table)
        table.meta[_READS] = next((i for i, item in enumerate(items) if item is item_read), None)
    return items


def read_item(table: exp.Table) -> int | None:
    """Return the index, among the items of :func:`bind_tables`, of the one that a table reads; None where it reads
    none."""
    place: int | None = table.meta.get(_READS)
    return place


def _in_order(node: exp.Expr) -> Iterator[exp.CTE]:
    """Yield the items of WITH below a node, inner ones before the item that contains them."""
    clause = node.args.get("with_")
    if clause is not None:
        yield from _in_order(clause)
    for part in node.iter_expressions():
        if part is not clause:
            yield from _in_order(part)
    if isinstance(node, exp.CTE):
        yield node


# -- the day on which a question is asked -----------------------------------------------------------------------------

_DAYS = frozenset({"CURRENT_DATE", "TODAY", "CURDATE"})
_MOMENTS = frozenset({"NOW", "GETDATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "GET_CURRENT_TIMESTAMP", "SYSDATE"})


def write_day(tree: exp.Query, day: date) -> bool:
    """Replace CURRENT_DATE by a day, and NOW() by its first moment, in a statement; return whether it names either.

    So an answer does not depend on when it is computed, and the day is part of the question that it is recorded for.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT COUNT(*) FROM t WHERE d > CURRENT_DATE - INTERVAL 7 DAY", dialect="duckdb")
    >>> write_day(tree, date(2024, 1, 31)), tree.args["where"].sql("duckdb")
    (True, "WHERE d > CAST('2024-01-31' AS DATE) - INTERVAL '7' DAY")
    """
    names_day = False
    for node in list(tree.walk()):
        no_arguments = isinstance(node, exp.Anonymous) and not node.expressions
        name = node.name.upper() if no_arguments else ""
        is_day = isinstance(node, exp.CurrentDate) or name in _DAYS
        if is_day or isinstance(node, (exp.CurrentTimestamp, exp.Localtimestamp)) or name in _MOMENTS:
            kind = exp.DataType.Type.DATE if is_day else exp.DataType.Type.TIMESTAMP
            text = f"{day}" if is_day else f"{day} 00:00:00"
            node.replace(exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=kind)))
            names_day = True
    return names_day


# -- columns ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NameScope:
    """Rows by what they are called, innermost query first: those of one query are beside each other."""

    levels: tuple[Mapping[str, Rows], ...]

    def find(self, column: Column) -> tuple[str, Expression] | None:
        """Return the name of the rows that have a column, and the expression it stands for there; None where no rows
        have it. The inner query is searched first."""
        return self._find(column, reached=False) or self._find(column, reached=True)

    def _find(self, column: Column, reached: bool) -> tuple[str, Expression] | None:
        """Return what :meth:`find` does, of the columns of sources alone, or also of people whom a path has reached."""
        for level in self.levels:
            known = [(name, rows.lookup(column, reached)) for name, rows in level.items()]
            matches = [(name, match) for name, match in known if match is not None]
            if len(matches) > 1:
                raise ambiguous(column, matches[0][1])
            if matches:
                name, (relation, spelled) = matches[0]
                return name, relation.columns[spelled]
            if column.table is not None and any(rows.has_table(column.table) for rows in level.values()):
                return None
        return None

    @property
    def rows(self) -> Rows:
        """All rows in the scope, which refusals list."""
        return Rows(tuple(item for level in self.levels for rows in level.values() for item in rows.relations))


# -- names by AS ------------------------------------------------------------------------------------------------------


def select_items(select: exp.Select) -> list[Item]:
    """Return the columns after SELECT, each with its name by AS or None; refuse a name that is given twice."""
    items: list[Item] = [
        (item.alias, item.this) if isinstance(item, exp.Alias) else (None, item) for item in select.expressions
    ]
    seen: set[str] = set()
    for alias, _ in items:
        if alias is not None and (not alias or alias.casefold() in seen):
            raise refuse_sql("different names by AS", f"{clip(alias)!r} twice", "rename one")
        seen |= {alias.casefold()} if alias else set()
    return items


def write_groups_out(select: exp.Select) -> None:
    """Replace GROUP BY ALL by its meaning: all columns of SELECT without an aggregate or a window function."""
    group = select.args.get("group")
    if group is not None and group.args.get("all") is True and not group.expressions:
        items = [item.unalias() for item in select.expressions]
        groups = [
            item.copy()
            for item in items
            if not any(isinstance(node, exp.Window) or is_aggregate(node) for node in item.walk())
        ]
        select.set("group", exp.Group(expressions=groups) if groups else None)


def write_windows_out(tree: exp.Query) -> None:
    """Write what WINDOW names after each OVER that names it; a window that another one extends stays as it is."""
    for select in tree.find_all(exp.Select):
        windows = {item.name.casefold(): item for item in select.args.get("windows") or ()}
        uses = [node for node in select.find_all(exp.Window) if node.args.get("over") and node.args.get("alias")]
        uses = [node for node in uses if node.find_ancestor(exp.Select) is select]
        if not windows or any(item.args.get("alias") for item in windows.values()):
            continue
        if any(node.args[part] for node in uses for part in ("partition_by", "order", "spec") if node.args.get(part)):
            continue
        if any(node.args["alias"].name.casefold() not in windows for node in uses):
            continue
        for node in uses:
            meant = windows[node.args["alias"].name.casefold()].copy()
            node.set("alias", None)
            for part in ("partition_by", "order", "spec"):
                node.set(part, meant.args.get(part))
        select.set("windows", None)


def group_node(node: exp.Expr, items: Sequence[Item], rows: Rows) -> exp.Expr:
    """Return the expression that an element of GROUP BY refers to: a column of SELECT by position or by its name, or
    the element itself."""
    written = unwrapped(node)
    if isinstance(written, exp.Literal) and not written.is_string:
        return items[position(written, len(items), "GROUP BY")][1]
    if not isinstance(written, exp.Column) or written.table:
        return node
    alias = next((item for name, item in items if name and name.casefold() == written.name.casefold()), None)
    if alias is None or rows.lookup(name_of(written)) is None:
        return node if alias is None else alias
    leaf = row_leaf(rows, "GROUP BY")
    if read_if_known(alias, leaf) == read(written, leaf):
        return alias
    fix = "write GROUP BY 1, or another name after AS"
    raise refuse_sql("one meaning in GROUP BY", f"a column and an expression named {clip(written.name)!r}", fix)


def means_alias(name: str, clause: Clause, column: object, alias: object, usable: bool) -> bool:
    """Return whether a name in a clause means an output column by AS rather than a column of the rows; refuse it
    where engines disagree.

    ``column`` and ``alias`` are the two meanings, None where there is none. ``usable`` says that the column may stand
    in the clause, because it is grouped or because rows are not grouped. (A name alone in ORDER BY is that of AS.)

    >>> means_alias("n", "SELECT", "a column", "an alias", usable=True)
    False
    >>> means_alias("n", "HAVING", "a column", "an alias", usable=False)
    True
    """
    if column is None or alias is None or column == alias:
        return column is None
    if clause == "SELECT":
        return False
    if not usable:
        return clause in ("HAVING", "QUALIFY")
    fix = "give the expression another name after AS"
    raise refuse_sql(f"one meaning in {clause}", f"a column and an expression named {clip(name)!r}", fix)


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Return a node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def position(node: exp.Expr, count: int, clause: str) -> int:
    """Return the index, from 0, of the column that a position such as GROUP BY 1 refers to among ``count`` columns."""
    place = number(node, clause)
    if not isinstance(place, int) or not 1 <= place <= count:
        expected = f"a position from 1 to {count} in {clause}"
        raise refuse_sql(expected, str(place), f"write {clause} 1, or the column's name")
    return place - 1
