"""Prices at which a policy that does not see the group keeps a bound on the gap between the groups' rates.

Of all policies π(x), those that earn most under linear bounds on Σ π·w accept where what a person brings
exceeds the sum of the person's w times their prices: the Lagrangian, for two groups solved by Menon and
Williamson (2018, section 4). With w_g proportional to p(S = g | x), Σ π·w_g is the acceptance rate of a group
whose members are not known; with p(S = g | x)·p(ỹ = 1 | x) it is the true positive rate of Hardt et al.
(2016).

References:
    Hardt, M., Price, E. and Srebro, N. (2016). Equality of opportunity in supervised learning. NeurIPS.
    Menon, A. K. and Williamson, R. C. (2018). The cost of fairness in binary classification. FAT*.
    Boyd, S. and Vandenberghe, L. (2004). Convex optimization, chapter 5 (duals) and section 11.3 (a problem
    is solved for falling temperatures, each from the solution before).
"""

from __future__ import annotations

import numpy as np

from fairall.models.logistic import minimum

TEMPERATURE = 1e-3  # of the policy, in units of utility: more than what is lost for it per person
TEMPERATURES = np.geomspace(1.0, TEMPERATURE, 5)  # from each to the next a few steps lead
RIDGE = 1e-9  # weight of Σ price²/2, which leaves one solution where people are alike; error of a rate


def fair_prices(earned: np.ndarray, counted: np.ndarray, slack: float, places: float = 1.0) -> np.ndarray:
    """Prices of belonging to each group, and of a place, with which most is earned.

    At prices λ people are accepted with π = σ((earned − Σ_k λ_k·counted_k)/τ). That is the policy of greatest
    utility + τ·entropy, where λ minimises the dual, a sum of softplus functions. The least rate, what each
    rate is above it in units of the slack, and the share of the places that are taken are in [0, 1] as π is,
    and have their entropies too. At the minimum the gradient is 0, so that the bounds hold exactly. Where to
    accept everybody who earns something keeps them, all prices are 0.

    Args:
        earned: what each of N people earns if accepted, shape (N,).
        counted: m, what each counts in the rate Σ π·m_g / Σ m_g of each group, and 1, shape (N, G + 1).
        slack: greatest gap between the rates of any two groups, in [0, 1].
        places: the greatest share of people who may be accepted.

    Returns:
        λ, shape (G + 1,).

    Examples:
        >>> from scipy.special import expit
        >>> earned = np.array([0.3, 0.2, -0.1, -0.4])
        >>> counted = np.array([[0.9, 0.1, 1], [0.6, 0.4, 1], [0.4, 0.6, 1], [0.1, 0.9, 1]])
        >>> fair_prices(earned, counted, slack=0.5)
        array([0., 0., 0.])
        >>> price = fair_prices(earned, counted, slack=0.25)
        >>> pi = expit((earned - counted @ price) / TEMPERATURE)
        >>> pi.round(2), (pi @ counted / counted.sum(0)).round(2)
        (array([0.38, 1.  , 0.  , 0.  ]), array([0.47, 0.22, 0.34]))
    """
    (n, n_prices), scale, pays = counted.shape, counted.mean(0), earned >= 0.0
    *rates, taken = counted[pays].sum(0) / (n * scale)
    if np.ptp(rates) <= slack and taken <= places:
        return np.zeros(n_prices)
    # Of π, of the parts of slack and places, and of the least rate.
    bounds = -np.eye(n_prices)
    costs = np.vstack([counted / scale, bounds, bounds[:-1].sum(0)])
    worth = np.append(earned, np.zeros(n_prices + 1))
    weight = np.append(np.full(n, 1.0 / n), [slack] * (n_prices - 1) + [places, 1.0])
    prices = np.zeros(n_prices)
    for t in TEMPERATURES:
        penalty = np.full(n_prices, RIDGE * t)
        prices = t * minimum(-costs, 0.0, weight, penalty, prices / t, worth / t)
    return prices / scale
