//===- RecordedGraphs.cpp - Graphs of a software GPU ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LibTorch's dispatcher has a key for tests, whose fallback here sees every
// call of an operator before any other code.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/RecordedGraphs.h"

#include "test/runtime/cuda/SoftwareGpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <set>
#include <span>
#include <stdexcept>
#include <vector>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using c10::IValue;

namespace {
constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// A call of an operator.
struct Call {
  c10::OperatorHandle handle;
  std::vector<IValue> arguments, results;
};

using Operations = std::vector<std::function<void()>>;

/// The operations of the capture that this thread executes, or null. They are
/// calls of operators, and kernels of the software GPU.
thread_local Operations *recording = nullptr;
/// The number of operators that call each other now.
thread_local int depth = 0;

/// Operators whose results the host needs. A GPU cannot capture them, also if
/// another operator calls them.
bool waits(const c10::OperatorHandle &handle) {
  static const std::set<std::string> all = {
      "aten::_local_scalar_dense", "aten::equal",
      "aten::is_nonzero",          "aten::item",
      "aten::masked_select",       "aten::nonzero"};
  return all.contains(handle.schema().name());
}

/// Copies a result of a repeated call to the memory of the first call's result.
void keepMemory(const at::Tensor &result, const at::Tensor &first) {
  if (result.defined() && first.defined() &&
      !result.storage().is_alias_of(first.storage()))
    first.copy_(result);
}

void repeat(const Call &call) {
  c10::Stack stack(call.arguments);
  call.handle.callBoxed(&stack);
  for (size_t i = 0; i < stack.size(); ++i)
    if (stack[i].isTensor()) {
      keepMemory(stack[i].toTensor(), call.results[i].toTensor());
    } else if (stack[i].isTensorList()) {
      const auto results = stack[i].toTensorVector(),
                 firsts = call.results[i].toTensorVector();
      for (size_t k = 0; k < results.size(); ++k)
        keepMemory(results[k], firsts[k]);
    }
}

void record(const c10::OperatorHandle &handle, c10::DispatchKeySet keys,
            c10::Stack *stack) {
  if (waits(handle))
    throw std::runtime_error("operation not permitted during a capture: " +
                             handle.schema().name());
  struct Depth {
    Depth() { ++depth; }
    ~Depth() { --depth; }
  } inner;
  const c10::DispatchKeySet rest =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  // A launch repeats only the outermost calls.
  if (depth > 1)
    return handle.redispatchBoxed(rest, stack);
  const size_t count = handle.schema().arguments().size();
  const auto below = static_cast<std::ptrdiff_t>(stack->size() - count);
  Call call{handle, {stack->begin() + below, stack->end()}, {}};
  handle.redispatchBoxed(rest, stack);
  call.results.assign(stack->begin() + below, stack->end());
  recording->push_back([call = std::move(call)] { repeat(call); });
}

class RecordedGraph final : public Graph {
public:
  explicit RecordedGraph(Operations operations)
      : operations(std::move(operations)) {}

  void launch() override {
    if (std::exchange(isFirst, false))
      return;
    const at::NoGradGuard none;
    for (const std::function<void()> &operation : operations)
      operation();
  }

private:
  const Operations operations;
  bool isFirst = true;
};

class RecordedGraphs final : public GraphFactory {
public:
  std::unique_ptr<Graph> capture(const std::function<void()> &calls) override {
    Operations recorded;
    {
      struct Recording {
        explicit Recording(Operations &operations) {
          recording = &operations;
          setKernelRecorder([&](std::function<void()> kernel) {
            operations.push_back(std::move(kernel));
          });
        }
        ~Recording() {
          recording = nullptr;
          setKernelRecorder(nullptr);
        }
      } begun(recorded);
      const c10::impl::IncludeDispatchKeyGuard seen(kKey);
      calls();
    }
    return std::make_unique<RecordedGraph>(std::move(recorded));
  }
  ConstBytes number() override { return std::as_bytes(std::span(&own, 1)); }
  void setNumber(uint64_t number) override { own = number; }

private:
  uint64_t own = 0; ///< the number
};
} // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&record>());
}

std::shared_ptr<GraphFactory> chimera::runtime::test::makeRecordedGraphs() {
  return std::make_shared<RecordedGraphs>();
}
