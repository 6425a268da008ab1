"""Compiled functions: nets, likelihoods and Adam of a few replicates, one after the other, in float32.

The formulas are those of `likelihoods`, `noise` and `adam` in `fairall.nn` and of `elbo`, `objectives` and
`latent_learner` in `fairall.models`, which tests compare them with. A net is one vector, `theta`, of weight
(in, out) and bias (out) of its layers in turn; values of its units have people in columns, shape (units, n),
and those of all layers lie one after the other in one buffer.

All compiled functions are in this one file, since numba renews its cache of a function when the function's
own file has changed, but not when that of a function it calls has. Arguments have no classes of this package:
where a class has since been moved, numba could not read its list of what is compiled. Loops over people stand
in small functions, write to few arrays and load nothing conditionally: only then do they use vector
registers. `a if x < a else x` keeps NaN, which max() and min() would lose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 - what np.dot calls; loaded before its threads are limited

from fairall.nn.objective import Objective

# Sums may be reordered, which lets loops over people use vector registers. NaN and infinity keep their
# meaning: they tell that a seed has diverged.
ARITHMETIC = {"reassoc", "nsz", "arcp", "contract"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": ARITHMETIC, "error_model": "numpy"}
F = np.float32
ZERO, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)
OVER_3, OVER_4, OVER_5, OVER_6, OVER_7 = F(1 / 3), F(1 / 4), F(1 / 5), F(1 / 6), F(1 / 7)
OVER_9, OVER_11, OVER_13 = F(1 / 9), F(1 / 11), F(1 / 13)
LOG2_E = F(1.4426950408889634)
LN_2_HIGH, LN_2_LOW = F(0.693359375), F(-2.1219444e-4)  # their sum is log 2; the first has few digits
HALF_LOG_2_PI, SQRT_HALF, PER_SQRT_2_PI = F(0.9189385332), F(0.7071067812), F(0.3989422804)
LEAST_EXPONENT = F(-87.0)  # e^x is a normal number above it
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # of Adam
# Samples of people at once: few enough for a layer's values, its gradient and the next one's to stay in the
# cache, and a minibatch of 128 is one piece. From about 200 on, OpenBLAS's gradients of weights are slower.
COLUMNS = 128
# Of Philox, as `philox` in `fairall.nn.noise`.
MULTIPLY_0, MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
INCREASE_0, INCREASE_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LOW_BITS, BITS_32, BITS_9 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(9)
UNIT, BELOW_ONE, SQRT_2 = F(2.0**-23), F(1.0 - 2.0**-24), F(2.0**0.5)
# Typed constants: numba would compile a function once more for each literal argument.
NO, YES, START, ONCE = np.bool_(False), np.bool_(True), np.int64(0), np.int64(1)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call, or load from the cache beside this file or of the user."""
    try:
        return numba.njit(function, cache=True, no_cfunc_wrapper=True, **OPTIONS)
    except RuntimeError:  # neither place can be written to
        return numba.njit(function, no_cfunc_wrapper=True, **OPTIONS)


def inner(function: Callable[..., Any]) -> Any:
    """Compile for calls from other compiled functions, in whose cached code it is."""
    return numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile as a part of each caller, which would compile it once more if it were compiled by itself."""
    return numba.njit(function, inline="always", **OPTIONS)


@inner
def exp(x):
    """e^x for x ≤ 88, by its series after the division of x by log 2."""
    x = LEAST_EXPONENT if x < LEAST_EXPONENT else x
    n = np.floor(x * LOG2_E + HALF)
    r = (x - n * LN_2_HIGH) - n * LN_2_LOW
    series = ONE + r * OVER_6 * (ONE + r * OVER_7)
    series = ONE + r * OVER_3 * (ONE + r * OVER_4 * (ONE + r * OVER_5 * series))
    series = ONE + r * (ONE + r * HALF * series)
    return series * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@inner
def two_artanh(s):
    """2·artanh(s) = log((1 + s)/(1 − s)) for |s| ≤ 1/3, by its series."""
    square = s * s
    series = OVER_9 + square * (OVER_11 + square * OVER_13)
    series = ONE + square * (OVER_3 + square * (OVER_5 + square * (OVER_7 + square * series)))
    return TWO * s * series


@inner
def log(x):
    """Natural logarithm of a normal positive number."""
    bits = np.float32(x).view(np.int32)
    # The mantissa between √½ and √2, and the exponent that belongs to it.
    shifted = bits - np.int32(0x3F3504F3)
    exponent = F(shifted >> np.int32(23))
    mantissa = np.int32((shifted & np.int32(0x7FFFFF)) + np.int32(0x3F3504F3)).view(np.float32)
    return two_artanh((mantissa - ONE) / (mantissa + ONE)) + exponent * LN_2_LOW + exponent * LN_2_HIGH


@inner
def softplus(x):
    """log(1 + e^x), and its derivative, the logistic function."""
    u = exp(-abs(x))
    slope = (u if x < ZERO else ONE) / (ONE + u)
    return (ZERO if x < ZERO else x) + two_artanh(u / (TWO + u)), slope


@inner
def relu(values, bias):
    """Add the bias of a unit and apply the ReLU."""
    for i in range(len(values)):
        v = values[i] + bias
        values[i] = ZERO if v < ZERO else v


@inner
def shift(values, bias):
    """Add a number, for instance the bias of a unit, to all values."""
    for i in range(len(values)):
        values[i] += bias


@inner
def copy(values, into):
    """Copy values to `into`; an assignment would also compile the error for arrays of different lengths."""
    for i in range(len(values)):
        into[i] = values[i]


@inner
def n_units(sizes):
    """Number of units of all layers, and of the widest one."""
    n, widest = 0, 0
    for i in range(len(sizes)):
        n += sizes[i]
        widest = max(widest, sizes[i])
    return n, widest


@inner
def total(values):
    """Sum."""
    result = ZERO
    for i in range(len(values)):
        result += values[i]
    return result


@inner
def forward(theta, sizes, values, n, dropout, masks):
    """Fill `values` behind the input, which is there; returns the offset of the output.

    Hidden units whose uniform number in `masks`, in the order of their values, is below `dropout` are zero.
    """
    weights, units, used = 0, 0, 0
    for layer in range(len(sizes) - 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weight = theta[weights : weights + n_in * n_out].reshape(n_in, n_out)
        weights += n_in * n_out
        x = values[units : units + n_in * n].reshape(n_in, n)
        units += n_in * n
        y = values[units : units + n_out * n].reshape(n_out, n)
        np.dot(weight.T, x, y)
        for j in range(n_out):
            if layer < len(sizes) - 2:
                relu(y[j], theta[weights + j])
            else:
                shift(y[j], theta[weights + j])
        weights += n_out
        if layer < len(sizes) - 2 and dropout > ZERO:
            drop(values[units : units + n_out * n], masks[used : used + n_out * n], dropout)
            used += n_out * n
    return units


@inner
def drop(values, masks, dropout):
    """Set values to zero where a uniform number is below `dropout`, and scale the others."""
    factor = ONE / (ONE - dropout)
    for i in range(len(values)):
        values[i] *= F(masks[i] >= dropout) * factor


@compiled
def apply(theta, sizes, x, out):
    """Outputs of nets for x (E, in, n) to out (E, out, n)."""
    columns = max(1, min(COLUMNS, x.shape[2]))
    values = np.empty(n_units(sizes)[0] * columns, F)
    for e in range(len(theta)):
        for first in range(0, x.shape[2], columns):
            n = min(columns, x.shape[2] - first)
            for k in range(sizes[0]):
                copy(x[e, k, first : first + n], values[k * n : (k + 1) * n])
            end = forward(theta[e], sizes, values, n, ZERO, values)
            for k in range(sizes[-1]):
                copy(values[end + k * n : end + (k + 1) * n], out[e, k, first : first + n])


@compiled
def average(theta, sizes, loc, scale, noise, out):
    """Average over samples z = loc + scale·ε of the logistic function of a net's only output.

    Parameters `theta` (E, n) of nets with layers of these sizes; location and scale (E, B, M, Z) of M normal
    distributions a person; ε (E, B, Z, L), or (E, 1, Z, L) for all. Averages go to `out` (E, B, M).
    """
    n_people, n_branches, n_latent = loc.shape[1:]
    n_noises, n_samples = noise.shape[1], noise.shape[3]
    of_person = n_branches * n_samples
    at_once = max(1, min(n_people, COLUMNS // of_person))
    values = np.empty(n_units(sizes)[0] * at_once * of_person, F)
    for e in range(len(theta)):
        for first in range(0, n_people, at_once):
            n = min(at_once, n_people - first)
            z = values[: n_latent * n * of_person].reshape(n_latent, n, n_branches, n_samples)
            for k in range(n_latent):
                for i in range(n):
                    epsilon = noise[e, min(first + i, n_noises - 1), k]
                    for branch in range(n_branches):
                        centre, width = loc[e, first + i, branch, k], scale[e, first + i, branch, k]
                        for j in range(n_samples):
                            z[k, i, branch, j] = centre + width * epsilon[j]
            end = forward(theta[e], sizes, values, n * of_person, ZERO, values)
            logit = values[end : end + n * of_person]
            for j in range(n * of_person):
                _, logit[j] = softplus(logit[j])
            for i in range(n):
                for branch in range(n_branches):
                    start = (i * n_branches + branch) * n_samples
                    out[e, first + i, branch] = total(logit[start : start + n_samples]) / F(n_samples)


@inner
def through_relu(gradient, hidden, factor):
    """Set the gradient of units that are not active to zero, and scale the others."""
    for i in range(len(gradient)):
        g = factor * gradient[i]
        gradient[i] = g if hidden[i] > ZERO else ZERO


@inner
def add_product(into, x, g):
    """Add x·gᵀ; OpenBLAS is up to twice as fast with the larger factor first."""
    if len(x) >= len(g):
        product = np.empty(into.shape, F)
        np.dot(x, g.T, product)
        for i in range(len(x)):
            for j in range(len(g)):
                into[i, j] += product[i, j]
    else:
        product = np.empty((len(g), len(x)), F)
        np.dot(g, x.T, product)
        for i in range(len(x)):
            for j in range(len(g)):
                into[i, j] += product[j, i]


@inner
def backward(theta, sizes, values, n, dropout, gradient, of_theta, of_input):
    """Add the gradient of the net's parameters to `of_theta`, and return that of its input if `of_input`.

    `gradient` begins with that of the output and has room for the widest layer; it is written over.
    """
    spare = np.empty(n_units(sizes)[1] * n, F)
    weights, units = len(theta), 0
    for layer in range(len(sizes) - 1):
        units += sizes[layer] * n
    for layer in range(len(sizes) - 2, -1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weights -= (n_in + 1) * n_out
        units -= n_in * n
        biases = weights + n_in * n_out
        x = values[units : units + n_in * n].reshape(n_in, n)
        g = gradient[: n_out * n].reshape(n_out, n)
        add_product(of_theta[weights:biases].reshape(n_in, n_out), x, g)
        for j in range(n_out):
            of_theta[biases + j] += total(g[j])
        if layer > 0 or of_input:
            into = spare[: n_in * n]
            np.dot(theta[weights:biases].reshape(n_in, n_out), g, into.reshape(n_in, n))
            if layer > 0:
                through_relu(into, values[units : units + n_in * n], ONE / (ONE - dropout))
            gradient, spare = spare, gradient
    return gradient


@inlined
def log_prob(outputs, target, layout, weight, score, space, each):
    """Sum over features of log p(x | z, s) without log h(x) to `each`; weight times its gradient to `score`.

    Outputs of the decoder and `score` have shape (P, n), `target`, the features by kind as in the `layout`,
    (D, n), and `weight`, `space`, which is for working, and `each` (n,).
    """
    n_real, n_count, n_binary, sizes, codes, least, most = layout
    each[:] = ZERO
    for k in range(n_real):
        j = n_real + k
        gaussian(target[k], outputs[k], outputs[j], weight, score[k], score[j], space, each, least)
    p, d = 2 * n_real, n_real
    for k in range(n_count):
        poisson(target[d + k], outputs[p + k], weight, score[p + k], space, each, least)
    p, d = p + n_count, d + n_count
    for k in range(n_binary):
        bernoulli(target[d + k], codes[k], outputs[p + k], weight, score[p + k], each)
    p, d, code = p + n_binary, d + n_binary, n_binary
    for k in range(len(sizes)):
        x, n = target[d + k], sizes[k]
        space[:] = ZERO
        for i in range(n):
            odds(x, codes[code + i], outputs[p + i], score[p + i], space, each, most)
        normalise(space, each)
        for i in range(n):
            residual(x, codes[code + i], weight, score[p + i], space)
        p, code = p + n, code + n


@inner
def gaussian(x, eta1, raw, weight, of_eta1, of_raw, precision, each, least):
    """One feature of `log_prob`, real: the outputs are as in `fairall.nn.likelihoods.Gaussian`."""
    for i in range(len(x)):
        positive, of_raw[i] = softplus(raw[i])
        precision[i] = TWO * (positive + least)
    for i in range(len(x)):
        error = x[i] - eta1[i] / precision[i]
        each[i] += HALF * (log(precision[i]) - precision[i] * error * error)
    for i in range(len(x)):
        variance = ONE / precision[i]
        mean = eta1[i] * variance
        of_raw[i] *= weight[i] * (mean * mean + variance - x[i] * x[i])
    for i in range(len(x)):
        of_eta1[i] = weight[i] * (x[i] - eta1[i] / precision[i])


@inner
def poisson(x, raw, weight, of_raw, rate, each, least):
    """One feature of `log_prob`, a count: the output is as in `fairall.nn.likelihoods.Poisson`."""
    for i in range(len(x)):
        positive, of_raw[i] = softplus(raw[i])
        rate[i] = positive + least
    for i in range(len(x)):
        each[i] += x[i] * log(rate[i]) - rate[i]
    for i in range(len(x)):
        of_raw[i] *= weight[i] * (x[i] / rate[i] - ONE)


@inner
def bernoulli(x, second, logit, weight, score, each):
    """One feature of `log_prob`, binary; `second` is the code of its second value."""
    for i in range(len(x)):
        positive, score[i] = softplus(logit[i])
        each[i] += F(x[i] == second) * logit[i] - positive
    for i in range(len(x)):
        score[i] = weight[i] * (F(x[i] == second) - score[i])


@inner
def odds(x, code, logit, score, total_odds, each, most):
    """For one code of a categorical feature: e^logit to `score`, the logit added to `each` where x is it."""
    for i in range(len(x)):
        bounded = -most if logit[i] < -most else (most if logit[i] > most else logit[i])
        score[i] = exp(bounded)
    for i in range(len(x)):
        total_odds[i] += score[i]
    for i in range(len(x)):
        bounded = -most if logit[i] < -most else (most if logit[i] > most else logit[i])
        each[i] += F(x[i] == code) * bounded


@inner
def normalise(total_odds, each):
    """Subtract the logarithm of the sum of odds, and take its reciprocal."""
    for i in range(len(each)):
        each[i] -= log(total_odds[i])
    for i in range(len(each)):
        total_odds[i] = ONE / total_odds[i]


@inner
def residual(x, code, weight, score, per_odds):
    """Weight times 1 or 0 less the probability of a code."""
    for i in range(len(x)):
        score[i] = weight[i] * (F(x[i] == code) - score[i] * per_odds[i])


@inner
def adam(theta, mean, square, gradient, step, learning_rate):
    """Update number `step`, from 1, of Adam."""
    size = F(learning_rate / (1.0 - BETA_1**step))
    unbias = F(1.0 / np.sqrt(1.0 - BETA_2**step))
    for i in range(len(theta)):
        g = gradient[i]
        mean[i] = F(BETA_1) * mean[i] + F(1.0 - BETA_1) * g
        square[i] = F(BETA_2) * square[i] + F(1.0 - BETA_2) * g * g
        theta[i] -= size * mean[i] / (np.sqrt(square[i]) * unbias + F(EPSILON))


@inner
def repeated(into, values, n_samples, factor):
    """Fill `into` with `n_samples` times each value in turn, times a factor."""
    for r in range(len(values)):
        for j in range(n_samples):
            into[r * n_samples + j] = factor * values[r]


@inner
def looked_up(into, table, first, who, n_samples):
    """Fill `into` (columns, rows) with the values of people `who` in a table, `n_samples` times each.

    Its columns are those of the table from `first` on.
    """
    for r in range(len(who)):
        for k in range(len(into)):
            for j in range(n_samples):
                into[k, r * n_samples + j] = table[who[r], first + k]


@inner
def sampled(into, loc, scale, eps, first, n_samples):
    """Fill `into` (Z, samples) with loc + scale·ε of rows from `first` on; ε has more rows or samples."""
    for k in range(len(loc)):
        for r in range(into.shape[1] // n_samples):
            centre, width = loc[k, first + r], scale[k, first + r]
            for j in range(n_samples):
                into[k, r * n_samples + j] = centre + width * eps[first + r, k, j]


@inner
def add_moments(gradient, eps, first, n_rows, n_samples, of_loc, of_scale):
    """Add the gradients in location and scale of rows from `first` on, given that in their samples."""
    for k in range(len(of_loc)):
        for i in range(n_rows):
            r, start = first + i, (k * n_rows + i) * n_samples
            for j in range(n_samples):
                of_sample = gradient[start + j]
                of_loc[k, r] += of_sample
                of_scale[k, r] += of_sample * eps[r, k, j]


@inner
def add_means(values, into):
    """Add to each row the mean over its samples."""
    n_samples = len(values) // len(into)
    for r in range(len(into)):
        into[r] += total(values[r * n_samples : (r + 1) * n_samples]) / F(n_samples)


@inlined
def encode(theta, sizes, given, who, utility, min_scale):
    """Units of the encoder for people `who`, and location, scale and the scale's slope, each (Z, rows).

    `given` (N, inputs) are its inputs, s the last, and then ũ of the rows if it is modelled.
    """
    n, n_inputs, n_latent = len(who), given.shape[1], sizes[-1] // 2
    values = np.empty(n_units(sizes)[0] * n, F)
    entered = values[: sizes[0] * n].reshape(sizes[0], n)
    looked_up(entered[:n_inputs], given, START, who, ONCE)
    if sizes[0] > n_inputs:
        copy(utility, entered[n_inputs])
    end = forward(theta, sizes, values, n, ZERO, values)
    encoded = values[end : end + 2 * n_latent * n].reshape(2 * n_latent, n)
    loc, scale, slope = encoded[:n_latent], encoded[n_latent:], np.empty((n_latent, n), F)
    positive_scale(values[end + n_latent * n : end + 2 * n_latent * n], slope.ravel(), min_scale)
    return values, loc, scale, slope


@inner
def positive_scale(scale, slope, min_scale):
    """Apply the softplus to raw scales, and keep its derivative."""
    for i in range(len(scale)):
        positive, slope[i] = softplus(scale[i])
        scale[i] = positive + min_scale


@inlined
def through_encoder(theta, sizes, values, slope, of_loc, of_scale, of_theta):
    """Add the gradient of the encoder's parameters, given that of location and scale."""
    n_latent, n = of_loc.shape
    gradient = np.empty(n_units(sizes)[1] * n, F)
    for k in range(n_latent):
        copy(of_loc[k], gradient[k * n : (k + 1) * n])
        for i in range(n):
            gradient[(n_latent + k) * n + i] = of_scale[k, i] * slope[k, i]
    backward(theta, sizes, values, n, ZERO, gradient, of_theta, NO)


@inner
def gaussian_kl(loc, scale, weight, of_loc, of_scale):
    """Sum of weighted KL terms to N(0, 1); its gradients are added to the last two."""
    kl = ZERO
    for i in range(len(loc)):
        kl += weight[i] * (HALF * (loc[i] * loc[i] + scale[i] * scale[i] - ONE) - log(scale[i]))
    for i in range(len(loc)):
        of_loc[i] += weight[i] * loc[i]
        of_scale[i] += weight[i] * (scale[i] - ONE / scale[i])
    return kl


@inner
def mixture_kl(logit, r, n_samples, loc, scale, eps, weight, of_loc, of_scale):
    """KL of a mixture of two Gaussians to N(0, I), `mixture_kl` of `fairall.models.elbo`, and its gradients.

    The components, of which the second has this logit, are in rows r and r + 1 of location and scale
    (Z, rows) and ε (rows, Z, samples), of which the first `n_samples` count. With the densities p₀ and p₁ of
    the components times their weights w, a sample of component c adds
    log p_c + softplus(log p_o − log p_c) − log N(0, I), o the other component.

    Returns the KL; the gradients in location and scale, times `weight`, are added.
    """
    n_latent = len(loc)
    per_sample = np.empty((4, n_samples), F)
    own, other, prior, share = per_sample[0], per_sample[1], per_sample[2], per_sample[3]
    q, log_scaled = np.empty(2, F), np.empty(2, F)
    positive, q[1] = softplus(logit)
    q[0] = ONE - q[1]
    log_scaled[0], log_scaled[1] = -positive, logit - positive
    for c in range(2):
        for k in range(n_latent):
            log_scaled[c] -= log(scale[k, r + c])
    kl = ZERO
    for c in range(2):
        i, o = r + c, r + 1 - c
        each = q[c] / F(n_samples)
        per_sample[:3] = ZERO
        for k in range(n_latent):
            m, sigma, m_other, per_other = components(loc, scale, k, i, o)
            add_squares(eps[i, k, :n_samples], m, sigma, m_other, per_other, own, other, prior)
        ratio = log_ratio(own, other, prior, log_scaled[1 - c] - log_scaled[c], share)
        of_other = each * total(share)
        kl += each * ratio + q[c] * log_scaled[c]
        for k in range(n_latent):
            m, sigma, m_other, per_other = components(loc, scale, k, i, o)
            z, z_eps, t, t_eps, t_t = moments(eps[i, k, :n_samples], m, sigma, m_other, per_other, share)
            of_loc[k, i] += weight * each * (z - t * per_other)
            of_loc[k, o] += weight * each * t * per_other
            of_scale[k, i] += weight * (each * (z_eps - t_eps * per_other) - (q[c] - of_other) / sigma)
            of_scale[k, o] += weight * (each * t_t - of_other) * per_other
    return kl


@inner
def components(loc, scale, k, i, o):
    """Location and scale of sample i's component, location and inverse scale of the other one, o."""
    return loc[k, i], scale[k, i], loc[k, o], ONE / scale[k, o]


@inner
def add_squares(eps, m, sigma, m_other, per_other, own, other, prior):
    """Add squares of one coordinate, standardised by its own component, by the other one, and not at all."""
    for j in range(len(eps)):
        z = m + sigma * eps[j]
        t = (z - m_other) * per_other
        own[j] += eps[j] * eps[j]
        other[j] += t * t
        prior[j] += z * z


@inner
def log_ratio(own, other, prior, log_odds, share):
    """Sum over samples of the log density ratio less its constant; fills in the other component's shares."""
    result = ZERO
    for j in range(len(own)):
        positive, share[j] = softplus(log_odds + HALF * (own[j] - other[j]))
        result += positive + HALF * (prior[j] - own[j])
    return result


@inner
def moments(eps, m, sigma, m_other, per_other, share):
    """Sums over samples of z, z·ε and, by share, t, t·ε, t²; t is z standardised by the other component."""
    of_z, of_z_eps, of_t, of_t_eps, of_t_t = ZERO, ZERO, ZERO, ZERO, ZERO
    for j in range(len(eps)):
        z = m + sigma * eps[j]
        t = (z - m_other) * per_other
        shared = share[j] * t
        of_z += z
        of_z_eps += z * eps[j]
        of_t += shared
        of_t_eps += shared * eps[j]
        of_t_t += shared * t
    return of_z, of_z_eps, of_t, of_t_eps, of_t_t


@inner
def cdf_mixture_kl(logit, r, n_samples, loc, scale, eps, weight, of_loc, of_scale):
    """`mixture_kl` of `fairall.models.elbo` with `KL.cdf`; arguments and result as of `mixture_kl` here.

    Quotients are kept in an array, or bounded, so that the compiler does not reorder them with the products
    that follow, which would change the rounding of earlier results.
    """
    q, per_sample = np.empty(2, F), np.empty(2, F)
    _, q[1] = softplus(logit)
    q[0] = ONE - q[1]
    value = ZERO
    for c in range(2):
        i, o = r + c, r + 1 - c
        per_sample[c] = q[c] / F(n_samples)
        each = per_sample[c]
        for k in range(len(loc)):
            m, sigma, m_other, per_other = components(loc, scale, k, i, o)
            ratio, z, z_eps, g, g_eps, g_t = cdf_moments(
                eps[i, k, :n_samples], m, sigma, m_other, per_other, q[c], q[1 - c]
            )
            value += each * ratio
            of_loc[k, i] += weight * each * (z + g)
            of_scale[k, i] += weight * each * (z_eps + g_eps)
            of_loc[k, o] -= weight * each * g
            of_scale[k, o] -= weight * each * g_t
    return value


@inner
def cdf_moments(eps, m, sigma, m_other, per_other, q, q_other):
    """Sums over samples of one coordinate: log ratio, z, z·ε, g, g·ε and g·t.

    t is z standardised by the other component, and g the derivative of the log-sum-exp in z.
    """
    ratio, of_z, of_z_eps, of_g, of_g_eps, of_g_t = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
    for j in range(len(eps)):
        z = m + sigma * eps[j]
        t = (z - m_other) * per_other
        own, _ = normal_cdf(eps[j])
        other, density = normal_cdf(t)
        positive, share = softplus(q_other * other - q * own)
        ratio += q * own + positive + HALF * z * z + HALF_LOG_2_PI
        share = ONE if share > ONE else share
        g = share * q_other * density * per_other
        of_z += z
        of_z_eps += z * eps[j]
        of_g += g
        of_g_eps += g * eps[j]
        of_g_t += g * t
    return ratio, of_z, of_z_eps, of_g, of_g_eps, of_g_t


@inner
def normal_cdf(x):
    """Φ(x) to 1e-7 (Abramowitz and Stegun 1964, 7.1.26), and the density."""
    a = abs(x) * SQRT_HALF
    t = ONE / (ONE + F(0.3275911) * a)
    series = F(1.421413741) + t * (F(-1.453152027) + t * F(1.061405429))
    series = t * (F(0.254829592) + t * (F(-0.284496736) + t * series))
    e = exp(-a * a)
    upper = HALF * series * e
    return (upper if x < ZERO else ONE - upper), PER_SQRT_2_PI * e


@compiled
def uniforms(stream, out):
    """Fill a vector with uniform numbers in (0, 1) of a stream, its key and counter, which is advanced."""
    whole = len(out) // 4 * 4
    philox(stream[0], stream[1], out[:whole])
    stream[1] += np.uint64(whole // 4)
    if whole < len(out):
        last = np.empty(4, F)
        philox(stream[0], stream[1], last)
        stream[1] += np.uint64(1)
        copy(last[: len(out) - whole], out[whole:])


@inner
def philox(key, counter, out):
    """Uniform numbers of blocks of four from `counter` on: first the first one of all blocks, and so on."""
    n = len(out) // 4
    for i in range(n):
        at = counter + np.uint64(i)
        a, b, c, d = at & LOW_BITS, at >> BITS_32, np.uint64(0), np.uint64(0)
        key_0, key_1 = key & LOW_BITS, key >> BITS_32
        for _ in range(10):
            first, second = MULTIPLY_0 * a, MULTIPLY_1 * c
            a, b = (second >> BITS_32) ^ b ^ key_0, second & LOW_BITS
            c, d = (first >> BITS_32) ^ d ^ key_1, first & LOW_BITS
            key_0, key_1 = (key_0 + INCREASE_0) & LOW_BITS, (key_1 + INCREASE_1) & LOW_BITS
        out[i] = (F(np.int32(a >> BITS_9)) + HALF) * UNIT
        out[n + i] = (F(np.int32(b >> BITS_9)) + HALF) * UNIT
        out[2 * n + i] = (F(np.int32(c >> BITS_9)) + HALF) * UNIT
        out[3 * n + i] = (F(np.int32(d >> BITS_9)) + HALF) * UNIT


@inner
def quantiles(values):
    """√2·erf⁻¹(x) in place of each x in (−1, 1) (Giles, in GPU Computing Gems 2012, single precision)."""
    for i in range(len(values)):
        x = values[i]
        w = -log((ONE - x) * (ONE + x))
        v = w - F(2.5)
        p = F(3.43273939e-07) + v * F(2.81022636e-08)
        p = F(-4.39150654e-06) + v * (F(-3.5233877e-06) + v * p)
        p = F(-0.00125372503) + v * (F(0.00021858087) + v * p)
        p = F(0.246640727) + v * (F(-0.00417768164) + v * p)
        p = F(1.50140941) + v * p
        v = np.sqrt(w) - F(3.0)
        t = F(0.000100950558) + v * F(-0.000200214257)
        t = F(-0.00367342844) + v * (F(0.00134934322) + v * t)
        t = F(-0.0076224613) + v * (F(0.00573950773) + v * t)
        t = F(1.00167406) + v * (F(0.00943887047) + v * t)
        t = F(2.83297682) + v * t
        values[i] = SQRT_2 * x * (p if w < F(5.0) else t)


@compiled
def normals(stream, out):
    """Fill a vector with standard normal numbers."""
    uniforms(stream, out)
    for i in range(len(out)):
        out[i] = TWO * out[i] - ONE
    quantiles(out)


@compiled
def stratified(stream, out):
    """Fill `out` (rows, n) with pairs ±ε, |ε| in a stratum each; see `fairall.nn.noise.Noise.samples`."""
    rows, n = out.shape
    half = (n + 1) // 2
    drawn = np.empty(2 * rows * half, F)
    uniforms(stream, drawn)
    within = drawn[: rows * half]
    for i in range(rows):
        own, place = within[i * half : (i + 1) * half], drawn[(rows + i) * half : (rows + i + 1) * half]
        for j in range(half):
            v = (F(j) + own[j]) / F(half)
            own[j] = BELOW_ONE if v > BELOW_ONE else v
        for j in range(half - 1, 0, -1):
            place[j] *= F(j + 1)
            other = min(int(place[j]), j)
            place[j] -= F(other)
            own[j], own[other] = own[other], own[j]
        for j in range(half):
            own[j] = own[j] if place[j] < HALF else -own[j]
    quantiles(within)
    for i in range(rows):
        for j in range(n):
            epsilon = within[i * half + j // 2]
            out[i, j] = epsilon if j % 2 == 0 else -epsilon


@inner
def n_parameters(sizes):
    """Number of weights and biases of a net."""
    n = 0
    for layer in range(len(sizes) - 1):
        n += (sizes[layer] + 1) * sizes[layer + 1]
    return n


@inlined
def vae_loss(
    theta, nets, layout, n_samples, given, x, who, eps, weight, utility, weight_utility, min_scale, of_theta
):
    """Log likelihood of rows, averaged over their samples; its gradients, and what KL terms need.

    Rows are of people `who`, with inputs of the encoder `given` (N, inputs), s the last, features x by kind
    as in the `layout` (N, D), and ε (rows, Z, `n_samples` or more).

    Returns log p(x | z, s) without log h(x) and, if it is modelled, log p(ũ | z, s, d = 1), each (rows,);
    then the encoder's values, location, scale and its slope, and the gradients of location and scale, to
    which those of the KL terms are to be added. The gradients of both likelihoods, times `weight` and
    `weight_utility` (rows,), are added to those of parameters, location and scale, unless `of_theta` is
    empty.
    """
    n_encoder, sizes = n_parameters(nets[0]), nets[1]
    values, loc, scale, slope = encode(theta[:n_encoder], nets[0], given, who, utility, min_scale)
    of_loc, of_scale = np.zeros(loc.shape, F), np.zeros(loc.shape, F)
    decoder = theta[n_encoder:]
    n_rows, n_latent, n_features, n_outputs = len(who), len(loc), x.shape[1], sizes[-1]
    models_utility = nets[0][0] > given.shape[1]
    n_x = n_outputs - 1 if models_utility else n_outputs
    log_x, log_utility = np.zeros(n_rows, F), np.zeros(n_rows, F)
    at_once = max(1, min(COLUMNS // n_samples, n_rows))
    most = at_once * n_samples
    units, gradient = np.empty(n_units(sizes)[0] * most, F), np.empty(n_units(sizes)[1] * most, F)
    targets, per_column = np.empty(n_features * most, F), np.empty((5, most), F)
    per_sample = ONE / F(n_samples)
    for first in range(0, n_rows, at_once):
        last = min(first + at_once, n_rows)
        people = who[first:last]
        n = len(people) * n_samples
        entered = units[: sizes[0] * n].reshape(sizes[0], n)
        sampled(entered, loc, scale, eps, first, n_samples)
        looked_up(entered[n_latent:], given, given.shape[1] - (sizes[0] - n_latent), people, n_samples)
        target = targets[: n_features * n].reshape(n_features, n)
        looked_up(target, x, START, people, n_samples)
        own, space, each = per_column[0, :n], per_column[1, :n], per_column[2, :n]
        repeated(own, weight[first:last], n_samples, per_sample)
        end = forward(decoder, sizes, units, n, ZERO, units)
        outputs = units[end : end + n_outputs * n].reshape(n_outputs, n)
        score = gradient[: n_outputs * n].reshape(n_outputs, n)
        log_prob(outputs[:n_x], target, layout, own, score[:n_x], space, each)
        add_means(each, log_x[first:last])
        if models_utility:
            u, of_u = per_column[3, :n], per_column[4, :n]
            repeated(u, utility[first:last], n_samples, ONE)
            repeated(of_u, weight_utility[first:last], n_samples, per_sample)
            each[:] = ZERO
            bernoulli(u, ONE, outputs[n_x], of_u, score[n_x], each)
            add_means(each, log_utility[first:last])
        if len(of_theta) > 0:
            of_given = backward(decoder, sizes, units, n, ZERO, gradient, of_theta[n_encoder:], YES)
            add_moments(of_given, eps, first, len(people), n_samples, of_loc, of_scale)
    return log_x, log_utility, values, loc, scale, slope, of_loc, of_scale


@compiled
def model_epoch(vectors, steps, rate, streams, order, people, losses, noise, layout, nets, objective, bounds):
    """One epoch of VAEs, and in Phase II of classifiers, of a few replicates, one after the other.

    So the values of one stay in the cache. `vectors` are the parameters of encoder, decoder and classifier,
    and Adam's moments, each (E, n), which are updated after `steps` updates before, but not at a rate of 0.
    People come in `order` (E, N), in minibatches between `bounds` (B + 1,). `people` are the inputs of the
    nets (E, N, inputs), s the last, features by kind as in the `layout` (E, N, D), and, all (E, N), log h(x),
    d, ỹ, the weights of the labelled in the risk and in their ELBO, and the number of the frame; or the same
    once for all replicates. `nets` are the sizes of the layers, `objective` are the values of an `Objective`.
    ε is `noise` (E, N, Z, L) in the order of people, or drawn if that has no rows. Losses go to `losses`
    (E, B).
    """
    theta, mean, square = vectors
    of_theta, o = np.empty(theta.shape[1] if rate > 0.0 else 0, F), Objective(*objective)
    for e in range(len(theta)):
        own = of_replicate(people, e)
        for batch in range(len(bounds) - 1):
            some = slice(bounds[batch], bounds[batch + 1])
            of_theta[:] = ZERO
            losses[e, batch] = model_loss(
                theta[e], streams[e], order[e, some], own, layout, nets, o, noise[e, some], of_theta
            )
            if rate > 0.0:
                adam(theta[e], mean[e], square[e], of_theta, steps + batch + 1, rate)


@inlined
def of_replicate(people, e):
    """The people of one replicate, of tables with a row for each or one for all."""
    given, x, log_base, accepted, label, risk_weight, elbo_weight, frame = people
    e = min(e, len(x) - 1)
    return given[e], x[e], log_base[e], accepted[e], label[e], risk_weight[e], elbo_weight[e], frame[e]


@inner
def divided(accepted, rows):
    """Places in `rows` of people that are accepted, and of the others."""
    places, n_known = np.empty((2, len(rows)), np.int64), 0
    for i in range(len(rows)):
        if accepted[rows[i]]:
            places[0, n_known] = i
            n_known += 1
        else:
            places[1, i - n_known] = i
    return places[0, :n_known], places[1, : len(rows) - n_known]


@inlined
def model_loss(theta, stream, rows, people, layout, nets, o, noise, of_theta):
    """−K (eq. 6), J (eq. 2), or the loss of FairLab (eq. 20), of a minibatch of people `rows`.

    Adds its gradient, unless `of_theta` is empty.
    """
    encoder, decoder, classifier = nets
    given, x, log_base, accepted, label, risk_weight, elbo_weight, _ = people
    n_encoder, n_vae = n_parameters(encoder), n_parameters(encoder) + n_parameters(decoder)
    n, n_latent, loss = len(rows), encoder[-1] // 2, ZERO
    known, unknown = divided(accepted, rows)
    per_known, per_unknown = ONE / F(max(len(known), 1)), ONE / F(max(len(unknown), 1))

    logit, of_logit, classified = np.zeros(n, F), np.zeros(n, F), np.empty(n_units(classifier)[0] * n, F)
    if o.trains_classifier:
        copy(classify(theta[n_vae:], classifier, given, rows, o.dropout, stream, classified), logit)
        for j in range(len(known)):
            i = known[j]
            w = o.alpha * per_known * risk_weight[rows[i]]
            value, of_value = risk(logit[i], label[rows[i]], o.cost)
            loss += w * value
            of_logit[i] = w * of_value

    # Rows of the VAE: the labelled, and the unlabelled with ũ = 0 and with ũ = 1.
    n_known = len(known)
    n_rows = n_known + (2 * len(unknown) if o.unlabelled else 0)
    who = np.empty(n_rows, np.int64)
    utility, weight, weight_utility = np.empty(n_rows, F), np.empty(n_rows, F), np.zeros(n_rows, F)
    for r in range(n_known):
        who[r] = rows[known[r]]
        utility[r], weight[r] = label[who[r]], -per_known * elbo_weight[who[r]]
        weight_utility[r] = weight[r]
    for r in range(n_known, n_rows):
        i, imputed = unknown[(r - n_known) // 2], F((r - n_known) % 2)
        _, q = softplus(logit[i])
        who[r], utility[r] = rows[i], imputed
        weight[r] = -per_unknown * (q if imputed > ZERO else ONE - q)
    if n_rows > 0:
        eps = noise
        if len(noise) == 0:
            eps = np.empty((n_rows, n_latent, max(o.n_elbo, o.n_kl)), F)
            samples(stream, o.stratified, eps[:n_known])
            samples(stream, o.stratified, eps[n_known:])
        log_x, log_utility, values, loc, scale, slope, of_loc, of_scale = vae_loss(
            theta[:n_vae],
            nets[:2],
            layout,
            o.n_elbo,
            given,
            x,
            who,
            eps,
            weight,
            utility,
            weight_utility,
            o.min_scale,
            of_theta[:n_vae],
        )
        for r in range(n_rows):
            loss += weight[r] * (log_x[r] + log_base[who[r]]) + weight_utility[r] * log_utility[r]
        of_kl = np.empty(n_known, F)
        repeated(of_kl, weight[:n_known], ONCE, -o.beta)
        for k in range(n_latent):
            loss += gaussian_kl(loc[k, :n_known], scale[k, :n_known], of_kl, of_loc[k], of_scale[k])
        for r in range(n_known, n_rows, 2):
            i, w = unknown[(r - n_known) // 2], o.beta * per_unknown
            if o.density:
                kl = mixture_kl(logit[i], r, o.n_kl, loc, scale, eps, w, of_loc, of_scale)
            else:
                kl = cdf_mixture_kl(logit[i], r, o.n_kl, loc, scale, eps, w, of_loc, of_scale)
            loss += w * kl
        if len(of_theta) > 0:
            through_encoder(theta[:n_encoder], encoder, values, slope, of_loc, of_scale, of_theta[:n_encoder])
    if o.trains_classifier:
        gradient = np.empty(n_units(classifier)[1] * n, F)
        copy(of_logit, gradient)
        backward(theta[n_vae:], classifier, classified, n, o.dropout, gradient, of_theta[n_vae:], NO)
    return loss


@inner
def risk(logit, y, cost):
    """`cost_sensitive_cross_entropy` of `fairall.models.objectives`, and its derivative in the logit."""
    positive, q = softplus(logit)
    value = cost * (ONE - y) * positive + (ONE - cost) * y * (positive - logit)
    return value, cost * (ONE - y) * q - (ONE - cost) * y * (ONE - q)


@inlined
def classify(theta, sizes, given, rows, dropout, stream, values):
    """Output of a net with one for people `rows`, whose inputs and units are left in `values`."""
    n = len(rows)
    entered = values[: sizes[0] * n].reshape(sizes[0], n)
    looked_up(entered, given, START, rows, ONCE)
    end = forward(theta, sizes, values, n, dropout, masks_of(stream, sizes, n, dropout))
    return values[end : end + n]


@inlined
def masks_of(stream, sizes, n, dropout):
    """Uniform numbers for the dropout of n people's hidden units, drawn by layers; none without dropout."""
    hidden = n_units(sizes[1:-1])[0] if dropout > ZERO else 0
    masks, start = np.empty(hidden * n, F), 0
    for layer in range(1, len(sizes) - 1):
        end = min(start + sizes[layer] * n, len(masks))
        uniforms(stream, masks[start:end])
        start = end
    return masks


@inner
def samples(stream, stratify, out):
    """Fill `out` (rows, Z, n) with normal numbers."""
    rows, n_latent, n = out.shape
    if stratify:
        stratified(stream, out.reshape(rows * n_latent, n))
    else:
        normals(stream, out.ravel())


@compiled
def policy_epoch(vectors, steps, rate, streams, order, people, model, frames, nets, sizes, objective, bounds):
    """One epoch of policy nets π^Z of a few replicates, `LatentLearner.policy_loss`; see also `model_epoch`.

    `vectors` are those of nets with layers of these `sizes`, `model` are the parameters of encoder, decoder
    and classifier, and `frames` are those of the VAE, (E, F, Z, Z).
    """
    theta, mean, square = vectors
    of_theta, o = np.empty(theta.shape[1], F), Objective(*objective)
    for e in range(len(theta)):
        own = of_replicate(people, e)
        for batch in range(len(bounds) - 1):
            rows = order[e, bounds[batch] : bounds[batch + 1]]
            of_theta[:] = ZERO
            policy_loss(theta[e], streams[e], rows, own, model[e], frames[e], nets, sizes, o, of_theta)
            adam(theta[e], mean[e], square[e], of_theta, steps + batch + 1, rate)


@inlined
def policy_loss(theta, stream, rows, people, model, frames, nets, sizes, o, of_theta):
    """Add the gradient of the loss of π^Z on a minibatch of people `rows`."""
    (encoder, decoder, classifier), (given, _, _, accepted, label, risk_weight, _, number) = nets, people
    n_encoder, n_vae = n_parameters(encoder), n_parameters(encoder) + n_parameters(decoder)
    n, n_latent = len(rows), encoder[-1] // 2
    s = given.shape[1] - (decoder[0] - n_latent)
    values = np.empty(max(n_units(classifier)[0], n_units(decoder)[0]) * n, F)
    logit, utility = np.empty(n, F), np.empty(n, F)
    copy(classify(model[n_vae:], classifier, given, rows, ZERO, stream, values), logit)
    uniforms(stream, utility)
    for i in range(n):
        _, q = softplus(logit[i])
        utility[i] = label[rows[i]] if accepted[rows[i]] else F(utility[i] < q)
    _, loc, scale, _ = encode(model[:n_encoder], encoder, given, rows, utility, o.min_scale)
    eps = np.empty((n, n_latent, 1), F)
    normals(stream, eps.ravel())
    inputs = values[: decoder[0] * n].reshape(decoder[0], n)
    sampled(inputs, loc, scale, eps, START, ONCE)
    looked_up(inputs[n_latent:], given, s, rows, ONCE)
    of_policy, turned = np.empty(n_units(sizes)[0] * n, F), np.empty((n_latent, n), F)
    z = of_policy[: n_latent * n].reshape(n_latent, n)
    copy(values[: n_latent * n], of_policy)
    for f in range(len(frames)):
        np.dot(frames[f].T, inputs[:n_latent], turned)
        for k in range(n_latent):
            for i in range(n):
                if number[rows[i]] == f:
                    z[k, i] = turned[k, i]

    target, weight = np.empty(n, F), np.full(n, ONE / F(n))
    if o.learns_labels:
        per_known = ONE / F(max(len(divided(accepted, rows)[0]), 1))
        for i in range(n):
            target[i] = label[rows[i]]
            weight[i] = per_known * risk_weight[rows[i]] if accepted[rows[i]] else ZERO
    else:
        if o.from_decoder:
            end = forward(model[n_encoder:n_vae], decoder, values, n, ZERO, values)
            logit = values[end + (decoder[-1] - 1) * n : end + decoder[-1] * n]
        else:
            shift(logit, F(np.log(o.cost / (ONE - o.cost))))
        for i in range(n):
            _, p = softplus(logit[i])
            target[i] = F(p >= o.cost)

    end = forward(theta, sizes, of_policy, n, o.dropout, masks_of(stream, sizes, n, o.dropout))
    gradient = np.empty(n_units(sizes)[1] * n, F)
    for i in range(n):
        _, slope = risk(of_policy[end + i], target[i], o.cost)
        gradient[i] = weight[i] * slope
    backward(theta, sizes, of_policy, n, o.dropout, gradient, of_theta, NO)
