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

/// What runs on the workers of all pipelines.
static OpPassManager &onWorkers(OpPassManager &manager) {
  return manager.nest<PipelineOp>().nest<WorkerOp>();
}

/// projected → projected: where receives are posted and what is grouped.
static void placeMessages(OpPassManager &manager,
                          program::MessageModel messages) {
  // How far ahead, tried with the passes that follow on copies where workers
  // have caps.
  manager.addPass(createChooseWindowPass({messages}));
  onWorkers(manager).addPass(createPlaceMessagesPass({messages}));
}

/// projected → allocated.
static void allocate(OpPassManager &manager) {
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

  // described → partitioned. Stages get their costs and sizes, then the
  // pipeline its plan, of a scheme or as it is given: the placement, when
  // weights change, and each worker's order as text. Behind this no phase asks
  // a scheme.
  if (leadsTo(Phase::Partitioned)) {
    manager.addPass(createPartitionPass());
    reached(Phase::Partitioned);
  }

  // → unrolled. Every action of a step as a dataflow graph. All-reduces and
  // optimizer steps are here already: what depends on what is settled before
  // anything is ordered.
  if (leadsTo(Phase::Unrolled)) {
    manager.addPass(createUnrollPass());
    reached(Phase::Unrolled);
  }

  // → scheduled. The workers' orders are verified and become one order of the
  // block. From here on that is a legal global execution, and every later phase
  // keeps it.
  if (leadsTo(Phase::Scheduled)) {
    manager.addPass(createSchedulePass());
    // Still scheduled. Needs the order, since a backward straight behind its
    // forward recomputes nothing; must come before communicate, since a
    // recompute changes who uses a value last and where a gradient is awaited.
    manager.addPass(createRecomputePass());
    reached(Phase::Scheduled);
  }

  // → communicated. Must see the global order: all posts come from one walk
  // over it, which is why both ends of a channel agree and nothing can wait in
  // a cycle. Must come before project, so that workers share no value and
  // project can move ops instead of copying them.
  if (leadsTo(Phase::Communicated)) {
    manager.addPass(createCommunicatePass({messages}));
    reached(Phase::Communicated);
  }

  // → synchronised. After communicate, so that no post stands behind the waits
  // of an all-reduce: the lazy policy puts those last.
  if (leadsTo(Phase::Synchronised)) {
    manager.addPass(createSynchronisePass({messages}));
    reached(Phase::Synchronised);
  }

  // → projected. Decides nothing. From here on a pass may run on each worker
  // by itself.
  if (leadsTo(Phase::Projected)) {
    manager.addPass(createProjectPass());
    reached(Phase::Projected);
  }

  // Still projected. Where receives are posted and what is grouped is decided
  // on final streams: what a worker has to itself. It moves posts, behind
  // their channel's waits, and what waits for sends; after project, since on
  // the global order a window would have to be followed per worker anyway, and
  // before allocate, since a receive has its buffer from its post on.
  if (leadsTo(Phase::Allocated)) {
    placeMessages(manager, messages);
    // → allocated. Last, since buffers follow from the final order of each
    // worker.
    allocate(manager);
    reached(Phase::Allocated);
  }
}

/// True if passes are added that run on a module, not on what is inside one.
static bool isOnModules(const OpPassManager &manager) {
  std::optional<StringRef> name = manager.getOpName();
  return !name || *name == ModuleOp::getOperationName();
}

/// Registers a pipeline for modules. Inside another op it is refused, and so is
/// an option that it does not have.
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
                      "': give them to a pass of it");
        Options options;
        std::string known, message;
        llvm::raw_string_ostream showKnown(known), showMessage(message);
        options.print(showKnown);
        if (failed(options.parseFromString(text, showMessage)))
          return fail("--" + optionFault(argument, known, text, message));
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
      llvm::cl::desc("The semantics of messages for which they are placed"),
      llvm::cl::init(program::MessageModel::Rendezvous), messageModels()};
};

void registerPipelines() {
  registerChimeraPasses();
  registerVerifyProgramPass();

  for (Phase phase : phases().subspan(1))
    registerPipeline("chimera-to-" + nameOf(phase),
                     "Take a described pipeline to the form: " + nameOf(phase),
                     [phase](OpPassManager &manager) {
                       buildPipeline(manager, Phase::Described, phase,
                                     /*checked=*/true);
                     });

  // For those who run the phases one by one.
  registerPipeline<MessagesOption>(
      "chimera-place-messages",
      "Choose a window and post receives in it, or group what crosses",
      [](OpPassManager &manager, const MessagesOption &option) {
        placeMessages(manager, option.messages);
      });
  registerPipeline("chimera-allocate",
                   "Give every value of each worker a place in memory",
                   allocate);

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
