//===- Clauses.cpp - How descriptions are written -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Clause.h"

using namespace mlir;
using namespace chimera;

//===----------------------------------------------------------------------===//
// The clauses with a syntax of their own
//===----------------------------------------------------------------------===//

/// Reads {NAME = VALUE, …}. A value is an attribute, a whole number, or a
/// word with or without quotes.
static ParseResult parseScheduleOptions(OpAsmParser &parser,
                                        DictionaryAttr &options) {
  Builder &builder = parser.getBuilder();
  NamedAttrList list;
  auto parseOption = [&]() -> ParseResult {
    SMLoc at = parser.getCurrentLocation();
    std::string name, word;
    Attribute value;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual())
      return failure();
    char next = *parser.getCurrentLocation().getPointer();
    if (!bareWordAt(parser).empty()) {
      if (parseWord(parser, word))
        return failure();
      value = builder.getStringAttr(word);
    } else if (llvm::isDigit(next) || next == '-') {
      int64_t number = 0;
      Type type = builder.getI64Type();
      if (parseWholeNumber(parser, number) ||
          (succeeded(parser.parseOptionalColon()) && parser.parseType(type)))
        return failure();
      if (!type.isInteger(64))
        return parser.emitError(at, "expected ")
               << name << " of type i64, got " << type;
      value = builder.getI64IntegerAttr(number);
    } else if (parser.parseAttribute(value)) {
      return failure();
    }
    if (list.get(name))
      return parser.emitError(at, "expected ") << name << " once";
    list.set(name, value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOption))
    return failure();
  options = list.getDictionary(parser.getContext());
  return success();
}

static ParseResult parseSchedule(OpAsmParser &parser, StringRef,
                                 PipelineOp::Properties &properties) {
  return parseInParentheses(parser, [&]() -> ParseResult {
    std::string word;
    if (parseWord(parser, word,
                  namesFrom(parser, &DescriptionInterface::schedules)))
      return failure();
    properties.schedule = parser.getBuilder().getStringAttr(word);
    if (failed(parser.parseOptionalComma()))
      return success();
    return parseScheduleOptions(parser, properties.schedule_options);
  });
}

/// The name is printed in quotes, because MLIR's lexer does not read some
/// names, such as 1f1b, as one word.
static void printSchedule(OpAsmPrinter &printer, PipelineOp op) {
  printer << '(';
  printer.printAttributeWithoutType(op.getScheduleAttr());
  if (DictionaryAttr options = op.getScheduleOptionsAttr()) {
    printer << ", ";
    printer.printAttributeWithoutType(options);
  }
  printer << ')';
}

/// Reads (all), (LIST), (all fused) or (LIST fused). `all` becomes a list of
/// all stages.
static ParseResult parseRecompute(OpAsmParser &parser, StringRef,
                                  PipelineOp::Properties &properties) {
  return parseInParentheses(parser, [&]() -> ParseResult {
    Builder &builder = parser.getBuilder();
    StringRef word;
    OptionalParseResult all = parseOptionalWordOf(
        parser, "a list of stages such as [0, 2], or", {"all"}, word);
    if (all.has_value()) {
      if (failed(*all))
        return failure();
      // The number of stages is not verified yet. Limit it to the valid range,
      // so that the list cannot exhaust the memory.
      auto count = static_cast<int32_t>(
          std::clamp<int64_t>(properties.stages.getInt(), 0, UINT16_MAX));
      properties.recompute =
          builder.getDenseI32ArrayAttr(llvm::to_vector(llvm::seq(0, count)));
    } else if (SMLoc at = parser.getCurrentLocation();
               *at.getPointer() != '[') {
      return parser.emitError(
          at, "expected a list of stages such as [0, 2], or all");
    } else {
      properties.recompute = dyn_cast_or_null<DenseI32ArrayAttr>(
          DenseI32ArrayAttr::parse(parser, Type()));
      if (!properties.recompute)
        return failure();
    }
    OptionalParseResult fused =
        parseOptionalWordOf(parser, "nothing more, or", {"fused"}, word);
    if (fused.has_value() && failed(*fused))
      return failure();
    if (fused.has_value())
      properties.recompute_fused = builder.getUnitAttr();
    return success();
  });
}

static void printRecompute(OpAsmPrinter &printer, PipelineOp op) {
  printer << '(';
  DenseI32ArrayAttr stages = op.getRecomputeAttr();
  // The verifier has checked that the stages are distinct and in range, so a
  // list of this length has all of them.
  if (stages && stages.size() == static_cast<int64_t>(op.getStages()))
    printer << "all";
  else if (stages)
    stages.print(printer);
  printer << (op.getRecomputeFused() ? " fused)" : ")");
}

static bool needsRecompute(PipelineOp::Properties &properties,
                           PipelineOp::Properties &) {
  return properties.recompute || properties.recompute_fused;
}

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

/// The clauses in the order in which they are printed, required ones first.
static ArrayRef<Clause<PipelineOp>> clausesOf(PipelineOp) {
  using Op = PipelineOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      wholeNumberClause<Op, &P::stages>("stages", true),
      wholeNumberClause<Op, &P::micro_batches>("micro_batches", true),
      {"schedule", false, parseSchedule, printSchedule,
       differs<&P::schedule, P>},
      wholeNumberClause<Op, &P::workers>("workers"),
      enumClause<Op, UpdatesAttr, &P::updates, getMaxEnumValForUpdates>(
          "updates"),
      wholeNumberClause<Op, &P::micro_batch_size>("micro_batch_size"),
      wholeNumberClause<Op, &P::data_parallel>("data_parallel"),
      flagClause<Op, &P::split_backward>("split_backward"),
      {"recompute", false, parseRecompute, printRecompute, needsRecompute},
      wordClause<Op, &P::time_unit, &DescriptionInterface::timeUnits>(
          "time_unit"),
      attributeClause<Op, LinkAttr, &P::link>("link"),
      quantityClause<Op, &P::memory_cap>("memory_cap"),
      enumClause<Op, AllReducePolicyAttr, &P::all_reduce,
                 getMaxEnumValForAllReducePolicy>("all_reduce"),
      wholeNumberClause<Op, &P::receive_window>("receive_window"),
      quantityClause<Op, &P::bucket_bytes>("bucket_bytes"),
      enumClause<Op, DataTypeAttr, &P::weight_type, getMaxEnumValForDataType>(
          "weight_type"),
      enumClause<Op, DataTypeAttr, &P::activation_type,
                 getMaxEnumValForDataType>("activation_type")};
  return all;
}

static ArrayRef<Clause<TrainingOp>> clausesOf(TrainingOp) {
  using Op = TrainingOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      enumClause<Op, OptimizerAttr, &P::optimizer, getMaxEnumValForOptimizer>(
          "optimizer"),
      numberClause<Op, &P::learning_rate>("learning_rate"),
      enumClause<Op, RateScheduleAttr, &P::lr_schedule,
                 getMaxEnumValForRateSchedule>("lr_schedule"),
      wholeNumberClause<Op, &P::warmup>("warmup"),
      numberClause<Op, &P::min_lr>("min_lr"),
      wholeNumberClause<Op, &P::decay_steps>("decay_steps"),
      wholeNumberClause<Op, &P::lr_steps>("lr_steps"),
      numberClause<Op, &P::beta1>("beta1"),
      numberClause<Op, &P::beta2>("beta2"),
      numberClause<Op, &P::epsilon>("epsilon"),
      numberClause<Op, &P::momentum>("momentum"),
      flagClause<Op, &P::nesterov>("nesterov"),
      numberClause<Op, &P::clip_norm>("clip_norm"),
      numberClause<Op, &P::weight_decay>("weight_decay"),
      stringListClause<Op, &P::no_decay>("no_decay"),
      stringListClause<Op, &P::no_muon>("no_muon"),
      wholeNumberClause<Op, &P::seed>("seed")};
  return all;
}

static ArrayRef<Clause<MachineOp>> clausesOf(MachineOp) {
  using Op = MachineOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      wholeNumberClause<Op, &P::devices>("devices", true),
      quantityClause<Op, &P::memory>("memory", true),
      quantityClause<Op, &P::speed, Dimension::FlopPerSecond>("speed"),
      stringListClause<Op, &P::profile>("profile"),
      quantityClause<Op, &P::reserved>("reserved"),
      quantityClause<Op, &P::layer_overhead, Dimension::Time>("layer_overhead"),
      quantityClause<Op, &P::memory_bandwidth, Dimension::BytesPerSecond>(
          "memory_bandwidth"),
      attributeClause<Op, LinkAttr, &P::link>("link"),
      attributeClause<Op, LinkAttr, &P::all_reduce>("all_reduce"),
      wholeNumberClause<Op, &P::node_devices>("node_devices"),
      wholeNumberClause<Op, &P::node_cores>("node_cores"),
      attributeClause<Op, LinkAttr, &P::node_link>("node_link"),
      attributeClause<Op, LinkAttr, &P::node_all_reduce>("node_all_reduce"),
      enumClause<Op, AllReduceAlgorithmAttr, &P::all_reduce_algorithm,
                 getMaxEnumValForAllReduceAlgorithm>("all_reduce_algorithm"),
      flagClause<Op, &P::blocking_all_reduce>("blocking_all_reduce")};
  return all;
}

static ArrayRef<Clause<ModelOp>> clausesOf(ModelOp) {
  using Op = ModelOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      wholeNumberClause<Op, &P::layers>("layers", true),
      wholeNumberClause<Op, &P::heads>("heads", true),
      wholeNumberClause<Op, &P::width>("width", true),
      wholeNumberClause<Op, &P::context_length>("context", true),
      wholeNumberClause<Op, &P::vocabulary>("vocabulary", true),
      numberClause<Op, &P::dropout>("dropout"),
      flagClause<Op, &P::tied>("tied")};
  return all;
}

namespace {

/// A feature that a description cannot have. The error for a word that users
/// try for this feature names an alternative.
struct NotSupported {
  StringRef part; ///< a substring of the words that users try for it
  StringRef instead;
  bool hasOtherName = false; ///< whether it exists under another name, or as an
                             ///< option of a run
};

} // namespace

static constexpr NotSupported kNotSupported[] = {
    {"clip", "clip_norm(NUMBER) clips by the norm of all gradients", true},
    {"grad_norm", "clip_norm(NUMBER) clips by the norm of all gradients", true},
    {"resume", "chimera-run --resume FOLDER continues from a checkpoint", true},
    {"checkpoint",
     "chimera-run --checkpoint FOLDER writes checkpoints; activation "
     "checkpointing is the clause recompute",
     true},
    {"tensor_parallel", "a stage is on one worker"},
    {"sequence_parallel", "a stage is on one worker"},
    {"context_parallel", "a stage is on one worker"},
    {"zero", "every replica has all weights and the optimizer's state"},
    {"shard", "every replica has all weights and the optimizer's state"},
    {"offload", "values of a worker stay on its device"}};

/// An error message if `word` names an unsupported feature, else empty.
static std::string notSupported(StringRef word) {
  for (const NotSupported &one : kNotSupported)
    if (word.contains(one.part) && !word.contains('.'))
      return (word +
              (one.hasOtherName ? " is no clause: "
                                : " is not supported yet: ") +
              one.instead)
          .str();
  return {};
}

template <typename Op> static bool isClauseOf(StringRef word) {
  return llvm::any_of(clausesOf(Op()), [&](const Clause<Op> &clause) {
    return clause.name == word;
  });
}

/// An error message if `word` is a clause of chimera.training, belongs before
/// the clauses of a pipeline, or names an unsupported feature. Empty otherwise.
static std::string refusalInPipeline(StringRef word) {
  if (word == "of" || word == "with" || word == "on")
    return ("expected " + word + " before stages").str();
  if (isClauseOf<TrainingOp>(word))
    return (word + " is a clause of chimera.training, which a pipeline names "
                   "with `with @NAME`")
        .str();
  return notSupported(word);
}

/// An error message if `word` is a clause of chimera.pipeline or names an
/// unsupported feature. Empty otherwise.
static std::string refusalOutsidePipeline(StringRef word) {
  if (isClauseOf<PipelineOp>(word))
    return (word + " is a clause of chimera.pipeline").str();
  return notSupported(word);
}

/// Fails, with a diagnostic, if the attribute dictionary gives an attribute a
/// value that the op does not allow.
template <typename Op>
static ParseResult checkAttributes(OpAsmParser &parser, SMLoc at,
                                   OperationState &result) {
  return Op::verifyInherentAttrs(result.name, result.attributes, [&] {
    return parser.emitError(at) << "'" << result.name << "' op ";
  });
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

/// Reads ("FOLDER") after `exported`.
static ParseResult parsePackage(OpAsmParser &parser,
                                ModelOp::Properties &properties) {
  return parseInParentheses(parser, [&]() -> ParseResult {
    std::string folder;
    if (parser.parseString(&folder))
      return failure();
    properties.package = parser.getBuilder().getStringAttr(folder);
    return success();
  });
}

/// Reads [<FIELD = NUMBER, …>, …] after `bare`.
static ParseResult parseBareLayers(OpAsmParser &parser,
                                   ModelOp::Properties &properties) {
  SmallVector<Attribute> layers;
  auto parseLayer = [&]() -> ParseResult {
    layers.push_back(LayerAttr::parse(parser, Type()));
    return success(layers.back() != nullptr);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseLayer))
    return failure();
  properties.bare_layers = parser.getBuilder().getArrayAttr(layers);
  return success();
}

static void printBareLayers(OpAsmPrinter &printer, ArrayAttr layers) {
  printer << " [";
  llvm::interleave(
      layers.getAsRange<LayerAttr>(),
      [&](LayerAttr layer) {
        printer.printNewline();
        printer << "  ";
        layer.print(printer);
      },
      [&] { printer << ","; });
  printer << "]";
}

ParseResult ModelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<Properties>();
  std::string architecture;
  if (parser.parseSymbolName(properties.sym_name) ||
      parseWord(parser, architecture,
                namesFrom(parser, &DescriptionInterface::architectures)))
    return failure();
  properties.architecture = parser.getBuilder().getStringAttr(architecture);
  if (architecture == kExportedModel ? parsePackage(parser, properties)
      : architecture == kBareModel   ? parseBareLayers(parser, properties)
                                   : parseClauses(parser, clausesOf(ModelOp()),
                                                  properties, notSupported))
    return failure();
  SMLoc at = parser.getCurrentLocation();
  return failure(parser.parseOptionalAttrDict(result.attributes) ||
                 checkAttributes<ModelOp>(parser, at, result));
}

void ModelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << ' ';
  printer.printKeywordOrString(getArchitecture());
  if (StringAttr package = getPackageAttr())
    printer << '(' << package << ')';
  else if (ArrayAttr layers = getBareLayersAttr())
    printBareLayers(printer, layers);
  else
    printClauses(printer, clausesOf(*this), *this);
  printer.printOptionalAttrDict((*this)->getAttrs(), getAttributeNames());
}

/// Reads a symbol name, clauses and an attribute dictionary.
template <typename Op>
static ParseResult parseNamed(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<typename Op::Properties>();
  if (parser.parseSymbolName(properties.sym_name) ||
      parseClauses(parser, clausesOf(Op()), properties, refusalOutsidePipeline))
    return failure();
  SMLoc at = parser.getCurrentLocation();
  return failure(parser.parseOptionalAttrDict(result.attributes) ||
                 checkAttributes<Op>(parser, at, result));
}

template <typename Op> static void printNamed(OpAsmPrinter &printer, Op op) {
  printer << ' ';
  printer.printSymbolName(op.getSymName());
  printClauses(printer, clausesOf(op), op);
  printer.printOptionalAttrDict(op->getAttrs(), Op::getAttributeNames());
}

ParseResult TrainingOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseNamed<TrainingOp>(parser, result);
}

void TrainingOp::print(OpAsmPrinter &printer) { printNamed(printer, *this); }

ParseResult MachineOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseNamed<MachineOp>(parser, result);
}

void MachineOp::print(OpAsmPrinter &printer) { printNamed(printer, *this); }

/// Reads the names of the model after `of`, of the training after `with` and of
/// the machine after `on`. Each may be left out.
static ParseResult parseReferences(OpAsmParser &parser,
                                   PipelineOp::Properties &properties) {
  const std::pair<StringRef, FlatSymbolRefAttr *> references[] = {
      {"of", &properties.model},
      {"with", &properties.training},
      {"on", &properties.machine}};
  StringRef last;
  for (auto [word, name] : references) {
    if (failed(parser.parseOptionalKeyword(word)))
      continue;
    if (parser.parseAttribute(*name))
      return failure();
    last = word;
  }
  StringRef next = bareWordAt(parser);
  for (auto [word, name] : references) {
    if (next != word)
      continue;
    InFlightDiagnostic error = parser.emitError(parser.getCurrentLocation());
    // If `word` has not been read, a word that belongs after it has been read.
    if (*name)
      return error << "expected " << word << " once";
    return error << "expected 'stages', got \"" << word << "\": " << word
                 << " comes before " << last;
  }
  return success();
}

ParseResult PipelineOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<Properties>();
  if (parser.parseSymbolName(properties.sym_name))
    return failure();
  if (parseReferences(parser, properties) ||
      parseClauses(parser, clausesOf(PipelineOp()), properties,
                   refusalInPipeline))
    return failure();
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      checkAttributes<PipelineOp>(parser, at, result))
    return failure();
  OptionalParseResult body = parser.parseOptionalRegion(*result.addRegion());
  return failure(body.has_value() && failed(*body));
}

void PipelineOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  if (getModelAttr())
    printer << " of " << getModelAttr();
  if (getTrainingAttr())
    printer << " with " << getTrainingAttr();
  if (getMachineAttr())
    printer << " on " << getMachineAttr();
  printClauses(printer, clausesOf(*this), *this);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           getAttributeNames());
  if (getBody().empty())
    return;
  printer << ' ';
  printer.printRegion(getBody());
}
