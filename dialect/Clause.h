//===- Clause.h - Kinds of clauses of descriptions --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The syntax of an op of a description is a symbol name, the required clauses
// in a fixed order, and then optional clauses in any order. A clause is a word
// and its value, and sets one attribute of the op. This header has the kinds of
// clauses. Clauses.cpp has one table of clauses for each op; the parser, the
// printer, the errors and the completions use that table.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_CLAUSE_H
#define CHIMERA_DIALECT_CLAUSE_H

#include "dialect/DescriptionInterface.h"
#include "dialect/Quantity.h"
#include "dialect/Spelling.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

namespace chimera {

/// One clause of `Op`.
template <typename Op> struct Clause {
  using Properties = typename Op::Properties;

  llvm::StringRef name;
  bool required;
  /// Reads the text after the name.
  mlir::ParseResult (*parse)(mlir::OpAsmParser &parser, llvm::StringRef name,
                             Properties &properties);
  /// Prints the text after the name.
  void (*print)(mlir::OpAsmPrinter &printer, Op op);
  /// True if the attribute differs from its default, so that the clause must be
  /// printed.
  bool (*differsFromDefault)(Properties &properties, Properties &defaults);
  /// The form of the text after the name, for errors.
  llvm::StringRef form = "(VALUE)";
};

/// True if the attribute `Member` is set and differs from its default.
template <auto Member, typename Properties>
bool differs(Properties &properties, Properties &defaults) {
  return properties.*Member && properties.*Member != defaults.*Member;
}

/// Reads "(VALUE)"; `parse` reads the value.
template <typename Parse>
mlir::ParseResult parseInParentheses(mlir::OpAsmParser &parser, Parse parse) {
  return mlir::failure(parser.parseLParen() || parse() || parser.parseRParen());
}

template <auto Member, typename Op>
void printInParentheses(mlir::OpAsmPrinter &printer, Op op) {
  printer << '(';
  printer.printAttributeWithoutType(op.getProperties().*Member);
  printer << ')';
}

/// Fails, with a diagnostic at `at`, if the attribute `name` does not allow
/// `value`.
template <typename Op>
mlir::ParseResult checkInherent(mlir::OpAsmParser &parser, llvm::SMLoc at,
                                llvm::StringRef name, mlir::IntegerAttr value) {
  mlir::NamedAttrList list;
  list.append(name, value);
  std::string fault;
  {
    // Keeps only what the attribute allows of MLIR's message "attribute
    // 'layers' failed to satisfy constraint: a whole number of at least 1".
    mlir::ScopedDiagnosticHandler handler(
        parser.getContext(), [&](mlir::Diagnostic &diagnostic) {
          fault =
              llvm::StringRef(diagnostic.str()).split("constraint: ").second;
          return mlir::success();
        });
    if (mlir::succeeded(Op::verifyInherentAttrs(
            mlir::OperationName(Op::getOperationName(), parser.getContext()),
            list, [&] { return parser.emitError(at); })))
      return mlir::success();
  }
  return parser.emitError(at, "expected ")
         << name << " to be " << fault << ", got " << value.getInt();
}

/// NAME(4): a whole number. Fails if the attribute `name` does not allow it.
template <typename Op, mlir::IntegerAttr Op::Properties::*Member>
constexpr Clause<Op> wholeNumberClause(llvm::StringRef name,
                                       bool required = false) {
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef name,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> mlir::ParseResult {
      llvm::SMLoc at = parser.getCurrentLocation();
      int64_t value = 0;
      if (parseWholeNumber(parser, value))
        return mlir::failure();
      properties.*Member = parser.getBuilder().getI64IntegerAttr(value);
      return checkInherent<Op>(parser, at, name, properties.*Member);
    });
  };
  return {name, required, parse, printInParentheses<Member, Op>,
          differs<Member, typename Op::Properties>};
}

/// NAME(16 GiB): a number with or without a unit. Fails if the attribute `name`
/// does not allow it.
template <typename Op, mlir::IntegerAttr Op::Properties::*Member,
          Dimension Unit = Dimension::Bytes>
constexpr Clause<Op> quantityClause(llvm::StringRef name,
                                    bool required = false) {
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef name,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> mlir::ParseResult {
      llvm::SMLoc at = parser.getCurrentLocation();
      int64_t value = 0;
      if (parseQuantity(parser, Unit, value))
        return mlir::failure();
      properties.*Member = parser.getBuilder().getI64IntegerAttr(value);
      return checkInherent<Op>(parser, at, name, properties.*Member);
    });
  };
  auto print = [](mlir::OpAsmPrinter &printer, Op op) {
    printer << '(' << quantityText(Unit, (op.getProperties().*Member).getInt())
            << ')';
  };
  return {name, required, parse, print,
          differs<Member, typename Op::Properties>};
}

/// NAME(1e-3): a number.
template <typename Op, mlir::FloatAttr Op::Properties::*Member>
constexpr Clause<Op> numberClause(llvm::StringRef name) {
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> mlir::ParseResult {
      double value = 0;
      if (parseNumber(parser, value))
        return mlir::failure();
      properties.*Member = parser.getBuilder().getF64FloatAttr(value);
      return mlir::success();
    });
  };
  return {name, false, parse, printInParentheses<Member, Op>,
          differs<Member, typename Op::Properties>};
}

/// The names that `list`, a member function of DescriptionInterface, returns.
/// Empty if no interface is attached to the dialect.
inline llvm::ArrayRef<llvm::StringRef>
namesFrom(mlir::AsmParser &parser,
          llvm::ArrayRef<llvm::StringRef> (DescriptionInterface::*list)()
              const) {
  const DescriptionInterface *names =
      descriptionInterfaceOf(parser.getContext());
  return names ? (names->*list)() : llvm::ArrayRef<llvm::StringRef>();
}

/// NAME(word): any word. Completions offer the names that `List` of the
/// DescriptionInterface returns.
template <typename Op, mlir::StringAttr Op::Properties::*Member, auto List>
constexpr Clause<Op> wordClause(llvm::StringRef name) {
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> mlir::ParseResult {
      std::string text;
      if (parseWord(parser, text, namesFrom(parser, List)))
        return mlir::failure();
      properties.*Member = parser.getBuilder().getStringAttr(text);
      return mlir::success();
    });
  };
  auto print = [](mlir::OpAsmPrinter &printer, Op op) {
    printer << '(';
    printer.printKeywordOrString((op.getProperties().*Member).getValue());
    printer << ')';
  };
  return {name, false, parse, print, differs<Member, typename Op::Properties>};
}

/// NAME: a flag without a value.
template <typename Op, mlir::UnitAttr Op::Properties::*Member>
constexpr Clause<Op> flagClause(llvm::StringRef name) {
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef,
                  typename Op::Properties &properties) -> mlir::ParseResult {
    properties.*Member = parser.getBuilder().getUnitAttr();
    return mlir::success();
  };
  auto print = [](mlir::OpAsmPrinter &, Op) {};
  return {name, false, parse, print, differs<Member, typename Op::Properties>,
          ""};
}

/// NAME(word): a word of an enumeration, whose values are 0 to `Last()`.
template <typename Op, typename Attr, Attr Op::Properties::*Member, auto Last>
constexpr Clause<Op> enumClause(llvm::StringRef name) {
  using Properties = typename Op::Properties;
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef name,
                  Properties &properties) {
    return parseInParentheses(parser, [&]() -> mlir::ParseResult {
      using Value = decltype(Attr().getValue());
      llvm::SmallVector<llvm::StringRef> words;
      for (uint32_t value = 0; value <= Last(); ++value)
        words.push_back(stringifyEnum(static_cast<Value>(value)));
      std::string word;
      if (parseWordOf(parser, (name + " to be one of").str(), words, word))
        return mlir::failure();
      properties.*Member =
          Attr::get(parser.getContext(), *symbolizeEnum<Value>(word));
      return mlir::success();
    });
  };
  auto print = [](mlir::OpAsmPrinter &printer, Op op) {
    printer << '(' << stringifyEnum((op.getProperties().*Member).getValue())
            << ')';
  };
  return {name, false, parse, print, differs<Member, Properties>};
}

/// NAME("TEXT", …): a list of strings.
template <typename Op, mlir::ArrayAttr Op::Properties::*Member>
constexpr Clause<Op> stringListClause(llvm::StringRef name) {
  using Properties = typename Op::Properties;
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef,
                  Properties &properties) {
    llvm::SmallVector<mlir::Attribute> texts;
    auto parseText = [&]() -> mlir::ParseResult {
      std::string text;
      if (parser.parseString(&text))
        return mlir::failure();
      texts.push_back(parser.getBuilder().getStringAttr(text));
      return mlir::success();
    };
    if (parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Paren,
                                       parseText))
      return mlir::ParseResult(mlir::failure());
    properties.*Member = parser.getBuilder().getArrayAttr(texts);
    return mlir::ParseResult(mlir::success());
  };
  auto print = [](mlir::OpAsmPrinter &printer, Op op) {
    printer << '(';
    llvm::interleaveComma(op.getProperties().*Member, printer);
    printer << ')';
  };
  return {name, false, parse, print, differs<Member, Properties>};
}

/// NAME <FIELD = NUMBER, …>: an attribute `Attr`.
template <typename Op, typename Attr, Attr Op::Properties::*Member>
constexpr Clause<Op> attributeClause(llvm::StringRef name) {
  using Properties = typename Op::Properties;
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef,
                  Properties &properties) {
    properties.*Member =
        mlir::dyn_cast_or_null<Attr>(Attr::parse(parser, mlir::Type()));
    return mlir::ParseResult(mlir::success(properties.*Member != nullptr));
  };
  auto print = [](mlir::OpAsmPrinter &printer, Op op) {
    printer << ' ';
    (op.getProperties().*Member).print(printer);
  };
  return {name,
          false,
          parse,
          print,
          differs<Member, Properties>,
          " <FIELD = VALUE>"};
}

/// Fails if a comma is next.
inline mlir::ParseResult refuseComma(mlir::OpAsmParser &parser) {
  llvm::SMLoc at = parser.getCurrentLocation();
  if (mlir::failed(parser.parseOptionalComma()))
    return mlir::success();
  return parser.emitError(at, "expected a blank between clauses, got a comma");
}

/// Reads the text after the name of `clause`. Fails if it begins with "=".
template <typename Op>
mlir::ParseResult parseAfterName(mlir::OpAsmParser &parser,
                                 const Clause<Op> &clause,
                                 typename Op::Properties &properties) {
  llvm::SMLoc at = parser.getCurrentLocation();
  if (mlir::succeeded(parser.parseOptionalEqual()))
    return parser.emitError(at, "expected ")
           << clause.name << clause.form << ", got " << clause.name << "=";
  return clause.parse(parser, clause.name, properties);
}

/// Reads the clauses of an op: the required ones in their order, then optional
/// ones in any order. If a word is not a clause of this op, `errorOf` may
/// return an error message for this word, for example because it is a clause of
/// another op. `errorOf` returns an empty string for all other words.
template <typename Op>
mlir::ParseResult parseClauses(mlir::OpAsmParser &parser,
                               llvm::ArrayRef<Clause<Op>> clauses,
                               typename Op::Properties &properties,
                               std::string (*errorOf)(llvm::StringRef word)) {
  llvm::SmallVector<llvm::StringRef> left;
  llvm::SmallVector<llvm::StringRef> given;
  llvm::SmallVector<llvm::StringRef> later;
  for (const Clause<Op> &clause : clauses)
    later.push_back(clause.name);
  for (const Clause<Op> &clause : clauses) {
    if (!clause.required) {
      left.push_back(clause.name);
      continue;
    }
    llvm::erase(later, clause.name);
    if (refuseComma(parser) || parseRequiredWord(parser, clause.name, later) ||
        parseAfterName(parser, clause, properties))
      return mlir::failure();
    given.push_back(clause.name);
  }
  while (true) {
    if (refuseComma(parser))
      return mlir::failure();
    llvm::StringRef next = bareWordAt(parser);
    if (llvm::is_contained(given, next))
      return parser.emitError(parser.getCurrentLocation(), "expected ")
             << next << " once";
    if (!llvm::is_contained(left, next))
      if (std::string refusal = errorOf(next); !refusal.empty())
        return parser.emitError(parser.getCurrentLocation(), refusal);
    llvm::StringRef word;
    mlir::OptionalParseResult read =
        parseOptionalWordOf(parser, "one of the clauses", left, word);
    if (!read.has_value())
      return mlir::success();
    if (mlir::failed(*read))
      return mlir::failure();
    const Clause<Op> &clause = *llvm::find_if(
        clauses, [&](const Clause<Op> &clause) { return clause.name == word; });
    llvm::erase(left, word);
    given.push_back(word);
    if (parseAfterName(parser, clause, properties))
      return mlir::failure();
  }
}

/// Prints the required clauses, and the optional clauses whose attribute
/// differs from its default.
template <typename Op>
void printClauses(mlir::OpAsmPrinter &printer,
                  llvm::ArrayRef<Clause<Op>> clauses, Op op) {
  typename Op::Properties defaults;
  Op::populateDefaultProperties(op->getName(), defaults);
  for (const Clause<Op> &clause : clauses)
    if (clause.required ||
        clause.differsFromDefault(op.getProperties(), defaults)) {
      printer << ' ' << clause.name;
      clause.print(printer, op);
    }
}

} // namespace chimera

#endif // CHIMERA_DIALECT_CLAUSE_H
