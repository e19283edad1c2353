"""What training from scratch needs: a tokenizer, a Llama, batches and the loop. Loads torch and transformers.

The loop is plain: AdamW, warm-up, cosine, clipping, float32, no accumulation. Dialogues of similar length share a
batch and are padded on the right, where a causal model needs no mask; packing them into one row would save little and
let a dialogue read the facts of the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel
from duologue.errors import DuologueError
from duologue.trainers.conversation import Conversation, Reply, encode
from duologue.types import Message, alternates

if TYPE_CHECKING:
    from duologue.trainers.scratch import OnStep, ScratchConfig

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML without a system prompt of its own."""

_START, _END, _PAD = "<|im_start|>", "<|im_end|>", "<|pad|>"
_NO_LOSS = -100
_WARM_UP = 0.05
_CLIP = 1.0


def new_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer; digits stand alone, and the tokens of ChatML are special.

    Args:
        texts: what to learn it from, such as roles and contents; any text can be encoded afterwards.
        vocabulary: most tokens; few texts give fewer.
    """
    tokenizer = Tokenizer(models.BPE())
    # The stubs of tokenizers declare these attributes with other types than they take.
    made: Any = tokenizer
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[_PAD, _START, _END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    untyped: Any = PreTrainedTokenizerFast
    made_fast: PreTrainedTokenizerFast = untyped(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        eos_token=_END,
        additional_special_tokens=[_START],
        chat_template=CHATML,
        clean_up_tokenization_spaces=False,
    )
    return made_fast


def token_rows(
    dialogues: Sequence[Sequence[Message]], tokenizer: PreTrainedTokenizerFast, context: int
) -> list[list[int]]:
    """Return each dialogue's tokens as rollouts lay them out, a closing user turn included.

    Raises:
        DuologueError: if a dialogue does not take turns from the user on, or is longer than the context.
    """
    chat = ChatFormat(tokenizer)
    rows = [_row(messages, chat, i) for i, messages in enumerate(dialogues)]
    longest = max(range(len(rows)), key=lambda i: len(rows[i]))
    if len(rows[longest]) > context:
        raise DuologueError(
            f"Dialogue {longest} has {len(rows[longest])} tokens, over the context of {context}. Raise context or "
            "leave the dialogue out; it is not cut silently."
        )
    return rows


def _row(messages: Sequence[Message], chat: ChatFormat, i: int) -> list[int]:
    if not messages or not alternates(messages):
        raise DuologueError(f"Dialogue {i} must start with the user and take turns. Merge or drop its other messages.")
    replies = [(*chat.text_ids(m["content"]), chat.end_of_turn_id) for m in messages[1::2]]
    laid_out = tuple(Reply("", ids, (0.0,) * len(ids)) for ids in replies)
    users = tuple(m["content"] for m in messages[2::2])
    ids = encode(Conversation((messages[0],), laid_out, users), chat).ids
    if len(messages) % 2 == 0:
        return ids
    return ids[: len(ids) - 1 - ids[::-1].index(ids[0])]  # nobody answers the closing turn


def new_model(config: ScratchConfig, tokenizer: PreTrainedTokenizerFast) -> LoadedModel:
    """Return a Llama with weights drawn from the configuration's seed; embedding and head share theirs.

    Their standard deviation is one over the square root of the inputs. The 0.02 that is usual for wide models is so
    small for a narrow one that it did not learn to copy a word in the time it has here.
    """
    llama = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden,
        intermediate_size=config.hidden * 8 // 3 // 16 * 16,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model: Any = LlamaForCausalLM(llama)
    generator = torch.Generator().manual_seed(config.seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0.0, parameter.shape[-1] ** -0.5, generator=generator)
    return LoadedModel(model, tokenizer, "scratch")


def train(
    model: Any, rows: Sequence[Sequence[int]], config: ScratchConfig, on_step: OnStep | None = None
) -> list[float]:
    """Train a model in place and return the loss of each step, in nats per token."""
    rng = np.random.default_rng(config.seed)
    batches = [batch for _ in range(config.epochs) for batch in _batches(rows, config.batch_tokens, rng)]
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98))
    curve: list[float] = []
    model.train()
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * _schedule(step, len(batches))
        loss = _loss(model, [rows[i] for i in batch])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
        optimizer.step()
        curve.append(loss.item())
        if on_step:
            on_step(step + 1, len(batches), curve[-1])
    model.eval()
    return curve


def _batches(rows: Sequence[Sequence[int]], batch_tokens: int, rng: np.random.Generator) -> list[list[int]]:
    """Return row indices in batches of similar length and at most ``batch_tokens`` tokens with padding, shuffled.

    A row that is longer than that is a batch of its own.
    """
    order = sorted(rng.permutation(len(rows)).tolist(), key=lambda i: len(rows[i]))  # stable: ties stay shuffled
    cuts, widest = [0], 0
    for place, i in enumerate(order):
        widest = max(widest, len(rows[i]))
        if place > cuts[-1] and widest * (place - cuts[-1] + 1) > batch_tokens:
            cuts.append(place)
    batches = [order[start:end] for start, end in pairwise([*cuts, len(order)])]
    return [batches[int(i)] for i in rng.permutation(len(batches))]


def _schedule(step: int, steps: int) -> float:
    """Return the share of the highest learning rate: linear warm-up, then cosine towards 0."""
    warm_up = max(1, round(_WARM_UP * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


def _loss(model: Any, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), _NO_LOSS)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = labels[i, : len(row)] = torch.tensor(row)
    logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
    return cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=_NO_LOSS)
