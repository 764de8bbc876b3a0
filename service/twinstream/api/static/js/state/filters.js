// The filters of divergences: which are asked for, told from the address, and the same question asked of a
// divergence that comes by the stream. It must answer as the service does (`DivergenceFilter`).

import { WrittenNumber } from "../base/api.js";

/** Whether a divergence is one that `filters` ask for; `provisional` true, false, or null for both. */
export function wanted(report, filters, provisional = null) {
  const seen = Date.parse(report.first_seen);
  return (
    (provisional === null || report.provisional === provisional) &&
    (!filters.kind || report.kind === filters.kind) &&
    (filters.scope ?? []).every((pair) => inScope(pair, report.scope)) &&
    (filters.field ?? []).every((field) => Object.hasOwn(report.fields, field)) &&
    (!filters.from || seen >= Date.parse(filters.from)) &&
    (!filters.to || seen < Date.parse(filters.to)) &&
    is(filters.explained ?? "false", report.explained !== null) && // examples only where they are asked for
    is(filters.late, report.late !== null) &&
    is(filters.tainted, report.tainted)
  );
}

/** A member of a scope as a filter asks for it. */
export const scopePair = (field, value) => `${field}=${asked(value)}`;

const is = (given, found) => given === undefined || (given === "true") === found;

function inScope(pair, scope) {
  const at = pair.indexOf("=");
  const field = pair.slice(0, at);
  const value = pair.slice(at + 1);
  return Object.hasOwn(scope, field) && [asked(scope[field]), JSON.stringify(scope[field])].includes(value);
}

function asked(value) {
  if (value instanceof WrittenNumber) return value.text;
  return typeof value === "string" ? value : JSON.stringify(value);
}
