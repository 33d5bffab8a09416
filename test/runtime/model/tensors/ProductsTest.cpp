//===- ProductsTest.cpp - Products of matrices ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Products.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

using namespace chimera::runtime;

namespace {
using at::Tensor;

/// A random matrix of shape [rows, columns]. If `isTransposed`, its memory has
/// the order of the transpose.
Tensor matrix(int64_t rows, int64_t columns, bool isTransposed,
              at::ScalarType type = at::kFloat) {
  return isTransposed ? at::randn({columns, rows}, type).t()
                      : at::randn({rows, columns}, type);
}

/// Checks a float32 result against a float64 result: the norm of the error is
/// relative to the norm of `expected`.
void expectNear(const Tensor &got, const Tensor &expected) {
  EXPECT_EQ(got.sizes(), expected.sizes());
  const double error = (got.to(at::kDouble) - expected).norm().item<double>();
  EXPECT_LE(error, 1e-6 * expected.norm().item<double>());
}

/// Products of matrices, computed by oneDNN or by the other library. Some are
/// large, with rows that are not a multiple of a block. Some are too small for
/// oneDNN.
class Products : public testing::TestWithParam<std::tuple<bool, bool, bool>> {
protected:
  Products() { useOneDnn(std::get<0>(GetParam())); }
  ~Products() override { useOneDnn(was); }

  struct Case {
    Tensor a, b;
    Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
  };
  std::vector<Case> cases() const {
    const bool first = std::get<1>(GetParam()),
               second = std::get<2>(GetParam());
    std::vector<Case> all;
    for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{3, 5, 2},
                           {129, 300, 70},
                           {2500, 8, 1024}})
      all.push_back({matrix(m, k, first), matrix(k, n, second)});
    return all;
  }

private:
  const bool was = usesOneDnn();
};

TEST_P(Products, AreThoseOfMatrices) {
  for (const Case &each : cases()) {
    expectNear(product(each.a, each.b), each.exact);
    at::Tensor written = at::empty_like(each.exact, each.a.options());
    productTo(written, each.a, each.b);
    expectNear(written, each.exact);
  }
}

TEST_P(Products, HaveABias) {
  for (const Case &each : cases()) {
    const Tensor bias = at::randn({each.b.size(1)});
    expectNear(productWithBias(bias, each.a, each.b.t()),
               each.exact + bias.to(at::kDouble));
    const Tensor strided = at::randn({2 * each.b.size(1)}).slice(0, 0, {}, 2);
    expectNear(productWithBias(strided, each.a, each.b.t()),
               each.exact + strided.to(at::kDouble));
  }
}

TEST_P(Products, AreAddedOrWritten) {
  for (const Case &each : cases()) {
    Tensor sum = at::randn(each.exact.sizes());
    const Tensor before = sum.to(at::kDouble, /*non_blocking=*/false,
                                 /*copy=*/true);
    addProduct(sum, true, each.a, each.b);
    expectNear(sum, before + each.exact);
    // Fill the result with NaN, because the previous values must not matter.
    sum.fill_(std::numeric_limits<float>::quiet_NaN());
    addProduct(sum, false, each.a, each.b);
    expectNear(sum, each.exact);
  }
}

TEST_P(Products, OfNarrowFactorsAreWide) {
  for (Case each : cases()) {
    each = {each.a.to(at::kBFloat16), each.b.to(at::kBFloat16)};
    Tensor sum = at::zeros(each.exact.sizes());
    addProduct(sum, true, each.a, each.b);
    expectNear(sum, each.exact);
  }
}

TEST_P(Products, OfFloat64AreExacter) {
  const Tensor a = at::ones({200, 300}, at::kDouble) / 3,
               b = at::ones({300, 100}, at::kDouble) / 7;
  EXPECT_NEAR(product(a, b)[5][7].item<double>(), 300. / 21, 1e-12);
}

TEST_P(Products, HaveTheSameBitsAgain) {
  for (const Case &each : cases())
    EXPECT_TRUE(product(each.a, each.b).equal(product(each.a, each.b)));
}

std::string nameOf(const testing::TestParamInfo<Products::ParamType> &info) {
  auto [library, first, second] = info.param;
  return std::string(library ? "OneDnn" : "Mkl") +
         (first ? "FirstTransposed" : "First") +
         (second ? "SecondTransposed" : "Second");
}

INSTANTIATE_TEST_SUITE_P(All, Products,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Bool()),
                         nameOf);

TEST(ProductsTest, OneDnnIsInThisLibTorch) {
  const bool was = usesOneDnn();
  useOneDnn(true);
  EXPECT_TRUE(usesOneDnn());
  useOneDnn(was);
}
} // namespace
