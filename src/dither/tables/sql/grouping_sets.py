"""ROLLUP, CUBE and GROUPING SETS: the sets of columns that a GROUP BY asks for, each a level with its own table."""

from __future__ import annotations

import itertools
import math

from sqlglot import exp

from dither.tables.query.operations.base import refuse_other_parts, refuse_sql

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
