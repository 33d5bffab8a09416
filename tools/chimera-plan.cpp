//===- chimera-plan.cpp - Find the best plan for a model on a machine -----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Source.h"
#include "compiler/plan/AnswerFormats.h"
#include "compiler/planner/Assumptions.h"
#include "compiler/planner/Planner.h"
#include "passes/Passes.h"
#include "passes/PlanInputs.h"
#include "runtime/program/Output.h"
#include "tools/Start.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"

#include <span>
#include <thread>

using namespace mlir;
using namespace chimera;
namespace cl = llvm::cl;

static cl::OptionCategory category("chimera-plan options");
static cl::opt<std::string>
    input(cl::Positional, cl::desc("<module with a model and a machine>"),
          cl::init("-"), cl::cat(category));
static cl::opt<int64_t> batch("batch",
                              cl::desc("Samples of a step, over all copies"),
                              cl::value_desc("samples"), cl::Required,
                              cl::cat(category));
static cl::opt<std::string> output(
    "o",
    cl::desc("File for the described pipeline of a plan, which chimera-compile "
             "takes, - for standard output: then the table goes to standard "
             "error"),
    cl::value_desc("file"), cl::cat(category));
static cl::opt<uint32_t> pick("pick",
                              cl::desc("Which plan of the table -o writes"),
                              cl::value_desc("number"), cl::init(1),
                              cl::cat(category));
static cl::opt<uint32_t> top("top", cl::desc("How many plans the table has"),
                             cl::value_desc("number"), cl::init(10),
                             cl::cat(category));
static cl::list<uint32_t>
    compared("explain",
             cl::desc("Two plans of the table: where the time of one goes that "
                      "the other saves"),
             cl::value_desc("i,j"), cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string> json("json", cl::desc("File for the table as JSON"),
                                 cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string>
    svg("svg", cl::desc("File for a picture: time of a step against memory"),
        cl::value_desc("file"), cl::cat(category));
static cl::opt<uint32_t>
    devices("devices",
            cl::desc("Devices to use, the machine's unless "
                     "given"),
            cl::cat(category));
static cl::opt<std::string> modelName("model",
                                      cl::desc("The model, of several"),
                                      cl::value_desc("name"),
                                      cl::cat(category));
static cl::opt<std::string> machineName("machine",
                                        cl::desc("The machine, of several"),
                                        cl::value_desc("name"),
                                        cl::cat(category));
static cl::opt<std::string> trainingName("training",
                                         cl::desc("The training, of several"),
                                         cl::value_desc("name"),
                                         cl::cat(category));
static cl::list<std::string> schedules("schedule",
                                       cl::desc("Only these schedules"),
                                       cl::value_desc("names"),
                                       cl::CommaSeparated, cl::cat(category));
static cl::opt<bool> withoutFlush(
    "without-flush",
    cl::desc("Also schedules without a flush, whose weights are older than "
             "their gradients"),
    cl::cat(category));
static cl::list<int32_t> workers("workers",
                                 cl::desc("Only so many workers (D)"),
                                 cl::value_desc("numbers"), cl::CommaSeparated,
                                 cl::cat(category));
static cl::list<int32_t> stages("stages-per-worker",
                                cl::desc("Only so many stages a worker"),
                                cl::value_desc("numbers"), cl::CommaSeparated,
                                cl::cat(category));
static cl::list<int32_t> microBatchSizes(
    "micro-batch-size", cl::desc("Only micro-batches of so many samples (B)"),
    cl::value_desc("numbers"), cl::CommaSeparated, cl::cat(category));
enum class Split { Any, Yes, No };
static cl::opt<Split>
    split("split-backward", cl::desc("Whether backwards are split"),
          cl::values(clEnumValN(Split::Any, "any", "both are tried"),
                     clEnumValN(Split::Yes, "yes", "all are"),
                     clEnumValN(Split::No, "no",
                                "only where a schedule splits them "
                                "anyway")),
          cl::init(Split::Any), cl::cat(category));
static cl::opt<plan::Recomputation> recompute(
    "recompute", cl::desc("Which stages are recomputed"),
    cl::values(clEnumValN(plan::Recomputation::Least, "least",
                          "as few as make the plan fit into the memory"),
               clEnumValN(plan::Recomputation::None, "none", "none"),
               clEnumValN(plan::Recomputation::All, "all", "all"),
               clEnumValN(plan::Recomputation::Fused, "fused",
                          "all, as a part of their backwards")),
    cl::init(plan::Recomputation::Least), cl::cat(category));
static cl::list<schedule::AllReducePolicy> policies(
    "all-reduce", cl::desc("Only these times to sum gradients at"),
    cl::values(clEnumValN(schedule::AllReducePolicy::Lazy, "lazy",
                          "behind all actions"),
               clEnumValN(schedule::AllReducePolicy::EagerOpt, "eager_opt",
                          "behind those of the stage where the worker is idle "
                          "then"),
               clEnumValN(schedule::AllReducePolicy::Eager, "eager",
                          "behind those of the stage")),
    cl::CommaSeparated, cl::cat(category));
static cl::opt<int64_t> bucketBytes(
    "bucket-bytes",
    cl::desc("Sum gradients in buckets of at most so many bytes; whole unless "
             "given, which takes no longer by the model"),
    cl::value_desc("bytes"), cl::init(0), cl::cat(category));
static cl::opt<DataType>
    weightType("weight-type", cl::desc("Type of weights"),
               cl::values(clEnumValN(DataType::F32, "f32", "float32"),
                          clEnumValN(DataType::F64, "f64", "float64")),
               cl::init(DataType::F32), cl::cat(category));
static cl::opt<bool> bfloat16("bf16",
                              cl::desc("Compute in bfloat16 "
                                       "(activation_type(bf16))"),
                              cl::cat(category));
static cl::list<std::string> costsFrom(
    "costs-from",
    cl::desc("Profiles of runs on the machine (chimera-run --profile), from "
             "which what layers take comes"),
    cl::value_desc("files"), cl::CommaSeparated, cl::cat(category));
static cl::opt<uint32_t> threads("threads",
                                 cl::desc("Threads to search with, one for "
                                          "each core unless given"),
                                 cl::init(0), cl::cat(category));

static int fail(const llvm::Twine &error) {
  llvm::errs() << "chimera-plan: " << error << "\n";
  return 1;
}

/// What the options pin, for a machine with so many devices. Prints an error
/// and returns none where they say nothing that there is.
static std::optional<plan::Pins> readPins() {
  plan::Pins pins;
  for (const std::string &name : schedules) {
    pins.schemes.push_back(schedule::findScheme(name));
    if (!pins.schemes.back()) {
      fail("expected --schedule to be one of " + schedule::schemeNames() +
           ", got " + name);
      return std::nullopt;
    }
  }
  pins.withoutFlush = withoutFlush;
  pins.workers.assign(workers.begin(), workers.end());
  pins.stagesPerWorker.assign(stages.begin(), stages.end());
  pins.microBatchSizes.assign(microBatchSizes.begin(), microBatchSizes.end());
  if (split != Split::Any)
    pins.splits = {split == Split::Yes};
  pins.policies.assign(policies.begin(), policies.end());
  pins.recomputation = recompute;
  pins.bucketBytes = bucketBytes;
  if (bucketBytes != 0 && bucketBytes < 8) {
    fail("expected --bucket-bytes of at least 8, got " +
         llvm::Twine(bucketBytes));
    return std::nullopt;
  }
  return pins;
}

/// A line that the next one replaces while `done` is not `all`.
static void showProgress(size_t done, size_t all, const llvm::Twine &what) {
  static const bool isShown = llvm::sys::Process::StandardErrIsDisplayed();
  if (isShown)
    llvm::errs() << "\r" << done << " of " << all << " plans" << what
                 << (done == all ? "\n" : "   ");
}

static void showSearch(size_t done, size_t all, double best) {
  std::string text;
  if (best > 0)
    llvm::raw_string_ostream(text)
        << llvm::format(", best step %.4g ms", best * 1e-6);
  showProgress(done, all, text);
}

static void showCompiling(size_t done, size_t all) {
  showProgress(done, all, " compiled");
}

static PlannerSettings settingsOf() {
  PlannerSettings settings;
  settings.shown = std::max<size_t>(top, pick);
  settings.needed = pick;
  settings.keepSmall = !svg.empty();
  settings.threads = threads > 0
                         ? threads.getValue()
                         : std::max(1u, std::thread::hardware_concurrency());
  settings.progress = showSearch;
  settings.compiling = showCompiling;
  return settings;
}

static bool setProfiles(ModuleOp module) {
  if (costsFrom.empty())
    return true;
  PassManager manager(module.getContext());
  manager.addPass(createCostsFromPass({costsFrom}));
  return succeeded(manager.run(module));
}

/// Writes a text to the file of an option, if the option is given. Prints an
/// error and returns false where that fails.
static bool write(const std::string &path,
                  llvm::function_ref<std::string()> textOf) {
  if (path.empty())
    return true;
  std::string text = textOf(), error;
  program::Parts parts = {std::as_bytes(std::span(text))};
  if (path == "-"
          ? program::writeStandardOutput(parts, error, [] { return true; })
          : program::writeWhole(path, parts, error))
    return true;
  fail(error);
  return false;
}

/// `status`, or 1 with an error where a table could not be written.
static int endOutput(int status) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return status;
  std::error_code code = llvm::outs().error();
  // Else the stream would end the process.
  llvm::outs().clear_error();
  return fail("cannot write to standard output: " + code.message());
}

static int run(ModuleOp module) {
  if (!setProfiles(module))
    return 1;
  FailureOr<PlanSubject> subject =
      subjectOf(module, modelName, machineName, trainingName);
  if (failed(subject))
    return 1;
  subject->weights = weightType;
  if (bfloat16)
    subject->activations = DataType::BF16;
  FailureOr<plan::Model> model = planModelOf(*subject);
  std::optional<plan::Pins> pins = readPins();
  FailureOr<plan::Machine> machine = planMachineOf(subject->machine);
  if (failed(model) || failed(machine) || !pins)
    return 1;
  plan::Question question{std::move(*model), std::move(*machine), batch,
                          std::move(*pins)};
  if (devices > 0 && devices <= subject->machine.getDevices())
    question.machine.devices = devices;
  else if (devices > 0)
    return fail("expected at most the machine's " +
                llvm::Twine(subject->machine.getDevices()) +
                " --devices, got " + llvm::Twine(devices));
  // What goes to standard output goes there alone.
  const bool isTaken = output == "-" || json == "-" || svg == "-";
  llvm::raw_ostream &os = isTaken ? llvm::errs() : llvm::outs();
  for (const std::string &assumption : assumptionsOf(*subject))
    os << "assumed: " << assumption << "\n";
  PlannedAnswer planned = answerOf(question, *subject, settingsOf());
  const auto &[space, answer, ranked, ofSchemes, passedOver] = planned;
  for (const std::string &fault : passedOver)
    os << "passed over: " << fault << "\n";
  if (ranked.size() < pick) {
    os << plan::talliesOf(question, space, answer);
    os.flush();
    return ranked.empty() ? fail(planned.whyNone())
                          : fail("expected --pick of one of the " +
                                 llvm::Twine(ranked.size()) + " plans, got " +
                                 llvm::Twine(pick));
  }
  os << "\n" << plan::tableOf(question, ranked) << "\n";
  os << "The best of each schedule:\n"
     << plan::tableOf(question, ofSchemes) << "\n";
  os << plan::talliesOf(question, space, answer);
  if (!write(json,
             [&] { return plan::jsonOf(question, space, answer, ranked); }) ||
      !write(svg, [&] { return plan::pictureOf(question, answer); }) ||
      !write(output, [&] {
        return describePlan(*subject, ranked[pick - 1].proposal, bucketBytes);
      }))
    return 1;
  if (!llvm::all_of(compared,
                    [&](uint32_t number) { return number <= ranked.size(); }))
    return fail("expected --explain of two of the " +
                llvm::Twine(ranked.size()) + " plans of the table");
  if (!compared.empty())
    os << "\n"
       << plan::explain(ranked[compared[0] - 1], ranked[compared[1] - 1]);
  return 0;
}

/// No output takes the place of the module or of another, and each can be
/// written now, as planning may take long.
static bool checkOutputs() {
  std::vector<std::pair<StringRef, std::string>> files = {
      {"the module", input == "-" ? "/dev/stdin" : input.getValue()}};
  const std::pair<StringRef, StringRef> outputs[] = {
      {"-o", output}, {"--json", json}, {"--svg", svg}};
  for (auto [name, path] : outputs) {
    if (path.empty())
      continue;
    if (std::string problem =
            path == "-" ? "" : program::checkOutput(path.str());
        !problem.empty()) {
      fail(problem);
      return false;
    }
    std::string file = path == "-" ? "/dev/stdout" : path.str();
    for (const auto &[other, taken] : files)
      if (file == taken || program::areSameFile(file, taken)) {
        fail(path + ": expected another file for " + name + " than " + other);
        return false;
      }
    files.emplace_back(name, file);
  }
  return true;
}

int main(int argc, char **argv) {
  guardOutputs();
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "chimera-plan " CHIMERA_VERSION "\n";
  });
  cl::ParseCommandLineOptions(
      argc, argv,
      "Finds the fastest way to train a model on a machine: how many stages "
      "and "
      "copies, how large micro-batches, which schedule\n");
  if (batch < 1 || batch > INT32_MAX)
    return fail("expected --batch of 1 to 2147483647 samples, got " +
                llvm::Twine(batch));
  constexpr uint32_t kMostShown = 1000;
  if (top < 1 || pick < 1 || std::max(top, pick) > kMostShown)
    return fail("expected --top and --pick from 1 to " +
                llvm::Twine(kMostShown));
  if (!compared.empty() &&
      (compared.size() != 2 || llvm::any_of(compared, [](uint32_t number) {
         return number < 1 || number > std::max(top, pick);
       })))
    return fail("expected --explain of two plans of the table, such as 1,2");
  if (threads > 256)
    return fail("expected at most 256 --threads, got " + llvm::Twine(threads));
  // The module alone: an output may be a device.
  if (refusesSources({argv[0], input.data()}) || !checkOutputs())
    return 1;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ChimeraDialect>();
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  std::string error;
  auto file = openInputFile(input, &error);
  if (!file)
    return fail(error);
  if (std::string fault = faultOfSource(file->getBuffer());
      input == "-" && !fault.empty()) {
    llvm::errs() << "<stdin>:" << fault << "\n";
    return 1;
  }
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  return endOutput(module ? run(*module) : 1);
}
