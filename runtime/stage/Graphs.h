//===- Graphs.h - Operations of a device as one -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph is what calls have put on a queue, kept so that one call puts all of
// it there again: the same operations on the same memory. On a GPU that takes
// the host a few microseconds, however many operations there are.
//
// A call is made by the work that a queue of the device executes
// (Queue::launch), on the thread that calls it, and is about that queue.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_GRAPHS_H
#define CHIMERA_RUNTIME_STAGE_GRAPHS_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace chimera::runtime {

class Graph {
public:
  virtual ~Graph() = default;
  /// Puts its operations on the queue.
  virtual void launch() = 0;
};

/// Graphs that find in memory what others of the same set have left there, and
/// whose operations share memory otherwise. They are launched in the order in
/// which they were made, again and again.
class GraphSet {
public:
  virtual ~GraphSet() = default;
  /// The graph of what `calls` put on the queue, which is not executed now.
  /// Throws what they throw, and std::runtime_error where they do what no graph
  /// can hold, as to wait for the device.
  virtual std::unique_ptr<Graph>
  capture(const std::function<void()> &calls) = 0;
};

class Graphs {
public:
  virtual ~Graphs() = default;
  virtual std::unique_ptr<GraphSet> makeSet() = 0;
  /// Memory of the device, until the end of this.
  virtual Bytes take(uint64_t bytes) = 0;
  virtual void copy(ConstBytes from, Bytes to) = 0;
  virtual void zero(Bytes bytes) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_GRAPHS_H
