"""The filter language of tables: words and comparisons of fields, as in `nvme busy>50 state!=active`."""
