"""Documents as files and as text: a module for each format, which declares it as FORMAT and is found by that."""
