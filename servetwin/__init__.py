"""servetwin: a twin of an LLM inference service.

>>> import servetwin
>>> result = servetwin.simulate("scenarios/quickstart.yaml")  # doctest: +SKIP
>>> result.summary["metrics"]["ttft_s"]["p99"]  # doctest: +SKIP
"""

from servetwin.api import Comparison, Result, ServetwinError, compare, save, simulate

__all__ = ["Comparison", "Result", "ServetwinError", "compare", "save", "simulate"]
