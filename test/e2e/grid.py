# Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptions of every scheme of the registry with every option, for the scripts
that compile and run all of them."""

import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile

CONCATENATIONS = ("direct", "eager", "doubling", "fine-tuned-doubling", "halving")
WITHOUT_FLUSH = ("pipedream", "pipedream-2bw")
SPLITS = ("", "split_backward")
RECOMPUTES = ("", "recompute(all)", "recompute(all fused)", "recompute([0])")
# The clauses for the reduction of gradients. The descriptions take them in turn.
REDUCTIONS = (
    "",
    "all_reduce(eager)",
    "all_reduce(eager_opt)",
    "bucket_bytes(32)",
    "all_reduce(eager) bucket_bytes(24)",
)
# The clauses for the number of receives that are posted ahead. The descriptions take
# them in turn.
WINDOWS = ("", "receive_window(1)", "receive_window(2)", "receive_window(99)")
# With this clause, each stage also holds a copy of its parameters, in bf16. The copy
# has no gradient.
COPIED = "activation_type(bf16)"


def tied_model(stages):
    """The description of a model, @m, whose first and last stage have the same matrix.
    The matrix has 5 elements of 4 bytes, so its size is not a multiple of 8 bytes."""
    return (
        f"chimera.model @m gpt2 layers({max(1, stages - 2)}) heads(1) width(1) "
        "context(2) vocabulary(5) tied\n"
    )


def gpt2_sizes(text):
    """The sizes of the GPT-2 in a description, as a dictionary."""
    clauses = re.search(r"\bgpt2\b((?:\s+\w+(?:\([^()]*\))?)*)", text)[1]
    given = dict(re.findall(r"(\w+)\(([^()]*)\)", clauses))
    sizes = {
        name: int(given[name])
        for name in ("layers", "heads", "width", "context", "vocabulary")
    }
    return sizes | {
        "dropout": float(given.get("dropout", 0)), "tied": "tied" in clauses.split(),
    }  # fmt: skip


def schedules(stages):
    """Yields (scheme, clauses of the schedule with its options, number of workers) for
    each schedule that accepts this number of stages."""
    if stages >= 2:
        for pipelines in range(2, stages + 1, 2):
            if pipelines > 2 and stages % pipelines:
                continue
            for concatenation in CONCATENATIONS:
                yield "chimera", (
                    f'schedule("chimera", {{pipelines = {pipelines}, '
                    f'concatenation = "{concatenation}"}})'
                ), stages
        yield "gems", 'schedule("gems")', stages
    for scheme in ("gpipe", "1f1b") + WITHOUT_FLUSH:
        yield scheme, f'schedule("{scheme}")', stages
    for chunks in (2, 3):
        if stages % chunks == 0:
            workers = stages // chunks
            looped = f'schedule("interleaved-1f1b") workers({workers})'
            yield "interleaved-1f1b", looped, workers
    if stages % 2 == 0:
        workers = stages // 2
        yield "zb-v", f'schedule("zb-v") workers({workers})', workers


def accepts(scheme, workers, batches):
    """Whether a scheme accepts this number of micro-batches."""
    if scheme in WITHOUT_FLUSH:
        return batches >= workers
    if scheme == "interleaved-1f1b":
        return batches % max(1, batches // workers) == 0
    return True


def grid(most_stages):
    """Yields descriptions with S stages, at most `most_stages`, and at most 4 S
    micro-batches."""
    reductions = itertools.cycle(REDUCTIONS)
    # This cycle has five windows. Five is coprime to the length of the cycles of widths
    # and splits, so all combinations occur.
    windows = itertools.cycle(WINDOWS + WINDOWS[:1])
    # Every third description has a tied model, if its schedule allows one. In every
    # second one of these, each stage also holds a copy of its parameters.
    ties = itertools.cycle((False, False, True))
    sizes = itertools.cycle(
        f"micro_batch_size(2) {types}" for types in ("", f"{COPIED} ")
    )
    # Three of seven descriptions clip gradients, if their schedule allows it.
    clips = itertools.cycle((True, False, True, False, False, True, False))
    for stages in range(1, most_stages + 1):
        for batches in range(1, 4 * stages + 1):
            for scheme, schedule, workers in schedules(stages):
                if not accepts(scheme, workers, batches):
                    continue
                for split in SPLITS:
                    for recompute in RECOMPUTES:
                        for width in (1, 2):
                            tied = next(ties) and stages > 1
                            tied = tied and scheme not in WITHOUT_FLUSH
                            model = tied_model(stages) if tied else ""
                            of = "of @m " if tied else ""
                            if next(clips) and scheme not in WITHOUT_FLUSH:
                                model += "chimera.training @t clip_norm(1.0)\n"
                                of += "with @t "
                            size = next(sizes) if tied else ""
                            window = next(windows)
                            if scheme == "zb-v" and window == WINDOWS[1]:
                                # With a V placement, messages between two workers
                                # overtake each other, so one posted receive is not
                                # enough.
                                window = ""
                            yield (
                                f"{model}chimera.pipeline @p {of}stages({stages}) "
                                f"micro_batches({batches}) "
                                f"{schedule} {size}data_parallel({width}) "
                                f"{recompute} {split} {next(reductions)} "
                                f"{window}\n"
                            )


def failure(command, status, output):
    """The error of a command that has failed."""
    return RuntimeError(f"{' '.join(command)}\nended with {status}:\n{output}")


def run(*command):
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        raise failure(words, result.returncode, result.stdout + result.stderr)
    return result.stdout


def compile_to(tools, description, program, *options):
    """Compiles a description. Returns the compiler's processor time in seconds, which
    depends little on the other load of the machine."""
    source = program.with_suffix(".mlir")
    source.write_text(description)
    command = tools / "chimera-compile", source, "-o", program, *options
    words = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as output:
        compiler = subprocess.Popen(words, stdout=output, stderr=output)
        _, status, used = os.wait4(compiler.pid, 0)
        compiler.returncode = os.waitstatus_to_exitcode(status)
        if compiler.returncode != 0:
            output.seek(0)
            raise failure(words, compiler.returncode, output.read())
    return used.ru_utime + used.ru_stime


def in_parallel(function, items):
    """Calls `function` on the items and yields the results in order. A failure ends the
    script with its text. Runs one call more at a time than there are cores, because the
    processes of a job often wait for each other."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        try:
            yield from pool.map(function, items)
        except RuntimeError as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(str(error))
