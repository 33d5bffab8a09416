//===- Trace.h - When one rank did what -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which instruction of a rank ran from when to when, for the last steps of a
// run. A run may be stopped after any step, so each is recorded, into memory
// that is taken once; the oldest gives way. TraceFormat.h makes events of it.
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
  /// What ran in one go of the worker's stream. Number 0 is the prologue; the
  /// number of a body or of the epilogue is that of its step, from 1.
  struct Section {
    uint64_t number = 0;
    std::vector<Span> spans; ///< in the order in which they ran
  };

  /// Holds nothing, and is to hold nothing.
  Trace() = default;
  /// Takes the memory for the sections of the last `steps` steps of `worker`.
  Trace(const program::ProgramT &program, const program::WorkerT &worker,
        uint64_t steps);

  /// How many sections show `steps` whole steps. Without a flush a step begins
  /// in the section of the step before it, so that takes one more.
  static uint64_t sectionsOf(const program::ProgramT &program, uint64_t steps);

  /// Sections come one after another, and the spans of a section too.
  void add(uint64_t section, const Span &span) {
    if (sections.empty() || sections.back().number != section)
      begin(section);
    sections.back().spans.push_back(span);
  }
  /// Adds so much to all times.
  void shift(int64_t nanoseconds);

  /// The most that it holds. Then, those that it holds, the oldest first.
  size_t mostSections() const { return most; }
  std::span<const Section> kept() const { return sections; }

  /// As plain memory, and back.
  std::vector<int64_t> pack() const;
  static Trace unpack(std::span<const int64_t> packed);

private:
  void begin(uint64_t section);

  size_t most = 0;
  size_t mostSpans = 0; ///< of a section
  std::vector<Section> sections;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_TRACE_H
