//===- MuonTest.cpp - Tests of the update of a matrix by Muon -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/e2e/optimizers.py compares training with torch.optim.Muon.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/optimizer/Muon.h"

#include "runtime/program/Optimizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

using at::Tensor;

namespace chimera::runtime {
namespace {

constexpr std::pair<int64_t, int64_t> kShapes[] = {
    {2, 2}, {2, 50}, {50, 2}, {16, 16}, {48, 16}, {16, 64}};

Tensor someMatrix(int64_t rows, int64_t columns, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::normal(0, 1, {rows, columns}, generator, at::kDouble);
}

program::OptimizerT muon(double momentum, bool nesterov) {
  program::OptimizerT optimizer;
  optimizer.name = program::kMuon;
  optimizer.momentum = momentum;
  optimizer.nesterov = nesterov;
  optimizer.weight_decay = 0.1;
  return optimizer;
}

TEST(Muon, SingularVectorsStayAndSingularValuesAreAboutOne) {
  for (const auto &[rows, columns] : kShapes) {
    const Tensor matrix = someMatrix(rows, columns, 1);
    const Tensor result = orthogonalized(matrix, at::kDouble);
    const auto [u, s, v] = at::linalg_svd(matrix, /*full_matrices=*/false);
    // In the basis of the matrix's singular vectors, the result is diagonal.
    const Tensor inBasis = u.t().mm(result).mm(v.t());
    const Tensor values = inBasis.diagonal();
    EXPECT_LT((inBasis - values.diag()).abs().max().item<double>(), 1e-12);
    EXPECT_GT(values.min().item<double>(), 0.5) << rows << " " << columns;
    EXPECT_LT(values.max().item<double>(), 1.3) << rows << " " << columns;
  }
}

TEST(Muon, TheSizeOfAMatrixDoesNotMatter) {
  const Tensor matrix = someMatrix(6, 9, 2);
  const Tensor expected = orthogonalized(matrix, at::kDouble);
  for (double factor : {1e-4, 0.5, 1e20})
    EXPECT_TRUE(at::allclose(orthogonalized(matrix * factor, at::kDouble),
                             expected, 0, 1e-12));
}

TEST(Muon, TheTypeIsTheCallers) {
  const Tensor matrix = someMatrix(12, 5, 3);
  const Tensor expected = orthogonalized(matrix, at::kDouble);
  for (const auto &[type, tolerance] :
       {std::pair(at::kFloat, 1e-5), std::pair(at::kBFloat16, 0.1)}) {
    const Tensor result = orthogonalized(matrix, type);
    EXPECT_EQ(result.scalar_type(), type);
    EXPECT_TRUE(at::allclose(result.to(at::kDouble), expected, 0, tolerance));
  }
}

TEST(Muon, AGradientOfZeroOnlyDecays) {
  Tensor weight = someMatrix(4, 6, 4), buffer = at::zeros_like(weight);
  const Tensor expected = weight * (1 - 0.5 * 0.1);
  muonStep(muon(0.9, true), {.number = 0, .learningRate = 0.5, .scale = 1}, {},
           /*decay=*/true, at::kDouble, at::zeros_like(weight), weight, buffer);
  EXPECT_TRUE(at::allclose(weight, expected, 0, 1e-15));
  EXPECT_EQ(buffer.abs().max().item<double>(), 0);
}

TEST(Muon, FollowsItsFormula) {
  for (const auto &[rows, columns] : kShapes)
    for (bool nesterov : {false, true})
      for (bool decay : {false, true}) {
        Tensor weight = someMatrix(rows, columns, 5);
        Tensor buffer = someMatrix(rows, columns, 6);
        const Tensor sum = someMatrix(rows, columns, 7);
        const Tensor average = 0.75 * buffer + 0.25 * (0.5 * sum);
        const Tensor direction =
            nesterov ? 0.25 * (0.5 * sum) + 0.75 * average : average;
        const double size =
            0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
        const Tensor expected =
            weight * (decay ? 1 - 0.01 * 0.1 : 1) -
            0.01 * size * orthogonalized(direction, at::kDouble);
        muonStep(muon(0.75, nesterov),
                 {.number = 0, .learningRate = 0.01, .scale = 0.5}, {}, decay,
                 at::kDouble, sum, weight, buffer);
        EXPECT_TRUE(at::allclose(weight, expected, 0, 1e-12));
        EXPECT_TRUE(at::allclose(buffer, average, 0, 1e-12));
      }
}

// Matrices in bfloat16 are updated in float32, and then rounded.
TEST(Muon, RoundsOnlyTheResultsToBFloat16) {
  for (bool nesterov : {false, true}) {
    Tensor weight = someMatrix(6, 4, 11).to(at::kBFloat16);
    Tensor buffer = someMatrix(6, 4, 12).to(at::kBFloat16);
    const Tensor sum = someMatrix(6, 4, 13).to(at::kBFloat16);
    Tensor wide = weight.to(at::kFloat), average = buffer.to(at::kFloat);
    auto step = [&](const Tensor &gradient, Tensor &to, Tensor &momentum) {
      muonStep(muon(0.75, nesterov),
               {.number = 0, .learningRate = 0.1, .scale = 0.5}, {},
               /*decay=*/true, at::kBFloat16, gradient, to, momentum);
    };
    const Tensor start = weight.clone();
    step(sum, weight, buffer);
    step(sum.to(at::kFloat), wide, average);
    EXPECT_FALSE(at::equal(weight, start));
    EXPECT_TRUE(at::equal(weight, wide.to(at::kBFloat16)));
    EXPECT_TRUE(at::equal(buffer, average.to(at::kBFloat16)));
  }
}

TEST(Muon, ADeviceDecidesByTensors) {
  const Tensor start = someMatrix(5, 3, 8), average = someMatrix(5, 3, 9);
  const Tensor sum = someMatrix(5, 3, 10);
  struct Outcome {
    Tensor weight, buffer;
  };
  auto after = [&](double scale, const UpdateTensors &tensors,
                   const Tensor &gradient) {
    Outcome outcome = {start.clone(), average.clone()};
    muonStep(muon(0.9, true),
             {.number = 0, .learningRate = 0.01, .scale = scale}, tensors, true,
             at::kDouble, gradient, outcome.weight, outcome.buffer);
    return outcome;
  };
  const Tensor no = at::zeros({}, at::kInt), yes = at::ones({}, at::kInt);
  const Tensor half = at::full({}, 0.5, at::kDouble);
  const Outcome scaled = after(0.5, {}, sum);
  for (const UpdateTensors &tensors :
       {UpdateTensors{{}, half}, UpdateTensors{no, half}}) {
    const Outcome same = after(/*replaced*/ 7, tensors, sum);
    EXPECT_TRUE(at::equal(same.weight, scaled.weight));
    EXPECT_TRUE(at::equal(same.buffer, scaled.buffer));
  }
  for (double element : {1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const Outcome stopped = after(1, {yes, {}}, sum * element);
    EXPECT_TRUE(at::equal(stopped.weight, start));
    EXPECT_TRUE(at::equal(stopped.buffer, average));
  }
}

} // namespace
} // namespace chimera::runtime
