"""Pure maths of Gumbel sampling: stateless, no nodes, no policy.

Randomness comes from a counter-based hash of (instance seed, stream, position), so that the noise of an instance does
not depend on what else is in the batch. All functions are composed of operations whose result for one element does not
depend on its place in a tensor (`torch.logaddexp` is avoided for that reason: its vectorised and scalar loops differ
in the last bit).
"""

from __future__ import annotations

from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.hashing import mix, shift_right
from gumbeldore.problem import precise

_GAMMA = -0x61C8864680B583EB  # 0x9E3779B97F4A7C15 as a signed 64-bit integer: the golden ratio

NEGLIGIBLE = -700.0
"""Where exponents are cut off: processors take several times longer for the exponential of -inf, or for one that underflows."""


@lru_cache(maxsize=64)
def counting(count: int, device: torch.device, step: int = 1) -> Int[Tensor, " count"]:
    """0, `step`, 2 `step`, ...: the same tensor for the same numbers, so never write to it."""
    return torch.arange(0, count * step, step, device=device)


def _wrap(number: int) -> int:
    """The signed 64-bit integer that overflow would leave."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def substreams(seeds: Int[Tensor, " batch"], stream: tuple[int, ...]) -> Int[Tensor, " batch"]:
    """Seeds of a stream within the streams of other seeds: `(a, b)` is `(b,)` within `(a,)`."""
    for number in stream:
        seeds = mix(seeds + _wrap((number + 1) * _GAMMA))
    return seeds


def exponentials(
    seeds: Int[Tensor, " batch"], stream: tuple[int, ...], shape: tuple[int, ...]
) -> Float[Tensor, "batch *shape"]:
    """Independent standard exponentials for each seed; equal seeds and streams give equal numbers."""
    counters = torch.arange(1, torch.Size(shape).numel() + 1, device=seeds.device).mul_(_GAMMA)
    bits = shift_right(mix(substreams(seeds, stream)[:, None] + counters), 12)  # 52 random bits
    uniform = bits.to(precise(seeds.device)).add_(0.5).mul_(2.0**-52)  # with the added half, never 0 nor 1 ...
    if uniform.dtype == torch.float32:
        uniform.clamp_(max=1 - 2.0**-24)  # ... unless it is rounded
    return uniform.log_().neg_().view(-1, *shape)


def gumbels_by_depth(
    seeds: Int[Tensor, " batch"], depths: range, shape: tuple[int, ...]
) -> Float[Tensor, "depth batch *shape"]:
    """The Gumbels of the streams `(depth,)`, for many depths at once."""
    numbers = torch.arange(depths.start + 1, depths.stop + 1, device=seeds.device).mul_(_GAMMA)
    return gumbels(mix(numbers[:, None] + seeds).flatten(), (), shape).view(len(depths), len(seeds), *shape)


def gumbels(seeds: Int[Tensor, " batch"], stream: tuple[int, ...], shape: tuple[int, ...]) -> Float[Tensor, "batch *shape"]:
    """Independent standard Gumbels for each seed."""
    return exponentials(seeds, stream, shape).log_().neg_()


def bounded(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """-inf as the lowest finite number, so that differences of infinities do not arise."""
    return x.clamp(min=torch.finfo(x.dtype).min)


def log1mexp(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """log(1 - exp(x)) for x <= 0, accurate at both ends (Maechler 2012)."""
    near = x.clamp(min=-1).expm1_().neg_().log_()
    return torch.where(x > -0.6931472, near, x.exp().neg_().log1p_())


def log_add_exp(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """log(exp(a) + exp(b)), bit-identical wherever the elements stand; -inf is the neutral element."""
    high = torch.maximum(a, b)
    return high + (torch.minimum(a, b) - bounded(high)).exp_().log1p_()


def gumbels_with_maximum(
    location: Float[Tensor, "*rows action"], noise: Float[Tensor, "*rows action"], maximum: Float[Tensor, "*rows"]
) -> Float[Tensor, "*rows action"]:
    """Gumbels with given locations, conditioned on their maximum along the last axis (appendix A).

    `noise` are standard Gumbels. An action with location -inf gets -inf; the largest gets `maximum` exactly.
    """
    gumbel = location + noise
    target = maximum.unsqueeze(-1)
    # exp(-g') = exp(-target) + exp(-g) - exp(-largest), in logarithms; `gap` is the log of the last two terms.
    gap = log1mexp((gumbel - bounded(gumbel.amax(-1, keepdim=True))).clamp_(min=NEGLIGIBLE)).sub_(gumbel)
    shift = gap.add_(bounded(target))  # inf where location is -inf
    softplus = shift.clamp(max=-NEGLIGIBLE).abs_().neg_().exp_().log1p_().add_(shift.clamp_(min=0))
    return target - softplus


def log_survival(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """log P(G > x) = log(1 - exp(-exp(-x))) of a standard Gumbel, without cancellation."""
    return log1mexp(-torch.exp(-x)).where(x < 30, -x - torch.exp(-x) / 2)


def log_sum_exp(x: Float[Tensor, "*rows action"]) -> Float[Tensor, "*rows 1"]:
    """log(sum(exp(x))) over the last axis, the same as `torch.logsumexp` and faster where many elements are -inf."""
    highest = x.amax(-1, keepdim=True)
    return (x - bounded(highest)).clamp_(min=NEGLIGIBLE).exp_().sum(-1, keepdim=True).log_().add_(highest)


def normalise(logits: Float[Tensor, "*rows action"]) -> Float[Tensor, "*rows action"]:
    """log_softmax over the last axis that maps a row of -inf to -inf instead of NaN."""
    return logits - bounded(log_sum_exp(logits))


def nucleus(log_prob: Float[Tensor, "*rows action"], p: float | Float[Tensor, "*rows_1"]) -> Float[Tensor, "*rows action"]:
    """Top-p truncation, renormalised: the smallest set of most probable actions whose mass reaches `p` (1: all).

    The action that crosses `p` is kept, so at least one always is. `p` may differ between rows.
    """
    if not isinstance(p, Tensor):
        if p >= 1:
            return log_prob
        p = log_prob.new_tensor(p)
    ordered, order = log_prob.sort(dim=-1, descending=True, stable=True)
    probability = ordered.clamp(min=NEGLIGIBLE).exp_()
    beyond = (probability.cumsum(-1) - probability >= p.unsqueeze(-1)) & (p < 1).unsqueeze(-1)
    kept = ordered.masked_fill(beyond, -torch.inf)
    return normalise(torch.full_like(log_prob, -torch.inf).scatter_(-1, order, kept))


def departures(log_prob: Float[Tensor, "*rows action"], grid: Float[Tensor, " p"]) -> Float[Tensor, "*rows p"]:
    """The probability of not taking the most probable action, if `nucleus` truncates at each of some ascending values of p."""
    probability = log_prob.clamp(min=NEGLIGIBLE).exp_().sort(dim=-1, descending=True).values
    mass = probability.cumsum(-1)
    last = torch.searchsorted(mass, grid.expand(*mass.shape[:-1], -1).contiguous()).clamp_(max=mass.shape[-1] - 1)
    return 1 - probability[..., :1] / mass.gather(-1, last)


def threshold_weights(
    log_prob: Float[Tensor, "*rows sample"],
    gumbel: Float[Tensor, "*rows sample"],
    member: Bool[Tensor, "*rows sample"],
    complete: Bool[Tensor, "*rows"],
) -> Float[Tensor, "*rows sample"]:
    """Log importance weights of samples drawn without replacement (eq. 3), -inf for those without a say.

    `member` says which samples count. The member with the smallest Gumbel is the threshold kappa and is dropped, except
    where `complete` holds (everything was sampled: kappa = -inf, the weights are the probabilities) or where it is the
    only one (its weight is its probability, so that the normalised estimate is its own objective).
    """
    kappa = gumbel.masked_fill(~member, torch.inf).amin(-1, keepdim=True)
    single = member.sum(-1, keepdim=True) == 1
    whole = complete.unsqueeze(-1) | single
    weight = log_prob - log_survival(kappa - log_prob).where(~whole, 0)
    dropped = (gumbel == kappa) & ~whole
    return weight.masked_fill(dropped | ~member, -torch.inf)


def unbiased_mean(log_weight: Float[Tensor, "*rows sample"], value: Float[Tensor, "*rows sample"]) -> Float[Tensor, "*rows"]:
    """The unbiased estimator of the expected objective (eq. 3), from `threshold_weights`."""
    weight = log_weight.exp()
    return (weight * value.where(weight > 0, 0)).sum(-1)


def weighted_mean(
    log_weight: Float[Tensor, "*rows sample"], value: Float[Tensor, "*rows sample"]
) -> tuple[Float[Tensor, "*rows"], Float[Tensor, "*rows"], Float[Tensor, "*rows"]]:
    """The normalised estimator mu (eq. 4), its standard error and the effective sample size.

    The standard error is that of a self-normalised importance estimate. Rows without any weight give NaN.
    """
    weight = torch.softmax(log_weight, -1)  # nan where all are -inf
    value = value.where(log_weight != -torch.inf, 0)
    mean = (weight * value).sum(-1)
    error = (weight.square() * (value - mean.unsqueeze(-1)).square()).sum(-1).sqrt()
    return mean, error, 1 / weight.square().sum(-1)
