"""One package per subject: raw columns, reader, derivation, fields, report and facts."""
