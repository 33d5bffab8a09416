# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small modules that are hard to cut or cannot be exported, and what chimera-export
answers. `exporter.py` holds it to that."""

GOOD = "--check: "
EXACT = "autograd's, bit by bit"
EVAL = "exported as it runs in eval mode"
WITH_VALUES = "--check: the"  # what has to have values
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
        "logits of before the last layer",
        """
class Both(Net):
    def forward(self, tokens):
        x = early = self.embedding(tokens) * 2
        for block in self.blocks: x = block(x)
        return self.head(x), early
def make():
    return model(Both(), lambda o, l: cross_entropy(o[0], l), logits=lambda o: o[1])
""",
        "expected logits that are computed behind the last of the modules",
    ),
    (
        "a loss without terms",
        "def make(): return model(Net(), lambda o, l: [])",
        "expected a loss of 1 to 16 terms of one type, got []",
    ),
    (
        "a label of the name that scales have",
        """
def make():
    tokens = torch.randint(0, 16, (4, 8))
    return Model(Net(), tokens, {"loss_scales": tokens}, cross_entropy)
""",
        "expected labels of another name than 'loss_scales'",
    ),
    (
        "logits of another shape",
        """
def make():
    made = model(Net())
    made.logits = lambda output: output.mean(1)
    return made
""",
        "expected logits of [samples, context, vocabulary], got",
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
        "parameters behind detach",
        """
class Detached(Block):
    def forward(self, x):
        return x + self.line(x).detach()
def make(): return model(Net(Detached))
""",
        "the loss is not differentiable in",
    ),
    (
        "an autograd function",
        """
class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clamp(-1, 1)
    @staticmethod
    def backward(ctx, g): return g * 2
class Custom(Block):
    def forward(self, x): return Through.apply(super().forward(x))
def make(): return model(Net(Custom))
""",
        "an autograd function whose own backward would not run",
    ),
    (
        "hooks on a backward",
        """
def make():
    net = Net()
    net.blocks[1].register_full_backward_hook(lambda *_: None)
    return model(net)
""",
        "'blocks.1' has one, which would not run",
    ),
    (
        "a norm over the batch",
        """
class Norm(Block):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(C)
    def forward(self, x):
        return self.norm(super().forward(x).transpose(1, 2)).transpose(1, 2)
def make(): return model(Net(Norm))
""",
        "changes blocks.0.norm.running_mean",
    ),
    (
        "a buffer that is assigned",
        """
class Counter(Block):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.ones(()))
    def forward(self, x):
        self.n = self.n * 1.5
        return super().forward(x) * self.n
def make(): return model(Net(Counter))
""",
        "whose forward changes no buffer, but it changes blocks.0.n",
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
        "a view of what is changed in place",
        """
class InPlace(Block):
    def forward(self, x):
        y = self.line(x)
        z = y.view(-1)
        y += 1
        return x + z.view_as(y)
def make(): return model(Net(InPlace))
""",
        "expected operations that change nothing in place, got aten::add_",
    ),
    (
        "a view that is changed in place",
        """
class InPlace(Block):
    def forward(self, x):
        y = self.line(x)
        y[:, 0] *= 2
        return x + y
def make(): return model(Net(InPlace))
""",
        "expected operations that change nothing in place, got aten::mul_",
    ),
    (
        "dropout of what has no samples first",
        """
class Drop(Block):
    def forward(self, x):
        return x + F.dropout(self.line.weight.sum(0)[:3].mean(0, keepdim=True), 0.5)
def make(): return model(Net(Drop))
""",
        "a tensor whose first dimension counts samples, 4 of them",
    ),
    (
        "random numbers",
        """
class Noise(Block):
    def forward(self, x): return super().forward(x) + torch.rand_like(x)
def make(): return model(Net(Noise))
""",
        "no operator but dropout that may draw random numbers, got aten::rand_like",
    ),
    (
        "a region without gradients",
        """
class NoGrad(Block):
    def forward(self, x):
        with torch.no_grad():
            scale = x.abs().mean()
        return super().forward(x) / scale
def make(): return model(Net(NoGrad))
""",
        "expected a forward without regions like torch.no_grad()",
    ),
    (
        "a loss that is a dictionary",
        "def make(): return model(Net(), lambda o, l: {'loss': cross_entropy(o, l)})",
        "expected the loss to be a tensor, or a sum and its weight, or a list",
    ),
    (
        "a loss with a dimension",
        "def make(): return model(Net(), lambda o, l: cross_entropy(o, l)[None])",
        "expected a loss of one number, got one of the shape [1]",
    ),
    (
        "a loss without a gradient",
        "def make(): return model(Net(), lambda o, l: (o.argmax(-1) == l).sum())",
        "expected a loss that depends on the parameters",
    ),
    (
        "a weight that depends on the model",
        "def make(): return model(Net(), lambda o, l: (cross_entropy(o, l), o.sum()))",
        "expected the weight of a loss to depend on labels alone",
    ),
    (
        "parameters that middle layers share",
        """
def make():
    net = Net()
    net.blocks[1].line.weight = net.blocks[0].line.weight
    return model(net)
""",
        "layers 1 and 2 share 'blocks.0.line.weight'",
    ),
    (
        "modules that run twice",
        """
class Again(Net):
    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in [*self.blocks, self.blocks[0]]:
            x = block(x)
        return self.head(x)
def make(): return model(Again())
""",
        "'blocks.0' runs again after 'blocks.2'",
    ),
    (
        "modules to cut at that there are not",
        "def make(): return model(Net(), split_at='layers')",
        "--split-at: expected a module of the model, got 'layers'",
    ),
    (
        "a large frozen parameter",
        """
class Wide(Block):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(C, 20000).requires_grad_(False)
    def forward(self, x): return super().forward(x) + self.wide(x).mean()
def make(): return model(Net(Wide))
""",
        "expected buffers and frozen parameters of at most 1048576 bytes, got one of",
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
        "a recurrent layer that drops",
        """
class Drops(Block):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(C, C, 2, batch_first=True, dropout=0.1)
    def forward(self, x): return super().forward(x) + self.lstm(x)[0]
def make(): return model(Net(Drops))
""",
        "no operator but dropout that may draw random numbers, got aten::lstm",
    ),
    (
        "an operator that is not listed",
        """
class Inverse(Block):
    def forward(self, x): return super().forward(torch.linalg.inv(x @ x.mT + torch.eye(T)) @ x)
def make(): return model(Net(Inverse))
""",
        "expected one of the operators that packages may call (operators.txt), got "
        "aten::linalg_inv_ex in 'blocks.0'",
    ),
    (
        "a mean of the labels that count, in parts",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    labels = tokens.clone()
    labels[: B // 2, 1:] = -100
    return Model(Net(), tokens, labels, cross_entropy)
""",
        "expected the loss of a micro-batch to be the mean of its parts' (--parts)",
        "--parts=2",
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
        "a view that is there when its tensor is changed again",
        """
class Twice(Block):
    def forward(self, x):
        y = self.line(x)
        y += 1
        z = y.flatten(1)
        y *= 2
        return x + z.view_as(x)
def make(): return model(Net(Twice))
""",
        "aten::mul_",
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
    ("a module in eval mode", "def make(): return model(Net().eval())", EVAL),
    (
        "an argument that the function does not have",
        "def make(): return model(Net())",
        "source.py: got an unexpected keyword argument 'layers'",
        "layers=2",
    ),
    ("no function", "nothing = 0", "expected a function 'make', found none"),
    ("something else", "def make(): return Net()", "expected a chimera_export.Model"),
]
