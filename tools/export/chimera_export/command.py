# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command chimera-export."""

import argparse
import ast
import dataclasses
import importlib.util
import inspect
import pathlib
import sys
import time
import traceback

import torch

from . import check, empty, package
from .model import Model, Refused

DESCRIPTION = """\
Exports a PyTorch model as a package of layers.

FILE is a Python file, FUNCTION a function in it (make, unless given) that
returns a chimera_export.Model: the module, example inputs and labels of one
micro-batch, and the loss. It is called with the NAME=VALUE that follow.

    chimera-export examples/models/gpt2.py layers=4 width=128 -o packages/gpt2

writes packages/gpt2/model.json, the layers, and packages/gpt2/values.safetensors,
the values of their parameters. A description names the folder:

    chimera.model @mine exported("packages/gpt2")
"""
TYPES = {"float32": torch.float32, "float64": torch.float64}


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="chimera-export",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="FILE[:FUNCTION]", help="what makes the model")
    parser.add_argument(
        "arguments", nargs="*", metavar="NAME=VALUE", help="what it is called with"
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, type=pathlib.Path,
        help="the package's folder",
    )  # fmt: skip
    parser.add_argument(
        "--split-at", metavar="PATH",
        help="the modules whose children are layers, like transformer.h "
        "(default: the largest ModuleList or Sequential)",
    )  # fmt: skip
    parser.add_argument(
        "--parts", metavar="P", type=int, action="append", default=[],
        help="export also for micro-batches in so many parts, which some "
        "schedules cut them into; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--type", choices=TYPES, help="of parameters (default: as the model has them)"
    )
    parser.add_argument(
        "--no-values", action="store_true",
        help="make the model without memory for its parameters: a run draws them "
        "or loads them from a file",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true",
        help="run the graphs and compare with PyTorch's autograd",
    )  # fmt: skip
    parser.add_argument(
        "--native", action="store_true",
        help="compile the graphs too, with PyTorch's AOTInductor and g++, into the "
        "package's folder native/: chimera-run uses it only with --allow-native-code. "
        "Takes about 5 s a graph, of which a kind of layer has up to 6",
    )  # fmt: skip
    return parser.parse_intermixed_args()


def load_function(source):
    path, _, name = source.partition(":")
    if not pathlib.Path(path).is_file():
        raise Refused(f"{path}: no such file")
    if pathlib.Path(path).suffix != ".py":
        raise Refused(f"{path}: expected a Python file, whose name ends in .py")
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name or "make", None)
    if not callable(function):
        raise Refused(f"{path}: expected a function '{name or 'make'}', found none")
    return function


def parse_values(arguments):
    values = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or not name.isidentifier():
            raise Refused(f"expected NAME=VALUE, got '{argument}'")
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            values[name] = text
    return values


def make_model(options):
    function = load_function(options.source)
    values = parse_values(options.arguments)
    try:
        inspect.signature(function).bind(**values)
    except TypeError as error:
        raise Refused(f"{options.source}: {error}") from None
    if options.type:
        # What a forward makes without saying of which type has this one too.
        torch.set_default_dtype(TYPES[options.type])
    if options.no_values:
        model = empty.without_values(lambda: function(**values))
    else:
        model = function(**values)
    if not isinstance(model, Model):
        raise Refused(
            f"{options.source}: expected a chimera_export.Model of it, got a "
            f"{type(model).__name__}"
        )
    if options.type and not options.no_values:
        model.module.to(TYPES[options.type])
    if options.split_at is not None:
        model = dataclasses.replace(model, split_at=options.split_at)
    return model


def export(options):
    started = time.monotonic()
    compiler = None
    if options.native:
        from . import native  # PyTorch's compiler takes seconds to import

        compiler = native.Compiler()
    model = make_model(options)
    samples = model.samples()
    counts = [samples]
    for parts in options.parts:
        if parts < 1 or samples % parts != 0:
            raise Refused(
                f"--parts {parts}: expected a number that divides the "
                f"{samples} samples of the example inputs"
            )
        counts.append(samples // parts)
    exporter = package.Exporter(model)
    made = exporter.export(list(dict.fromkeys(counts)))
    if options.check:
        check.compare(made, model)
    if compiler:
        exporter.compile(made, compiler)
    archives = compiler.archives if compiler else {}
    package.write(made, model, options.output, exporter.has_values, archives)
    if not model.module.training:
        print(
            "exported as it runs in eval mode, which from_pretrained leaves it in: "
            "without dropout, unless you call its train()"
        )
    for note in exporter.notes:
        print(note)
    used = package.names_of(made)
    unused = [n for n, _ in model.named_parameters() if n not in used]
    if unused:
        print(f"not exported, for the loss does not depend on it: {', '.join(unused)}")
    parameters = sum(
        p.numel() for n, p in model.named_parameters() if n in used
    )
    print(
        f"{options.output}: {len(made['layers'])} layers of "
        f"{len(made['kinds'])} kinds, {parameters:,} parameters, for "
        f"{' or '.join(map(str, dict.fromkeys(counts)))} samples, "
        f"{time.monotonic() - started:.1f} s"
    )
    if compiler:
        for reason in compiler.interpreted:
            print(f"not compiled: {reason}")
        print(f"{options.output / 'native'}: {compiler.functions} graphs")


def main():
    options = parse_arguments()
    try:
        export(options)
        return 0
    except Refused as refused:
        print(f"chimera-export: {refused}", file=sys.stderr)
    except OSError as error:
        print(f"chimera-export: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("chimera-export: interrupted", file=sys.stderr)
        return 130
    except Exception as error:  # a user's code, or PyTorch's
        traceback.print_exc()
        print(
            f"chimera-export: {type(error).__name__} while exporting "
            f"{options.source}, see above",
            file=sys.stderr,
        )
    return 1
