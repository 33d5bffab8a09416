// A placement and an order that you write yourself, one line for each worker. Four
// stages lie on a V. Backwards of stages 0 and 2 are whole, the others are split: weight
// gradients then fill time in which a worker would be idle.
//
//   chimera-show examples/order.mlir
chimera.pipeline @mine stages(4) micro_batches(2) workers(2) {
  chimera.direction 0 down on [0, 1, 1, 0] micro_batches [0, 1]
  chimera.order 0 "0F0 0F1 3F0 3I0 3F1 3I1 0B0 3W0 0B1 3W1"
  chimera.order 1 "1F0 2F0 1F1 2F1 2B0 1I0 2B1 1I1 1W0 1W1"
}
