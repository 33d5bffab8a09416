#!/usr/bin/env bash
# A Llama exported without attention_mask searches for packed sequences in every
# call; exported with a mask it does not.
#
# Versions: transformers 5.24.0 with torch 2.11.0 (Python 3.11).
# Behaviour: Without a mask, transformers looks at the positions for several
#   sequences packed into one row. An ordinary call goes on without them if it
#   finds none. A trace cannot branch on values, so torch.export records the search
#   and the masks that follow from it, although the positions are 0, 1, 2 …
# Seen on 2026-11-27 (two layers, [2 samples, 16 tokens]):
#   without a mask: 184 calls, masks computed: 6
#   with a mask: 175 calls, masks computed: 1
#   only without: cumsum diff eq ne sub
# Why it matters: The graph runs for every micro-batch, and each additional mask
#   has [samples, tokens, tokens] elements: the cost grows with the square of the
#   context. A mask of ones, which says nothing new, leaves them out. (At a context of
#   128 and a width of 256 a step took as long with it as without: 1.006, 0.976–1.046.)
# What chimera does: examples/models/huggingface.py gives an explicit mask.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-compile torch==2.11.0 \
  transformers==5.24.0 numpy==2.4.6
HF_HUB_OFFLINE=1 "$work/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from transformers import LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, use_cache=False, bos_token_id=0, eos_token_id=0))
tokens = torch.zeros(2, 16, dtype=torch.long)
search = {"cumsum", "diff", "eq", "ne", "sub"}


def calls(**inputs):
    graph = torch.export.export(model, (tokens,), inputs).graph
    return [node for node in graph.nodes if node.op == "call_function"]


def masks(nodes):
    """Calls that compute a mask of [samples, 1, tokens, tokens]."""
    results = [node.meta["val"] for node in nodes
               if node.target is not torch.ops.aten.expand.default]
    return sum(isinstance(result, torch.Tensor) and result.dtype == torch.bool
               and result.shape == (2, 1, 16, 16) for result in results)


def names(nodes):
    return {str(node.target).split(".")[1] for node in nodes}


without, given = calls(), calls(attention_mask=torch.ones_like(tokens))
for title, nodes in ("without a mask", without), ("with a mask", given):
    print(f"{title}: {len(nodes)} calls, masks computed: {masks(nodes)}")
print("only without:", *sorted(names(without) - names(given)))
assert search <= names(without), "changed: the search is not traced"
assert not search & names(given), "changed: a mask does not prevent the search"
assert len(without) > len(given), "changed: the graph is no larger"
PYTHON
