// Errors in bare models.
//
// RUN: chimera-opt %s --split-input-file --verify-diagnostics

// expected-error@below {{expected at least one layer of a bare model}}
chimera.model @m bare []

// -----

// expected-error@below {{expected a boundary in every layer but the last, got none in #chimera.layer<forward = 1, parameters = 1, stash = 1>}}
chimera.model @m bare [<forward = 1, parameters = 1, stash = 1>, <forward = 1, parameters = 1, stash = 1>]

// -----

// expected-error@below {{expected a boundary in every layer but the last}}
chimera.model @m bare [<count = 2, forward = 1, parameters = 1, stash = 1>]

// -----

// expected-error@below {{expected a field stash}}
chimera.model @m bare [<forward = 1, parameters = 1>]

// -----

// expected-error@below {{expected one of the fields count, forward, backward, parameters, stash, weight_stash, boundary, got "forwards"}}
chimera.model @m bare [<forwards = 1>]

// -----

// expected-error@below {{expected operations, such as 3.4 GFLOP, got 3 GB (units: FLOP, MFLOP, GFLOP, TFLOP)}}
chimera.model @m bare [<forward = 3 GB, parameters = 1, stash = 1, boundary = 1>]

// -----

// expected-error@below {{expected forward of at least 1, got 0}}
chimera.model @m bare [<forward = 0, parameters = 1, stash = 1, boundary = 1>]

// -----

// expected-error@below {{expected parameters of at least 1, got 0}}
chimera.model @m bare [<forward = 1, parameters = 0, stash = 1, boundary = 1>]

// -----

// expected-error@below {{expected stash of at least 1, got 0}}
chimera.model @m bare [<forward = 1, parameters = 1, stash = 0, boundary = 1>]

// -----

// expected-error@below {{expected boundary of at least 0, got -1}}
chimera.model @m bare [<forward = 1, parameters = 1, stash = 1, boundary = -1>]

// -----

// expected-error@below {{expected count of at least 1, got 0}}
chimera.model @m bare [<count = 0, forward = 1, parameters = 1, stash = 1, boundary = 1>]

// -----

// expected-error@below {{expected at most 65535 layers, got count 65536}}
chimera.model @m bare [<count = 65536, forward = 1, parameters = 1, stash = 1, boundary = 1>]

// -----

// expected-error@below {{expected backward of at least 0, got -1}}
chimera.model @m bare [<backward = -1, forward = 1, parameters = 1, stash = 1, boundary = 1>]

// -----

// expected-error@below {{expected weight_stash of at least 0, got -1}}
chimera.model @m bare [<weight_stash = -1, forward = 1, parameters = 1, stash = 1, boundary = 1>]

// -----

// expected-error@below {{expected no layers of a bare model: its list of layers has it}}
"chimera.model"() <{sym_name = "m", architecture = "bare", layers = 2,
  bare_layers = [#chimera.layer<forward = 1, parameters = 1, stash = 1, boundary = 1>]}> : () -> ()

// -----

// expected-error@below {{expected neither dropout nor tied of a bare model: its layers have costs instead}}
"chimera.model"() <{sym_name = "m", architecture = "bare", tied,
  bare_layers = [#chimera.layer<forward = 1, parameters = 1, stash = 1, boundary = 1>]}> : () -> ()

// -----

// expected-error@below {{expected no list of layers of a model that is not bare}}
"chimera.model"() <{sym_name = "m", architecture = "gpt2",
  bare_layers = [#chimera.layer<forward = 1, parameters = 1, stash = 1, boundary = 1>]}> : () -> ()
