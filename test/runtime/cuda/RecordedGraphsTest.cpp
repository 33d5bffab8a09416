//===- RecordedGraphsTest.cpp - Tests of the software GPU's graphs --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/RecordedGraphs.h"

#include "test/runtime/cuda/KernelsOnHost.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using at::Tensor;

namespace {
std::unique_ptr<Graph> capture(GraphFactory &graphs,
                               const std::function<void()> &calls) {
  const at::NoGradGuard none;
  return graphs.capture(calls);
}

TEST(RecordedGraphs, RepeatTheCallsOnTheSameMemory) {
  const std::shared_ptr<GraphFactory> graphs = makeRecordedGraphs();
  const Tensor x = at::arange(6, at::kDouble), sum = at::zeros({2, 3});
  const auto graph = capture(*graphs, [&] {
    // A view, a new tensor, an operator that calls others, and a sum in place.
    Tensor added = at::softmax(x.view({2, 3}).mul(2), -1);
    sum.add_(added);
  });
  graph->launch(); // the capture has already computed this
  const Tensor once =
      at::softmax(at::arange(6, at::kDouble).view({2, 3}) * 2, -1);
  EXPECT_TRUE(at::allclose(sum, once.to(at::kFloat)));
  x.fill_(1);
  graph->launch();
  EXPECT_TRUE(at::allclose(sum, once.to(at::kFloat).add(1. / 3)));
  graph->launch();
  EXPECT_TRUE(at::allclose(sum, once.to(at::kFloat).add(2. / 3)));
}

TEST(RecordedGraphs, ReadWhatAnotherGraphHasWritten) {
  const std::shared_ptr<GraphFactory> graphs = makeRecordedGraphs();
  const Tensor x = at::ones({3}), y = at::zeros({3});
  Tensor stash;
  const auto first = capture(*graphs, [&] { stash = x.exp(); });
  first->launch();
  const auto second = capture(*graphs, [&] { y.copy_(stash.mul(2)); });
  second->launch();
  stash.reset();
  x.zero_();
  first->launch();
  second->launch();
  EXPECT_TRUE(y.equal(at::full({3}, 2.)));
}

TEST(RecordedGraphs, RepeatKernelsInTheirPlaceAmongTheCalls) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  cudaFuncAttributes attributes{};
  ASSERT_EQ(cudaLibraryLoadData(&library, kImage, nullptr, nullptr, 0, nullptr,
                                nullptr, 0),
            cudaSuccess);
  ASSERT_EQ(cudaLibraryGetKernel(&kernel, library, "chimeraScaleDouble"),
            cudaSuccess);
  ASSERT_EQ(cudaFuncGetAttributes(&attributes, kernel), cudaSuccess);
  const std::shared_ptr<GraphFactory> graphs = makeRecordedGraphs();
  const Tensor x = at::ones({3}, at::kDouble);
  const auto graph = capture(*graphs, [&] {
    x.add_(1);
    void *elements = x.data_ptr();
    unsigned long long count = 3;
    double factor = 10;
    void *arguments[] = {&elements, &count, &factor};
    EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(1),
                               dim3(1), arguments, 0, nullptr),
              cudaSuccess);
    x.add_(2);
  });
  graph->launch(); // the capture has already computed this
  EXPECT_TRUE(x.equal(at::full({3}, 22., at::kDouble)));
  graph->launch();
  EXPECT_TRUE(x.equal(at::full({3}, 232., at::kDouble)));
}

TEST(RecordedGraphs, RefuseWhatWaitsForADevice) {
  const std::shared_ptr<GraphFactory> graphs = makeRecordedGraphs();
  const Tensor x = at::ones({3});
  for (const std::function<void()> &calls :
       std::initializer_list<std::function<void()>>{
           [&] { (void)x.sum().item<float>(); },
           [&] { (void)x.index({x.gt(0)}); }, [&] { (void)x.nonzero(); },
           [&] { (void)x.equal(x); }})
    EXPECT_THROW((void)capture(*graphs, calls), std::exception);
  // The next capture is not disturbed.
  const Tensor sum = at::zeros({3});
  const auto graph = capture(*graphs, [&] { sum.add_(x); });
  graph->launch();
  graph->launch();
  EXPECT_TRUE(sum.equal(at::full({3}, 2.)));
}
} // namespace
