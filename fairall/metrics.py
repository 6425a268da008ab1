"""Measures of decisions (definitions 2.1 to 2.4, D.1, D.2) as pure functions, and their registry.

A measure is a function decorated with `measure`; columns, summaries, tables and figures follow from that.
There are E seeds, N people and T time steps. Parameters of a name mean the same in all measures: `utility`
and `dpu` describe those of measures of a policy, `effective_utility` those of measures of applicants.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial, reduce
from itertools import combinations
from operator import attrgetter
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from fairall.errors import FairAllError, one_line
from fairall.runtime.process import import_own

__all__ = ["Measure", "Quantity", "Spread", "measure"]  # for reproduction/; docs/api/metrics.md has more

UNBOUNDED = (-math.inf, math.inf)
SHARE = (0.0, 1.0)
# Least and greatest possible values of measures of a latent, by name; in plain units. The estimate of the
# mutual information can be below 0.
LATENT = {
    "latent_s_auc": SHARE,
    "latent_s_balanced_accuracy": SHARE,
    "latent_label_auc": SHARE,
    "latent_label_balanced_accuracy": SHARE,
    "latent_s_mmd": UNBOUNDED,
    "latent_variance_gap": (0.0, math.inf),
    "latent_label_agreement": (-1.0, 1.0),
    "latent_ground_truth_information": UNBOUNDED,
    "latent_s_dependence": (0.0, math.inf),
}
# What a measure can take, by the name of its parameter.
POLICY_DATA = """
    propensity label weight s ground_truth counterfactual counterfactual_y_held cost stake
""".split()
# The last five are known where the world has the part that observes them, or there is an oracle.
APPLICANTS_DATA = """
    accepted label s ground_truth counterfactually_accepted cost stake revealed_label censored places
    group_score oracle_accepted
""".split()
MASKS = "accepted counterfactually_accepted censored oracle_accepted".split()
BINARY = "label s ground_truth revealed_label".split()
# Columns of metrics.csv and keys of summary.json that belong to no measure.
RESERVED = re.compile(
    "seed|time_step|(utility|dpu)_standard_error|largest_ips_weight|longest_rejection"
    "|(classification|reconstruction)_loss|adaptation_time|(latent|phase1|reconstruction_error)_.*"
)


@dataclass(frozen=True)
class Quantity:
    """Description of a number that runs report.

    Attributes:
        name: column of metrics.csv, or key of summary.json.
        label: in tables and figures.
        unit: of one value.
        higher_is_better: None where neither direction is.
        bounds: least and greatest possible value; infinite where there is none or it depends on the cost.
        of: `policy` for a measure on the evaluation people, `applicants` for one of the decisions taken.
    """

    name: str
    label: str
    unit: str
    higher_is_better: bool | None
    bounds: tuple[float, float] = UNBOUNDED
    of: Literal["policy", "applicants"] = "policy"

    @property
    def heading(self) -> str:
        """The label, and an arrow in the better direction."""
        return self.label + {None: "", True: " ↑", False: " ↓"}[self.higher_is_better]

    def sampled(self) -> Quantity:
        """The same from drawn decisions instead of acceptance probabilities."""
        return replace(self, name=f"{self.name}_sampled")

    def mean(self) -> Quantity:
        """The temporal mean μ (definition 2.4): over time steps t1..t2, both included.

        The definition is printed with t2 − t1 below a sum of t2 − t1 + 1 terms.
        """
        return replace(self, name=f"mean_{self.name}", label=f"mean {self.label}")

    def variation(self) -> Quantity:
        """The temporal variation TV (definition 2.4): standard deviation over t1..t2 with n − 1 = t2 − t1."""
        name, label = f"tv_{self.name}", f"TV {self.label}"
        return replace(self, name=name, label=label, higher_is_better=False, bounds=(0.0, math.inf))

    def to_plain(self) -> dict[str, Any]:
        """All but the name; as JSON, an infinite bound becomes None."""
        return {field.name: getattr(self, field.name) for field in fields(Quantity)[1:]}

    @classmethod
    def from_plain(cls, name: str, plain: Mapping[str, Any]) -> Quantity:
        """Inverse of `to_plain` and JSON."""
        low, high = plain["bounds"]
        bounds = -math.inf if low is None else low, math.inf if high is None else high
        return cls(name, **{**plain, "bounds": bounds})


@dataclass(frozen=True, kw_only=True)
class Measure(Quantity):
    """A registered function.

    Attributes:
        function: takes a selection of `POLICY_DATA` or of `APPLICANTS_DATA`.
        needs: names of its parameters.
        cumulative: whether the value at the last time step summarises the run; of measures of applicants.
    """

    function: Callable[..., Tensor]
    needs: tuple[str, ...]
    cumulative: bool = False

    def __call__(self, data: Mapping[str, Any]) -> Tensor | None:
        """The measure of data by parameter name; None where the data lack one of them."""
        if not data.keys() >= {*self.needs}:
            return None
        return self.function(**{name: data[name] for name in self.needs})


_registered: dict[Callable[..., Tensor], Measure] = {}
MeasureFunction = TypeVar("MeasureFunction", bound=Callable[..., Tensor])


def measure(
    *,
    label: str,
    unit: str,
    higher_is_better: bool | None,
    bounds: tuple[float, float] = UNBOUNDED,
    cumulative: bool = False,
) -> Callable[[MeasureFunction], MeasureFunction]:
    """Register a function as a measure of its name; the function is returned unchanged.

    The names of the parameters select the data. A function of `propensity` measures a policy on the
    evaluation people at every time step and takes any of `POLICY_DATA`: `propensity` and those of
    counterfactuals of shape (E, N), the others of shape (N,), or (E, N) where seeds have people of their own
    (`splits`); `weight` is None where all labels are known. A function of `accepted` measures the decisions
    taken on applicants and takes any of `APPLICANTS_DATA`, of shape (T, E, N), but `places`, of shape (T, E),
    and `group_score`, (T, E, 2). `cost` is a number, and `stake` None; with amounts
    (`dataset.gain`) `cost` is each person's break-even probability, and `stake` their gain and loss together,
    of the shape of `label`. Where a run lacks what a parameter names, the measure has no values. The function
    returns shape (E,) for a policy, shape (T, E) for applicants. For
    `label`, `unit` and so on see `Quantity` and `Measure`.

    Raises:
        FairAllError: where a parameter has another name.
    """

    def register(function: MeasureFunction) -> MeasureFunction:
        needs = (*inspect.signature(function).parameters,)
        of: Literal["policy", "applicants"] = "policy" if "propensity" in needs else "applicants"
        known = POLICY_DATA if of == "policy" else APPLICANTS_DATA
        if not {known[0]} <= {*needs} <= {*known}:
            raise FairAllError(
                f"the measure {function.__name__} takes {', '.join(needs) or 'nothing'}: parameters are "
                f"some of {', '.join(POLICY_DATA)}, or some of {', '.join(APPLICANTS_DATA)}; "
                "`propensity` or `accepted` is one of them"
            )
        described = function.__name__, label, unit, higher_is_better, bounds, of
        _registered[function] = Measure(*described, function=function, needs=needs, cumulative=cumulative)
        return function

    return register


gap_measure = partial(measure, unit="difference of shares", higher_is_better=False, bounds=SHARE)


def curves(measures: Iterable[Measure]) -> list[Quantity]:
    """The quantities of every time step, in the order of the columns of metrics.csv."""
    return [
        part
        for measure in sorted(measures, key=attrgetter("of"), reverse=True)  # those of the policy first
        for part in ((measure, measure.sampled()) if measure.of == "policy" else (measure,))
    ]


def summaries(measures: Sequence[Measure]) -> list[Quantity]:
    """The quantities of a whole run: cumulative measures, and the temporal ones of a policy."""
    of_policy = [quantity for quantity in curves(measures) if quantity.of == "policy"]
    return [
        *(measure for measure in measures if measure.cumulative),
        *(part for quantity in of_policy for part in (quantity.variation(), quantity.mean())),
    ]


def load_measures(
    names: Sequence[str], groups: Mapping[str, str] | None = None, *, by_replicate: bool = False
) -> tuple[Measure, ...]:
    """The standard measures, and those that a user has written.

    Args:
        names: of decorated functions, as `module.function`; the module is imported.
        groups: see `of_groups`.
        by_replicate: whether seeds have people of their own.

    Raises:
        FairAllError: where there is no such measure, its name is taken, or it fails on made-up data.
    """
    measures = list(of_groups(groups or {}))
    for name in names:
        key = f"evaluation.measures: {name}"
        module, _, function = name.rpartition(".")
        written = "module.function, the module in the current folder or installed"
        with one_line(f"{key} cannot be imported; write it as {written}"):
            registered = _registered.get(getattr(import_own(module), function))
        if registered is None:
            raise FairAllError(f"{key} is not a measure; decorate the function with @fairall.metrics.measure")
        columns = _names([registered])
        if columns & _names(measures) or any(map(RESERVED.fullmatch, columns)):
            raise FairAllError(f"{key}: a measure called {registered.name} is there already; rename this one")
        _try_out(registered, key, by_replicate=by_replicate)
        measures.append(registered)
    return tuple(measures)


def _names(measures: Sequence[Measure]) -> set[str]:
    """The columns of metrics.csv and keys of summary.json that measures have."""
    return {quantity.name for quantity in (*curves(measures), *summaries(measures))}


def _try_out(tried: Measure, key: str, *, by_replicate: bool) -> None:
    """Raise FairAllError unless a measure has a value for each seed of made-up people.

    A mistake would otherwise end a run only after Phase I, or after its last time step. A measure that takes
    `weight` is computed without weights too, since the data set of a run may have none.
    """
    wanted = (2,) if tried.of == "policy" else (3, 2)  # of 2 seeds, and 3 time steps
    alone = wanted if by_replicate or tried.of == "applicants" else ()
    # All combinations of binary values, so that no group is empty.
    people = torch.arange(256).expand(*alone, -1)
    data: dict[str, Any] = {name: people >> bit & 1 > 0 for bit, name in enumerate((*MASKS, *BINARY))}
    data |= {name: data[name].float() for name in BINARY}
    policies = ("propensity", "counterfactual", "counterfactual_y_held")
    data |= dict.fromkeys(policies, torch.full((2, 256), 0.5))
    data |= {
        "s": 2.0 * data["s"] - 1.0,
        "cost": 0.5,
        "stake": None,
        "places": torch.full((3, 2), 4.0),
        "group_score": torch.full((3, 2, 2), 0.5),
    }
    for suffix, weight in {"": torch.full((256,), 0.5), " with weight=None": None}.items():
        with one_line(f"{key} fails on made-up people{suffix}"):
            values = tried(data | {"weight": weight})
        if isinstance(values, Tensor) and values.shape == wanted and values.is_floating_point():
            continue
        got = f"{values.dtype} of shape {tuple(values.shape)}" if isinstance(values, Tensor) else repr(values)
        raise FairAllError(
            f"{key} returns {got} for 2 seeds of made-up people{suffix}; "
            f"it must be a tensor of floats of shape {wanted}"
        )


def worth(label: Tensor, cost: Tensor | float, stake: Tensor | None) -> Tensor:
    """What acceptance brings: ỹ − c, or with amounts (g + l)·(ỹ − l/(g + l)) in money; shapes alike.

    Examples:
        >>> worth(torch.tensor([1.0, 0.0]), torch.tensor([0.75, 0.75]), torch.tensor([50.0, 50.0]))
        tensor([ 12.5000, -37.5000])
    """
    return label - cost if stake is None else stake * (label - cost)


@measure(label="utility", unit="gain per person", higher_is_better=True)
def utility(
    propensity: Tensor,
    label: Tensor,
    cost: Tensor | float,
    weight: Tensor | None = None,
    stake: Tensor | None = None,
) -> Tensor:
    """UT, mean of π·(ỹ − c) (definition 2.1).

    With weights the self-normalised inverse-propensity estimate Σ w·π·(ỹ − c) / Σ w (Hájek 1971) of the mean
    over a population of whom only some have a label.

    Args:
        propensity: acceptance probabilities π(d=1 | x, s), or decisions in {0, 1}, shape (E, N).
        label: ỹ or y in {0, 1}, shape (N,) or (E, N).
        cost: c in (0, 1); with amounts the break-even of each person, shape (N,).
        weight: of each label, 0 where it is unknown, shape (N,); None where all are known.
        stake: g + l of each person, in money, shape (N,); None without amounts.

    Returns:
        Shape (E,), in [−c, 1 − c]; with amounts in money.

    References:
        Hájek, J. (1971). Comment on "An essay on the logical foundations of survey sampling, part one" by
        D. Basu. In Foundations of Statistical Inference, Holt, Rinehart and Winston.

    Examples:
        >>> utility(torch.tensor([[1.0, 0.5]]), torch.tensor([1.0, 0.0]), 0.4)
        tensor([0.2000])
    """
    return weighted_mean(propensity * worth(label, cost, stake), weight)


@gap_measure(label="DPU")
def dpu(propensity: Tensor, s: Tensor) -> Tensor:
    """Demographic-parity unfairness, |E[π | S=+1] − E[π | S=−1]| (definition 2.2).

    Args:
        propensity: acceptance probabilities π(d=1 | x, s), or decisions in {0, 1}, shape (..., N).
        s: sensitive attribute, shape (N,) or (..., N); see `group_gap` for more than two groups.

    Returns:
        Shape (...), in [0, 1]; NaN where a group is absent.

    Examples:
        >>> dpu(torch.tensor([[1.0, 0.5, 0.0]]), torch.tensor([1.0, 1.0, -1.0]))
        tensor([0.7500])
    """
    return group_gap(propensity, s)


@measure(label="CFU", unit="mean difference of probabilities", higher_is_better=False, bounds=SHARE)
def cfu(propensity: Tensor, counterfactual: Tensor) -> Tensor:
    """Counterfactual unfairness, mean |π(x, s) − π(x_cf, −s)| (definition 2.3).

    `counterfactual` is π of the same people had their sensitive attribute been the other, shape (E, N).

    Examples:
        >>> cfu(torch.tensor([[1.0, 0.5]]), torch.tensor([[0.5, 0.5]]))
        tensor([0.2500])
    """
    return (propensity - counterfactual).abs().mean(-1)


@measure(label="ground-truth utility", unit="gain per person", higher_is_better=True)
def ground_truth_utility(
    propensity: Tensor, ground_truth: Tensor, cost: Tensor | float, stake: Tensor | None = None
) -> Tensor:
    """Mean of π·(y − c), the utility by the ground truth y instead of the proxy label.

    Examples:
        >>> ground_truth_utility(torch.tensor([[1.0, 0.5]]), torch.tensor([0.0, 0.0]), 0.4)
        tensor([-0.3000])
    """
    return utility(propensity, ground_truth, cost, stake=stake)


@measure(label="acceptance rate", unit="share", higher_is_better=None, bounds=SHARE)
def acceptance(propensity: Tensor) -> Tensor:
    """Mean of π, the share of people whom the policy accepts.

    Examples:
        >>> acceptance(torch.tensor([[1.0, 0.5]]))
        tensor([0.7500])
    """
    return propensity.mean(-1)


@gap_measure(label="equal-opportunity gap")
def equal_opportunity(propensity: Tensor, label: Tensor, s: Tensor, weight: Tensor | None = None) -> Tensor:
    """Equal-opportunity unfairness, |E[π | ỹ=1, S=+1] − E[π | ỹ=1, S=−1]| (Hardt et al. 2016).

    Shape (E,), in [0, 1]; NaN where a group has nobody with label 1.

    References:
        Hardt, M., Price, E. and Srebro, N. (2016). Equality of opportunity in supervised learning. NeurIPS.

    Examples:
        >>> s = torch.tensor([1.0, 1.0, -1.0])
        >>> equal_opportunity(torch.tensor([[1.0, 0.5, 0.25]]), torch.tensor([1.0, 0.0, 1.0]), s)
        tensor([0.7500])
    """
    return group_gap(propensity, s, label if weight is None else label * weight)


@gap_measure(label="predictive-parity gap")
def predictive_parity(propensity: Tensor, label: Tensor, s: Tensor, weight: Tensor | None = None) -> Tensor:
    """Predictive-parity unfairness, |E[ỹ | d=1, S=+1] − E[ỹ | d=1, S=−1]| (Chouldechova 2017).

    The share of label 1 among the accepted of a group is Σ π·ỹ / Σ π over its people.

    Shape (E,), in [0, 1]; NaN where nobody of a group is accepted.

    References:
        Chouldechova, A. (2017). Fair prediction with disparate impact: a study of bias in recidivism
        prediction instruments. Big Data 5(2).

    Examples:
        >>> s = torch.tensor([1.0, 1.0, -1.0])
        >>> predictive_parity(torch.tensor([[1.0, 0.5, 0.25]]), torch.tensor([1.0, 0.0, 1.0]), s)
        tensor([0.3333])
    """
    return group_gap(label, s, propensity if weight is None else propensity * weight)


@measure(label="effective utility", unit="gain per applicant", higher_is_better=True, cumulative=True)
def effective_utility(
    accepted: Tensor, label: Tensor, cost: Tensor | float, stake: Tensor | None = None
) -> Tensor:
    """Utility per applicant realised up to each step, Σ over accepted of (ỹ − c) / (N·t) (definition D.1).

    Args:
        accepted: decisions taken, shape (T, E, N), bool; `s`, `ground_truth` and `counterfactually_accepted`
            of the applicants have this shape too.
        label: ỹ of the applicants, shape (T, E, N).
        cost: c in (0, 1); with amounts the break-even of each applicant, shape (T, E, N).
        stake: g + l of each applicant, in money, shape (T, E, N); None without amounts.

    Returns:
        Shape (T, E).

    References:
        Kilbertus, N., Gomez-Rodriguez, M., Schölkopf, B., Muandet, K. and Valera, I. (2020). Fair decisions
        despite imperfect predictions. AISTATS.

        Rateike, M., Majumdar, A., Mineeva, O., Gummadi, K. P. and Valera, I. (2022). Don't throw it away! The
        utility of unlabeled data in fair decision making. FAccT.

    Examples:
        >>> effective_utility(torch.tensor([[[True, False]]]), torch.tensor([[[1.0, 1.0]]]), 0.5)
        tensor([[0.2500]])
    """
    return _running_mean((accepted * worth(label, cost, stake)).mean(-1))


@gap_measure(label="effective DPU", cumulative=True)
def effective_dpu(accepted: Tensor, s: Tensor) -> Tensor:
    """Running mean of each step's |difference of acceptance rates| (definition D.2, printed without |·|).

    The authors' code takes the absolute value of each step too; signed differences would cancel. Steps in
    which a group is absent are left out; of more than two groups those in which all but one are, and the
    difference is the largest one of a step. With N = 64 applicants a policy that treats both groups alike
    still has about 0.10, and more with more groups: see `effective_dpu_pooled`.

    Shape (T, E), in [0, 1]; NaN until both groups have been present in one step.

    Examples:
        >>> effective_dpu(torch.tensor([[[True, False]]]), torch.tensor([[[1.0, -1.0]]]))
        tensor([[1.]])
    """
    return _running_mean(dpu(accepted, s))


@gap_measure(label="effective DPU, pooled", cumulative=True)
def effective_dpu_pooled(accepted: Tensor, s: Tensor) -> Tensor:
    """|Difference of the acceptance rates pooled over all steps so far|, which has no noise floor.

    Shape (T, E), in [0, 1]; NaN until both groups have been present.

    Examples:
        >>> effective_dpu_pooled(torch.tensor([[[True, False]]]), torch.tensor([[[1.0, -1.0]]]))
        tensor([[1.]])
    """
    return largest_gap(
        [(accepted & group).sum(-1).cumsum(0) / group.sum(-1).cumsum(0) for group in members(s)]
    )


@measure(label="effective CFU", unit="share", higher_is_better=False, bounds=SHARE, cumulative=True)
def effective_cfu(accepted: Tensor, counterfactually_accepted: Tensor) -> Tensor:
    """Share of the applicants so far whose decision would differ if their sensitive attribute did.

    Its expectation is the mean |π(x, s) − π(x_cf, −s)| over applicants (definition 2.3), as both decisions
    of a person are taken with the same random number.

    Examples:
        >>> effective_cfu(torch.tensor([[[True, False]]]), torch.tensor([[[True, True]]]))
        tensor([[0.5000]])
    """
    return _running_mean(acceptance_rate(accepted != counterfactually_accepted))


@measure(
    label="effective ground-truth utility", unit="gain per applicant", higher_is_better=True, cumulative=True
)
def effective_ground_truth_utility(
    accepted: Tensor, ground_truth: Tensor, cost: Tensor | float, stake: Tensor | None = None
) -> Tensor:
    """`effective_utility` by the ground truth y instead of the proxy label.

    Examples:
        >>> effective_ground_truth_utility(torch.tensor([[[True, True]]]), torch.tensor([[[1.0, 1.0]]]), 0.5)
        tensor([[0.5000]])
    """
    return effective_utility(accepted, ground_truth, cost, stake)


@measure(label="acceptance rate of applicants", unit="share", higher_is_better=None, bounds=SHARE)
def acceptance_rate(accepted: Tensor) -> Tensor:
    """Share of each step's applicants who were accepted.

    Examples:
        >>> acceptance_rate(torch.tensor([[[True, False]]]))
        tensor([[0.5000]])
    """
    return accepted.float().mean(-1)


@cache
def acceptance_rate_of(s_of_group: float, key: str, name: str) -> Measure:
    """The acceptance rate of a group of applicants, `acceptance_rate_KEY`; NaN at a step without any.

    Examples:
        >>> advantaged = acceptance_rate_of(1.0, "advantaged", "S = +1")
        >>> advantaged.function(torch.tensor([[[True, False]]]), torch.tensor([[[1.0, -1.0]]]))
        tensor([[1.]])
    """

    def rate(accepted: Tensor, s: Tensor) -> Tensor:
        return weighted_mean(accepted, s == s_of_group)

    rate.__doc__ = f"Share of each step's applicants with {name} who were accepted."
    described = f"acceptance_rate_{key}", f"acceptance rate of applicants, {name}", "share", None, SHARE
    return Measure(*described, "applicants", function=rate, needs=("accepted", "s"))


OF_ALL_GROUPS = tuple(_registered.values())


def of_groups(names: Mapping[str, str]) -> tuple[Measure, ...]:
    """The measures of every run with these groups.

    Args:
        names: of more than two groups in the order of their numbers, by key; empty for two groups.
    """
    numbers = range(len(names)) if names else (1, -1)
    names = names or {"advantaged": "S = +1", "disadvantaged": "S = −1"}
    return (*OF_ALL_GROUPS, *map(acceptance_rate_of, numbers, names, names.values()))


STANDARD = of_groups({})
"""The measures of every run with two groups."""


@measure(label="CFU, Y held", unit="mean difference of probabilities", higher_is_better=False, bounds=SHARE)
def cfu_y_held(propensity: Tensor, counterfactual_y_held: Tensor) -> Tensor:
    """CFU where the ground truth stays as it is: mean |π(x, s) − π(x_cf | y, −s)|.

    For synthetic people whose Y depends on S, in `evaluation.measures`; elsewhere it has no values, and would
    be CFU.

    Examples:
        >>> cfu_y_held(torch.tensor([[1.0, 0.5]]), torch.tensor([[0.5, 0.5]]))
        tensor([0.2500])
    """
    return cfu(propensity, counterfactual_y_held)


def registered(function: Callable[..., Tensor]) -> Measure:
    """The measure of a function decorated with `measure`."""
    return _registered[function]


def utility_standard_error(
    propensity: Tensor,
    label: Tensor,
    cost: Tensor | float,
    weight: Tensor | None = None,
    stratum: Tensor | None = None,
    stake: Tensor | None = None,
) -> Tensor:
    """Standard error of `utility` as an estimate for the population that the N people were sampled from.

    √(Σ_h n_h/(n_h − 1) Σ_{i∈h} (z_i − z̄_h)²) / Σ w with z = w·(g − UT) and g = π·(ỹ − c), over strata h of
    n_h people: the linearised variance of a ratio in a stratified sample (Särndal et al. 1992, sections 3.7
    and 5.7). People who were not stratified are one stratum; without weights this is then the standard
    deviation of g over √N.

    The population has the shares of the strata that the sample has: strata by label leave no noise of the
    base rate. `stratum` has its number, from 0, for each person, shape (N,); None if people
    were not stratified.

    Returns:
        Shape (E,); NaN for a single label.

    References:
        Särndal, C.-E., Swensson, B. and Wretman, J. (1992). Model Assisted Survey Sampling. Springer.

    Examples:
        >>> utility_standard_error(torch.ones(1, 2), torch.tensor([1.0, 0.0]), 0.5)
        tensor([0.5000])
        >>> people, label = torch.ones(1, 4), torch.tensor([1.0, 1.0, 0.0, 0.0])
        >>> utility_standard_error(people, label, 0.5, stratum=label)  # everybody is accepted
        tensor([0.])
    """
    return _mean_and_variance(propensity * worth(label, cost, stake), weight, stratum)[1].sqrt()


def dpu_standard_error(propensity: Tensor, s: Tensor, stratum: Tensor | None = None) -> Tensor:
    """Standard error of the difference in `dpu` as an estimate for the population of the N people.

    √(Σ_g V_g) with V_g the variance of the mean of π in a group, given the sizes of the groups; see
    `utility_standard_error`. Of more than two groups the sum is over the two of largest difference.

    Returns:
        Shape (E,); NaN where a group is absent, or one of the two has a single person.

    Examples:
        >>> s = torch.tensor([1.0, 1.0, -1.0, -1.0])
        >>> dpu_standard_error(torch.tensor([[1.0, 0.0, 1.0, 1.0]]), s)
        tensor([0.5000])
    """
    of_groups = [
        _mean_and_variance(propensity[..., group], None, None if stratum is None else stratum[group])
        for group in members(s)
    ]
    means, variances = (torch.stack(of) for of in zip(*of_groups, strict=True))
    extremes = means.sort(0).indices[[0, -1]]
    return variances.gather(0, extremes).sum(0).sqrt()


def _mean_and_variance(
    values: Tensor, weight: Tensor | None, stratum: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Weighted mean of values (E, N), and its variance as an estimate for the population, shapes (E,).

    The variance is Σ_h n_h/(n_h − 1) Σ_{i∈h} (z_i − z̄_h)², of z = w·(v − mean) / Σ w. A stratum of one
    person, which has no deviation of its own, counts with z². NaN for fewer than two people with a weight.
    """
    mean = weighted_mean(values, weight)
    known = torch.ones(values.shape[-1]) if weight is None else weight
    strata = torch.zeros_like(known) if stratum is None else stratum
    z = known * (values - mean.unsqueeze(-1)) / known.sum()
    variance = torch.full_like(mean, 0.0 if (known > 0).sum() > 1 else torch.nan)
    for number in strata.unique():
        of_stratum = z[..., strata == number]
        n = of_stratum.shape[-1]
        variance += n * of_stratum.var(-1) if n > 1 else of_stratum.square().sum(-1)
    return mean, variance


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Σ w·v / Σ w of values (..., N) with weights (N,); the plain mean without them. Shape (...).

    Examples:
        >>> weighted_mean(torch.tensor([1.0, 3.0]), torch.tensor([3.0, 1.0]))
        tensor(1.5000)
    """
    return values.mean(-1) if weight is None else (weight * values).sum(-1) / weight.sum(-1)


def group_gap(values: Tensor, s: Tensor, weight: Tensor | float = 1.0) -> Tensor:
    """|Difference between S = +1 and S = −1 of the weighted mean|, Σ w·v / Σ w over each group.

    Of more than two groups it is the largest difference between two of them, without those that are absent.

    Args:
        values: shape (..., N).
        s: sensitive attribute in {−1, +1}, or numbers of more than two groups, shape (N,) or (..., N).
        weight: of each value, at least 0, shape (N,) or (..., N), or one for all; then values may be (N,).

    Returns:
        Shape (...); NaN where a group is absent or has no weight, of more than two where all but one are.

    Examples:
        >>> group_gap(torch.tensor([1.0, 0.5, 0.0]), torch.tensor([1.0, 1.0, -1.0]))
        tensor(0.7500)
        >>> group_gap(torch.tensor([1.0, 0.5, 0.25]), torch.tensor([0.0, 1.0, 2.0]))
        tensor(0.7500)
    """
    return largest_gap([weighted_mean(values, weight * group) for group in members(s)])


def members(s: Tensor) -> list[Tensor]:
    """Masks of the people of each group, of the shape of s: S = −1 and S = +1, or the numbers from 0."""
    return [s.clamp(min=0) == number for number in range(max(2, int(s.max()) + 1))]


def largest_gap(of_groups: list[Tensor]) -> Tensor:
    """Largest difference between the values of two groups, of which there are two or more, of shape (...).

    NaN is no value; NaN where a group of two, or all but one of more groups, have none.
    """
    return reduce(torch.fmax, [(one - other).abs() for one, other in combinations(of_groups, 2)])


@dataclass(frozen=True)
class Spread:
    """A measure over seeds.

    Attributes:
        mean: over seeds.
        std: over seeds, with n − 1; None for one seed.
        interval: 95 % interval of the mean over seeds by Student's t; None for one seed. With one split it is
            about other seeds on the same people, with several about other splits of the same table. Neither
            is about other people (docs/measures.md).
    """

    mean: float
    std: float | None
    interval: tuple[float, float] | None

    @classmethod
    def over_seeds(cls, values: np.ndarray, *, bounds: tuple[float, float] = UNBOUNDED) -> Spread | None:
        """Spread of values (E,) in `bounds`; None where a seed has no value, or there is no seed."""
        n = len(values)
        if n == 0 or not np.isfinite(values).all():
            return None
        mean = float(values.mean())
        if n == 1:
            return cls(mean, None, None)
        std = float(values.std(ddof=1))
        half = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)
        low, high = np.clip([mean - half, mean + half], *bounds).tolist()
        return cls(mean, std, (low, high))


def _running_mean(per_step: Tensor) -> Tensor:
    """Mean until each step of values (T, E) without those that are NaN; NaN before the first that is not."""
    return per_step.nan_to_num(0.0).cumsum(0) / (~per_step.isnan()).cumsum(0)
