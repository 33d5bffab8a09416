# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of Hugging Face's transformers: causal ones, GPT-2, Llama and others, and
with huggingface.py:bert a BERT with both losses of its pre-training.

`source` is a folder that save_pretrained wrote, or a model's name where
transformers finds it. Its parameters keep their names, so a run begins with the
weights in the folder, and what it saves transformers reads beside the same
config.json:

    tools/export/chimera-export examples/models/huggingface.py source=FOLDER \\
        context=128 samples=4 --no-values -o package
    chimera-run program --load FOLDER/model.safetensors --save TRAINED/model.safetensors
"""

import torch
import torch.nn.functional as F
import transformers
from chimera_export import Model


def next_token_loss(output, labels):
    return F.cross_entropy(output.logits.flatten(0, 1), labels.flatten())


def make(source, context=128, samples=4):
    config = transformers.AutoConfig.from_pretrained(source, use_cache=False)
    # Weights are read by the run.
    module = transformers.AutoModelForCausalLM.from_config(config)
    module.train()
    tokens = torch.randint(0, config.vocab_size, (samples, context))
    return Model(
        module=module, inputs=(tokens,), labels=(tokens,), loss=next_token_loss
    )


IGNORED = -100


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


def bert(source, context=128, samples=4):
    config = transformers.AutoConfig.from_pretrained(source)
    module = transformers.BertForPreTraining(config)
    module.train()
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
