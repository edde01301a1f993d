"""Models of Hugging Face transformers as policies: keys and values by token, prompts of different lengths, processors, criteria."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer
from transformers.generation.logits_process import PrefixConstrainedLogitsProcessor
from transformers.modeling_outputs import BaseModelOutput

from gumbeldore.errors import require
from gumbeldore.sequences.learning import SequenceNetwork
from gumbeldore.sequences.models import STATES, StatefulPolicy, Walk
from gumbeldore.sequences.problem import NOTHING, SequenceState

Pages = list[tuple[Float[Tensor, "row place head channel"], Float[Tensor, "row place head channel"]]]
Page = list[tuple[Float[Tensor, "row head channel"], Float[Tensor, "row head channel"]]]
"""Keys and values by layer: of some tokens, and of one."""

Layers = list[tuple[Float[Tensor, "prompt head position channel"], Float[Tensor, "prompt head position channel"]]]


class Given(DynamicLayer):
    """Keys and values of a prompt and of the tokens since, in pieces that are joined once: when those of a new token come."""

    def __init__(self, keys: list[Tensor], values: list[Tensor]) -> None:
        super().__init__()
        self.given, self.length = (keys, values), sum(piece.shape[-2] for piece in keys)
        self.new: tuple[Tensor, Tensor] | None = None
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        self.new = key_states, value_states
        self.length += key_states.shape[-2]
        keys, values = self.given
        return torch.cat([*keys, key_states], -2), torch.cat([*values, value_states], -2)

    def get_seq_length(self) -> int:
        return self.length


class Held(DynamicLayer):
    """Keys and values that do not change."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()
        self.keys, self.values, self.is_initialized = keys, values, True


def _with_layers(layers: Sequence[Any]) -> Any:
    """A cache of given layers."""
    cache: Any = DynamicCache()
    cache.layers = list(layers)
    return cache


def _contents(cache: Any) -> Layers:
    """Keys and values of a cache by layer."""
    return [(layer.keys, layer.values) for layer in cache.layers]


@dataclass
class Prompts:
    """What a model keeps of its prompts."""

    layers: Layers
    mask: Bool[Tensor, "prompt position"]
    encoded: tuple[Float[Tensor, "prompt source width"], Int[Tensor, "prompt source"]] | None = None
    cross: list[tuple[Tensor, Tensor]] | None = None  # keys and values of the encoder's output by layer


class Transformer:
    """A `PagedModel`. For an encoder-decoder, `encoder_outputs` [prompt, source, channel] and their mask come from `encoded`."""

    paged = True

    def __init__(self, model: Any, encoded: tuple[Tensor, Tensor] | None = None) -> None:
        self.model, self.encoded = model, encoded
        parameters = inspect.signature(model.forward).parameters
        self.takes_positions = "position_ids" in parameters and encoded is None
        self.takes_last = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}

    def start(self, prompts: list[Int[Tensor, " _"]]) -> tuple[Float[Tensor, "prompt token"], Prompts]:
        """One pass over all prompts, padded on the left."""
        width, device = max(len(prompt) for prompt in prompts), self.model.device
        require(min(len(prompt) for prompt in prompts) > 0, "A prompt must hold at least one token, got none.")
        ids = torch.stack([torch.nn.functional.pad(prompt.to(device), (width - len(prompt), 0)) for prompt in prompts])
        sizes = torch.tensor([len(prompt) for prompt in prompts], device=device)
        mask = torch.arange(width, device=device) >= (width - sizes)[:, None]
        cache = DynamicCache()
        if self.encoded is not None:
            caches = EncoderDecoderCache(cache, DynamicCache())
            output = self._decode(ids, mask, caches, *self.encoded)
            return output.logits[:, -1], Prompts(_contents(cache), mask, self.encoded, _contents(caches.cross_attention_cache))
        output = self._forward(ids, mask, mask.long().cumsum(1).sub(1).clamp(min=0), cache)
        return output.logits[:, -1], Prompts(_contents(cache), mask)

    def step(
        self, token: Int[Tensor, " row"], pages: Pages | None, memory: Prompts, prompt: Int[Tensor, " row"]
    ) -> tuple[Float[Tensor, "row token"], Page]:
        """One token for each row."""
        count = 0 if pages is None else pages[0][0].shape[1]

        def rows(tensor: Tensor) -> Tensor:
            return tensor.expand(len(token), *tensor.shape[1:]) if len(tensor) == 1 else tensor[prompt]

        layers = []
        for index, (keys, values) in enumerate(memory.layers):
            since = () if pages is None else pages[index]
            given = [[rows(keys)], [rows(values)]]
            for piece, page in zip(given, since, strict=False):
                piece.append(page.transpose(1, 2))
            layers.append(Given(*given))
        cache, own = _with_layers(layers), rows(memory.mask)
        mask = torch.nn.functional.pad(own, (0, count + 1), value=True)
        if memory.cross is None or memory.encoded is None:
            output = self._forward(token[:, None], mask, own.sum(1, keepdim=True) + count, cache)
        else:
            cross = _with_layers([Held(rows(keys), rows(values)) for keys, values in memory.cross])
            hidden, source = memory.encoded
            output = self._decode(token[:, None], mask, EncoderDecoderCache(cache, cross), rows(hidden), rows(source))
        made = [layer.new for layer in layers if layer.new is not None]
        return output.logits[:, -1], [(keys.transpose(1, 2)[:, 0], values.transpose(1, 2)[:, 0]) for keys, values in made]

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any) -> Any:
        """A causal model; without padding it needs no mask."""
        more = {"position_ids": positions} if self.takes_positions else {}
        padding = None if bool(mask.all()) else mask.long()
        return self.model(
            input_ids=ids, attention_mask=padding, past_key_values=cache, use_cache=True, **more, **self.takes_last
        )

    def _decode(self, ids: Tensor, mask: Tensor, cache: Any, encoded: Tensor, source: Tensor) -> Any:
        """The decoder of an encoder-decoder."""
        padding = {} if bool(mask.all()) else {"decoder_attention_mask": mask.long()}
        return self.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=source,
            decoder_input_ids=ids,
            past_key_values=cache,
            use_cache=True,
            **padding,
            **self.takes_last,
        )


class TransformerPolicy(StatefulPolicy):
    """The policy of a model and logits processors: what these forbid or reweigh is forbidden and reweighed in the law of the search."""

    def __init__(
        self, model: Transformer, processors: Sequence[Any] = (), pad: int = 0, memory: int = STATES, rows: int | None = None
    ) -> None:
        super().__init__(model, memory, rows)
        self.processors, self.pad = list(processors), pad

    def __call__(self, state: SequenceState, context: Walk) -> Float[Tensor, "row token"]:
        logits = super().__call__(state, context).float()
        if not self.processors:
            return logits
        processed = logits.clone()
        for rows, ids in _by_length(state, self.pad):
            scores = processed[rows]
            for processor in self.processors:
                if isinstance(processor, PrefixConstrainedLogitsProcessor):
                    scores = _constrained(processor, state.instance[rows], ids, scores)
                else:
                    scores = processor(ids, scores)
            processed[rows] = scores
        return processed


def _by_length(state: SequenceState, pad: int) -> list[tuple[Int[Tensor, " row"], Int[Tensor, "row length"]]]:
    """Rows with equally many tokens together, as transformers write them: the prompt padded on the left, then the tokens."""
    prompt = state.prompt.masked_fill(state.prompt == NOTHING, pad)[state.instance]
    groups = []
    for size in state.length.unique().tolist():
        rows = (state.length == size).nonzero().squeeze(1)
        groups.append((rows, torch.cat([prompt[rows], state.tokens[rows, :size]], 1)))
    return groups


def _constrained(
    processor: Any, prompt: Int[Tensor, " row"], ids: Int[Tensor, "row length"], scores: Float[Tensor, "row token"]
) -> Float[Tensor, "row token"]:
    """`prefix_allowed_tokens_fn`, which is told the prompt; the processor itself would count beams."""
    kept = torch.full_like(scores, -torch.inf)
    for row, (number, prefix) in enumerate(zip(prompt.tolist(), ids, strict=True)):
        allowed = processor._prefix_allowed_tokens_fn(number, prefix)
        kept[row, allowed] = scores[row, allowed]
    return kept


def stopping(criteria: Sequence[Any], pad: int) -> Callable[[SequenceState], Bool[Tensor, " row"]] | None:
    """Stopping criteria as the end of a sequence."""
    if not criteria:
        return None

    def stops(state: SequenceState) -> Bool[Tensor, " row"]:
        stopped = torch.zeros_like(state.ended)
        for rows, ids in _by_length(state, pad):
            for criterion in criteria:
                stopped[rows] |= torch.as_tensor(criterion(ids, None), device=ids.device).expand(len(rows))
        return stopped

    return stops


class TransformerNetwork(SequenceNetwork):
    """A causal model that can learn from its own samples (`self_improve`). Sequences begin with its token `bos_token_id`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.config = {"model": model.config.to_diff_dict()}
        self.model = model
        self.first = int(model.generation_config.bos_token_id)

    def logits(self, tokens: Int[Tensor, "row place"]) -> Float[Tensor, "row prefix token"]:
        return self.model(torch.nn.functional.pad(tokens, (1, 0), value=self.first), use_cache=False).logits

    @property
    def paged(self) -> bool:
        """Its states are keys and values."""
        return True

    def start(self, prompts: list[Int[Tensor, " _"]]) -> tuple[Float[Tensor, "prompt token"], Prompts]:
        return Transformer(self.model).start([torch.nn.functional.pad(prompt, (1, 0), value=self.first) for prompt in prompts])

    def step(
        self, token: Int[Tensor, " row"], pages: Pages | None, memory: Prompts, prompt: Int[Tensor, " row"]
    ) -> tuple[Float[Tensor, "row token"], Page]:
        return Transformer(self.model).step(token, pages, memory, prompt)
