"""Models of transformers, built from their configurations: nothing is downloaded."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
import torch
from languages import fits, without_replacement

transformers = pytest.importorskip("transformers")

from gumbeldore.errors import ContractError, SettingsError  # noqa: E402
from gumbeldore.sequences import Rounds, search  # noqa: E402
from gumbeldore.sequences.huggingface import Transformer as Adapter  # noqa: E402
from gumbeldore.sequences.huggingface import (  # noqa: E402
    TransformerPolicy,
    generate,
    gumbeldore_search,
)
from gumbeldore.sequences.models import FunctionPolicy, Walk  # noqa: E402
from gumbeldore.sequences.problem import Sequences  # noqa: E402
from gumbeldore.sequences.sampling import seeds_of  # noqa: E402

TOKENS = 7
PROMPTS = [[1, 2, 3], [4], [5, 6]]
SPECIAL = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}


def gpt2(tokens=TOKENS):
    config = transformers.GPT2Config(
        vocab_size=tokens, n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=1.0, **SPECIAL
    )
    return transformers.GPT2LMHeadModel(config)


def llama():
    config = transformers.LlamaConfig(
        vocab_size=TOKENS, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=64, initializer_range=1.0, **SPECIAL,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def t5():
    special = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    config = transformers.T5Config(vocab_size=TOKENS, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, **special)
    return transformers.T5ForConditionalGeneration(config)


def bart():
    config = transformers.BartConfig(
        vocab_size=TOKENS, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=0,
        decoder_start_token_id=2, forced_eos_token_id=None, init_std=1.0,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


def built(make):
    torch.manual_seed(0)
    return make().double().eval()


def uncached(model, prompt):
    """The same model without any cache, and where its decoder begins."""
    if not model.config.is_encoder_decoder:
        return (lambda ids: model(ids, use_cache=False).logits[:, -1].float()), tuple(prompt)

    def decoded(ids):
        source = torch.tensor([prompt] * len(ids))
        return model(input_ids=source, decoder_input_ids=ids, use_cache=False).logits[:, -1].float()

    return decoded, (model.generation_config.decoder_start_token_id,)


@pytest.mark.parametrize("make", [gpt2, llama, t5, bart])
@pytest.mark.parametrize("memory", [1 << 30, 5_000])
def test_caches_and_the_other_prompts_do_not_change_the_answer(make, memory):
    """Prompts of different lengths in one batch against each alone, without a cache and without padding."""
    model, how = built(make), Rounds(6, 3, sigma=0.0)
    found = generate(model, PROMPTS, max_new_tokens=5, how=how, memory=memory)
    for index, prompt in enumerate(PROMPTS):
        function, start = uncached(model, prompt)
        problem = Sequences(TOKENS, 5, (model.generation_config.eos_token_id,))
        seeds = seeds_of(0, len(PROMPTS))[index : index + 1]
        alone = list(search(problem, FunctionPolicy(function), problem.start([start]), how, seeds))[-1][0]
        assert alone.sequences == found[index].sequences
        torch.testing.assert_close(alone.log_prob, found[index].log_prob, rtol=0, atol=1e-6)


def test_the_law_is_that_of_sampling_without_replacement():
    model, times = built(lambda: gpt2(3)), 1500
    everything = generate(model, [[1]], max_new_tokens=2, how=Rounds(20, 1))[0]
    assert everything.exhausted
    law = {s: float(p.exp()) for s, p in zip(everything.sequences, everything.log_prob, strict=True)}
    drawn = generate(model, [[1]] * times, max_new_tokens=2, how=Rounds(2, 2, sigma=0.0), seed=5)
    total = sum(law.values())
    law = {s: p / total for s, p in law.items()}
    assert fits((tuple(each.sequences) for each in drawn), without_replacement(law, 4)) > 1e-4


def test_a_prompt_passes_through_the_model_once(monkeypatch):
    model, lengths = built(gpt2), []
    forward = model.forward

    def counted(*args, **kwargs):
        lengths.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    monkeypatch.setattr(model, "forward", counted)
    found = generate(model, [[1, 2, 3, 4, 5]], max_new_tokens=4, how=Rounds(4, 3))
    assert lengths[0] == (1, 5)
    assert all(columns == 1 for _, columns in lengths[1:])
    assert sum(rows for rows, _ in lengths[1:]) == found[0].evaluations - 1


def test_processors_are_part_of_the_law():
    """What they forbid never comes; what they allow comes with the processed probabilities."""
    model = built(gpt2)
    processors = transformers.LogitsProcessorList(
        [transformers.NoBadWordsLogitsProcessor([[2], [3, 4]], eos_token_id=0), transformers.TemperatureLogitsWarper(0.5)]
    )
    found = generate(model, [[1], [5, 6]], max_new_tokens=3, how=Rounds(300, 1), logits_processor=processors)
    for each in found:
        assert each.exhausted
        assert all(2 not in sequence for sequence in each)
        assert all((3, 4) not in itertools.pairwise(sequence) for sequence in each)
        assert float(each.log_prob.exp().sum()) == pytest.approx(1, abs=1e-6)


def test_what_a_prompt_allows_is_asked_of_that_prompt():
    model, allowed = built(gpt2), {0: [0, 1, 2], 1: [0, 4]}
    out = model.generate(
        torch.tensor([[1, 2], [3, 4]]),
        attention_mask=torch.ones(2, 2, dtype=torch.long),
        max_new_tokens=3,
        prefix_allowed_tokens_fn=lambda prompt, ids: allowed[prompt],
        return_dict_in_generate=True,
        custom_generate=gumbeldore_search(beam_width=50, rounds=1),
    )
    for number, samples in enumerate(out.samples):
        assert set(samples.tokens.flatten().tolist()) == {-1, *allowed[number]}
        assert samples.exhausted


def test_stopping_criteria_end_a_sequence():
    class AfterSix(transformers.StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            return input_ids[:, -1] == 6

    model = built(gpt2)
    found = generate(model, [[1]], max_new_tokens=3, how=Rounds(300, 1), stopping_criteria=[AfterSix()])[0]
    assert found.exhausted
    assert all(6 not in sequence[1:-1] for sequence in found)
    assert float(found.log_prob.exp().sum()) == pytest.approx(1, abs=1e-6)


def test_generate_of_transformers_calls_the_search():
    model = built(gpt2)
    ids, mask = torch.tensor([[1, 2, 3], [0, 0, 4]]), torch.tensor([[1, 1, 1], [0, 0, 1]])
    settings = {"attention_mask": mask, "max_new_tokens": 4, "do_sample": True, "top_k": 0, "num_return_sequences": 3}
    method = gumbeldore_search(lambda sequences: [float(sum(s)) for s in sequences], beam_width=8, rounds=2, seed=3)
    out = model.generate(ids, custom_generate=method, return_dict_in_generate=True, **settings)
    assert out.sequences.shape == (6, out.sequences.shape[1])
    assert torch.equal(out.sequences[:, :3], ids.repeat_interleave(3, 0))
    assert out.prompt.tolist() == [0, 0, 0, 1, 1, 1]
    for prompt, samples in enumerate(out.samples):
        mine = out.prompt == prompt
        assert out.scores[mine].tolist() == sorted(samples.score.tolist(), reverse=True)[:3]
        assert len(samples) == len(set(samples.sequences)) == 16
    direct = generate(
        model,
        [[1, 2, 3], [4]],
        lambda sequences: [float(sum(s)) for s in sequences],
        max_new_tokens=4,
        how=Rounds(8, 2),
        seed=3,
    )
    assert [each.sequences for each in direct] == [each.sequences for each in out.samples]
    plain = model.generate(ids, custom_generate=method, **settings)
    assert torch.equal(plain, out.sequences)


def test_an_encoder_decoder_is_generated_from_as_well():
    model = built(t5)
    ids, mask = torch.tensor([[1, 2, 3], [4, 5, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    out = model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=4,
        return_dict_in_generate=True,
        custom_generate=gumbeldore_search(beam_width=5),
    )
    direct = generate(model, [[1, 2, 3], [4, 5]], max_new_tokens=4, how=Rounds(5))
    assert [each.sequences for each in direct] == [each.sequences for each in out.samples]


def test_weights_estimate_expectations_under_the_model():
    model = built(gpt2)
    exact = generate(model, [[1]], max_new_tokens=3, how=Rounds(500, 1))[0]
    truth = exact.estimate(len).mean
    estimates = [each.estimate(len) for each in generate(model, [[1]] * 200, max_new_tokens=3, how=Rounds(8, 2, sigma=0.0))]
    mean = sum(each.unbiased for each in estimates) / len(estimates)
    spread = (sum((each.unbiased - mean) ** 2 for each in estimates) / len(estimates)) ** 0.5
    assert abs(mean - truth) < 4 * spread / len(estimates) ** 0.5


def test_dropout_is_off_and_the_model_is_as_before_afterwards():
    model = built(gpt2).train()
    first, second = (generate(model, [[1]], max_new_tokens=3, how=Rounds(5, 1)) for _ in range(2))
    assert first[0].log_prob.tolist() == second[0].log_prob.tolist()
    assert model.training


def test_forgotten_states_are_computed_again():
    model = built(gpt2)
    policy = TransformerPolicy(Adapter(model), memory=5_000)
    problem, walks = Sequences(TOKENS, 6, (0,)), []
    prepare = policy.prepare
    policy.prepare = lambda state: walks.append(prepare(state)) or walks[-1]
    list(search(problem, policy, problem.start([[1, 2]]), Rounds(8, 3), seeds_of(1, 1)))
    assert isinstance(walks[0], Walk)
    assert walks[0].store.forgotten > 0
    assert walks[0].recomputed > 0


def test_what_cannot_be_searched_is_said():
    model = built(gpt2)
    with pytest.raises(SettingsError, match="at least one prompt"):
        generate(model, [], max_new_tokens=3)
    with pytest.raises(SettingsError, match="one per prompt"):
        generate(model, [[1]], [len, len], max_new_tokens=3)
    with pytest.raises(ContractError, match="inputs_embeds"):
        model.generate(inputs_embeds=torch.zeros(1, 2, 16).double(), max_new_tokens=2, custom_generate=gumbeldore_search())


def test_the_library_does_not_import_transformers():
    code = "import sys, gumbeldore, gumbeldore.sequences; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
