"""The second opinion: every query in plain, slow Python, one careful pass over the files.

Invariant: nothing here imports `queries`; what the two have in common is the text of the rules and nothing else.
"""
