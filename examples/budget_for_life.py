"""A budget that belongs to a person: mean and variance on one half of the people, the median on the other.

The lecture's Example 8. Composition says max(e1 + e2, e3). The ledger has no rule for that: it adds up, for each
person, the releases that person took part in.
"""

import tempfile
from pathlib import Path

import numpy as np

import dither as dp

ages = np.random.default_rng(8).integers(18, 90, size=1000)
people = np.arange(1000)
first, second = people < 500, people >= 500
e1, e2, e3 = 0.3, 0.2, 0.4

workload = dp.accounting.Parallel(dp.accounting.Pure(e1) + dp.accounting.Pure(e2), dp.accounting.Pure(e3))
print("by composition:  ", dp.accounting.basic.guarantee(workload))

with tempfile.TemporaryDirectory() as folder, dp.ledger.open(Path(folder) / "budget.sqlite") as ledger:
    ledger.create("survey", each_person=dp.PureDP(max(e1 + e2, e3)))

    def ask(name, epsilon, half, statistic):
        """One release about one half of the people; whoever cannot pay any more is left out."""
        return ledger.release(
            "survey",
            dp.PureDP(epsilon),
            lambda kept: float(statistic(ages[half][kept], bounds=(18, 90), epsilon=epsilon)) if kept.any() else None,
            key=name,
            people=people[half],
        ).value

    print("mean, first half:    ", ask("mean", e1, first, dp.stats.mean))
    print("variance, first half:", ask("variance", e2, first, dp.stats.variance))
    print("median, second half: ", ask("median", e3, second, dp.stats.median))

    # the first half has spent 0.5 of 0.5, the second 0.4: a further 0.1 reaches the second half only
    counted = ledger.release("survey", dp.PureDP(0.1), lambda kept: int(kept.sum()), key="who", people=people)
    print("left to answer at 0.1 (a demonstration only, this number is private):", counted.value)
    assert counted.value == 500
    print("verified:", ledger.verify().entries, "entries")
