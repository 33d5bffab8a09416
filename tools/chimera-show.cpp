//===- chimera-show.cpp - Look at schedules -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/MadeOps.h"
#include "compiler/Phase.h"
#include "compiler/Source.h"
#include "compiler/describe/Expression.h"
#include "compiler/describe/OrderFile.h"
#include "compiler/describe/ProgramText.h"
#include "passes/Described.h"
#include "passes/Passes.h"
#include "passes/ShownSchedule.h"
#include "runtime/program/File.h"
#include "runtime/proof/ProvenFile.h"
#include "tools/OutputFaults.h"
#include "tools/ShowSettings.h"
#include "tools/Start.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

#include <deque>

using namespace mlir;
using namespace chimera;

static constexpr StringRef kTool = "chimera-show";

static int fail(const llvm::Twine &error) {
  llvm::errs() << kTool << ": " << error << "\n";
  return 1;
}

/// The text of a module with what the command line names, or none after a
/// message.
static std::unique_ptr<llvm::MemoryBuffer>
readInput(const ShowSettings &settings) {
  std::string error;
  std::optional<std::string> text;
  std::string name = settings.input == "-" ? "<stdin>" : settings.input;
  if (!settings.expressions.empty()) {
    text = describeExpressions(settings.expressions, error);
    name = "-e";
    if (!text)
      return fail("-e: " + error), nullptr;
    return llvm::MemoryBuffer::getMemBufferCopy(*text, name);
  }
  auto file = openInputFile(settings.input, &error);
  if (!file)
    return fail(error), nullptr;
  auto bytes =
      std::as_bytes(std::span(file->getBufferStart(), file->getBufferSize()));
  if (program::isProgram(bytes)) {
    auto program = program::readProgram(bytes, error);
    if (!program)
      return fail(name + ": " + error), nullptr;
    text = describeProgram(*program);
  } else if (std::string_view lines(file->getBuffer()); isOrderFile(lines)) {
    text = describeOrderFile(name, lines, error);
    if (!text)
      return llvm::errs() << error << "\n", nullptr;
  } else if (std::string fault = faultOfSource(file->getBuffer());
             !fault.empty()) {
    return llvm::errs() << name << ":" << fault << "\n", nullptr;
  }
  return text ? llvm::MemoryBuffer::getMemBufferCopy(*text, name)
              : std::move(file);
}

/// True if the pipeline states what its actions take: on a machine, or by the
/// costs of its stages. Operations of a model alone are no times.
static bool statesTimes(PipelineOp pipeline) {
  if (machineOf(pipeline))
    return true;
  return !pipeline.getBody().empty() &&
         !pipeline.getBody().front().getOps<StageOp>().empty() &&
         pipeline.getTimeUnit() != "flop";
}

/// The times to show a pipeline with.
static TimeOptions timeOptionsOf(const ShowSettings &settings,
                                 bool hasOwnTimes) {
  TimeOptions options{settings.costs.empty() ? StringRef("worker")
                                             : settings.costs,
                      settings.unit.empty() ? StringRef("none") : settings.unit,
                      settings.forward,
                      settings.backward,
                      settings.weightGradient,
                      settings.update,
                      {}};
  for (const auto &[name, time] : settings.messages)
    options.messages.emplace_back(name, time);
  if (settings.areSlots)
    options.costs = "uniform";
  else if (hasOwnTimes && !settings.hasTimes())
    options.costs = "stages";
  else if (options.costs != "stages" && options.forward.digits == 0)
    options.forward = 1;
  return options;
}

namespace {

/// The pipelines of a module with their times.
class Shown {
public:
  Shown(ModuleOp module, const ShowSettings &settings)
      : module(module), settings(settings) {}

  /// Orders and simulates all pipelines. Fails, with a diagnostic, if that is
  /// not possible.
  LogicalResult simulate() {
    FailureOr<SmallVector<PipelineOp>> found = pipelinesOf(module, kTool);
    if (failed(found))
      return failure();
    pipelines = std::move(*found);
    std::vector<bool> haveTimes;
    for (PipelineOp pipeline : pipelines)
      haveTimes.push_back(statesTimes(pipeline));
    if (llvm::any_of(pipelines,
                     [](PipelineOp pipeline) {
                       return phaseOf(pipeline) == Phase::Described;
                     }) &&
        failed(partition()))
      return failure();
    for (auto [pipeline, hasTimes] : llvm::zip(pipelines, haveTimes)) {
      FailureOr<Times> times =
          Times::read(module, kTool, timeOptionsOf(settings, hasTimes));
      if (failed(times))
        return failure();
      ScheduleAnalysis &analysis = analyses.emplace_back(pipeline);
      FailureOr<std::vector<TimedSchedule>> timed = timedSchedules(
          pipeline, *times, [&](PipelineOp) -> auto & { return analysis; });
      if (failed(timed))
        return failure();
      all.push_back(std::move(timed->front()));
    }
    return success();
  }

  /// Prints and writes what the settings ask for. Fails, with a diagnostic, if
  /// a file cannot be written, and after all of them if a pipeline exceeds its
  /// memory cap.
  LogicalResult write() {
    if (!settings.measured.empty() && pipelines.size() > 1)
      return module.emitError()
             << kTool << ": expected one pipeline beside --measured, got "
             << pipelines.size();
    // A document on standard output is there alone.
    const bool isTextWanted = !llvm::is_contained(
        std::array{settings.svg, settings.trace, settings.json, settings.csv},
        "-");
    const char *report = settings.isComparison ? "comparison"
                         : settings.isReport   ? "table"
                                               : nullptr;
    if (isTextWanted &&
        failed(report ? writeReport(report, "-") : writeTimeline("text", "-")))
      return failure();
    if (failed(writeTimeline("svg", settings.svg)) ||
        failed(writeTimeline("chrome-trace", settings.trace)) ||
        failed(writeReport("json", settings.json)) ||
        failed(writeReport("csv", settings.csv)))
      return failure();
    return checkCaps(pipelines, all);
  }

private:
  LogicalResult partition() {
    PassManager manager(module.getContext());
    manager.enableVerifier(false);
    manager.addPass(createPartitionPass());
    return manager.run(module);
  }

  LogicalResult writeTimeline(StringRef name, const std::string &path) {
    if (path.empty())
      return success();
    if (timelines.empty()) {
      size_t width = settings.width > 0 ? settings.width : outputWidth();
      for (auto [pipeline, timed] : llvm::zip(pipelines, all))
        timelines.emplace_back(pipeline, timed,
                               settings.areSlots && timed.schedule.hasSlots(),
                               width);
    }
    const schedule::TimelineFormat *form =
        choose(module, kTool, "format", schedule::timelineFormats(), name);
    if (!settings.measured.empty()) {
      FailureOr<std::string> document =
          renderBeside(*form, pipelines.front(), timelines.front().timeline,
                       {settings.measured, settings.copy}, kTool);
      return failed(document) ? failure()
                              : writeDocument(module, kTool, path, *document);
    }
    std::vector<schedule::Timeline> list;
    for (const ShownTimeline &shown : timelines)
      list.push_back(shown.timeline);
    return writeDocument(module, kTool, path, form->render(list));
  }

  LogicalResult writeReport(StringRef name, const std::string &path) {
    if (path.empty())
      return success();
    if (reports.empty())
      for (auto [pipeline, timed] : llvm::zip(pipelines, all)) {
        FailureOr<schedule::Report> report = reportOf(pipeline, timed);
        if (failed(report))
          return failure();
        reports.push_back(std::move(*report));
      }
    const schedule::ReportFormat *form =
        choose(module, kTool, "format", schedule::reportFormats(), name);
    return writeDocument(module, kTool, path, form->render(reports));
  }

  ModuleOp module;
  const ShowSettings &settings;
  SmallVector<PipelineOp> pipelines;
  std::deque<ScheduleAnalysis> analyses;
  std::vector<TimedSchedule> all;
  // Made when first asked for. A deque: timelines do not move.
  std::deque<ShownTimeline> timelines;
  std::vector<schedule::Report> reports;
};

} // namespace

int main(int argc, char **argv) {
  guardOutputs();
  llvm::InitLLVM init(argc, argv);
  ShowSettings settings;
  if (std::optional<int> status = readShowSettings(argc, argv, settings))
    return *status;
  const NamedFile inputs[] = {{"the input", settings.input},
                              {"--measured", settings.measured}};
  const NamedFile outputs[] = {{"--svg", settings.svg},
                               {"--trace", settings.trace},
                               {"--json", settings.json},
                               {"--csv", settings.csv}};
  if (std::string fault = faultOfOutputs(inputs, outputs); !fault.empty())
    return fail(fault);
  if (isDevice(settings.input))
    return fail(settings.input + ": expected a file or a pipe, got a device");
  std::unique_ptr<llvm::MemoryBuffer> text = readInput(settings);
  if (!text)
    return 1;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ChimeraDialect>();
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  nameMadeOps(context);
  sources.AddNewSourceBuffer(std::move(text), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;
  Shown shown(*module, settings);
  int status = succeeded(shown.simulate()) && succeeded(shown.write()) ? 0 : 1;
  // Tearing down a large module takes as long as showing it.
  llvm::outs().flush();
  std::_Exit(status);
}
