//===- ChooseWindow.cpp - How far ahead receives are posted ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Windows.h"
#include "passes/Passes.h"
#include "passes/Workers.h"
#include "passes/allocate/Allocator.h"
#include "passes/communicate/Posts.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/schedule/ScheduleAnalysis.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_CHOOSEWINDOWPASS
#include "passes/Passes.h.inc"

namespace {

/// Compares the memory of workers with their cap for different windows. A
/// window is the number of receives that a worker may post in advance on a
/// channel. The memory depends on the whole allocated stream of a worker. So
/// this class allocates copies of the workers.
class CapTrial {
public:
  CapTrial(ArrayRef<WorkerOp> workers, uint64_t bytes)
      : workers(workers), bytes(bytes) {}

  /// The first of `windows` with which no worker exceeds the cap, or 0 if there
  /// is no such window.
  FailureOr<int32_t> firstThatFits(ArrayRef<int32_t> windows) {
    for (int32_t window : windows) {
      FailureOr<bool> isEnough = fits(window);
      if (failed(isEnough))
        return failure();
      if (*isEnough)
        return window;
    }
    return 0;
  }

  /// The largest window up to `most` with which no worker would exceed the cap
  /// if arenas had no gaps, or 0 if there is none. A larger window posts
  /// receives earlier, so without gaps it never needs less memory. Therefore a
  /// bisection finds the limit. Gaps only add memory, so a window above the
  /// limit does not fit with gaps either.
  FailureOr<int32_t> largestWithoutGaps(int32_t most) {
    int32_t below = 0, above = most + 1;
    for (int32_t next = most; below + 1 < above;
         next = below + (above - below) / 2) {
      FailureOr<std::vector<Allocated>> all = allocated(next);
      if (failed(all))
        return failure();
      bool isTooLarge = llvm::any_of(*all, [&](const Allocated &taken) {
        return exceeds(taken.withoutGaps);
      });
      (isTooLarge ? above : below) = next;
    }
    return below;
  }

private:
  FailureOr<bool> fits(int32_t window) {
    // First try the worker that exceeded the cap last, because it is the
    // likeliest to exceed the cap again.
    if (lastExceeding) {
      FailureOr<Allocated> first = allocated(lastExceeding, window);
      if (failed(first))
        return failure();
      if (exceeds(first->bytes()))
        return false;
    }
    FailureOr<std::vector<Allocated>> all = allocated(window);
    if (failed(all))
      return failure();
    for (auto [worker, taken] : llvm::zip(workers, *all))
      if (exceeds(taken.bytes())) {
        lastExceeding = worker;
        return false;
      }
    return true;
  }

  bool exceeds(int64_t taken) const {
    return static_cast<uint64_t>(taken) > bytes;
  }

  static FailureOr<Allocated> allocated(WorkerOp worker, int32_t window) {
    OwningOpRef<WorkerOp> copy = worker.clone();
    if (failed(postInWindow(*copy, window)))
      return failure();
    return allocate(*copy);
  }

  FailureOr<std::vector<Allocated>> allocated(int32_t window) const {
    std::vector<Allocated> all(workers.size());
    if (failed(forEachWorker(
            workers.front()->getContext(), workers.size(), [&](size_t w) {
              FailureOr<Allocated> taken = allocated(workers[w], window);
              if (succeeded(taken))
                all[w] = *taken;
              return LogicalResult(taken);
            })))
      return failure();
    return all;
  }

  SmallVector<WorkerOp> workers;
  uint64_t bytes;
  WorkerOp lastExceeding;
};

/// The fastest window with which no worker exceeds the cap. If several windows
/// are equally fast, the smallest of them. If no window fits, 1:
/// chimera-check-memory then fails.
FailureOr<int32_t> fastestWithin(CapTrial cap,
                                 const schedule::Windows &windows) {
  // No window is faster than `fastest`, and all larger windows are equally
  // fast. So larger windows are tried before smaller ones.
  int32_t fastest = windows.fastestWindow();
  FailureOr<int32_t> found = cap.firstThatFits(fastest);
  if (failed(found) || *found != 0)
    return found;
  FailureOr<int32_t> most = cap.largestWithoutGaps(windows.maxMessages());
  if (failed(most))
    return failure();
  SmallVector<int32_t> others;
  for (int32_t window = fastest + 1; window <= *most; ++window)
    others.push_back(window);
  for (int32_t window = std::min(fastest - 1, *most); window > 0; --window)
    others.push_back(window);
  found = cap.firstThatFits(others);
  if (failed(found) || *found >= fastest)
    return found;
  if (*found == 0)
    return 1;
  return cap.firstThatFits(llvm::to_vector(
      llvm::seq_inclusive(windows.fastestWindow(*found), *found)));
}

/// The window of the pipeline. If the description states one, returns it, and
/// fails if it is too small for a worker. Otherwise the simulator chooses the
/// window.
FailureOr<int32_t> windowOf(PipelineOp pipeline, ArrayRef<WorkerOp> workers,
                            ScheduleAnalysis &analysis) {
  if (std::optional<uint64_t> given = pipeline.getReceiveWindow()) {
    auto window = static_cast<int32_t>(*given);
    if (failed(
            forEachWorker(pipeline.getContext(), workers.size(), [&](size_t w) {
              return checkWindow(workers[w], window);
            })))
      return failure();
    return window;
  }
  // If messages take no time, there is nothing to choose.
  if (!pipeline.getLink() && !pipeline.getMachine())
    return 1;
  const ScheduledProblem *of = analysis.verified();
  if (!of)
    return failure();
  if (!of->problem.hasFlights())
    return 1;
  schedule::Windows windows(of->problem, of->schedule);
  std::optional<uint64_t> cap = capOf(pipeline);
  return cap ? fastestWithin(CapTrial(workers, *cap), windows)
             : windows.fastestWindow();
}

struct ChooseWindow : impl::ChooseWindowPassBase<ChooseWindow> {
  using ChooseWindowPassBase::ChooseWindowPassBase;

  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(run(pipeline)))
        return signalPassFailure();
    markAnalysesPreserved<ScheduleAnalysis>();
  }

  LogicalResult run(PipelineOp pipeline) {
    SmallVector<WorkerOp> workers = workersOf(pipeline);
    if (workers.empty())
      return pipeline.emitOpError(
          "expected workers: run chimera-project first");
    for (WorkerOp worker : workers)
      if (failed(requireProjected(worker)))
        return failure();
    if (messages == program::MessageModel::StreamPerDevice ||
        messages == program::MessageModel::StreamPerPair) {
      if (pipeline.getReceiveWindow())
        return pipeline.emitOpError("expected no receive_window for ")
               << program::nameOf(messages)
               << " messages, which both ends must post in one order";
      setWindow(workers, 1);
      return success();
    }
    FailureOr<int32_t> window = windowOf(
        pipeline, workers, getChildAnalysis<ScheduleAnalysis>(pipeline));
    if (failed(window))
      return failure();
    setWindow(workers, *window);
    return success();
  }

  static void setWindow(ArrayRef<WorkerOp> workers, int32_t window) {
    for (WorkerOp worker : workers)
      worker.setReceiveWindow(window > 1 ? std::optional<uint64_t>(window)
                                         : std::nullopt);
  }
};

} // namespace
} // namespace chimera
