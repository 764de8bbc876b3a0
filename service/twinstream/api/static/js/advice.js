// What to do about what the page shows: one thing, the first that helps.

const SERVICES = {
  kafka:
    "See whether the Kafka brokers answer. Reading goes on by itself; nothing that Kafka keeps is lost.",
  redis: "See whether Redis answers. Checkpoints go on by themselves as soon as it does.",
};

export function advice(status, gate, lostSince) {
  if (lostSince) return "See whether the service runs and can be reached. The page reconnects by itself.";
  if (gate.stale && gate.updated_at) {
    return "Look into the log of the service: the matcher has died, which restarts it, or it hangs.";
  }
  if (gate.stale)
    return "Wait for the matcher to start. If nothing comes, the log of the service says why.";
  const [service] = status.health.unreachable;
  if (service) return SERVICES[service];
  return byVerdict(status) ?? byHealth(status);
}

function byVerdict(status) {
  if (status.verdict === "DIVERGED") {
    return "Hold the candidate back, and compare the records below: the newest divergence comes first.";
  }
  if (status.verdict !== "INCONCLUSIVE") return null;
  if (status.holes.length) return "Some input was not checked: see below what, and why.";
  if (status.suspicions) {
    return "Events are overdue. Wait if the other side is only slow; otherwise see what it lost.";
  }
  return "Do not release on this comparison until its reason is understood.";
}

function byHealth(status) {
  if (status.health.status === "ok") return null;
  return "Bring back what the reason names; until then the gate does not let anything pass.";
}
