# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paper's measurements: Li and Hoefler, "Chimera: Efficiently Training Large-Scale
Neural Networks with Bidirectional Pipelines", SC'21.

Throughputs are in sequences per second, read off the figures to about half a sequence.
Memory is in GB, read to about 0.1. A bar is one configuration that was run.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Model:
    """A transformer with a head that has weights of its own, in float32."""

    name: str
    layers: int
    width: int
    heads: int
    sequence: int
    vocabulary: int
    # Parameters of the embedding and of the head in addition to vocabulary * width
    # each.
    embedding_rest: int
    head_rest: int

    @property
    def layer_parameters(self):
        return 12 * self.width**2 + 13 * self.width

    @property
    def embedding_parameters(self):
        return self.vocabulary * self.width + self.embedding_rest

    @property
    def head_parameters(self):
        return self.vocabulary * self.width + self.head_rest

    @property
    def parameters(self):
        return (
            self.embedding_parameters
            + self.layers * self.layer_parameters
            + self.head_parameters
        )


# BERT's embedding has 512 positions, two segments and a norm. Its head has a transform
# with a norm, a bias for each word, the pooler and the classifier of the next sentence.
BERT = Model(
    "BERT-48", 48, 1024, 16, 128, 30522,
    embedding_rest=(512 + 2 + 2) * 1024,
    head_rest=2 * 1024 * (1024 + 1) + 2 * 1024 + 30522 + 2 * 1024 + 2,
)  # fmt: skip
# GPT-2's embedding has 1024 positions, whatever the length is. Its head has a norm.
GPT2 = Model(
    "GPT-2", 64, 1280, 20, 632, 50257,
    embedding_rest=1024 * 1280,
    head_rest=2 * 1280,
)  # fmt: skip
GPT2_32 = dataclasses.replace(GPT2, name="GPT-2 (32 layers)", layers=32)


@dataclasses.dataclass(frozen=True)
class Bar:
    """A configuration and the paper's measurement: sequences per second, or None if it
    ran out of memory."""

    figure: str
    model: Model
    scheme: str
    width: int  # W, data-parallel copies
    depth: int  # D, stages
    batch: int  # B, samples of a micro-batch
    micro_batches: int  # N, of a worker in a step
    measured: float | None
    recompute: bool = False
    pipelines: int = 2  # of Chimera
    concatenation: str = "direct"  # of Chimera

    @property
    def nodes(self):
        return self.width * self.depth

    @property
    def mini_batch(self):
        return self.width * self.batch * self.micro_batches

    @property
    def name(self):
        words = [self.figure, self.model.name, self.label, f"W{self.width}"]
        words += [f"D{self.depth}", f"B{self.batch}", f"N{self.micro_batches}"]
        return " ".join(words + ["R"] * self.recompute)

    @property
    def label(self):
        """The scheme, with the details that distinguish it in the paper."""
        if self.scheme != "Chimera":
            return self.scheme
        if self.pipelines != 2:
            return f"Chimera, {self.pipelines} pipelines"
        if self.concatenation != "direct":
            return f"Chimera, {self.concatenation}"
        return "Chimera"

    @property
    def configuration(self):
        """The configuration itself, whichever figure shows it."""
        return dataclasses.replace(self, figure="", measured=None)


def bar(figure, model, scheme, width, depth, batch, mini_batch, measured, **options):
    return Bar(
        figure, model, scheme, width, depth, batch,
        mini_batch // (width * batch), measured, **options,
    )  # fmt: skip


# PipeDream updates after each micro-batch, so its mini-batch is one micro-batch of each
# copy and N means nothing. We use so many that each stage has one in flight.
def pipedream(figure, model, width, depth, mini_batch, measured, recompute=False):
    return Bar(
        figure, model, "PipeDream", width, depth, mini_batch // width, depth,
        measured, recompute,
    )  # fmt: skip


# Eq. 1 and the paper's own measurements, with B-hat 512: (measurement, Eq. 1's
# prediction).
EQUATION = [
    (bar("Eq. 1", model, "Chimera", width, depth, batch, 512, measured,
         recompute=recompute), modelled)
    for model, width, depth, batch, recompute, measured, modelled in (
        (BERT, 2, 16, 16, False, 129.2, 142.0),
        (BERT, 4, 8, 16, False, 157.2, 163.4),
        (BERT, 8, 4, 8, False, 173.3, 169.6),
        (BERT, 16, 2, 4, False, 134.0, 123.7),
        (GPT2, 8, 64, 1, False, 116.7, 128.3),
        (GPT2, 16, 32, 1, False, 140.1, 149.2),
        (GPT2, 32, 16, 1, True, 129.2, 138.8),
        (GPT2, 64, 8, 1, True, 142.5, 141.6),
    )
]  # fmt: skip

OOM = None


def fig10():
    """BERT-48 on 32 nodes, mini-batches of 512."""
    shapes = ((2, 16), (4, 8), (8, 4), (16, 2))
    gpipe = (
        (68.3, 96.5, 110.6, 105.3, 84.6),
        (75.3, 118.7, 131.9, 124.4, 100.0),
        (77.7, 114.3, 135.2, 131.9, 110.2),
        (67.7, 89.2, 100.1, 99.6, 100.0),
    )
    dapple = (
        (58.6, 95.0, 121.2, 120.5, 109.8),
        (72.2, 120.6, 146.9, 135.6, 126.2),
        (75.5, 124.4, 150.1, 145.3, 140.7),
        (77.7, 108.9, 113.4, 131.6, 102.4),
    )
    two = ((113.6, 131.4), (104.1, 129.3), (130.3, 151.4), (112.6, OOM))
    gems = (
        (9.3, 15.4, 19.8, 20.3, 22.8, 25.3, 24.7),
        (17.1, 29.4, 37.7, 42.4, 45.9, 50.0, 47.6),
        (28.4, 45.5, 62.3, 63.0, 70.0, 73.1),
        (37.9, 50.0, 56.8, 49.5, OOM),
    )
    versions = ((24, 75.0), (48, 89.8), (80, 82.7), (128, 50.8))
    name = "Fig. 10"
    for row, (width, depth) in enumerate(shapes):
        for scheme, values, first in (
            ("GPipe", gpipe[row], 0),
            ("DAPPLE", dapple[row], 0),
            ("2BW", two[row], 3),
            ("GEMS", gems[row], 0),
        ):
            for power, measured in enumerate(values, first):
                batch = 2**power
                recompute = scheme == "GPipe" or (scheme, depth, batch) in (
                    ("DAPPLE", 2, 16), ("2BW", 8, 16), ("2BW", 4, 16)
                )  # fmt: skip
                yield bar(
                    name, BERT, scheme, width, depth, batch, 512, measured,
                    recompute=recompute,
                )  # fmt: skip
        mini_batch, measured = versions[row]
        yield pipedream(name, BERT, width, depth, mini_batch, measured)


def fig11():
    """GPT-2 on 512 nodes, mini-batches of 512, all with recomputation except GEMS."""
    name = "Fig. 11"
    for scheme, values in (
        ("GPipe", (78.0, 92.0, 101.0, 71.0)),
        ("DAPPLE", (90.0, 98.5, 94.0, 60.0)),
        ("2BW", (116.0, 126.0, 106.0, OOM)),
    ):
        for depth, measured in zip((32, 16, 8, 4), values):
            yield bar(
                name, GPT2, scheme, 512 // depth, depth, 1, 512, measured,
                recompute=True,
            )  # fmt: skip
    for depth, mini_batch, measured in ((32, 16, OOM), (16, 96, 45.0), (8, 128, 77.0)):
        yield pipedream(name, GPT2, 512 // depth, depth, mini_batch, measured, True)
    # The fourth mini-batch is not given; one sample per copy is the minimum.
    yield pipedream(name, GPT2, 128, 4, 128, OOM, True)
    yield bar(name, GPT2, "GEMS", 64, 8, 2, 512, 56.0)


def weak_scaling():
    name = "weak scaling"
    for row, nodes in enumerate((16, 32, 64)):
        for scheme, depth, batch, recompute, values in (
            ("2BW", 4, 16, True, (80.0, 153.3, 293.6)),
            ("GPipe", 4, 4, True, (71.7, 135.2, 258.2)),
            ("GEMS", 4, 32, False, (39.1, 73.0, 141.6)),
            ("DAPPLE", 4, 4, False, (76.1, 150.1, 286.8)),
            ("Chimera", 4, 8, False, (89.0, 173.3, 341.0)),
        ):
            yield bar(
                name, BERT, scheme, nodes // depth, depth, batch, 16 * nodes,
                values[row], recompute=recompute,
            )  # fmt: skip
        measured = (48.7, 89.8, 172.2)[row]
        yield pipedream(name, BERT, nodes // 8, 8, 24 * nodes // 16, measured)
    for row, nodes in enumerate((512, 1024, 2048)):
        for scheme, depth, batch, recompute, values in (
            ("2BW", 16, 1, True, (128.3, 231.5, 438.8)),
            ("GPipe", 16 if row else 8, 1, True, (100.7, 179.3, 360.6)),
            ("GEMS", 8, 2, False, (55.8, 111.2, 219.3)),
            ("DAPPLE", 16, 1, True, (98.5, 192.9, 371.1)),
            ("Chimera", 32, 1, False, (140.1, 278.6, 512.4)),
        ):
            yield bar(
                name, GPT2, scheme, nodes // depth, depth, batch, nodes, values[row],
                recompute=recompute,
            )  # fmt: skip
        measured = (77.5, 148.8, 254.7)[row]
        yield pipedream(name, GPT2, nodes // 8, 8, 128 * nodes // 512, measured, True)


def large_mini_batches():
    name = "large mini-batches"
    for column, mini_batch in enumerate((512, 1024, 2048, 3072, 4096)):
        later = column > 0
        for scheme, batch, options, values in (
            ("2BW", 32 if later else 16, {"recompute": True},
             (153.3, 206.3, 224.9, 234.0, 236.8)),
            ("Chimera", 8, {}, (173.4, 201.8, 220.9, 229.0, 230.9)),
            ("Chimera", 8, {"recompute": True, "concatenation": "doubling"},
             (166.7, 189.0, 202.6, 208.1, 209.8)),
            ("Chimera", 4, {"concatenation": "halving"},
             (159.2, 185.7, 202.7, 210.1, 214.2)),
            ("DAPPLE", 8 if later else 4, {},
             (150.1, 183.3, 207.4, 221.7, 226.4)),
            ("GPipe", 8 if later else 4, {"recompute": True},
             (135.2, 169.6, 196.8, 208.5, 214.0)),
            ("GEMS", 32, {}, (73.1, 93.0, 107.8, 113.2, 116.0)),
        ):  # fmt: skip
            yield bar(
                name, BERT, scheme, 8, 4, batch, mini_batch, values[column], **options
            )
    recompute = {"recompute": True}
    for column, mini_batch in enumerate((512, 1024, 1536, 2048)):
        later = column > 0
        # At 512 both bars of Chimera are the one of the weak scaling.
        chimera = (8, recompute) if later else (32, {})
        doubling = {"concatenation": "doubling"} if later else {}
        for scheme, (depth, options), values in (
            ("Chimera", (chimera[0], chimera[1] | doubling),
             (140.1, 190.9, 202.1, 222.3)),
            ("Chimera", chimera, (140.1, 169.4, 182.6, 191.1)),
            ("GPipe", (8, recompute), (100.7, 159.1, 185.5, 211.1)),
            ("2BW", (8 if later else 16, recompute), (126.2, 165.5, 184.6, 194.2)),
            ("DAPPLE", (8 if later else 16, recompute), (98.5, 140.2, 160.0, 170.4)),
            ("GEMS", (8, {}), (55.8, 64.4, 80.4, 91.8)),
        ):  # fmt: skip
            batch = 2 if scheme == "GEMS" else 1
            yield bar(
                name, GPT2, scheme, 512 // depth, depth, batch, mini_batch,
                values[column], **options,
            )  # fmt: skip


def pipelines():
    """GPT-2 of 32 layers on 64 nodes, mini-batches of 64. One pipeline is DAPPLE."""
    for width, depth, values in (
        (2, 32, (21.9, 27.1, 28.3, 26.4, 22.2)),
        (4, 16, (28.0, 33.0, 30.1, 26.1)),
    ):
        for power, measured in enumerate(values):
            scheme = "Chimera" if power else "DAPPLE"
            yield bar(
                "pipelines", GPT2_32, scheme, width, depth, 1, 64, measured,
                pipelines=2**power if power else 2,
            )  # fmt: skip


def bars():
    for figure in (fig10, fig11, weak_scaling, large_mini_batches, pipelines):
        yield from figure()
    yield from (bar for bar, _ in EQUATION)


# The values of Fig. 9: the largest and the smallest number of GB of any worker, or None if a
# worker ran out of memory.
SCHEMES_9 = ("Chimera", "DAPPLE", "GEMS", "PipeDream", "2BW", "GPipe")
FIGURE_9 = (
    (BERT, 2, 16, 8,
     ((7.9, 5.7), (8.1, 3.0), (3.3, 2.6), (12.5, 3.4), (8.6, 3.4), OOM)),
    (BERT, 4, 8, 8,
     ((9.2, 7.6), (8.3, 4.3), (4.9, 3.7), (12.1, 5.1), (9.5, 4.6), OOM)),
    (BERT, 4, 8, 16, ((15.7, 12.6), (14.8, 6.0), (6.4, 4.7), OOM, OOM, OOM)),
    (GPT2_32, 1, 32, 1, ((7.8, 4.9), (8.6, 1.2), (3.9, 1.4), OOM, (9.3, 1.4), OOM)),
    (GPT2_32, 2, 16, 1, ((8.4, 5.9), (8.8, 1.9), (4.8, 2.4), OOM, (10.4, 2.9), OOM)),
    (GPT2_32, 2, 16, 2, ((15.2, 10.2), (15.6, 2.9), (6.2, 3.2), OOM, OOM, OOM)),
)  # fmt: skip
