//===- chimera-compile.cpp - Compiles a module to a program file ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/DiagnosticPrinter.h"
#include "compiler/Emit.h"
#include "compiler/PassPipelines.h"
#include "compiler/Source.h"
#include "compiler/VerifyProgram.h"
#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/timeline/Text.h"
#include "dialect/Chimera.h"
#include "passes/Passes.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/report/ShownSchedule.h"
#include "runtime/program/Output.h"
#include "runtime/program/Program.h"
#include "runtime/proof/ProvenFile.h"
#include "tools/MlirDriver.h"
#include "tools/Start.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
namespace cl = llvm::cl;

static constexpr StringRef kTool = "chimera-compile";

static cl::OptionCategory category("chimera-compile options");
static cl::list<std::string> inputs(cl::Positional, cl::desc("<module>"),
                                    cl::cat(category));
static cl::opt<std::string>
    output("o",
           cl::desc("Program file to write, - for standard "
                    "output"),
           cl::value_desc("file"), cl::cat(category));
static cl::opt<bool> timeline("timeline",
                              cl::desc("Print the schedule as chimera-show "
                                       "does"),
                              cl::cat(category));
static cl::opt<bool> check("check",
                           cl::desc("Verify the IR at every phase, not only "
                                    "the schedule and the program"),
                           cl::cat(category));
static cl::opt<chimera::program::MessageModel> messages(
    "messages", cl::desc("Message model under which the program is proven"),
    chimera::messageModels(),
    cl::init(chimera::program::MessageModel::Rendezvous), cl::cat(category));
static cl::list<std::string> costsFrom(
    "costs-from",
    cl::desc("Profiles of runs on the pipeline's machine (chimera-run "
             "--profile), for the costs of its stages"),
    cl::value_desc("files"), cl::CommaSeparated, cl::cat(category));
static cl::opt<bool> timing("timing",
                            cl::desc("Print how long each phase took"),
                            cl::cat(category));
static cl::opt<bool> quiet("quiet", cl::desc("Print errors only"),
                           cl::cat(category));
static cl::alias q("q", cl::desc("Alias for --quiet"), cl::aliasopt(quiet),
                   cl::cat(category));

/// The file of the module to compile, "-" for standard input.
static std::string input;

static int fail(const llvm::Twine &error) {
  llvm::errs() << "chimera-compile: " << error << "\n";
  return 1;
}

/// Prints a scheduled pipeline as chimera-show does. Fails, with a diagnostic,
/// if that is not possible or if a worker exceeds its memory cap.
static LogicalResult printTimeline(chimera::PipelineOp pipeline,
                                   const chimera::StatedCosts &stated) {
  chimera::ScheduleAnalysis analysis(pipeline);
  FailureOr<chimera::TimedSchedule> timed = chimera::scheduleToShow(
      pipeline, stated, chimera::completeTimes(pipeline, stated), analysis,
      kTool);
  if (failed(timed))
    return failure();
  chimera::ShownTimeline shown(pipeline, *timed, /*slots=*/false,
                               chimera::outputWidth());
  if (failed(chimera::writeDocument(
          pipeline->getParentOfType<ModuleOp>(), kTool, "-",
          chimera::schedule::renderText({&shown.timeline, 1}))))
    return failure();
  return chimera::checkCaps(pipeline, *timed);
}

using AddPasses = llvm::function_ref<void(OpPassManager &)>;

static bool run(ModuleOp module, TimingScope &timing, StringRef name,
                AddPasses addPasses) {
  PassManager manager(module.getContext());
  // Each run needs a scope of its own. Timers identify a pass by its address,
  // and a pass of another run may have had the same address.
  TimingScope own = timing.nest(name);
  manager.enableTiming(own);
  manager.enableVerifier(check);
  addPasses(manager);
  return succeeded(manager.run(module));
}

/// Sets the profiles of --costs-from on the machine of the pipeline, so that
/// the stages get their costs from these profiles. Prints an error and returns
/// false if this pipeline cannot get its costs from profiles.
static bool takeCosts(chimera::PipelineOp pipeline, TimingScope &timing) {
  auto module = pipeline->getParentOfType<ModuleOp>();
  if (chimera::Phase from = chimera::phaseOf(pipeline);
      from != chimera::Phase::Described) {
    pipeline.emitError(
        "expected a description for --costs-from, got the phase: ")
        << chimera::nameOf(from);
    return false;
  }
  const char *lacks =
      !pipeline.getModel()            ? "no model: add `of @MODEL`"
      : !chimera::machineOf(pipeline) ? "no machine: add `on @MACHINE`"
      : !pipeline.getBody().getOps<chimera::StageOp>().empty()
          ? "stages with costs of their own: delete the chimera.stage ops"
          : nullptr;
  if (lacks) {
    pipeline.emitOpError("expected, for --costs-from, a pipeline with a model "
                         "and a machine, got ")
        << lacks;
    return false;
  }
  return run(module, timing, "costs", [](OpPassManager &manager) {
    manager.addPass(chimera::createCostsFromPass({costsFrom}));
  });
}

/// Lowers the module of `pipeline` from its phase `from` to `Allocated`. A
/// module that is not a description may have been edited by hand, so it is
/// verified at once and after every phase.
static bool lower(chimera::PipelineOp pipeline, chimera::Phase from,
                  TimingScope &timing) {
  using chimera::Phase;
  auto module = pipeline->getParentOfType<ModuleOp>();
  const chimera::StatedCosts stated(pipeline);
  // In these phases the module already has posts and starts of all-reduces,
  // which may be in an order that only other message models allow.
  if (messages == chimera::program::MessageModel::StreamPerDevice &&
      from > Phase::Scheduled && from < Phase::Allocated) {
    pipeline.emitError("expected the scheduled phase or an earlier one for "
                       "--messages=stream-per-device, because later phases "
                       "have an order of messages already, got the phase: ")
        << chimera::nameOf(from);
    return false;
  }
  bool checked = check || from != Phase::Described;
  auto add = [&](Phase first, Phase last) {
    return [=](OpPassManager &manager) {
      chimera::buildPipeline(manager, first, last, checked, messages);
    };
  };
  if (from != Phase::Described &&
      !run(module, timing, "verify", [&](OpPassManager &manager) {
        chimera::addBoundaryVerifier(manager, from);
      }))
    return false;
  if (from < Phase::Scheduled &&
      !run(module, timing, "schedule", add(from, Phase::Scheduled)))
    return false;
  if (timeline && failed(printTimeline(pipeline, stated)))
    return false;
  // Use threads from here on, because the later phases run on many workers
  // concurrently.
  module.getContext()->enableMultithreading();
  return run(module, timing, "lower",
             add(std::max(from, Phase::Scheduled), Phase::Allocated));
}

/// Prints one line about the program that was written, unless --quiet is given
/// or the program went to standard output.
static void printResult(const chimera::program::ProgramT &program) {
  if (quiet || output == "-")
    return;
  uint64_t peak = 0;
  for (const auto &worker : program.workers)
    peak = std::max(peak, worker->peak_bytes);
  llvm::errs() << "wrote " << output << ": "
               << chimera::program::countWithNoun(
                      chimera::program::rankCount(program), "rank")
               << ", at most "
               << chimera::schedule::shortBytes(static_cast<int64_t>(peak))
               << " each\n";
}

/// Compiles the module and writes the program. Does not free the context or the
/// module: for large schedules, freeing them takes as long as compiling them.
static int compile(TimingScope &timing) {
  auto &context = *new MLIRContext(MLIRContext::Threading::DISABLED);
  context.loadDialect<chimera::ChimeraDialect>();
  // Do not print the op of an error, because it may be a whole step.
  context.printOpOnDiagnostic(false);
  chimera::DiagnosticPrinter printer(context, kTool, input);
  std::string error;
  auto file = openInputFile(input, &error);
  if (!file)
    return fail(error);
  if (chimera::reportBadDescription(input, file->getBuffer()))
    return 1;
  printer.sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  TimingScope phase = timing.nest("parse");
  ModuleOp module =
      parseSourceFile<ModuleOp>(printer.sources, &context).release();
  if (!module)
    return 1;
  phase.stop();

  FailureOr<chimera::PipelineOp> pipeline = chimera::onlyPipelineOf(module);
  if (failed(pipeline))
    return 1;
  if (!costsFrom.empty() && !takeCosts(*pipeline, timing))
    return 1;
  if (StringRef read = chimera::inputAt(module, output); !read.empty())
    return fail(output + ": expected another file than " + read.str());
  chimera::Phase from = chimera::phaseOf(*pipeline);
  if (!lower(*pipeline, from, timing))
    return 1;
  phase = timing.nest("emit");
  std::unique_ptr<chimera::program::ProgramT> program =
      chimera::emitProgram(module);
  if (!program)
    return 1;
  program->message_model = messages;
  phase = timing.nest("verify and write the program");
  // writeProgramFile verifies the program too. This call reports violations at
  // the lines of the module, for a user who edited it.
  if (from != chimera::Phase::Described &&
      failed(chimera::verifyProgram(module, *program)))
    return 1;
  if (!chimera::program::writeProgramFile(*program, output, error))
    return fail(error);
  printResult(*program);
  return 0;
}

/// An error message if the arguments contradict each other, else empty. Sets
/// `input`.
static std::string errorOfArguments() {
  if (std::string fault = chimera::setSingleInput(
          inputs, input, "the pipeline, its model and its machine",
          "cat here.mlir pipeline.mlir > described.mlir");
      !fault.empty())
    return fault;
  if (output.getNumOccurrences() == 0)
    return "expected -o FILE, the program file to write";
  if (chimera::program::areSameFile(input == "-" ? "/dev/stdin" : input.c_str(),
                                    output == "-" ? "/dev/stdout"
                                                  : output.c_str()))
    return output + ": expected another file than the module";
  if (timeline && output == "-")
    return "expected a file for the program (-o) with --timeline, which writes "
           "to standard output itself";
  return {};
}

int main(int argc, char **argv) {
  chimera::guardOutputs();
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  chimera::setVersion(kTool);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Compiles a pipeline into a program file: a description, or a module of "
      "any later phase, from there on\n");
  if (std::string fault = errorOfArguments(); !fault.empty())
    return fail(fault);
  if (chimera::reportBadSources(llvm::ArrayRef(argv, argc)))
    return 1;
  DefaultTimingManager times;
  times.setEnabled(timing);
  TimingScope all = times.getRootScope();
  int status = compile(all);
  all.stop();
  if (timing)
    times.print();
  std::_Exit(status);
}
