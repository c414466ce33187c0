"""Raw tables into figures, one file per table; collectors.rates is the front."""
