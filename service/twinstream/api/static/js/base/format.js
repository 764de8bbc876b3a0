// Numbers, times and values as text. Times are UTC, since people in several places look at one page, unless somebody
// has chosen otherwise.

import { chosen } from "./preferences.js";

export const NOTHING = "–";

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 2 });

/** A count with thousands apart; a dash when it is not known. */
export const count = (value) => (value === null || value === undefined ? NOTHING : whole.format(value));

const SIZES = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A number for a glance: in full up to 99,999, then in three digits: 470 k, 1.93 M. */
export function short(value) {
  if (value === null || value === undefined) return NOTHING;
  if (Math.abs(value) < 99_999.5) return whole.format(value);
  const [size, unit] = SIZES.find(([least]) => Math.abs(value) >= least * 0.9995);
  return `${(value / size).toPrecision(3)} ${unit}`;
}

/** "1 record", "2 records", "1.93 M records". */
export const shortly = (value, one, many = `${one}s`) => `${short(value)} ${value === 1 ? one : many}`;

/** "1 record", "2 records". */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** A rate: whole numbers, but for slow streams. */
export function rate(value) {
  if (value === null || value === undefined) return NOTHING;
  return value > 0 && value < 10 ? fine.format(value) : short(value);
}

/** A text with escapes for what is not to be seen, or turns others round: a space that is none, a mark of direction. */
export const visible = (text) => text.replace(/(?! )[\p{C}\p{Z}]/gu, escaped);

/** A text with escapes for all that is not ASCII. */
export const spelled = (text) => text.replace(/[^\0-\x7f]/gu, escaped);

const escaped = (character) =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

const STEPS = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
];

/** A short span in the unit that fits: 10 µs, 1 ms, 100 s. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  if (!(seconds > 0)) return "0 s";
  const [size, unit] = STEPS.find(([least]) => seconds >= least * 0.9995) ?? [1e-6, "µs"];
  return `${fine.format(seconds / size)} ${unit}`;
}

/** How long in words a person would say: "12 s", "4 min", "3 h 20 min", "2 d 4 h". */
export function duration(seconds) {
  const total = Math.max(0, Math.floor(seconds));
  if (total < 60) return `${total} s`;
  const minutes = Math.floor(total / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

const sizes = ["bytes", "kB", "MB", "GB"];

/** A size in decimal units. */
export function bytes(value) {
  const power = Math.min(sizes.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${power ? fine.format(value / 1000 ** power) : whole.format(value)} ${sizes[power]}`;
}

export const FORMS = ["absolute", "relative"]; // of a time that stands by itself
export const ZONES = ["UTC", "local"];

const isLocal = () => chosen("zone", ZONES) === "local";
const zoneNames = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });

/** Date and time of day in the zone that is chosen: "2026-03-01", "12:00:00". */
export function dayAndTime(text) {
  const date = new Date(text);
  const shift = isLocal() ? date.getTimezoneOffset() * 60_000 : 0;
  const iso = new Date(date.getTime() - shift).toISOString();
  return [iso.slice(0, 10), iso.slice(11, 19)];
}

/** Time of day with its zone, and the date when it is not the day of `now`. */
export function clock(text, now) {
  if (!text) return NOTHING;
  const [day, time] = dayAndTime(text);
  const named = `${time} ${isLocal() ? zoneOf(new Date(text)) : "UTC"}`;
  return day === dayAndTime(now)[0] ? named : `${day} ${named}`;
}

const zoneOf = (date) => zoneNames.formatToParts(date).find(({ type }) => type === "timeZoneName").value;

/** How long ago, for people: "12 s ago". */
export const ago = (text, now) => `${duration(secondsSince(text, now))} ago`;

/** Seconds from an ISO time to `now` (milliseconds). */
export const secondsSince = (text, now) => (now - Date.parse(text)) / 1000;

/** Where a record stands, as "topic partition : offset". */
export const place = (position) =>
  position ? `${position.topic} ${position.partition} : ${position.offset}` : NOTHING;
