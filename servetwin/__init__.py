"""servetwin: a twin of an LLM inference service.

>>> import servetwin
>>> result = servetwin.simulate("scenarios/quickstart.yaml")  # doctest: +SKIP
>>> result.summary["metrics"]["ttft_s"]["p99"]  # doctest: +SKIP
"""

from servetwin.api import Result, ServetwinError, save, simulate

__all__ = ["Result", "ServetwinError", "save", "simulate"]
