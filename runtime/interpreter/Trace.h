//===- Trace.h - Times of a rank's instructions -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The times of each instruction of a rank in the last steps of a run. A run may
// be stopped after any step, so every step is recorded, and a new step
// overwrites the oldest one. Memory is allocated only for the first steps.
// TraceFormat.h converts a trace to a file of events.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_TRACE_H
#define CHIMERA_RUNTIME_INTERPRETER_TRACE_H

#include "runtime/program/Program.h"

#include <span>
#include <vector>

namespace chimera::runtime {

class Trace {
public:
  struct Span {
    uint32_t instruction;
    int64_t begin, end; ///< nanoseconds of a steady clock
  };
  /// One execution of a section of the worker's instructions: the prologue, the
  /// body or the epilogue. The number of a body or of the epilogue is the
  /// number of its step, from 1. A prologue has the number of the step before
  /// it, or 0. If an epilogue ran before it, the two are one section.
  struct Section {
    uint64_t number = 0;
    std::vector<Span> spans; ///< in execution order
  };

  /// A trace that records nothing.
  Trace() = default;
  /// A trace that keeps the sections of the last `steps` steps of `worker`.
  Trace(const program::ProgramT &program, const program::WorkerT &worker,
        uint64_t steps);

  /// The number of consecutive sections that contain `steps` whole steps.
  /// Without a flush, the first actions of a step are in the section of the
  /// previous step, so one more section is needed.
  static uint64_t sectionsOf(const program::ProgramT &program, uint64_t steps);

  /// Adds a span. Requires that spans are added in execution order.
  void add(uint64_t section, const Span &span) {
    if (sections.empty() || sections.back().number != section)
      begin(section);
    sections.back().spans.push_back(span);
  }
  /// Adds `nanoseconds` to all times.
  void shift(int64_t nanoseconds);

  /// The maximum number of sections that the trace keeps, and the sections that
  /// it has now, oldest first.
  size_t mostSections() const { return most; }
  std::span<const Section> kept() const { return sections; }

  /// Conversion to a list of numbers, to send it to another rank, and back.
  std::vector<int64_t> pack() const;
  static Trace unpack(std::span<const int64_t> packed);

private:
  void begin(uint64_t section);

  size_t most = 0;
  size_t mostSpans = 0; ///< the maximum number of spans of a section
  std::vector<Section> sections;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_TRACE_H
