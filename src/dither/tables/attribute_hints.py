"""What people who know data frames try on a table, a question or an answer, and what to write instead.

Nothing of these can be had, since rows are never shown, or it has another name here. An attribute that is missing stays
an AttributeError, so that ``hasattr`` and ``copy`` work; its text says what to write.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, NoReturn

from dither.errors import WrongType, message
from dither.tables.card.values import nearest

_NO_ROWS = "single rows are never released: ask for groups, table.group_by('column').agg(n=dp.count())"
_COUNT = "write table.agg(n=dp.count()).release(epsilon=1)"
_DISTINCT = "write table.sql('SELECT COUNT(DISTINCT column) …') for values, table.agg(n=dp.people()) for people"
_COLUMNS = "write table.card.columns: it has what is public of each column"
_SQL = "write table.sql('SELECT …').release(epsilon=1), or table.where(…).group_by(…).agg(…)"
_RELEASE = "write question.release(epsilon=1){after}"
_AGGREGATES = ("mean", "sum", "min", "max", "median", "std", "var", "quantile", "mode")

TABLE: Mapping[str, str] = {
    **dict.fromkeys(["groupby", "group"], "write table.group_by('column').agg(n=dp.count())"),
    **dict.fromkeys(
        ["head", "tail", "sample", "iloc", "loc", "at", "to_pandas", "to_arrow", "to_polars", "df", "collect"], _NO_ROWS
    ),
    **dict.fromkeys(["fetchall", "values", "rows", "iterrows", "itertuples", "show", "limit", "take"], _NO_ROWS),
    **dict.fromkeys(["value_counts", "unique", "drop_duplicates", "distinct"], _NO_ROWS),
    **dict.fromkeys(["nunique", "count_distinct"], _DISTINCT),
    **dict.fromkeys(["columns", "dtypes", "schema", "info", "keys", "describe"], _COLUMNS),
    **dict.fromkeys(["shape", "size", "count", "index", "height"], _COUNT),
    **{
        name: f"write table.agg(x=dp.{name}('column')).release(epsilon=1)"
        for name in _AGGREGATES
    },
    "hist": "write table.agg(h=dp.histogram('column', 10)).release(epsilon=1)",
    **dict.fromkeys(["filter", "query"], "write table.where(\"column = 'a'\").agg(n=dp.count())"),
    **dict.fromkeys(["select", "assign", "drop", "sort_values", "order_by", "merge", "join", "pivot_table"], _SQL),
    **dict.fromkeys(["apply", "map", "pipe", "plot", "execute", "release", "explain"], _SQL),
}  # fmt: skip
QUESTION: Mapping[str, str] = {
    **dict.fromkeys(["to_pandas", "to_arrow", "to_polars", "to_csv", "to_json", "dicts", "plot", "write"], ""),
    **dict.fromkeys(["df", "fetchdf", "pandas"], ".to_pandas()"),
    **dict.fromkeys(
        ["fetchall", "fetchone", "rows", "values", "head", "collect", "show", "execute", "result"], ".rows"
    ),
    **dict.fromkeys(["columns", "error", "errors", "cost"], ""),
}
STEP: Mapping[str, str] = {
    **dict.fromkeys(["count", "size", "len", "value_counts"], "write .agg(n=dp.count())"),
    **{name: f"write .agg(x=dp.{name}('column'))" for name in _AGGREGATES},
    **dict.fromkeys(["avg", "average"], "write .agg(x=dp.mean('column'))"),
    **dict.fromkeys(["nunique", "count_distinct"], _DISTINCT),
    **dict.fromkeys(["aggregate", "summarize", "summarise"], "write .agg(n=dp.count(), x=dp.mean('column'))"),
    **dict.fromkeys(["groupby", "group"], "write .group_by('column')"),
    **dict.fromkeys(["filter", "query"], "write .where(\"column = 'a'\")"),
    **dict.fromkeys(["having", "order_by", "sort_values", "limit", "select", "join"], _SQL),
}
"""What is tried on a question before it is asked, after ``group_by`` for example."""
ANSWER: Mapping[str, str] = {
    **dict.fromkeys(["df", "fetchdf", "pandas", "to_frame"], "write answer.to_pandas()"),
    **dict.fromkeys(["fetchall", "values", "collect", "to_list"], "write answer.rows"),
    **dict.fromkeys(["head", "tail", "show"], "write answer.text(most=5)"),
    **dict.fromkeys(["to_dict", "to_dicts", "records"], "write answer.dicts()"),
    **dict.fromkeys(["to_excel", "to_parquet", "save"], "write answer.write('answer.csv'), or .json or .parquet"),
    **dict.fromkeys(["shape", "size"], "write len(answer) and answer.columns"),
    **dict.fromkeys(["uncertainty", "std_error", "margin", "ci"], "write answer.error('column')"),
}


def missing_attribute(owner: object, name: str, columns: Collection[str] = ()) -> AttributeError:
    """Return the AttributeError for an attribute that a table, question or answer lacks, with what to write instead.

    >>> print(missing_attribute("a text", "foo"))
    str.foo: expected an attribute of str, got none of this name. Fix: see help(str).
    """
    kind = type(owner).__name__
    if name.startswith("_"):
        return AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=owner)
    known = [item for item in dir(type(owner)) if not item.startswith("_")]
    fix = nearest(name, known, likeness=0.75, quote=None) or f"see help({kind})"
    if kind == "Table":
        fix = TABLE.get(name) or (
            f"write dp.col({name!r}), or table.agg(x=dp.mean({name!r}))" if name in columns else fix
        )
    elif kind == "Question":
        after = QUESTION.get(name)
        fix = STEP.get(name, fix) if after is None else _RELEASE.format(after=after or f".{name}")
    elif kind == "Answer":
        fix = ANSWER.get(name) or (f"write answer[{name!r}]" if name in columns else fix)
    return AttributeError(
        message(f"{kind}.{name}", f"an attribute of {kind}", "none of this name", fix), name=name, obj=owner
    )


class NotIterable:
    """A table or a question: it holds no rows, so it has no length, no items and nothing to iterate over.

    ``_completed`` are the names that completion offers, those of methods that ask questions; empty for all names.
    """

    _completed: ClassVar[tuple[str, ...]] = ()

    def __dir__(self) -> list[str]:
        """Return the names for completion: only those in ``_completed`` where there are any."""
        names = list(super().__dir__())
        special = [name for name in names if name.startswith("__")]
        return sorted([*special, *self._completed]) if self._completed else names

    def __bool__(self) -> bool:
        """Return True, so that ``if table:`` does not ask for its length."""
        return True

    def __len__(self) -> int:
        """Raise: rows are never counted without noise."""
        raise self._no_rows(
            "len()", _COUNT if type(self).__name__ == "Table" else _RELEASE.format(after=", and len() of it")
        )

    def __iter__(self) -> NoReturn:
        """Raise: rows are never read."""
        raise self._no_rows("iteration over rows", self._instead())

    def __getitem__(self, name: object) -> Any:
        """Raise: columns and rows are never read; advise an expression or aggregate instead."""
        fix = self._instead()
        if type(self).__name__ == "Table" and isinstance(name, str):
            fix = f"write dp.col({name!r}), or table.agg(x=dp.mean({name!r})).release(epsilon=1)"
        raise self._no_rows("[…]", fix)

    def _instead(self) -> str:
        """Return the advice for an attempt to read rows."""
        return _NO_ROWS if type(self).__name__ == "Table" else _RELEASE.format(after="")

    def _no_rows(self, what: str, fix: str) -> WrongType:
        """Return the error for an operation ``what`` that would need rows."""
        return WrongType(type(self).__name__, "questions to be asked and released", what, fix)
