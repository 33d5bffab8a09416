//===- PlaceMessages.cpp - Receives in windows, posts in groups -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Windows.h"
#include "passes/Allocator.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "passes/Prefetch.h"
#include "passes/Workers.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Sequence.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PLACEMESSAGESPASS
#include "passes/Passes.h.inc"

namespace {

/// How many receives a worker may have outstanding on a channel.
struct Window {
  int32_t size;
  bool isGiven; ///< else it is larger where a channel needs it
};

/// Posts the receives of a worker in windows.
///
///   window 1: R0 … W0 R1 consumer … W1 R2 consumer …
///
/// Sends are waited for behind the action that uses what is sent in the global
/// order, or later: the walk over it stays a legal execution, since each
/// receive is posted before its own wait. So nothing but the order of a
/// channel's receives and waits on one worker can forbid a window.
class Receives {
public:
  explicit Receives(Window window) : window(window) {}

  LogicalResult place(Block &section) {
    channels.clear();
    anchor = nullptr;
    for (Operation &op : section) {
      prefetchNext(op);
      if (failed(collect(op)))
        return failure();
    }
    for (auto &[peer, channel] : channels)
      if (failed(place(peer, channel)))
        return failure();
    return success();
  }

private:
  /// In the order of posts, and of waits.
  struct Channel {
    std::vector<PostReceiveOp> posts;
    std::vector<WaitOp> waits;
  };

  LogicalResult collect(Operation &op) {
    if (auto receive = dyn_cast<PostReceiveOp>(op)) {
      if (!receive->hasOneUse() || !isa<WaitOp>(*receive->getUsers().begin()) ||
          (*receive->getUsers().begin())->getBlock() != op.getBlock())
        return receive.emitOpError("expected one wait for it in its section");
      channels[receive.getPeer()].posts.push_back(receive);
      return success();
    }
    if (!anchor)
      anchor = &op;
    if (isa<GroupOp>(op))
      return op.emitOpError("expected no group before chimera-place-messages, "
                            "which makes them");
    if (auto wait = dyn_cast<WaitOp>(op))
      if (auto receive = wait.getTransfer().getDefiningOp<PostReceiveOp>())
        channels[receive.getPeer()].waits.push_back(wait);
    return success();
  }

  LogicalResult place(uint32_t peer, Channel &channel) {
    int32_t size = window.size;
    // Made where messages overtake each other at all.
    DenseMap<Operation *, int32_t> numbers;
    for (auto [received, wait] : llvm::enumerate(channel.waits)) {
      auto receive = wait.getTransfer().getDefiningOp<PostReceiveOp>();
      if (numbers.empty() && receive == channel.posts[received])
        continue;
      if (numbers.empty())
        for (auto [number, post] : llvm::enumerate(channel.posts))
          numbers[post] = static_cast<int32_t>(number);
      // All that were sent before it and are not received yet, and itself.
      int32_t outstanding =
          numbers.lookup(receive) - static_cast<int32_t>(received) + 1;
      if (outstanding <= size)
        continue;
      if (window.isGiven)
        return refuse(peer, channel, receive, outstanding);
      size = outstanding;
    }
    for (auto [m, post] : llvm::enumerate(channel.posts))
      if (static_cast<int64_t>(m) < size)
        post->moveBefore(anchor);
      else
        post->moveAfter(channel.waits[m - size]);
    return success();
  }

  LogicalResult refuse(uint32_t peer, Channel &channel, PostReceiveOp receive,
                       int32_t outstanding) {
    InFlightDiagnostic error =
        receive.emitOpError("expected a receive_window of at least ");
    error << outstanding << " for it, got " << window.size
          << ": it is used before " << outstanding - 1
          << " messages that worker " << peer << " sends before it";
    // The first that is received later.
    Operation *later = nullptr;
    DenseSet<Operation *> before;
    for (WaitOp wait : channel.waits) {
      Operation *post = wait.getTransfer().getDefiningOp();
      before.insert(post);
      if (post == receive)
        break;
    }
    for (PostReceiveOp post : channel.posts)
      if (!later && !before.contains(post))
        later = post;
    if (later)
      error.attachNote(later->getLoc()) << "such as this one";
    return error;
  }

  Window window;
  std::map<uint32_t, Channel> channels;
  Operation *anchor = nullptr; ///< the first op that is no receive
};

/// Moves each wait for a send behind an action of its worker at least: there it
/// stands where its consumer starts while the worker goes on, as in the global
/// order of equal times, and so would the worker without it.
///
///   B0 S0 w0 B1 S1 …  →  B0 S0 B1 S1 w0 …
class Sends {
public:
  void place(Block &section) {
    posted.clear();
    waiting.clear();
    bool acted = false; // and nothing since but posts
    for (Operation &op : llvm::make_early_inc_range(section)) {
      prefetchNext(op);
      bool isPost = isa<PostSendOp, PostReceiveOp, GroupOp>(op);
      // Behind the action's own posts.
      if (acted && !isPost) {
        for (WaitOp wait : waiting)
          wait->moveBefore(&op);
        waiting.clear();
        acted = false;
      }
      if (isa<ActionOp>(op)) {
        posted.clear();
        acted = true;
      } else if (isPost) {
        posted.push_back(&op);
      }
      auto wait = dyn_cast<WaitOp>(op);
      if (!wait || !isa<SendingType>(wait.getTransfer().getType()))
        continue;
      if (llvm::is_contained(posted, wait.getTransfer().getDefiningOp()))
        waiting.push_back(wait);
    }
  }

private:
  /// The posts since the last action: few.
  SmallVector<Operation *> posted;
  /// Waits that stand before the next action.
  std::vector<WaitOp> waiting;
};

/// Makes groups of posts of a worker that stand side by side. What waits for
/// one of a group waits for all.
class Groups {
public:
  explicit Groups(MLIRContext *context) : builder(context) {}

  /// Of those to and from the same other, where there are both, one group.
  void groupCrossings(Block &section) {
    forEachRun(
        section, /*acrossWaits=*/false, [this](ArrayRef<Operation *> run) {
          std::map<uint32_t, SmallVector<Operation *>> peers;
          for (Operation *op : run) {
            auto send = dyn_cast<PostSendOp>(op);
            peers[send ? send.getPeer() : cast<PostReceiveOp>(op).getPeer()]
                .push_back(op);
          }
          for (auto &[peer, posts] : peers) {
            size_t sends = llvm::count_if(posts, llvm::IsaPred<PostSendOp>);
            if (sends > 0 && sends < posts.size())
              makeGroup(posts);
          }
        });
  }

  /// Of sends and the receive behind them one group, whatever the peers. Posts
  /// keep their order, so that groups take effect in that of their posts:
  ///
  ///   S0→1 S0→2 R0←1   a group of the first and the last would come before the
  ///                    other, of which worker 1's message may be made
  ///
  /// Nor is anything after a receive in its group, which may be awaited before
  /// that is ready.
  void groupUpToReceives(Block &section) {
    forEachRun(section, /*acrossWaits=*/true,
               [this](ArrayRef<Operation *> run) {
                 SmallVector<Operation *> posts;
                 for (Operation *op : run) {
                   posts.push_back(op);
                   if (op != run.back() && isa<PostSendOp>(op))
                     continue;
                   if (posts.size() > 1)
                     makeGroup(posts);
                   posts.clear();
                 }
               });
  }

private:
  /// Calls `groupRun` with the posts that stand side by side, or, with
  /// `acrossWaits`, with nothing but waits for sends between them.
  template <typename GroupRun>
  static void forEachRun(Block &section, bool acrossWaits, GroupRun groupRun) {
    SmallVector<Operation *> run;
    for (Operation &op : llvm::make_early_inc_range(section)) {
      if (isa<PostSendOp, PostReceiveOp>(op)) {
        run.push_back(&op);
        continue;
      }
      if (auto wait = dyn_cast<WaitOp>(op);
          wait && acrossWaits && isa<SendingType>(wait.getTransfer().getType()))
        continue;
      if (run.size() > 1)
        groupRun(run);
      run.clear();
    }
  }

  void makeGroup(ArrayRef<Operation *> posts) {
    SmallVector<Type> types;
    SmallVector<Value> transfers;
    for (Operation *post : posts) {
      transfers.push_back(post->getResult(0));
      types.push_back(transfers.back().getType());
    }
    builder.setInsertionPoint(posts.front());
    auto group = builder.create<GroupOp>(posts.front()->getLoc(), types,
                                         IntegerAttr(), DenseI32ArrayAttr());
    Block &block = group.getPosts().emplaceBlock();
    for (auto [post, result] : llvm::zip(posts, group.getResults())) {
      post->getResult(0).replaceAllUsesWith(result);
      post->moveBefore(&block, block.end());
    }
    builder.setInsertionPointToEnd(&block);
    builder.create<YieldOp>(group.getLoc(), transfers);
  }

  OpBuilder builder;
};

LogicalResult placeInWindows(WorkerOp worker, Window window) {
  Receives receives(window);
  Sends sends;
  for (Block *section : worker.getSections()) {
    if (failed(receives.place(*section)))
      return failure();
    sends.place(*section);
  }
  return success();
}

/// What workers take with windows that are not given, held against a cap. Only
/// its allocated stream says what a worker takes, so copies are allocated.
class Cap {
public:
  Cap(ArrayRef<WorkerOp> workers, uint64_t bytes)
      : workers(workers), bytes(bytes) {}

  /// The first of `windows` with which no worker takes more than the cap, 0
  /// where there is none.
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

  /// The largest window of at most `most` with which workers would take no more
  /// than the cap if their arenas had no gaps, 0 where there is none. Gaps are
  /// larger or smaller by chance, but without them a larger window never takes
  /// less: it posts receives earlier. So no larger one fits.
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
    // The one that was too large may well be again.
    if (tight) {
      FailureOr<Allocated> first = allocated(tight, window);
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
        tight = worker;
        return false;
      }
    return true;
  }

  bool exceeds(int64_t taken) const {
    return static_cast<uint64_t>(taken) > bytes;
  }

  static FailureOr<Allocated> allocated(WorkerOp worker, int32_t window) {
    OwningOpRef<WorkerOp> copy = worker.clone();
    if (failed(placeInWindows(*copy, {window, false})))
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
  WorkerOp tight;
};

/// The smallest of the fastest windows with which no worker takes more than
/// the cap, and 1 where there is none, which chimera-allocate refuses.
FailureOr<int32_t> fastestWithin(Cap cap, const schedule::Windows &windows) {
  // The fastest are this one and all above it.
  int32_t fastest = windows.choose();
  FailureOr<int32_t> found = cap.firstThatFits(fastest);
  if (failed(found) || *found != 0)
    return found;
  FailureOr<int32_t> most = cap.largestWithoutGaps(windows.messages());
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
  return cap.firstThatFits(
      llvm::to_vector(llvm::seq_inclusive(windows.choose(*found), *found)));
}

/// The described window, or the one that the simulator chooses.
FailureOr<Window> windowOf(PipelineOp pipeline, ArrayRef<WorkerOp> workers) {
  if (std::optional<uint64_t> given = pipeline.getReceiveWindow())
    return Window{static_cast<int32_t>(*given), true};
  // Where messages take no time on their way there is nothing to choose.
  LinkAttr link = pipeline.getLinkAttr();
  if (!link || (link.getLatency() == 0 && link.getLatencyPerMib() == 0))
    return Window{1, false};
  FailureOr<ScheduledProblem> timed = scheduledProblemOf(pipeline);
  if (failed(timed) || failed(verifySchedule(pipeline, *timed)))
    return failure();
  schedule::Windows windows(timed->problem, timed->schedule);
  std::optional<uint64_t> cap = pipeline.getMemoryCap();
  FailureOr<int32_t> chosen =
      cap ? fastestWithin(Cap(workers, *cap), windows) : windows.choose();
  if (failed(chosen))
    return failure();
  return Window{*chosen, false};
}

struct PlaceMessages : impl::PlaceMessagesPassBase<PlaceMessages> {
  using PlaceMessagesPassBase::PlaceMessagesPassBase;

  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(run(pipeline)))
        return signalPassFailure();
  }

  LogicalResult run(PipelineOp pipeline) {
    SmallVector<WorkerOp> workers = workersOf(pipeline);
    if (workers.empty())
      return pipeline.emitOpError(
          "expected workers: run chimera-project first");
    bool isOneStream = messages == program::MessageModel::StreamPerDevice;
    if (isOneStream || messages == program::MessageModel::StreamPerPair) {
      if (pipeline.getReceiveWindow())
        return pipeline.emitOpError("expected no receive_window for ")
               << program::nameOf(messages)
               << " messages, which both ends must post in one order";
      return forEachWorker(&getContext(), workers.size(), [&](size_t w) {
        Groups groups(&getContext());
        Sends sends;
        for (Block *section : workers[w].getSections()) {
          // Waits for sends that move away let a group have more posts.
          if (isOneStream) {
            sends.place(*section);
            groups.groupUpToReceives(*section);
          } else {
            groups.groupCrossings(*section);
            sends.place(*section);
          }
        }
        return success();
      });
    }
    FailureOr<Window> window = windowOf(pipeline, workers);
    if (failed(window))
      return failure();
    return forEachWorker(&getContext(), workers.size(), [&](size_t w) {
      return placeInWindows(workers[w], *window);
    });
  }
};

} // namespace
} // namespace chimera
