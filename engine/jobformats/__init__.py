"""Job files of other tools, read as jobs of our own and written back.

Whatever an option of another tool means, it is either driven as it says, or named: in an error where leaving it out
would drive another load, in a warning where it would not.
"""

from __future__ import annotations
