//===- chimera-run.cpp - Trains from a program file -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunAsRank.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Signals.h"
#include "tools/MissingOptions.h"
#include "tools/RunCommand.h"
#include "tools/Start.h"
#include "tools/Unknown.h"
#include "tools/Within.h"

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

/// Runs the tool and returns the exit status of the process.
static int run(int argc, char **argv) {
  bool hasOutput = guardOutputs();
  // If the reader of the log or of standard output has gone, writing is an
  // error like a full disk: it does not end the training.
  std::signal(SIGPIPE, SIG_IGN);
  runtime::setEndProcess([](int status) { _exit(status); });
  runtime::Signals::blockUserSignal();
  openManyFiles();
  CLI::App app(
      "Runs the training step of a compiled program.\n\n"
      "All ranks are threads of this process, or each process is one rank:\n"
      "under mpirun or srun over MPI, under torchrun over TCP, and so without "
      "a\n"
      "launcher, where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (of rank "
      "0)\n"
      "are set for each process.\n\n"
      "SIGUSR1 stops the run at the end of the step, with its results. SIGINT\n"
      "and SIGTERM end it and say what every rank was doing: with --save "
      "after\n"
      "the step, and the weights are in FILE.last-finite; without it, on a\n"
      "second signal or when --grace is over, at once.",
      "chimera-run");
  app.set_version_flag("--version", "chimera-run " CHIMERA_VERSION);
  RunSettings settings;
  auto addFile = [&app](const char *name, std::string &file, const char *help) {
    return app.add_option(name, file, help)
        ->type_name("FILE")
        ->check(fileName());
  };
  addFile("PROGRAM", settings.program, "Program file (chimera-compile)");
  app.add_option("--stages", settings.stages,
                 "What computes: transformer (LibTorch), exported (the graphs "
                 "of an exported model), exact (integers that prove the "
                 "program), synthetic (sleeps); auto: what the program's model "
                 "needs, exact if it has none")
      ->check(oneOf(stageKinds()))
      ->capture_default_str();
  app.add_option("--data", settings.data,
                 "A file of tokens to train on; or a text for a model of 256 "
                 "tokens, one a byte: a file or a pipe of at most 4 GiB. Give "
                 "--data again for each further file of tokens")
      ->type_name("FILE")
      ->check(fileName())
      ->allow_extra_args(false);
  app.add_option("--tokens", settings.tokens,
                 "What --data holds: bytes, each a token; or tokens as uint16 "
                 "or uint32 (nanoGPT's files, and llm.c's); auto: what llm.c's "
                 "header or the .idx beside Megatron's .bin says, else a text "
                 "if the model has 256 tokens")
      ->check(oneOf(tokenKinds(), {{"text", kBytes},
                                   {"uint8", kBytes},
                                   {"int16", kUInt16},
                                   {"int32", kUInt32}}))
      ->capture_default_str();
  app.add_flag("--trust-data", settings.trustData,
               "Do not look at all tokens before the first step. One that the "
               "model does not have then ends the run in the step that draws "
               "it");
  app.add_option("--mask", settings.mask,
                 "Train to predict masked tokens, as BERT does: this token "
                 "stands for them, and all other labels are -100")
      ->transform(wholeWithin(0, uint64_t(1) << 32));
  app.add_option("--mask-rate", settings.maskRate,
                 "The part of the tokens that --mask chooses")
      ->check(within(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--pairs", settings.pairs,
                 "Train on pairs of sentences, as BERT does, with --mask where "
                 "the model predicts tokens too. These are the tokens [CLS], "
                 "[SEP] and [PAD]")
      ->type_name("CLS,SEP,PAD")
      ->delimiter(',')
      ->expected(3)
      ->transform(wholeWithin(0, uint64_t(1) << 32));
  app.add_option("--document-end", settings.documentEnd,
                 "With --pairs: this token ends a document, and no sentence "
                 "goes beyond it")
      ->transform(wholeWithin(0, uint64_t(1) << 32));
  addFile(
      "--load", settings.load,
      "Begin with the weights in this safetensors file, or index of "
      "several, or folder with model.safetensors or its index; bfloat16 and "
      "float16 are converted. Without it they are drawn");
  addFile("--names", settings.names,
          "With --load, --save and --save-gradients: this JSON file says under "
          "which other names, and whether transposed, the tensors lie in them");
  app.add_option("--allow-native-code", settings.allowNativeCode,
                 "Run the native code in this folder, which chimera-export "
                 "--native made, in place of an exported model's graphs; "
                 "results are the same to rounding. Whoever can write to the "
                 "folder can run code as you")
      ->type_name("FOLDER")
      ->check(fileName());
  app.add_option("--generate", settings.generate,
                 "In place of training: continue --prompt by so many tokens, "
                 "with the weights of --load. A text is printed with what "
                 "follows it, of tokens the numbers")
      ->transform(wholeWithin(1, uint64_t(1) << 32));
  addFile("--prompt", settings.prompt,
          "What --generate continues: a text, or a file of tokens, as "
          "--tokens says");
  app.add_option("--temperature", settings.temperature,
                 "By which --generate divides logits before it draws a token; "
                 "0: the likeliest token")
      ->check(within(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--generate-seed", settings.generateSeed,
                 "The seed of what --generate draws")
      ->transform(wholeWithin(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--steps", settings.steps,
                 "Training steps; with 0 the initial weights can be saved")
      ->transform(wholeWithin(0, uint64_t(1) << 40))
      ->capture_default_str();
  addFile("--save", settings.save,
          "Write the trained weights to this safetensors file; "
          "if that fails, to the current folder or $TMPDIR. A run that "
          "diverges, or is told to end, writes its last finite weights to "
          "FILE.last-finite instead");
  addFile("--save-gradients", settings.saveGradients,
          "Write the last step's gradients of the mean loss likewise");
  addFile("--log", settings.log,
          "Write a JSON object a line: each step, then a summary; it "
          "grows as FILE.part. A log that has either name becomes FILE.1, "
          "FILE.2, …");
  addFile("--profile", settings.profile,
          "Write what the time went into as JSON: for each stage how "
          "long its actions took, for each rank its waits, in ns");
  addFile("--trace", settings.trace,
          "Write what each rank did in the last step to this file, as events "
          "for ui.perfetto.dev, like those of chimera-opt's timelines");
  app.add_option("--trace-steps", settings.traceSteps,
                 "How many of the last steps --trace shows")
      ->transform(wholeWithin(1, 1'000'000))
      ->capture_default_str();
  addFile("--calibrate", settings.calibrate,
          "In place of running a program: measure what layers, updates, "
          "messages and all-reduces take here, or on the GPUs that --device "
          "says, by at least 2 ranks, and write it to this file as a "
          "chimera.machine @here for pipelines");
  app.add_option("--ranks", settings.ranks,
                 "With --calibrate: so many ranks, as threads of this process")
      ->transform(wholeWithin(2, runtime::kMaxThreads));
  app.add_option("--threads", settings.threads,
                 "Threads for the computations of one rank (default: an equal "
                 "share of the cores, at least 1, less one for progress)")
      ->transform(wholeWithin(1, 1000000));
  app.add_option(
         "--timeout", settings.timeout,
         "Seconds after which a wait for another rank fails, from the "
         "start to the end of the run; while the process is stopped "
         "they do not pass; 0: never (default: 1800). Saving that does not go "
         "on fails after as long, also with --sequential")
      ->check(within(0.0, 1e9));
  app.add_option(
         "--grace", settings.grace,
         "With --save: seconds that SIGINT or SIGTERM leaves a run to end its "
         "step and to save its weights, before it ends at once; 0: none "
         "(default: 25, and 0.6 under mpirun, which kills ranks after 1 s)")
      ->check(within(0.0, 1e6));
  app.add_flag("--sequential", settings.sequential,
               "Train the same description on one device without a pipeline");
  app.add_option(
         "--hold-out", settings.holdOut,
         "Last part of the text, which is kept from training: the model "
         "is evaluated on it")
      ->check(within(0.0, 0.99))
      ->capture_default_str();
  app.add_option("--evaluate-batches", settings.evaluateBatches,
                 "Micro-batches of held-out text to evaluate on, or the next "
                 "number that fills whole steps; 0: none")
      ->transform(wholeWithin(0, 1000000))
      ->capture_default_str();
  app.add_option("--evaluate-every", settings.evaluateEvery,
                 "Evaluate on held-out text after so many steps each, and not "
                 "only at the end")
      ->transform(wholeWithin(1, uint64_t(1) << 40));
  app.add_option("--unit-ns", settings.unitNanoseconds,
                 "Nanoseconds that a synthetic stage sleeps for each unit of "
                 "an action's cost, which for a model's stages is a "
                 "floating-point operation")
      ->check(within(0.0, 1e9))
      ->capture_default_str();
  app.add_flag(
      "--check-replicas", settings.checkReplicas,
      "Fail unless all replicas' weights are bit-identical at the end");
  app.add_flag("--quiet", settings.quiet, "Print results and errors only");
  app.add_option("--transport", settings.transport,
                 "What moves values; auto: mpi under mpirun and srun, tcp in "
                 "another job, else in-process")
      ->check(oneOf(transportKinds()))
      ->capture_default_str();
  app.add_option(
         "--device", settings.device,
         "Where ranks compute: host; cuda (GPUs, which move values over "
         "NCCL, or by copies where threads share them; ranks meet over what "
         "--transport says); or simulated "
         "(one thread runs all ranks on devices that execute later, in "
         "an order that a seed decides, and reports uses of memory "
         "that nothing orders)")
      ->check(oneOf(deviceKinds(), {{"gpu", kCuda}, {"cpu", kHost}}))
      ->capture_default_str();
  app.add_flag("--cuda-graphs", settings.cudaGraphs,
               "With --device cuda: capture each action of a stage as a CUDA "
               "graph, which takes the host less time to launch; needs a "
               "program with a flush and without dropout, else says that "
               "there are none");
  app.add_option("--device-seed", settings.deviceSeed,
                 "The seed of simulated devices")
      ->transform(wholeWithin(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--progress", settings.progress,
                 "A thread of each rank over MPI that moves its messages while "
                 "it computes; auto: where each rank has a core more than the "
                 "--threads given, or without those a share of at least 8 "
                 "cores")
      ->check(oneOf(progressKinds()))
      ->capture_default_str();
  app.add_option(
         "--all-reduce", settings.allReduce,
         "How replicas sum: ordered (by the program's order, equal to "
         "the last bit wherever it runs) or transport (MPI_Iallreduce or "
         "ncclAllReduce, which may round differently)")
      ->check(oneOf(allReduceKinds()))
      ->capture_default_str();

  app.allow_extras();
  app.failure_message([](const CLI::App *app, const CLI::Error &error) {
    std::string unknown = unknownArgument(*app, answerTo);
    return "chimera-run: " + (unknown.empty() ? error.what() : unknown) +
           "\nRun with --help for more information.\n";
  });
  try {
    app.parse(argc, argv);
    if (!unknownArgument(app, answerTo).empty())
      throw CLI::ExtrasError(app.get_name(), app.remaining());
    for (const CLI::Option *option : app.get_options())
      if (option->count() > 0)
        settings.given.insert("--" + option->get_single_name());
    if (settings.program.empty() && settings.calibrate.empty())
      throw CLI::RequiredError("PROGRAM");
  } catch (const CLI::ParseError &error) {
    bool isWrong = error.get_exit_code() != 0;
    if (isWrong)
      runtime::reportFailureToJob(error.what());
    // CLI11's own exit statuses only say which of its rules was broken.
    app.exit(error);
    return isWrong ? 1 : statusOfOutput(0, hasOutput);
  }
  try {
    if (!hasOutput)
      throw std::runtime_error("standard output is closed, and results would "
                               "be lost: give it > /dev/null at least");
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
  int status = run(argc, argv);
  std::fflush(nullptr);
  // A normal exit would take 0.13 s more: LibTorch unregisters its operators.
  std::_Exit(status);
}
