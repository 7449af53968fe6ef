"""Decisions only: what to serve next, how to fill a batch, whom to preempt, where to send a request.

A policy is a small dataclass: its fields are the parameters a scenario may set, its methods are pure decisions
over read-only views (``policies.views``). The same objects run in the simulator and on a real engine.
"""
