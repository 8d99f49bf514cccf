"""What an op costs: FLOPs by unit and bytes by block and tensor, in closed form.

``numbering`` finds equal subexpressions · ``flops`` counts operations · ``accesses``
collects reads and writes · ``images`` counts addresses · ``model`` is the result.
"""

from opspec.analysis.costs.compute import cost
from opspec.analysis.costs.model import BlockCost, ByteTerm, FlopTerm, OpCost

__all__ = ["BlockCost", "ByteTerm", "FlopTerm", "OpCost", "cost"]
