//===- chimera-run.cpp - Trains from a program file -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/PlannedLoads.h"
#include "runtime/train/RunAsRank.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Signals.h"
#include "tools/CommandLine.h"
#include "tools/Commands.h"
#include "tools/MissingOptions.h"
#include "tools/Start.h"
#include "tools/TrainingOptions.h"
#include "tools/Version.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <sys/resource.h>
#include <unistd.h>

using namespace chimera;

/// Returns `status`, or 1 after an error message if standard output could not
/// be written.
static int statusOfOutput(int status, bool hasOutput) {
  std::cout.flush();
  if (hasOutput && std::fflush(stdout) == 0 && !std::ferror(stdout) &&
      std::cout)
    return status;
  std::fprintf(stderr, "chimera-run: cannot write to standard output\n");
  return 1;
}

/// Raises the limit of open files as far as the system allows, because a rank
/// may have connections to all others. If the limit is still too low, a
/// connection fails with an error.
static void openManyFiles() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0)
    return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

/// The message of a command line error. CLI11's text for an option that is
/// given twice does not say so.
static std::string messageOf(const CLI::Error &error) {
  const std::string text = error.what();
  constexpr std::string_view kTwice = ": At Most 1 required but received ";
  const size_t at = text.find(kTwice);
  if (at == text.npos)
    return text;
  return text.substr(0, at) + ": expected it once, got it " +
         text.substr(at + kTwice.size()) + " times";
}

static int run(int argc, char **argv) {
  bool hasOutput = guardOutputs();
  // If the reader of the log or of standard output has gone, writing is an
  // error like a full disk: it does not end the training.
  std::signal(SIGPIPE, SIG_IGN);
  runtime::setEndProcess([](int status) { _exit(status); });
  runtime::Signals::blockUserSignals();
  openManyFiles();
  CLI::App app(
      "Runs the training step of a compiled program.\n\n"
      "All ranks are threads of this process, or each process is one rank:\n"
      "under mpirun or srun over MPI; under torchrun over TCP. Without a\n"
      "launcher, set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (of rank "
      "0)\n"
      "for each process; ranks then connect over TCP.\n\n"
      "SIGUSR1 stops the run after its step, with its results. SIGUSR2 writes\n"
      "a checkpoint (--checkpoint) after the step. SIGINT and\n"
      "SIGTERM end the run and report what each rank was doing. With\n"
      "--checkpoint or --save, the run ends after its step. It then writes a\n"
      "checkpoint, or the weights to FILE.last-finite. It ends at once "
      "without\n"
      "these options, on a second signal, or after --grace.",
      "chimera-run");
  app.set_version_flag("--version", std::string("chimera-run ") + kVersion);
  RunSettings settings;
  auto addFile = [&app](const char *name, std::string &file, const char *help) {
    return app.add_option(name, file, help)
        ->type_name("FILE")
        ->check(fileName());
  };
  addFile("PROGRAM", settings.program, "Program file (chimera-compile)");
  app.add_option(
         "--stages", settings.stages,
         "How stages compute: model (the layers of the program's model, "
         "in LibTorch), exact (integers that check the program), "
         "synthetic (sleeps); auto: model, or exact if the program has "
         "no model")
      ->check(oneOf(stageKinds()))
      ->capture_default_str();
  app.add_option("--data", settings.data,
                 "A file of tokens to train on. If the model has 256 tokens, "
                 "also a text, whose bytes are the tokens: a file, or a pipe "
                 "of at most 4 GiB. Also arrays: "
                 "FIELD=FILE.npy, FILE.npz or FILE.safetensors. A folder "
                 "stands for its files (FIELD=FOLDER for .npy). Repeat --data "
                 "for more files")
      ->type_name("FILE")
      ->check(fileName())
      ->allow_extra_args(false);
  app.add_option("--tokens", settings.tokens,
                 "Format of --data: bytes (each byte is a token), uint16 or "
                 "uint32 (as files of nanoGPT and llm.c); auto: from llm.c's "
                 "header or the .idx file beside Megatron's .bin file, else "
                 "bytes if the model has 256 tokens")
      ->check(oneOf(tokenKinds(), {{"text", kBytes},
                                   {"uint8", kBytes},
                                   {"int16", kUInt16},
                                   {"int32", kUInt32}}))
      ->capture_default_str();
  app.add_option("--read-ahead", settings.readAhead,
                 "The number of steps whose samples a thread of each rank "
                 "reads ahead of the training; 0: ranks read samples when they "
                 "need them")
      ->transform(wholeWithin(0, runtime::kMaxReadAhead))
      ->capture_default_str();
  app.add_flag("--trust-data", settings.trustData,
               "Do not check all tokens and labels before the first step. A "
               "token outside the model's vocabulary, or a label that is no "
               "class, then ends the run in the step that draws it");
  app.add_option("--mask", settings.mask,
                 "Train to predict masked tokens, as BERT does. This is the "
                 "token [MASK], which replaces them. Labels of all other "
                 "tokens are -100")
      ->transform(wholeWithin(0, uint64_t(1) << 32));
  app.add_option("--mask-rate", settings.maskRate,
                 "Fraction of the tokens that --mask chooses")
      ->check(within(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--pairs", settings.pairs,
                 "Train on pairs of sentences, as BERT does. These are the "
                 "tokens [CLS], [SEP] and [PAD]. Give --mask too if the model "
                 "also predicts tokens")
      ->type_name("CLS,SEP,PAD")
      ->delimiter(',')
      ->expected(3)
      ->transform(wholeWithin(0, uint64_t(1) << 32));
  app.add_flag("--within-documents", settings.withinDocuments,
               "Each sample is a window of one document, and no window "
               "crosses the end of a document (see --document-end). Documents "
               "shorter than a window are left out");
  app.add_option("--document-end", settings.documentEnd,
                 "The token that ends a document, beside the ends in "
                 "Megatron's .idx file: for --within-documents, --pairs, and "
                 "models with position_ids, which keep documents apart")
      ->transform(wholeWithin(0, uint64_t(1) << 32));
  addFile("--load", settings.load,
          "Start from the weights in this safetensors file, index of several "
          "files, or folder with model.safetensors, its index or a package's "
          "values.safetensors. bfloat16 and float16 are converted (default: "
          "weights are drawn)");
  addFile("--names", settings.names,
          "With --load, --save, --save-gradients and checkpoints: a JSON file "
          "that maps parameters to names of tensors in these files, and says "
          "which of them are transposed");
  app.add_option("--allow-native-code", settings.allowNativeCode,
                 "Run the native code in this folder of chimera-export "
                 "--native instead of an exported model's graphs. Results are "
                 "equal up to rounding. Security: anybody who can write to the "
                 "folder can run code as you")
      ->type_name("FOLDER")
      ->check(fileName("folder"));
  app.add_option("--generate", settings.generate,
                 "Do not train: continue --prompt by this number of tokens, "
                 "with the weights of --load. If tokens are bytes, prints the "
                 "prompt and the new text, else the numbers of the new "
                 "tokens")
      ->transform(wholeWithin(1, uint64_t(1) << 32));
  addFile("--prompt", settings.prompt,
          "With --generate: the text or the file of tokens to continue (for "
          "its format see --tokens)");
  app.add_option("--temperature", settings.temperature,
                 "With --generate: divide the logits by this before drawing a "
                 "token; 0: take the likeliest token")
      ->check(within(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--generate-seed", settings.generateSeed,
                 "With --generate: the seed for drawing tokens")
      ->transform(wholeWithin(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--steps", settings.steps,
                 "Training steps, including those before --resume; 0: save the "
                 "initial weights (--save) or state (--checkpoint)")
      ->transform(wholeWithin(0, uint64_t(1) << 40))
      ->capture_default_str();
  app.add_option("--epochs", settings.epochs,
                 "Instead of --steps: train on all samples of --data this "
                 "number of times. Each epoch has another random order")
      ->transform(wholeWithin(1, uint64_t(1) << 40));
  app.add_option("--last-batch", settings.lastBatch,
                 "If the samples of an epoch are no whole number of "
                 "mini-batches: drop (leave out the rest, other samples in "
                 "each epoch) or fill (take the missing samples from the next "
                 "epoch)")
      ->check(oneOf(lastBatchKinds()))
      ->capture_default_str();
  addTrainingOptions(app, settings);
  addFile("--save", settings.save,
          "Write the trained weights to this safetensors file; "
          "if that fails, to the current folder or $TMPDIR. A run that "
          "diverges writes its last finite weights to FILE.last-finite "
          "instead. So does a run without --checkpoint that gets SIGINT or "
          "SIGTERM");
  addFile("--save-gradients", settings.saveGradients,
          "Write the last step's gradients of the mean loss to this "
          "safetensors file");
  app.add_option("--checkpoint", settings.checkpoint,
                 "Write checkpoints to this folder: weights, optimizer state "
                 "and position. One is written at the end of the run, also "
                 "after SIGUSR1, SIGINT and SIGTERM, and after each SIGUSR2")
      ->type_name("FOLDER")
      ->check(fileName("folder"));
  app.add_option("--checkpoint-every", settings.checkpointEvery,
                 "Also write a checkpoint each time after this number of "
                 "steps. Training continues meanwhile")
      ->transform(wholeWithin(1, uint64_t(1) << 40));
  app.add_option("--keep", settings.keep,
                 "The number of newest checkpoints to keep; 0: all")
      ->transform(wholeWithin(0, uint64_t(1) << 40))
      ->capture_default_str();
  app.add_option("--resume", settings.resume,
                 "Continue from the newest complete checkpoint in this folder, "
                 "or from this checkpoint. If there is none yet, start at the "
                 "first step (with --load, if given). Schedule, workers, "
                 "copies and transport may differ from the run before")
      ->type_name("FOLDER")
      ->check(fileName("folder"));
  addFile("--log", settings.log,
          "Write one JSON object per line: one for each step, then a summary. "
          "The file is FILE.part until the run ends. A run that resumes "
          "continues an existing log. Otherwise an existing log of either "
          "name is renamed to FILE.1, FILE.2, …");
  app.add_option(
         "--tensorboard", settings.tensorboard,
         "Write the numbers of --log to this folder, for TensorBoard. A "
         "run that resumes continues the curves")
      ->type_name("FOLDER")
      ->check(fileName("folder"));
  addFile("--profile", settings.profile,
          "Write a profile as JSON: for each stage the times of its actions, "
          "for each rank its waits, in ns. A run that resumes keeps those of "
          "the runs before it");
  addFile("--trace", settings.trace,
          "Write a timeline of all ranks in the last step as a Chrome trace "
          "(open it in ui.perfetto.dev, or compare it with chimera-show "
          "--measured). A run that resumes keeps those of the runs before it");
  app.add_option("--trace-steps", settings.traceSteps,
                 "With --trace: the number of last steps to write")
      ->transform(wholeWithin(1, 1'000'000))
      ->capture_default_str();
  addFile("--calibrate", settings.calibrate,
          "Do not run a program: measure layers, updates, messages and "
          "all-reduces on at least 2 ranks (on GPUs with --device cuda), and "
          "write them to this file as chimera.machine @here");
  app.add_option("--ranks", settings.ranks,
                 "With --calibrate: the number of ranks, which are threads of "
                 "this process")
      ->transform(wholeWithin(2, runtime::kMaxThreads));
  app.add_option("--threads", settings.threads,
                 "Threads that compute for one rank (default: an equal share "
                 "of the cores, minus one if the rank has a progress thread, "
                 "at least 1)")
      ->transform(wholeWithin(1, 1000000));
  app.add_option(
         "--timeout", settings.timeout,
         "Seconds after which a wait for another rank fails, or (also with "
         "--sequential) a save without progress. Time while the process is "
         "stopped does not count; 0: never (default: 1800)")
      ->check(within(0.0, 1e9));
  app.add_option(
         "--grace", settings.grace,
         "With --save or --checkpoint: seconds after SIGINT or SIGTERM in "
         "which "
         "a run may end its step and save its state; then it ends at once; 0: "
         "none "
         "(default: 25, but 0.6 under mpirun, which kills ranks after 1 s)")
      ->check(within(0.0, 1e6));
  app.add_flag("--sequential", settings.sequential,
               "Train the same model on one device, without a pipeline");
  app.add_option(
         "--hold-out", settings.holdOut,
         "Fraction of the text, at its end, that is not trained on but used "
         "for evaluation")
      ->check(within(0.0, 0.99))
      ->capture_default_str();
  app.add_option(
         "--validation", settings.validation,
         "Instead of --hold-out: a file for evaluation, in the forms of "
         "--data. Repeat it as --data")
      ->type_name("FILE")
      ->check(fileName())
      ->allow_extra_args(false);
  app.add_option("--evaluate-samples", settings.evaluateSamples,
                 "Number of held-out samples to evaluate on, rounded up to "
                 "whole mini-batches, at most all; 0: none. They are evenly "
                 "spaced over the held-out part")
      ->transform(wholeWithin(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--evaluate-every", settings.evaluateEvery,
                 "Evaluate on held-out text each time after this number of "
                 "steps, and not only at the end")
      ->transform(wholeWithin(1, uint64_t(1) << 40));
  app.add_option(
         "--unit-ns", settings.unitNanoseconds,
         "With --stages synthetic: nanoseconds of sleep for each unit "
         "of an action's cost. If the program has a model but no times, "
         "a unit is a floating-point operation")
      ->check(within(0.0, 1e9))
      ->capture_default_str();
  app.add_flag(
      "--check-replicas", settings.checkReplicas,
      "Fail if the weights of all replicas are not bit-identical at the end");
  app.add_flag("--quiet", settings.quiet, "Print results and errors only");
  app.add_option("--transport", settings.transport,
                 "Transport of values between ranks; auto: mpi under mpirun "
                 "and srun, tcp in other jobs, else in-process")
      ->check(oneOf(transportKinds()))
      ->capture_default_str();
  app.add_option(
         "--device", settings.device,
         "Where ranks compute: host; cuda (GPUs: values move over NCCL, or by "
         "copies if ranks are threads that share GPUs; ranks find each other "
         "over --transport); or simulated (one thread runs all ranks on "
         "devices that execute operations later, in an order from "
         "--device-seed, and reports races on memory)")
      ->check(oneOf(deviceKinds(), {{"gpu", kCuda}, {"cpu", kHost}}))
      ->capture_default_str();
  app.add_flag("--cuda-graphs", settings.cudaGraphs,
               "With --device cuda: capture each action of a stage as a CUDA "
               "graph, which the host launches faster. Needs a program with a "
               "flush and without dropout; for other programs the run says "
               "that it uses no graphs");
  app.add_option("--device-seed", settings.deviceSeed,
                 "The seed of simulated devices")
      ->transform(wholeWithin(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--progress", settings.progress,
                 "Over MPI: a thread in each rank that moves messages while "
                 "the rank computes; auto: on if each rank has one core more "
                 "than --threads, or without --threads at least 8 cores")
      ->check(oneOf(progressKinds()))
      ->capture_default_str();
  app.add_option(
         "--all-reduce", settings.allReduce,
         "How replicas sum: ordered (in the program's order, with results "
         "that are bit-identical on all transports) or transport "
         "(MPI_Iallreduce or ncclAllReduce, which may round differently)")
      ->check(oneOf(allReduceKinds()))
      ->capture_default_str();

  app.allow_extras();
  app.failure_message([](const CLI::App *app, const CLI::Error &error) {
    std::string unknown = unknownArgument(*app, adviceFor);
    return "chimera-run: " + (unknown.empty() ? messageOf(error) : unknown) +
           "\nRun with --help for more information.\n";
  });
  try {
    app.parse(argc, argv);
    if (!unknownArgument(app, adviceFor).empty())
      throw CLI::ExtrasError(app.get_name(), app.remaining());
    for (const CLI::Option *option : app.get_options())
      if (option->count() > 0)
        settings.givenOptions.insert("--" + option->get_single_name());
    if (settings.program.empty() && settings.calibrate.empty())
      throw CLI::RequiredError("PROGRAM");
  } catch (const CLI::ParseError &error) {
    bool isWrong = error.get_exit_code() != 0;
    if (isWrong)
      runtime::reportFailureToJob(messageOf(error));
    // Ignore CLI11's exit status, which only says which of its rules was
    // broken.
    app.exit(error);
    return isWrong ? 1 : statusOfOutput(0, hasOutput);
  }
  try {
    if (!hasOutput)
      throw std::runtime_error("standard output is closed, so results would "
                               "be lost: redirect it, at least to /dev/null");
    return statusOfOutput(runCommand(settings), hasOutput);
  } catch (const std::bad_alloc &) {
    runtime::reportFailureToJob("out of memory");
    std::fprintf(stderr, "chimera-run: out of memory\n");
    return 1;
  } catch (const std::exception &error) {
    std::fflush(stdout);
    runtime::reportFailureToJob(error.what());
    std::fprintf(stderr, "chimera-run: %s\n", error.what());
    return 1;
  }
}

int main(int argc, char **argv) {
  // OpenMP's threads sleep while they wait. If they spun, they would take cores
  // from other ranks. OpenMP reads this variable when it is loaded, which is
  // with LibTorch and later.
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  int status = run(argc, argv);
  std::fflush(nullptr);
  // A normal exit would take 0.13 s more: LibTorch unregisters its operators.
  std::_Exit(status);
}
