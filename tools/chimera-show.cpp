//===- chimera-show.cpp - Look at schedules -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/DiagnosticPrinter.h"
#include "compiler/Phase.h"
#include "compiler/Source.h"
#include "compiler/schedule/formats/TorchWriter.h"
#include "compiler/schedule/timeline/Svg.h"
#include "compiler/schedule/timeline/TimelineFormats.h"
#include "passes/Passes.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/report/ShownSchedule.h"
#include "passes/report/Title.h"
#include "runtime/program/Printable.h"
#include "tools/OutputErrors.h"
#include "tools/Pdf.h"
#include "tools/ShowInput.h"
#include "tools/ShowSettings.h"
#include "tools/Start.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InitLLVM.h"

#include <deque>

using namespace mlir;
using namespace chimera;

static constexpr StringRef kTool = "chimera-show";

static int fail(const llvm::Twine &error) {
  llvm::errs() << kTool << ": " << error << "\n";
  return 1;
}

/// The times with which to show a pipeline.
static TimeOptions timeOptionsOf(const ShowSettings &settings,
                                 PipelineOp pipeline,
                                 const StatedCosts &stated) {
  if (settings.showsSlots)
    return {"uniform", "none", {}, {}, {}, {}, {}};
  TimeOptions options{settings.costs,
                      settings.unit,
                      settings.forward,
                      settings.backward,
                      settings.weightGradient,
                      settings.update,
                      {}};
  for (const auto &[name, time] : settings.messages)
    options.messages.emplace_back(name, time);
  return completeTimes(pipeline, stated, std::move(options));
}

/// `message` without "'chimera.order' op " or "custom op 'chimera.pipeline' "
/// at its beginning. The user of -e or of an order file has written no ops.
static StringRef withoutOp(StringRef message) {
  StringRef rest = message;
  const bool isOfParser = rest.consume_front("custom op ");
  if (!rest.consume_front("'chimera."))
    return message;
  rest = rest.drop_while([](char c) { return c != '\''; });
  return rest.consume_front(isOfParser ? "' " : "' op ") ? rest : message;
}

/// Prints a diagnostic about an expression of -e, and the word of the
/// expression at `place`.
static void printAboutExpression(const Diagnostic &diagnostic,
                                 const ExpressionModule &expressions,
                                 FileLineColLoc place) {
  std::string word = expressions.wordAt(place.getLine(), place.getColumn());
  llvm::errs() << kTool << ": -e: " << program::printable(word)
               << (word.empty() ? "" : ": ")
               << (diagnostic.getSeverity() == DiagnosticSeverity::Warning
                       ? "warning: "
                       : "")
               << withoutOp(diagnostic.str()) << "\n";
  for (const Diagnostic &note : diagnostic.getNotes())
    llvm::errs() << "note: " << note.str() << "\n";
}

/// Removes the op from the message of `diagnostic`, and changes its place and
/// those of its notes to places in the input.
static void moveToInput(Diagnostic &diagnostic, const ShowInput &input) {
  auto placeOf = [&](const Diagnostic &of) {
    Location place = of.getLocation();
    if (auto found = place->findInstanceOf<FileLineColLoc>())
      // The column of a whole line is that of the quote before it (OrderOp).
      place = FileLineColLoc::get(
          found.getFilename(), found.getLine(),
          std::max(1u,
                   input.torch.columnOf(found.getLine(), found.getColumn())));
    return place;
  };
  Diagnostic moved(placeOf(diagnostic), diagnostic.getSeverity());
  moved << withoutOp(diagnostic.str()).str();
  for (const Diagnostic &note : diagnostic.getNotes())
    moved.attachNote(placeOf(note)) << note.str();
  diagnostic = std::move(moved);
}

namespace {

/// The pipelines of a module with their times.
class PipelineView {
public:
  /// Refers to all three arguments.
  PipelineView(ModuleOp module, const ShowSettings &settings,
               const ShowInput &input)
      : module(module), settings(settings), input(input) {
    // Lowering changes the module.
    if (!settings.description.empty())
      description = print(module);
  }

  /// Orders and simulates all pipelines. Fails, with a diagnostic, if that is
  /// not possible.
  LogicalResult simulate() {
    pipelines = llvm::to_vector(module.getOps<PipelineOp>());
    if (pipelines.empty())
      return module.emitError()
             << kTool << ": expected a chimera.pipeline, got none"
             << (module.getOps<MachineOp>().empty()
                     ? ""
                     : ": chimera-plan finds one for a model and a machine");
    std::vector<StatedCosts> stated(pipelines.begin(), pipelines.end());
    if (!settings.costsFrom.empty() && failed(takeCosts()))
      return failure();
    if (llvm::any_of(pipelines,
                     [](PipelineOp pipeline) {
                       return phaseOf(pipeline) == Phase::Described;
                     }) &&
        failed(partition()))
      return failure();
    for (auto [pipeline, costs] : llvm::zip_equal(pipelines, stated)) {
      FailureOr<TimedSchedule> timed = scheduleToShow(
          pipeline, costs, timeOptionsOf(settings, pipeline, costs),
          analyses.emplace_back(pipeline), kTool);
      if (failed(timed))
        return failure();
      all.push_back(std::move(*timed));
    }
    return success();
  }

  /// Prints and writes everything that the settings ask for. Fails, with a
  /// diagnostic, if a file cannot be written. If a pipeline exceeds its memory
  /// cap, fails after everything is written.
  LogicalResult write() {
    if (!settings.measured.empty() && pipelines.size() > 1)
      return module.emitError()
             << kTool << ": expected one pipeline with --measured, got "
             << pipelines.size();
    if (failed(makeTorchFile()))
      return failure();
    const bool isPictureWanted = !settings.svg.empty() || !settings.pdf.empty();
    if (isPictureWanted && settings.measured.empty())
      if (std::string fault = schedule::pictureError(shownTimelines());
          !fault.empty())
        return module.emitError() << kTool << ": " << fault;
    // If a document goes to standard output, nothing else may go there.
    const bool isTextWanted = !llvm::is_contained(
        std::array{settings.svg, settings.pdf, settings.html, settings.trace,
                   settings.json, settings.csv, settings.torchCsv,
                   settings.description},
        "-");
    const char *report = settings.printsComparison ? "comparison"
                         : settings.printsReport   ? "table"
                                                   : nullptr;
    if (isTextWanted &&
        failed(report ? writeReport(report, "-") : writeTimeline("text", "-")))
      return failure();
    // Notes on a program are about its grid.
    if (isTextWanted)
      llvm::outs() << input.note;
    else if (!input.torch.whyNoBlanks.empty())
      llvm::errs() << input.note;
    if (failed(writeTimeline("svg", settings.svg)) ||
        failed(writeTimeline("svg", settings.pdf, /*isPdf=*/true)) ||
        failed(writeTimeline("html", settings.html)) ||
        failed(writeTimeline("chrome-trace", settings.trace)) ||
        failed(writeReport("json", settings.json)) ||
        failed(writeReport("csv", settings.csv)) || failed(writeTorchFile()) ||
        failed(writeDescription(settings.description)))
      return failure();
    return checkCaps(pipelines, all);
  }

private:
  /// The text of a module. If an order comes from a file in another format, it
  /// is padded with blanks, so that words keep their columns. The text has none
  /// of this padding.
  static std::string print(ModuleOp module) {
    OwningOpRef<ModuleOp> copy = module.clone();
    copy->walk([](OrderOp order) {
      SmallVector<StringRef> words;
      order.getActions().split(words, ' ', /*MaxSplit=*/-1,
                               /*KeepEmpty=*/false);
      order.setActions(llvm::join(words, " "));
    });
    std::string text;
    llvm::raw_string_ostream(text) << *copy;
    return text;
  }

  /// The title of a pipeline. If the input is a program, the pipeline has a
  /// given order, so the title names the program's schedule.
  std::string title(PipelineOp pipeline) const {
    return input.schedule.empty() ? titleOf(pipeline)
                                  : titleOf(pipeline, input.schedule);
  }

  LogicalResult takeCosts() {
    PassManager manager(module.getContext());
    manager.addPass(createCostsFromPass({settings.costsFrom}));
    return manager.run(module);
  }

  LogicalResult partition() {
    PassManager manager(module.getContext());
    manager.enableVerifier(false);
    manager.addPass(createPartitionPass());
    return manager.run(module);
  }

  /// The timelines of all pipelines. They refer to `timelines`.
  std::vector<schedule::Timeline> shownTimelines() {
    if (timelines.empty()) {
      size_t width = settings.width > 0 ? settings.width : outputWidth();
      for (auto [pipeline, timed] : llvm::zip(pipelines, all)) {
        bool slots = settings.showsSlots && timed.schedule.hasSlots();
        schedule::Timeline &timeline =
            timelines.emplace_back(pipeline, timed, slots, width).timeline;
        timeline.picture = settings.picture;
        timeline.title = title(pipeline);
      }
    }
    std::vector<schedule::Timeline> list;
    for (const ShownTimeline &shown : timelines)
      list.push_back(shown.timeline);
    return list;
  }

  /// Writes the timelines to `path` in the format `name`. If `isPdf`, the
  /// format must be SVG, and the picture is converted to PDF.
  LogicalResult writeTimeline(StringRef name, const std::string &path,
                              bool isPdf = false) {
    if (path.empty())
      return success();
    const schedule::TimelineFormat *form =
        findEntry(module, kTool, "format", schedule::timelineFormats(), name);
    const std::vector<schedule::Timeline> list = shownTimelines();
    std::string document;
    if (settings.measured.empty()) {
      document = form->render(list);
    } else {
      FailureOr<std::string> both = renderSideBySide(
          *form, pipelines.front(), list.front(),
          {settings.measured, settings.copy, /*isOfTool=*/true}, kTool);
      if (failed(both))
        return failure();
      document = std::move(*both);
    }
    if (isPdf) {
      std::string error;
      std::optional<std::string> pdf = svgToPdf(document, error);
      if (!pdf)
        return module.emitError() << kTool << ": --pdf: " << error;
      document = std::move(*pdf);
    }
    return writeDocument(module, kTool, path, document);
  }

  LogicalResult writeReport(StringRef name, const std::string &path) {
    if (path.empty())
      return success();
    if (reports.empty())
      for (auto [pipeline, timed] : llvm::zip(pipelines, all)) {
        FailureOr<schedule::Report> report = reportOf(pipeline, timed);
        if (failed(report))
          return failure();
        report->title = title(pipeline);
        report->activationCap = settings.activationCap;
        if (!input.schedule.empty())
          report->schedule = program::printable(input.schedule);
        reports.push_back(std::move(*report));
      }
    const schedule::ReportFormat *form =
        findEntry(module, kTool, "format", schedule::reportFormats(), name);
    return writeDocument(module, kTool, path, form->render(reports));
  }

  /// Makes the file of PyTorch, if it is wanted.
  LogicalResult makeTorchFile() {
    if (settings.torchCsv.empty())
      return success();
    if (pipelines.size() > 1)
      return module.emitError()
             << kTool << ": expected one pipeline with --torch-csv, got "
             << pipelines.size();
    std::string error;
    torchFile = schedule::torch::write(all.front().problem,
                                       all.front().schedule, error);
    return torchFile
               ? success()
               : module.emitError() << kTool << ": --torch-csv: " << error;
  }

  /// Writes the file of PyTorch. Unless it is standard output, prints which
  /// stages PyTorch must have on each rank, because the file does not say it.
  LogicalResult writeTorchFile() {
    const std::string &path = settings.torchCsv;
    if (path.empty())
      return success();
    if (failed(writeDocument(module, kTool, path, *torchFile)))
      return failure();
    if (path == "-")
      return success();
    const schedule::Problem &problem = all.front().problem;
    llvm::outs() << "stages that PyTorch must have on each rank:";
    for (int32_t rank = 0; rank < problem.workers; ++rank) {
      llvm::outs() << (rank == 0 ? " " : "; ") << rank << ":";
      for (auto [stage, place] : llvm::enumerate(problem.pipelines[0].workers))
        if (place == rank)
          llvm::outs() << " " << stage;
    }
    llvm::outs() << "\n";
    return success();
  }

  LogicalResult writeDescription(const std::string &path) {
    return path.empty() ? success()
                        : writeDocument(module, kTool, path, description);
  }

  ModuleOp module;
  const ShowSettings &settings;
  const ShowInput &input;
  std::string description; ///< the module before lowering, if it is wanted
  std::optional<std::string> torchFile;
  SmallVector<PipelineOp> pipelines;
  std::deque<ScheduleAnalysis> analyses;
  std::vector<TimedSchedule> all;
  // Each timeline is made when it is first needed. A deque never moves its
  // elements.
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
                               {"--pdf", settings.pdf},
                               {"--html", settings.html},
                               {"--trace", settings.trace},
                               {"--json", settings.json},
                               {"--csv", settings.csv},
                               {"--torch-csv", settings.torchCsv},
                               {"--description", settings.description}};
  if (std::string fault = errorOfOutputs(inputs, outputs); !fault.empty())
    return fail(fault);
  if (std::string fault = settings.pdf.empty() ? "" : pdfError();
      !fault.empty())
    return fail("--pdf: " + fault);
  if (isDevice(settings.input))
    return fail(settings.input + ": expected a file or a pipe, got a device");
  std::optional<ShowInput> input = readShowInput(settings);
  if (!input)
    return 1;
  if (input->status)
    return *input->status;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ChimeraDialect>();
  context.printOpOnDiagnostic(false);
  const bool hasExpressions = !settings.expressions.empty();
  DiagnosticPrinter printer(context, kTool,
                            hasExpressions ? "-e" : settings.input);
  // If the module describes expressions or an order file, the user did not
  // write the module.
  const bool describesOrders = input->lines != nullptr;
  ScopedDiagnosticHandler shown(&context, [&](Diagnostic &diagnostic) {
    auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
    if (place && place.getLine() > 0 && hasExpressions) {
      printAboutExpression(diagnostic, input->expressions, place);
      return success();
    }
    if (describesOrders)
      moveToInput(diagnostic, *input);
    return failure();
  });
  printer.sources.AddNewSourceBuffer(std::move(input->module), llvm::SMLoc());
  if (input->lines)
    printer.sources.AddNewSourceBuffer(std::move(input->lines), llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(printer.sources, &context);
  if (!module)
    return 1;
  PipelineView view(*module, settings, *input);
  int status = succeeded(view.simulate()) && succeeded(view.write()) ? 0 : 1;
  // Exit without freeing the module, because that takes as long as showing it.
  llvm::outs().flush();
  std::_Exit(status);
}
