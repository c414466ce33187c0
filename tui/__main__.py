"""`python -m tui` is `lunscope`."""

from tui.main import main

main()
