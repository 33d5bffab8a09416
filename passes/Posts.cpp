//===- Posts.cpp - Placement of a worker's posts and waits ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Posts.h"

#include "passes/Prefetch.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

using namespace mlir;

namespace chimera {

namespace {

/// Posts the receives of a worker in windows. R is a receive, W its wait.
///
///   window 1: R0 … W0 R1 consumer … W1 R2 consumer …
///
/// In the global order, the wait of a send is after the action that uses the
/// message. Each receive is posted before its own wait. So for any window the
/// global order remains a legal execution. Only the order of the receives and
/// waits of one channel on one worker limits the window.
class Receives {
public:
  LogicalResult read(Block &section) {
    for (Operation &op : section) {
      prefetchNext(op);
      if (failed(collect(op)))
        return failure();
    }
    return success();
  }

  /// Fails if a channel needs a larger window.
  LogicalResult check(int32_t window) const {
    for (const auto &[peer, channel] : channels)
      if (Need need = needOf(channel, window); need.window > window)
        return refuse(peer, channel, need, window);
    return success();
  }

  /// A channel that needs a larger window gets the smallest one that it needs.
  void place(int32_t window) {
    for (auto &[peer, channel] : channels) {
      int32_t size = std::max(window, needOf(channel, INT32_MAX).window);
      for (auto [m, post] : llvm::enumerate(channel.posts))
        if (static_cast<int64_t>(m) < size)
          post->moveBefore(anchor);
        else
          post->moveAfter(channel.waits[m - size]);
    }
  }

private:
  /// Receives in the order of their posts, and waits in their order.
  struct Channel {
    std::vector<PostReceiveOp> posts;
    std::vector<WaitOp> waits;
  };

  LogicalResult collect(Operation &op) {
    if (auto receive = dyn_cast<PostReceiveOp>(op)) {
      if (!receive->hasOneUse() || !isa<WaitOp>(*receive->getUsers().begin()) ||
          (*receive->getUsers().begin())->getBlock() != op.getBlock())
        return receive.emitOpError(
            "expected exactly one wait for this receive in its section");
      channels[receive.getPeer()].posts.push_back(receive);
      return success();
    }
    if (!anchor)
      anchor = &op;
    if (isa<GroupOp>(op))
      return op.emitOpError("expected no group before chimera-place-messages, "
                            "which makes groups");
    if (auto wait = dyn_cast<WaitOp>(op))
      if (auto receive = wait.getTransfer().getDefiningOp<PostReceiveOp>())
        channels[receive.getPeer()].waits.push_back(wait);
    return success();
  }

  /// The window that a receive needs. It is 1 if its message overtakes no
  /// other.
  struct Need {
    int32_t window = 1;
    PostReceiveOp receive;
  };

  /// The receive of the channel that needs the largest window, and this window.
  /// The search stops early at a receive that needs more than `most`.
  static Need needOf(const Channel &channel, int32_t most) {
    Need need;
    // Filled only if messages overtake each other.
    DenseMap<Operation *, int32_t> numbers;
    for (auto [received, wait] : llvm::enumerate(channel.waits)) {
      auto receive = WaitOp(wait).getTransfer().getDefiningOp<PostReceiveOp>();
      if (numbers.empty() && receive == channel.posts[received])
        continue;
      if (numbers.empty())
        for (auto [number, post] : llvm::enumerate(channel.posts))
          numbers[post] = static_cast<int32_t>(number);
      // The number of receives outstanding at the same time: this one, and the
      // ones of all messages that are sent before it and received after it.
      int32_t outstanding =
          numbers.lookup(receive) - static_cast<int32_t>(received) + 1;
      if (outstanding > need.window)
        need = {outstanding, receive};
      if (need.window > most)
        break;
    }
    return need;
  }

  static LogicalResult refuse(uint32_t peer, const Channel &channel, Need need,
                              int32_t window) {
    InFlightDiagnostic error =
        need.receive.emitOpError("expected a receive_window of at least ");
    error << need.window << " for it, got " << window << ": it is used before "
          << need.window - 1 << " messages that worker " << peer
          << " sends earlier";
    // Finds the first message that is received later.
    Operation *later = nullptr;
    DenseSet<Operation *> before;
    for (WaitOp wait : channel.waits) {
      Operation *post = wait.getTransfer().getDefiningOp();
      before.insert(post);
      if (post == need.receive)
        break;
    }
    for (PostReceiveOp post : channel.posts)
      if (!later && !before.contains(post))
        later = post;
    if (later)
      error.attachNote(later->getLoc()) << "such as this one";
    return error;
  }

  std::map<uint32_t, Channel> channels;
  Operation *anchor = nullptr; ///< first op that is not a receive
};

/// Delays waits for sends. If such a wait is before the next action of its
/// worker, moves it to after that action, so that the worker computes while the
/// message is on its way. S is a send, w its wait.
///
///   B0 S0 w0 B1 S1 …  →  B0 S0 B1 S1 w0 …
class Sends {
public:
  void place(Block &section) {
    bool acted = false; // true if only posts have followed the last action
    for (Operation &op : llvm::make_early_inc_range(section)) {
      prefetchNext(op);
      bool isPost = isa<PostSendOp, PostReceiveOp, GroupOp>(op);
      // Place the waits after the posts of the action itself.
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
  /// The posts since the last action. There are few, so a linear search is
  /// fast.
  SmallVector<Operation *> posted;
  /// Waits for sends of the last action, to be moved after the next one.
  std::vector<WaitOp> waiting;
};

/// Makes groups of adjacent posts of a worker. A wait for one post of a group
/// waits for the whole group.
class Groups {
public:
  explicit Groups(MLIRContext *context) : builder(context) {}

  /// Groups all adjacent posts to and from one peer, if there are both sends
  /// and receives.
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

  /// Groups adjacent sends with the receive after them. The posts may be to and
  /// from several workers. Posts keep their order, so that groups take effect
  /// in the order of their posts:
  ///
  ///   S0→1 S0→2 R0←1   A group of the first and the last post would take
  ///                    effect before the second, on which worker 1's message
  ///                    may depend.
  ///
  /// A group ends with its receive: an action that waits for the receive would
  /// also wait for later posts of the group.
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
  /// Calls `groupRun` with each run of adjacent posts. With `acrossWaits`,
  /// waits for sends may be between them.
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

} // namespace

LogicalResult checkWindow(WorkerOp worker, int32_t window) {
  for (Block *section : worker.getSections()) {
    Receives receives;
    if (failed(receives.read(*section)) || failed(receives.check(window)))
      return failure();
  }
  return success();
}

LogicalResult postInWindow(WorkerOp worker, int32_t window) {
  for (Block *section : worker.getSections()) {
    Receives receives;
    if (failed(receives.read(*section)))
      return failure();
    receives.place(window);
    Sends().place(*section);
  }
  return success();
}

void groupCrossings(WorkerOp worker) {
  Groups groups(worker.getContext());
  for (Block *section : worker.getSections()) {
    groups.groupCrossings(*section);
    Sends().place(*section);
  }
}

void groupUpToReceives(WorkerOp worker) {
  Groups groups(worker.getContext());
  for (Block *section : worker.getSections()) {
    // First move the waits for sends away, so that groups can be larger.
    Sends().place(*section);
    groups.groupUpToReceives(*section);
  }
}

} // namespace chimera
