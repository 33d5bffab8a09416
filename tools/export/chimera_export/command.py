# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command chimera-export."""

import argparse
import dataclasses
import importlib.util
import inspect
import logging
import pathlib
import signal
import sys
import time
import traceback

from . import Refused, arguments

DESCRIPTION = """\
Exports a PyTorch model as a package of layers.

FILE is a Python file, FUNCTION a function in it (make, unless given) that
returns a chimera_export.Model: the module, example inputs and labels of one
micro-batch, and the loss. NAME=VALUE are the arguments of the function.

    chimera-export examples/models/gpt2.py layers=4 width=128 -o packages/gpt2

writes packages/gpt2/model.json, the layers, and packages/gpt2/values.safetensors,
the values of their parameters. A description names the folder:

    chimera.model @mine exported("packages/gpt2")
"""


def parse_arguments():
    parser = arguments.Parser(
        prog="chimera-export",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="FILE[:FUNCTION]", help="the file and function that make the model")
    parser.add_argument(
        "arguments", nargs="*", metavar="NAME=VALUE", help="arguments of the function"
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, type=pathlib.Path,
        help="the package's folder",
    )  # fmt: skip
    parser.add_argument(
        "--split-at", metavar="PATH",
        help="the module whose children become layers, like transformer.h; \"\" for the "
        "whole module. Default: of the ModuleLists and Sequentials with at least half as "
        "many parameters as the largest one, the one with most children",
    )  # fmt: skip
    parser.add_argument(
        "--type", choices=("float32", "float64"), type=arguments.parse_type,
        help="type of the parameters (default: the model's)",
    )  # fmt: skip
    parser.add_argument(
        "--compute", metavar="TYPES", type=arguments.parse_compute,
        help="the types in which runs can compute, divided by commas: float32, bfloat16, "
        "float64 (default: all that the model can). The type of the parameters is always "
        "one of them",
    )  # fmt: skip
    parser.add_argument(
        "--no-values", action="store_true",
        help="make the model without memory for its parameters: a run draws their "
        "values or loads them from a file",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true",
        help="run the graphs and compare with PyTorch's autograd; needs a model without "
        "dropout, such as in eval mode",
    )  # fmt: skip
    parser.add_argument(
        "--native", action="store_true",
        help="also compile the graphs with PyTorch's AOTInductor and g++, into the "
        "package's folder native/, for micro-batches of as many samples as the examples. "
        "chimera-run uses it only with --allow-native-code. Takes about 5 s per graph; a "
        "kind of layer has up to 6 graphs",
    )  # fmt: skip
    parser.add_argument(
        "--verbose", action="store_true",
        help="if there is an error, print Python's whole traceback. By default, a refusal "
        "has none, and other errors have only the frames of your own code",
    )  # fmt: skip
    return parser.parse_intermixed_args()


def load_function(source):
    path, name = arguments.split_source(source)
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # where dataclasses look for it
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        arguments.refuse_function(path, name, [])
    return function


def make_model(options):
    import torch

    from . import empty, ties
    from .model import Model

    function = load_function(options.source)
    values = arguments.parse_values(options.arguments)
    arguments.check_values(options.source, inspect.signature(function), values)
    dtype = getattr(torch, options.type) if options.type else None
    if dtype:
        # Tensors that a forward makes without a dtype must get this type, too.
        torch.set_default_dtype(dtype)
    if options.no_values:
        model = empty.without_values(lambda: function(**values))
    else:
        model = function(**values)
    if not isinstance(model, Model):
        raise Refused(
            f"{options.source}: expected it to return a chimera_export.Model, got a value "
            f"of type {type(model).__name__}"
        )
    if dtype and not options.no_values:
        ties.tie_shared_memory(model)  # before the cast, which would separate them
        model.module.to(dtype)
    if options.split_at is not None:
        model = dataclasses.replace(model, split_at=options.split_at)
    return model


def export(options):
    started = time.monotonic()
    arguments.check(options)
    import torch

    from . import exporting, initial

    # If the user's function runs what torch.compile has made, it would take minutes.
    torch.compiler.set_stance("force_eager")
    if not options.verbose:
        # This logger prints PyTorch's frames of an error that is raised, too.
        logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    compiler = None
    if options.native:
        from . import native  # PyTorch's compiler takes seconds to import

        compiler = native.Compiler()
    model = make_model(options)
    types = options.compute and [getattr(torch, name) for name in options.compute]
    made = exporting.export(model, options.output, types, options.check, compiler)
    if not model.module.training:
        print(
            "exported in eval mode, so without dropout. Call the module's train() to "
            "export dropout"
        )
    if made.unused:
        print(
            f"not exported, because the loss does not depend on it: {', '.join(made.unused)}"
        )
    if options.no_values and (text := initial.missing(
        {n: p for n, p in model.named_parameters() if n in made.used}
    )):  # fmt: skip
        print(text)
    print(
        f"{options.output}: {made.layers} layers of {made.kinds} kinds, "
        f"{made.parameters:,} parameters, for {', '.join(made.types)}, "
        f"{time.monotonic() - started:.1f} s"
    )
    if compiler:
        for reason in compiler.interpreted:
            print(f"not compiled: {reason}")
        print(f"{options.output / 'native'}: {compiler.functions} graphs")


def print_error(options, error):
    """Prints an error that the user's code, PyTorch or the exporter raised."""
    from . import frames

    advice = ""
    # If no frame is the user's, the fault is not in the user's code.
    if not options.verbose and (text := frames.short_traceback(error)):
        print(text, end="", file=sys.stderr)
        advice = " (--verbose prints all frames)"
    else:
        traceback.print_exc()
    print(
        f"chimera-export: {type(error).__name__} while exporting "
        f"{options.source}, see above{advice}",
        file=sys.stderr,
    )


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        export(options)
        return 0
    except Refused as refused:
        if options.verbose:
            traceback.print_exc()
        print(f"chimera-export: {refused}", file=sys.stderr)
    except OSError as error:
        print(f"chimera-export: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("chimera-export: interrupted", file=sys.stderr)
        return 130
    except Exception as error:  # a user's code, or PyTorch's
        print_error(options, error)
    return 1
