// A name may have any bytes. If a byte is no character, or controls a terminal,
// titles, tables, pictures and traces show it as \xNN.
//
// RUN: chimera-opt %s --chimera-to-scheduled | sed 's/("gpipe")/("mine\\1B\\FE", {concatenation = "c\\0A\\FD"})/' > %t.mlir
// RUN: chimera-opt %t.mlir --chimera-print-timeline -o /dev/null | FileCheck %s --check-prefix=TITLE
// RUN: chimera-opt %t.mlir --chimera-report -o /dev/null | FileCheck %s --check-prefixes=TITLE,TABLE
// TITLE: {{^}}a\x0ab\xff: mine\x1b\xfe {concatenation = "c\0A\FD"}, 1 stage, 1 micro-batch{{$}}
// TABLE: {{^}}pipeline {{ *}}a\x0ab\xff{{$}}
// TABLE: {{^}}schedule {{ *}}mine\x1b\xfe{{$}}
// RUN: chimera-opt %t.mlir --chimera-report=format=csv -o /dev/null | FileCheck %s --check-prefix=CSV
// CSV: {{^}}name,
// CSV-NEXT: {{^}}a\x0ab\xff,"a\x0ab\xff: {{.*}}",mine\x1b\xfe,,1,1,
// RUN: chimera-opt %t.mlir --chimera-report=format=json -o /dev/null | FileCheck %s --check-prefix=JSON
// JSON: "name": "a\\x0ab\\xff",
// JSON: "schedule": "mine\\x1b\\xfe",
// RUN: chimera-opt %t.mlir --chimera-print-timeline=format=svg -o /dev/null > %t.svg
// RUN: %python -c "import sys, xml.etree.ElementTree as e; print(e.parse(sys.argv[1]).getroot().tag)" %t.svg | FileCheck %s --check-prefix=SVG
// SVG: {http://www.w3.org/2000/svg}svg
// RUN: chimera-opt %t.mlir --chimera-print-timeline=format=chrome-trace -o /dev/null > %t.json
// RUN: %python -c "import json, sys; d = json.load(open(sys.argv[1])); print(d['otherData'], d['traceEvents'][0]['args'])" %t.json | FileCheck %s --check-prefix=TRACE
// TRACE: {'unit': {'a\\x0ab\\xff': {{.*}}}} {'name': 'a\\x0ab\\xff: mine\\x1b\\xfe
chimera.pipeline @"a\0Ab\FF" stages(1) micro_batches(1) schedule(gpipe)
