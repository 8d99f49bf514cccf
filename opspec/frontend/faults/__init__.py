"""The faults that a spec can have, one function per code, grouped by what they are about.

Each function builds the finished diagnostic, so that the checks read as checks.
"""
