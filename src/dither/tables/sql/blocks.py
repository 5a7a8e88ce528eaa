"""A private block: a SELECT that aggregates rows of the card.

Its FROM, WHERE and GROUP BY and its aggregates are a private question. What it does with the answer (expressions,
windows, HAVING, DISTINCT, ORDER BY, LIMIT) is written as SQL on the noisy table that the question makes. Where dither's
own operations can say all of it, it is the :class:`~dither.tables.query.tree.Shape` of the answer.

Each of the sets of columns that ROLLUP, CUBE and GROUPING SETS ask for is a level, which has a noisy table of its own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from dither import arguments
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type
from dither.tables.card.values import clip
from dither.tables.query.evaluate import require_boolean, typed
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import Rows, answer_type, relation_card, spelling, type_of, unique
from dither.tables.query.tree import Aggregate, Call, Column, Expression, Group, Literal, Order, Shape, columns, show
from dither.tables.sql.aggregates import (
    aggregate,
    default_name,
    find_column,
    is_aggregate,
    name_of,
    number,
    read,
    read_if_known,
    row_leaf,
    ungrouped,
)
from dither.tables.sql.relations import rows_of
from dither.tables.sql.scopes import (
    Clause,
    group_node,
    means_alias,
    position,
    select_items,
    unwrapped,
    write_groups_out,
)

_PARTS = (
    "with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order", "limit",
    "offset", "distinct",
)  # fmt: skip
_ONLY_SQL = ("with_", "qualify", "windows", "offset", "distinct")
"""Parts of a SELECT that a shape does not have."""
_SHAPE: dict[str, Clause] = {
    "qualify": "QUALIFY", "order": "ORDER BY", "limit": "LIMIT", "offset": "LIMIT", "distinct": "DISTINCT ON",
}  # fmt: skip
_GROUPING = "grouping of "
"""What the columns of GROUPING are called among the levels, before the name of the group."""
_OPTIONS = ("epsilon", "delta", "max_groups_contributed", "max_rows_per_group", "privacy_unit_column")
NoisyNames = tuple[str, dict[str, str]]
"""The name of a noisy table, and what the groups and aggregates of a block are called in it."""
MOST_LEVELS = 64
"""How many levels a GROUP BY may have: they share the budget."""
_FIX = "name the sets that you need: GROUPING SETS ((a, b), (a), ())"
Columns = tuple[exp.Expr, ...]


def grouping_sets(group: exp.Expr | None) -> list[Columns] | None:
    """Return the sets of columns that ROLLUP, CUBE and GROUPING SETS expand to, in SQL's order; None for a plain
    GROUP BY."""
    if group is None:
        return None
    sets = [_sets(item) for item in group.expressions]
    special = any(isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)) for item in group.expressions)
    for name in ("rollup", "cube"):  # GROUP BY a, b WITH ROLLUP
        for item in group.args.get(name) or ():
            listed = item.expressions or [item for columns in sets for item in columns[0]]
            sets = [] if not item.expressions else sets
            sets.append(_sets(type(item)(expressions=listed)))
            special = True
    if not special:
        return None
    refuse_other_parts(group, "expressions", "rollup", "cube")
    if math.prod(map(len, sets)) > MOST_LEVELS:
        raise refuse_sql(f"at most {MOST_LEVELS} levels", "more", _FIX)
    return [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*sets)]


def _sets(node: exp.Expr) -> list[Columns]:
    """Return the sets of columns that one item of GROUP BY expands to; a plain column is one set."""
    if isinstance(node, exp.GroupingSets):
        refuse_other_parts(node, "expressions")
        return [columns for item in node.expressions for columns in _sets(item)]
    if not isinstance(node, (exp.Rollup, exp.Cube)):
        return [_columns(node)]
    refuse_other_parts(node, "expressions")
    parts = [_columns(item) for item in node.expressions]
    sizes = range(len(parts), -1, -1)
    if isinstance(node, exp.Rollup):
        return [tuple(itertools.chain(*parts[:size])) for size in sizes]
    if len(parts) >= MOST_LEVELS.bit_length():
        raise refuse_sql(f"at most {MOST_LEVELS} levels", "more", _FIX)
    return [tuple(itertools.chain(*chosen)) for size in sizes for chosen in itertools.combinations(parts, size)]


def _columns(node: exp.Expr) -> Columns:
    """Return the columns of one element of a grouping set: itself, or those listed in brackets."""
    if isinstance(node, exp.Tuple):
        return tuple(column for item in node.expressions for column in _columns(item))
    return _columns(node.this) if isinstance(node, exp.Paren) else (node,)


@dataclass(frozen=True)
class BlockLevel:
    """The request of a block at one level of ROLLUP or CUBE: aggregates of its rows by groups, and the columns
    ``rolled_up`` that only other levels group by. ``types`` are those of the columns, and ``options`` the stated
    options of the release, such as limits on a person's rows.
    """

    groups: tuple[Group, ...]
    aggregates: dict[str, Aggregate]
    rows: Rows
    types: dict[str, Type]
    options: dict[str, Any] = field(default_factory=dict)
    rolled_up: tuple[Group, ...] = ()
    is_level: bool = False

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what two levels must share to be answered by one aggregation: groups, joins, relation and stated
        options."""
        values = (tuple(item.value for item in groups) for groups in (self.groups, self.rolled_up))
        return (*values, self.rows.joins, self.rows.source, self.options)


class PrivateBlock:
    """Reads a private block.

    ``groups`` and ``aggregates`` are named; ``written`` says what each group is in the question, ``types`` what type
    each has; ``items`` are the columns after SELECT with their names by AS.
    """

    def __init__(self, select: exp.Select, card: Card, options: dict[str, exp.Expr]) -> None:
        """Read the groups, the aggregates of all clauses and the ``options`` of the SELECT, in this order."""
        refuse_other_parts(select, *_PARTS)
        self.select, self.rows, self.base_card = select, rows_of(select, card), card
        self.card = relation_card(card, self.rows.source, where=self.rows.where)
        self.items = select_items(select)
        self.groups: list[Group] = []
        self.aggregates: dict[str, Aggregate] = {}
        self.written: dict[str, Expression] = {}
        self.types: dict[str, Type] = {}
        self.columns: list[_NoisyColumn] = []
        """The columns of the noisy table in the outer SQL, each with its name in this block."""
        self._taken = {alias.casefold() for alias, _ in self.items if alias}
        self._max_rows: set[int] = set()
        self._one_row = False
        write_groups_out(select)
        group = select.args.get("group")
        sets = grouping_sets(group)
        if sets is not None:
            group = exp.Group(expressions=[node.copy() for nodes in sets for node in nodes])
        self._read_groups(group)
        every = [item.name for item in self.groups]
        named = [every] if sets is None else [[self._group_name(node) for node in nodes] for nodes in sets]
        self.levels = [frozenset(names) for names in named]
        self.asked_by_level = len(set(self.levels)) > 1
        self._aliases: dict[str, exp.Expr] = {}
        self._names: dict[str, exp.Expr] = {}
        self._items = self._output_columns()
        self._having = self._part("having", "HAVING")
        self._rest = {name: self._part(name, clause) for name, clause in _SHAPE.items()}
        self._windows = [self._rewritten(item.copy()) for item in select.args.get("windows") or ()]
        stated = self._release_options(options)
        self.asked = [self._asked(names, stated) for names in self.levels]

    def _read_groups(self, group: exp.Group | None) -> None:
        """Read GROUP BY into ``groups``; an expression that is listed twice counts once."""
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

    def _group_name(self, node: exp.Expr) -> str:
        """Return the name of the group that an element of GROUP BY refers to."""
        written = read(group_node(node, self.items, self.rows), row_leaf(self.rows, "GROUP BY"))
        return next(name for name, value in self.written.items() if value == written)

    def _add_group(self, written: Expression, default: str) -> None:
        """Add a group with its name and type; refuse grouping by the person, which makes groups of one person."""
        unit, known = self.base_card.unit, self.base_card.columns
        if unit is not None and written == Column(unit) and not (unit in known and known[unit].keys):
            fix = f"group by another column; COUNT(DISTINCT {unit}) counts people"
            raise refuse_sql("groups of several people", f"GROUP BY {unit}, one for each person", fix)
        alias = next((alias for alias, node in self.items if alias and self._on_rows(node) == written), None)
        value, kind = typed(written, lambda column: type_of(self.card, column))
        name = alias or self._unique(default)
        # WIDTH_BUCKET is bin + 1: the bins, which are public, are the group, and 1 is added to the answer
        shifted = _bin_of_bucket(value)
        assert kind is not None
        self.groups.append(Group(name, value if shifted is None else shifted))
        self.written[name] = written
        self.types[name] = kind

    def _aggregate(self, node: exp.Expr, alias: str | None = None) -> str:
        """Return the name under which an aggregate is asked for; one that is asked for already is measured once."""
        result = aggregate(node, self.rows, self.card)
        self._check_outer(result.aggregate)
        if result.max_rows is not None:
            self._max_rows.add(result.max_rows)
        self._one_row |= result.one_row
        for name, known in self.aggregates.items():
            if known == result.aggregate:
                return name
        name = alias or self._unique(default_name(result.aggregate))
        self.aggregates[name] = result.aggregate
        self.types[name] = answer_type(result.aggregate, self.card)
        return name

    def _check_outer(self, asked: Aggregate) -> None:
        """Refuse an aggregate to which a row of a public table adds something that no row of a person has joined."""
        values = [value for value in (asked.value, asked.other) if value is not None]
        is_null = asked.kind == "people" or any(map(self.rows.is_null_without, values))
        if self.rows.outer and not is_null:
            (name,) = self.rows.outer
            private = next(item for item in self.rows.relations if item.name not in self.rows.outer)
            column = next(iter(private.columns))
            fix = f"count a column of the private rows: COUNT({private.name}.{column})"
            raise refuse_sql("aggregates of private rows", f"one that counts rows of {clip(name)!r} without any", fix)

    def _release_options(self, options: dict[str, exp.Expr]) -> dict[str, Any]:
        """Return the release options that OPTIONS and contribution bounds per group state, such as epsilon and
        limits on a person's rows."""
        stated: dict[str, Any] = {}
        for name, node in options.items():
            if name == "epsilon":
                stated["epsilon"] = float(arguments.epsilon(number(node, name)))
            elif name == "delta":
                stated["delta"] = float(arguments.delta(number(node, name)))
            elif name == "max_groups_contributed":
                stated["max_groups"] = arguments.whole(_whole(node, name), name)
            elif name == "max_rows_per_group":
                self._max_rows.add(arguments.whole(_whole(node, name), name))
            elif name == "privacy_unit_column":
                self._check_unit(node)
            else:
                raise refuse_sql(f"options {', '.join(_OPTIONS)}", clip(name), "leave it out")
        if len(self._max_rows) > 1:
            fix = "state the same number everywhere: it bounds the rows of a person in a group"
            raise refuse_sql("one number of rows per person and group", "several", fix)
        stated["max_rows"] = next(iter(self._max_rows), None)
        if self._one_row and (stated["max_rows"] or self.card.max_rows) != 1:
            fix = "bound each value by contribution_bounds_per_row, or state max_rows_per_group = 1"
            raise refuse_sql("contribution_bounds_per_group with one row per person and group", "several rows", fix)
        return stated

    def _check_unit(self, node: exp.Expr) -> None:
        """Refuse a ``privacy_unit_column`` other than the card's unit: who is protected is for the card to say."""
        name = node.name if isinstance(node, (exp.Column, exp.Literal)) else ""
        unit = self.base_card.unit
        if unit is None or spelling(name, self.base_card.columns) != unit:
            fix = f"write privacy_unit_column = {unit}" if unit else "leave it out: every row is a person of its own"
            raise refuse_sql("the card's column of people", clip(name) or "an expression", fix)

    def shape(self) -> Shape | InvalidArgument | None:
        """Return what is done with the noisy answer where dither's own operations compute it. None: the block has
        clauses that only SQL has. A refusal: an operation or type is not dither's, which DuckDB may still compute."""
        if self.asked_by_level or any(self.select.args.get(name) for name in _ONLY_SQL):
            return None
        try:
            return self._own_shape()
        except InvalidArgument as refusal:
            return refusal

    def _own_shape(self) -> Shape:
        """Return the columns, HAVING, ORDER BY and LIMIT of the block as expressions on the noisy table; refuse
        operations that the table of operations does not have."""
        shown = {
            name: typed(self._on_answer(item.this), self._type)[0]
            for name, item in zip(self._names, self._items, strict=True)
        }
        having = None if self._having is None else self._on_answer(self._having.this)
        kept = None if having is None else require_boolean(having, self._type, "HAVING")
        order = self._rest["order"]
        keys = () if order is None else tuple(self._order(item, list(shown.values())) for item in order.expressions)
        return Shape(shown, kept, keys, _limit(self._rest["limit"]))

    def _on_answer(self, node: exp.Expr) -> Expression:
        """Return a node as an expression on the columns of the noisy table."""
        return read(node, lambda item: Column(item.name) if isinstance(item, exp.Column) else None)

    def _order(self, node: exp.Expr, shown: list[Expression]) -> Order:
        """Return one key of ORDER BY, where a number is the position of a column in SELECT."""
        if node.args.get("nulls_first"):
            raise refuse_sql("NULLS LAST", "NULLS FIRST", "leave it out; NULLs come last")
        refuse_other_parts(node, "this", "desc", "nulls_first")
        key = unwrapped(node.this)
        if isinstance(key, exp.Literal) and not key.is_string:
            value = shown[position(key, len(shown), "ORDER BY")]
        else:
            value = typed(self._on_answer(key), self._type)[0]
        return Order(value, bool(node.args.get("desc")))

    def _asked(self, names: frozenset[str], stated: dict[str, Any]) -> BlockLevel:
        """Return what the block asks for at one level: its aggregates by the named groups, and the groups that are
        rolled up there."""
        groups = tuple(group for group in self.groups if group.name in names)
        rest = tuple(group for group in self.groups if group.name not in names) if self.asked_by_level else ()
        return BlockLevel(groups, self.aggregates, self.rows, self.types, stated, rest, self.asked_by_level)

    def outer(self, tables: list[NoisyNames]) -> exp.Select:
        """Return the block as SQL that reads its noisy table, or the union of the tables of its levels."""
        noisy, names = tables[0]
        source: exp.Expr = exp.Table(this=exp.to_identifier(noisy, quoted=True))
        if self.asked_by_level:
            source = self._all_levels(tables)
            names = {column.name: column.name for column in self.columns}
        if self._queries():
            source, names = self._hidden(source, noisy, names)
        for column in self.columns:
            column.rename(names)
        result = exp.Select(expressions=self._items, from_=exp.From(this=source))
        if self.select.args.get("with_"):
            result.set("with_", self.select.args["with_"])
        if self._having is not None:
            result.set("where", exp.Where(this=self._having.this))
        for name, part in self._rest.items():
            if part is not None:
                result.set(name, part)
        if self._windows:
            result.set("windows", self._windows)
        return result

    def _queries(self) -> list[exp.Expr]:
        """Return the subqueries in the clauses that are evaluated on the noisy table."""
        parts = [*self._items, self._having, *self._rest.values(), *self._windows]
        return [query for part in parts if part is not None for query in part.find_all(exp.Query)]

    def _hidden(self, source: exp.Expr, noisy: str, names: dict[str, str]) -> tuple[exp.Expr, dict[str, str]]:
        """Return a subquery that gives the columns of the noisy table unusual names ("noisy.n"), and these names.

        Queries nested in the block then cannot refer to the columns by accident: a name in them means a column of rows,
        of another block, or an alias.
        """
        for column in (column for query in self._queries() for column in query.find_all(exp.Column)):
            alias, column_of_rows = self._alias(column), None
            if alias is not None:
                column_of_rows = self.rows.lookup(name_of(column))
            if column_of_rows is not None and self._group(column) != alias:
                fix = "give the expression another name after AS"
                raise refuse_sql("one meaning", f"a column and an expression named {clip(column.name)!r}", fix)
        used = {column.name for column in self.columns}
        hidden = {name: f"{noisy}.{name}" for name in used}
        shown: list[exp.Expr] = [_named(_quoted_column(names[name]), hidden[name]) for name in sorted(used)]
        if self.asked_by_level:
            shown += [_quoted_column(_GROUPING + group.name) for group in self.groups]
        inside = exp.Select(expressions=shown or [exp.Star()], from_=exp.From(this=source))
        return exp.Subquery(this=inside, alias=exp.TableAlias(this=exp.to_identifier(noisy, quoted=True))), hidden

    def _all_levels(self, tables: list[NoisyNames]) -> exp.Subquery:
        """Return the union of the noisy tables of all levels: NULL in the columns that a level does not group by,
        and a column with the value of GROUPING for each group."""
        selects = []
        for level, (noisy, names) in zip(self.levels, tables, strict=True):
            columns: list[exp.Expr] = []
            for group in self.groups:
                value: exp.Expr = _quoted_column(names[group.name]) if group.name in level else exp.Null()
                bit = exp.Literal.number(0 if group.name in level else 1)
                columns += [_named(value, group.name), _named(bit, _GROUPING + group.name)]
            columns += [_named(_quoted_column(names[name]), name) for name in self.aggregates]
            table = exp.Table(this=exp.to_identifier(noisy, quoted=True))
            selects.append(exp.Select(expressions=columns, from_=exp.From(this=table)))
        every: exp.Query = selects[0]
        for select in selects[1:]:
            every = exp.Union(this=every, expression=select, distinct=False)
        return exp.Subquery(this=every, alias=exp.TableAlias(this=exp.to_identifier(tables[0][0], quoted=True)))

    def _grouping(self, node: exp.Anonymous) -> exp.Expr:
        """Return GROUPING(a, b) as arithmetic: one bit for each column, 1 where the row's level does not group by
        it."""
        result: exp.Expr = exp.Literal.number(0)
        for item in node.expressions:
            column = self._group(item)
            group = None if column is None else column.find(exp.Column)
            if group is None:
                raise refuse_sql(
                    "GROUPING of a column of GROUP BY", "a column that is not grouped", "name a column of GROUP BY"
                )
            bit = _quoted_column(_GROUPING + group.name) if self.asked_by_level else exp.Literal.number(0)
            twice = exp.Mul(this=exp.Literal.number(2), expression=exp.Paren(this=result))
            result = exp.Add(this=twice, expression=bit)
        return exp.Paren(this=result)

    def _part(self, name: str, clause: Clause) -> exp.Expr | None:
        """Return a clause such as HAVING or ORDER BY rewritten to read the noisy table; None where the SELECT has
        none."""
        part = self.select.args.get(name)
        if part is None:
            return None
        part = _copied_in_place(part)
        for item in part.expressions if isinstance(part, exp.Order) else ():
            alias = self._alias(unwrapped(item.this), clause)
            if alias is not None:
                item.set("this", self._copied(alias))
            elif not isinstance(item.this, exp.Literal):
                item.set("this", self._rewritten(item.this, clause))
        return part if isinstance(part, exp.Order) else self._rewritten(part, clause)

    def _output_columns(self) -> list[exp.Expr]:
        """Return the columns after SELECT rewritten to read the noisy table, and remember their names."""
        for alias, node in self.items:
            if is_aggregate(node):
                self._aggregate(node, alias)
        result: list[exp.Expr] = []
        for alias, node in self.items:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                raise refuse_sql("groups and aggregates", "*", "name the columns; single rows are never released")
            value = self._rewritten(_copied_in_place(node))
            default = value.name if isinstance(value, exp.Column) else node.sql("duckdb")
            name = alias or (value.name if isinstance(value, exp.Column) else "value")
            if alias is None and (name in self._names or not isinstance(value, exp.Column)):
                name = self._unique(name)
            self._names[name] = value
            if alias is not None:
                self._aliases[alias.casefold()] = value
            result.append(exp.Alias(this=value, alias=exp.to_identifier(alias or default, quoted=True)))
        return result

    def _rewritten(self, node: exp.Expr, clause: Clause = "SELECT") -> exp.Expr:
        """Return a node that reads the noisy table: each aggregate and group in it becomes a column of that table."""
        if isinstance(node, exp.Query):
            return node
        if isinstance(node, exp.Dot):  # a method, as in df.mean()
            self._on_answer(node)
        if is_aggregate(node):
            return self._column(self._aggregate(node))
        if isinstance(node, exp.Anonymous) and node.name.casefold() in ("grouping", "grouping_id"):
            return self._grouping(node)
        if isinstance(node, exp.Column):
            return self._named(node, clause)
        group = self._group(node)
        if group is not None:
            return group
        window = isinstance(node, exp.Window)
        for child in window_parts(node) if isinstance(node, exp.Window) else list(node.iter_expressions()):
            rewritten = self._rewritten(child, "SELECT" if window else clause)
            if rewritten is not child:
                child.replace(rewritten)
        return node

    def _group(self, node: exp.Expr) -> exp.Expr | None:
        """Return the column of the noisy table with the group that a node is equal to; None where it is no group.
        WIDTH_BUCKET, whose group is the bin, is the column plus 1."""
        if isinstance(node, exp.Literal):
            return None
        written = self._on_rows(node)
        for name, value in self.written.items():
            if value == written:
                column = self._column(name)
                if _bin_of_bucket(value) is None:
                    return column
                return exp.Paren(this=exp.Add(this=column, expression=exp.Literal.number(1)))
        return None

    def _named(self, node: exp.Column, clause: Clause) -> exp.Expr:
        """Return the expression of a column's name in a clause: a grouping column, or an output column with this alias.
        Refuse a column that is neither grouped nor aggregated."""
        alias, group = self._alias(node, clause), self._group(node)
        known = group is not None or self.rows.lookup(name_of(node)) is not None
        column = (node if group is None else group) if known else None
        if alias is not None and means_alias(node.name, clause, column, alias, usable=group is not None):
            return self._copied(alias)
        if group is not None:
            return group
        if clause == "LIMIT":
            number(node, clause)  # which refuses it
        self._refuse_unknown(node)
        value = find_column(node, self.rows)
        raise ungrouped(self.select, value, self._is_numeric(value))

    def _refuse_unknown(self, node: exp.Expr) -> None:
        """Refuse the innermost unknown operation around an ungrouped column before the column itself is refused: it
        is more likely meant as an aggregate."""
        while isinstance(node.parent, exp.Condition) and not isinstance(node.parent, (exp.Alias, exp.Query)):
            node = node.parent
        if not isinstance(node, exp.Window):
            read(node, lambda item: Column("") if is_aggregate(item) or isinstance(item, exp.Column) else None)

    def _alias(self, node: exp.Expr, clause: Clause = "SELECT") -> exp.Expr | None:
        """Return the output column that a name stands for by AS; behind SELECT also by the name a column has by
        default. None where there is none."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        alias = self._aliases.get(node.name.casefold())
        if alias is not None or clause == "SELECT" or self.rows.lookup(name_of(node)) is not None:
            return alias
        return next((value for name, value in self._names.items() if name.casefold() == node.name.casefold()), None)

    def _copied(self, meant: exp.Expr) -> exp.Expr:
        """Return a copy of an expression on the noisy table, whose columns are renamed together with the original's."""
        copy = meant.copy()
        for old, new in zip(meant.find_all(exp.Column), copy.find_all(exp.Column), strict=True):
            self.columns += [_NoisyColumn(new, item.name) for item in self.columns if item.node is old]
        return exp.Paren(this=copy)

    def _column(self, name: str) -> exp.Column:
        """Return a new column node for a group or aggregate, which is renamed when the noisy table's names are
        known."""
        node = exp.column(exp.to_identifier(name, quoted=True))
        self.columns.append(_NoisyColumn(node, name))
        return node

    def _on_rows(self, node: exp.Expr) -> Expression | None:
        """Return a node as an expression on the block's rows; None where it is none."""
        return read_if_known(node, row_leaf(self.rows, "SELECT"))

    def _is_numeric(self, expression: Expression) -> bool:
        """Return whether an expression on rows is a column of numbers."""
        return isinstance(expression, Column) and type_of(self.card, expression) in ("integer", "number")

    def _type(self, column: Column) -> Type:
        """Return the type of a column of the noisy table."""
        return self.types[column.name]

    def _unique(self, name: str) -> str:
        """Return a name that no other column of the block has, and reserve it."""
        result = unique(name, self._taken)
        self._taken.add(result.casefold())
        return result


@dataclass(frozen=True)
class _NoisyColumn:
    """A column of the noisy table in the outer SQL, with the name that it has in its block."""

    node: exp.Column
    name: str = field(default="")

    def rename(self, names: dict[str, str]) -> None:
        """Write the name that the column has in the noisy table."""
        self.node.set("this", exp.to_identifier(names[self.name], quoted=True))


def _copied_in_place(node: exp.Expr) -> exp.Expr:
    """Return a copy of a node that keeps its parent, which refusals look at."""
    copy = node.copy()
    copy.parent = node.parent
    return copy


def _quoted_column(name: str) -> exp.Column:
    """Return a column node whose name is quoted."""
    return exp.column(exp.to_identifier(name, quoted=True))


def _named(value: exp.Expr, name: str) -> exp.Alias:
    """Return a value with a quoted name by AS."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _bin_of_bucket(expression: Expression) -> Expression | None:
    """Return the operation ``bin`` inside ``bin(x) + 1``, which is how WIDTH_BUCKET is read; None for any other
    expression."""
    if isinstance(expression, Call) and expression.op == "+" and expression.args[1] == Literal(1):
        inside = expression.args[0]
        return inside if isinstance(inside, Call) and inside.op == "bin" else None
    return None


def _group_name(expression: Expression) -> str:
    """Return a default name for a group that is an expression, such as "date_trunc_day"."""
    inside = _bin_of_bucket(expression) or expression
    names = sorted(item.name for item in columns(expression))
    op = inside.op if isinstance(inside, Call) and inside.op.isidentifier() else "group"
    return f"{op}_{names[0]}"


def _whole(node: exp.Expr, name: str) -> int:
    """Return the whole number that an option states as a constant."""
    value = number(node, name)
    if not isinstance(value, int):
        raise refuse_sql(f"a whole number for {name}", str(value), f"write {name} = 1")
    return value


def _limit(node: exp.Expr | None) -> int | None:
    """Return the constant n of LIMIT n; None without LIMIT."""
    if node is None:
        return None
    if not isinstance(node, exp.Limit):
        raise refuse_sql("LIMIT n", node.key.upper(), "write LIMIT 10")
    refuse_other_parts(node, "expression")
    limit = number(node.expression, "LIMIT")
    if not isinstance(limit, int) or limit < 0:
        raise refuse_sql("LIMIT n", str(limit), "write LIMIT 10")
    return limit


def window_parts(node: exp.Window) -> list[exp.Expr]:
    """Return the arguments of a window function and the parts of its OVER clause, which are evaluated on the answer."""
    function = node.this
    while isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    return [*function.iter_expressions(), *(item for item in node.iter_expressions() if item is not node.this)]
