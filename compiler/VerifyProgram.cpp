//===- VerifyProgram.cpp - Program verification as diagnostics ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/VerifyProgram.h"

#include "compiler/Emit.h"
#include "compiler/schedule/simulate/Memory.h"
#include "dialect/Chimera.h"
#include "passes/PassOptions.h"
#include "passes/Workers.h"
#include "runtime/proof/Verify.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

#include <utility>

using namespace mlir;

namespace chimera {

/// The source location of the violation's instruction or, if there is none, of
/// its worker or of the pipeline.
static Location locationOf(ModuleOp module, const program::ProgramT &program,
                           const program::Violation &violation) {
  PipelineOp pipeline = *module.getOps<PipelineOp>().begin();
  if (violation.worker >= program.workers.size())
    return pipeline.getLoc();
  const auto &stream = program.workers[violation.worker]->instructions;
  if (violation.instruction >= stream.size() ||
      stream[violation.instruction].location() >= program.locations.size())
    return workersOf(pipeline)[violation.worker].getLoc();
  const program::Location &location =
      program.locations[stream[violation.instruction].location()];
  return FileLineColLoc::get(module.getContext(),
                             program.files[location.file()], location.line(),
                             location.column());
}

/// Adds a note with the place where the worker's peak is stated, if it is: an
/// edit of the module may have made the stated peak wrong.
static void notePeak(InFlightDiagnostic &error, ModuleOp module,
                     const program::Violation &violation) {
  PipelineOp pipeline = *module.getOps<PipelineOp>().begin();
  SmallVector<WorkerOp> workers = workersOf(pipeline);
  if (violation.worker >= workers.size() ||
      !workers[violation.worker].getPeakBytes())
    return;
  error.attachNote(workers[violation.worker].getLoc())
      << "the peak is stated here: delete `peak` to have it computed";
}

LogicalResult verifyProgram(ModuleOp module, const program::ProgramT &program) {
  using Rule = program::Violation::Rule;
  std::vector<program::Violation> violations = program::verifyProgram(program);
  auto exceeds = [](const program::Violation &violation) {
    return violation.rule == Rule::Cap;
  };
  // Report all workers that exceed their caps in one diagnostic.
  std::string others =
      schedule::othersAbove(llvm::count_if(violations, exceeds) - 1);
  bool isCapTold = false;
  for (const program::Violation &violation : violations) {
    if (exceeds(violation) && std::exchange(isCapTold, true))
      continue;
    InFlightDiagnostic error =
        emitError(locationOf(module, program, violation), violation.message);
    if (exceeds(violation))
      error << others;
    if (violation.rule == Rule::Memory)
      notePeak(error, module, violation);
  }
  return success(violations.empty());
}

namespace {

struct VerifyProgramPass : PassWrapper<VerifyProgramPass, PassOn<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyProgramPass)

  VerifyProgramPass() = default;
  // The options are not copied here, because they cannot be. The pass manager
  // copies their values.
  VerifyProgramPass(const VerifyProgramPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "chimera-verify-program"; }
  StringRef getDescription() const final {
    return "Prove the program of allocated IR correct: matching, deadlock, "
           "buffers, values, weights and memory";
  }

  void runOnOperation() override {
    std::unique_ptr<program::ProgramT> program = emitProgram(getOperation());
    if (!program)
      return signalPassFailure();
    program->message_model = messages;
    if (failed(verifyProgram(getOperation(), *program)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  Option<program::MessageModel> messages{
      *this, "messages",
      llvm::cl::desc("Message model under which the program is proven"),
      llvm::cl::init(program::MessageModel::Rendezvous), messageModels()};
};

} // namespace

void registerVerifyProgramPass() { PassRegistration<VerifyProgramPass>(); }

} // namespace chimera
