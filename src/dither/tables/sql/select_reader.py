"""From the parts of one SELECT over the card's table to groups, aggregates and what is shown of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from dither import arguments
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type
from dither.tables.card.values import clip
from dither.tables.query.evaluate import require_boolean, typed
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import relation_card
from dither.tables.query.resolve import answer_type, spelling, type_of, unique
from dither.tables.query.tree import (
    Aggregate,
    Call,
    Column,
    Expression,
    Group,
    Literal,
    Order,
    Query,
    Shape,
    columns,
    show,
)
from dither.tables.sql.aggregates import aggregate, default_name
from dither.tables.sql.expressions import find_column, is_aggregate, name_of, number, read, row_leaf, ungrouped
from dither.tables.sql.relations import rows_of
from dither.tables.sql.scopes import (
    Clause,
    Item,
    group_node,
    means_alias,
    position,
    select_items,
    unwrapped,
    write_groups_out,
)

_OPTIONS = ("epsilon", "delta", "max_groups_contributed", "max_rows_per_group", "privacy_unit_column")


class _Result(Column):
    """A group or an aggregate of the answer, where columns of the table may stand beside it."""


class SelectReader:
    """Collects groups and aggregates while the parts of a SELECT are read.

    ``groups`` and ``aggregates`` are named; ``written`` says what each group is in the question, ``types`` what type
    each has; ``items`` are the columns after SELECT with their names by AS.
    """

    def __init__(self, tree: exp.Select, card: Card) -> None:
        self.tree, self.rows = tree, rows_of(tree, card)
        write_groups_out(tree)
        self.base_card, self.card = card, relation_card(card, self.rows.source, where=self.rows.where)
        self.aggregates: dict[str, Aggregate] = {}
        self.groups: list[Group] = []
        self.written: dict[str, Expression] = {}
        self.types: dict[str, Type] = {}
        self.max_rows: set[int] = set()
        self.one_row = False
        self.items: list[Item] = []
        self.meanings: dict[str, Expression] = {}
        """What the names of the columns of the answer stand for, by AS or by default."""
        self.taken: set[str] = set()

    def query(self, options: dict[str, exp.Expr]) -> Query:
        """The question, with what is shown of its answer."""
        args = self.tree.args
        self.read_groups()
        shown = self._output_columns()
        having, order, limit = args.get("having"), args.get("order"), args.get("limit")
        kept = require_boolean(self._answer(having.this, "HAVING"), self._type, "HAVING") if having else None
        keys = tuple(self._order(item, list(shown)) for item in order.expressions) if order else ()
        if not self.aggregates:
            raise refuse_sql("an aggregate", "none", "add COUNT(*), for example: single rows are never released")
        shape = Shape(shown, kept, keys, _limit(limit))
        rows = self.rows
        question = Query(self.aggregates, tuple(self.groups), rows.where, rows.joins, shape, source=rows.source)
        return replace(question, **self.release_options(options))

    def read_groups(self) -> None:
        """Read what is grouped by, and before it the names by AS, which GROUP BY may use."""
        self._read_items()
        self._read_groups(self.tree.args.get("group"))

    def _read_items(self) -> None:
        self.items = select_items(self.tree)
        self.taken |= {alias.casefold() for alias, _ in self.items if alias}

    def _read_groups(self, group: exp.Group | None) -> None:
        if group is None:
            return
        refuse_other_parts(group, "expressions")
        for node in group.expressions:
            meant = group_node(node, self.items, self.rows)
            written = read(meant, row_leaf(self.rows, "GROUP BY"))
            if not columns(written):
                name = spelling(str(written.value), self.card.columns) if isinstance(written, Literal) else None
                fix = "name a column, or leave GROUP BY out" if name is None else f"write {name} without quotes"
                raise refuse_sql("GROUP BY of columns", show(written), fix)
            if written not in self.written.values():
                column = name_of(meant) if isinstance(meant, exp.Column) else None
                self._add_group(written, self.rows.spelling_of(column) if column else _group_name(written))

    def group_name(self, node: exp.Expr) -> str:
        """The name of the group that a part of GROUP BY stands for."""
        written = read(group_node(node, self.items, self.rows), row_leaf(self.rows, "GROUP BY"))
        return next(name for name, value in self.written.items() if value == written)

    def _add_group(self, written: Expression, default: str) -> None:
        unit, known = self.base_card.unit, self.base_card.columns
        if unit is not None and written == Column(unit) and not (unit in known and known[unit].keys):
            fix = f"group by another column; COUNT(DISTINCT {unit}) counts people"
            raise refuse_sql("groups of several people", f"GROUP BY {unit}, one for each person", fix)
        alias = next((alias for alias, node in self.items if alias and self._stands_for(node, written)), None)
        value, kind = typed(written, lambda column: type_of(self.card, column))
        name = alias or self._unique(default)
        # WIDTH_BUCKET is bin + 1: the bins, which are public, are the group, and 1 is added to the answer
        shifted = _bin_of_bucket(value)
        assert kind is not None
        self.groups.append(Group(name, value if shifted is None else shifted))
        self.written[name] = written
        self.types[name] = kind

    def _stands_for(self, node: exp.Expr, written: Expression) -> bool:
        try:
            return read(node, row_leaf(self.rows, "SELECT")) == written
        except InvalidArgument:
            return False

    def _output_columns(self) -> dict[str, Expression]:
        """The columns of the answer. Aggregates that are shown as they are come first: they are called what AS says."""
        for alias, node in self.items:
            if is_aggregate(node):
                self.aggregate(node, alias)
        shown: dict[str, Expression] = {}
        for alias, node in self.items:
            written = self._read_mixed(node, "SELECT")
            value, _ = typed(self._on_answer(written), self._type)
            name = alias or (value.name if isinstance(value, Column) else "value")
            if alias is None and (name in shown or not isinstance(value, Column)):
                name = self._unique(name)
            self.meanings[name.casefold()] = written
            shown[name] = value
        return shown

    def aggregate(self, node: exp.Expr, alias: str | None = None) -> _Result:
        """The aggregate that a node stands for, by its name in the answer."""
        result = aggregate(node, self.rows, self.card)
        if result.max_rows is not None:
            self.max_rows.add(result.max_rows)
        self.one_row |= result.one_row
        for name, known in self.aggregates.items():
            if known == result.aggregate:
                return _Result(name)
        name = alias or self._unique(default_name(result.aggregate))
        self.aggregates[name] = result.aggregate
        self.types[name] = answer_type(result.aggregate, self.card)
        return _Result(name)

    def _answer(self, node: exp.Expr, clause: Clause) -> Expression:
        return self._on_answer(self._read_mixed(node, clause))

    def _read_mixed(self, node: exp.Expr, clause: Clause) -> Expression:
        """The node as an expression on rows and on the answer: aggregates are of the answer, the rest not yet."""

        def leaf(item: exp.Expr) -> Expression | None:
            if is_aggregate(item):
                return self.aggregate(item)
            if not isinstance(item, exp.Column):
                return None
            alias = None if clause == "SELECT" else self._meaning(item)
            if alias is None:
                return find_column(item, self.rows)
            match = self.rows.lookup(name_of(item))
            column = None if match is None else self.rows.find(name_of(item))
            usable = column in self.written.values()
            return alias if means_alias(item.name, clause, column, alias, usable) else column

        return read(node, leaf)

    def _meaning(self, node: exp.Expr) -> Expression | None:
        """What a name alone stands for by AS; a name that AS does not give is one where no column has it."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        name = node.name.casefold()
        by_as = any(alias and alias.casefold() == name for alias, _ in self.items)
        return self.meanings.get(name) if by_as or self.rows.lookup(name_of(node)) is None else None

    def _on_answer(self, expression: Expression) -> Expression:
        """The expression on the answer: what is grouped has become the group's column."""
        if isinstance(expression, _Result):
            return Column(expression.name)
        if not isinstance(expression, Literal):
            for group in self.groups:
                if expression == self.written[group.name]:
                    shown = Column(group.name)
                    return shown if _bin_of_bucket(expression) is None else Call("+", (shown, Literal(1)))
        if isinstance(expression, Column):
            raise ungrouped(self.tree, expression, self.is_numeric(expression))
        if isinstance(expression, Call):
            return Call(expression.op, tuple(self._on_answer(item) for item in expression.args))
        return expression

    def is_numeric(self, expression: Expression) -> bool:
        """Whether an expression on rows is a column of numbers."""
        return isinstance(expression, Column) and type_of(self.card, expression) in ("integer", "number")

    def _type(self, column: Column) -> Type:
        return self.types[column.name]

    def _order(self, node: exp.Expr, shown: list[str]) -> Order:
        if node.args.get("nulls_first"):
            raise refuse_sql("NULLS LAST", "NULLS FIRST", "leave it out; NULLs come last")
        refuse_other_parts(node, "this", "desc", "nulls_first")
        key = unwrapped(node.this)
        named = self._meaning(key)
        if isinstance(key, exp.Literal) and not key.is_string:
            named = self.meanings[shown[position(key, len(shown), "ORDER BY")].casefold()]
        value = self._answer(key, "ORDER BY") if named is None else self._on_answer(named)
        return Order(typed(value, self._type)[0], bool(node.args.get("desc")))

    def _unique(self, name: str) -> str:
        result = unique(name, self.taken)
        self.taken.add(result.casefold())
        return result

    def release_options(self, options: dict[str, exp.Expr]) -> dict[str, Any]:
        """What OPTIONS and bounds per group say of the release."""
        stated: dict[str, Any] = {}
        for name, node in options.items():
            if name == "epsilon":
                stated["epsilon"] = float(arguments.epsilon(number(node, name)))
            elif name == "delta":
                stated["delta"] = float(arguments.delta(number(node, name)))
            elif name == "max_groups_contributed":
                stated["max_groups"] = arguments.whole(_whole(node, name), name)
            elif name == "max_rows_per_group":
                self.max_rows.add(arguments.whole(_whole(node, name), name))
            elif name == "privacy_unit_column":
                self._check_unit(node)
            else:
                raise refuse_sql(f"options {', '.join(_OPTIONS)}", clip(name), "leave it out")
        if len(self.max_rows) > 1:
            fix = "state the same number everywhere: it bounds the rows of a person in a group"
            raise refuse_sql("one number of rows per person and group", "several", fix)
        stated["max_rows"] = next(iter(self.max_rows), None)
        if self.one_row and (stated["max_rows"] or self.card.max_rows) != 1:
            fix = "bound each value by contribution_bounds_per_row, or state max_rows_per_group = 1"
            raise refuse_sql("contribution_bounds_per_group with one row per person and group", "several rows", fix)
        return stated

    def _check_unit(self, node: exp.Expr) -> None:
        name = node.name if isinstance(node, (exp.Column, exp.Literal)) else ""
        unit = self.base_card.unit
        if unit is None or spelling(name, self.base_card.columns) != unit:
            fix = f"write privacy_unit_column = {unit}" if unit else "leave it out: every row is a person of its own"
            raise refuse_sql("the card's column of people", clip(name) or "something else", fix)


def is_bucket(expression: Expression) -> bool:
    """Whether it is WIDTH_BUCKET: the group is then its bin, to which the answer adds 1.

    >>> is_bucket(Column("age"))
    False
    """
    return _bin_of_bucket(expression) is not None


def _bin_of_bucket(expression: Expression) -> Expression | None:
    """The bin in WIDTH_BUCKET."""
    if isinstance(expression, Call) and expression.op == "+" and expression.args[1] == Literal(1):
        inside = expression.args[0]
        return inside if isinstance(inside, Call) and inside.op == "bin" else None
    return None


def _group_name(expression: Expression) -> str:
    inside = _bin_of_bucket(expression) or expression
    names = sorted(item.name for item in columns(expression))
    op = inside.op if isinstance(inside, Call) and inside.op.isidentifier() else "group"
    return f"{op}_{names[0]}"


def _whole(node: exp.Expr, name: str) -> int:
    value = number(node, name)
    if not isinstance(value, int):
        raise refuse_sql(f"a whole number for {name}", str(value), f"write {name} = 1")
    return value


def _limit(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    if not isinstance(node, exp.Limit):
        raise refuse_sql("LIMIT n", node.key.upper(), "write LIMIT 10")
    refuse_other_parts(node, "expression")
    limit = number(node.expression, "LIMIT")
    if not isinstance(limit, int) or limit < 0:
        raise refuse_sql("LIMIT n", str(limit), "write LIMIT 10")
    return limit
