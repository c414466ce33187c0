"""One module per subject: raw columns, derivation, fields, report and facts of a kind of thing that is measured."""
