//===- Checks.cpp - Checks before kernels are called ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Checks.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <limits>
#include <map>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using Arguments = std::vector<c10::IValue>;

// An upper bound for windows, paddings and strides.
constexpr int64_t kLargestWindow = 1 << 20;

void chimera::runtime::expect(bool holds, const char *what) {
  if (!holds)
    throw std::invalid_argument(std::string("expected ") + what);
}

/// The sizes of all dimensions of `x` except the last `last` dimensions.
static at::IntArrayRef planesOf(const Tensor &x, int64_t last) {
  const int64_t count = x.dim() > last ? x.dim() - last : 0;
  return x.sizes().slice(0, static_cast<size_t>(count));
}

/// The tensor, or an undefined tensor if the argument is None.
static Tensor optionalTensor(const c10::IValue &argument) {
  return argument.isNone() ? Tensor() : argument.toTensor();
}

static void expectSame(const Tensor &a, const Tensor &b) {
  expect(a.defined() && b.defined() && a.sizes() == b.sizes() &&
             a.scalar_type() == b.scalar_type(),
         "a gradient with the same shape and type as its tensor");
}

template <size_t A, size_t B>
static void same(Arguments &arguments, const CallContext &) {
  expectSame(arguments[A].toTensor(), arguments[B].toTensor());
}

/// Requires one number for each channel (dimension 1 of `x`), or None.
static void expectForEachChannel(const Tensor &x, const c10::IValue &argument) {
  const Tensor numbers = optionalTensor(argument);
  expect(!numbers.defined() ||
             (numbers.dim() == 1 && numbers.size(0) == x.size(1)),
         "one number for each channel");
}

static Tensor withChannels(const c10::IValue &argument) {
  Tensor x = argument.toTensor();
  expect(x.dim() >= 2 && x.numel() > 0, "samples with channels");
  return x;
}

/// Checks aten::embedding(weight, indices). The host's kernel checks the
/// indices too, but its error message does not name the wrong index.
static void embedding(Arguments &arguments, const CallContext &context) {
  const Tensor table = arguments[0].toTensor(),
               indices = arguments[1].toTensor();
  if (table.dim() == 2)
    arguments[1] = checkedIndices(indices, table.size(0), context);
}

/// Checks aten::nll_loss_forward(log_probabilities, labels, weight, reduction,
/// ignore_index) and its form for planes. The host's kernels check the labels
/// too, but their error messages do not say which labels are allowed.
static void lossOfLabels(Arguments &arguments, const CallContext &context) {
  const Tensor x = arguments[0].toTensor(), labels = arguments[1].toTensor();
  if (x.dim() > 0 && labels.scalar_type() == at::kLong)
    arguments[1] = checkedIndices(labels, x.size(x.dim() > 1 ? 1 : 0), context,
                                  arguments[4].toInt());
}

/// Checks the backward of lossOfLabels, (grad_output, log_probabilities,
/// labels, weight, reduction, ignore_index, total_weight), on a GPU. The host's
/// kernels check the labels.
static void lossOfLabelsBackward(Arguments &arguments,
                                 const CallContext &context) {
  const Tensor x = arguments[1].toTensor(), labels = arguments[2].toTensor();
  if (context.wrongIndex.defined() && x.dim() > 0)
    arguments[2] = checkedIndices(labels, x.size(x.dim() > 1 ? 1 : 0), context,
                                  arguments[5].toInt());
}

/// Checks aten::embedding_dense_backward(grad_output, indices, num_weights,
/// padding_idx, scale_grad_by_freq) on a GPU. The host's kernel leaves out
/// wrong indices.
static void embeddingBackward(Arguments &arguments,
                              const CallContext &context) {
  if (context.wrongIndex.defined())
    arguments[1] =
        checkedIndices(arguments[1].toTensor(), arguments[2].toInt(), context);
}

/// Checks aten::_native_batch_norm_legit(input, weight, bias, training,
/// momentum, eps). This is the overload without running statistics. A package
/// cannot call the other overload, since it modifies arguments.
static void batchNormOfItself(Arguments &arguments, const CallContext &) {
  const Tensor x = withChannels(arguments[0]);
  expectForEachChannel(x, arguments[1]);
  expectForEachChannel(x, arguments[2]);
  expect(arguments[3].toBool(), "a norm by the batch's own mean");
}

/// Checks aten::native_batch_norm_backward(grad_out, input, weight,
/// running_mean, running_var, save_mean, save_invstd, train, eps, output_mask).
static void batchNormBackward(Arguments &arguments, const CallContext &) {
  const Tensor x = withChannels(arguments[1]);
  expectSame(arguments[0].toTensor(), x);
  for (size_t i = 2; i <= 6; ++i)
    expectForEachChannel(x, arguments[i]);
  const size_t mean = arguments[7].toBool() ? 5 : 3;
  for (size_t i : {mean, mean + 1}) {
    const Tensor numbers = optionalTensor(arguments[i]);
    expect(numbers.defined() && numbers.numel() == x.size(1),
           "a mean and a variance for each channel");
  }
  expect(arguments[9].toBoolList().size() == 3, "three gradients");
}

/// Checks aten::convolution_backward(grad_out, input, weight, bias_sizes,
/// stride, padding, dilation, transposed, output_padding, groups, output_mask).
/// Requires a gradient of the output's shape.
static void convolutionBackward(Arguments &arguments, const CallContext &) {
  const Tensor gradient = arguments[0].toTensor(), x = arguments[1].toTensor(),
               weight = arguments[2].toTensor();
  const auto dimensions = static_cast<size_t>(x.dim());
  expect(dimensions >= 3 && dimensions <= 5 && gradient.dim() == x.dim() &&
             weight.dim() == x.dim(),
         "tensors with equal numbers of dimensions");
  expect(x.numel() > 0 && weight.numel() > 0, "tensors with elements");
  const bool transposed = arguments[7].toBool();
  const int64_t groups = arguments[9].toInt();
  auto listOf = [&](size_t argument, int64_t least) {
    std::vector<int64_t> list = arguments[argument].toIntVector();
    if (list.size() == 1)
      list.resize(dimensions - 2, list[0]);
    expect(list.size() == dimensions - 2, "a number for each dimension");
    for (int64_t number : list)
      expect(number >= least && number <= kLargestWindow,
             "a window of a common size");
    return list;
  };
  const std::vector<int64_t> stride = listOf(4, 1), padding = listOf(5, 0),
                             dilation = listOf(6, 1), more = listOf(8, 0);
  expect(groups >= 1 && groups <= kLargestWindow, "one group or more");
  const int64_t channels =
      transposed ? weight.size(1) * groups : weight.size(0);
  expect(gradient.size(0) == x.size(0) && gradient.size(1) == channels &&
             x.size(1) ==
                 (transposed ? weight.size(0) : weight.size(1) * groups) &&
             weight.size(0) % groups == 0,
         "matching numbers of samples and channels");
  for (size_t i = 0; i + 2 < dimensions; ++i) {
    const auto d = static_cast<int64_t>(i + 2);
    const int64_t window = dilation[i] * (weight.size(d) - 1) + 1;
    const int64_t room = x.size(d) + 2 * padding[i] - window;
    const int64_t size = transposed ? (x.size(d) - 1) * stride[i] -
                                          2 * padding[i] + window + more[i]
                                    : (room < 0 ? -1 : room / stride[i] + 1);
    expect(gradient.size(d) == size, "a gradient of the output's shape");
  }
}

/// The number of elements of a plane. A plane is the last `Dimensions`
/// dimensions of `x`.
template <int64_t Dimensions> static int64_t planeSize(const Tensor &x) {
  expect(x.dim() >= Dimensions, "a tensor with the dimensions of a window");
  int64_t count = 1;
  for (int64_t d = 1; d <= Dimensions; ++d)
    count *= x.size(-d);
  return count;
}

/// Checks the backward of a max pooling, (grad_output, input, ..., indices).
/// The backward adds each gradient at the index of its window's maximum.
/// `Indices` is the position of `indices` among the arguments. A plane is the
/// last `Dimensions` dimensions of `input`.
template <size_t Indices, int64_t Dimensions>
static void poolBackward(Arguments &arguments, const CallContext &context) {
  const Tensor gradient = arguments[0].toTensor(), x = arguments[1].toTensor(),
               indices = arguments[Indices].toTensor();
  expect(indices.scalar_type() == at::kLong, "indices of int64");
  arguments[Indices] =
      checkedIndices(indices, planeSize<Dimensions>(x), context);
  expect(gradient.sizes() == indices.sizes() && gradient.dim() == x.dim() &&
             gradient.scalar_type() == x.scalar_type() &&
             planesOf(gradient, Dimensions) == planesOf(x, Dimensions),
         "gradients and indices of the planes of the input");
}

/// Checks the backward of an average pooling, (grad_output, input). Requires
/// that both tensors have the same samples and channels. These are all
/// dimensions except the last `Dimensions`.
template <int64_t Dimensions>
static void averageBackward(Arguments &arguments, const CallContext &) {
  const Tensor gradient = arguments[0].toTensor(), x = arguments[1].toTensor();
  expect(x.dim() > Dimensions && gradient.dim() == x.dim() &&
             gradient.scalar_type() == x.scalar_type() &&
             planesOf(gradient, Dimensions) == planesOf(x, Dimensions),
         "gradients of the planes of the input");
}

/// Checks the backward of a padding, (grad_output, input, padding). `padding`
/// has two numbers for each of the last `Dimensions` dimensions, starting with
/// the last dimension: the numbers of elements that are added before and after.
/// Requires a gradient of the padded shape.
template <int64_t Dimensions>
static void padBackward(Arguments &arguments, const CallContext &context) {
  averageBackward<Dimensions>(arguments, context);
  const Tensor gradient = arguments[0].toTensor(), x = arguments[1].toTensor();
  const std::vector<int64_t> padding = arguments[2].toIntVector();
  expect(padding.size() == 2 * Dimensions, "two numbers for each dimension");
  for (int64_t d = 0; d < Dimensions; ++d) {
    const int64_t before = padding[static_cast<size_t>(2 * d)],
                  after = padding[static_cast<size_t>(2 * d + 1)];
    const int64_t size = x.size(-1 - d);
    expect(before >= -size && before <= kLargestWindow && after >= -size &&
               after <= kLargestWindow &&
               gradient.size(-1 - d) == size + before + after,
           "a gradient of the padded shape");
  }
}

/// Requires contiguous tensors and one norm for each row or column of `v`.
static void expectNormsOf(const Tensor &v, const Tensor &norms, int64_t dim) {
  expect(v.dim() > 0 && v.numel() > 0 && v.is_contiguous() &&
             (dim == 0 || dim == v.dim() - 1) && norms.is_contiguous() &&
             norms.dim() == v.dim() && norms.numel() == v.size(dim) &&
             norms.size(dim) == v.size(dim),
         "a norm for each row or column of a weight");
}

/// Checks aten::_weight_norm_interface(v, g, dim).
static void weightNorm(Arguments &arguments, const CallContext &) {
  const Tensor v = arguments[0].toTensor(), g = arguments[1].toTensor();
  expectNormsOf(v, g, arguments[2].toInt());
  expect(v.scalar_type() == g.scalar_type(), "tensors of one type");
}

/// Checks aten::_weight_norm_interface_backward(grad_w, saved_v, saved_g,
/// saved_norms, dim).
static void weightNormBackward(Arguments &arguments, const CallContext &) {
  const Tensor v = arguments[1].toTensor(), g = arguments[2].toTensor(),
               norms = arguments[3].toTensor();
  expectSame(arguments[0].toTensor(), v);
  expect(arguments[0].toTensor().is_contiguous(), "a gradient without gaps");
  expectNormsOf(v, g, arguments[4].toInt());
  expectNormsOf(v, norms, arguments[4].toInt());
  expect(
      v.scalar_type() == g.scalar_type() &&
          norms.scalar_type() ==
              (v.scalar_type() == at::kBFloat16 ? at::kFloat : v.scalar_type()),
      "tensors of one type, and norms of float32 for bfloat16");
}

/// Checks aten::im2col and aten::col2im. All arguments after the first are
/// lists of window sizes, dilations, paddings or strides.
static void windows(Arguments &arguments, const CallContext &) {
  for (size_t i = 1; i < arguments.size(); ++i)
    for (int64_t number : arguments[i].toIntVector())
      expect(number >= 0 && number <= kLargestWindow,
             "a window of a common size");
}

/// Checks aten::grid_sampler_2d_backward(grad_output, input, grid,
/// interpolation, padding, align_corners, mask).
static void gridSamplerBackward(Arguments &arguments, const CallContext &) {
  const Tensor gradient = arguments[0].toTensor(), x = arguments[1].toTensor(),
               grid = arguments[2].toTensor();
  expect(x.dim() == 4 && grid.dim() == 4 && gradient.dim() == 4 &&
             gradient.size(0) == x.size(0) && gradient.size(1) == x.size(1) &&
             gradient.size(2) == grid.size(1) &&
             gradient.size(3) == grid.size(2) &&
             gradient.scalar_type() == x.scalar_type() &&
             grid.scalar_type() == x.scalar_type(),
         "a gradient of the sampled shape");
}

/// Checks aten::_cdist_backward(grad, x1, x2, p, cdist).
static void distancesBackward(Arguments &arguments, const CallContext &) {
  const Tensor gradient = arguments[0].toTensor(), a = arguments[1].toTensor(),
               b = arguments[2].toTensor(), distances = arguments[4].toTensor();
  expectSame(gradient, distances);
  expect(a.dim() >= 2 && b.dim() == a.dim() && distances.dim() == a.dim() &&
             a.size(-1) == b.size(-1) && planesOf(a, 2) == planesOf(b, 2) &&
             planesOf(a, 2) == planesOf(distances, 2) &&
             distances.size(-2) == a.size(-2) &&
             distances.size(-1) == b.size(-2) &&
             a.scalar_type() == distances.scalar_type() &&
             b.scalar_type() == distances.scalar_type(),
         "a distance of each row to each row");
}

static bool isIntegral(const Tensor &x) {
  return at::isIntegralType(x.scalar_type(), /*includeBool=*/false);
}

/// Checks aten::div(self, other, rounding_mode). With rounding mode "trunc",
/// the processor divides integers. It raises an exception if it divides the
/// smallest integer by -1. A GPU does not.
static void divide(Arguments &arguments, const CallContext &) {
  if (arguments[0].toTensor().is_cuda() || arguments.size() != 3 ||
      !arguments[2].isString() || arguments[2].toStringView() != "trunc")
    return;
  const Tensor x = arguments[0].toTensor();
  const Tensor by = arguments[1].isTensor()
                        ? arguments[1].toTensor()
                        : c10::scalar_to_tensor(arguments[1].toScalar());
  if (isIntegral(x) && isIntegral(by) && x.numel() > 0)
    expect(!by.eq(-1).any().item<bool>() ||
               x.to(at::kLong).min().item<int64_t>() >
                   std::numeric_limits<int32_t>::min(),
           "numbers that can be divided by -1 without overflow");
}

Check chimera::runtime::checkOf(const std::string &operatorName) {
  static const std::map<std::string, Check> checks = {
      {"aten::_adaptive_avg_pool2d_backward", averageBackward<2>},
      {"aten::_adaptive_avg_pool3d_backward", averageBackward<3>},
      {"aten::_cdist_backward", distancesBackward},
      {"aten::_log_softmax_backward_data", same<0, 1>},
      {"aten::_native_batch_norm_legit", batchNormOfItself},
      {"aten::_softmax_backward_data", same<0, 1>},
      {"aten::_weight_norm_interface", weightNorm},
      {"aten::_weight_norm_interface_backward", weightNormBackward},
      {"aten::adaptive_max_pool2d_backward", poolBackward<2, 2>},
      {"aten::col2im", windows},
      {"aten::convolution_backward", convolutionBackward},
      {"aten::div", divide},
      {"aten::embedding", embedding},
      {"aten::embedding_dense_backward", embeddingBackward},
      {"aten::grid_sampler_2d_backward", gridSamplerBackward},
      {"aten::im2col", windows},
      {"aten::max_pool2d_with_indices_backward", poolBackward<7, 2>},
      {"aten::max_pool3d_with_indices_backward", poolBackward<7, 3>},
      {"aten::native_batch_norm_backward", batchNormBackward},
      {"aten::nll_loss2d_backward", lossOfLabelsBackward},
      {"aten::nll_loss2d_forward", lossOfLabels},
      {"aten::nll_loss_backward", lossOfLabelsBackward},
      {"aten::nll_loss_forward", lossOfLabels},
      {"aten::reflection_pad1d_backward", padBackward<1>},
      {"aten::reflection_pad2d_backward", padBackward<2>},
      {"aten::reflection_pad3d_backward", padBackward<3>},
      {"aten::replication_pad1d_backward", padBackward<1>},
      {"aten::replication_pad2d_backward", padBackward<2>},
      {"aten::replication_pad3d_backward", padBackward<3>},
  };
  const auto found = checks.find(operatorName);
  return found == checks.end() ? nullptr : found->second;
}
