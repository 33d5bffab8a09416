//===- AllReduce.h - An ordered all-reduce over TCP -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As over MPI, every member owns a chunk of the elements: it gets that chunk of
// every contribution, folds them in the declared order and sends the sum to
// all. Here it does so slice by slice:
//
//   contributions of slice k+1 arrive │ slice k is folded │ k-1 is being sent
//
// so the memory for contributions of others is a few slices of each, however
// large the chunk is, and whoever moves bytes is never held up for longer than
// a fold of one slice takes. Sums of other chunks arrive where they belong.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_TCP_ALLREDUCE_H
#define CHIMERA_RUNTIME_CHANNEL_TCP_ALLREDUCE_H

#include "runtime/channel/ReduceGroup.h"
#include "runtime/channel/tcp/Mesh.h"
#include "runtime/device/Block.h"

namespace chimera::runtime::tcp {

/// Memory for slices, kept for the next all-reduce: memory from the system
/// costs a page fault each 4 KiB.
class Slices {
public:
  /// Bytes of a slice; its fold takes some 50 µs.
  static constexpr uint64_t kBytes = 128 << 10;

  Block take();
  void giveBack(Block slice);

private:
  std::mutex mutex;
  std::vector<Block> spare;
};

/// An all-reduce of this rank. The thread that starts it and those that move
/// bytes drive it.
class AllReduce : public std::enable_shared_from_this<AllReduce> {
public:
  /// `number` counts the all-reduces of the group. `given` are the
  /// contributions of this rank.
  AllReduce(Mesh &mesh, const ReduceGroup &group, uint64_t number,
            ElementType type, std::vector<ConstBytes> given, Bytes sum,
            std::shared_ptr<Slices> slices);
  ~AllReduce();

  /// Throws what posting throws, and then uses no memory any more.
  void start();

  bool isDone() const { return left.load(std::memory_order_acquire) == 0; }

  /// For a rank that no longer waits: its memory is not used any more.
  void abandon();

private:
  struct Range {
    uint64_t begin, end;
    uint64_t size() const { return end - begin; }
  };
  /// Slices of each contribution that are under way at a time.
  static constexpr uint64_t kDepth = 4;

  Range chunkOf(size_t member) const;
  Range sliceOf(size_t member, uint64_t slice) const;
  uint64_t slicesOf(size_t member) const;
  uint64_t operations() const;
  std::byte *memoryOf(size_t other, uint64_t slice) const;
  void receiveSlice(uint64_t slice);
  void arrived(uint64_t slice);
  void foldThoseThatAreHere();
  void foldSlice(uint64_t slice);
  void sendSum(uint64_t slice);
  void keep(SharedOperation operation);
  std::function<void()> countDown();
  void freeStaging();
  class Folding;

  Mesh &mesh;
  const ElementType type;
  const std::vector<uint32_t> givers; ///< by contribution
  const std::vector<uint32_t> members;
  const std::vector<ConstBytes> given;
  const Bytes sum;
  const Mesh::Stream scatter, gather;
  const std::shared_ptr<Slices> slices;
  size_t place = 0;              ///< of this rank among the members
  size_t others = 0;             ///< contributions of other ranks
  std::vector<Block> staging;    ///< kDepth for each of them
  std::atomic<uint64_t> left{1}; ///< operations and folds that are not done

  std::mutex mutex;              // guards the rest
  uint64_t missing[kDepth] = {}; ///< contributions to slices that come next
  uint64_t folded = 0;           ///< slices
  bool isFolding = false;        ///< some thread reads and writes memory
  bool isAbandoned = false;
  std::condition_variable foldEnded;
  std::vector<SharedOperation> posted;
};

} // namespace chimera::runtime::tcp

#endif // CHIMERA_RUNTIME_CHANNEL_TCP_ALLREDUCE_H
