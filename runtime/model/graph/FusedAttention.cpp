//===- FusedAttention.cpp - LibTorch's fused attention kernels ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/FusedAttention.h"

#include "runtime/model/graph/AttentionMask.h"
#include "runtime/random/Philox.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <limits>
#include <map>
#include <mutex>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

namespace {

/// The efficient kernel of a GPU pads rows of logSumExp with infinities to a
/// multiple of this.
constexpr int64_t kRow = 32;
/// GPU kernels read so many bytes at once.
constexpr size_t kVector = 16;
/// Whether logSumExp of the cuDNN kernel has a last dimension of 1.
constexpr bool kCudnnHasColumn = TORCH_VERSION_MAJOR == 2 &&
                                 TORCH_VERSION_MINOR >= 9 &&
                                 TORCH_VERSION_MINOR <= 11;

/// Whether each row of the last dimension begins at a multiple of kVector.
bool isAligned(const Tensor &x) {
  const auto inVector = static_cast<int64_t>(kVector / x.element_size());
  for (int64_t i = 0; i + 1 < x.dim(); ++i)
    if (x.size(i) > 1 && x.stride(i) % inVector != 0)
      return false;
  return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kVector == 0;
}

/// The tensor in a layout that all kernels of its device read.
Tensor readable(const Tensor &x) {
  const bool isDense = x.stride(-1) == 1 || x.size(-1) == 1;
  return isDense && (x.is_cpu() || isAligned(x))
             ? x
             : x.clone(at::MemoryFormat::Contiguous);
}

/// The tensor [samples, heads, tokens, width], in memory [samples, tokens,
/// heads, width]. The efficient kernel for bfloat16 reads the output in this
/// layout, whatever its strides are.
Tensor byTokens(const Tensor &x) {
  return readable(x.transpose(1, 2).contiguous()).transpose(1, 2);
}

int64_t probabilitiesOf(const AttentionCall &call) {
  return call.query.size(0) * call.query.size(1) * call.query.size(2) *
         call.key.size(2);
}

/// The random numbers that the efficient kernel uses, as its backward takes
/// them: on the host, outside of a captured graph.
struct Drawn {
  Tensor seed, offset;
};
Drawn drawnBy(Dropout::Draw draw) {
  auto number = [](uint64_t value) {
    return at::scalar_tensor(static_cast<int64_t>(value), at::kLong);
  };
  return {number(draw.key), number(draw.first)};
}

/// The efficient kernel of a GPU. For dropout, the kernel takes one random
/// number for each element of the probabilities [samples, heads, tokens, keys],
/// in order, from a cuRAND sequence. `draw` has the key of the sequence and the
/// offset of its first number, which must be a multiple of 4.
AttentionResult efficientForward(const AttentionCall &call, double dropped,
                                 Dropout::Draw draw) {
  // Ranks that are threads may share a GPU and its generator. So only one
  // thread at a time may set the generator and launch the kernel.
  static std::mutex mutex;
  std::unique_lock drawing(mutex, std::defer_lock);
  if (dropped > 0) {
    drawing.lock();
    at::Generator generator =
        at::globalContext().defaultGenerator(call.query.device());
    std::lock_guard lock(generator.mutex());
    generator.set_current_seed(draw.key);
    generator.set_offset(draw.first);
  }
  const EfficientMask mask = maskForEfficientKernel(call);
  const auto made = at::_scaled_dot_product_efficient_attention(
      readable(call.query), readable(call.key), readable(call.value),
      mask.numbers.defined() ? std::optional(mask.numbers) : std::nullopt,
      /*compute_log_sumexp=*/true, dropped, call.isCausal, call.scale);
  // The stash has the rows without their padding.
  AttentionResult result{
      std::get<0>(made),
      std::get<1>(made).narrow(-1, 0, call.query.size(2)).contiguous()};
  if (mask.isHidden.defined()) {
    result.output.masked_fill_(mask.isHidden, 0);
    result.logSumExp.masked_fill_(mask.isHidden.squeeze(-1), kHides);
  }
  return result;
}

std::array<Tensor, 3> efficientBackward(const Tensor &gradient,
                                        const AttentionCall &call,
                                        const AttentionResult &result,
                                        double dropped, Dropout::Draw draw) {
  const Drawn drawn = drawnBy(draw);
  const int64_t padding = (kRow - call.query.size(2) % kRow) % kRow;
  // With -kHides as its logSumExp, a token's probabilities are 0.
  Tensor sums = result.logSumExp;
  if (call.mask.defined())
    sums = sums.masked_fill(sums.eq(kHides), -kHides);
  std::array<Tensor, 3> made;
  std::tie(made[0], made[1], made[2], std::ignore) =
      at::_scaled_dot_product_efficient_attention_backward(
          readable(gradient), readable(call.query), readable(call.key),
          readable(call.value), maskForEfficientKernel(call).numbers,
          byTokens(result.output),
          at::constant_pad_nd(sums, {0, padding}, -kHides), drawn.seed,
          drawn.offset, dropped,
          /*grad_input_mask=*/{true, true, true, false}, call.isCausal,
          call.scale);
  return made;
}

/// Whether the efficient kernel and its backward compute attention with a mask
/// as Attention.h says. LibTorch does not promise this for masks that hide keys
/// or tokens, nor for a mask of a causal attention, so the function tries a
/// small case of the given type. Waits for the GPU.
bool masksAsWeDo(const at::TensorOptions &options, bool isCausal) try {
  constexpr int64_t kTokens = 40, kWidth = 16;
  const Tensor numbers =
      at::arange(4 * kTokens * kWidth, options.dtype(at::kFloat))
          .mul(0.7)
          .sin()
          .view({4, 1, 1, kTokens, kWidth});
  AttentionCall call{.query = numbers[0].to(options.dtype()),
                     .key = numbers[1].to(options.dtype()),
                     .value = numbers[2].to(options.dtype()),
                     .mask = at::zeros({kTokens, kTokens}, options),
                     .isCausal = isCausal,
                     .scale = 0.5};
  call.mask.narrow(1, 2, 5).fill_(kHides);
  call.mask.select(0, 3).fill_(kHides);
  call.mask.select(0, 9).fill_(-1e9);
  const Tensor gradient = numbers[3].to(options.dtype());
  const AttentionResult result = efficientForward(call, 0, {});
  const std::array<Tensor, 3> made =
      efficientBackward(gradient, call, result, 0, {});

  // The formula, in float64.
  const Tensor q = call.query.to(at::kDouble), k = call.key.to(at::kDouble),
               v = call.value.to(at::kDouble), g = gradient.to(at::kDouble);
  Tensor scores = q.matmul(k.mT()).mul(call.scale).add(call.mask);
  if (isCausal)
    scores.masked_fill_(at::ones_like(call.mask, at::kBool).triu(1), kHides);
  const Tensor shares = scores.softmax(-1).nan_to_num(0);
  const Tensor ofShares = g.matmul(v.mT());
  const Tensor ofScores =
      shares.mul(ofShares - ofShares.mul(shares).sum(-1, true)).mul(call.scale);
  auto isNear = [&](const Tensor &a, const Tensor &b) {
    const double tolerance = options.dtype() == at::kFloat ? 1e-3 : 5e-2;
    return at::allclose(a.to(at::kDouble), b, tolerance, tolerance);
  };
  return isNear(result.output, shares.matmul(v)) &&
         isNear(made[0], ofScores.matmul(k)) &&
         isNear(made[1], ofScores.mT().matmul(q)) &&
         isNear(made[2], shares.mT().matmul(g));
} catch (const c10::OutOfMemoryError &) {
  throw;
} catch (const c10::AcceleratorError &) {
  throw;
} catch (const c10::Error &) {
  return false; // this LibTorch refuses such a call
}

/// masksAsWeDo for the type of the call, tried once.
bool masksAsWeDo(const AttentionCall &call) {
  static std::mutex mutex;
  static std::map<std::pair<at::ScalarType, bool>, bool> tried;
  const std::lock_guard lock(mutex);
  const std::pair key(call.query.scalar_type(), call.isCausal);
  if (!tried.contains(key))
    tried[key] = masksAsWeDo(call.query.options(), call.isCausal);
  return tried[key];
}

/// Whether efficientForward keeps the same elements as computeDropoutMask. This
/// depends on LibTorch's version, so the function tries a small case. All
/// scores are equal, and the values are the identity matrix, so the output has
/// the probabilities themselves. Waits for the GPU.
bool drawsAsWeDo(const at::TensorOptions &options) {
  // The number of tokens is larger than the kernel's block size, and not a
  // multiple of it.
  constexpr int64_t kSamples = 2, kHeads = 2, kTokens = 136;
  constexpr int64_t kShape[] = {kSamples, kHeads, kTokens, kTokens};
  constexpr Dropout::Draw kDraw{.key = 0x0123456789abcdef,
                                .first = (uint64_t(1) << 33) + 4};
  const Tensor equal = at::zeros(kShape, options);
  const AttentionCall call{
      .query = equal,
      .key = equal,
      .value = at::eye(kTokens, options).expand(kShape).contiguous(),
      .mask = {},
      .isCausal = true,
      .scale = 1};
  Tensor kept = at::empty(kShape, at::kBool);
  computeDropoutMask(0.5, kDraw.key, kDraw.first, kept.numel(),
                     kept.data_ptr<bool>());
  return efficientForward(call, 0.5, kDraw)
      .output.ne(0)
      .cpu()
      .equal(kept.tril_());
}

/// Whether the efficient kernel can drop what computeDropoutMask drops: the
/// generator requires that the offset is a multiple of 4, and the kernel counts
/// probabilities in 32 bits.
bool dropsAsWeDo(const AttentionCall &call, const Dropout &dropout) {
  const int64_t probabilities = probabilitiesOf(call);
  if (dropout.drawOf(call.site, probabilities).first % 4 != 0 ||
      probabilities > std::numeric_limits<int32_t>::max())
    return false;
  static const bool asWeDo = drawsAsWeDo(call.query.options());
  return asWeDo;
}

Dropout::Draw drawOf(const AttentionCall &call, const Dropout &dropout) {
  return dropout.isActive() ? dropout.drawOf(call.site, probabilitiesOf(call))
                            : Dropout::Draw{};
}

/// LibTorch's choice among its kernels for bfloat16. None if it would write
/// attention out.
AttentionKernel narrowKernelFor(const AttentionCall &call) {
  // LibTorch determines the order of its kernels in the first call, without a
  // lock, and ranks may be threads.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  // It respects the limits of backwards only if there is something to
  // differentiate.
  const at::AutoGradMode differentiable(true);
  auto operand = [](const Tensor &x) {
    return readable(x).detach().requires_grad_(true);
  };
  switch (static_cast<at::SDPBackend>(at::_fused_sdp_choice(
      operand(call.query), operand(call.key), operand(call.value),
      /*attn_mask=*/std::nullopt, /*dropout_p=*/0, call.isCausal,
      call.scale))) {
  case at::SDPBackend::cudnn_attention:
    // If attention is not causal, the backward of cuDNN 9.19, which LibTorch
    // 2.11 has, can give NaN.
    return call.isCausal ? AttentionKernel::Cudnn : AttentionKernel::Flash;
  case at::SDPBackend::flash_attention:
    return AttentionKernel::Flash;
  case at::SDPBackend::efficient_attention:
    return AttentionKernel::Efficient;
  default:
    return AttentionKernel::None;
  }
}

AttentionKernel gpuKernelFor(const AttentionCall &call,
                             const Dropout &dropout) {
  const Tensor &q = call.query, &k = call.key;
  // GPU kernels require rows that are a multiple of kVector. If there are more
  // keys than tokens, they differ in what causal means.
  const bool isNarrow = q.scalar_type() == at::kBFloat16;
  if ((!isNarrow && q.scalar_type() != at::kFloat) ||
      static_cast<size_t>(q.size(3)) * q.element_size() % kVector != 0 ||
      (call.isCausal && q.size(2) != k.size(2)) || q.size(1) != k.size(1) ||
      // The kernel would round a mask of another type.
      (call.mask.defined() &&
       (call.mask.scalar_type() != q.scalar_type() || !masksAsWeDo(call))))
    return AttentionKernel::None;
  const AttentionKernel kernel = isNarrow && !call.mask.defined()
                                     ? narrowKernelFor(call)
                                     : AttentionKernel::Efficient;
  if (!dropout.isActive() || kernel == AttentionKernel::None)
    return kernel;
  // The other kernels draw random numbers in another order than
  // computeDropoutMask.
  return dropsAsWeDo(call, dropout) ? AttentionKernel::Efficient
                                    : AttentionKernel::None;
}

} // namespace

AttentionCall chimera::runtime::withKeysOfEachHead(const AttentionCall &call) {
  AttentionCall whole = call;
  const int64_t each = call.query.size(1) / call.key.size(1);
  if (each > 1) {
    whole.key = call.key.repeat_interleave(each, 1);
    whole.value = call.value.repeat_interleave(each, 1);
  }
  return whole;
}

Tensor chimera::runtime::sumOverHeads(const Tensor &gradient,
                                      int64_t keyHeads) {
  return gradient.size(1) == keyHeads
             ? gradient
             : gradient.unflatten(1, {keyHeads, -1}).sum(2);
}

AttentionKernel chimera::runtime::fusedKernelFor(const AttentionCall &call,
                                                 const Dropout &dropout) {
  if (!call.query.is_cpu())
    return gpuKernelFor(call, dropout);
  return dropout.isActive() ? AttentionKernel::None : AttentionKernel::Cpu;
}

AttentionResult chimera::runtime::fusedAttention(AttentionKernel kernel,
                                                 const AttentionCall &call,
                                                 const Dropout &dropout) {
  const Tensor q = readable(call.query), k = readable(call.key),
               v = readable(call.value);
  switch (kernel) {
  case AttentionKernel::Cpu: {
    auto [output, logSumExp] = at::_scaled_dot_product_flash_attention_for_cpu(
        q, k, v, /*dropout_p=*/0, call.isCausal, maskForHost(call), call.scale);
    return {std::move(output), std::move(logSumExp)};
  }
  case AttentionKernel::Flash: {
    const auto made = at::_scaled_dot_product_flash_attention(
        q, k, v, /*dropout_p=*/0, call.isCausal, /*return_debug_mask=*/false,
        call.scale);
    return {std::get<0>(made), std::get<1>(made)};
  }
  case AttentionKernel::Cudnn: {
    const auto made = at::_scaled_dot_product_cudnn_attention(
        q, k, v, /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/true,
        /*dropout_p=*/0, call.isCausal, /*return_debug_mask=*/false,
        call.scale);
    return {std::get<0>(made),
            std::get<1>(made).view(call.query.sizes().slice(0, 3))};
  }
  default:
    return efficientForward(call, dropout.probability(), drawOf(call, dropout));
  }
}

std::array<Tensor, 3> chimera::runtime::fusedAttentionBackward(
    AttentionKernel kernel, const Tensor &gradient, const AttentionCall &call,
    const AttentionResult &result, const Dropout &dropout) {
  const Tensor g = readable(gradient), q = readable(call.query),
               k = readable(call.key), v = readable(call.value),
               output = readable(result.output);
  const int64_t tokens = q.size(2), keys = k.size(2);
  // Without dropout, kernels do not read these.
  auto undrawn = [&] { return at::empty({2}, q.options().dtype(at::kLong)); };
  std::array<Tensor, 3> made;
  switch (kernel) {
  case AttentionKernel::Cpu:
    std::tie(made[0], made[1], made[2]) =
        at::_scaled_dot_product_flash_attention_for_cpu_backward(
            g, q, k, v, output, result.logSumExp, /*dropout_p=*/0,
            call.isCausal, maskForHost(call), call.scale);
    break;
  case AttentionKernel::Flash:
    std::tie(made[0], made[1], made[2]) =
        at::_scaled_dot_product_flash_attention_backward(
            g, q, k, v, output, result.logSumExp, /*cum_seq_q=*/Tensor(),
            /*cum_seq_k=*/Tensor(), tokens, keys, /*dropout_p=*/0,
            call.isCausal, undrawn(), undrawn(), call.scale);
    break;
  case AttentionKernel::Cudnn:
    std::tie(made[0], made[1], made[2]) =
        at::_scaled_dot_product_cudnn_attention_backward(
            g, q, k, v, output,
            kCudnnHasColumn ? result.logSumExp.unsqueeze(-1) : result.logSumExp,
            undrawn(), undrawn(), /*attn_bias=*/Tensor(),
            /*cum_seq_q=*/Tensor(),
            /*cum_seq_k=*/Tensor(), tokens, keys, /*dropout_p=*/0,
            call.isCausal, call.scale);
    break;
  default:
    made = efficientBackward(gradient, call, result, dropout.probability(),
                             drawOf(call, dropout));
  }
  return made;
}
