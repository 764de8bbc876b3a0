"""A real Redis cluster of several nodes, each of which holds a part of the slots."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot

from deploy.embedded.processes import free_port
from deploy.embedded.redis_server import RedisServer
from tests.support.waiting import eventually

SLOTS = 16_384
ADDRESS = {"redis": "redis_url", "cluster": "redis_cluster_url"}
"""The fixtures that give the address of a real server, by what it is."""
REAL = [pytest.param(name, marks=pytest.mark.requires_redis) for name in ADDRESS]


class RedisCluster:
    """`nodes` share the slots evenly, in order."""

    def __init__(self, folder: Path, count: int = 3) -> None:
        self.nodes = [RedisServer(folder / str(number), config=_config()) for number in range(count)]
        self._stack = ExitStack()

    def __enter__(self) -> RedisCluster:
        for node in self.nodes:
            self._stack.enter_context(node)
        share = -(-SLOTS // len(self.nodes))
        for number, node in enumerate(self.nodes):
            with redis.Redis.from_url(node.url) as client:
                last = min((number + 1) * share, SLOTS) - 1
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
                for other in self.nodes:
                    client.execute_command(
                        "CLUSTER", "MEET", "127.0.0.1", other.port, other.config["cluster-port"]
                    )
        for node in self.nodes:
            eventually(lambda here=node: self._agrees(here), what="the nodes of the cluster agree")
        return self

    def _agrees(self, node: RedisServer) -> bool:
        with redis.Redis.from_url(node.url) as client:
            info = client.cluster("info")
            return info["cluster_state"] == "ok" and info["cluster_known_nodes"] == str(len(self.nodes))

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def holder(self, tag: str) -> int:
        """The number of the node that holds the keys with a hash tag, as they were dealt out."""
        share = -(-SLOTS // len(self.nodes))
        return int(key_slot(tag.encode()) // share)

    def hand_over(self, tag: str, to: int) -> None:
        """Move the keys with a hash tag, and their slot, to another node."""
        slot = key_slot(tag.encode())
        clients = [redis.Redis.from_url(node.url) for node in self.nodes]
        names = [client.cluster("myid").decode() for client in clients]
        source = self.holder(tag)
        clients[to].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
        clients[source].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[to])
        while keys := clients[source].execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            clients[source].execute_command(
                "MIGRATE", "127.0.0.1", self.nodes[to].port, "", 0, 5000, "KEYS", *keys
            )
        for number in (to, *(other for other in range(len(clients)) if other != to)):
            clients[number].execute_command("CLUSTER", "SETSLOT", slot, "NODE", names[to])
        for client in clients:
            client.close()


def _config() -> dict[str, str]:
    return {"cluster-enabled": "yes", "cluster-port": str(free_port()), "cluster-node-timeout": "2000"}
