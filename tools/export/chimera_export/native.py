# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the graphs of layers with AOTInductor, for runs that allow native code.

A subgraph is a part of a layer's graphs that runtime/model/graph/Layer runs as one
function. Each subgraph becomes a shared library. Its arguments are the inputs of the
subgraph, in the order of the graph's inputs, and its results are the outputs. One
archive has the libraries of one layer for the number of samples of the examples:
FOLDER/native/SHA-256.pt2. A library does not check its arguments. So its metadata
describes them (key `chimera`), and the runtime compares this description with its
tensors.
"""

import contextlib
import hashlib
import io
import json
import logging
import os
import platform
import shutil
import tempfile
import warnings
from unittest import mock

import torch
import torch._inductor
from torch import fx
from torch._inductor import config, cpp_builder, cpu_vec_isa
from torch._inductor.package import package_aoti

from . import calls, graphs, joint, linear_cross_entropy
from .model import Refused

# The instruction sets that the compiler may use. The keys are PyTorch's names for the
# capability of an x86-64 processor.
LEVELS = {"DEFAULT": "x86-64", "AVX2": "x86-64-v3", "AVX512": "x86-64-v4"}
OPTIONS = {
    "aot_inductor.package": True,
    # Do not link LibTorch: the runtime has its own, the small one without Python.
    "aot_inductor.link_libtorch": False,
    # The run decides the number of threads.
    "cpp.dynamic_threads": True,
}


def subgraphs(made, forward, backward):
    """Yields for each subgraph its name, its graph, the numbers of the graph's nodes,
    and the numbers of its inputs and outputs. `forward` and `backward` number the nodes
    of the two graphs. Layer.cpp makes the same subgraphs."""

    def of(ports, numbers, *roles):
        return [numbers[p.node] for p in ports if not roles or p.role in roles]

    outputs = of(made.forward.outputs, forward, "Output")
    taken = {p.index for p in made.backward.inputs if p.role == "Output"}
    saved = of(made.forward.outputs, forward, "Saved") + [
        forward[p.node]
        for p in made.forward.outputs
        if p.role == "Output" and p.index in taken
    ]
    gradients = of(made.backward.outputs, backward, "InputGradient")
    of_weights = of(made.backward.outputs, backward, "WeightGradient")
    kept = [backward[node] for node in made.kept]
    own = of(made.backward.inputs, backward, "Parameter", "Constant")
    given, given_back = of(made.forward.inputs, forward), of(made.backward.inputs, backward)
    wanted = {
        "forward": (made.forward, forward, given, saved + outputs),
        "outputs": (made.forward, forward, given, outputs),
        "saved": (made.forward, forward, given, saved),
        "backward": (made.backward, backward, given_back, gradients + of_weights),
        "input_half": (made.backward, backward, given_back, gradients + kept),
        "weight_half": (made.backward, backward, kept + own, of_weights),
    }
    for name, (function, numbers, inputs, results) in wanted.items():
        results = [n for n in dict.fromkeys(results) if n not in inputs]
        if results:
            yield name, function.graph, numbers, inputs, results


def _signature(value):
    return {**graphs.shape_of(value), "strides": [int(n) for n in value.stride()]}


@contextlib.contextmanager
def _for_all_of_a_kind():
    """A context in which the compiler generates code for all processors with the same
    instruction sets as this one. By default PyTorch generates code for exactly this
    processor."""
    if platform.machine() != "x86_64":
        cpu_vec_isa.valid_vec_isa_list()  # call it before OPTIONS apply, because it links libtorch
        yield
        return
    kind = torch.backends.cpu.get_cpu_capability()
    vectors = [
        isa for isa in cpu_vec_isa.supported_vec_isa_list if str(isa) == kind.lower()
    ]
    whole = cpp_builder._get_optimization_cflags

    def flags(*arguments, **options):
        of_compiler, of_linker = whole(*arguments, **options)
        return [
            f"march={LEVELS[kind]}" if f == "march=native" else f for f in of_compiler
        ], of_linker

    with (
        mock.patch.object(cpp_builder, "_get_optimization_cflags", flags),
        mock.patch.object(cpu_vec_isa, "valid_vec_isa_list", lambda: vectors),
        config.patch({"cpp.vec_isa_ok": True}),  # PyTorch itself uses them
    ):
        yield


class Compiler:
    """Compiles subgraphs with AOTInductor. Raises Refused if there is no C++
    compiler."""

    def __init__(self):
        compiler = os.environ.get("CXX", "g++")
        if shutil.which(compiler) is None:
            raise Refused(
                f"--native: expected a C++ compiler, but found no {compiler} (the "
                "variable CXX names another)"
            )
        # Each library has a folder of its own. By default PyTorch puts libraries into
        # one cache, and names each by a part of its code. So another process could
        # overwrite a library before it is packaged here, if it compiles the same graph
        # or the same graph in another type.
        self.folder = tempfile.TemporaryDirectory(prefix="chimera-native-")
        self.archives = {}  # by digest
        self.functions = 0
        self.interpreted = []  # subgraphs that are not compiled, with the reason
        self.known = {}

    def compile(self, made, forward, backward, name):
        """Compiles the subgraphs of a layer. Returns the digest of the archive, or None
        if no subgraph could be compiled. `name` is for messages."""
        if any(calls.has_dropout(node) for node in made.forward.graph.nodes):
            self.interpreted.append(f"{name}: it has dropout, whose elements the runtime draws")
            return None
        if linear_cross_entropy.is_in(made.backward):
            self.interpreted.append(f"{name}: the runtime computes its logits in blocks of rows")
            return None
        files = {}
        for function, graph, numbers, inputs, results in subgraphs(
            made, forward, backward
        ):
            try:
                files[function] = self._library(graph, numbers, inputs, results)
            except Exception as error:  # PyTorch's, or its compiler's
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                self.interpreted.append(f"{name}, {function}: {reason}")
        if not files:
            return None
        self.functions += len(files)
        archive = io.BytesIO()
        package_aoti(archive, files)
        digest = hashlib.sha256(archive.getvalue()).hexdigest()
        self.archives[digest] = archive.getvalue()
        return digest

    def _library(self, graph, numbers, inputs, results):
        """The files of a subgraph's library."""
        nodes = {}
        for node, number in numbers.items():
            nodes.setdefault(number, node)
        values = [nodes[n].meta["val"] for n in inputs]
        cut = joint._extract(
            None, graph, [nodes[n] for n in inputs], [nodes[n] for n in results], None
        )
        for node in cut.nodes:
            node.meta = {}  # belongs to another trace
        signature = json.dumps(
            {
                "processor": torch.backends.cpu.get_cpu_capability(),
                "inputs": [_signature(v) for v in values],
                "results": len(results),
            }
        )
        key = f"{cut}\n{signature}"
        if key not in self.known:
            self.known[key] = self._compile(cut, values, signature)
        return self.known[key]

    def _compile(self, graph, values, signature):
        arguments = [
            torch.empty_strided(tuple(v.shape), v.stride(), dtype=v.dtype)
            for v in values
        ]
        logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
        with warnings.catch_warnings(), _for_all_of_a_kind(), torch.no_grad():
            warnings.simplefilter("ignore")
            files = torch._inductor.aot_compile(
                fx.GraphModule(torch.nn.Module(), graph),
                tuple(arguments),
                options={
                    **OPTIONS,
                    "aot_inductor.output_path": tempfile.mkdtemp(dir=self.folder.name),
                    "aot_inductor.metadata": {"chimera": signature},
                },
            )
        if any(file.endswith(".wrapper.json") for file in files):
            raise RuntimeError("it calls operators that compiled code cannot call alone")
        wanted = (".so", ".wrapper_metadata.json")
        return [file for file in files if file.endswith(wanted)]
