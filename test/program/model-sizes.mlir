// Sizes that a model determines. A program with other sizes would fail in its
// first step.
//
// RUN: chimera-opt %s --chimera-to-projected --chimera-allocate -o %t.mlir
// RUN: chimera-opt %t.mlir --chimera-verify-program -o /dev/null
//
// RUN: sed 's/labels<128>/labels<8>/' %t.mlir > %t.labels.mlir
// RUN: not chimera-opt %t.labels.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=LABELS
// LABELS: error: worker 1 {{.*}}(load labels pipeline 0 stage 1 micro-batch 0) {{.*}}: expected 128 bytes of labels, got 8
// RUN: sed 's/tokens<128>/tokens<4>/' %t.mlir > %t.tokens.mlir
// RUN: not chimera-opt %t.tokens.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=TOKENS
// TOKENS: error: worker 0 {{.*}}(load tokens pipeline 0 stage 0 micro-batch 0) {{.*}}: expected 128 bytes of tokens, got 4
// RUN: sed 's/loss<8>/loss<4>/g' %t.mlir > %t.loss.mlir
// RUN: not chimera-opt %t.loss.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOSS
// LOSS: error: worker 1 {{.*}}(forward pipeline 0 stage 1 micro-batch 0) {{.*}}: expected 8 bytes of loss, got 4
//
// A stage of another model, and layers that overlap.
// RUN: sed 's/width(8)/width(16)/' %t.mlir > %t.width.mlir
// RUN: not chimera-opt %t.width.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=WIDTH
// WIDTH: error: stage 0: expected {{[0-9]+}} bytes of weights for this model, got 15424
// RUN: sed 's/micro_batch_size(2)/micro_batch_size(4)/' %t.mlir > %t.batch.mlir
// RUN: not chimera-opt %t.batch.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: error: stage 0: expected 1024 bytes of boundary for this model, got 512
// RUN: sed 's/layers(3, 4)/layers(2, 4)/' %t.mlir > %t.layers.mlir
// RUN: not chimera-opt %t.layers.mlir --chimera-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix=LAYERS
// LAYERS: error: stage 1: expected layers that begin at 3 and end by 4, got 2 from 2 on
chimera.model @m gpt2 layers(2) heads(2) width(8) context(8) vocabulary(256)
chimera.pipeline @p of @m stages(2) micro_batches(2) schedule("gpipe") micro_batch_size(2)
