"""KV memory: how many blocks a replica has, who holds them, and what they still cache.

``KVMemory`` is what a scheduler uses. Managers that know single blocks: ``KVBlockManager`` (vLLM's rules),
``KVRadixManager`` (SGLang's), ``KVGroupManager`` (groups of layers, some with sliding windows), and ``KVPartitions`` of
any of them by tenant. ``KVStateManager`` and ``KVStateCounter`` find prefixes where states were kept, the latter in
SGLang's tree. ``KVBlockCounter``, ``KVGroupCounter`` and ``ReservedMemory`` count blocks, which is all that matters
where no two requests share any.
"""

from simcore.memory.block_counter import KVBlockCounter
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.group_counter import KVGroupCounter
from simcore.memory.group_manager import KVGroupManager
from simcore.memory.kv_memory import KVMemory
from simcore.memory.partitions import KVPartitions
from simcore.memory.radix_manager import KVRadixManager
from simcore.memory.reserved import ReservedMemory

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
