//===- Clause.h - Kinds of clauses of descriptions --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is described is a name, clauses that must be there and then others in
// any order. A clause is a name and what follows it; each kind of clause below
// keeps one attribute of its op. A table for each op (Clauses.cpp) says which
// clauses there are; parser, printer, errors and completions walk it.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_CLAUSE_H
#define CHIMERA_DIALECT_CLAUSE_H

#include "dialect/DescriptionInterface.h"
#include "dialect/Spelling.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

namespace chimera {

/// A clause of an op.
template <typename Op> struct Clause {
  using Properties = typename Op::Properties;

  llvm::StringRef name;
  bool required;
  /// Reads what follows the name.
  mlir::ParseResult (*parse)(mlir::OpAsmParser &parser, llvm::StringRef name,
                             Properties &properties);
  /// Prints that.
  void (*print)(mlir::OpAsmPrinter &printer, Op op);
  /// True if the clause says something else than what holds without it.
  bool (*isNeeded)(Properties &properties, Properties &defaults);
};

template <auto Member, typename Properties>
bool differs(Properties &properties, Properties &defaults) {
  return properties.*Member && properties.*Member != defaults.*Member;
}

/// NAME(VALUE), of which `parse` reads the value.
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

/// Fails where the attribute `name` does not allow the value that was read
/// `at`.
template <typename Op>
mlir::ParseResult checkInherent(mlir::OpAsmParser &parser, llvm::SMLoc at,
                                llvm::StringRef name, mlir::IntegerAttr value) {
  mlir::NamedAttrList list;
  list.append(name, value);
  return Op::verifyInherentAttrs(
      mlir::OperationName(Op::getOperationName(), parser.getContext()), list,
      [&] { return parser.emitError(at, "got ") << value.getInt() << ": "; });
}

/// A whole number, which the attribute of the same name must allow.
template <typename Op, mlir::IntegerAttr Op::Properties::*Member>
constexpr Clause<Op> whole(llvm::StringRef name, bool required = false) {
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

/// A number with a unit, which the attribute of the same name must allow.
template <typename Op, mlir::IntegerAttr Op::Properties::*Member,
          Dimension Counted = Dimension::Bytes>
constexpr Clause<Op> quantity(llvm::StringRef name, bool required = false) {
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef name,
                  typename Op::Properties &properties) {
    return parseInParentheses(parser, [&]() -> mlir::ParseResult {
      llvm::SMLoc at = parser.getCurrentLocation();
      int64_t value = 0;
      if (parseQuantity(parser, Counted, value))
        return mlir::failure();
      properties.*Member = parser.getBuilder().getI64IntegerAttr(value);
      return checkInherent<Op>(parser, at, name, properties.*Member);
    });
  };
  auto print = [](mlir::OpAsmPrinter &printer, Op op) {
    printer << '('
            << quantityText(Counted, (op.getProperties().*Member).getInt())
            << ')';
  };
  return {name, required, parse, print,
          differs<Member, typename Op::Properties>};
}

template <typename Op, mlir::FloatAttr Op::Properties::*Member>
constexpr Clause<Op> number(llvm::StringRef name) {
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

/// The names that the dialect does not know itself; none where nothing tells.
inline llvm::ArrayRef<llvm::StringRef>
namesFrom(mlir::AsmParser &parser,
          llvm::ArrayRef<llvm::StringRef> (DescriptionInterface::*list)()
              const) {
  const DescriptionInterface *names =
      descriptionInterfaceOf(parser.getContext());
  return names ? (names->*list)() : llvm::ArrayRef<llvm::StringRef>();
}

/// A word, of which the interface's `List` are offered.
template <typename Op, mlir::StringAttr Op::Properties::*Member, auto List>
constexpr Clause<Op> word(llvm::StringRef name) {
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

template <typename Op, mlir::UnitAttr Op::Properties::*Member>
constexpr Clause<Op> flag(llvm::StringRef name) {
  auto parse = [](mlir::OpAsmParser &parser, llvm::StringRef,
                  typename Op::Properties &properties) -> mlir::ParseResult {
    properties.*Member = parser.getBuilder().getUnitAttr();
    return mlir::success();
  };
  auto print = [](mlir::OpAsmPrinter &, Op) {};
  return {name, false, parse, print, differs<Member, typename Op::Properties>};
}

/// A word of an enumeration, whose values are 0 to `Last()`.
template <typename Op, typename Attr, Attr Op::Properties::*Member, auto Last>
constexpr Clause<Op> choice(llvm::StringRef name) {
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

/// NAME("TEXT", …).
template <typename Op, mlir::ArrayAttr Op::Properties::*Member>
constexpr Clause<Op> texts(llvm::StringRef name) {
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

/// NAME <FIELD = NUMBER, …>.
template <typename Op, typename Attr, Attr Op::Properties::*Member>
constexpr Clause<Op> fields(llvm::StringRef name) {
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
  return {name, false, parse, print, differs<Member, Properties>};
}

/// Reads the clauses of an op: those that must be there in their order, then
/// others in any. `refusalOf` says what is wrong with a word that is no clause
/// of this op but of another one, or of none yet; it is empty for any other
/// word.
template <typename Op>
mlir::ParseResult parseClauses(mlir::OpAsmParser &parser,
                               llvm::ArrayRef<Clause<Op>> clauses,
                               typename Op::Properties &properties,
                               std::string (*refusalOf)(llvm::StringRef word)) {
  llvm::SmallVector<llvm::StringRef> left;
  llvm::SmallVector<llvm::StringRef> given;
  for (const Clause<Op> &clause : clauses)
    if (!clause.required)
      left.push_back(clause.name);
    else if (parseWordHere(parser, clause.name) ||
             clause.parse(parser, clause.name, properties))
      return mlir::failure();
    else
      given.push_back(clause.name);
  while (true) {
    llvm::StringRef next = bareWordAt(parser);
    if (llvm::is_contained(given, next))
      return parser.emitError(parser.getCurrentLocation(), "expected ")
             << next << " once";
    if (!llvm::is_contained(left, next))
      if (std::string refusal = refusalOf(next); !refusal.empty())
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
    if (clause.parse(parser, word, properties))
      return mlir::failure();
  }
}

/// Prints those that must be there or are needed.
template <typename Op>
void printClauses(mlir::OpAsmPrinter &printer,
                  llvm::ArrayRef<Clause<Op>> clauses, Op op) {
  typename Op::Properties defaults;
  Op::populateDefaultProperties(op->getName(), defaults);
  for (const Clause<Op> &clause : clauses)
    if (clause.required || clause.isNeeded(op.getProperties(), defaults)) {
      printer << ' ' << clause.name;
      clause.print(printer, op);
    }
}

} // namespace chimera

#endif // CHIMERA_DIALECT_CLAUSE_H
