//===- CompileCheck.cpp - Whether a planned pipeline compiles -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/CompileCheck.h"

#include "compiler/PassPipelines.h"
#include "dialect/Chimera.h"
#include "passes/Passes.h"
#include "passes/Workers.h"
#include "passes/allocate/Allocator.h"
#include "passes/communicate/Posts.h"
#include "passes/describe/DescriptionReader.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace chimera {

namespace {

/// One compilation of a module, in an MLIR context of its own. Keeps the first
/// error.
class Trial {
public:
  explicit Trial(const std::string &text)
      : context(MLIRContext::Threading::DISABLED),
        handler(&context, [this](Diagnostic &diagnostic) { add(diagnostic); }) {
    context.loadDialect<ChimeraDialect>();
    context.printOpOnDiagnostic(false);
    module = parseSourceString<ModuleOp>(text, &context);
  }

  /// Lowers the module to `phase`.
  bool lower(Phase phase) {
    return run([&](OpPassManager &passes) {
      buildPipeline(passes, Phase::Described, phase, /*checked=*/false);
    });
  }

  enum class Size { Fits, TooLarge, Unknown };

  /// Allocates the buffers of each worker of the projected module, with each
  /// receive posted as late as possible. Returns whether all workers fit into
  /// the memory. Unknown means that a full compilation must decide.
  Size allocateWithLateReceives() {
    bool exceeds = false;
    for (auto pipeline : module->getOps<PipelineOp>()) {
      std::optional<uint64_t> cap = capOf(pipeline);
      for (WorkerOp worker : workersOf(pipeline)) {
        if (failed(postInWindow(worker, 1)))
          return Size::Unknown;
        FailureOr<Allocated> taken = allocate(worker);
        if (failed(taken))
          return Size::Unknown;
        exceeds |= cap && static_cast<uint64_t>(taken->withoutGaps) > *cap;
      }
    }
    if (run([](OpPassManager &passes) {
          passes.addPass(createCheckMemoryPass());
        }))
      return Size::Fits;
    return exceeds ? Size::TooLarge : Size::Unknown;
  }

  std::string error() const {
    return firstError.empty() ? "its passes failed" : firstError;
  }

private:
  bool run(llvm::function_ref<void(OpPassManager &)> addPasses) {
    PassManager manager(&context);
    manager.enableVerifier(false);
    addPasses(manager);
    return module && succeeded(manager.run(*module));
  }

  void add(const Diagnostic &diagnostic) {
    if (firstError.empty() &&
        diagnostic.getSeverity() == DiagnosticSeverity::Error)
      firstError = diagnostic.str();
  }

  MLIRContext context;
  std::string firstError;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
};

} // namespace

std::string compileError(const std::string &text) {
  // A full compilation spends most of its time on choosing a receive window
  // (how many receives a worker posts in advance). If memory is scarce, it
  // tries one window after another. Receives that are posted as late as
  // possible need the least memory. If all workers fit with such late receives,
  // the compiler finds a window. If even without gaps between its values a
  // worker does not fit, the compiler finds none.
  Trial late(text);
  if (!late.lower(Phase::Projected))
    return late.error();
  switch (late.allocateWithLateReceives()) {
  case Trial::Size::Fits:
    return {};
  case Trial::Size::TooLarge:
    return late.error();
  case Trial::Size::Unknown:
    break;
  }
  // With late receives, some worker would only fit if it had no gaps between
  // its values. Another receive window may leave smaller gaps, so compile with
  // all windows.
  Trial whole(text);
  return whole.lower(Phase::Allocated) ? "" : whole.error();
}

} // namespace chimera
