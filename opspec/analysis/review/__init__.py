"""What a change of a spec does to its costs: two checked modules in, a record of differences out.

``model`` the record · ``forms`` equality, growth and crossings of closed forms · ``numbers`` an op at a
workload and machine · ``crossings``, ``budgets``, ``pipelines`` what moved, broke or became of it · ``compare`` two
modules · ``policy`` when a review says no · ``escape`` names made harmless · ``wording``, ``markdown``, ``plain`` and
``data`` the record for people and programs. Nothing is imported here: most reviews find nothing, and need no SymPy to
say so.
"""
