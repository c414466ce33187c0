"""The contents of help, without drawing: sections of keys, figures and terms of other monitors."""
