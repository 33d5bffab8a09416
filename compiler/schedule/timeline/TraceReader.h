//===- TraceReader.h - The events of a trace --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TRACEREADER_H
#define CHIMERA_COMPILER_SCHEDULE_TRACEREADER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace chimera::schedule {

/// A complete event of a trace ("ph" is "X"). A member has no value where the
/// event has none, or one of another type.
struct TraceEvent {
  std::string name, category;
  std::optional<double> begin, duration; ///< "ts" and "dur", in microseconds
  std::optional<int64_t> process, thread;
  /// Its arguments, as ChromeTrace.h has them.
  std::optional<int64_t> pipeline, stage, microBatch, microBatches, part, parts,
      step;
};

/// What a trace says in `otherData`, where it does.
struct TraceHeader {
  std::optional<int64_t> firstStep; ///< its number in the run
  std::string pipeline;             ///< the name of the first one
};

/// Calls `visit` with each complete event of a document in the Trace Event
/// Format, and fills `header`. Empty if that worked, else why it did not: the
/// text is not JSON, or it has no array `traceEvents`. Takes memory for one
/// event at a time, whatever the text holds and however deep it nests.
std::string readTrace(std::string_view text,
                      const std::function<void(const TraceEvent &)> &visit,
                      TraceHeader &header);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TRACEREADER_H
