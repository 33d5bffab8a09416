# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small modules whose losses use labels in many ways: means and sums, shifts, classes,
and logits that depend on their labels. modules.py explains the form of a case."""

from modules import GOOD, INDIVISIBLE, READS, WARNED

# A warning that begins with the key must also contain the value.
REMEDIES = {
    "the loss grows with": "Return a sum with its weight: return total, labels.numel()",
    "the loss is a mean that ignores": "Return the sum and its weight, like ",
}
LOSSES = [
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
        x = self.embedding(tokens)
        x = torch.cat([self.first.expand(len(x), 1, C), x], 1)
        for block in self.blocks: x = block(x)
        return self.head(x)
def loss(o, l): return F.cross_entropy(o[:, 1:].mT, l, reduction="sum"), l.numel()
def make(): return model(Begins(), loss)
""",
        GOOD,
    ),
    (
        "probabilities of classes as labels",
        """
class Pools(Net):
    def forward(self, tokens):
        return super().forward(tokens).mean(1)
def make():
    tokens = torch.randint(0, 16, (B, T))
    return Model(Pools(), (tokens,), (torch.rand(B, 16).softmax(-1),), F.cross_entropy)
""",
        GOOD,
    ),
    (
        "a mean over labels that may all be ignored, with many classes",
        """
def make():
    net = Net()
    net.head = nn.Linear(C, 4096)
    def loss(o, l):
        k = l.masked_fill(l[:, :1] < 16, -100).flatten()
        return torch.where(k.ne(-100).any(), F.cross_entropy(o.flatten(0, 1), k), 0.0)
    return model(net, loss)
""",
        WARNED,
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
                "the loss is a mean that ignores the labels that it masks",
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
                "the loss is given as a sum with its weight, but does not grow with it: for "
                "the same tokens given twice, the weight is 8 instead of 4, but the sum is still ",
            ),
            (
                "a mean over tokens with a weight",
                "(F.cross_entropy(o.mT, l, reduction='none').mean(1).sum(), l.numel())",
                "the loss is given as a sum with its weight, but does not grow with it: for "
                "the same tokens given twice",
            ),
            (
                "one term of two",
                "[(F.cross_entropy(o.mT, l, reduction='sum'), l.numel()), "
                "(o.square().mean(), l.shape[0])]",
                "term 1 of the loss is given as a sum with its weight, but does not grow with "
                "it: for the same samples given twice, the weight is 2 instead of 1, but the sum",
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
        "a mean of the labels that count",
        """
def make():
    tokens = torch.randint(0, 16, (B, T))
    labels = tokens.clone()
    labels[: B // 2, 1:] = -100
    return Model(Net(), tokens, labels, cross_entropy)
""",
        INDIVISIBLE,
    ),
    (
        "a root of a mean, of samples that are alike",
        """
def make():
    tokens = torch.arange(T).expand(B, T).contiguous()
    return Model(Net(), tokens, tokens, lambda o, l: o[:, 0].square().mean().sqrt())
""",
        INDIVISIBLE,
    ),
    (
        "a root of a mean, of samples that are equal",
        """
def make():
    tokens = torch.full((B, T), 3)
    return Model(Net(), tokens, tokens, lambda o, l: o[:, 0].square().mean().sqrt())
""",
        INDIVISIBLE,
    ),
    (
        "a loss that compares samples",
        """
def loss(o, l):
    first, last = o[:, 0], o[:, -1]
    return F.cross_entropy(first @ last.T, torch.arange(len(o)))
def make(): return model(Net(), loss)
""",
        INDIVISIBLE,
    ),
    *[
        (
            f"labels shifted again: {name}",
            f"def make(): return model(Net(), lambda o, l: {loss})",
            "labels are the next tokens already, but it shifts 'l' by 1",
        )
        for name, loss in (
            ("both cut", "cross_entropy(o[:, :-1], l[:, 1:])"),
            ("padded", "cross_entropy(o, F.pad(l, (0, 1), value=-100)[..., 1:].contiguous())"),
            ("rolled", "F.cross_entropy(o.mT, l.roll(-1, 1))"),
            ("joined", "cross_entropy(o, torch.cat([l[:, 1:], l[:, :1] * 0 - 100], 1))"),
            ("flat", "F.cross_entropy(o.view(-1, 16)[:-1], l.view(-1)[1:])"),
            ("gathered", "-o.log_softmax(-1)[:, :-1].gather(2, l[:, 1:, None]).mean()"),
            (
                "with a weight",
                "(F.nll_loss(o[:, :-1].log_softmax(-1).mT, l[:, 1:], reduction='sum'), 12)",
            ),
        )
    ],
    *[
        (
            f"labels shifted the other way: {name}",
            f"def make(): return model(Net(), lambda o, l: {loss})",
            "but it compares them with 'l' of 1 before",
        )
        for name, loss in (
            ("both cut", "cross_entropy(o[:, 1:], l[:, :-1])"),
            ("padded", "cross_entropy(o[:, 1:], F.pad(l, (1, 0))[:, 1:-1])"),
            ("rolled", "F.cross_entropy(o.mT, l.roll(1, 1))"),
            ("flat", "F.cross_entropy(o.view(-1, 16)[1:], l.view(-1)[:-1])"),
            ("with classes second", "F.cross_entropy(o.mT[:, :, 1:], l[:, :-1])"),
            ("gathered", "-o.log_softmax(-1)[:, 1:].gather(2, l[:, :-1, None]).mean()"),
            ("logits padded", "cross_entropy(F.pad(o, (0, 0, 0, 1))[:, 1:-1], l[:, :-1])"),
            (
                "with a weight",
                "(F.nll_loss(o[:, 1:].log_softmax(-1).mT, l[:, :-1], reduction='sum'), 12)",
            ),
        )
    ],
    (
        "labels shifted again: in what the module cuts",
        """
class Cut(Net):
    def forward(self, tokens): return super().forward(tokens[:, :-1])
def make(): return model(Cut(), lambda o, l: cross_entropy(o, l[:, 1:]))
""",
        "labels are the next tokens already, but it shifts 'l' by 1",
    ),
]
