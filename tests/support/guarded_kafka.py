"""A broker that asks for rights, and who takes them away and gives them back."""

from __future__ import annotations

from confluent_kafka.admin import AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient
from confluent_kafka.admin import ResourcePatternType as Pattern
from confluent_kafka.admin import ResourceType as Resource

from deploy.embedded.kafka import Kafka

ANYBODY = "User:ANONYMOUS", "*"
ALLOWED = ("CLUSTER_ACTION", "DESCRIBE", "ALTER", "IDEMPOTENT_WRITE")
"""What anybody may do to the broker itself."""


class Guarded(Kafka):
    """Where a resource has no rule, everybody has all rights."""

    def _configure(self) -> int:
        port = super()._configure()
        with (self.folder / "server.properties").open("a", encoding="utf-8") as properties:
            authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            properties.write(f"authorizer.class.name={authorizer}\nallow.everyone.if.no.acl.found=true\n")
        return port

    def deny(self, operation: AclOperation, topics: str) -> None:
        """From now on nobody may do this to topics whose names begin so."""
        allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
        here = Resource.BROKER, "kafka-cluster", Pattern.LITERAL
        there = Resource.TOPIC, topics, Pattern.PREFIXED
        asked = [(here, getattr(AclOperation, name), allow) for name in ALLOWED]
        asked += [(there, AclOperation.ALL, allow), (there, operation, deny)]
        rules = [AclBinding(*where, *ANYBODY, what, how) for where, what, how in asked]
        admin = AdminClient({"bootstrap.servers": self.brokers})  # kept until all futures are done
        for done in admin.create_acls(rules).values():
            done.result(timeout=30)

    def allow(self, operation: AclOperation, topics: str) -> None:
        """Take back what was denied."""
        there = Resource.TOPIC, topics, Pattern.PREFIXED
        admin = AdminClient({"bootstrap.servers": self.brokers})
        for done in admin.delete_acls(
            [AclBindingFilter(*there, None, None, operation, AclPermissionType.DENY)]
        ).values():
            done.result(timeout=30)
