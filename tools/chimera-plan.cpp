//===- chimera-plan.cpp - Finds the best plan for a model -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/DiagnosticPrinter.h"
#include "compiler/Source.h"
#include "compiler/planner/AnswerJson.h"
#include "compiler/planner/Assumptions.h"
#include "compiler/planner/Planner.h"
#include "compiler/planner/search/AnswerFormats.h"
#include "passes/Passes.h"
#include "passes/describe/CostInputs.h"
#include "passes/describe/DescriptionReader.h"
#include "runtime/program/Output.h"
#include "runtime/program/Printable.h"
#include "runtime/program/Program.h"
#include "tools/OutputErrors.h"
#include "tools/PlanSettings.h"
#include "tools/Start.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Process.h"

#include <span>

using namespace mlir;
using namespace chimera;

static int fail(const llvm::Twine &error) {
  llvm::errs() << "chimera-plan: " << error << "\n";
  return 1;
}

/// Prints a line of progress. The next line overwrites it, unless `done` equals
/// `all`.
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

static PlannerSettings plannerSettingsOf(const PlanSettings &settings) {
  PlannerSettings made;
  made.planCount = settings.planCount();
  made.needed = settings.pick;
  made.keepParetoFront = !settings.svg.empty();
  made.threads = settings.threads;
  made.progress = showSearch;
  made.compiling = showCompiling;
  return made;
}

static bool setProfiles(ModuleOp module, ArrayRef<std::string> files) {
  if (files.empty())
    return true;
  PassManager manager(module.getContext());
  manager.addPass(createCostsFromPass({files}));
  return succeeded(manager.run(module));
}

/// Writes the text of `textOf` to the file `path`. Does nothing if `path` is
/// empty. Prints an error and returns false on failure.
static bool write(const std::string &path,
                  llvm::function_ref<std::string()> textOf) {
  if (path.empty())
    return true;
  std::string text = textOf(), error;
  program::ByteRanges parts = {std::as_bytes(std::span(text))};
  if (path == "-"
          ? program::writeStandardOutput(parts, error, [] { return true; })
          : program::writeAtomically(path, parts, error))
    return true;
  fail(error);
  return false;
}

/// Returns `status`, or 1 after an error message if standard output could not
/// be written.
static int endOutput(int status) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return status;
  std::error_code code = llvm::outs().error();
  // Clear the error. Otherwise the stream would end the process in its
  // destructor.
  llvm::outs().clear_error();
  return fail("cannot write to standard output: " + code.message());
}

/// A question for the planner, the ops of the module that it is about, and the
/// assumptions of the answer.
struct PlanRequest {
  PlannerOps ops;
  plan::Question question;
  std::vector<std::string> assumptions;
};

/// Makes the question from the module and the settings. If no plan is possible
/// for them, prints an error and returns none.
static std::optional<PlanRequest> makeRequest(ModuleOp module,
                                              const PlanSettings &settings) {
  FailureOr<PlannerOps> ops = findPlannerOps(
      module, settings.model, settings.machine, settings.training);
  if (failed(ops))
    return std::nullopt;
  ops->weights = settings.weights;
  ops->activations = settings.activations;
  const bool replacesProfile =
      ops->machine.getProfileAttr() && !settings.costsFrom.empty();
  if (!setProfiles(module, settings.costsFrom))
    return std::nullopt;
  FailureOr<cost::Model> described = costModelOf(*ops);
  FailureOr<cost::Machine> machine = costMachineOf(ops->machine);
  if (failed(described) || failed(machine))
    return std::nullopt;
  PlanRequest request{*ops,
                      {std::move(*described), std::move(*machine),
                       settings.batch, settings.pins,
                       ops->training && ops->training.getClipNorm()},
                      {}};
  cost::Machine &used = request.question.machine;
  const int64_t devices = settings.devices.value_or(used.devices);
  if (devices < 1 || devices > used.devices) {
    fail("expected --devices from 1 to the machine's " +
         llvm::Twine(used.devices) + ", got " + llvm::Twine(devices));
    return std::nullopt;
  }
  used.devices = static_cast<int32_t>(devices);
  // Check only micro-batches of one sample. If they have an error, such as a
  // profile of another model, all micro-batches have the error.
  if (std::string fault = request.question.model.check(1, 1, &used);
      !fault.empty()) {
    fail(program::printable(fault));
    return std::nullopt;
  }
  if (std::string fault = errorOfPins(request.question); !fault.empty()) {
    fail(fault);
    return std::nullopt;
  }
  request.assumptions = assumptionsOf(*ops, used);
  if (replacesProfile)
    request.assumptions.push_back(
        "layers take the times of --costs-from (clauses of the machine that "
        "are not used: profile)");
  return request;
}

/// An error message if --pick or --explain names a plan that is not in the
/// table. Else empty.
static std::string faultOfNumbers(const PlanSettings &settings, size_t plans) {
  std::string there = program::countWithNoun(plans, "plan");
  if (settings.pick > plans)
    return "expected --pick to name one of the table's " + there + ", got " +
           std::to_string(settings.pick);
  for (uint32_t number : settings.compared)
    if (number > plans)
      return "expected --explain to name two of the table's " + there +
             ", got " + std::to_string(number);
  return {};
}

/// Prints the answer and writes its files.
static int show(const PlanRequest &request, const PlannerResult &result,
                const PlanSettings &settings, llvm::raw_ostream &os) {
  const auto &[ops, question, assumptions] = request;
  const auto &[space, answer, ranked, ofSchemes, rejectedPlans] = result;
  for (const std::string &fault : rejectedPlans)
    os << "rejected: " << fault << "\n";
  auto writeJson = [&] {
    return write(settings.json,
                 [&] { return jsonOf(question, ops, result, assumptions); });
  };
  if (ranked.empty()) {
    const bool hasOutcomeCounts =
        !answer.outcomeCounts.empty() || !space.refusals.empty();
    if (hasOutcomeCounts && space.onlyReason.empty())
      os << plan::outcomeTable(question, space, answer);
    os.flush();
    writeJson();
    return fail(result.noPlanReason());
  }
  plan::TableStyle style{.hasAllColumns = settings.allColumns};
  os << "\n"
     << plan::planTable(question, ranked, style) << plan::tableLegend(style)
     << "\n";
  style.isNumbered = false;
  os << "The best of each schedule:\n"
     << plan::planTable(question, ofSchemes, style) << "\n";
  os << plan::outcomeTable(question, space, answer);
  // The planner rules plans out by comparing bounds with the fastest plans that
  // all threads have found so far. This depends on the timing of the threads.
  if (settings.threads > 1)
    os << "(with several threads, the numbers of plans that are simulated and "
          "ruled out vary from run to run)\n";
  os.flush();
  if (std::string fault = faultOfNumbers(settings, ranked.size());
      !fault.empty())
    return fail(fault);
  if (!writeJson() ||
      !write(settings.svg, [&] { return plan::pictureOf(question, answer); }) ||
      !write(settings.output, [&] {
        return describePlan(ops, ranked[settings.pick - 1].proposal,
                            question.pins.bucketBytes);
      }))
    return 1;
  if (const auto &compared = settings.compared; !compared.empty())
    os << "\n"
       << plan::comparisonTable(ranked[compared[0] - 1],
                                ranked[compared[1] - 1]);
  return 0;
}

static int run(ModuleOp module, const PlanSettings &settings) {
  std::optional<PlanRequest> request = makeRequest(module, settings);
  if (!request)
    return 1;
  for (const std::string &path : {settings.output, settings.json, settings.svg})
    if (StringRef read = inputAt(module, path); !read.empty())
      return fail(path + ": expected another file than " + read.str());
  // If a file goes to standard output, nothing else may go there.
  const bool isTaken =
      settings.output == "-" || settings.json == "-" || settings.svg == "-";
  llvm::raw_ostream &os = isTaken ? llvm::errs() : llvm::outs();
  for (const std::string &assumption : request->assumptions)
    os << "assumed: " << assumption << "\n";
  PlannerResult result =
      makePlans(request->question, request->ops, plannerSettingsOf(settings));
  return show(*request, result, settings, os);
}

int main(int argc, char **argv) {
  guardOutputs();
  llvm::InitLLVM init(argc, argv);
  PlanSettings settings;
  if (std::string fault = readPlanSettings(argc, argv, settings);
      !fault.empty())
    return fail(fault);
  std::string &input = settings.input;
  // Check only the module, and no output: an output may be a device.
  if (reportBadSources({argv[0], input.data()}))
    return 1;
  const NamedFile inputs[] = {{"the module", input}};
  const NamedFile outputs[] = {{"-o", settings.output},
                               {"--json", settings.json},
                               {"--svg", settings.svg}};
  if (std::string fault = errorOfOutputs(inputs, outputs); !fault.empty())
    return fail(fault);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ChimeraDialect>();
  context.printOpOnDiagnostic(false);
  DiagnosticPrinter printer(context, "chimera-plan", input);
  std::string error;
  auto file = openInputFile(input, &error);
  if (!file)
    return fail(error);
  if (reportBadDescription(input, file->getBuffer()))
    return 1;
  printer.sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(printer.sources, &context);
  return endOutput(module ? run(*module, settings) : 1);
}
