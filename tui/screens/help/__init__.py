"""Help: sections of keys, figures and terms of other monitors, and the page that shows them."""
