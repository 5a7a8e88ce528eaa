"""From SQL around a private aggregation to the aggregation, and the SQL that makes the answer of it.

A *private block* is a SELECT that reads the card's table, with public tables joined to it, and aggregates. Its FROM,
WHERE and GROUP BY and its aggregates are the private question. What it does with them (expressions, windows, HAVING,
DISTINCT, ORDER BY, LIMIT), and everything around it (WITH, FROM, UNION, joins of answers) is post-processing: SQL on
the noisy table that the question makes. Blocks that differ in GROUP BY or joins, blocks with GROUP BY that differ in
WHERE, and the levels of ROLLUP, CUBE and GROUPING SETS, have a noisy table each
(:mod:`dither.tables.sql.blocks`).

The private aggregations of one question: what its blocks ask, each aggregation once.

Blocks with the same rows, GROUP BY, joins and limits are one aggregation. So are blocks without GROUP BY whose WHERE
differ, as each aggregate can be of the rows of its own block; with GROUP BY they are not, as which groups there are
follows from WHERE. Other blocks, and the levels of ROLLUP, CUBE and GROUPING SETS, are aggregations beside it.

ROLLUP, CUBE and GROUPING SETS: the sets of columns that a GROUP BY asks for, each a level with its own table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type
from dither.tables.card.values import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import relation_card
from dither.tables.query.resolve import Rows, answer_type, spelling, unique
from dither.tables.query.tree import Aggregate, Call, Expression, Group, Literal, PostProcessing, Query
from dither.tables.sql.expressions import find_column, is_aggregate, name_of, outer_columns, read, row_leaf, ungrouped
from dither.tables.sql.outer import render
from dither.tables.sql.relations import groups_by_person, is_private, refuse_unanswerable
from dither.tables.sql.scopes import Clause, bind_tables, means_alias, read_item, unwrapped, write_groups_out
from dither.tables.sql.select_reader import SelectReader, is_bucket

MOST_AGGREGATIONS = 64
"""How many private aggregations a question may have: they share the budget."""


@dataclass(frozen=True)
class Asked:
    """What a block asks at one level: aggregates of its rows by groups, and the columns that only other levels group
    by. ``types`` are those of the columns, ``options`` what is said of the release, such as limits on a person's rows.
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
        """What aggregations have in common that can be one."""
        values = (tuple(item.value for item in groups) for groups in (self.groups, self.rolled_up))
        return (*values, self.rows.joins, self.rows.source, self.options)


@dataclass
class Aggregation:
    """A private aggregation of the question, with all that is asked of it."""

    items: list[Asked]
    places: list[int]
    """Which of all that is asked the items are."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """What it groups by."""
        return self.items[0].groups

    def takes(self, asked: Asked) -> bool:
        """Whether this is measured along with what is asked of it already."""
        first = self.items[0]
        if asked.identity != first.identity:
            return False
        if asked.rows.where == first.rows.where:
            known = [item for item in self.items if item.is_level]
            extra = [item for item in asked.aggregates.values() if known and item not in known[0].aggregates.values()]
            return not extra
        if asked.groups:  # of the rows of both, each block would have the groups of the other as well
            return False
        items = (*self.items, asked)
        conditional = all(item.kind not in ("people", "mode") for part in items for item in part.aggregates.values())
        return conditional and not any(item.is_level for item in items)

    def query(self) -> tuple[Query, list[dict[str, str]]]:
        """The question that it is, and for each item what its groups and aggregates are called there."""
        first = self.items[0]
        every_name: list[dict[str, str]] = []
        same_rows = all(item.rows.where == first.rows.where for item in self.items)
        aggregates: dict[str, Aggregate] = {}
        for item in self.items:
            names = {group.name: here.name for group, here in zip(item.groups, self.groups, strict=True)}
            for name, aggregate in item.aggregates.items():
                wanted = aggregate if same_rows else _of_rows_where(aggregate, item.rows.where)
                known = next((other for other, value in aggregates.items() if value == wanted), None)
                taken = {other.casefold() for other in (*aggregates, *(group.name for group in self.groups))}
                names[name] = known or unique(name, taken)
                aggregates[names[name]] = wanted
            every_name.append(names)
        if not aggregates:
            fix = "add COUNT(*) and GROUP BY, for example: single rows are never released"
            raise refuse_sql("an aggregate", "none", fix)
        where = first.rows.where
        if not same_rows:
            for item in self.items[1:]:
                other = item.rows.where
                where = None if where is None or other is None else Call("or", (where, other))
        question = Query(
            aggregates, self.groups, where, first.rows.joins, source=first.rows.source, rolled_up=first.rolled_up
        )
        return replace(question, **first.options), every_name


def aggregations(asked: Sequence[Asked]) -> list[Aggregation]:
    """The aggregations that answer everything that is asked, in the order in which it is asked; levels come first to
    theirs, so that what else is asked of the same rows and groups is taken from a level.
    """
    result: list[Aggregation] = []
    for place, item in sorted(enumerate(asked), key=lambda pair: not pair[1].is_level):
        taking = next((other for other in result if other.takes(item)), None)
        if taking is None:
            result.append(Aggregation([item], [place]))
        else:
            taking.items.append(item)
            taking.places.append(place)
    if len(result) > MOST_AGGREGATIONS:
        fix = "ask several questions"
        raise refuse_sql(f"at most {MOST_AGGREGATIONS} private aggregations", str(len(result)), fix)
    return sorted(result, key=lambda other: min(other.places))


def _of_rows_where(aggregate: Aggregate, condition: Expression | None) -> Aggregate:
    """The aggregate of the rows for which a condition holds."""
    if condition is None:
        return aggregate
    value = Literal(1) if aggregate.value is None else aggregate.value
    kind = "count_value" if aggregate.kind == "count" else aggregate.kind
    return replace(aggregate, kind=kind, value=Call("case", (condition, value, Literal(None))))


MOST_LEVELS = 64
"""How many levels a GROUP BY may have: they share the budget."""
_FIX = "name the sets that you need: GROUPING SETS ((a, b), (a), ())"
Columns = tuple[exp.Expr, ...]


def grouping_sets(group: exp.Expr | None) -> list[Columns] | None:
    """The sets of columns of a GROUP BY in the order of SQL; None where it has one plain list of columns.

    >>> from dither.tables.sql.text import statement
    >>> tree, _ = statement("SELECT a, COUNT(*) FROM t GROUP BY a, ROLLUP (b, c)", "t")
    >>> [[column.name for column in columns] for columns in grouping_sets(tree.args["group"])]
    [['a', 'b', 'c'], ['a', 'b'], ['a']]
    """
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
    """The sets that one item of GROUP BY stands for."""
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
    """A column, or several in brackets."""
    if isinstance(node, exp.Tuple):
        return tuple(column for item in node.expressions for column in _columns(item))
    return _columns(node.this) if isinstance(node, exp.Paren) else (node,)


_BLOCK = (
    "with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order", "limit",
    "offset", "distinct",
)  # fmt: skip
_SHAPE: dict[str, Clause] = {
    "qualify": "QUALIFY", "order": "ORDER BY", "limit": "LIMIT", "offset": "LIMIT", "distinct": "DISTINCT ON",
}  # fmt: skip
_GROUPING = "grouping of "
"""What the columns of GROUPING are called among the levels, before the name of the group."""
_PLACE = "place among the private blocks"
_MAX_WRITTEN = 50_000
"""How many nodes of the tree may be written again where the names of WITH are read."""
NoisyNames = tuple[str, dict[str, str]]
"""The name of a noisy table, and what the groups and aggregates of a block are called in it."""
_ROWS = "add COUNT(*) and GROUP BY, for example: single rows are never released"


def read_blocks(tree: exp.Query, options: dict[str, exp.Expr], card: Card) -> Query:
    """The question of a statement whose outer part is run on the noisy table."""
    tree = _with_rows_in_place(tree.copy(), card)
    with suppress(InvalidArgument):
        return read_select(tree, options, card)
    selects = _private_blocks(tree, card)
    if not selects:
        raise refuse_sql(f"an aggregation of {card.name}", "none", f"write SELECT COUNT(*) FROM {card.name} inside")
    blocks = [_Block(select, card, options) for select in selects]
    merged = aggregations([item for block in blocks for item in block.asked])
    free_names = _free_names(tree)
    noisy = [next(free_names) for _ in merged]
    parts: list[Query] = []
    tables: dict[int, NoisyNames] = {}
    for name, aggregation in zip(noisy, merged, strict=True):
        part, names = aggregation.query()
        parts.append(replace(part, epsilon=None, delta=None) if parts else part)
        tables |= {place: (name, columns) for place, columns in zip(aggregation.places, names, strict=True)}
    question = replace(parts[0], more=tuple(parts[1:]))
    in_order = iter([tables[place] for place in sorted(tables)])
    outer = [block.outer([next(in_order) for _ in block.asked]) for block in blocks]
    post = PostProcessing(render(_with_outer_sql(tree, outer), *noisy), noisy[0], tuple(noisy[1:]))
    from dither.tables.query.postprocess import rehearse  # it loads DuckDB, which other questions may not need

    columns = [
        types(part, relation_card(card, part.source), item.items[0].types)
        for part, item in zip(parts, merged, strict=True)
    ]
    one_row = [name for name, part in zip(noisy, parts, strict=True) if not part.groups]
    rehearse(post, *columns, one_row=one_row)
    return replace(question, post=post)


def _with_outer_sql(tree: exp.Query, outer: list[exp.Select]) -> exp.Query:
    """The tree with SQL on noisy tables in the place of each private block, also where that is inside of another."""
    while True:
        block = next((node for node in tree.find_all(exp.Select) if _PLACE in node.meta), None)
        if block is None:
            return tree
        sql = outer[block.meta[_PLACE]].copy()
        if block is tree:
            tree = sql
        else:
            block.replace(sql)


def has_outer_part(tree: exp.Query) -> bool:
    """Whether the statement has more than the clauses that every aggregation has: what is wrong in it is then said as
    post-processing sees it.

    >>> from dither.tables.sql.text import statement
    >>> has_outer_part(statement("SELECT COUNT(*) FROM visits", "visits")[0])
    False
    """
    outer_nodes = (exp.Window, exp.Qualify, exp.Distinct, exp.Offset, exp.With, exp.Rollup, exp.Cube, exp.GroupingSets)
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


def types(question: Query, card: Card, known: dict[str, Type]) -> dict[str, Type]:
    """The types of the columns of the noisy table, of which those of the groups are known."""
    groups = {group.name: known[group.name] for group in question.groups}
    return groups | {name: answer_type(aggregate, card) for name, aggregate in question.aggregates.items()}


def _with_rows_in_place(tree: exp.Query, card: Card) -> exp.Query:
    """The tree with each WITH of rows of the table written where it is read, in FROM."""
    written = 0
    for place, item in enumerate(bind_tables(tree)):
        name = item.alias
        if is_private(name, card) or spelling(name, card.public):
            raise refuse_sql("a new name after WITH", f"{clip(name)!r}, a table of the card", "choose another name")
        if not _is_relation(item.this, card):
            continue
        refuse_other_parts(item, "this", "alias")
        if item.args["alias"].args.get("columns"):
            raise refuse_sql("WITH name AS (…)", "names of columns in brackets", "name them by AS inside")
        size = sum(1 for _ in item.this.walk())
        for table in [table for table in tree.find_all(exp.Table) if read_item(table) == place]:
            written += size
            if written > _MAX_WRITTEN:
                fix = "read what WITH names fewer times"
                raise refuse_sql("WITH that is read a few times", "what grows too large", fix)
            refuse_other_parts(table, "this", "alias")
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
            table.replace(exp.Subquery(this=item.this.copy(), alias=alias.copy()))
        clause = item.parent
        assert clause is not None
        item.pop()
        if not clause.expressions and clause.parent is not None:
            clause.parent.set("with_", None)
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
        here = named and is_private(source.name, card)
        return here or any(_is_rows(item, card) for item in nested)
    return isinstance(source, exp.Subquery) and _is_relation(source.this, card)


def _is_relation(query: exp.Expr, card: Card) -> bool:
    """Whether every row of a query is of one person: it has rows of the table, or a table per person."""
    if isinstance(query, exp.Union):
        return _is_relation(query.this, card) and _is_relation(query.expression, card)
    if isinstance(query, exp.Subquery):
        return _is_relation(query.this, card)
    if not isinstance(query, exp.Select) or not _reads_rows(query, card):
        return False
    return not _aggregates(query) or groups_by_person(query, card)


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
            raise _single_rows(node, card)
        node.meta[_PLACE] = len(result)
        result.append(node)
        consumed |= {id(item) for item in _of_rows(node)}
    return result


def _single_rows(select: exp.Select, card: Card) -> InvalidArgument:
    """The refusal of a SELECT that would show rows of the table."""
    person = card.unit or "person"
    around = select.parent
    while isinstance(around, exp.Subquery):
        around = around.parent
    if isinstance(around, (exp.Exists, exp.In)):
        what = "EXISTS" if isinstance(around, exp.Exists) else "IN (SELECT …)"
        if outer_columns(select, select):
            fix = f"put it into WHERE, as a condition of its own: WHERE … AND {clip(around.sql('duckdb'), 200)}"
            return refuse_sql(f"{what} about the person alone inside an expression", "columns of the row in it", fix)
        fix = f"write {person} IN (SELECT {person} FROM …)"
        return refuse_sql(f"{what} about rows of the same person", "rows of other people", fix)
    if select.args.get("distinct"):
        return refuse_sql("SELECT", "SELECT DISTINCT of rows", "use GROUP BY and COUNT(*)")
    if any(item.find(exp.Window) for item in select.expressions):
        fix = "use it over aggregates, with GROUP BY: LAG(COUNT(*)) OVER (ORDER BY key)"
        return refuse_sql("an aggregate", "a window function over single rows", fix)
    if isinstance(select.parent, (exp.Intersect, exp.Except)):
        word = "NOT IN" if isinstance(select.parent, exp.Except) else "IN"
        got = f"{select.parent.key.upper()} of single rows"
        fix = f"keep people by WHERE {person} {word} (SELECT {person} FROM …) in the first SELECT"
        return refuse_sql("an aggregate", got, fix)
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

    def __init__(self, select: exp.Select, card: Card, options: dict[str, exp.Expr]) -> None:
        refuse_other_parts(select, *_BLOCK)
        self.select, self.card = select, card
        write_groups_out(select)
        sets = grouping_sets(select.args.get("group"))
        if sets is not None:
            select.set("group", exp.Group(expressions=[node.copy() for nodes in sets for node in nodes]))
        self.reader = SelectReader(select, card)
        self.reader.read_groups()
        every = [group.name for group in self.reader.groups]
        named = [every] if sets is None else [[self.reader.group_name(node) for node in nodes] for nodes in sets]
        self.levels = [frozenset(names) for names in named]
        self.asked_by_level = len(set(self.levels)) > 1
        self.columns: list[_NoisyColumn] = []
        """The columns of the noisy table in the outer SQL, each with its name in this block."""
        self._aliases: dict[str, exp.Expr] = {}
        self._items = self._output_columns()
        self._having = self._part("having", "HAVING")
        self._rest = {name: self._part(name, clause) for name, clause in _SHAPE.items()}
        self._windows = [self._rewritten(item.copy()) for item in select.args.get("windows") or ()]
        stated = self.reader.release_options(options)
        self.asked = [self._asked(names, stated) for names in self.levels]

    def _asked(self, names: frozenset[str], stated: dict[str, Any]) -> Asked:
        reader = self.reader
        groups = tuple(group for group in reader.groups if group.name in names)
        rest = tuple(group for group in reader.groups if group.name not in names) if self.asked_by_level else ()
        return Asked(groups, reader.aggregates, reader.rows, reader.types, stated, rest, self.asked_by_level)

    def outer(self, tables: list[NoisyNames]) -> exp.Select:
        """The block as SQL on its noisy table, or on those of its levels."""
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
        """The queries inside of what is done with the noisy table."""
        parts = [*self._items, self._having, *self._rest.values(), *self._windows]
        return [query for part in parts if part is not None for query in part.find_all(exp.Query)]

    def _hidden(self, source: exp.Expr, noisy: str, names: dict[str, str]) -> tuple[exp.Expr, dict[str, str]]:
        """The noisy table under names that a query inside cannot mean: what is called so there is a column of rows, of
        another block, or what AS says, which it finds by itself."""
        for column in (column for query in self._queries() for column in query.find_all(exp.Column)):
            alias, column_of_rows = self._alias(column), None
            if alias is not None:
                column_of_rows = self.reader.rows.lookup(name_of(column))
            if column_of_rows is not None and self._group(column) != alias:
                fix = "give the expression another name after AS"
                raise refuse_sql("one meaning", f"a column and an expression named {clip(column.name)!r}", fix)
        used = {column.name for column in self.columns}
        hidden = {name: f"{noisy}.{name}" for name in used}
        shown: list[exp.Expr] = [_named(_quoted_column(names[name]), hidden[name]) for name in sorted(used)]
        if self.asked_by_level:
            shown += [_quoted_column(_GROUPING + group.name) for group in self.reader.groups]
        inside = exp.Select(expressions=shown or [exp.Star()], from_=exp.From(this=source))
        return exp.Subquery(this=inside, alias=exp.TableAlias(this=exp.to_identifier(noisy, quoted=True))), hidden

    def _all_levels(self, tables: list[NoisyNames]) -> exp.Subquery:
        """The rows of all levels: NULL in the columns that a level does not group by, and what GROUPING is of each."""
        selects = []
        for level, (noisy, names) in zip(self.levels, tables, strict=True):
            columns: list[exp.Expr] = []
            for group in self.reader.groups:
                value: exp.Expr = _quoted_column(names[group.name]) if group.name in level else exp.Null()
                bit = exp.Literal.number(0 if group.name in level else 1)
                columns += [_named(value, group.name), _named(bit, _GROUPING + group.name)]
            columns += [_named(_quoted_column(names[name]), name) for name in self.reader.aggregates]
            table = exp.Table(this=exp.to_identifier(noisy, quoted=True))
            selects.append(exp.Select(expressions=columns, from_=exp.From(this=table)))
        every: exp.Query = selects[0]
        for select in selects[1:]:
            every = exp.Union(this=every, expression=select, distinct=False)
        return exp.Subquery(this=every, alias=exp.TableAlias(this=exp.to_identifier(tables[0][0], quoted=True)))

    def _grouping(self, node: exp.Anonymous) -> exp.Expr:
        """GROUPING(a, b): a bit for each of its columns, 1 where the row's level does not group by it."""
        result: exp.Expr = exp.Literal.number(0)
        for item in node.expressions:
            column = self._group(item)
            group = None if column is None else column.find(exp.Column)
            if group is None:
                raise refuse_sql("GROUPING of a column of GROUP BY", "something else", "name a column of GROUP BY")
            bit = _quoted_column(_GROUPING + group.name) if self.asked_by_level else exp.Literal.number(0)
            twice = exp.Mul(this=exp.Literal.number(2), expression=exp.Paren(this=result))
            result = exp.Add(this=twice, expression=bit)
        return exp.Paren(this=result)

    def _part(self, name: str, clause: Clause) -> exp.Expr | None:
        part = self.select.args.get(name)
        if part is None:
            return None
        part = part.copy()
        for item in part.expressions if isinstance(part, exp.Order) else ():
            alias = self._alias(unwrapped(item.this))
            if alias is not None:
                item.set("this", self._copied(alias))
            elif not isinstance(item.this, exp.Literal):
                item.set("this", self._rewritten(item.this, clause))
        return part if isinstance(part, exp.Order) else self._rewritten(part, clause)

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

    def _rewritten(self, node: exp.Expr, clause: Clause = "SELECT") -> exp.Expr:
        """The node on the noisy table: aggregates and groups have become its columns."""
        if isinstance(node, exp.Query):
            return node
        if is_aggregate(node):
            return self._column(self.reader.aggregate(node).name)
        if isinstance(node, exp.Anonymous) and node.name.casefold() in ("grouping", "grouping_id"):
            return self._grouping(node)
        if isinstance(node, exp.Column):
            return self._named(node, clause)
        group = self._group(node)
        if group is not None:
            return group
        window = isinstance(node, exp.Window)
        for child in _of_window(node) if isinstance(node, exp.Window) else list(node.iter_expressions()):
            rewritten = self._rewritten(child, "SELECT" if window else clause)
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

    def _named(self, node: exp.Column, clause: Clause) -> exp.Expr:
        """What a name stands for: a group, what AS calls so in this SELECT, or a column that is not aggregated."""
        alias, group = self._alias(node), self._group(node)
        known = group is not None or self.reader.rows.lookup(name_of(node)) is not None
        column = (node if group is None else group) if known else None
        if alias is not None and means_alias(node.name, clause, column, alias, usable=group is not None):
            return self._copied(alias)
        if group is not None:
            return group
        value = find_column(node, self.reader.rows)
        raise ungrouped(self.select, value, self.reader.is_numeric(value))

    def _alias(self, node: exp.Expr) -> exp.Expr | None:
        """What a name stands for by AS in this SELECT."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        return self._aliases.get(node.name.casefold())

    def _copied(self, meant: exp.Expr) -> exp.Expr:
        """An expression on the noisy table at another place."""
        copy = meant.copy()
        for old, new in zip(meant.find_all(exp.Column), copy.find_all(exp.Column), strict=True):
            self.columns += [_NoisyColumn(new, item.name) for item in self.columns if item.node is old]
        return exp.Paren(this=copy)

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


def _quoted_column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _named(value: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _free_names(tree: exp.Query) -> Iterator[str]:
    """Names for the noisy tables that the statement does not use."""
    taken = {str(item.this).casefold() for item in tree.find_all(exp.Identifier)}
    while True:
        name = unique("noisy", taken)
        taken.add(name.casefold())
        yield name
