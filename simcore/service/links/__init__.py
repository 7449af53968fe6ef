"""Links between replicas: where replicas stand, what lies between them, and how transfers share it."""

from simcore.service.links.network import Network, Transfer
from simcore.service.links.sharing import max_min_rates
from simcore.service.links.topology import Place, Topology

__all__ = ["Network", "Place", "Topology", "Transfer", "max_min_rates"]
