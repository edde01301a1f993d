"""Language models of Hugging Face transformers, causal or encoder-decoder: `pip install gumbeldore[transformers]`.

    found = generate(model, prompts, score, max_new_tokens=20)                       # one `Samples` per prompt
    model.generate(**inputs, custom_generate=gumbeldore_search(score, beam_width=32))  # as transformers call it

A prompt passes through the model once, whatever the number of beams and rounds. Prompts of different lengths share a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import LogitsProcessorList, StoppingCriteriaList
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria, MaxTimeCriteria
from transformers.utils.generic import ModelOutput

from gumbeldore.errors import ContractError, require
from gumbeldore.sequences.models import STATES
from gumbeldore.sequences.problem import NOTHING, Sequences
from gumbeldore.sequences.samples import Samples
from gumbeldore.sequences.sampling import Rounds, search, seeds_of
from gumbeldore.sequences.scoring import Score, Scorer, Tokens
from gumbeldore.sequences.transformer import Transformer, TransformerNetwork, TransformerPolicy, stopping
from gumbeldore.sequences.until import TimeLimit

__all__ = [
    "GumbeldoreOutput",
    "Transformer",
    "TransformerNetwork",
    "TransformerPolicy",
    "generate",
    "gumbeldore_search",
    "stream",
    "texts",
]

_OURS = {
    "use_cache",
    "logits_to_keep",
    "position_ids",
    "past_key_values",
    "cache_position",
    "attention_mask",
    "encoder_outputs",
}
"""What `generate` passes on that a search looks after itself."""


def generate(
    model: Any,
    prompts: Sequence[Sequence[int]] | Sequence[Tensor],
    score: Score | Sequence[Score] | None = None,
    *,
    max_new_tokens: int,
    how: Rounds | None = None,
    seed: int = 0,
    logits_processor: Sequence[Any] = (),
    stopping_criteria: Sequence[Any] = (),
    max_scores: int | None = None,
    score_batch: int | None = None,
    skip_failures: bool = False,
    partial: bool = False,
    model_batch: int | None = None,
    memory: int = STATES,
) -> list[Samples]:
    """Different continuations of each prompt (for an encoder-decoder: decodings of each source), good ones preferred if there is a `score`.

    A score is given sequences as tuples of tokens, prompt and continuation; give a list of scores for one per prompt. `how` says how to
    search. Temperatures, constraints, banned words: any `LogitsProcessor` of a prefix and its scores; what ends a sequence beside the end
    tokens: any `StoppingCriteria`. `MaxTimeCriteria` ends the search after the round. The rest as in `gumbeldore.sequences.sample`.
    """
    return deque(stream(**locals()), maxlen=1).pop()


def stream(
    model: Any,
    prompts: Sequence[Sequence[int]] | Sequence[Tensor],
    score: Score | Sequence[Score] | None = None,
    *,
    max_new_tokens: int,
    how: Rounds | None = None,
    seed: int = 0,
    logits_processor: Sequence[Any] = (),
    stopping_criteria: Sequence[Any] = (),
    max_scores: int | None = None,
    score_batch: int | None = None,
    skip_failures: bool = False,
    partial: bool = False,
    model_batch: int | None = None,
    memory: int = STATES,
) -> Iterator[list[Samples]]:
    """Like `generate`: all samples so far, after every round."""
    sources: list[Tokens] = [tuple(torch.as_tensor(prompt).tolist()) for prompt in prompts]
    require(len(sources) > 0, "`prompts` must hold at least one prompt, got none.")
    config, encoded = model.generation_config, None
    pad = config.pad_token_id if config.pad_token_id is not None else 0
    if model.config.is_encoder_decoder:
        encoded = _encode(model, sources, pad)
        first = config.decoder_start_token_id
        first = model.config.decoder_start_token_id if first is None else first
        sources = [(first,)] * len(sources)
    rules = [criterion for criterion in stopping_criteria if isinstance(criterion, MaxTimeCriteria)]
    how = _with_limits(how or Rounds(), rules)
    kept = [criterion for criterion in stopping_criteria if not isinstance(criterion, MaxTimeCriteria)]
    policy = TransformerPolicy(Transformer(model, encoded), logits_processor, pad, memory, model_batch)
    problem = Sequences(_vocabulary(model), max_new_tokens, _ends(config.eos_token_id), stop=stopping(kept, pad))
    scorers = None
    if score is not None:
        each = [score] * len(sources) if callable(score) else list(score)
        require(len(each) == len(sources), f"`score` must be one or one per prompt ({len(sources)}), got {len(each)}.")
        options = (max_scores, score_batch, skip_failures, partial)
        scorers = [Scorer(one, *options, len(source)) for one, source in zip(each, sources, strict=True)]
    state = problem.start(sources, model.device)
    yield from search(problem, policy, state, how, seeds_of(seed, len(sources)), scorers)


def _encode(
    model: Any, sources: Sequence[Tokens], pad: int
) -> tuple[Float[Tensor, "prompt source channel"], Int[Tensor, "prompt source"]]:
    """The encoder's output, once per source."""
    width, device = max(map(len, sources)), model.device
    ids = torch.tensor([[*source, *[pad] * (width - len(source))] for source in sources], device=device)
    mask = torch.tensor([[1] * len(source) + [0] * (width - len(source)) for source in sources], device=device)
    training = model.training
    model.eval()
    with torch.no_grad():
        hidden = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    model.train(training)
    return hidden, mask


def _vocabulary(model: Any) -> int:
    """How many logits a model has."""
    head = model.get_output_embeddings()
    return int(model.config.get_text_config(decoder=True).vocab_size if head is None else head.weight.shape[0])


def _ends(token: int | Sequence[int] | Tensor | None) -> tuple[int, ...]:
    """End tokens as a tuple."""
    return () if token is None else tuple(torch.as_tensor(token).flatten().tolist())


def _with_limits(how: Rounds, criteria: Sequence[Any]) -> Rounds:
    """Time limits of transformers as rules of the search."""
    return replace(how, until=(*how.rules, *(TimeLimit(float(each.max_time)) for each in criteria)))


@dataclass
class GumbeldoreOutput(ModelOutput):
    """What `generate` returns with `return_dict_in_generate=True`: the chosen sequences, and all samples of every prompt."""

    sequences: Tensor | None = None  # [sequence, length], prompts included, padded
    prompt: Tensor | None = None  # [sequence]
    log_probs: Tensor | None = None  # [sequence]
    perturbed_log_probs: Tensor | None = None  # [sequence]
    weights: Tensor | None = None  # [sequence]: importance weights among all samples of the prompt
    scores: Tensor | None = None  # [sequence]
    samples: Any = None  # a `Samples` per prompt


def gumbeldore_search(
    score: Score | None = None,
    *,
    seed: int = 0,
    max_scores: int | None = None,
    score_batch: int | None = None,
    skip_failures: bool = False,
    partial: bool = False,
    model_batch: int | None = None,
    memory: int = STATES,
    **how: Any,
) -> Callable[..., Any]:
    """A decoding method: `model.generate(**inputs, max_new_tokens=20, custom_generate=gumbeldore_search(beam_width=32, rounds=2))`.

    It honours the generation configuration: lengths, end tokens, all that becomes a logits processor or a stopping criterion. Of each prompt
    it returns the `num_return_sequences` best by score, or without one by log-probability; with `return_dict_in_generate=True` a
    `GumbeldoreOutput` with everything. `how` are the settings of `Rounds`.
    """
    rounds = Rounds(**how)
    options = (max_scores, score_batch, skip_failures, partial)

    def decode(
        model: Any,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:
        unknown = sorted(name for name, value in model_kwargs.items() if name not in _OURS and value is not None)
        if unknown:
            raise ContractError(f"`gumbeldore_search` does not know the model inputs {', '.join(unknown)}: leave them out.")
        apart = max(generation_config.num_beams or 1, generation_config.num_return_sequences or 1)
        ids, mask = input_ids[::apart], model_kwargs.get("attention_mask")
        hidden, encoded = model_kwargs.get("encoder_outputs"), None
        if hidden is not None:
            states = hidden[0][::apart]
            encoded = (
                states,
                torch.ones(states.shape[:2], dtype=torch.long, device=states.device) if mask is None else mask[::apart],
            )
        real = torch.ones_like(ids) if mask is None or encoded is not None else mask[::apart]
        prompts = [row[kept.bool()].tolist() for row, kept in zip(ids, real, strict=True)]
        pad = generation_config.pad_token_id
        pad = 0 if pad is None else int(torch.as_tensor(pad))
        limits = [each for each in stopping_criteria if isinstance(each, MaxTimeCriteria)]
        known = (MaxTimeCriteria, MaxLengthCriteria, EosTokenCriteria)
        criteria = [each for each in stopping_criteria if not isinstance(each, known)]
        longest = generation_config.max_length - input_ids.shape[1]
        problem = Sequences(_vocabulary(model), longest, _ends(generation_config.eos_token_id), stop=stopping(criteria, pad))
        policy = TransformerPolicy(Transformer(model, encoded), logits_processor, pad, memory, model_batch)
        scorers = None if score is None else [Scorer(score, *options, len(prompt)) for prompt in prompts]
        state, seeds = problem.start(prompts, model.device), seeds_of(seed, len(prompts))
        found = deque(search(problem, policy, state, _with_limits(rounds, limits), seeds, scorers), maxlen=1).pop()
        output = _chosen(found, ids, generation_config.num_return_sequences or 1, pad)
        return output if generation_config.return_dict_in_generate else output.sequences

    return decode


def _chosen(samples: list[Samples], ids: Int[Tensor, "prompt position"], count: int, pad: int) -> GumbeldoreOutput:
    """The best samples of every prompt, best first."""
    rows: dict[str, list[Tensor]] = {name: [] for name in ("tokens", "prompt", "log_prob", "perturbed", "weight", "score")}
    for number, found in enumerate(samples):
        ranked = found.log_prob if found.scorer is None else found.score.nan_to_num(nan=-torch.inf)
        order = ranked.argsort(descending=True, stable=True)[:count]
        for name, values in rows.items():
            values.append(torch.full_like(order, number) if name == "prompt" else getattr(found, name)[order])
    length = max(tokens.shape[1] for tokens in rows["tokens"])
    tokens = torch.cat(
        [torch.nn.functional.pad(each, (0, length - each.shape[1]), value=NOTHING) for each in rows.pop("tokens")]
    )
    joined = {name: torch.cat(values) for name, values in rows.items()}
    sequences = torch.cat([ids[joined["prompt"]], tokens.masked_fill(tokens == NOTHING, pad)], 1)
    return GumbeldoreOutput(
        sequences, joined["prompt"], joined["log_prob"], joined["perturbed"], joined["weight"], joined["score"], samples
    )


def texts(tokenizer: Any, score: Callable[[list[str]], Sequence[float | None]]) -> Score:
    """A score of texts as one of tokens."""

    def scored(sequences: list[Tokens]) -> Sequence[float | None]:
        return score(tokenizer.batch_decode([list(tokens) for tokens in sequences], skip_special_tokens=True))

    return scored
