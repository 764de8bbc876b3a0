// What to do about what the page shows: one thing, the first that helps.

const SERVICES = {
  kafka: "See whether the Kafka brokers answer. Reading goes on by itself, and nothing is lost that Kafka still keeps.",
  redis: "See whether Redis answers. Comparing goes on meanwhile; a checkpoint is written as soon as it can be.",
};

export function advice(status, gate, lostSince) {
  if (lostSince) return "See whether the service runs and this machine reaches it. The page reconnects by itself.";
  if (gate.stale && gate.updated_at) {
    return "Look into the log of the service: its matcher has stopped or hangs. It is restarted by itself if it has died.";
  }
  if (gate.stale) return "Wait for the matcher to start. If nothing comes, the log of the service says why.";
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
    return "Events are overdue on the other side. Wait if that side is only slow; otherwise see what it lost.";
  }
  return "Do not release on this comparison until its reason is understood.";
}

function byHealth(status) {
  if (status.health.status === "ok") return null;
  return "Bring back what the reason names; until then the gate does not let anything pass.";
}
