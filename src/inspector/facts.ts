import type { Projection } from '../inspect/index.ts';
import { limits } from './limits.ts';
import { cut, type Mask, maskByName, ValueReader } from './read-value.ts';

/** Reads contexts of a program for the page, through the program's mask. */
export interface FactReader {
  /** Reads the facts of a context, within limits of time and size. Never throws. */
  project(context: unknown, machine: string): Projection;
  /** Reads one fact with a higher limit; null if the context has no fact of this name. Never throws. */
  whole(context: unknown, fact: string): string | null;
}

/** Name of the single fact of a context that is not an object. */
const soleFact = 'context';

/** Sample that a new reader reads once: the first read compiles this code and takes longer than all later reads. */
const sample = { list: [{}, new Map([[1, 2]]), new Set([1])], text: '', time: new Date(0), call: () => {}, big: 1n };

/** @param now monotonic time in milliseconds */
export function createFactReader(mask: Mask, now = () => performance.now()): FactReader {
  const reader = createReader(mask, now);
  createReader(maskByName, now).project(sample, '');
  return reader;
}

function createReader(mask: Mask, now: () => number): FactReader {
  /** Paths of objects with too many names to list, by machine. */
  const slow = new Map<string, Set<string>>();

  return {
    project(context, machine) {
      const places = slow.get(machine) ?? new Set<string>();
      if (slow.size < limits.machines) slow.set(machine, places);
      const { values, depth, entries, readMs: milliseconds, names: most } = limits;
      const reader = new ValueReader({ values, depth, entries, milliseconds, names: most, now }, mask, places);
      if (typeof context !== 'object' || context === null) {
        return { [soleFact]: reader.textOf(context, soleFact, limits.factChars) };
      }
      const facts: Projection = {};
      const names = reader.namesOf(context, '');
      if (names === null) return { [soleFact]: '(not listed)' };
      let left: number = limits.allChars;
      for (const [index, name] of names.entries()) {
        if (index >= limits.facts || left <= 0 || reader.isLate) {
          facts['…'] = `${names.length - index} more`;
          break;
        }
        const shown = shownName(name);
        const fact = factOf(reader, context, name, Math.min(left, limits.factChars));
        facts[shown] = fact;
        left -= shown.length + (typeof fact === 'string' ? fact.length : 0);
      }
      return facts;
    },
    whole(context, fact) {
      if (context === undefined) return null;
      const { wholeValues: values, wholeDepth: depth, wholeEntries: entries, wholeMs: milliseconds } = limits;
      const bounds = { values, depth, entries, milliseconds, names: Number.POSITIVE_INFINITY, now };
      const reader = new ValueReader(bounds, mask, new Set());
      if (typeof context !== 'object' || context === null) {
        return fact === soleFact ? reader.textOf(context, soleFact, limits.wholeChars) : null;
      }
      const name = reader.namesOf(context, '')?.find((each) => shownName(each) === fact);
      if (name === undefined) return null;
      const read = reader.property(context, name, name);
      return 'text' in read ? read.text : reader.textOf(read.value, name, limits.wholeChars);
    },
  };
}

/** Names that the format of records refuses. */
const refusedNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

const shownName = (name: string): string => (refusedNames.has(name) ? `"${name}"` : cut(name, limits.nameChars));

/** Numbers that JSON has. */
const isPlainNumber = (value: unknown): value is number => Number.isFinite(value) && !Object.is(value, -0);

/** Keeps the type of a fact if a record can contain it; otherwise returns its text. */
function factOf(reader: ValueReader, context: object, name: string, chars: number): Projection[string] {
  const read = reader.property(context, name, name);
  if ('text' in read) return read.text;
  const { value } = read;
  if (typeof value === 'string') return value.length > chars ? `${value.slice(0, chars - 1)}…` : value;
  if (isPlainNumber(value) || typeof value === 'boolean' || value === null) return value;
  const time = timeOf(value);
  return time ?? reader.textOf(value, name, chars);
}

/** Copies a date; undefined for other values and for unreadable dates. */
function timeOf(value: unknown): Date | undefined {
  try {
    const at = value instanceof Date ? Date.prototype.getTime.call(value) : Number.NaN;
    return Number.isNaN(at) ? undefined : new Date(at);
  } catch {
    return undefined;
  }
}
