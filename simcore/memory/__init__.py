"""KV memory: how many blocks a replica has, who holds them, and what they still cache."""

from simcore.memory.block_counter import KVBlockCounter
from simcore.memory.block_manager import KVBlockManager, KVMemory

__all__ = ["KVBlockCounter", "KVBlockManager", "KVMemory"]
