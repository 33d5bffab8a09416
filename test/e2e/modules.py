# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small modules that are hard to cut into layers but can be exported. Each has the
output that `exporter.py` expects of chimera-export."""

GOOD = "--check: "
EXACT = "autograd's, bit by bit"
EVAL = "exported in eval mode"
CHECKPOINTED = "note: exported without activation checkpointing"
WITH_VALUES = "--check: the"  # the module must have values
WARNED = "chimera-export: warning: "
INDIVISIBLE = WARNED + "the loss of two samples is not the mean of their losses"
NOTED = "chimera-export: note: "
READS = NOTED + "the logits of a position depend on later tokens"
# Cases that test something else. Their logits also depend on later tokens.
ALSO_READS = {
    "a block that returns its result twice", "attention of PyTorch's own",
    "a view that is changed in place and alone", "slices that are assigned and changed",
    "gradients that are transposed",
}  # fmt: skip
START = """
import torch
from torch import nn
from torch.nn import functional as F
from chimera_export import Model

C, T, B = 8, 4, 4
torch.manual_seed(1)  # the same values in each run of the test
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(C, C)
    def forward(self, x):
        return x + torch.tanh(self.line(x))

class Net(nn.Module):
    def __init__(self, block=Block):
        super().__init__()
        self.embedding = nn.Embedding(16, C)
        self.blocks = nn.ModuleList(block() for _ in range(3))
        self.head = nn.Linear(C, 16)
    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

def cross_entropy(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

def model(module, loss=cross_entropy, **more):
    tokens = torch.randint(0, 16, (B, T))
    return Model(module, (tokens,), (tokens.clone(),), loss, **more)

"""
# CASES is a list of cases. A case has its subject, the source of the function `make`
# (and perhaps code before it), a part of the expected output, and options. PLAIN is a
# model without a ModuleList or a Sequential.
PLAIN = """
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.block, self.head = nn.Embedding(16, C), Block(), nn.Linear(C, 16)
    def forward(self, tokens): return self.head(self.block(self.embedding(tokens)))
"""
CASES = [
    ("a plain net", "def make(): return model(Net())", GOOD),
    (
        "a dataclass in a file with postponed annotations",
        """
import dataclasses
@dataclasses.dataclass
class Sizes:
    width: "int" = C
def make(): return model(Net())
""",
        GOOD,
    ),
    (
        "a head with a normalised weight",
        """
def make():
    net = Net()
    net.head = nn.utils.parametrizations.weight_norm(nn.Linear(C, 16))
    return model(net)
""",
        GOOD,
        "--compute",
        "float64,bfloat16",
    ),
    (
        "the children of the whole module",
        PLAIN + 'def make(): return model(Plain(), split_at="")',
        GOOD,
    ),
    (
        "a hook that renames an input, and a decorator that renames a label",
        """
import functools
def rename(module, _, named):
    return (named["image"],), {}
def renames(loss):
    @functools.wraps(loss)
    def call(output, **named): return loss(output, named["digits"])
    return call
def make():
    tokens = torch.randint(0, 16, (B, T))
    net = Net()
    net.register_forward_pre_hook(rename, with_kwargs=True)
    return Model(net, {"image": tokens}, {"digits": tokens}, renames(cross_entropy))
""",
        GOOD,
    ),
    (
        "tensors that are not in a tuple",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    return Model(Net(), tokens, tokens, cross_entropy)
""",
        GOOD,
    ),
    (
        "views that cross boundaries",
        """
class Views(Net):
    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(1, 2 * T, C))
    def forward(self, tokens):
        x = self.embedding(tokens)
        flat, places = x.flatten(1), self.places[:, :T]
        for block in self.blocks:
            x = block(x + places) + flat.view_as(x)
        return self.head(x)
def make(): return model(Views())
""",
        WARNED + "a tensor that crosses from layer to layer does not grow with the samples. "
        "It has the shape [1, 4, 8] for 4 samples and [1, 4, 8] for 2 in source.py:42: flat, "
        "places = x.flatten(1), self.places[:, :T]. So schedules that divide micro-batches",
    ),
    (
        "a block that returns its result twice",
        """
class Twice(Net):
    def forward(self, tokens):
        x = self.embedding(tokens)
        other = x.view(len(x), -1)
        for block in self.blocks:
            y = block(x) + other.view(-1, T, C)
            x, other = y, y.view(len(y), -1)
        return self.head(x) + other.sum()
def make(): return model(Twice())
""",
        GOOD,
    ),
    (
        "a parameter and a buffer that change places",
        """
class Swap(nn.Module):
    count = 0
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.randn(C))
        self.register_buffer("c", torch.randn(C))
        self.even = Swap.count % 2 == 0
        Swap.count += 1
    def forward(self, x):
        return x * self.p + self.c if self.even else x * self.c + self.p
def make(): return model(Net(Swap))
""",
        GOOD,
    ),
    (
        "modules that work in place",
        """
def make():
    return model(nn.Sequential(nn.Embedding(16, C), nn.Linear(C, C),
                               nn.ReLU(inplace=True), nn.Linear(C, 16)))
""",
        GOOD,
    ),
    (
        "a loss with a parameter",
        """
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(16))
    def forward(self, logits, labels):
        return cross_entropy(logits * self.scale, labels)
def make(): return model(Net(), Loss())
""",
        GOOD,
    ),
    (
        "a loss with a weight",
        """
def loss(logits, labels):
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return total, (labels != 3).sum()
def make(): return model(Net(), loss)
""",
        GOOD,
    ),
    (
        "a loss of three terms, by names",
        """
class Named(Net):
    def forward(self, *, words, heavy):
        return super().forward(words) * heavy[:, None, None]
def loss(logits, labels, numbers):
    chosen = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    near = (logits.mean((1, 2)) - numbers).square().sum()
    return [(chosen, (labels != 3).sum()), (near, len(numbers)), (logits.sum(), labels.sum())]
def make():
    tokens = torch.randint(0, 16, (4, 8))
    return Model(Named(), {"words": tokens, "heavy": torch.rand(4)},
                 {"labels": tokens, "numbers": torch.rand(4)}, loss)
""",
        GOOD,
    ),
    (
        "what is made of nothing",
        """
class Makes(Block):
    def forward(self, x):
        places = torch.arange(0.0, 0.8, 0.1).sum() + torch.full((), 0.1)
        return super().forward(x) * places + torch.ones(T, T).tril() @ x
def make(): return model(Net(Makes), lambda o, l: (cross_entropy(o, l), 3.2))
""",
        INDIVISIBLE,
    ),
    (
        "a term without anything that counts",
        """
def loss(logits, labels):
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return [(total, labels.numel()), (logits.sum() * 0, (labels > 99).sum())]
def make(): return model(Net(), loss)
""",
        GOOD,
    ),
    (
        "a loss that has the head",
        """
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(16, 16)
    def forward(self, hidden, labels): return cross_entropy(self.head(hidden), labels)
def make(): return model(Net(), Loss())
""",
        GOOD,
    ),
    (
        "attention of PyTorch's own",
        """
class Layer(nn.TransformerEncoderLayer):
    def __init__(self):
        super().__init__(C, 2, 16, dropout=0.0, batch_first=True)
def make(): return model(Net(Layer))
""",
        GOOD,
    ),
    (
        "frozen parameters",
        """
def make():
    net = Net()
    net.blocks[0].line.bias.requires_grad = False
    return model(net)
""",
        WITH_VALUES,
    ),
    (
        "what is changed in place",
        """
class InPlace(Block):
    def forward(self, x):
        y = self.line(x)
        z = y
        y += torch.tensor([0.5])
        return x + F.relu(y.mul_(2) + 1, inplace=True) + z
def make(): return model(Net(InPlace))
""",
        GOOD,
    ),
    (
        "a view that is changed in place and alone",
        """
class InPlace(Block):
    def forward(self, x):
        y = torch.bmm(x, x.mT).flatten(1).unsqueeze(-1)
        y.add_(1).mul_(0.1)
        return super().forward(x) + y.view(-1, T, T) @ x
def make(): return model(Net(InPlace))
""",
        GOOD,
    ),
    (
        "slices that are assigned and changed",
        """
class InPlace(Block):
    def forward(self, x):
        y = torch.empty_like(x)
        y[..., : C // 2] = self.line(x)[..., C // 2 :]
        y[..., C // 2 :] = x[..., :1]
        y[:, 0] *= 2
        y[:, 1:3, 2] += x[:, 1:3, 0]
        y[:, 1, ::2] = 0.5
        y -= 1
        y[:, 2] = y[:, 3]
        return super().forward(x) + y
def make(): return model(Net(InPlace))
""",
        GOOD,
    ),
    (
        "weights of classes in a loss with a weight",
        """
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("classes", torch.linspace(1, 2, 16))
    def forward(self, logits, labels):
        total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), self.classes,
                                reduction="sum")
        return total, self.classes[labels].sum()
def make(): return model(Net(), Loss())
""",
        GOOD,
    ),
    (
        "a weight by a tensor that the loss makes",
        """
def loss(logits, labels):
    counts = labels > torch.tensor(3)
    labels = labels.masked_fill(~counts, -100)
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return total, counts.sum()
def make(): return model(Net(), loss)
""",
        GOOD,
    ),
    (
        "whole numbers times fractions",
        """
class Whole(Block):
    def forward(self, x):
        n = torch.arange(C) + (x > 0).long()
        return super().forward(x) * (n * 0.1) + n / 7 + (x > 0) * 0.1 + torch.exp(-n) \
            + torch.where(x > 0, 0.1, 0.3) + torch.where(x > 0, n, 0.3)
def make(): return model(Net(Whole))
""",
        EXACT,
    ),
    (
        "what is changed again without views",
        """
class Twice(Block):
    def forward(self, x):
        y = self.line(x)
        y += 1
        y *= 2
        return x + y.flatten(1).view_as(x)
def make(): return model(Net(Twice))
""",
        GOOD,
    ),
    (
        "a tensor that some runs would not allow",
        """
class Wide(Block):
    def forward(self, x):
        y = self.line(x).repeat(1, 1, 40_000)
        return x + y.view(*x.shape[:2], 40_000, C).mean(2)
class Large(Net):
    def __init__(self):
        super().__init__(Wide)
        self.embedding = nn.Embedding(10_000, C)
def make(): return model(Large(), lambda o, l: cross_entropy(o, l % 16))
""",
        f"{NOTED}a tensor of 40,960,000 bytes",
    ),
    (
        "inputs that are no tokens",
        """
class Images(Net):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(6, C)
    def forward(self, pixels):
        return super().forward(pixels.flatten(2))
def make():
    return Model(Images(), (torch.rand(B, T, 2, 3),), (torch.randint(0, 16, (B, T)),),
                 cross_entropy)
""",
        f"{NOTED}tokens have no 'pixels' (float64 of shape [4, 2, 3] a sample): train on arrays",
    ),
    ("a module in eval mode", "def make(): return model(Net().eval())", EVAL),
    *[
        (
            f"activation checkpointing, {what}",
            f"""
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
class Checkpointed(Block):
    def forward(self, x): return {call}
class Sequence(Net):
    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(checkpoint_sequential(list(self.blocks), 2, x, use_reentrant=False))
def make(): return model({made})
""",
            CHECKPOINTED,
        )
        for what, call, made in (
            ("reentrant", "checkpoint(super().forward, x, use_reentrant=True)",
             "Net(Checkpointed)"),
            ("not reentrant", "checkpoint(super().forward, x, use_reentrant=False)",
             "Net(Checkpointed)"),
            ("by the module's name",
             "torch.utils.checkpoint.checkpoint(lambda y: super(Checkpointed, self)"
             ".forward(y), x, use_reentrant=False, preserve_rng_state=False)",
             "Net(Checkpointed)"),
            ("of a sequence", "x", "Sequence()"),
            ("by a wrapper", "x", "Net(lambda: checkpoint_wrapper(Block()))"),
        )
    ],
    (
        "gradients that are transposed",
        """
class Convolution(Block):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv1d(C, C, 3, padding=1)
    def forward(self, x): return self.convolution(self.line(x).mT).mT
def make(): return model(Net(Convolution))
""",
        GOOD,
    ),
    (
        "dropout of everything",
        """
class Drop(Block):
    def forward(self, x): return super().forward(x) + F.dropout(self.line(x), 1.0)
def make(): return model(Net(Drop))
""",
        GOOD,
    ),
    (
        "a compiled module",
        """
def make(): return model(torch.compile(Net()))
""",
        GOOD,
    ),
    (
        "a loss in float32",
        "def make(): return model(Net(), lambda o, l: cross_entropy(o.float(), l))",
        WARNED + "the parameters are float64, but the model computes in a smaller type, so its "
        "loss and gradients are not exact to float64:\n  in float32 in ",
    ),
    (
        "parameters over one memory",
        """
def make():
    net = Net()
    net.head.weight = nn.Parameter(net.embedding.weight.data)
    return model(net)
""",
        GOOD,
    ),
    (
        "a head that is a copy and is meant to be one",
        """
def make():
    net = Net()
    net.head.weight.data.copy_(net.embedding.weight)
    return model(net, untied=True)
""",
        GOOD,
    ),
    (
        "layers that begin alike",
        """
import copy
def make():
    net = Net()
    net.blocks[1] = copy.deepcopy(net.blocks[0])
    return model(net)
""",
        WARNED + "blocks.0.line.weight, blocks.1.line.weight have equal values",
    ),
    (
        "modules that use the number of samples",
        """
class Counts(Net):
    def forward(self, tokens):
        count = tokens.shape[0]
        x = self.embedding(tokens).reshape(count * T, C)
        for block in self.blocks: x = block(x.view(count, T, C)).reshape(count * T, C)
        rows = torch.arange(2 * count).view(2, count).sum(0) - 2 * torch.arange(count)
        return self.head(x).view(count, T, 16).mul(rows[:, None, None]) / count
def make(): return model(Counts())
""",
        GOOD,
    ),
]
