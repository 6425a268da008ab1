"""Compiled functions: nets, likelihoods and Adam of a few replicates, one after the other, in float32.

The formulas are those of `likelihoods` and `adam` in `fairall.nn` and of `elbo` in `fairall.models`, which
the tests compare them with. A net is one vector, `theta`, of weight (in, out) and bias (out) of its layers in
turn; values of its units have people in columns, shape (units, n), and those of all layers lie one after the
other in one buffer.

All compiled functions are in this one file, since numba renews its cache of a function when the function's
own file has changed, but not when that of a function it calls has. Loops over people stand in small
functions, write to few arrays and load nothing conditionally: only then do they use vector registers.
`a if x < a else x` keeps NaN, which max() and min() would lose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 - what np.dot calls; loaded before its threads are limited

# Sums may be reordered, which lets loops over people use vector registers. NaN and infinity keep their
# meaning: they tell that a seed has diverged.
ARITHMETIC = {"reassoc", "nsz", "arcp", "contract"}
F = np.float32
ZERO, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)
OVER_3, OVER_4, OVER_5, OVER_6, OVER_7 = F(1 / 3), F(1 / 4), F(1 / 5), F(1 / 6), F(1 / 7)
OVER_9, OVER_11, OVER_13 = F(1 / 9), F(1 / 11), F(1 / 13)
LOG2_E = F(1.4426950408889634)
LN_2_HIGH, LN_2_LOW = F(0.693359375), F(-2.1219444e-4)  # their sum is log 2; the first has few digits
LEAST_EXPONENT = F(-87.0)  # e^x is a normal number above it
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # of Adam


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call, or load from the cache beside this file or of the user."""
    options = {"nogil": True, "fastmath": ARITHMETIC, "error_model": "numpy"}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # neither place can be written to
        return numba.njit(function, **options)


@compiled
def exp(x):
    """e^x for x ≤ 88, by its series after the division of x by log 2."""
    x = LEAST_EXPONENT if x < LEAST_EXPONENT else x
    n = np.floor(x * LOG2_E + HALF)
    r = (x - n * LN_2_HIGH) - n * LN_2_LOW
    series = ONE + r * OVER_6 * (ONE + r * OVER_7)
    series = ONE + r * OVER_3 * (ONE + r * OVER_4 * (ONE + r * OVER_5 * series))
    series = ONE + r * (ONE + r * HALF * series)
    return series * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled
def two_artanh(s):
    """2·artanh(s) = log((1 + s)/(1 − s)) for |s| ≤ 1/3, by its series."""
    square = s * s
    series = OVER_9 + square * (OVER_11 + square * OVER_13)
    series = ONE + square * (OVER_3 + square * (OVER_5 + square * (OVER_7 + square * series)))
    return TWO * s * series


@compiled
def log(x):
    """Natural logarithm of a normal positive number."""
    bits = np.float32(x).view(np.int32)
    # The mantissa between √½ and √2, and the exponent that belongs to it.
    shifted = bits - np.int32(0x3F3504F3)
    exponent = F(shifted >> np.int32(23))
    mantissa = np.int32((shifted & np.int32(0x7FFFFF)) + np.int32(0x3F3504F3)).view(np.float32)
    return two_artanh((mantissa - ONE) / (mantissa + ONE)) + exponent * LN_2_LOW + exponent * LN_2_HIGH


@compiled
def softplus(x):
    """log(1 + e^x), and its derivative, the logistic function."""
    u = exp(-abs(x))
    slope = (u if x < ZERO else ONE) / (ONE + u)
    return (ZERO if x < ZERO else x) + two_artanh(u / (TWO + u)), slope


@compiled
def relu(values, bias):
    """Add the bias of a unit and apply the ReLU."""
    for i in range(len(values)):
        v = values[i] + bias
        values[i] = ZERO if v < ZERO else v


@compiled
def add(values, bias):
    """Add the bias of a unit."""
    for i in range(len(values)):
        values[i] += bias


@compiled
def add_all(into, values):
    """Add one array to another."""
    for i in range(len(into)):
        into[i] += values[i]


@compiled
def total(values):
    """Sum."""
    result = ZERO
    for i in range(len(values)):
        result += values[i]
    return result


@compiled
def forward(theta, sizes, values, n):
    """Fill `values` behind the input, which is there; returns the offset of the output."""
    weights, units = 0, 0
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
                add(y[j], theta[weights + j])
        weights += n_out
    return units


@compiled
def apply(theta, sizes, x, out, columns):
    """Outputs of nets for x (E, in, n), `columns` at once, to out (E, out, n)."""
    columns = max(1, min(columns, x.shape[2]))
    values = np.empty(sizes.sum() * columns, F)
    for e in range(len(theta)):
        for first in range(0, x.shape[2], columns):
            n = min(columns, x.shape[2] - first)
            values[: sizes[0] * n].reshape(sizes[0], n)[:] = x[e, :, first : first + n]
            end = forward(theta[e], sizes, values, n)
            out[e, :, first : first + n] = values[end : end + sizes[-1] * n].reshape(sizes[-1], n)


@compiled
def average(theta, sizes, loc, scale, noise, out, columns):
    """Average over samples z = loc + scale·ε of the logistic function of a net's only output.

    Parameters `theta` (E, n) of nets with layers of these sizes; locations and scales (E, B, M, Z) of M
    distributions of each person; ε (E, B, Z, L), or (E, 1, Z, L) for the same of all people. The averages go
    to `out` (E, B, M), `columns` samples at once, if there is room for one person's.
    """
    n_people, n_branches, n_latent = loc.shape[1:]
    n_noises, n_samples = noise.shape[1], noise.shape[3]
    of_person = n_branches * n_samples
    at_once = max(1, min(n_people, columns // of_person))
    values = np.empty(sizes.sum() * at_once * of_person, F)
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
            end = forward(theta[e], sizes, values, n * of_person)
            logit = values[end : end + n * of_person]
            for j in range(n * of_person):
                _, logit[j] = softplus(logit[j])
            for i in range(n):
                for branch in range(n_branches):
                    start = (i * n_branches + branch) * n_samples
                    out[e, first + i, branch] = total(logit[start : start + n_samples]) / F(n_samples)


@compiled
def through_relu(gradient, hidden):
    """Set the gradient of units that are not active to zero."""
    for i in range(len(gradient)):
        g = gradient[i]
        gradient[i] = g if hidden[i] > ZERO else ZERO


@compiled
def backward(theta, sizes, values, n, gradient, spare, of_theta, of_input):
    """Gradient of the net's parameters, and of its input if `of_input`.

    `gradient` has that of the output; it and `spare` are used in turn, and returned with the gradient of the
    input in the first.
    """
    weights, units = len(theta), 0
    for size in sizes[:-1]:
        units += size * n
    for layer in range(len(sizes) - 2, -1, -1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        weights -= (n_in + 1) * n_out
        units -= n_in * n
        biases = weights + n_in * n_out
        x = values[units : units + n_in * n].reshape(n_in, n)
        g = gradient[: n_out * n].reshape(n_out, n)
        np.dot(x, g.T, of_theta[weights:biases].reshape(n_in, n_out))
        for j in range(n_out):
            of_theta[biases + j] = total(g[j])
        if layer > 0 or of_input:
            into = spare[: n_in * n]
            np.dot(theta[weights:biases].reshape(n_in, n_out), g, into.reshape(n_in, n))
            if layer > 0:
                through_relu(into, values[units : units + n_in * n])
            gradient, spare = spare, gradient
    return gradient, spare


@compiled
def log_prob(outputs, target, layout, weight, score, space, each):
    """Sum over features of log p(x | z, s) without log h(x) to `each`; weight times its gradient to `score`.

    Outputs of the decoder and `score` have shape (P, n), `target`, the features by kind as in the `Layout`,
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


@compiled
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


@compiled
def poisson(x, raw, weight, of_raw, rate, each, least):
    """One feature of `log_prob`, a count: the output is as in `fairall.nn.likelihoods.Poisson`."""
    for i in range(len(x)):
        positive, of_raw[i] = softplus(raw[i])
        rate[i] = positive + least
    for i in range(len(x)):
        each[i] += x[i] * log(rate[i]) - rate[i]
    for i in range(len(x)):
        of_raw[i] *= weight[i] * (x[i] / rate[i] - ONE)


@compiled
def bernoulli(x, second, logit, weight, score, each):
    """One feature of `log_prob`, binary; `second` is the code of its second value."""
    for i in range(len(x)):
        positive, score[i] = softplus(logit[i])
        each[i] += F(x[i] == second) * logit[i] - positive
    for i in range(len(x)):
        score[i] = weight[i] * (F(x[i] == second) - score[i])


@compiled
def odds(x, code, logit, score, total_odds, each, most):
    """Of one code of a categorical feature: e^logit to `score`, and the logit to `each` of people with it."""
    for i in range(len(x)):
        bounded = -most if logit[i] < -most else (most if logit[i] > most else logit[i])
        score[i] = exp(bounded)
    for i in range(len(x)):
        total_odds[i] += score[i]
    for i in range(len(x)):
        bounded = -most if logit[i] < -most else (most if logit[i] > most else logit[i])
        each[i] += F(x[i] == code) * bounded


@compiled
def normalise(total_odds, each):
    """Subtract the logarithm of the sum of odds, and take its reciprocal."""
    for i in range(len(each)):
        each[i] -= log(total_odds[i])
    for i in range(len(each)):
        total_odds[i] = ONE / total_odds[i]


@compiled
def residual(x, code, weight, score, per_odds):
    """Weight times 1 or 0 less the probability of a code."""
    for i in range(len(x)):
        score[i] = weight[i] * (F(x[i] == code) - score[i] * per_odds[i])


@compiled
def adam(theta, mean, square, gradient, step, learning_rate):
    """Update number `step`, from 1, of Adam."""
    size = F(learning_rate / (1.0 - BETA_1**step))
    unbias = F(1.0 / np.sqrt(1.0 - BETA_2**step))
    for i in range(len(theta)):
        g = gradient[i]
        mean[i] = F(BETA_1) * mean[i] + F(1.0 - BETA_1) * g
        square[i] = F(BETA_2) * square[i] + F(1.0 - BETA_2) * g * g
        theta[i] -= size * mean[i] / (np.sqrt(square[i]) * unbias + F(EPSILON))


@compiled
def epochs(
    theta, mean, square, step, order, noise, given, x, log_base, layout, encoder, decoder, at_once,
    batch_size, learning_rate, beta, min_scale, losses,
):  # fmt: skip
    """One epoch of Phase I of a few replicates, one after the other, so that one's values stay in the cache.

    Parameters `theta` of encoder and decoder, and Adam's moments `mean` and `square`, shapes (E, n), are
    updated after `step` updates before. People come in `order` (E, N) with noise ε (E, N, Z, L): `given`
    (N, inputs) are inputs of the encoder, s the last, x (N, D) features by kind as in the `Layout`, and
    `log_base` (N,) is log h(x). `encoder` and `decoder` are the sizes of their layers; `at_once` people of a
    minibatch are computed at once. The loss averaged over the epoch goes to `losses` (E,).
    """
    n_people, n_latent, n_samples = noise.shape[1:]
    columns = at_once * n_samples
    widest = max(encoder.max() * at_once, decoder.max() * columns)
    inner = np.empty(encoder.sum() * at_once, F), np.empty(decoder.sum() * columns, F)
    buffers = np.empty(widest, F), np.empty(widest, F)
    slopes = np.empty(n_latent * at_once, F)
    target = np.empty(x.shape[1] * columns, F)
    per_column = np.empty((3, columns), F)
    of_theta, part = np.empty(theta.shape[1], F), np.empty(theta.shape[1], F)
    for e in range(len(theta)):
        loss = 0.0
        for first in range(0, n_people, batch_size):
            end = min(first + batch_size, n_people)
            share = ONE / F(end - first)
            for start in range(first, end, at_once):
                stop = min(start + at_once, end)
                loss += (end - first) * loss_and_gradient(
                    theta[e], order[e, start:stop], noise[e, start:stop], share, given, x, log_base, layout,
                    encoder, decoder, beta, min_scale, inner, buffers, slopes, target, per_column,
                    of_theta if start == first else part,
                )  # fmt: skip
                if start > first:
                    add_all(of_theta, part)
            update = step + first // batch_size + 1
            adam(theta[e], mean[e], square[e], of_theta, update, learning_rate)
        losses[e] = loss / n_people


@compiled
def loss_and_gradient(
    theta, rows, noise, share, given, x, log_base, layout, encoder, decoder, beta, min_scale, inner, buffers,
    slopes, target, per_column, of_theta,
):  # fmt: skip
    """Loss of Phase I, summed over people with weight `share`, and its gradient, −K.

    `inner`, `buffers`, `slopes`, `target` and `per_column` are working space.
    """
    n, n_latent, n_samples = noise.shape
    m = n * n_samples
    n_encoder = 0
    for layer in range(len(encoder) - 1):
        n_encoder += (encoder[layer] + 1) * encoder[layer + 1]
    into_encoder, into_decoder = inner
    weight, space, each = per_column[0, :m], per_column[1, :m], per_column[2, :m]
    weight[:] = -share / F(n_samples)
    n_inputs = given.shape[1]
    entered = into_encoder[: n_inputs * n].reshape(n_inputs, n)
    latent = into_decoder[: (n_latent + 1) * m].reshape(n_latent + 1, m)
    features = target[: x.shape[1] * m].reshape(x.shape[1], m)
    loss = ZERO
    for i in range(n):
        row = rows[i]
        loss -= share * log_base[row]
        for k in range(n_inputs):
            entered[k, i] = given[row, k]
        for j in range(i * n_samples, (i + 1) * n_samples):
            latent[n_latent, j] = given[row, n_inputs - 1]
            for k in range(x.shape[1]):
                features[k, j] = x[row, k]

    end = forward(theta[:n_encoder], encoder, into_encoder, n)
    encoded = into_encoder[end : end + 2 * n_latent * n].reshape(2 * n_latent, n)
    slope = slopes[: n_latent * n].reshape(n_latent, n)
    for k in range(n_latent):
        loss += beta * share * gaussian_kl(encoded[k], encoded[n_latent + k], slope[k], min_scale)
        for i in range(n):
            for j in range(n_samples):
                z = encoded[k, i] + encoded[n_latent + k, i] * noise[i, k, j]
                latent[k, i * n_samples + j] = z

    n_outputs = decoder[-1]
    end = forward(theta[n_encoder:], decoder, into_decoder, m)
    outputs = into_decoder[end : end + n_outputs * m].reshape(n_outputs, m)
    gradient, spare = buffers
    score = gradient[: n_outputs * m].reshape(n_outputs, m)
    log_prob(outputs, features, layout, weight, score, space, each)
    for j in range(m):
        loss += weight[j] * each[j]

    gradient, spare = backward(
        theta[n_encoder:], decoder, into_decoder, m, gradient, spare, of_theta[n_encoder:], True
    )
    of_latent = gradient[: (n_latent + 1) * m].reshape(n_latent + 1, m)
    of_encoded = spare[: 2 * n_latent * n].reshape(2 * n_latent, n)
    for k in range(n_latent):
        loc, scale = encoded[k], encoded[n_latent + k]
        for i in range(n):
            of_loc, of_scale = ZERO, ZERO
            for j in range(n_samples):
                of_z = of_latent[k, i * n_samples + j]
                of_loc += of_z
                of_scale += of_z * noise[i, k, j]
            of_encoded[k, i] = of_loc + beta * share * loc[i]
            of_scale += beta * share * (scale[i] - ONE / scale[i])
            of_encoded[n_latent + k, i] = of_scale * slope[k, i]
    backward(theta[:n_encoder], encoder, into_encoder, n, spare, gradient, of_theta[:n_encoder], False)
    return loss


@compiled
def gaussian_kl(loc, scale, slope, min_scale):
    """KL to N(0, 1), summed over people; `scale` has the argument of the softplus, and gets the scale.

    The derivative of the scale in it goes to `slope`.
    """
    for i in range(len(loc)):
        positive, slope[i] = softplus(scale[i])
        scale[i] = positive + min_scale
    kl = ZERO
    for i in range(len(loc)):
        kl += HALF * (loc[i] * loc[i] + scale[i] * scale[i] - ONE) - log(scale[i])
    return kl


@compiled
def decode(
    theta, of_theta, sizes, layout, given, of_given, x, weight, utility, decision, value,
    n_samples, columns, learning,
):  # fmt: skip
    """Log likelihood of people and its gradients; see `fairall.nn.native.functions.log_likelihood`.

    Parameters `theta` (E, n) of a decoder with layers of these sizes; its inputs `given` (E, Z + 1, B·L), of
    which `columns` are computed at once; features x (E, B, D) by kind as in the `Layout`; ũ and d (E, B), or
    (E, 0) where ũ is not modelled. log p(x | z, s) + d·log p(ũ | z, s, d = 1) without log h(x), averaged over
    samples, goes to `value` (E, B), and where `learning` its gradients, in which people have weights (E, B),
    to `of_theta` and `of_given`.
    """
    n_inputs, n_outputs = sizes[0], sizes[-1]
    n_features = x.shape[2]
    models_utility = utility.shape[1] > 0
    n_x = n_outputs - 1 if models_utility else n_outputs
    columns = max(1, min(columns, given.shape[2]))
    values = np.empty(sizes.sum() * columns, F)
    widest = sizes.max() * columns
    gradient, spare = np.empty(widest, F), np.empty(widest, F)
    part = np.empty(theta.shape[1], F)
    target = np.empty(n_features * columns, F)
    per_column = np.empty((6, columns), F)
    second = ONE
    of_theta[:] = ZERO
    value[:] = ZERO
    per_sample = ONE / F(n_samples)
    for e in range(len(theta)):
        for first in range(0, given.shape[2], columns):
            n = min(columns, given.shape[2] - first)
            own, space, each = per_column[0, :n], per_column[1, :n], per_column[2, :n]
            u, of_u, each_u = per_column[3, :n], per_column[4, :n], per_column[5, :n]
            features = target[: n_features * n].reshape(n_features, n)
            i = 0
            while i < n:
                person = (first + i) // n_samples
                end = min(n, (person + 1) * n_samples - first)
                own[i:end] = weight[e, person] * per_sample
                for k in range(n_features):
                    features[k, i:end] = x[e, person, k]
                if models_utility:
                    of_u[i:end] = decision[e, person] * weight[e, person] * per_sample
                    u[i:end] = utility[e, person]
                i = end
            values[: n_inputs * n].reshape(n_inputs, n)[:] = given[e, :, first : first + n]
            end = forward(theta[e], sizes, values, n)
            outputs = values[end : end + n_outputs * n].reshape(n_outputs, n)
            score = gradient[: n_outputs * n].reshape(n_outputs, n)
            log_prob(outputs[:n_x], features, layout, own, score[:n_x], space, each)
            each_u[:] = ZERO
            if models_utility:
                bernoulli(u, second, outputs[n_x], of_u, score[n_x], each_u)
            i = 0
            while i < n:
                person = (first + i) // n_samples
                end = min(n, (person + 1) * n_samples - first)
                value[e, person] += total(each[i:end]) * per_sample
                if models_utility:
                    value[e, person] += decision[e, person] * total(each_u[i:end]) * per_sample
                i = end
            if learning:
                of_input, _ = backward(theta[e], sizes, values, n, gradient, spare, part, True)
                of_given[e, :, first : first + n] = of_input[: n_inputs * n].reshape(n_inputs, n)
                add_all(of_theta[e], part)


@compiled
def mixture_kl(logit, loc, scale, noise, value, of_logit, of_loc, of_scale):
    """KL of mixtures of two Gaussians to N(0, I) and its gradients, as `mixture_kl` of `fairall.models.elbo`.

    With the densities p₀ and p₁ of the components times their weights w, a sample of component c adds
    log p_c + softplus(log p_o − log p_c) − log N(0, I), o the other component.

    The logit (E, B) is that of the second component's weight; locations and scales (E, B, 2, Z) and ε of
    samples (E, B, 2, Z, K) are of both. The KL goes to `value` (E, B), its gradients to the last three.
    """
    n_people, n_latent, n_samples = noise.shape[1], noise.shape[3], noise.shape[4]
    per_sample = np.empty((4, n_samples), F)
    own, other, prior, share = per_sample[0], per_sample[1], per_sample[2], per_sample[3]
    weight, log_scaled, of_log_weight = np.empty(2, F), np.empty(2, F), np.empty(2, F)
    of_loc[:], of_scale[:] = ZERO, ZERO
    for e in range(len(logit)):
        for i in range(n_people):
            positive, weight[1] = softplus(logit[e, i])
            weight[0] = ONE - weight[1]
            log_scaled[0], log_scaled[1] = -positive, logit[e, i] - positive
            for c in range(2):
                for k in range(n_latent):
                    log_scaled[c] -= log(scale[e, i, c, k])
            of_log_weight[:] = ZERO
            kl = ZERO
            for c in range(2):
                o = 1 - c
                each = weight[c] / F(n_samples)
                per_sample[:] = ZERO
                for k in range(n_latent):
                    m, sigma = loc[e, i, c, k], scale[e, i, c, k]
                    m_other, per_other = loc[e, i, o, k], ONE / scale[e, i, o, k]
                    add_squares(noise[e, i, c, k], m, sigma, m_other, per_other, own, other, prior)
                ratio = log_ratio(own, other, prior, log_scaled[o] - log_scaled[c], share)
                term = each * ratio + weight[c] * log_scaled[c]
                of_other = each * total(share)
                kl += term
                of_log_weight[c] += term + weight[c] - of_other
                of_log_weight[o] += of_other
                for k in range(n_latent):
                    m, sigma = loc[e, i, c, k], scale[e, i, c, k]
                    m_other, per_other = loc[e, i, o, k], ONE / scale[e, i, o, k]
                    z, z_eps, t, t_eps, t_t = moments(noise[e, i, c, k], m, sigma, m_other, per_other, share)
                    of_loc[e, i, c, k] += each * (z - t * per_other)
                    of_loc[e, i, o, k] += each * t * per_other
                    of_scale[e, i, c, k] += (
                        each * (z_eps - t_eps * per_other) - (weight[c] - of_other) / sigma
                    )
                    of_scale[e, i, o, k] += (each * t_t - of_other) * per_other
            value[e, i] = kl
            of_logit[e, i] = weight[0] * of_log_weight[1] - weight[1] * of_log_weight[0]


@compiled
def add_squares(eps, m, sigma, m_other, per_other, own, other, prior):
    """Add squares of one coordinate, standardised by its own component, by the other one, and not at all."""
    for j in range(len(eps)):
        z = m + sigma * eps[j]
        t = (z - m_other) * per_other
        own[j] += eps[j] * eps[j]
        other[j] += t * t
        prior[j] += z * z


@compiled
def log_ratio(own, other, prior, log_odds, share):
    """Sum over samples of the log density ratio less its constant; fills in the other component's shares."""
    result = ZERO
    for j in range(len(own)):
        positive, share[j] = softplus(log_odds + HALF * (own[j] - other[j]))
        result += positive + HALF * (prior[j] - own[j])
    return result


@compiled
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
