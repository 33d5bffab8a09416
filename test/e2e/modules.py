# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small modules that are hard to cut but are exported, and what chimera-export answers.
`exporter.py` holds it to that."""

GOOD = "--check: "
EXACT = "autograd's, bit by bit"
EVAL = "exported as it runs in eval mode"
CHECKPOINTED = "note: exported as if it checkpointed no activations"
WITH_VALUES = "--check: the"  # what has to have values
WARNED = "chimera-export: warning: "
NOTED = "chimera-export: note: "
READS = NOTED + "the logits of a position depend on later tokens"
# Of the cases that are about something else, those whose logits depend on later tokens.
READING = {
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
# What it is about, the function `make` (or more before it), a part of the answer, and
# options.
CASES = [
    ("a plain net", "def make(): return model(Net())", GOOD),
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
        GOOD,
    ),
    (
        "a block that returns its result twice",
        """
class Twice(Net):
    def forward(self, tokens):
        x = self.embedding(tokens)
        other = x.view(B, -1)
        for block in self.blocks:
            y = block(x) + other.view(B, T, C)
            x, other = y, y.view(B, -1)
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
    return [(chosen, (labels != 3).sum()), (near, 4), (logits.sum(), labels.sum())]
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
        GOOD,
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
        return super().forward(x) + y.view(B, T, T) @ x
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
    *[
        (f"a loss: {name}", f"def make(): return model(Net(), lambda o, l: {loss})", GOOD)
        for name, loss in (
            ("with classes second", "F.cross_entropy(o.mT, l)"),
            ("of the end of a text", "cross_entropy(o[:, 2:], l[:, 2:])"),
            ("of the begin of a text", "cross_entropy(o[:, :-1], l[:, :-1])"),
            (
                "with a later token too",
                "cross_entropy(o, l) + 0.1 * cross_entropy(o[:, :-1], l[:, 1:])",
            ),
            ("by hand", "-o.log_softmax(-1).gather(2, l[:, :, None]).mean()"),
            (
                "with an earlier token too",
                "cross_entropy(o, l) + 0.1 * cross_entropy(o[:, 1:], l[:, :-1])",
            ),
            ("without the first classes", "F.cross_entropy(o[..., 0:].mT, l)"),
        )
    ],
    (
        "a module that shifts its tokens itself",
        """
class Shifts(Net):
    def forward(self, tokens):
        return super().forward(F.pad(tokens, (1, 0))[:, :-1])
def make():
    return model(Shifts(), lambda o, l: cross_entropy(o[:, 1:], l[:, :-1]))
""",
        GOOD,
    ),
    (
        "positions before the text",
        """
class Begins(Net):
    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(1, C))
    def forward(self, tokens):
        x = torch.cat([self.first.expand(B, 1, C), self.embedding(tokens)], 1)
        for block in self.blocks: x = block(x)
        return self.head(x)
def loss(o, l): return F.cross_entropy(o[:, 1:].mT, l, reduction="sum"), l.numel()
def make(): return model(Begins(), loss)
""",
        GOOD,
    ),
    (
        "more classes than tokens",
        """
def make():
    net = Net()
    net.head = nn.Linear(C, 24)
    return model(net)
""",
        GOOD,
    ),
    (
        "a padding token that is no class",
        """
def make():
    net = Net()
    net.embedding = nn.Embedding(17, C)
    def loss(o, l):
        return F.cross_entropy(o.mT, l, ignore_index=16, reduction="sum"), (l != 16).sum()
    return model(net, loss)
""",
        GOOD,
    ),
    *[
        (
            f"fewer classes than tokens, {name}",
            f"""
def make():
    net = Net()
    net.embedding = nn.Embedding(40, C)
    return model(net, lambda o, l: {loss})
""",
            WARNED + "labels are compared with logits of 16 classes in the loss, source.py:",
        )
        for name, loss in (
            ("flat", "cross_entropy(o, l)"),
            ("with classes second", "F.cross_entropy(o.mT, l)"),
            ("by hand", "-o.log_softmax(-1).gather(2, l[:, :, None]).mean()"),
        )
    ],
    (
        "fewer classes than tokens, whose labels are made fewer",
        """
def make():
    net = Net()
    net.embedding = nn.Embedding(40, C)
    return model(net, lambda o, l: cross_entropy(o, l.clamp(max=15)))
""",
        GOOD,
    ),
    *[
        (
            f"a model that is not causal: {name}",
            f"""
class Reads(Block):
    def __init__(self):
        super().__init__()
        self.{layer}
    def forward(self, x): return x + {call}
def make(): return model(Net(Reads), lambda o, l: {loss})
""",
            READS,
        )
        for name, layer, call, loss in (
            ("a line over time", "time = nn.Linear(T, T)", "self.time(x.mT).mT",
             "cross_entropy(o, l)"),
            ("an encoder", "time = nn.TransformerEncoderLayer(C, 2, 16, 0.0, batch_first=True)",
             "self.time(x)", "F.cross_entropy(o.mT, l)"),
            ("a convolution", "time = nn.Conv1d(C, C, 3, padding=1)", "self.time(x.mT).mT",
             "(F.cross_entropy(o.mT, l, reduction='sum'), l.numel())"),
            ("blocks of two", "time = nn.Linear(2, 2)",
             "self.time(x.mT.unflatten(2, (-1, 2))).flatten(2).mT", "cross_entropy(o, l)"),
            ("of which a part counts", "time = nn.Linear(T, T)", "self.time(x.mT).mT",
             "cross_entropy(o[:, 1:], l[:, 1:])"),
        )
    ],
    *[
        (f"a causal model: {name}", f"""
class Causal(Block):
    def __init__(self):
        super().__init__()
        self.time = {layer}
    def forward(self, x): return x + {call}
def make(): return model(Net(Causal))
""", GOOD)
        for name, layer, call in (
            ("an encoder", "nn.TransformerEncoderLayer(C, 2, 16, dropout=0.0, batch_first=True)",
             "self.time(x, nn.Transformer.generate_square_subsequent_mask(T), is_causal=True)"),
            ("a convolution", "nn.Conv1d(C, C, 3)", "self.time(F.pad(x.mT, (2, 0))).mT"),
            ("a recurrent one", "nn.LSTM(C, C, batch_first=True)", "self.time(x)[0]"),
        )
    ],
    (
        "a model of masked tokens",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    class Reads(Block):
        def forward(self, x): return super().forward(x) + x.mean(1, keepdim=True)
    def loss(o, labels):
        total = F.cross_entropy(o.mT, labels, ignore_index=-100, reduction="sum")
        return total, (labels != -100).sum()
    labels = torch.where(tokens < 4, tokens, -100)
    labels[:, 0] = 1
    return Model(Net(Reads), {"tokens": tokens}, {"labels": labels}, loss)
""",
        GOOD,
    ),
    *[
        (
            f"a mean that is none: {name}",
            f"def make(): return model(Net(), lambda o, l: {loss})",
            WARNED + answer,
        )
        for name, loss, answer in (
            (
                "a sum",
                "F.cross_entropy(o.mT, l, reduction='sum')",
                "the loss grows with the number of samples and of tokens: it is ",
            ),
            (
                "a sum over tokens",
                "F.cross_entropy(o.mT, l, reduction='none').sum(1).mean()",
                "the loss grows with the number of tokens: it is ",
            ),
            (
                "a label that does not count",
                "F.cross_entropy(o.mT, l, ignore_index=3)",
                "the loss is a mean that ignores the label 3",
            ),
            (
                "labels that are hidden",
                "F.cross_entropy(o.mT, l.masked_fill(l < 3, -100))",
                "the loss is a mean that ignores labels that it hides",
            ),
            (
                "weights of classes",
                "F.cross_entropy(o.mT, l, torch.linspace(1, 2, 16, dtype=o.dtype))",
                "the loss is a mean that weighs classes",
            ),
            (
                "a quotient",
                "F.cross_entropy(o.mT, l, reduction='sum') / (l != 3).sum()",
                "the loss is divided by a number that depends on labels",
            ),
            (
                "a mean with a weight",
                "(cross_entropy(o, l), l.numel())",
                "the loss is given as a sum with its weight, but does not grow with it: of the "
                "same tokens twice the weight is 8 and no more 4, but the sum still ",
            ),
            (
                "a mean over tokens with a weight",
                "(F.cross_entropy(o.mT, l, reduction='none').mean(1).sum(), l.numel())",
                "the loss is given as a sum with its weight, but does not grow with it: of the "
                "same tokens twice",
            ),
            (
                "one term of two",
                "[(F.cross_entropy(o.mT, l, reduction='sum'), l.numel()), "
                "(o.square().mean(), l.shape[0])]",
                "term 1 of the loss is given as a sum with its weight, but does not grow with "
                "it: of the same samples twice the weight is 2 and no more 1, but the sum",
            ),
        )
    ],
    (
        "a mean of labels of which some are ignored",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    return Model(Net(), tokens, tokens.masked_fill(torch.arange(T) < 2, -100), cross_entropy)
""",
        WARNED + "the loss is a mean that ignores the label -100, which the examples have",
    ),
    (
        "a mean of masked tokens",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    def loss(o, labels, next_sentence_label):
        return cross_entropy(o, labels) + F.cross_entropy(o[:, 0], next_sentence_label)
    return Model(Net(), tokens, {"labels": tokens, "next_sentence_label": tokens[:, 0]}, loss)
""",
        WARNED + "the loss is a mean that ignores the labels of tokens that are not masked",
    ),
    (
        "examples that are all alike, in parts",
        """
def make():
    tokens = torch.full((B, T), 3)
    return Model(Net(), tokens, tokens, cross_entropy)
""",
        WARNED + "it cannot be told whether the loss is the mean of its parts' (--parts), for "
        "the examples are all alike",
        "--parts=2",
    ),
    (
        "a loss that does not run with other sizes",
        """
def loss(o, l): return (o.mean((1, 2)) * torch.arange(4)).sum()
def make(): return model(Net(), loss)
""",
        WARNED + "it cannot be told whether the loss is a mean, for it does not run with "
        "another number of samples",
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
]
