//===- Aliases.cpp - Files that say more than they hold -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Aliases.h"

#include <type_traits>

namespace chimera::program {

namespace {

using flatbuffers::Offset;
using flatbuffers::uoffset_t;

/// What a reference refers to, counted against a limit.
class Count {
public:
  explicit Count(uint64_t limit) : left(limit) {}

  bool isExceeded() const { return exceeded; }

  void add(const flatbuffers::String *text) {
    if (text)
      take(sizeof(uoffset_t) + text->size());
  }
  /// A list of numbers or structs.
  template <typename T> void add(const flatbuffers::Vector<T> *list) {
    using Entry = std::remove_cv_t<std::remove_pointer_t<T>>;
    if (list)
      take(sizeof(uoffset_t) + uint64_t(list->size()) * sizeof(Entry));
  }
  template <typename T> void add(const flatbuffers::Vector<Offset<T>> *list) {
    if (!list)
      return;
    take(sizeof(uoffset_t) + uint64_t(list->size()) * sizeof(uoffset_t));
    for (const T *entry : *list) {
      if (exceeded)
        return;
      add(entry);
    }
  }
  void add(const Model *model) {
    if (!model)
      return;
    table(1);
    add(model->architecture());
  }
  void add(const Optimizer *optimizer) {
    table(1);
    add(optimizer->name());
  }
  void add(const Pipeline *pipeline) {
    table(2);
    add(pipeline->workers());
    add(pipeline->micro_batches());
    add(pipeline->forwards());
  }
  void add(const Communicator *communicator) {
    table(1);
    add(communicator->contributions());
  }
  void add(const Worker *worker) {
    table(4);
    add(worker->instructions());
    add(worker->operands());
    add(worker->buffers());
    add(worker->states());
  }
  void add(const Program &program) {
    table(11);
    for (const flatbuffers::String *text :
         {program.producer(), program.name(), program.schedule(),
          program.time_unit()})
      add(text);
    add(program.model());
    add(program.optimizer());
    add(program.stages());
    add(program.pipelines());
    add(program.communicators());
    add(program.workers());
    add(program.files());
    add(program.locations());
  }

private:
  /// A table has at least an offset to its description and one for each field
  /// that is required. What else it has may be shared or left out.
  void table(uint64_t requiredFields) {
    take((1 + requiredFields) * sizeof(uoffset_t));
  }
  void take(uint64_t bytes) {
    exceeded |= bytes > left;
    left -= exceeded ? 0 : bytes;
  }

  uint64_t left;
  bool exceeded = false;
};

} // namespace

bool hasAliases(const Program &content, uint64_t bytes) {
  Count count(bytes);
  count.add(content);
  return count.isExceeded();
}

} // namespace chimera::program
