//===- AllReduce.h - An ordered all-reduce over TCP -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every member owns a chunk of the elements, as in mpi/AllReduce.h. It receives
// this chunk of every contribution, folds the contributions in the order of the
// ReduceGroup, and sends the sum to all members. Over TCP it does this in
// slices, as a pipeline:
//
//   contributions of slice k+1 arrive │ slice k is folded │ k-1 is being sent
//
// So each contribution of another rank needs memory for only kDepth slices, for
// any size of the chunk. The thread that moves bytes is never busy for longer
// than the fold of one slice. Sums of the other members' chunks are received
// directly into the result.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_TCP_ALLREDUCE_H
#define CHIMERA_RUNTIME_CHANNEL_TCP_ALLREDUCE_H

#include "runtime/channel/ReduceGroup.h"
#include "runtime/channel/tcp/Mesh.h"
#include "runtime/device/Block.h"

namespace chimera::runtime::tcp {

/// A pool of memory for slices. Slices are reused, because fresh memory from
/// the kernel costs a page fault for every 4 KiB.
class SlicePool {
public:
  /// The fold of a slice of this size takes about 50 µs.
  static constexpr uint64_t kBytes = 128 << 10;

  /// All members of a group must use slices of the same size.
  explicit SlicePool(uint64_t bytesOfSlice = kBytes)
      : bytesOfSlice(bytesOfSlice) {}

  const uint64_t bytesOfSlice; ///< a multiple of 8

  Block take();
  void giveBack(Block slice);
  /// The number of slices that exist. A slice is never freed before the pool.
  size_t count();

private:
  std::mutex mutex;
  std::vector<Block> spare;
  size_t made = 0;
};

/// An all-reduce of this rank. It is driven by the thread that starts it and by
/// the threads that move bytes.
class AllReduce : public std::enable_shared_from_this<AllReduce> {
public:
  /// `number` is the number of all-reduces of the group that this rank started
  /// before this one. `given` are the contributions of this rank.
  AllReduce(Mesh &mesh, const ReduceGroup &group, uint64_t number,
            ElementType type, std::vector<ConstBytes> given, Bytes sum,
            std::shared_ptr<SlicePool> slices);
  ~AllReduce();

  /// Starts the all-reduce. Throws the exceptions of Mesh::send and
  /// Mesh::receive. After an exception, the mesh does not use `given` and `sum`
  /// any more.
  void start();

  bool isDone() const { return left.load(std::memory_order_acquire) == 0; }

  /// Called if the rank does not wait for this all-reduce any more. After this
  /// call, no thread uses `given` and `sum`.
  void abandon();

private:
  struct Range {
    uint64_t begin, end;
    uint64_t size() const { return end - begin; }
  };
  /// The number of slices of each contribution that are in flight at a time.
  static constexpr uint64_t kDepth = 4;

  Range chunkOf(size_t member) const;
  Range sliceOf(size_t member, uint64_t slice) const;
  uint64_t slicesOf(size_t member) const;
  uint64_t operations() const;
  std::byte *memoryOf(size_t other, uint64_t slice) const;
  void receiveSlice(uint64_t slice);
  void arrived(uint64_t slice);
  void foldArrivedSlices();
  void foldSlice(uint64_t slice);
  void sendSum(uint64_t slice);
  void keep(SharedMeshOperation operation);
  std::function<void()> countDown();
  void freeStaging();
  class FoldLock;

  Mesh &mesh;
  const ElementType type;
  const std::vector<uint32_t> contributors; ///< the rank of each contribution
  const std::vector<uint32_t> members;
  const std::vector<ConstBytes> given;
  const Bytes sum;
  const Mesh::Stream scatter, gather;
  const std::shared_ptr<SlicePool> slices;
  size_t memberIndex = 0;        ///< index of this rank in `members`
  size_t others = 0;             ///< number of contributions of other ranks
  std::vector<Block> staging;    ///< kDepth slices for each of the `others`
  std::atomic<uint64_t> left{1}; ///< messages and folds that are not done

  std::mutex mutex; // guards the members below
  /// The number of contributions to a slice that have not arrived, at index
  /// slice % kDepth. Valid after the slice's receives are posted.
  uint64_t missing[kDepth] = {};
  uint64_t folded = 0; ///< number of folded slices
  /// Whether `start` has posted the receives of the first slices. A fold posts
  /// the receives of a later slice, and receives must be posted in order.
  bool mayFold = false;
  bool isFolding = false; ///< a thread is in foldSlice
  bool isAbandoned = false;
  std::condition_variable foldEnded;
  std::vector<SharedMeshOperation> posted;
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CHANNEL_TCP_ALLREDUCE_H
