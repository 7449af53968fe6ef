"""KV memory: how many blocks a replica has, who holds them, and what they still cache."""

from simcore.memory.block_counter import KVBlockCounter
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.group_counter import KVGroupCounter
from simcore.memory.group_manager import KVGroupManager
from simcore.memory.partitions import KVPartitions
from simcore.memory.radix_manager import KVRadixManager
from simcore.memory.reserved import ReservedMemory

KVMemory = (
    KVBlockCounter | KVBlockManager | KVGroupCounter | KVGroupManager | KVRadixManager | KVPartitions | ReservedMemory
)
"""The KV memory of one replica."""

__all__ = [
    "KVBlockCounter",
    "KVBlockManager",
    "KVGroupCounter",
    "KVGroupManager",
    "KVMemory",
    "KVPartitions",
    "KVRadixManager",
    "ReservedMemory",
]
