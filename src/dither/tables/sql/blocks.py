"""From SQL around a private aggregation to the aggregation, and the SQL that makes the answer of it.

A *private block* is a SELECT that reads the card's table, with public tables joined to it, and aggregates. Its FROM,
WHERE and GROUP BY and its aggregates are the private question. What it does with them (expressions, windows, HAVING,
DISTINCT, ORDER BY, LIMIT), and everything around it (WITH, FROM, UNION, joins of answers) is post-processing: SQL on
the noisy table that the question makes.

Several blocks with the same GROUP BY and joins are one question: where their WHERE differ, each aggregate is of the
rows of its own block.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.resolve import answer_type, spelling
from dither.tables.query.tree import Aggregate, Call, Column, Expression, Group, Literal, PostProcessing, Query, show
from dither.tables.sql.expressions import is_aggregate, name_of, read, row_leaf
from dither.tables.sql.outer import render
from dither.tables.sql.relations import refuse_unanswerable
from dither.tables.sql.select_reader import SelectReader, is_bucket

_BLOCK = (
    "with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order", "limit",
    "offset", "distinct",
)  # fmt: skip
_ROWS = "add COUNT(*) and GROUP BY, for example: single rows are never released"


def read_blocks(tree: exp.Query, options: dict[str, exp.Expr], card: Card) -> Query:
    """The question of a statement whose outer part is run on the noisy table."""
    tree = _with_rows_in_place(tree.copy(), card)
    with suppress(InvalidArgument):
        return read_select(tree, options, card)
    selects = _private_blocks(tree, card)
    if not selects:
        raise refuse_sql(f"an aggregation of {card.name}", "none", f"write SELECT COUNT(*) FROM {card.name} inside")
    blocks = [_Block(select, card) for select in selects]
    question = _merged(blocks)
    question = replace(question, **blocks[0].reader.release_options(options))
    noisy = _free_name(tree)
    root: exp.Query = tree
    for block in blocks:
        outer = block.outer(noisy)
        if block.select is root:
            root = outer
        else:
            block.select.replace(outer)
    post = PostProcessing(render(root, noisy), noisy)
    from dither.tables.query.postprocess import rehearse  # it loads DuckDB, which other questions may not need

    rehearse(post, types(question, card, {group.name: blocks[0].reader.types[group.name] for group in question.groups}))
    return replace(question, post=post)


def has_outer_part(tree: exp.Query) -> bool:
    """Whether the statement has more than the clauses that every aggregation has: what is wrong in it is then said as
    post-processing sees it.

    >>> from dither.tables.sql.text import statement
    >>> has_outer_part(statement("SELECT COUNT(*) FROM visits", "visits")[0])
    False
    """
    outer_nodes = (exp.Window, exp.Qualify, exp.Distinct, exp.Offset, exp.With)
    calls = (exp.Anonymous, exp.Cast, exp.TryCast, exp.DPipe, exp.Mod, exp.IntDiv, exp.ILike, exp.Extract)
    for node in tree.walk():
        if isinstance(node, outer_nodes) and not isinstance(node.parent, exp.Anonymous):
            return True
        if isinstance(node, exp.Query) and node is not tree:
            return True
        if isinstance(node, calls) and not is_aggregate(node) and any(map(is_aggregate, node.walk())):
            return True
    return not isinstance(tree, exp.Select)


def read_select(tree: exp.Query, options: dict[str, exp.Expr], card: Card) -> Query:
    """The question of one SELECT, where nothing is left for post-processing."""
    if not isinstance(tree, exp.Select):
        raise refuse_sql("one SELECT", tree.key.upper(), f"write SELECT … FROM {card.name}")
    refuse_unanswerable(tree)
    return SelectReader(tree, card).query(options)


def types(question: Query, card: Card, groups: dict[str, Type]) -> dict[str, Type]:
    """The types of the columns of the noisy table, of which those of the groups are known."""
    return groups | {name: answer_type(aggregate, card) for name, aggregate in question.aggregates.items()}


def _with_rows_in_place(tree: exp.Query, card: Card) -> exp.Query:
    """The tree with each WITH of rows of the table written where it is read, in FROM."""
    for clause in list(tree.find_all(exp.With)):
        owner = clause.parent
        assert owner is not None
        for item in list(clause.expressions):
            name = item.alias
            if spelling(name, [card.name]) or spelling(name, card.public):
                raise refuse_sql("a new name after WITH", f"{clip(name)!r}, a table of the card", "choose another name")
            if not isinstance(item.this, exp.Select) or not _reads_rows(item.this, card) or _aggregates(item.this):
                continue
            refuse_other_parts(item, "this", "alias")
            if item.args["alias"].args.get("columns"):
                raise refuse_sql("WITH name AS (…)", "names of columns in brackets", "name them by AS inside")
            for table in list(owner.find_all(exp.Table)):
                if table.name.casefold() == name.casefold() and not table.args.get("db"):
                    alias = exp.TableAlias(this=exp.to_identifier(table.alias or name, quoted=True))
                    table.replace(exp.Subquery(this=item.this.copy(), alias=alias))
            item.pop()
        if not clause.expressions:
            owner.set("with_", None)
    return tree


def _reads_rows(select: exp.Select, card: Card) -> bool:
    """Whether FROM has rows of the card's table."""
    start = select.args.get("from_")
    sources = [start.this] if start is not None else []
    sources += [join.this for join in select.args.get("joins") or ()]
    return any(_is_rows(source, card) for source in sources)


def _is_rows(source: exp.Expr, card: Card) -> bool:
    if isinstance(source, exp.Table):
        named = isinstance(source.this, exp.Identifier) and not source.args.get("db")
        nested = [join.this for join in source.args.get("joins") or ()]
        here = named and spelling(source.name, [card.name]) is not None
        return here or any(_is_rows(item, card) for item in nested)
    inner = source.this if isinstance(source, exp.Subquery) else None
    return isinstance(inner, exp.Select) and _reads_rows(inner, card) and not _aggregates(inner)


def _aggregates(select: exp.Select) -> bool:
    """Whether the SELECT groups or has an aggregate of its own, which is not that of a window or a subquery."""
    if select.args.get("group"):
        return True
    parts = [*select.expressions, *(select.args.get(name) for name in ("having", "qualify", "order"))]
    waiting = [part for part in parts if part is not None]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            waiting += _of_window(node)
        elif is_aggregate(node):
            return True
        else:
            waiting += node.iter_expressions()
    return False


def _of_window(node: exp.Window) -> list[exp.Expr]:
    """The parts of a window function that are about the answer: its arguments, and what is behind OVER."""
    function = node.this
    while isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    return [*function.iter_expressions(), *(item for item in node.iter_expressions() if item is not node.this)]


def _private_blocks(tree: exp.Query, card: Card) -> list[exp.Select]:
    """The aggregations of the card's table, outermost first."""
    result: list[exp.Select] = []
    consumed: set[int] = set()
    for node in tree.walk():
        if not isinstance(node, exp.Select) or id(node) in consumed or not _reads_rows(node, card):
            continue
        if not _aggregates(node):
            raise _single_rows(node)
        result.append(node)
        consumed |= {id(item) for item in _of_rows(node)}
    return result


def _single_rows(select: exp.Select) -> InvalidArgument:
    """The refusal of a SELECT that would show rows of the table."""
    if select.args.get("distinct"):
        return refuse_sql("SELECT", "SELECT DISTINCT of rows", "use GROUP BY and COUNT(*)")
    if any(item.find(exp.Window) for item in select.expressions):
        fix = "use it over aggregates, with GROUP BY: LAG(COUNT(*)) OVER (ORDER BY key)"
        return refuse_sql("an aggregate", "a window function over single rows", fix)
    if isinstance(select.parent, exp.SetOperation):
        fix = "aggregate in each SELECT, and join the answers: single rows are never released"
        return refuse_sql("an aggregate", f"{select.parent.key.upper()} of single rows", fix)
    return refuse_sql("an aggregate", "none", _ROWS)


def _of_rows(block: exp.Select) -> list[exp.Expr]:
    """Everything in the part of a block that is about rows."""
    parts = [
        block.args.get("from_"),
        block.args.get("where"),
        block.args.get("group"),
        *(block.args.get("joins") or ()),
    ]
    return [node for part in parts if part is not None for node in part.walk()]


class _Block:
    """A private block: what it asks, and what it does with the answer."""

    def __init__(self, select: exp.Select, card: Card) -> None:
        refuse_other_parts(select, *_BLOCK)
        self.select, self.card = select, card
        self.reader = SelectReader(select, card)
        self.reader.read_groups()
        self.columns: list[_NoisyColumn] = []
        """The columns of the noisy table in the outer SQL, each with its name in this block."""
        self._aliases: dict[str, exp.Expr] = {}
        self._items = self._output_columns()
        unit = Column(card.unit) if card.unit is not None else None
        if unit is not None and any(group.value == unit for group in self.reader.groups):
            fix = f"group by another column; COUNT(DISTINCT {card.unit}) counts people"
            raise refuse_sql("groups of several people", f"GROUP BY {show(unit)}, one for each person", fix)
        self._having = self._part("having")
        self._rest = {name: self._part(name) for name in ("qualify", "order", "limit", "offset", "distinct")}
        self._windows = [self._rewritten(item.copy()) for item in select.args.get("windows") or ()]

    def outer(self, noisy: str) -> exp.Select:
        """The block as SQL on the noisy table."""
        result = exp.Select(
            expressions=self._items, from_=exp.From(this=exp.Table(this=exp.to_identifier(noisy, quoted=True)))
        )
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

    def _part(self, name: str) -> exp.Expr | None:
        part = self.select.args.get(name)
        return None if part is None else self._rewritten(part.copy(), name)

    def _output_columns(self) -> list[exp.Expr]:
        for alias, node in self.reader.items:
            if is_aggregate(node):
                self.reader.aggregate(node, alias)
        result: list[exp.Expr] = []
        for alias, node in self.reader.items:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                raise refuse_sql("groups and aggregates", "*", "name the columns; single rows are never released")
            value = self._rewritten(node.copy())
            default = value.name if isinstance(value, exp.Column) else node.sql("duckdb")
            if alias is not None:
                self._aliases[alias.casefold()] = value
            result.append(exp.Alias(this=value, alias=exp.to_identifier(alias or default, quoted=True)))
        return result

    def _rewritten(self, node: exp.Expr, clause: str = "") -> exp.Expr:
        """The node on the noisy table: aggregates and groups have become its columns."""
        if isinstance(node, exp.Query):
            return node
        if is_aggregate(node):
            return self._column(self.reader.aggregate(node).name)
        if clause == "order" and isinstance(node, exp.Column) and not node.table and self._alias(node) is not None:
            return self._named(node)
        group = self._group(node)
        if group is not None:
            if clause and isinstance(node, exp.Column) and self._alias(node) not in (None, group):
                fix = "give the expression another name after AS"
                raise refuse_sql("one meaning", f"a group and an expression named {clip(node.name)!r}", fix)
            return group
        if isinstance(node, exp.Column):
            return self._named(node)
        if clause == "order" and isinstance(node, exp.Ordered) and isinstance(node.this, exp.Literal):
            return node
        children = _of_window(node) if isinstance(node, exp.Window) else list(node.iter_expressions())
        for child in children:
            rewritten = self._rewritten(child, clause)
            if rewritten is not child:
                child.replace(rewritten)
        return node

    def _group(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Literal):
            return None
        try:
            written = read(node, row_leaf(self.reader.rows, "SELECT"))
        except InvalidArgument:
            return None
        for name, value in self.reader.written.items():
            if value == written:
                column = self._column(name)
                if not is_bucket(value):
                    return column
                return exp.Paren(this=exp.Add(this=column, expression=exp.Literal.number(1)))
        return None

    def _named(self, node: exp.Column) -> exp.Expr:
        """A name that is no group: one that AS gives in this SELECT, or a column that is not aggregated."""
        column = name_of(node)
        meant = self._alias(node)
        if meant is not None:
            copy = meant.copy()
            for old, new in zip(meant.find_all(exp.Column), copy.find_all(exp.Column), strict=True):
                self.columns += [_NoisyColumn(new, item.name) for item in self.columns if item.node is old]
            return exp.Paren(this=copy)
        value = self.reader.rows.find(column)
        got = f"the column {show(value)} outside of aggregates"
        fix = f"add it to GROUP BY, or aggregate it: AVG({show(value)})"
        raise refuse_sql("groups and aggregates", got, fix)

    def _alias(self, node: exp.Column) -> exp.Expr | None:
        """What a name stands for by AS in this SELECT."""
        return None if node.table else self._aliases.get(node.name.casefold())

    def _column(self, name: str) -> exp.Column:
        node = exp.column(exp.to_identifier(name, quoted=True))
        self.columns.append(_NoisyColumn(node, name))
        return node


@dataclass(frozen=True)
class _NoisyColumn:
    """A column of the noisy table in the outer SQL, with the name that it has in its block."""

    node: exp.Column
    name: str = field(default="")

    def rename(self, names: dict[str, str]) -> None:
        self.node.set("this", exp.to_identifier(names[self.name], quoted=True))


def _merged(blocks: list[_Block]) -> Query:
    """One question for all blocks; the columns in their outer SQL are named after it."""
    first = blocks[0].reader
    same_rows = all(block.reader.rows.where == first.rows.where for block in blocks)
    groups: tuple[Group, ...] = tuple(first.groups)
    aggregates: dict[str, Aggregate] = {}
    for block in blocks:
        reader = block.reader
        if [item.value for item in reader.groups] != [
            item.value for item in groups
        ] or reader.rows.joins != first.rows.joins:
            fix = "ask a question for each, or give them one GROUP BY; a total is SUM(COUNT(*)) OVER ()"
            raise refuse_sql("aggregations with the same GROUP BY and JOIN", "different ones", fix)
        names = {own.name: shared.name for own, shared in zip(reader.groups, groups, strict=True)}
        for name, aggregate in reader.aggregates.items():
            asked = aggregate if same_rows else _of_rows_where(aggregate, reader.rows.where)
            known = next((other for other, item in aggregates.items() if item == asked), None)
            taken = {other.casefold() for other in (*aggregates, *(group.name for group in groups))}
            names[name] = known or _unique(name, taken)
            aggregates[names[name]] = asked
        for column in block.columns:
            column.rename(names)
    if not aggregates:
        raise refuse_sql("an aggregate", "none", _ROWS)
    where = first.rows.where
    if not same_rows:
        for block in blocks[1:]:
            other = block.reader.rows.where
            where = None if where is None or other is None else Call("or", (where, other))
    return Query(aggregates, groups, where, first.rows.joins)


def _of_rows_where(aggregate: Aggregate, condition: Expression | None) -> Aggregate:
    """The aggregate of the rows for which a condition holds."""
    if condition is None:
        return aggregate
    if aggregate.kind in ("people", "mode"):
        fix = "ask a question for each WHERE"
        raise refuse_sql("aggregations with the same WHERE", f"several, with {aggregate.kind.upper()}", fix)
    value = Literal(1) if aggregate.value is None else aggregate.value
    kind = "count_value" if aggregate.kind == "count" else aggregate.kind
    return replace(aggregate, kind=kind, value=Call("case", (condition, value, Literal(None))))


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 1, name
    while unique.casefold() in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def _free_name(tree: exp.Query) -> str:
    """A name for the noisy table that the statement does not use."""
    return _unique("noisy", {str(item.this).casefold() for item in tree.find_all(exp.Identifier)})


__all__ = ["has_outer_part", "read_blocks", "read_select", "types"]
