# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A causal language model of Hugging Face's transformers: GPT-2, Llama and others.

`source` is a folder that save_pretrained wrote, or a model's name where
transformers finds it. Its parameters keep their names, so a run begins with the
weights in the folder, and what it saves transformers reads:

    tools/export/chimera-export examples/models/huggingface.py source=FOLDER \\
        context=128 samples=4 --no-values -o package
    chimera-run program --load FOLDER/model.safetensors --save FOLDER/model.safetensors
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
