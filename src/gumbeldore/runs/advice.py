"""What to change when a training learns from solutions that are worse than what its policy does by itself."""

from __future__ import annotations

from gumbeldore.kits.measure import Measure
from gumbeldore.runs.settings import RunSettings
from gumbeldore.training.algorithm import Epoch

_MARGIN = 0.01
"""Samples that are worse than greedy solutions by more than this share of these are worth a word."""


_PATIENCE = 3
"""Epochs in which samples may be worse than greedy solutions that are learnt from anyway."""


def advice(epoch: Epoch, greedy_before: float | None, settings: RunSettings, measure: Measure) -> str:
    """A warning, or nothing. `greedy_before` is the validation by the policy that sampled, if that is known."""
    if epoch.samples is not None and epoch.greedy is not None:
        if epoch.index <= _PATIENCE:  # an untrained policy has no preferences yet
            return ""
        return _about(epoch.samples, epoch.greedy, measure, "of the same instances, which are learnt from instead")
    alike = settings.problem == settings.validation_settings and not settings.stages
    if epoch.sampled is None or greedy_before is None or not alike:
        return ""
    return _about(epoch.sampled, greedy_before, measure, "of the validation; training on them makes the policy worse")


def _about(samples: float, greedy: float, measure: Measure, what: str) -> str:
    if greedy - samples <= _MARGIN * abs(greedy):
        return ""
    return (
        f"Samples ({measure.shown(samples):.4g}) are worse than the policy's own greedy solutions ({measure.shown(greedy):.4g}) {what}. "
        f"Make them better: more of them (--sampler gd:32x4), less of the unlikely (p=0.8 in it), or the greedy ones among them (--training.include-greedy)."
    )
