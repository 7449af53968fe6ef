"""KV memory: how many blocks a replica has, who holds them, and what they still cache."""

from simcore.memory.block_counter import KVBlockCounter
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.group_counter import KVGroupCounter
from simcore.memory.partitions import KVPartitions

KVMemory = KVBlockCounter | KVBlockManager | KVGroupCounter | KVPartitions
"""The KV memory of one replica."""

__all__ = ["KVBlockCounter", "KVBlockManager", "KVGroupCounter", "KVMemory", "KVPartitions"]
