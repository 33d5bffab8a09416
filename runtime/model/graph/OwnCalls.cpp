//===- OwnCalls.cpp - Calls that the runtime computes itself --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/OwnCalls.h"

#include "runtime/model/graph/Attention.h"
#include "runtime/model/graph/LinearCrossEntropy.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using c10::IValue;

// LibTorch's dispatcher knows the schemas of these calls, but has no
// implementation of them.
TORCH_LIBRARY(chimera, library) {
  library.def("dropout(Tensor input, float dropout, int site) -> Tensor");
  library.def(
      "dropout_backward(Tensor gradient, float dropout, int site) -> Tensor");
  library.def("attention(Tensor query, Tensor key, Tensor value, Tensor? mask, "
              "float dropout, bool causal, float scale, int site) -> (Tensor "
              "output, Tensor log_sum_exp)");
  library.def("attention_backward(Tensor gradient, Tensor query, Tensor key, "
              "Tensor value, Tensor? mask, Tensor output, Tensor log_sum_exp, "
              "float dropout, bool causal, float scale, int site) -> (Tensor, "
              "Tensor, Tensor)");
  library.def("linear_cross_entropy(Tensor input, Tensor weight, Tensor? bias, "
              "Tensor labels, int ignored, bool mean) -> Tensor");
  library.def("linear_cross_entropy_backward(Tensor gradient, Tensor input, "
              "Tensor weight, Tensor? bias, Tensor labels, int ignored, bool "
              "mean) -> (Tensor, Tensor, Tensor, Tensor)");
}

namespace {

bool isConstant(const OperatorArgument &argument) {
  return argument.kind == OperatorArgument::Kind::Constant;
}

/// The number of a constant argument. NaN if it is not a number.
double numberOf(const OperatorArgument &argument) {
  return isConstant(argument) && argument.constant.isDouble()
             ? argument.constant.toDouble()
             : std::numeric_limits<double>::quiet_NaN();
}

Dropout dropoutOf(double probability, const CallContext &context) {
  return Dropout(probability, context.seed, context.layer, context.dropped,
                 context.kernels, context.step);
}

/// Counts a call that drops elements. The call states its site, because its
/// backward needs the site too. Throws std::invalid_argument if the site is not
/// `sites`.
void countSite(int64_t site, uint32_t &sites, const char *what) {
  if (site != sites++)
    throw std::invalid_argument(
        std::string("expected the number of earlier calls with dropout as the "
                    "site of ") +
        what);
}

/// Dropout of a tensor, or of the gradient of its result: both are the same
/// function.
class DropoutCall : public OwnCall {
public:
  explicit DropoutCall(const std::vector<OperatorArgument> &arguments)
      : probability(numberOf(arguments[1])) {
    // The comparison is false for NaN, so NaN is refused too.
    if (isConstant(arguments[0]) || !(probability > 0 && probability < 1) ||
        !arguments[2].constant.isInt())
      throw std::invalid_argument("expected a tensor, a probability in (0, 1) "
                                  "and a site for a dropout");
    site = arguments[2].constant.toInt();
  }

  int64_t statedSite() const { return site; }

  void run(std::vector<IValue> &stack, const CallContext &context,
           const WantedResults &) const override {
    const Dropout dropout = dropoutOf(probability, context);
    if (dropout.isActive())
      stack = {
          dropout.apply(static_cast<DropoutSite>(site), stack[0].toTensor())};
    else
      stack.resize(1);
  }

private:
  double probability;
  int64_t site;
};

/// Both attention calls. Their arguments end with dropout, causal, scale and
/// site.
class AttentionBase : public OwnCall {
protected:
  explicit AttentionBase(const std::vector<OperatorArgument> &arguments) {
    const OperatorArgument *own = &arguments[arguments.size() - 4];
    dropped = numberOf(own[0]);
    scale = numberOf(own[2]);
    // The comparison is false for NaN, so NaN is refused too.
    if (!(dropped >= 0 && dropped < 1) || !own[1].constant.isBool() ||
        !std::isfinite(scale) || !own[3].constant.isInt())
      throw std::invalid_argument("expected a probability in [0, 1), true or "
                                  "false, a scale and a site as the last "
                                  "arguments of an attention");
    isCausal = own[1].constant.toBool();
    site = own[3].constant.toInt();
  }

  /// The operands, which begin at `operands`.
  AttentionCall callOf(const IValue *operands) const {
    return {.query = operands[0].toTensor(),
            .key = operands[1].toTensor(),
            .value = operands[2].toTensor(),
            .mask = operands[3].isTensor() ? operands[3].toTensor() : Tensor(),
            .isCausal = isCausal,
            .scale = scale,
            .site = static_cast<DropoutSite>(site)};
  }

  double dropped, scale;
  bool isCausal;
  int64_t site;
};

class AttentionForward : public AttentionBase {
public:
  AttentionForward(const std::vector<OperatorArgument> &arguments,
                   uint32_t &sites)
      : AttentionBase(arguments) {
    if (dropped > 0)
      countSite(site, sites, "an attention");
  }

  void run(std::vector<IValue> &stack, const CallContext &context,
           const WantedResults &) const override {
    AttentionResult result =
        attention(callOf(stack.data()), dropoutOf(dropped, context));
    stack = {std::move(result.output), std::move(result.logSumExp)};
  }
};

class AttentionBackward : public AttentionBase {
public:
  explicit AttentionBackward(const std::vector<OperatorArgument> &arguments)
      : AttentionBase(arguments) {}

  void run(std::vector<IValue> &stack, const CallContext &context,
           const WantedResults &) const override {
    auto [query, key, value] =
        attentionBackward(stack[0].toTensor(), callOf(&stack[1]),
                          {stack[5].toTensor(), stack[6].toTensor()},
                          dropoutOf(dropped, context));
    stack = {std::move(query), std::move(key), std::move(value)};
  }
};

/// Both calls of a linear cross-entropy. Their arguments end with ignored and
/// mean.
class LinearCrossEntropyBase : public OwnCall {
protected:
  explicit LinearCrossEntropyBase(
      const std::vector<OperatorArgument> &arguments) {
    const OperatorArgument *own = &arguments[arguments.size() - 2];
    if (!own[0].constant.isInt() || !own[1].constant.isBool())
      throw std::invalid_argument("expected an ignored label, and true or "
                                  "false, as the last arguments of a linear "
                                  "cross-entropy");
    ignored = own[0].constant.toInt();
    isMean = own[1].constant.toBool();
  }

  /// The operands, which begin at `operands`.
  LinearCrossEntropyCall callOf(const IValue *operands,
                                const CallContext &context) const {
    const Tensor weight = operands[1].toTensor();
    return {.input = operands[0].toTensor(),
            .weight = weight,
            .bias = operands[2].isTensor() ? operands[2].toTensor() : Tensor(),
            .labels = weight.dim() == 2
                          ? checkedIndices(operands[3].toTensor(),
                                           weight.size(0), context, ignored)
                          : operands[3].toTensor(),
            .ignored = ignored,
            .isMean = isMean};
  }

private:
  int64_t ignored;
  bool isMean;
};

class LinearCrossEntropyForward : public LinearCrossEntropyBase {
public:
  explicit LinearCrossEntropyForward(
      const std::vector<OperatorArgument> &arguments)
      : LinearCrossEntropyBase(arguments) {}

  void run(std::vector<IValue> &stack, const CallContext &context,
           const WantedResults &) const override {
    stack = {linearCrossEntropy(callOf(stack.data(), context))};
  }
};

class LinearCrossEntropyBackward : public LinearCrossEntropyBase {
public:
  explicit LinearCrossEntropyBackward(
      const std::vector<OperatorArgument> &arguments)
      : LinearCrossEntropyBase(arguments) {}

  std::optional<size_t> summedResult() const override { return 1; }

  void run(std::vector<IValue> &stack, const CallContext &context,
           const WantedResults &wanted) const override {
    LinearCrossEntropyResults made{.wantsInput = wanted.has(0),
                                   .wantsWeight = wanted.has(1),
                                   .wantsBias = wanted.has(2),
                                   .wantsLoss = wanted.has(3),
                                   .weightSum = wanted.sum};
    linearCrossEntropyBackward(stack[0].toTensor(), callOf(&stack[1], context),
                               made);
    stack = {std::move(made.input), std::move(made.weight),
             std::move(made.bias), std::move(made.loss)};
  }
};

} // namespace

std::unique_ptr<OwnCall>
chimera::runtime::makeOwnCall(const program::CallT &call,
                              const std::vector<OperatorArgument> &arguments,
                              uint32_t &sites) {
  if (call.operator_ == "chimera::dropout") {
    auto made = std::make_unique<DropoutCall>(arguments);
    countSite(made->statedSite(), sites, "a dropout");
    return made;
  }
  if (call.operator_ == "chimera::dropout_backward")
    return std::make_unique<DropoutCall>(arguments);
  if (call.operator_ == "chimera::attention")
    return std::make_unique<AttentionForward>(arguments, sites);
  if (call.operator_ == "chimera::attention_backward")
    return std::make_unique<AttentionBackward>(arguments);
  if (call.operator_ == "chimera::linear_cross_entropy")
    return std::make_unique<LinearCrossEntropyForward>(arguments);
  if (call.operator_ == "chimera::linear_cross_entropy_backward")
    return std::make_unique<LinearCrossEntropyBackward>(arguments);
  return nullptr;
}
