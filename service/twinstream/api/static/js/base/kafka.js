// Records in Kafka, as a person finds them there: links into a Kafka UI, and commands to be copied.

import { el } from "./dom.js";
import { place } from "./format.js";

const DEFAULT_SERVICES = ["http://127.0.0.1:8080", "http://localhost:8080"];

/** Where a record stands; a link to it where the service knows a Kafka UI (`service` may not be known yet). */
export function recordPlace(position, service, className = "place") {
  const template = service?.record_url;
  if (!template) return el("span", { class: className }, place(position));
  const link = template.replace(/\{(topic|partition|offset)\}/g, (_, name) => encodeURIComponent(position[name]));
  return el("a", { class: className, href: link, target: "_blank", rel: "noreferrer" }, place(position));
}

/** Commands that show a divergence and its records elsewhere. */
export const commandsFor = (report, service) => [
  `twinstream explain ${report.id} --comparison ${report.comparison}${here()}`,
  ...Object.values(report.positions)
    .filter(Boolean)
    .map((position) => reading(position, service?.brokers || "BROKERS")),
];

const reading = ({ topic, partition, offset }, brokers) =>
  `kafka-console-consumer.sh --bootstrap-server ${brokers} --topic ${topic} --partition ${partition} ` +
  `--offset ${offset} --max-messages 1`;

/** The address of this service, where the command line would ask another one. */
function here() {
  const address = new URL(".", location.href).href.replace(/\/$/, "");
  return DEFAULT_SERVICES.includes(address) ? "" : ` --service ${address}`;
}
