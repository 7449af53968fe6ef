"""KV memory: how many blocks a replica has, who holds them, and what they still cache."""

from simcore.memory.block_counter import KVBlockCounter
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.group_counter import KVGroupCounter
from simcore.memory.partitions import KVPartitions
from simcore.memory.radix_manager import KVRadixManager

KVMemory = KVBlockCounter | KVBlockManager | KVGroupCounter | KVRadixManager | KVPartitions
"""The KV memory of one replica."""

__all__ = ["KVBlockCounter", "KVBlockManager", "KVGroupCounter", "KVMemory", "KVPartitions", "KVRadixManager"]
