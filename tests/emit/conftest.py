from __future__ import annotations

import sys
from pathlib import Path

# the helpers of these tests lie beside them
sys.path.insert(0, str(Path(__file__).parent))
