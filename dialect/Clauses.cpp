//===- Clauses.cpp - How descriptions are written -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is described is a name, clauses that must be there and then others in
// any order. One table for each op says which there are; parser, printer,
// errors and completions walk it.
//
//===----------------------------------------------------------------------===//

#include "dialect/DescriptionInterface.h"
#include "dialect/Spelling.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace chimera;

/// A clause of an op.
template <typename Op> struct Clause {
  using Properties = typename Op::Properties;

  StringRef name;
  bool required;
  /// Reads what follows the name.
  ParseResult (*parse)(OpAsmParser &parser, StringRef name,
                       Properties &properties);
  /// Prints that.
  void (*print)(OpAsmPrinter &printer, Op op);
  /// True if the clause says something else than what holds without it.
  bool (*isNeeded)(Properties &properties, Properties &defaults);
};

template <auto Member, typename Properties>
static bool differs(Properties &properties, Properties &defaults) {
  return properties.*Member && properties.*Member != defaults.*Member;
}

/// NAME(VALUE), of which `parse` reads the value.
template <typename Parse>
static ParseResult parseInParentheses(OpAsmParser &parser, Parse parse) {
  return failure(parser.parseLParen() || parse() || parser.parseRParen());
}

template <auto Member, typename Op>
static void printInParentheses(OpAsmPrinter &printer, Op op) {
  printer << '(';
  printer.printAttributeWithoutType(op.getProperties().*Member);
  printer << ')';
}

/// Fails where the attribute `name` does not allow the value that was read
/// `at`.
template <typename Op>
static ParseResult checkInherent(OpAsmParser &parser, SMLoc at, StringRef name,
                                 IntegerAttr value) {
  NamedAttrList list;
  list.append(name, value);
  return Op::verifyInherentAttrs(
      OperationName(Op::getOperationName(), parser.getContext()), list,
      [&] { return parser.emitError(at, "got ") << value.getInt() << ": "; });
}

/// A whole number, which the attribute of the same name must allow.
template <typename Op, IntegerAttr Op::Properties::*Member>
static constexpr Clause<Op> whole(StringRef name, bool required = false) {
  auto parse = [](OpAsmParser &parser, StringRef name,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> ParseResult {
      SMLoc at = parser.getCurrentLocation();
      int64_t value = 0;
      if (parseWholeNumber(parser, value))
        return failure();
      properties.*Member = parser.getBuilder().getI64IntegerAttr(value);
      return checkInherent<Op>(parser, at, name, properties.*Member);
    });
  };
  return {name, required, parse, printInParentheses<Member, Op>,
          differs<Member, typename Op::Properties>};
}

/// A number with a unit, which the attribute of the same name must allow.
template <typename Op, IntegerAttr Op::Properties::*Member,
          Dimension Counted = Dimension::Bytes>
static constexpr Clause<Op> quantity(StringRef name, bool required = false) {
  auto parse = [](OpAsmParser &parser, StringRef name,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> ParseResult {
      SMLoc at = parser.getCurrentLocation();
      int64_t value = 0;
      if (parseQuantity(parser, Counted, value))
        return failure();
      properties.*Member = parser.getBuilder().getI64IntegerAttr(value);
      return checkInherent<Op>(parser, at, name, properties.*Member);
    });
  };
  auto print = [](OpAsmPrinter &printer, Op op) {
    printer << '('
            << quantityText(Counted, (op.getProperties().*Member).getInt())
            << ')';
  };
  return {name, required, parse, print,
          differs<Member, typename Op::Properties>};
}

template <typename Op, FloatAttr Op::Properties::*Member>
static constexpr Clause<Op> number(StringRef name) {
  auto parse = [](OpAsmParser &parser, StringRef,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> ParseResult {
      double value = 0;
      if (parseNumber(parser, value))
        return failure();
      properties.*Member = parser.getBuilder().getF64FloatAttr(value);
      return success();
    });
  };
  return {name, false, parse, printInParentheses<Member, Op>,
          differs<Member, typename Op::Properties>};
}

/// The names that the dialect does not know itself; none where nothing tells.
static ArrayRef<StringRef>
namesFrom(AsmParser &parser,
          ArrayRef<StringRef> (DescriptionInterface::*list)() const) {
  const DescriptionInterface *names =
      descriptionInterfaceOf(parser.getContext());
  return names ? (names->*list)() : ArrayRef<StringRef>();
}

/// A word, of which the interface's `List` are offered.
template <typename Op, StringAttr Op::Properties::*Member, auto List>
static constexpr Clause<Op> word(StringRef name) {
  auto parse = [](OpAsmParser &parser, StringRef,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> ParseResult {
      std::string text;
      if (parseWord(parser, text, namesFrom(parser, List)))
        return failure();
      properties.*Member = parser.getBuilder().getStringAttr(text);
      return success();
    });
  };
  auto print = [](OpAsmPrinter &printer, Op op) {
    printer << '(';
    printer.printKeywordOrString((op.getProperties().*Member).getValue());
    printer << ')';
  };
  return {name, false, parse, print, differs<Member, typename Op::Properties>};
}

template <typename Op, UnitAttr Op::Properties::*Member>
static constexpr Clause<Op> flag(StringRef name) {
  auto parse = [](OpAsmParser &parser, StringRef,
                  typename Op::Properties &properties) -> ParseResult {
    properties.*Member = parser.getBuilder().getUnitAttr();
    return success();
  };
  auto print = [](OpAsmPrinter &, Op) {};
  return {name, false, parse, print, differs<Member, typename Op::Properties>};
}

/// A word of an enumeration, whose values are 0 to `Last()`.
template <typename Op, typename Attr, Attr Op::Properties::*Member, auto Last>
static constexpr Clause<Op> choice(StringRef name) {
  using Properties = typename Op::Properties;
  auto parse = [](OpAsmParser &parser, StringRef name, Properties &properties) {
    return parseInParentheses(parser, [&]() -> ParseResult {
      using Value = decltype(Attr().getValue());
      SmallVector<StringRef> words;
      for (uint32_t value = 0; value <= Last(); ++value)
        words.push_back(stringifyEnum(static_cast<Value>(value)));
      std::string word;
      if (parseWordOf(parser, (name + " to be one of").str(), words, word))
        return failure();
      properties.*Member =
          Attr::get(parser.getContext(), *symbolizeEnum<Value>(word));
      return success();
    });
  };
  auto print = [](OpAsmPrinter &printer, Op op) {
    printer << '(' << stringifyEnum((op.getProperties().*Member).getValue())
            << ')';
  };
  return {name, false, parse, print, differs<Member, Properties>};
}

/// NAME("TEXT", …).
template <typename Op, ArrayAttr Op::Properties::*Member>
static constexpr Clause<Op> texts(StringRef name) {
  using Properties = typename Op::Properties;
  auto parse = [](OpAsmParser &parser, StringRef, Properties &properties) {
    SmallVector<Attribute> texts;
    auto parseText = [&]() -> ParseResult {
      std::string text;
      if (parser.parseString(&text))
        return failure();
      texts.push_back(parser.getBuilder().getStringAttr(text));
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseText))
      return ParseResult(failure());
    properties.*Member = parser.getBuilder().getArrayAttr(texts);
    return ParseResult(success());
  };
  auto print = [](OpAsmPrinter &printer, Op op) {
    printer << '(';
    llvm::interleaveComma(op.getProperties().*Member, printer);
    printer << ')';
  };
  return {name, false, parse, print, differs<Member, Properties>};
}

//===----------------------------------------------------------------------===//
// The clauses that are like no other
//===----------------------------------------------------------------------===//

/// {NAME = VALUE, …}, in which a word may be bare.
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

/// Quoted, since some names are no words to MLIR.
static void printSchedule(OpAsmPrinter &printer, PipelineOp op) {
  printer << '(';
  printer.printAttributeWithoutType(op.getScheduleAttr());
  if (DictionaryAttr options = op.getScheduleOptionsAttr()) {
    printer << ", ";
    printer.printAttributeWithoutType(options);
  }
  printer << ')';
}

/// `all`, which is kept as a list of all stages, or a list; then `fused` or
/// nothing.
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
      // The verifier refuses other numbers.
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
  // The verifier has seen to it that as many stages are all of them.
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

/// NAME <FIELD = NUMBER, …>.
template <typename Op, typename Attr, Attr Op::Properties::*Member>
static constexpr Clause<Op> fields(StringRef name) {
  using Properties = typename Op::Properties;
  auto parse = [](OpAsmParser &parser, StringRef, Properties &properties) {
    properties.*Member = dyn_cast_or_null<Attr>(Attr::parse(parser, Type()));
    return ParseResult(success(properties.*Member != nullptr));
  };
  auto print = [](OpAsmPrinter &printer, Op op) {
    printer << ' ';
    (op.getProperties().*Member).print(printer);
  };
  return {name, false, parse, print, differs<Member, Properties>};
}

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

/// In the order in which they are printed; those that must be there come first.
static ArrayRef<Clause<PipelineOp>> clausesOf(PipelineOp) {
  using Op = PipelineOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      whole<Op, &P::stages>("stages", true),
      whole<Op, &P::micro_batches>("micro_batches", true),
      {"schedule", false, parseSchedule, printSchedule,
       differs<&P::schedule, P>},
      whole<Op, &P::workers>("workers"),
      choice<Op, UpdatesAttr, &P::updates, getMaxEnumValForUpdates>("updates"),
      whole<Op, &P::micro_batch_size>("micro_batch_size"),
      whole<Op, &P::data_parallel>("data_parallel"),
      flag<Op, &P::split_backward>("split_backward"),
      {"recompute", false, parseRecompute, printRecompute, needsRecompute},
      word<Op, &P::time_unit, &DescriptionInterface::timeUnits>("time_unit"),
      fields<Op, LinkAttr, &P::link>("link"),
      quantity<Op, &P::memory_cap>("memory_cap"),
      choice<Op, AllReducePolicyAttr, &P::all_reduce,
             getMaxEnumValForAllReducePolicy>("all_reduce"),
      whole<Op, &P::receive_window>("receive_window"),
      quantity<Op, &P::bucket_bytes>("bucket_bytes"),
      choice<Op, DataTypeAttr, &P::weight_type, getMaxEnumValForDataType>(
          "weight_type"),
      choice<Op, DataTypeAttr, &P::activation_type, getMaxEnumValForDataType>(
          "activation_type")};
  return all;
}

static ArrayRef<Clause<TrainingOp>> clausesOf(TrainingOp) {
  using Op = TrainingOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      choice<Op, OptimizerAttr, &P::optimizer, getMaxEnumValForOptimizer>(
          "optimizer"),
      number<Op, &P::learning_rate>("learning_rate"),
      number<Op, &P::beta1>("beta1"),
      number<Op, &P::beta2>("beta2"),
      number<Op, &P::epsilon>("epsilon"),
      number<Op, &P::weight_decay>("weight_decay"),
      whole<Op, &P::seed>("seed")};
  return all;
}

static ArrayRef<Clause<MachineOp>> clausesOf(MachineOp) {
  using Op = MachineOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      whole<Op, &P::devices>("devices", true),
      quantity<Op, &P::memory>("memory", true),
      quantity<Op, &P::speed, Dimension::FlopPerSecond>("speed"),
      texts<Op, &P::profile>("profile"),
      quantity<Op, &P::reserved>("reserved"),
      quantity<Op, &P::layer_overhead, Dimension::Time>("layer_overhead"),
      quantity<Op, &P::memory_bandwidth, Dimension::BytesPerSecond>(
          "memory_bandwidth"),
      fields<Op, NetworkAttr, &P::link>("link"),
      fields<Op, NetworkAttr, &P::all_reduce>("all_reduce"),
      choice<Op, AllReduceAlgorithmAttr, &P::all_reduce_algorithm,
             getMaxEnumValForAllReduceAlgorithm>("all_reduce_algorithm")};
  return all;
}

static ArrayRef<Clause<ModelOp>> clausesOf(ModelOp) {
  using Op = ModelOp;
  using P = Op::Properties;
  static constexpr Clause<Op> all[] = {
      whole<Op, &P::layers>("layers", true),
      whole<Op, &P::heads>("heads", true),
      whole<Op, &P::width>("width", true),
      whole<Op, &P::context_length>("context", true),
      whole<Op, &P::vocabulary>("vocabulary", true),
      number<Op, &P::dropout>("dropout"),
      flag<Op, &P::tied>("tied")};
  return all;
}

/// Whether a word that is no clause of `Op` is one of what it names behind
/// `with`.
template <typename Op> static bool isOfTraining(StringRef) { return false; }
template <> bool isOfTraining<PipelineOp>(StringRef word) {
  return llvm::any_of(
      clausesOf(TrainingOp()),
      [&](const Clause<TrainingOp> &clause) { return clause.name == word; });
}

template <typename Op>
static ParseResult parseClauses(OpAsmParser &parser,
                                typename Op::Properties &properties) {
  ArrayRef<Clause<Op>> clauses = clausesOf(Op());
  SmallVector<StringRef> left;
  SmallVector<StringRef> given;
  for (const Clause<Op> &clause : clauses)
    if (!clause.required)
      left.push_back(clause.name);
    else if (parseWordHere(parser, clause.name) ||
             clause.parse(parser, clause.name, properties))
      return failure();
    else
      given.push_back(clause.name);
  while (true) {
    if (StringRef next = bareWordAt(parser); llvm::is_contained(given, next))
      return parser.emitError(parser.getCurrentLocation(), "expected ")
             << next << " once";
    if (StringRef next = bareWordAt(parser); isOfTraining<Op>(next))
      return parser.emitError(parser.getCurrentLocation(), "expected ")
             << next << " in a chimera.training, which a pipeline names behind "
             << "`with`";
    StringRef word;
    OptionalParseResult read =
        parseOptionalWordOf(parser, "one of the clauses", left, word);
    if (!read.has_value())
      return success();
    if (failed(*read))
      return failure();
    const Clause<Op> &clause = *llvm::find_if(
        clauses, [&](const Clause<Op> &clause) { return clause.name == word; });
    llvm::erase(left, word);
    given.push_back(word);
    if (clause.parse(parser, word, properties))
      return failure();
  }
}

template <typename Op> static void printClauses(OpAsmPrinter &printer, Op op) {
  typename Op::Properties defaults;
  Op::populateDefaultProperties(op->getName(), defaults);
  for (const Clause<Op> &clause : clausesOf(op))
    if (clause.required || clause.isNeeded(op.getProperties(), defaults)) {
      printer << ' ' << clause.name;
      clause.print(printer, op);
    }
}

/// Attributes that have no clause must not be written as if they had.
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

/// ("FOLDER"), behind `exported`.
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

/// [<FIELD = NUMBER, …>, …], behind `bare`.
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
                                   : parseClauses<ModelOp>(parser, properties))
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
    printClauses(printer, *this);
  printer.printOptionalAttrDict((*this)->getAttrs(), getAttributeNames());
}

/// A name and clauses.
template <typename Op>
static ParseResult parseNamed(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<typename Op::Properties>();
  if (parser.parseSymbolName(properties.sym_name) ||
      parseClauses<Op>(parser, properties))
    return failure();
  SMLoc at = parser.getCurrentLocation();
  return failure(parser.parseOptionalAttrDict(result.attributes) ||
                 checkAttributes<Op>(parser, at, result));
}

template <typename Op> static void printNamed(OpAsmPrinter &printer, Op op) {
  printer << ' ';
  printer.printSymbolName(op.getSymName());
  printClauses(printer, op);
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

ParseResult PipelineOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<Properties>();
  if (parser.parseSymbolName(properties.sym_name))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("of")) &&
      parser.parseAttribute(properties.model))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("with")) &&
      parser.parseAttribute(properties.training))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("on")) &&
      parser.parseAttribute(properties.machine))
    return failure();
  if (parseClauses<PipelineOp>(parser, properties))
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
  printClauses(printer, *this);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           getAttributeNames());
  if (getBody().empty())
    return;
  printer << ' ';
  printer.printRegion(getBody());
}
