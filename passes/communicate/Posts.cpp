//===- Posts.cpp - Placement of a worker's posts and waits ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/communicate/Posts.h"

#include "passes/Prefetch.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

using namespace mlir;

namespace chimera {

namespace {

/// Posts the receives of a worker in windows. Here R is a receive, and W its
/// wait.
///
///   window 1: R0 … W0 R1 consumer … W1 R2 consumer …
///
/// In the global order, the wait of a send is after the action that uses the
/// message. A receive may be posted at any time before its own wait. So for any
/// window the global order remains a legal execution. The window has only a
/// lower limit: if a worker uses the messages of a channel in another order
/// than they are sent, several receives must be posted at the same time.
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

  /// Fails with a diagnostic if a channel needs a larger window.
  LogicalResult check(int32_t window) const {
    for (const auto &[peer, channel] : channels)
      if (Need need = needOf(channel, window); need.window > window)
        return refuse(peer, channel, need, window);
    return success();
  }

  /// If a channel needs a larger window than `window`, it gets the smallest
  /// window that it needs.
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
  /// The receives of a channel in the order of their posts, and their waits in
  /// the order of the waits.
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

  /// The window that a receive needs. The window is 1 if the message overtakes
  /// no other message.
  struct Need {
    int32_t window = 1;
    PostReceiveOp receive;
  };

  /// The receive of the channel that needs the largest window, and this window.
  /// The search stops at a receive that needs more than `most`.
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
      // The number of receives that are outstanding at the same time: this
      // receive, and the receives of all messages that are sent earlier and
      // received later.
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
    // Find the first message that is received later.
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
/// worker, moves the wait to after that action. So the worker computes while
/// the message is on its way. B is an action, S a send, and w its wait:
///
///   B0 S0 w0 B1 S1 …  →  B0 S0 B1 S1 w0 …
class Sends {
public:
  void place(Block &section) {
    bool acted = false; // only posts are after the last action
    for (Operation &op : llvm::make_early_inc_range(section)) {
      prefetchNext(op);
      bool isPost = isa<PostSendOp, PostReceiveOp, GroupOp>(op);
      // Place the waits after the posts of the results of the action.
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
  /// The posts since the last action. There are few of them, so a linear search
  /// is fast.
  SmallVector<Operation *> posted;
  /// Waits for sends of the last action. They move to after the next action.
  std::vector<WaitOp> waiting;
};

/// Makes groups of adjacent posts of a worker. A wait for one post of a group
/// waits for the whole group.
class Groups {
public:
  explicit Groups(MLIRContext *context) : builder(context) {}

  /// Puts adjacent posts to and from one peer into a group, if there are both
  /// sends and receives.
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

  /// Puts adjacent sends and the receive after them into a group. The posts may
  /// be to and from several workers. A group takes effect at the place of its
  /// first post. So a group must not skip a post. For example, worker 0 has
  /// three posts:
  ///
  ///   S0→1 S0→2 R0←1   A group of the first and the third post would take
  ///                    effect before the second. But the message from worker 1
  ///                    may depend on the message to worker 2.
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
  /// Calls `groupRun` with each run of adjacent posts. If `acrossWaits`, waits
  /// for sends may be between the posts.
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
    // First move the waits for sends later, so that more posts are adjacent.
    Sends().place(*section);
    groups.groupUpToReceives(*section);
  }
}

} // namespace chimera
