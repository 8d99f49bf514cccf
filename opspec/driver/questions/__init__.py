"""The questions that make a case reusable, answered from the schedule and the costs, never from a name.

``problem`` what kind of problem it is: products and their sizes, what binds, whether it is hot · ``patterns`` which
patterns it uses and what they save · ``passes`` how often the data is read, along which path it is folded, in which
vectors · ``around`` what else fuses · ``limits`` of shape, type, topology and requests · ``others`` which specs
have the same pattern.
"""

from opspec.driver.questions.ask import Asked, answers

__all__ = ["Asked", "answers"]
