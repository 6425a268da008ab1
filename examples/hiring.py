"""Write the made-up job applications of docs/hr_analyst.md, and print the truth.

    python examples/hiring.py screened.csv applicants.csv

A recruiter screens 10,000 applications and invites some to an interview; whether somebody passes is known of
the invited only. The recruiter prefers men and people under 40 of equal qualification, and chance has a part
in it, of which nothing is recorded. The second file has 2,000 new applications.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from scipy.special import expit

SCREENED, NEW = 10_000, 2000
COST = 0.4  # of an interview, in units of the gain from a passed one
DEGREES = {"none": -0.4, "bachelor": 0.1, "master": 0.4}  # log odds of passing
ASKED = ["application", "gender", "age", "group", "degree", "years", "test"]


def applications(random: np.random.Generator) -> pd.DataFrame:
    """All applications with the invitation and, of everybody, whether the person passes or would pass."""
    n = SCREENED + NEW
    people = pd.DataFrame(
        {
            "application": [f"P{number:05d}" for number in range(1, n + 1)],
            "gender": random.choice(["woman", "man"], n, p=[0.45, 0.55]),
            "age": random.choice(["under 40", "40 or over"], n, p=[0.65, 0.35]),
            "degree": random.choice(list(DEGREES), n, p=[0.3, 0.5, 0.2]),
        }
    )
    woman, older = people["gender"] == "woman", people["age"] == "40 or over"
    people["group"] = people["gender"] + " " + people["age"]
    people["years"] = random.poisson(4 + 6 * older - 1 * woman)
    people["test"] = random.normal(62 - 4 * older, 12, n).clip(0, 100).round(2)
    skill = 0.09 * (people["test"] - 66) + 0.06 * (people["years"] - 6) + people["degree"].map(DEGREES)
    people["passes"] = random.random(n) < expit(skill)
    people["invited"] = random.random(n) < expit(0.1 + 0.6 * skill - 0.6 * woman - 0.5 * older)
    return people


def main() -> None:
    """Write both files."""
    people = applications(np.random.default_rng(40))
    log, new = people[:SCREENED], people[SCREENED:]
    passed = log["passes"].map({True: "yes", False: "no"}).where(log["invited"])
    invited = log["invited"].map({True: "yes", False: "no"})
    log[ASKED].assign(invited=invited, passed=passed).to_csv(sys.argv[1], index=False)
    new[ASKED].to_csv(sys.argv[2], index=False)
    print(
        f"{sys.argv[1]}: {len(log)} applications, {log['invited'].sum()} invited; {sys.argv[2]}: {len(new)}"
    )
    value = 100 * (log["invited"] * (log["passes"] - COST)).mean()
    could = 100 * log.loc[log["passes"]].groupby("group")["invited"].mean()
    print(f"true utility {value:.1f}, invited of those who would pass (%): {could.round(1).to_dict()}")


if __name__ == "__main__":
    main()
