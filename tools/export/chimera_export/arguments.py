# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the arguments of chimera-export before PyTorch is imported, because the import
takes seconds. Checks the user's file without running it."""

import argparse
import ast
import difflib
import inspect
import json
import os
import pathlib

from . import Refused

# The files of a package, except native code.
MODEL_FILE, VALUES_FILE = "model.json", "values.safetensors"
# The types in which runs can compute.
COMPUTE = ("float32", "bfloat16", "float64")
# If a module calls one of these functions, only running it tells which names it binds.
BINDING = ("exec", "globals", "locals", "setattr", "vars")


def near(name, names, cutoff=0.6):
    """'; did you mean …?' with the most similar of the names, or an empty string."""
    names = list(names)
    found = difflib.get_close_matches(name, names, 1, cutoff) or [
        n for n in names if n.lower() == name.lower()
    ]
    return f"; did you mean {found[0]}?" if found else ""


class Parser(argparse.ArgumentParser):
    """A parser whose errors suggest the option that may have been meant."""

    def error(self, message):
        start = "unrecognized arguments: "
        if message.startswith(start):
            given = message.removeprefix(start).split()[0]
            options = [o for action in self._actions for o in action.option_strings]
            name, equals, value = given.partition("=")
            hint = near(name, [o for o in options if o.startswith("--")], 0.7)
            if not hint and equals:
                hint = (
                    "; an argument of the function is given as "
                    f"{name.lstrip('-').replace('-', '_')}={value}"
                )
            message += hint
        super().error(message)


def split_source(source):
    """The file and the function of FILE[:FUNCTION]."""
    path, _, name = source.partition(":")
    return pathlib.Path(path), name or "make"


def parse_values(arguments):
    """The values of NAME=VALUE by name: Python literals, otherwise strings."""
    values = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or not name.isidentifier():
            raise Refused(f"expected NAME=VALUE, got '{argument}'")
        if name in values:
            raise Refused(f"expected '{name}' once, got it twice")
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            if text.lower() in ("true", "false", "none"):
                raise Refused(
                    f"{argument}: expected {name}={text.capitalize()}, as in Python, because "
                    "other words are strings"
                ) from None
            values[name] = text
    return values


def parse_type(name):
    """The value of --type. Says how to compute in a type of 16 bits."""
    if name.startswith("bf") or name.endswith("16") or name == "half":
        raise argparse.ArgumentTypeError(
            f"expected float32 or float64, the types of parameters, got {name}: a run with "
            "parameters of float32 can compute in bfloat16, and weight_type(bf16) in the "
            "pipeline rounds its parameters"
        )
    return name


def parse_compute(text):
    """The value of --compute, as a list of names."""
    names = text.split(",")
    if not set(names) <= set(COMPUTE):
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(COMPUTE)}, got '{text}'")
    return names


def check(options):
    """Refuses arguments that are wrong for every model."""
    if options.check and options.no_values:
        raise Refused("--check needs the parameters' values: leave out --no-values")
    values = parse_values(options.arguments)
    path, name = split_source(options.source)
    _check_output(options.output)
    _check_overwritten(options.output, {"FILE": path, **values})
    _check_file(path)
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise Refused(f"{path}{f':{line}' if line else ''}: {error}") from None
    bound, definitions = _names(tree)
    if bound is not None and name not in bound:
        refuse_function(path, name, definitions)
    definition = definitions.get(name)
    if definition is not None and not definition.decorator_list:
        check_values(options.source, _signature(definition.args), values)


def _check_output(folder):
    """Refuses an output folder that cannot be written to. The check comes early,
    because a package is written only after minutes of work."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise Refused(f"--output {folder}: expected a folder, but {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise Refused(f"--output {folder}: no permission to write in {there}")


def _check_overwritten(folder, given):
    """Refuses to overwrite files that are not a package. `given` has the arguments that
    may be paths of files or folders to read, by name."""
    written = [folder / name for name in (MODEL_FILE, VALUES_FILE)]
    for use, path in given.items():
        for output in (folder, *written):
            if isinstance(path, (str, pathlib.Path)) and are_same(path, output):
                raise Refused(
                    f"expected different files, got '{path}' for {use} and '{output}' for "
                    "--output"
                )
    there = [output for output in written if os.path.lexists(output)]
    advice = "give --output another folder, or remove it"
    for output in there:
        if output.exists() and not output.is_file():
            raise Refused(f"--output {folder}: expected a file {output.name}, or none: {advice}")
    if written[0].exists() and not is_package(written[0]):
        raise Refused(
            f"--output {folder}: expected a package or no {MODEL_FILE}, got one of "
            f"something else, which would be lost: {advice}"
        )
    if written[1].exists() and not written[0].exists():
        raise Refused(
            f"--output {folder}: expected a package or no {VALUES_FILE}, got one without a "
            f"{MODEL_FILE}, which would be lost: {advice}"
        )


def are_same(one, other):
    """Whether two paths name the same existing file."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # not a path
        return False


def is_package(path):
    """Whether a file is a package's model.json."""
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(made, dict) and isinstance(made.get("packages"), list)


def _check_file(path):
    if path.is_dir():
        raise Refused(f"{path}: expected a Python file, got a folder")
    if not path.is_file():
        beside = path.parent.glob("*.py") if path.parent.is_dir() else []
        raise Refused(f"{path}: no such file{near(path.name, [p.name for p in beside])}")
    if path.suffix != ".py":
        raise Refused(f"{path}: expected a Python file, whose name ends in .py")


def refuse_function(path, name, names):
    hint = near(name, names)
    if not hint and names:
        hint = f"; it has {', '.join(names)}"
    raise Refused(f"{path}: expected a function '{name}', found none{hint}")


def check_values(source, signature, values):
    """Refuses values that do not fit the function's signature."""
    try:
        signature.bind(**values)
    except TypeError as error:
        unknown = [n for n in values if n not in signature.parameters]
        hint = near(unknown[0], signature.parameters) if unknown else ""
        if not hint:
            hint = f"; it takes {', '.join(signature.parameters) or 'none'}"
        raise Refused(f"{source}: {error}{hint}") from None


def _names(tree):
    """Returns the names that a module binds, and its function definitions by name.
    Instead of the names, returns None if only running the module can tell them."""
    bound, definitions, rest = set(), {}, list(tree.body)
    for node in rest:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
            if isinstance(node, ast.FunctionDef):
                # If a name has several definitions, only running the module tells which
                # is used.
                definitions[node.name] = None if node.name in definitions else node
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if alias.name == "*":
                    return None, definitions
                bound.add((alias.asname or alias.name).split(".")[0])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in BINDING:
            return None, definitions
        rest.extend(ast.iter_child_nodes(node))
    return (None if "__getattr__" in bound else bound), definitions


def _signature(arguments):
    """The signature of a parsed function. Default values are not evaluated."""
    Parameter = inspect.Parameter
    made = []

    def add(kind, names, defaults):
        for argument, default in zip(names, defaults):
            empty = Parameter.empty if default is None else None
            made.append(Parameter(argument.arg, kind, default=empty))

    given = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(given) - len(arguments.defaults)) + arguments.defaults
    count = len(arguments.posonlyargs)
    add(Parameter.POSITIONAL_ONLY, given[:count], defaults[:count])
    add(Parameter.POSITIONAL_OR_KEYWORD, given[count:], defaults[count:])
    if arguments.vararg:
        add(Parameter.VAR_POSITIONAL, [arguments.vararg], [None])
    add(Parameter.KEYWORD_ONLY, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg:
        add(Parameter.VAR_KEYWORD, [arguments.kwarg], [None])
    return inspect.Signature(made)
