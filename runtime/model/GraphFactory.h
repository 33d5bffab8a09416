//===- GraphFactory.h - Recorded operations of a device ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph is a recording of the operations that some calls put on a queue. One
// launch puts all of them on the queue again: the same operations on the same
// memory. On a GPU, a launch takes the host a few microseconds, for any number
// of operations.
//
// All functions here must be called from a function that a queue of the device
// executes (Queue::launch), on the thread that calls that function. The
// functions put their operations on that queue.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPHFACTORY_H
#define CHIMERA_RUNTIME_MODEL_GRAPHFACTORY_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace chimera::runtime {

class Graph {
public:
  virtual ~Graph() = default;
  /// Puts the graph's operations on the queue.
  virtual void launch() = 0;
};

/// Makes graphs. A graph may read memory that other graphs of the factory have
/// written. All graphs of a factory share one memory pool. They must be
/// launched in the order in which they were captured. This sequence of launches
/// may be repeated.
class GraphFactory {
public:
  virtual ~GraphFactory() = default;
  /// Captures the operations that `calls` puts on the queue, without executing
  /// them. Throws what `calls` throws. Throws std::runtime_error if `calls`
  /// does something that a graph cannot record, such as waiting for the device.
  /// The graph must not outlive the factory.
  virtual std::unique_ptr<Graph>
  capture(const std::function<void()> &calls) = 0;

  /// Memory of the device with one number (uint64_t), which graphs may read. So
  /// a graph can compute other values in each launch. The memory lives as long
  /// as this object.
  virtual ConstBytes number() = 0;
  /// Writes `number` to that memory.
  virtual void setNumber(uint64_t number) = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPHFACTORY_H
