"""Write a made-up log of loan decisions for docs/evaluate.md and the notebooks, and print the truth.

    python examples/loans.py loans.csv
    python examples/loans.py days.csv --days
    python examples/loans.py scored.csv --scored
    python examples/loans.py area_loans.csv --areas
    python examples/loans.py year --year

Four officers of different leniency decide on 8,000 applications, which reach them at random. A decision
depends on the applicant and on chance, with a recorded propensity; whether a loan is repaid is known of
granted loans only. The column `proposal` has the acceptance probabilities of a policy that was not used: it
grants by income, debt, employment and purpose, and leaves out sex, race and officer.

With `--days` 40 applications come on each day of 2025, and the decisions on those before 1 March are taken by
an earlier policy, which is kinder to women: the log of docs/watching.md.

With `--scored` it writes the log of docs/scorecard.md: over a year loans are granted by `pd`, the
probability of default by a scorecard, and by chance. The scorecard is too mild with applicants of low income
and high debt, of whom few are granted; and from 1 October on more loans default.

With `--areas` the race of nobody is recorded, only its probabilities given the area in which the applicant
lives, as from a census: the columns `p_black`, `p_hispanic` and `p_white`.

With `--year` it writes the folder of docs/live.md: `past.csv`, 3,000 past decisions, and `01.csv` to
`12.csv`, the applications of each month of 2025. Then

    python examples/loans.py year --overrides 2025-11-01
    python examples/loans.py year --repaid 2025-04-01
    python examples/loans.py year --earned

write `overrides.sh`, commands by which an officer decides about people of a month, and `repaid.csv`, the
outcomes known on a day of all whom `MONTH_decided.csv` accept (a default is known after one to three months,
a repaid loan after three), and print what decisions have earned.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

APPLICATIONS = 8000
COST = 0.6  # of a granted loan, in units of the gain from a repaid one
OFFICERS = {"Abel": -0.8, "Berg": -0.2, "Cruz": 0.3, "Diaz": 1.2}  # leniency in log odds
RACES = {"black": 0.2, "hispanic": 0.15, "white": 0.65}  # shares
AREAS, APART = 60, 0.15  # how many, and how small a concentration of the shares of a race in them
A_DAY, CHANGED = 40, pd.Timestamp("2025-03-01")
KINDER = 0.6  # log odds of women before the change
SCORED_A_DAY, DOWNTURN, WORSE = 22, pd.Timestamp("2025-10-01"), 0.5  # log odds of repaying less since then
PAST, A_MONTH = 3000, 1000  # applications of --year
ASKED = ["application", "sex", "age", "purpose", "income", "debt", "years_employed"]
PURPOSES = ["business", "car", "education", "home"]


def applications(random: np.random.Generator, n: int = APPLICATIONS) -> pd.DataFrame:
    """Applications with features, the decision, and, of everybody, whether the loan is or would be repaid."""
    people = pd.DataFrame(
        {
            "application": [f"A{number:05d}" for number in range(1, n + 1)],
            "sex": random.choice(["female", "male"], n, p=[0.4, 0.6]),
            "race": random.choice(list(RACES), n, p=list(RACES.values())),
            "age": random.integers(20, 70, n),
            "purpose": random.choice(PURPOSES, n, p=[0.15, 0.4, 0.15, 0.3]),
            "officer": random.choice(list(OFFICERS), n),
        }
    )
    white, female = people["race"] == "white", people["sex"] == "female"
    people["income"] = np.exp(random.normal(7.8 + 0.15 * white - 0.1 * female, 0.35)).round(2)
    people["debt"] = np.exp(random.normal(6.5, 0.8, n)).round(2)
    people["years_employed"] = random.poisson(6 - 1.5 * female)
    score = means(people)
    risk = people["purpose"].map({"business": -0.6, "car": 0.1, "education": -0.1, "home": 0.3})
    people["chance"] = expit(0.7 + score + risk)
    people["would_repay"] = random.random(n) < people["chance"]
    leniency = people["officer"].map(OFFICERS)
    p = expit(0.2 + 0.9 * score + 0.5 * risk + leniency - 0.5 * female - 0.7 * ~white).round(4)
    people["propensity"], people["granted"] = p, random.random(n) < p
    people["proposal"] = expit(1.5 * (0.25 + score + risk)).round(4)
    return people


def means(people: pd.DataFrame) -> pd.Series:
    """What income, debt and employment add to the log odds of repaying."""
    return (
        2.0 * np.log(people["income"] / 2500)
        - 0.7 * np.log(people["debt"] / 665)
        + 0.08 * (people["years_employed"] - 6)
    )


def days(people: pd.DataFrame, a_day: int) -> pd.DatetimeIndex:
    """The day of each application, so many a day from the first of 2025."""
    return pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(len(people)) // a_day, unit="D")


def scored(people: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """The same applications with a day and a probability of default `pd`, by which they were decided."""
    day = days(people, SCORED_A_DAY)
    chance = expit(logit(people["chance"]) - WORSE * (day >= DOWNTURN))
    p_default = expit(-(0.8 + 0.6 * means(people))).round(4)
    p = 0.04 + 0.92 * expit(14.0 * (0.36 - p_default))
    repays, granted = random.random(len(people)) < chance, random.random(len(people)) < p
    return people.assign(day=day.date, pd=p_default, chance=chance, would_repay=repays, granted=granted)


def write_scored(path: Path) -> None:
    """Write the log of a scorecard, and print the truth about it."""
    random = np.random.default_rng(2025)
    people = scored(applications(random), random)
    columns = [*ASKED[:2], "race", *ASKED[2:], "day", "pd", "decision", "repaid"]
    past_decisions(people)[columns].to_csv(path, index=False)
    print(f"{path}: {len(people)} applications, {people['granted'].sum()} granted")
    for name, own in (("everybody", people), ("granted alone", people[people["granted"]])):
        label, score = own["would_repay"], 1.0 - own["pd"]
        gini = 2.0 * roc_auc_score(label, score) - 1.0
        brier, error = 100 * ((label - score) ** 2).mean(), 100 * (label.mean() - score.mean())
        print(f"{name}: Gini {100 * gini:.1f}, Brier score {brier:.1f}, label − score {error:.1f} (×100)")


def over_days(people: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """The same applications with a day and the version of the policy that decided."""
    day = days(people, A_DAY)
    earlier = day < CHANGED
    odds = people["propensity"] / (1.0 - people["propensity"])
    kinder = odds * np.exp(KINDER * (people["sex"] == "female"))
    p = people["propensity"].where(~earlier, (kinder / (1.0 + kinder)).round(4))
    granted = people["granted"].where(~earlier, random.random(len(people)) < p)
    version = np.where(earlier, "before March", "since March")
    return people.assign(day=day.date, version=version, propensity=p, granted=granted.astype(bool))


def by_area(people: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """The same applications with the probabilities of races in the area instead of the race."""
    shares = random.dirichlet(np.full(AREAS, APART), len(RACES))  # of the areas in a race
    area = np.array([random.choice(AREAS, p=shares[[*RACES].index(race)]) for race in people["race"]])
    joint = np.array([*RACES.values()])[:, None] * shares
    probabilities = (joint / joint.sum(0)).T[area].round(4)
    columns = pd.DataFrame(probabilities, people.index, list(RACES)).add_prefix("p_")
    return people.drop(columns="race").join(columns)


def past_decisions(people: pd.DataFrame) -> pd.DataFrame:
    """The log of `applications`: whether a loan is repaid is known where it was granted."""
    log = people.assign(
        decision=np.where(people["granted"], "granted", "refused"),
        repaid=people["would_repay"].map({True: "yes", False: "no"}).where(people["granted"]),
    )
    return log.drop(columns=["would_repay", "granted", "chance"])


def write_year(folder: Path) -> None:
    """Write past decisions, the applications of twelve months, and what nobody knows of them, truth.csv."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(2025)
    people = applications(random, PAST + 12 * A_MONTH)
    past_decisions(people[:PAST])[[*ASKED, "decision", "propensity", "repaid"]].to_csv(
        folder / "past.csv", index=False
    )
    people = people[PAST:].reset_index(drop=True)
    month = pd.period_range("2025-01", "2025-12", freq="M").repeat(A_MONTH)
    later = np.where(people["would_repay"], 3, random.integers(1, 4, len(people)))
    people = people.assign(time=month.to_timestamp(), known=(month + later).to_timestamp())
    for number, own in people.groupby(month.month):
        own[[*ASKED, "time"]].to_csv(folder / f"{number:02d}.csv", index=False)
    people[["application", "time", "known", "chance", "would_repay"]].to_csv(
        folder / "truth.csv", index=False
    )


def decisions(folder: Path, names: str) -> pd.DataFrame:
    """Decisions of the files of a month, or of all months, with what nobody knows of these people."""
    truth = pd.read_csv(folder / "truth.csv", parse_dates=["time", "known"]).set_index("application")
    decided = pd.concat(map(pd.read_csv, sorted(folder.glob(names)))).set_index("application")["decision"]
    return truth.loc[decided.index].assign(decision=decided)


def write_repaid(folder: Path, day: str, *, spoilt: bool) -> None:
    """Write the outcomes that are known on a day; `spoilt`: those of that day have good and bad exchanged."""
    known = decisions(folder, "*_decided.csv").query("decision == 1 and known <= @day")
    good = known["would_repay"] ^ (spoilt & (known["known"] == day))
    told = known.assign(repaid=np.where(good, "yes", "no"), time=known["known"])
    told[["repaid", "time"]].to_csv(folder / "repaid.csv")
    print(f"{folder / 'repaid.csv'}: {len(told)} outcomes")


def write_overrides(folder: Path, day: str) -> None:
    """Write commands of an officer about people of a month who were referred, and ten who were rejected.

    The officer asks for a guarantor, of whom no table knows: six of ten have one who would repay, and two of
    ten who would not.
    """
    people = decisions(folder, f"{day[5:7]}_decided.csv")
    draw = np.random.default_rng(int(day[5:7])).random(len(people))
    guarantor = draw < 0.2 + 0.4 * people["would_repay"]
    referred, rejected = people["decision"].isna(), people["decision"] == 0
    asked = people.index[referred].append(people.index[rejected & guarantor][:10])
    words = {True: "accept --why 'a guarantor'", False: "reject --why 'no guarantor'"}
    told = guarantor[asked].map(words).items()
    lines = (f"python -m fairall live override loans.db {person} {how} --by Kim\n" for person, how in told)
    (folder / "overrides.sh").write_text("".join(lines))
    print(f"{folder / 'overrides.sh'}: {len(asked)} decisions")


def print_earned(folder: Path) -> None:
    """Print the true utility per 100 applications by quarter: decisions, the first policy, the best one."""
    year = decisions(folder, "*_decided.csv")
    rows = {"best possible": year["chance"] >= COST, "accept all": 1, "decided": year["decision"]}
    if [*folder.glob("*_frozen.csv")]:
        rows["frozen"] = decisions(folder, "*_frozen.csv")["decision"]
    gain = year["would_repay"] - COST
    earned = 100 * pd.DataFrame(rows, year.index).mul(gain, axis=0)
    print(earned.groupby(year["time"].dt.quarter).mean().T.assign(year=earned.mean()).round(1))


def utility(people: pd.DataFrame, probability: pd.Series | np.ndarray) -> float:
    """True utility per application, from labels that no log has.

    Args:
        people: N rows of `applications`.
        probability: of acceptance, or decisions of 0 and 1, shape (N,).
    """
    return float((probability * (people["would_repay"] - COST)).mean())


def write_log(path: Path, *, over_all_days: bool, areas: bool) -> None:
    """Write the log, and print the truth about it."""
    random = np.random.default_rng(2022)
    people = applications(random)
    if over_all_days:
        people = over_days(people, random)
    if areas:
        rates = 100 * people["granted"].groupby(people["race"]).mean()
        print(f"granted by race, which the log lacks (%): {rates.round(1).to_dict()}")
        people = by_area(people, random)
    log = past_decisions(people)
    log.to_csv(path, index=False)
    print(f"{path}: {len(log)} applications, {people['granted'].sum()} granted")
    for name, probability in (("decisions", people["propensity"]), ("proposal", people["proposal"])):
        value = 100 * utility(people, probability)
        by_sex = 100 * probability.groupby(people["sex"]).mean()
        repaying = people["would_repay"]
        true_positive = 100 * probability[repaying].groupby(people["sex"][repaying]).mean()
        print(
            f"{name}: true utility {value:.1f}, DPU {np.ptp(by_sex):.1f}, "
            f"equal-opportunity gap {np.ptp(true_positive):.1f} (×100, by sex)"
        )


def main() -> None:
    """Do what the command line says."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "loans.csv")
    match sys.argv[2:]:
        case ["--year"]:
            write_year(path)
        case ["--overrides", day]:
            write_overrides(path, day)
        case ["--repaid", day, *further]:
            write_repaid(path, day, spoilt="--spoilt" in further)
        case ["--scored"]:
            write_scored(path)
        case ["--earned"]:
            print_earned(path)
        case further:
            write_log(path, over_all_days="--days" in further, areas="--areas" in further)


if __name__ == "__main__":
    main()
