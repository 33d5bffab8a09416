//===- ChecksTest.cpp - Checks of kernels' assumptions --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests the checks that an exported model makes before it calls an operator.
// Each check must accept the calls that autograd itself makes
// (test/e2e/operators.py also tests this). It must refuse arguments with which
// the kernel would read or write beyond its tensors.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Checks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

using namespace chimera::runtime;
using Arguments = std::vector<c10::IValue>;
using Integers = std::vector<int64_t>;

namespace {
at::Tensor ones(at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
  return at::ones(shape, type);
}

c10::IValue flags(std::initializer_list<bool> values) {
  c10::List<bool> list;
  for (bool value : values)
    list.push_back(value);
  return list;
}

const c10::IValue kNone;

/// The arguments of an accepted call, and changes of one argument with which
/// the call is refused. A change is the number of the argument and its new
/// value.
struct CheckedCall {
  const char *name;
  Arguments good;
  std::vector<std::pair<size_t, c10::IValue>> bad;
};

std::vector<CheckedCall> cases() {
  const at::Tensor x = ones({2, 3, 8, 8}), half = ones({2, 3, 4, 4});
  const at::Tensor places = at::zeros({2, 3, 4, 4}, at::kLong);
  const at::Tensor beyond = at::full({2, 3, 4, 4}, 64, at::kLong);
  const Integers none, two = {2, 2}, one = {1, 1}, zero = {0, 0};
  const at::Tensor least = at::full({4}, INT64_MIN, at::kLong);
  return {
      {"aten::_log_softmax_backward_data",
       {ones({2, 3}), ones({2, 3}), 1, 6},
       {{0, ones({2, 2})}, {1, ones({2, 3}, at::kDouble)}}},
      {"aten::_softmax_backward_data",
       {ones({2, 3}), ones({2, 3}), 1, 6},
       {{0, ones({2})}, {1, ones({2, 4})}}},
      {"aten::_adaptive_avg_pool2d_backward",
       {half, x},
       {{0, ones({2, 2, 4, 4})}, {0, ones({4, 4})}, {1, ones({8, 8})}}},
      {"aten::_adaptive_avg_pool3d_backward",
       {ones({2, 3, 2, 2, 2}), ones({2, 3, 4, 4, 4})},
       {{0, ones({2, 4, 2, 2, 2})}, {0, half}}},
      {"aten::_cdist_backward",
       {ones({4, 5}), ones({4, 3}), ones({5, 3}), 2.0, ones({4, 5})},
       {{0, ones({4, 4})}, {1, ones({3, 3})}, {2, ones({5, 4})}}},
      {"aten::_native_batch_norm_legit",
       {x, ones({3}), ones({3}), true, 0.1, 1e-5},
       {{1, ones({2})}, {2, ones({3, 1})}, {3, false}, {0, ones({3})}}},
      {"aten::native_batch_norm_backward",
       {x, x, ones({3}), kNone, kNone, ones({3}), ones({3}), true, 1e-5,
        flags({true, true, true})},
       {{0, half},
        {2, ones({2})},
        {5, ones({2})},
        {6, kNone},
        {7, false},
        {9, flags({true})}}},
      {"aten::_weight_norm_interface",
       {ones({4, 3}), ones({4, 1}), 0},
       {{1, ones({3, 1})}, {2, 1}, {1, ones({4, 1}, at::kDouble)}}},
      {"aten::_weight_norm_interface_backward",
       {ones({4, 3}), ones({4, 3}), ones({4, 1}), ones({4, 1}), 0},
       {{0, ones({4, 2})}, {3, ones({1, 1})}, {0, ones({3, 4}).t()}}},
      {"aten::max_pool2d_with_indices_backward",
       {half, x, two, two, zero, one, false, places},
       {{7, beyond},
        {7, at::full({2, 3, 4, 4}, -1, at::kLong)},
        {7, at::zeros({2, 3, 4, 5}, at::kLong)},
        {7, at::zeros({2, 3, 4, 4}, at::kInt)},
        {0, ones({2, 3, 4, 5})},
        {1, ones({2, 2, 8, 8})}}},
      {"aten::max_pool3d_with_indices_backward",
       {half, ones({2, 3, 8, 8}), two, two, zero, one, false, places},
       {{7, at::full({2, 3, 4, 4}, 3 * 64, at::kLong)},
        {0, ones({3, 3, 4, 4})}}},
      {"aten::adaptive_max_pool2d_backward",
       {half, x, places},
       {{2, beyond}, {0, ones({2, 3, 2, 2})}}},
      {"aten::col2im",
       {x, Integers{8, 8}, two, one, zero, two},
       {{1, Integers{-1, 8}}, {3, Integers{int64_t{1} << 40, 1}}}},
      {"aten::im2col",
       {x, two, one, zero, two},
       {{1, Integers{-1, 2}}, {4, Integers{int64_t{1} << 40, 1}}}},
      {"aten::convolution_backward",
       {ones({2, 4, 6, 6}), x, ones({4, 3, 3, 3}), kNone, one, zero, one, false,
        zero, 1, flags({true, true, false})},
       {{0, ones({2, 4, 7, 7})},
        {0, ones({2, 3, 6, 6})},
        {1, ones({2, 2, 8, 8})},
        {4, zero},
        {5, Integers{-1, 0}},
        {6, Integers{1, 1, 1}},
        {7, true},
        {9, 0}}},
      {"aten::div",
       {at::full({4}, 7, at::kLong), at::full({4}, -1, at::kLong), "trunc"},
       {{0, least}}},
      {"aten::grid_sampler_2d_backward",
       {half, x, ones({2, 4, 4, 2}), 0, 0, false, flags({true, true})},
       {{0, ones({2, 3, 4, 5})},
        {1, ones({1, 3, 8, 8})},
        {2, ones({2, 4, 4, 2}, at::kDouble)}}},
      {"aten::reflection_pad1d_backward",
       {ones({2, 3, 7}), ones({2, 3, 4}), Integers{1, 2}},
       {{0, ones({2, 3, 6})}, {2, Integers{1}}, {2, Integers{-5, 8}}}},
      {"aten::reflection_pad2d_backward",
       {ones({2, 3, 10, 10}), x, Integers{1, 1, 1, 1}},
       {{0, x}, {1, ones({2, 2, 8, 8})}, {2, Integers{1, 1}}}},
      {"aten::reflection_pad3d_backward",
       {ones({2, 3, 4, 4, 4}), ones({2, 3, 2, 2, 2}),
        Integers{1, 1, 1, 1, 1, 1}},
       {{0, ones({2, 3, 4, 4, 5})}}},
      {"aten::replication_pad1d_backward",
       {ones({2, 3, 7}), ones({2, 3, 4}), Integers{1, 2}},
       {{0, ones({2, 3, 8})}}},
      {"aten::replication_pad2d_backward",
       {ones({2, 3, 10, 10}), x, Integers{1, 1, 1, 1}},
       {{0, x}}},
      {"aten::replication_pad3d_backward",
       {ones({2, 3, 4, 4, 4}), ones({2, 3, 2, 2, 2}),
        Integers{1, 1, 1, 1, 1, 1}},
       {{1, ones({2, 3, 3, 2, 2})}}},
  };
}

TEST(Checks, RefuseWhatKernelsDoNotLookAt) {
  for (const CheckedCall &each : cases()) {
    SCOPED_TRACE(each.name);
    Check check = checkOf(each.name);
    ASSERT_NE(check, nullptr);
    Arguments good = each.good;
    EXPECT_NO_THROW(check(good, {}));
    for (size_t i = 0; i < each.bad.size(); ++i) {
      Arguments arguments = each.good;
      arguments[each.bad[i].first] = each.bad[i].second;
      EXPECT_THROW(check(arguments, {}), std::exception) << "change " << i;
    }
  }
}

TEST(Checks, SayWhichIndexIsBeyondATable) {
  const auto refusal = [](int64_t index) -> std::string {
    try {
      std::vector<c10::IValue> arguments{
          ones({5, 3}), at::tensor({int64_t{2}, index}), -1, false, false};
      checkOf("aten::embedding")(arguments, {});
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(4), "");
  EXPECT_EQ(refusal(5), "expected an index of 0 to 4, got 5");
  EXPECT_EQ(refusal(-1), "expected an index of 0 to 4, got -1");
}

TEST(Checks, SayWhichLabelsAreAllowed) {
  const auto refusal = [](const char *name, at::IntArrayRef shape,
                          at::IntArrayRef labels, int64_t label) {
    std::vector<int64_t> all(3, -100);
    all[1] = label;
    try {
      std::vector<c10::IValue> arguments{
          ones(shape), at::tensor(all).view(labels), c10::IValue(), int64_t{1},
          int64_t{-100}};
      checkOf(name)(arguments, {});
    } catch (const std::invalid_argument &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::tuple<const char *, std::vector<int64_t>, std::vector<int64_t>>
      losses[] = {{"aten::nll_loss_forward", {3, 5}, {3}},
                  {"aten::nll_loss2d_forward", {1, 5, 1, 3}, {1, 1, 3}}};
  for (const auto &[name, shape, labels] : losses) {
    for (int64_t good : {0, 4, -100})
      EXPECT_EQ(refusal(name, shape, labels, good), "");
    for (int64_t bad : {5, -1})
      EXPECT_EQ(refusal(name, shape, labels, bad),
                "expected a label of 0 to 4, or -100 for none, got " +
                    std::to_string(bad));
  }
}

/// The indices of a call after its check on a GPU, and the value of the flag.
std::pair<at::Tensor, int32_t>
checkedOnGpu(const char *name, Arguments arguments, size_t position) {
  const at::Tensor flag = at::zeros({}, at::kInt);
  CallContext context;
  context.layer = 2;
  context.wrongIndex = flag;
  checkOf(name)(arguments, context);
  return {arguments[position].toTensor(), flag.item<int32_t>()};
}

// A check on a GPU cannot throw, because it would have to wait.
TEST(Checks, ReplaceWrongIndicesOnAGpu) {
  struct Case {
    const char *name;
    std::function<Arguments(const at::Tensor &indices)> arguments;
    size_t position;
    at::DimVector shape; ///< of the indices, of which there are 4
    std::optional<int64_t> ignored = {};
  };
  const int64_t none = -100;
  const Case cases[] = {
      {"aten::embedding",
       [](const at::Tensor &i) -> Arguments {
         return {ones({5, 3}), i, -1, false, false};
       },
       1,
       {4}},
      {"aten::embedding_dense_backward",
       [](const at::Tensor &i) -> Arguments {
         return {ones({4, 3}), i, int64_t{5}, int64_t{-1}, false};
       },
       1,
       {4}},
      {"aten::nll_loss_forward",
       [=](const at::Tensor &i) -> Arguments {
         return {ones({4, 5}), i, kNone, int64_t{1}, none};
       },
       1,
       {4},
       none},
      {"aten::nll_loss2d_backward",
       [=](const at::Tensor &i) -> Arguments {
         return {ones({}), ones({1, 5, 2, 2}), i, kNone, int64_t{1}, none,
                 ones({})};
       },
       2,
       {1, 2, 2},
       none},
      {"aten::max_pool2d_with_indices_backward",
       [](const at::Tensor &i) -> Arguments {
         const Integers two{2, 2};
         return {ones({1, 1, 2, 2}),
                 ones({1, 1, 1, 5}),
                 two,
                 two,
                 two,
                 two,
                 false,
                 i};
       },
       7,
       {1, 1, 2, 2}}};
  for (const Case &each : cases) {
    SCOPED_TRACE(each.name);
    const int64_t last = each.ignored.value_or(4);
    const at::Tensor good =
        at::tensor({int64_t{0}, int64_t{4}, int64_t{1}, last}).view(each.shape);
    const auto [same, unset] =
        checkedOnGpu(each.name, each.arguments(good), each.position);
    EXPECT_TRUE(same.equal(good));
    EXPECT_EQ(unset, 0);
    for (const int64_t wrong : {int64_t{-1}, int64_t{5}, int64_t{1} << 40}) {
      const at::Tensor bad =
          at::tensor({int64_t{0}, int64_t{4}, wrong, last}).view(each.shape);
      const at::Tensor expected =
          at::tensor({int64_t{0}, int64_t{4}, each.ignored.value_or(0), last})
              .view(each.shape);
      const auto [replaced, flag] =
          checkedOnGpu(each.name, each.arguments(bad), each.position);
      EXPECT_TRUE(replaced.equal(expected));
      EXPECT_EQ(flag, 3);
    }
  }
}

TEST(Checks, AreNotOfOperatorsThatLookThemselves) {
  EXPECT_EQ(checkOf("aten::mm"), nullptr);
  EXPECT_EQ(checkOf(""), nullptr);
}
} // namespace
