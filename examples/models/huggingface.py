# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of Hugging Face's transformers. huggingface.py exports causal models, such as
GPT-2 and Llama. huggingface.py:instructions exports them for samples of chimera-samples,
in which not all labels count: with an attention mask or, with packed=True, with positions
that keep the samples of a row apart. huggingface.py:masked exports models that predict masked tokens, like
RoBERTa. huggingface.py:bert exports a BERT with both losses of its pre-training.
tools/export/Families.md lists the families that can be exported.

`source` is a folder that save_pretrained wrote, or the name of a model in the cache of
transformers. With download=True a missing model is downloaded. Parameters keep their
names. So a run can start from the weights in the folder, and transformers can read the
weights that the run saves beside the same config.json:

    tools/export/chimera-export examples/models/huggingface.py source=FOLDER \\
        context=128 samples=4 --no-values -o package
    chimera-run program --load FOLDER/model.safetensors --save TRAINED/model.safetensors

The parameters are float32, or float64 with --type float64, also if the checkpoint is in
bfloat16 or float16. By default the run reads the weights. With
weights=True this script reads them, and package/values.safetensors has them, in the
type of the export and in one file.
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
    """Refuses a folder that does not exist, before transformers looks for a model of
    that name elsewhere. Unless download=True, sets transformers to ask no server."""
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
    """The transformers module, and the configuration."""
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
    """The module, in training mode. If `weights` is a folder, loads the module's
    weights from it."""
    more = {
        "dtype": torch.get_default_dtype(),
        # Use the implementation of experts whose backward has only common operators. It
        # copies an expert's weights for each token.
        "experts_implementation": "batched_mm",
    }
    if weights:
        module = cls.from_pretrained(weights, config=config, **more)
    else:
        module = cls.from_config(config, **more)
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            # BLOOM has an autograd function of its own, which cannot be exported.
            # PyTorch's function has the same values up to 1e-8.
            if type(child).__name__ == "BloomGelu":
                setattr(parent, name, torch.nn.GELU(approximate="tanh"))
    return module.train()


def next_token_loss(output, labels):
    """`labels` are already the next tokens. transformers' own loss would shift them
    again."""
    return F.cross_entropy(output.logits.flatten(0, 1), labels.flatten())


def with_mask(module, given, named):
    """Adds a mask that says that no token is padding. Without a mask, a module checks
    the positions for several texts in one row, and so would each exported layer."""
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


def counted_loss(output, labels):
    total = F.cross_entropy(
        output.logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED,
        reduction="sum",
    )  # fmt: skip
    return total, (labels != IGNORED).sum()


def instructions(
    source, context=128, samples=4, packed=False, weights=False, download=False
):
    transformers, config = read(source, download, use_cache=False)
    module = build(transformers.AutoModelForCausalLM, config, weights and source)
    tokens = torch.randint(0, config.vocab_size, (samples, context))
    if packed:
        # Without an attention mask, a module sees in the positions where a text begins.
        more = {"position_ids": torch.arange(context).repeat(samples, 1)}
    else:
        more = {"attention_mask": torch.ones_like(tokens)}
    return Model(
        module=module,
        inputs={"input_ids": tokens, **more},
        labels={"labels": tokens},
        loss=counted_loss,
    )


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
        loss=counted_loss,
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
