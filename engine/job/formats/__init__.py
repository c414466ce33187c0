"""Job files of all kinds: lunscope's own TOML, fio and NDISK, read and written."""
