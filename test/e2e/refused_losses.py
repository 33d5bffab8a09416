# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that cannot be exported because of their loss, labels or logits. Each has the
output that `exporter.py` expects of chimera-export. modules.py explains the form of a
case."""

REFUSED_LOSSES = [
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
        "expected logits that are computed after the last module of 'blocks', got earlier ones",
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
        "expected no label with the reserved name 'loss_scales'",
    ),
    (
        "a label that is no parameter of the loss",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    return Model(Net(), {"tokens": tokens}, {"digits": tokens}, cross_entropy)
""",
        "expected labels that fit the parameters of the loss after the module's result "
        "('labels'), got 'digits': rename a parameter or its tensor, or give labels as a tuple",
    ),
    (
        "a label that is no parameter of a loss that is a module",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    return Model(Net(), {"tokens": tokens}, {"digits": tokens}, nn.CrossEntropyLoss())
""",
        "the parameters of CrossEntropyLoss.forward after the module's result ('target'), got "
        "'digits'",
    ),
    (
        "a label too few",
        "def make(): return model(Net(), lambda o, l, weights: cross_entropy(o, l))",
        "('l', 'weights'), got 'l': missing a required argument: 'weights'",
    ),
    (
        "logits of another shape",
        """
def make():
    made = model(Net())
    made.logits = lambda output: output.mean(1)
    return made
""",
        "expected logits of [samples, context, vocabulary], or of the shape of the only",
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
        "an operator in a loss",
        """
def penalty(logits):
    return torch.linalg.inv(logits[0, :T, :T] + 9 * torch.eye(T)).sum()
def make(): return model(Net(), lambda o, l: cross_entropy(o, l) + penalty(o))
""",
        "got aten::linalg_inv_ex in the loss, source.py:37: return torch.linalg.inv(",
    ),
    (
        "an operator in a loss that is a module",
        """
class Loss(nn.Module):
    def forward(self, logits, labels):
        return cross_entropy(logits, labels) + logits.kthvalue(2).values.sum()
def make(): return model(Net(), Loss())
""",
        "got aten::kthvalue in the loss, source.py:38: return cross_entropy(",
    ),
    (
        "an operator, with an example of one sample",
        """
def make():
    tokens = torch.randint(0, 16, (1, T))
    return Model(Net(), tokens, tokens, lambda o, l: cross_entropy(o, l) + o.kthvalue(1)[0].sum())
""",
        "chimera-export: expected one of the operators that packages may call",
    ),
    (
        "a loss for one number of samples",
        """
def loss(o, l): return (o.mean((1, 2)) * torch.arange(4)).sum()
def make(): return model(Net(), loss)
""",
        "expected a model that takes every number of samples, got one that takes 4 but not 2 "
        "in the loss, source.py:36: def loss(o, l): return",
    ),
    (
        "a product with the inverse of the number of samples",
        "def make(): return model(Net(), lambda o, l: o.square().sum() * (1 / len(o)))",
        "expected the same number for every number of samples, got 0.25, 0.5 and ",
    ),
    (
        "a size that is no multiple of the samples",
        """
def loss(o, l): return cross_entropy(o, l) + 0 * o.new_ones(len(o) ** 2).mean()
def make(): return model(Net(), loss)
""",
        "expected sizes that are a constant plus a multiple of the number of samples, got 16, "
        "4 and 9 for 4, 2 and 3 samples in aten::new_ones in the loss, source.py:36: ",
    ),
    (
        "a loss that decides by the number of samples",
        """
def loss(o, l): return cross_entropy(o.tanh() if len(o) > 3 else o, l)
def make(): return model(Net(), loss)
""",
        "expected the same operations for every number of samples, got others in ",
    ),
]
