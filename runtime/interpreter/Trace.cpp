//===- Trace.cpp - Times of a rank's instructions -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Trace.h"

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;

uint64_t Trace::sectionsOf(const program::ProgramT &program, uint64_t steps) {
  return steps + (program.updates != program::Updates::Flush);
}

Trace::Trace(const program::ProgramT &program, const program::WorkerT &worker,
             uint64_t steps)
    : most(sectionsOf(program, steps)) {
  const auto size = static_cast<uint32_t>(worker.instructions.size());
  mostSpans = std::max({worker.body_begin, worker.body_end - worker.body_begin,
                        size - worker.body_end});
  sections.reserve(most);
}

/// Allocates memory for the first `most` sections. A later section reuses the
/// memory of the oldest section.
void Trace::begin(uint64_t section) {
  if (sections.size() < most) {
    sections.emplace_back();
    sections.back().spans.reserve(mostSpans);
  } else {
    std::ranges::rotate(sections, sections.begin() + 1);
    sections.back().spans.clear();
  }
  sections.back().number = section;
}

void Trace::shift(int64_t nanoseconds) {
  for (Section &section : sections)
    for (Span &span : section.spans) {
      span.begin += nanoseconds;
      span.end += nanoseconds;
    }
}

std::vector<int64_t> Trace::pack() const {
  std::vector<int64_t> packed;
  for (const Section &section : sections) {
    packed.push_back(static_cast<int64_t>(section.number));
    packed.push_back(static_cast<int64_t>(section.spans.size()));
    for (const Span &span : section.spans)
      packed.insert(packed.end(), {span.instruction, span.begin, span.end});
  }
  return packed;
}

Trace Trace::unpack(std::span<const int64_t> packed) {
  Trace trace;
  size_t at = 0;
  auto next = [&] { return packed[at++]; };
  while (at < packed.size()) {
    Section &section = trace.sections.emplace_back();
    section.number = static_cast<uint64_t>(next());
    section.spans.resize(static_cast<size_t>(next()));
    for (Span &span : section.spans) {
      span.instruction = static_cast<uint32_t>(next());
      span.begin = next();
      span.end = next();
    }
  }
  trace.most = trace.sections.size();
  return trace;
}
