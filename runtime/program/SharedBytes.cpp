//===- SharedBytes.cpp - Whether parts of a file share bytes --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/SharedBytes.h"

#include <type_traits>

namespace chimera::program {

namespace {

using flatbuffers::Offset;
using flatbuffers::uoffset_t;

/// Adds the bytes of all tables, lists and texts, once for each reference to
/// them. Stops when the sum exceeds a limit.
class Count {
public:
  explicit Count(uint64_t limit) : left(limit) {}

  bool isExceeded() const { return exceeded; }
  bool isMisaligned() const { return misaligned; }

  void add(const flatbuffers::String *text) {
    if (text)
      take(sizeof(uoffset_t) + text->size());
  }
  /// A list of numbers or structs.
  template <typename T> void add(const flatbuffers::Vector<T> *list) {
    using Entry = std::remove_cv_t<std::remove_pointer_t<T>>;
    if (!list)
      return;
    take(sizeof(uoffset_t) + uint64_t(list->size()) * sizeof(Entry));
    const auto place = reinterpret_cast<uintptr_t>(list->Data());
    misaligned |= list->size() > 0 && place % alignof(Entry) != 0;
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
  void add(const Package *package) {
    if (!package)
      return;
    table(5);
    add(package->producer());
    add(package->inputs());
    add(package->labels());
    add(package->kinds());
    add(package->layers());
  }
  void add(const Layer *layer) {
    table(1);
    add(layer->path());
  }
  void add(const LayerKind *kind) {
    table(3);
    add(kind->parameters());
    add(kind->constants());
    add(kind->graphs());
  }
  void add(const LayerParameter *parameter) {
    table(2);
    add(parameter->name());
    add(parameter->shape());
  }
  void add(const Constant *constant) {
    table(2);
    add(constant->shape());
    add(constant->bytes());
  }
  void add(const LayerGraphs *graphs) {
    table(9);
    take(3 * sizeof(Operations));
    add(graphs->inputs());
    add(graphs->differentiable());
    add(graphs->labels());
    add(graphs->outputs());
    add(graphs->saved());
    add(graphs->forward());
    add(graphs->backward());
    if (graphs->weight())
      add(graphs->weight());
    if (graphs->logits())
      add(graphs->logits());
    add(graphs->kept());
    add(graphs->kept_shapes());
    add(graphs->native());
  }
  void add(const NativeArchive *archive) {
    table(1);
    add(archive->sha256());
  }
  void add(const TensorShape *tensor) {
    table(1);
    add(tensor->shape());
    add(tensor->per_sample());
  }
  void add(const Graph *graph) {
    table(3);
    add(graph->inputs());
    add(graph->calls());
    add(graph->outputs());
  }
  void add(const Call *call) {
    table(4);
    add(call->operator_());
    add(call->overload());
    add(call->arguments());
    add(call->results());
  }
  void add(const Argument *argument) {
    table(0);
    add(argument->values());
    add(argument->integers());
    add(argument->per_sample());
    add(argument->numbers());
    add(argument->text());
  }
  void add(const Optimizer *optimizer) {
    table(3);
    add(optimizer->name());
    add(optimizer->no_decay());
    add(optimizer->no_muon());
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
  /// Adds the minimum size of a table: an offset to its vtable and an offset
  /// for each required field. The vtable is not added, because tables may share
  /// it. Optional fields may be absent.
  void table(uint64_t requiredFields) {
    take((1 + requiredFields) * sizeof(uoffset_t));
  }
  void take(uint64_t bytes) {
    exceeded |= bytes > left;
    left -= exceeded ? 0 : bytes;
  }

  uint64_t left;
  bool exceeded = false;
  bool misaligned = false;
};

} // namespace

bool sharesBytes(const Program &content, uint64_t bytes) {
  Count count(bytes);
  count.add(content);
  return count.isExceeded();
}

bool areListsAligned(const Program &content, uint64_t bytes) {
  Count count(bytes);
  count.add(content);
  return !count.isMisaligned();
}

} // namespace chimera::program
