//===- Gpt2Kinds.cpp - The layers of GPT-2 as graphs ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Gpt2Kinds.h"

#include "runtime/program/GraphMaker.h"
#include "runtime/program/Saturated.h"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace chimera::program {
namespace {

using Value = GraphMaker::Value;
using Operand = GraphMaker::Operand;

constexpr double kNormEpsilon = 1e-5;

/// Labels with this number do not count, as in PyTorch.
constexpr int64_t kIgnored = -100;

/// With at least as many classes, the head and the loss are one call
/// (runtime/model/graph/LinearCrossEntropy.h), as in tools/export.
constexpr uint32_t kManyClasses = 4096;

// GPT-2's initialisation is N(0, 0.02²). The model has L blocks, and so 2L
// projections whose results are added to the residual stream. Their deviation
// is divided by sqrt(2L), so that the variance of the stream does not grow with
// the number of blocks.
constexpr double kDeviation = 0.02;

std::unique_ptr<LayerParameterT> parameter(std::string name,
                                           std::vector<int64_t> shape,
                                           Initialization start,
                                           double deviation = 0) {
  auto made = std::make_unique<LayerParameterT>();
  made->name = std::move(name);
  made->shape = std::move(shape);
  made->start = start;
  made->deviation = deviation;
  return made;
}

/// Makes one kind of layer: its parameters, its forward and its backward. The
/// backward reads tensors of the forward that were saved.
class KindBuilder {
public:
  KindBuilder(const Gpt2Sizes &sizes, DataType type)
      : type(type == DataType::Float64    ? TensorType::Float64
             : type == DataType::BFloat16 ? TensorType::BFloat16
                                          : TensorType::Float32),
        dropout(sizes.dropout), heads(sizes.heads), width(sizes.width),
        context(sizes.context),
        vocabulary(sizes.vocabulary), rows{{0, context}}, stream{{0, 1},
                                                                 {context},
                                                                 {width}} {
    kind->graphs = std::make_unique<LayerGraphsT>();
  }

  std::unique_ptr<LayerKindT> embedding() {
    weight("token_embedding", {vocabulary, width});
    weight("position_embedding", {context, width});
    boundaries(TensorType::Int64, {{0, 1}, {context}}, type, stream);

    Value x = forward.call("aten::embedding",
                           {forward.input(Role::Parameter, 0),
                            forward.input(Role::Input, 0), -1, false, false});
    x = forward.call("aten::add.Tensor",
                     {x, forward.input(Role::Parameter, 1), 1});
    forward.output(Role::Output, 0, drop(x, 0));

    const Value tokens = backward.input(Role::Input, 0);
    const Value gradient = dropBackward(outputGradient(), 0);
    gradientOf(0, backward.call("aten::embedding_dense_backward",
                                {gradient, tokens, vocabulary, -1, false}));
    gradientOf(1, sum(gradient));
    keep(tokens, TensorType::Int64, {{0, 1}, {context}});
    keep(gradient, type, stream);
    const int64_t additions = saturatedProduct({context, width});
    return finish(additions, additions, additions);
  }

  std::unique_ptr<LayerKindT> block(uint32_t blocks) {
    const double residual = kDeviation / std::sqrt(2.0 * blocks);
    norm("norm1");
    linear("attention", 3 * width, width, kDeviation);
    linear("attention_projection", width, width, residual);
    norm("norm2");
    linear("mlp", 4 * width, width, kDeviation);
    linear("mlp_projection", width, 4 * width, residual);
    boundaries(type, stream, type, stream);
    const Extents heads4d{{0, 1}, {context}, {heads}, {width / heads}};
    const Extents rowsOf3 = matrix(3 * width), rowsOf4 = matrix(4 * width);
    enum : uint32_t { kNorm1 = 0, kAttention = 2, kProjection = 4 };
    enum : uint32_t { kNorm2 = 6, kMlp = 8, kMlpProjection = 10 };
    // The sites of dropout.
    constexpr int64_t kInAttention = 0, kAfterAttention = 1, kAfterMlp = 2;

    // Attention.
    const Value x = forward.input(Role::Input, 0);
    const Normed normed1 = normalize(forward, x, kNorm1);
    const Value projected =
        apply(kAttention, view(forward, normed1.result, matrix(width)));
    const std::array<Value, 3> qkv = queriesKeysValues(forward, projected);
    const auto [mixed, logSumExp] = forward.calls<2>(
        "chimera::attention", {qkv[0], qkv[1], qkv[2], std::nullopt, dropout,
                               true, scale(), kInAttention});
    const Value ofHeads = forward.call("aten::transpose.int", {mixed, 1, 2});
    const Value attended = drop(
        view(forward, apply(kProjection, view(forward, ofHeads, matrix(width))),
             stream),
        kAfterAttention);
    const Value y = forward.call("aten::add.Tensor", {x, attended, 1});
    // MLP.
    const Normed normed2 = normalize(forward, y, kNorm2);
    const Value hidden =
        apply(kMlp, view(forward, normed2.result, matrix(width)));
    const Value active = forward.call("aten::gelu", {hidden, "tanh"});
    const Value made =
        drop(view(forward, apply(kMlpProjection, active), stream), kAfterMlp);
    forward.output(Role::Output, 0,
                   forward.call("aten::add.Tensor", {y, made, 1}));

    const Value ofOutput = outputGradient();
    const Value ofMade =
        view(backward, dropBackward(ofOutput, kAfterMlp), matrix(width));
    const Value activeAgain = saved(active, type, rowsOf4);
    keep(activeAgain, type, rowsOf4);
    const Value ofActive = applyBackward(kMlpProjection, ofMade, activeAgain);
    const Value ofHidden =
        backward.call("aten::gelu_backward",
                      {ofActive, saved(hidden, type, rowsOf4), "tanh"});
    keep(ofMade, type, matrix(width));
    keep(ofHidden, type, rowsOf4);
    Value ofY = throughNormAndLinear(kNorm2, kMlp, ofHidden,
                                     saved(y, type, stream), normed2);
    ofY = backward.call("aten::add.Tensor", {ofOutput, ofY, 1});

    const Value ofAttended =
        view(backward, dropBackward(ofY, kAfterAttention), matrix(width));
    const Value mixedAgain =
        saved(mixed, type, {{0, 1}, {heads}, {context}, {width / heads}});
    const Value ofHeadsAgain =
        view(backward, backward.call("aten::transpose.int", {mixedAgain, 1, 2}),
             matrix(width));
    keep(ofHeadsAgain, type, matrix(width));
    keep(ofAttended, type, matrix(width));
    const Value ofMixed = backward.call(
        "aten::transpose.int",
        {view(backward, applyBackward(kProjection, ofAttended, ofHeadsAgain),
              heads4d),
         1, 2});
    const std::array<Value, 3> again =
        queriesKeysValues(backward, saved(projected, type, rowsOf3));
    const std::array<Value, 3> ofParts = backward.calls<3>(
        "chimera::attention_backward",
        {ofMixed, again[0], again[1], again[2], std::nullopt, mixedAgain,
         saved(logSumExp, wide(), {{0, 1}, {heads}, {context}}), dropout, true,
         scale(), kInAttention});
    std::vector<Value> parts;
    for (Value part : ofParts)
      parts.push_back(view(backward,
                           backward.call("aten::transpose.int", {part, 1, 2}),
                           matrix(width)));
    const Value ofProjected =
        backward.call("aten::cat", {Operand::values(parts), 1});
    keep(ofProjected, type, rowsOf3);
    const Value ofX =
        throughNormAndLinear(kNorm1, kAttention, ofProjected,
                             backward.input(Role::Input, 0), normed1);
    backward.output(Role::InputGradient, 0,
                    backward.call("aten::add.Tensor", {ofY, ofX, 1}));

    // C is the width and T the context. For each token, queries, keys, values
    // and the projection have 4C² multiply-adds, and the MLP has 8C². The
    // scores have TC, and the weighted sum of values has TC. The full matrix of
    // scores is counted, although attention is causal. The backward has two
    // products for each product of the forward. The products of the
    // attention are all in the input gradient.
    const int64_t linear = saturatedProduct({24, context, width, width});
    const int64_t attention = saturatedProduct({4, context, context, width});
    return finish(saturatedSum({linear, attention}),
                  saturatedSum({linear, attention, attention}), linear);
  }

  std::unique_ptr<LayerKindT> head() {
    norm("norm");
    weight("head.weight", {vocabulary, width});
    boundaries(type, stream, wide(), {});
    graphs().labels.push_back(
        makeTensorShape(TensorType::Int64, {{0, 1}, {context}}));
    addLogits();

    const Normed normed = normalize(forward, forward.input(Role::Input, 0), 0);
    const Value rowsOfNorm = view(forward, normed.result, matrix(width));
    const Value labels = view(forward, forward.input(Role::Label, 0), rows);
    const Value again = view(backward, backward.input(Role::Label, 0), rows);
    const Value normedAgain =
        view(backward, saved(normed.result, type, stream), matrix(width));
    const Value gradient = outputGradient();
    keep(normedAgain, type, matrix(width));
    Value ofNormed{}, ofWeight{};
    const int64_t product = saturatedProduct({2, context, width, vocabulary});
    const bool areMany = vocabulary >= kManyClasses;
    if (areMany) {
      forward.output(
          Role::Output, 0,
          forward.call("chimera::linear_cross_entropy",
                       {rowsOfNorm, forward.input(Role::Parameter, 2),
                        std::nullopt, labels, kIgnored, true}));
      const auto made = backward.calls<4>(
          "chimera::linear_cross_entropy_backward",
          {gradient, normedAgain, backward.input(Role::Parameter, 2),
           std::nullopt, again, kIgnored, true});
      ofNormed = made[0];
      ofWeight = made[1];
      backward.output(Role::Output, 0, made[3]);
      keep(gradient, wide(), {});
      keep(again, TensorType::Int64, rows);
    } else {
      const Value logits = logitsOf(forward, rowsOfNorm);
      const Value logarithms =
          forward.call("aten::_log_softmax", {logits, 1, false});
      const auto [loss, count] =
          forward.calls<2>("aten::nll_loss_forward",
                           {logarithms, labels, std::nullopt, 1, kIgnored});
      forward.output(Role::Output, 0, loss);
      const Value logarithmsAgain =
          saved(logarithms, wide(), matrix(vocabulary));
      const Value ofLogarithms =
          backward.call("aten::nll_loss_backward",
                        {gradient, logarithmsAgain, again, std::nullopt, 1,
                         kIgnored, saved(count, wide(), {})});
      const Value ofWide =
          backward.call("aten::_log_softmax_backward_data",
                        {ofLogarithms, logarithmsAgain, 1, wide()});
      const Value ofLogits =
          type == wide() ? ofWide : converted(backward, ofWide, type);
      keep(ofLogits, type, matrix(vocabulary));
      ofNormed = backward.call("aten::mm",
                               {ofLogits, backward.input(Role::Parameter, 2)});
      ofWeight = backward.call(
          "aten::mm", {backward.call("aten::t", {ofLogits}), normedAgain});
    }
    gradientOf(2, ofWeight);
    backward.output(
        Role::InputGradient, 0,
        throughNorm(0, ofNormed, backward.input(Role::Input, 0), normed));
    // If the head and the loss are one call, a forward of training computes no
    // logits, and the input gradient computes them too.
    return areMany ? finish(saturatedProduct({context, width}),
                            saturatedSum({product, product}), product)
                   : finish(product, product, product);
  }

private:
  LayerGraphsT &graphs() { return *kind->graphs; }

  /// The type of statistics and of the loss, which have at least 4 bytes.
  TensorType wide() const {
    return type == TensorType::BFloat16 ? TensorType::Float32 : type;
  }
  /// The factor of attention scores.
  double scale() const {
    return 1 / std::sqrt(static_cast<double>(width / heads));
  }
  /// The extents of a matrix with one row for each token.
  Extents matrix(int64_t columns) const { return {rows[0], {columns}}; }

  void weight(const std::string &name, std::vector<int64_t> shape,
              double deviation = kDeviation) {
    kind->parameters.push_back(
        parameter(name, std::move(shape), Initialization::Normal, deviation));
  }
  void norm(const std::string &name) {
    kind->parameters.push_back(
        parameter(name + ".weight", {width}, Initialization::Ones));
    kind->parameters.push_back(
        parameter(name + ".bias", {width}, Initialization::Zeros));
  }
  void linear(const std::string &name, int64_t outputs, int64_t inputs,
              double deviation) {
    weight(name + ".weight", {outputs, inputs}, deviation);
    kind->parameters.push_back(
        parameter(name + ".bias", {outputs}, Initialization::Zeros));
  }
  void boundaries(TensorType before, const Extents &input, TensorType after,
                  const Extents &output) {
    graphs().inputs.push_back(makeTensorShape(before, input));
    // Tokens have no gradient. Activations have the layers' type.
    graphs().differentiable = {before == type};
    graphs().outputs.push_back(makeTensorShape(after, output));
  }

  static Value view(GraphMaker &graph, Value x, const Extents &extents) {
    return graph.call("aten::view", {x, extents});
  }

  Value converted(GraphMaker &graph, Value x, TensorType to) const {
    return graph.call("aten::_to_copy", {x, to, std::nullopt, std::nullopt,
                                         std::nullopt, false, std::nullopt});
  }
  /// A parameter of a norm. The host's kernels compute the statistics of
  /// bfloat16 in float32 only if the parameters are float32.
  Value normParameter(GraphMaker &graph, uint32_t index) const {
    const Value own = graph.input(Role::Parameter, index);
    return type == TensorType::BFloat16 ? converted(graph, own, wide()) : own;
  }

  struct Normed {
    Value result, mean, deviation;
  };
  /// The norm with parameters `first` (weight) and `first + 1` (bias).
  Normed normalize(GraphMaker &graph, Value x, uint32_t first) const {
    const auto made =
        graph.calls<3>("aten::native_layer_norm",
                       {x, Extents{{width}}, normParameter(graph, first),
                        normParameter(graph, first + 1), kNormEpsilon});
    return {made[0], made[1], made[2]};
  }

  /// The gradient of the input `x` of a norm. `ofResult` has a row for each
  /// token.
  Value throughNorm(uint32_t first, Value ofResult, Value x,
                    const Normed &normed) {
    const Extents statistics{{0, 1}, {context}, {1}};
    const auto made = backward.calls<3>(
        "aten::native_layer_norm_backward",
        {view(backward, ofResult, stream), x, Extents{{width}},
         saved(normed.mean, wide(), statistics),
         saved(normed.deviation, wide(), statistics),
         normParameter(backward, first), normParameter(backward, first + 1),
         Operand::booleans({true, true, true})});
    // The kernel computes all three gradients together. So the input gradient
    // computes the gradients of weight and bias too, and keeps them.
    for (uint32_t k : {0, 1}) {
      gradientOf(first + k, made[1 + k]);
      keep(made[1 + k], wide(), {{width}});
    }
    return made[0];
  }

  /// A linear layer of a matrix, with parameters `first` (weight) and
  /// `first + 1` (bias).
  Value apply(uint32_t first, Value x) {
    return forward.call(
        "aten::addmm",
        {forward.input(Role::Parameter, first + 1), x,
         forward.call("aten::t", {forward.input(Role::Parameter, first)}), 1,
         1});
  }
  /// The gradient of the input of a linear layer. `x` is its input again.
  Value applyBackward(uint32_t first, Value ofResult, Value x) {
    gradientOf(first, backward.call("aten::mm",
                                    {backward.call("aten::t", {ofResult}), x}));
    gradientOf(first + 1, sum(ofResult));
    return backward.call("aten::mm",
                         {ofResult, backward.input(Role::Parameter, first)});
  }
  /// The gradient of the input `x` of a norm whose result goes into a linear
  /// layer.
  Value throughNormAndLinear(uint32_t ofNorm, uint32_t ofLinear, Value ofResult,
                             Value x, const Normed &normed) {
    const Value normedAgain =
        view(backward, saved(normed.result, type, stream), matrix(width));
    keep(normedAgain, type, matrix(width));
    return throughNorm(ofNorm, applyBackward(ofLinear, ofResult, normedAgain),
                       x, normed);
  }

  /// The sum over the first dimension.
  Value sum(Value x) {
    return backward.call("aten::sum.dim_IntList",
                         {x, Extents{{0}}, false,
                          type == TensorType::BFloat16
                              ? Operand(wide())
                              : Operand(std::nullopt)});
  }

  /// Queries, keys and values [samples, heads, context, width / heads].
  std::array<Value, 3> queriesKeysValues(GraphMaker &graph,
                                         Value projected) const {
    const Value parts = view(
        graph, projected, {{0, 1}, {context}, {3}, {heads}, {width / heads}});
    const Value turned =
        graph.call("aten::permute", {parts, Extents{{2}, {0}, {3}, {1}, {4}}});
    return graph.calls<3>("aten::unbind.int", {turned, 0});
  }

  /// Dropout of a tensor of the residual stream. `site` is the number of
  /// earlier calls with dropout in the layer.
  Value drop(Value x, int64_t site) {
    return dropout == 0 ? x
                        : forward.call("chimera::dropout", {x, dropout, site});
  }
  Value dropBackward(Value gradient, int64_t site) {
    return dropout == 0 ? gradient
                        : backward.call("chimera::dropout_backward",
                                        {gradient, dropout, site});
  }

  /// Logits in the type of the loss.
  Value logitsOf(GraphMaker &graph, Value rowsOfNorm) const {
    const Value logits = graph.call(
        "aten::mm",
        {rowsOfNorm, graph.call("aten::t", {graph.input(Role::Parameter, 2)})});
    return type == wide() ? logits : converted(graph, logits, wide());
  }
  void addLogits() {
    GraphMaker alone;
    const Value rowsOfNorm =
        view(alone, normalize(alone, alone.input(Role::Input, 0), 0).result,
             matrix(width));
    alone.output(Role::Output, 0,
                 view(alone, logitsOf(alone, rowsOfNorm),
                      {{0, 1}, {context}, {vocabulary}}));
    graphs().logits = alone.finish();
    graphs().vocabulary = static_cast<uint32_t>(vocabulary);
  }

  /// Saves a value of the forward for the backward. Returns it there.
  Value saved(Value ofForward, TensorType elements, const Extents &extents) {
    const auto index = static_cast<uint32_t>(graphs().saved.size());
    graphs().saved.push_back(makeTensorShape(elements, extents));
    forward.output(Role::Saved, index, ofForward);
    return backward.input(Role::Saved, index);
  }
  Value outputGradient() { return backward.input(Role::OutputGradient, 0); }
  void gradientOf(uint32_t index, Value gradient) {
    backward.output(Role::WeightGradient, index, gradient);
  }
  /// Keeps a value of the input gradient for the weight gradient.
  void keep(Value ofBackward, TensorType elements, const Extents &extents) {
    graphs().kept.push_back(ofBackward.number);
    graphs().kept_shapes.push_back(makeTensorShape(elements, extents));
  }

  std::unique_ptr<LayerKindT> finish(int64_t forwards, int64_t inputGradients,
                                     int64_t weightGradients) {
    graphs().forward = forward.finish();
    graphs().backward = backward.finish();
    auto perSample = [](int64_t operations) {
      return Operations(0, static_cast<uint64_t>(operations), 0);
    };
    graphs().forward_flops = perSample(forwards);
    graphs().input_gradient_flops = perSample(inputGradients);
    graphs().weight_gradient_flops = perSample(weightGradients);
    return std::move(kind);
  }

  TensorType type;
  double dropout;
  int64_t heads, width, context, vocabulary;
  Extents rows;   ///< a number for each token
  Extents stream; ///< the residual stream [samples, context, width]
  std::unique_ptr<LayerKindT> kind = std::make_unique<LayerKindT>();
  GraphMaker forward, backward;
};

} // namespace

std::unique_ptr<LayerKindT> gpt2Embedding(const Gpt2Sizes &sizes,
                                          DataType type) {
  return KindBuilder(sizes, type).embedding();
}

std::unique_ptr<LayerKindT> gpt2Block(const Gpt2Sizes &sizes, DataType type) {
  return KindBuilder(sizes, type).block(sizes.layers);
}

std::unique_ptr<LayerKindT> gpt2Head(const Gpt2Sizes &sizes, DataType type) {
  return KindBuilder(sizes, type).head();
}

} // namespace chimera::program
