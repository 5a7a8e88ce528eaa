"""Publishing tables that add up: one plan, one charge; estimates with intervals, whole numbers, records.

* :mod:`~dither.publish.publication_plan`, :mod:`~dither.publish.plan_file`: a plan of tables over the rows of a card's
  table, in Python or in a file;
* :mod:`~dither.publish.card_columns`: domains from the card and from public lookups;
* :mod:`~dither.publish.recording`: what the ledger records; :mod:`~dither.publish.publication`: what is published;
* :mod:`~dither.publish.domain`: attributes with public domains, levels inside one another;
* :mod:`~dither.publish.residuals`: tables as sums of parts that do not repeat one another;
* :mod:`~dither.publish.allocate`: how precisely each part is measured;
* :mod:`~dither.publish.mechanism`: the one place that draws noise, with its proof;
* :mod:`~dither.publish.residuals`: unbiased estimates with exact variances;
* :mod:`~dither.publish.totals`: totals that are public anyway;
* :mod:`~dither.publish.integers`: whole, non-negative counts that add up and meet these totals, and their records;
* :mod:`~dither.publish.marginal_plan`: all of it together, for arrays of counts;
* :mod:`~dither.publish.synthetic_table`, :mod:`~dither.publish.synthesizer`: synthetic records where the domain is too
  large to hold; :mod:`~dither.publish.selection` is their private part, :mod:`~dither.publish.graphical` their model,
  :mod:`~dither.publish.constraints` the rules that they obey.

>>> import dither as dp
>>> domain = Domain([Attribute.flat("sex", ["f", "m"])])
>>> publication = MarginalPlan(domain, [table_spec(domain, ["sex"])]).release({(1,): [500, 600]}, dp.ZCDP(0.5))
>>> publication.records().num_rows > 1000
True
"""

from dither.public_module import name_by_home as _name_by_home
from dither.publish.allocate import Allocation, TableSpec, allocate, table_spec
from dither.publish.domain import Attribute, Domain
from dither.publish.integers import WholeCounts, records, whole_counts
from dither.publish.marginal_plan import MarginalPlan
from dither.publish.mechanism import MarginalMechanism, cost_of
from dither.publish.plan_file import plan
from dither.publish.publication import Publication
from dither.publish.publication_plan import ExpectedTable, Plan, PlanExplanation
from dither.publish.residuals import Estimates, Residuals, SumEstimate, TableEstimate
from dither.publish.selection import Round
from dither.publish.synthesizer import Synthesis, Synthesizer
from dither.publish.synthetic_table import SyntheticPlan, SyntheticRecords, synthesize, synthetic_plan
from dither.publish.totals import PublicTotals, public_totals

__all__ = [
    "Allocation",
    "Attribute",
    "Domain",
    "Estimates",
    "ExpectedTable",
    "MarginalMechanism",
    "MarginalPlan",
    "Plan",
    "PlanExplanation",
    "PublicTotals",
    "Publication",
    "Residuals",
    "Round",
    "SumEstimate",
    "Synthesis",
    "Synthesizer",
    "SyntheticPlan",
    "SyntheticRecords",
    "TableEstimate",
    "TableSpec",
    "WholeCounts",
    "allocate",
    "cost_of",
    "plan",
    "public_totals",
    "records",
    "synthesize",
    "synthetic_plan",
    "table_spec",
    "whole_counts",
]

__dir__ = _name_by_home(__name__, __all__, globals())
