//===- LinearCrossEntropy.cpp - The last product and the loss -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/LinearCrossEntropy.h"

#include "runtime/model/graph/Checks.h"

#include <ATen/ATen.h>

#include <algorithm>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

namespace {

void check(const LinearCrossEntropyCall &call) {
  const Tensor &x = call.input, &weight = call.weight;
  expect(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) &&
             x.numel() > 0 && weight.numel() > 0,
         "an input [rows, width] and a weight [classes, width]");
  const at::ScalarType type = x.scalar_type();
  expect((type == at::kFloat || type == at::kDouble || type == at::kBFloat16) &&
             weight.scalar_type() == type,
         "an input and a weight of float32, float64 or bfloat16");
  expect(!call.bias.defined() ||
             (call.bias.scalar_type() == type && call.bias.dim() == 1 &&
              call.bias.size(0) == weight.size(0)),
         "a bias for each class");
  expect(call.labels.scalar_type() == at::kLong && call.labels.dim() == 1 &&
             call.labels.size(0) == x.size(0),
         "an int64 label for each row");
}

/// The computation, for some rows at a time. All blocks use the same memory.
///
/// The logits of a block are [classes, rows], so that the products read the
/// weight as it lies in memory. With MKL, a product that makes [rows, classes]
/// is slower.
class InBlocks {
public:
  explicit InBlocks(const LinearCrossEntropyCall &call)
      : call(call), rows(call.input.size(0)), classes(call.weight.size(0)),
        type(call.input.scalar_type() == at::kBFloat16
                 ? at::kFloat
                 : call.input.scalar_type()) {
    check(call);
    counts = call.labels.ne(call.ignored).to(type);
    // The label of a row that does not count is replaced by a class.
    targets =
        call.labels.masked_fill(call.labels.eq(call.ignored), 0).unsqueeze(0);
    divisor = call.isMean ? counts.sum() : at::ones({}, counts.options());
    most = mostRows();
    logits = at::empty({classes, most}, call.input.options());
    shares = type == call.input.scalar_type()
                 ? logits
                 : at::empty({classes, most}, counts.options());
  }

  Tensor forward() const {
    Tensor sum = at::zeros({}, counts.options());
    forBlocks([&](const Block &block) { addLoss(sum, block); });
    return sum.div_(divisor);
  }

  void backward(const Tensor &gradient,
                LinearCrossEntropyResults &results) const {
    const Tensor &x = call.input, &weight = call.weight;
    // The gradient of each row's loss. It is 0 for rows that do not count, also
    // if none counts and the mean is no number.
    const Tensor ofRows =
        gradient.to(type).div(divisor).expand({rows}).masked_fill(counts.eq(0),
                                                                  0);
    GradientSum ofWeight{{}, false}, ofBias{{}, false};
    GradientSum *weightSum = results.weightSum;
    // Several blocks are not added in bfloat16, one after another.
    const bool isRounded =
        weightSum && most < rows && weightSum->gradient.scalar_type() != type;
    if (isRounded || (!weightSum && results.wantsWeight)) {
      ofWeight.gradient = at::empty_like(weight, weight.options().dtype(type));
      weightSum = &ofWeight;
    }
    if (results.wantsBias)
      ofBias.gradient = at::empty({classes}, counts.options());
    if (results.wantsInput)
      results.input = at::empty(x.sizes(), x.options());
    if (results.wantsLoss)
      results.loss = at::zeros({}, counts.options());
    forBlocks([&](Block &block) {
      if (results.wantsLoss)
        addLoss(results.loss, block);
      // The gradient of the logits: the probabilities, less 1 at the label.
      const Tensor each = block.of(ofRows).unsqueeze(0);
      block.shares.mul_(each / block.sums);
      block.shares.scatter_add_(0, block.targets, each.neg());
      if (!block.logits.is_same(block.shares))
        block.logits.copy_(block.shares);
      if (results.wantsInput) {
        Tensor input = block.of(results.input);
        productTo(input, block.logits.t(), weight);
      }
      if (weightSum)
        weightSum->addProduct(block.logits, block.of(x));
      if (results.wantsBias)
        ofBias.addRows(block.logits.t());
    });
    if (results.wantsLoss)
      results.loss.div_(divisor);
    if (isRounded)
      results.weightSum->add(ofWeight.gradient);
    else if (ofWeight.gradient.defined())
      results.weight = ofWeight.gradient.to(weight.scalar_type());
    if (results.wantsBias)
      results.bias = ofBias.gradient.to(x.scalar_type());
  }

private:
  /// Consecutive rows.
  struct Block {
    int64_t first, count;
    Tensor logits;   ///< memory of the type of the operands, [classes, count]
    Tensor shares;   ///< exp(logits - largest of the row); may be `logits`
    Tensor sums;     ///< sums of the shares, [1, count]
    Tensor targets;  ///< classes, [1, count]
    Tensor ofLabels; ///< logit of the label - largest of the row, [1, count]

    /// The rows of the block of a tensor [rows, ...].
    Tensor of(const Tensor &x) const { return x.narrow(0, first, count); }
  };

  /// The number of rows of a block. A block has at most kMost logits, unless a
  /// single row has more. Much smaller blocks would make the products slower,
  /// because each block adds to the whole gradient of the weight. A block also
  /// has not many more bytes than the weight, so it is below the limit on the
  /// size of tensors (StageLayers::run). With a multiple of kAlignment rows,
  /// products are faster.
  int64_t mostRows() const {
    constexpr int64_t kLeast = 1 << 20, kMost = 1 << 23, kAlignment = 16;
    int64_t fit = std::clamp(16 * call.weight.numel(), kLeast, kMost) / classes;
    if (fit > kAlignment)
      fit -= fit % kAlignment;
    return std::clamp<int64_t>(fit, 1, rows);
  }

  /// Computes the logits of each block and their exponentials, and calls `work`
  /// with the block.
  template <typename Work> void forBlocks(const Work &work) const {
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      Block block{first, count, logits.narrow(1, 0, count), {}, {}, {}, {}};
      block.shares =
          shares.is_same(logits) ? block.logits : shares.narrow(1, 0, count);
      block.targets = targets.narrow(1, first, count);
      productTo(block.logits, call.weight, block.of(call.input).t());
      if (call.bias.defined())
        block.logits.add_(call.bias.unsqueeze(1));
      if (!block.logits.is_same(block.shares))
        block.shares.copy_(block.logits);
      block.shares.sub_(block.shares.amax(0, /*keepdim=*/true));
      block.ofLabels = block.shares.gather(0, block.targets);
      block.shares.exp_();
      block.sums = block.shares.sum(0, /*keepdim=*/true);
      work(block);
    }
  }

  /// Adds the losses of the rows of a block.
  void addLoss(Tensor &sum, const Block &block) const {
    const Tensor losses = block.sums.log().sub_(block.ofLabels).squeeze(0);
    // A product with 0 would be NaN for a row that does not count and has an
    // infinite loss.
    sum.add_(losses.masked_fill(block.of(counts).eq(0), 0).sum());
  }

  const LinearCrossEntropyCall &call;
  int64_t rows, classes;
  at::ScalarType type;   ///< of softmax, loss and sums
  Tensor counts;         ///< 1 or 0 for each row: whether it counts
  Tensor targets;        ///< classes, [1, rows]
  Tensor divisor;        ///< one number
  int64_t most;          ///< rows of a block
  Tensor logits, shares; ///< memory of a block
};

} // namespace

Tensor
chimera::runtime::linearCrossEntropy(const LinearCrossEntropyCall &call) {
  return InBlocks(call).forward();
}

void chimera::runtime::linearCrossEntropyBackward(
    const Tensor &gradient, const LinearCrossEntropyCall &call,
    LinearCrossEntropyResults &results) {
  expect(gradient.numel() == 1 && gradient.is_floating_point(),
         "one number as the gradient of the loss");
  InBlocks(call).backward(gradient, results);
}
