# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of Hugging Face's transformers: causal ones, GPT-2, Llama and others; with
huggingface.py:masked those that predict masked tokens, like RoBERTa; with
huggingface.py:bert a BERT with both losses of its pre-training. Which families can be
exported: tools/export/Families.md.

`source` is a folder that save_pretrained wrote, or the name of a model that is in the
cache of transformers; with download=True it is fetched. Parameters keep their names, so
a run begins with the weights in the folder, and what it saves transformers reads beside
the same config.json:

    tools/export/chimera-export examples/models/huggingface.py source=FOLDER \\
        context=128 samples=4 --no-values -o package
    chimera-run program --load FOLDER/model.safetensors --save TRAINED/model.safetensors

The model is exported in float32 (--type float64: in that), also if the checkpoint is in
bfloat16 or float16. Its weights are read by the run; with weights=True they are read
here, and package/values.safetensors has them, in that type and in one file.
"""

import inspect
import os
import pathlib

import torch
import torch.nn.functional as F
from chimera_export import Model, Refused
from chimera_export.arguments import near

IGNORED = -100


def find(source, download):
    """Refuses a folder that there is not, before transformers looks for a model of that
    name elsewhere. What it imports later asks no server, unless it is to."""
    path = pathlib.Path(str(source)).expanduser()
    if path.is_dir():
        os.environ["HF_HUB_OFFLINE"] = "1"
        if not (path / "config.json").is_file():
            raise Refused(
                f"source={source}: expected a folder that save_pretrained wrote, with a "
                "config.json, found none in it"
            )
        return str(path)
    # A name of a model has one part, like gpt2, or two, like organisation/model.
    is_name = len(path.parts) <= 2 and not path.is_absolute() and path.parts[0] not in "~.."
    if not is_name or not download:
        os.environ["HF_HUB_OFFLINE"] = "1"
        folder = path.parent if path.parent.is_dir() else pathlib.Path()
        hint = near(path.name, [p.name for p in folder.iterdir() if p.is_dir()])
        if not is_name or not _is_cached(str(source)):
            raise Refused(
                f"source={source}: no such folder{hint}"
                + ("" if not is_name else
                   "; nor is a model of that name in the cache, which download=True fetches")
            )  # fmt: skip
    return str(source)


def _is_cached(name):
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except HFValidationError:
        return False


def read(source, download, **more):
    """transformers, and the configuration."""
    source = find(source, download)
    import transformers

    config = transformers.AutoConfig.from_pretrained(source, **more)
    if config.dtype not in (None, torch.float32, torch.float64):
        print(
            f"{source} is in {str(config.dtype).removeprefix('torch.')}: exported in "
            f"{str(torch.get_default_dtype()).removeprefix('torch.')}"
        )
    return transformers, config


def build(cls, config, weights):
    """The module, to be trained. `weights`: the folder that it reads its own from, or
    nothing."""
    more = {
        "dtype": torch.get_default_dtype(),
        # The other ways to compute experts have no backward of common operators. This
        # one takes a copy of an expert's weights for each token.
        "experts_implementation": "batched_mm",
    }
    if weights:
        module = cls.from_pretrained(weights, config=config, **more)
    else:
        module = cls.from_config(config, **more)
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            # Replace BLOOM's own autograd function by PyTorch's function, which has the same
            # values up to 1e-8.
            if type(child).__name__ == "BloomGelu":
                setattr(parent, name, torch.nn.GELU(approximate="tanh"))
    return module.train()


def next_token_loss(output, labels):
    """`labels` are the next tokens already: transformers' own loss would shift them."""
    return F.cross_entropy(output.logits.flatten(0, 1), labels.flatten())


def with_mask(module, given, named):
    """Says that all tokens count. Without a mask a module looks in their positions for
    several texts in one row, and so does each layer of what is exported."""
    tokens = given[0] if given else named["input_ids"]
    mask = torch.ones(tokens.shape, dtype=torch.long)
    return given, {"attention_mask": mask, **named}


def make(source, context=128, samples=4, weights=False, download=False):
    transformers, config = read(source, download, use_cache=False)
    module = build(transformers.AutoModelForCausalLM, config, weights and source)
    if "attention_mask" in inspect.signature(module.forward).parameters:
        module.register_forward_pre_hook(with_mask, with_kwargs=True)
    tokens = torch.randint(0, config.vocab_size, (samples, context))
    return Model(
        module=module, inputs=(tokens,), labels=(tokens,), loss=next_token_loss
    )


def masked_loss(output, labels):
    total = F.cross_entropy(
        output.logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED,
        reduction="sum",
    )  # fmt: skip
    return total, (labels != IGNORED).sum()


def masked(source, context=128, samples=4, weights=False, download=False):
    transformers, config = read(source, download)
    module = build(transformers.AutoModelForMaskedLM, config, weights and source)
    tokens = torch.randint(0, config.vocab_size, (samples, context))
    labels = torch.where(torch.rand(tokens.shape) < 0.15, tokens, IGNORED)
    labels[:, 0] = tokens[:, 0]
    return Model(
        module=module,
        inputs={"input_ids": tokens},
        labels={"labels": labels},
        loss=masked_loss,
    )


def pretraining_loss(output, labels, next_sentence_label):
    tokens = F.cross_entropy(
        output.prediction_logits.flatten(0, 1), labels.flatten(),
        ignore_index=IGNORED, reduction="sum",
    )  # fmt: skip
    pairs = F.cross_entropy(
        output.seq_relationship_logits, next_sentence_label, reduction="sum"
    )
    return [
        (tokens, (labels != IGNORED).sum()),
        (pairs, next_sentence_label.shape[0]),
    ]


def bert(source, context=128, samples=4, weights=False, download=False):
    transformers, config = read(source, download)
    module = build(transformers.AutoModelForPreTraining, config, weights and source)
    tokens = torch.randint(0, config.vocab_size, (samples, context))
    return Model(
        module=module,
        inputs={
            "input_ids": tokens,
            "token_type_ids": torch.zeros_like(tokens),
            "attention_mask": torch.ones_like(tokens),
        },
        labels={
            "labels": tokens,
            "next_sentence_label": torch.zeros(samples, dtype=torch.long),
        },
        loss=pretraining_loss,
    )
