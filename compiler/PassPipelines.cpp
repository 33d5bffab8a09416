//===- PassPipelines.cpp - The path from description to program -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/PassPipelines.h"

#include "compiler/VerifyProgram.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace chimera {

void addBoundaryVerifier(OpPassManager &manager, Phase phase) {
  switch (phase) {
  case Phase::Described:
    return;
  case Phase::Partitioned:
    return manager.addPass(createVerifyPartitionedPass());
  case Phase::Unrolled:
    return manager.addPass(createVerifyUnrolledPass());
  case Phase::Scheduled:
    return manager.addPass(createVerifyScheduledPass());
  case Phase::Communicated:
    return manager.addPass(createVerifyCommunicatedPass());
  case Phase::Synchronised:
    return manager.addPass(createVerifySynchronisedPass());
  case Phase::Projected:
    return manager.addPass(createVerifyProjectedPass());
  case Phase::Allocated:
    return manager.addPass(createVerifyAllocatedPass());
  }
}

/// The pass manager that runs on each worker of each pipeline.
static OpPassManager &onWorkers(OpPassManager &manager) {
  return manager.nest<PipelineOp>().nest<WorkerOp>();
}

/// projected → projected. Chooses where receives are posted and which posts are
/// grouped.
static void addMessagePlacement(OpPassManager &manager,
                                program::MessageModel messages) {
  // Chooses how far ahead receives are posted. If workers have memory caps, it
  // tries the two passes after it on copies of the workers.
  manager.addPass(createChooseWindowPass({messages}));
  onWorkers(manager).addPass(createPlaceMessagesPass({messages}));
}

/// projected → allocated. Gives every value a buffer and checks memory caps.
static void addAllocation(OpPassManager &manager) {
  onWorkers(manager).addPass(createAllocatePass());
  manager.addPass(createCheckMemoryPass());
}

void buildPipeline(OpPassManager &manager, Phase from, Phase to, bool checked,
                   program::MessageModel messages) {
  auto leadsTo = [&](Phase phase) { return from < phase && phase <= to; };
  auto reached = [&](Phase phase) {
    if (checked)
      addBoundaryVerifier(manager, phase);
  };

  // described → partitioned. Stages get their costs and sizes. Then the
  // pipeline gets its plan, from the schedule that it names or from its own
  // directions and orders: the placement, when weights change, and the order of
  // each worker as text. No later phase asks the schedule library for a plan.
  if (leadsTo(Phase::Partitioned)) {
    manager.addPass(createPartitionPass());
    reached(Phase::Partitioned);
  }

  // → unrolled. The step is a dataflow graph of all its actions. It already has
  // the all-reduces and optimizer steps, so all dependencies are known before
  // anything is ordered.
  if (leadsTo(Phase::Unrolled)) {
    manager.addPass(createUnrollPass());
    reached(Phase::Unrolled);
  }

  // → scheduled. The orders of the workers are verified and merged into one
  // order of the block. From now on, running the block in its order is a legal
  // execution of all workers, and every later phase preserves this.
  if (leadsTo(Phase::Scheduled)) {
    manager.addPass(createSchedulePass());
    // Still scheduled. It needs the order, because a backward directly after
    // its forward needs no recompute. It must run before communicate, because a
    // recompute changes which op uses a value last and where a gradient is
    // waited for.
    manager.addPass(createRecomputePass());
    reached(Phase::Scheduled);
  }

  // → communicated. It needs the global order: all posts come from one walk
  // over it, so both ends of a channel agree and no cycle of waits can exist.
  // It must run before project: afterwards workers share no value, and project
  // can move ops instead of copying them.
  if (leadsTo(Phase::Communicated)) {
    manager.addPass(createCommunicatePass({messages}));
    reached(Phase::Communicated);
  }

  // → synchronised. It must run after communicate, so that no post comes after
  // the waits of an all-reduce: the lazy policy puts the waits last.
  if (leadsTo(Phase::Synchronised)) {
    manager.addPass(createSynchronisePass({messages}));
    reached(Phase::Synchronised);
  }

  // → projected. Decides nothing. From now on a pass may run on each worker
  // separately.
  if (leadsTo(Phase::Projected)) {
    manager.addPass(createProjectPass());
    reached(Phase::Projected);
  }

  // Still projected. Chooses, on each worker's stream, where receives are
  // posted and which posts are grouped. It moves posts of receives to after a
  // wait of their channel, and it moves waits for sends. It runs after project
  // because a receive window belongs to one worker, and before allocate because
  // a receive has its buffer from its post on.
  if (leadsTo(Phase::Allocated)) {
    addMessagePlacement(manager, messages);
    // → allocated. Last, because the buffers depend on the final order of each
    // worker.
    addAllocation(manager);
    reached(Phase::Allocated);
  }
}

/// True if `manager` runs its passes on a module, not on an op inside of one.
static bool isOnModules(const OpPassManager &manager) {
  std::optional<StringRef> name = manager.getOpName();
  return !name || *name == ModuleOp::getOperationName();
}

/// Registers a pass pipeline that runs on modules. If a user nests it in
/// another op, or gives it an option that it does not have, that is an error.
template <typename Options>
static void
registerPipeline(const Twine &name, const Twine &summary,
                 std::function<void(OpPassManager &, const Options &)> build) {
  std::string argument = name.str();
  registerPassPipeline(
      argument, summary.str(),
      [argument, build = std::move(build)](
          OpPassManager &manager, StringRef text,
          function_ref<LogicalResult(const Twine &)> fail) -> LogicalResult {
        if (!isOnModules(manager))
          return fail("--" + argument + " runs on a module, not inside a " +
                      *manager.getOpName());
        if (std::is_same_v<Options, EmptyPipelineOptions> && !text.empty())
          return fail("--" + argument + " takes no options, got '" + text +
                      "': use the options of its passes instead");
        Options options;
        std::string known, message;
        llvm::raw_string_ostream showKnown(known), showMessage(message);
        options.print(showKnown);
        if (failed(options.parseFromString(text, showMessage)))
          return fail("--" + optionError(argument, known, text, message));
        build(manager, options);
        return success();
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> show) {
        show(Options());
      });
}

static void registerPipeline(const Twine &name, const Twine &summary,
                             std::function<void(OpPassManager &)> build) {
  registerPipeline<EmptyPipelineOptions>(
      name, summary,
      [build = std::move(build)](OpPassManager &manager,
                                 const EmptyPipelineOptions &) {
        build(manager);
      });
}

/// The option of the passes that place messages.
struct MessagesOption : PassPipelineOptions<MessagesOption> {
  Option<program::MessageModel> messages{
      *this, "messages",
      llvm::cl::desc("Message model for which messages are placed"),
      llvm::cl::init(program::MessageModel::Rendezvous), messageModels()};
};

void registerPipelines() {
  registerChimeraPasses();
  registerVerifyProgramPass();

  for (Phase phase : phases().subspan(1))
    registerPipeline("chimera-to-" + nameOf(phase),
                     "Lower a described pipeline to the phase: " +
                         nameOf(phase),
                     [phase](OpPassManager &manager) {
                       buildPipeline(manager, Phase::Described, phase,
                                     /*checked=*/true);
                     });

  // These two pipelines are for users who run the phases one by one.
  registerPipeline<MessagesOption>(
      "chimera-place-messages",
      "Choose receive windows and post receives in them, or group crossing "
      "messages",
      [](OpPassManager &manager, const MessagesOption &option) {
        addMessagePlacement(manager, option.messages);
      });
  registerPipeline("chimera-allocate",
                   "Assign memory to every value of each worker",
                   addAllocation);

  registerPipeline(
      "chimera-timeline",
      "Schedule a described pipeline and print its timeline in equal slots",
      [](OpPassManager &manager) {
        buildPipeline(manager, Phase::Described, Phase::Scheduled,
                      /*checked=*/true);
        manager.addPass(createPrintTimelinePass());
      });
}

} // namespace chimera
