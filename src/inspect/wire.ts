import superjson from 'superjson';
import type { InspectionRecord } from '../protocol/index.ts';

/** How superjson writes a key into the path of a value. */
const escaped = (name: string): string => name.replaceAll('\\', '\\\\').replaceAll('.', '\\.');

/** JSON has no word for these; superjson does. */
const isOdd = (value: unknown): boolean =>
  typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0));

/**
 * A record as superjson writes it. Its shape is known, so nothing has to be searched for dates: that makes it several
 * times faster, and a new viewer of a thousand actors is not waited for.
 */
export function wireOf(record: InspectionRecord): string {
  const values: Record<string, readonly ['Date']> = { at: ['Date'] };
  if (record.type === 'actor') {
    values['since'] = ['Date'];
    if (record.endedAt) values['endedAt'] = ['Date'];
  }
  if ('projection' in record) {
    for (const [name, value] of Object.entries(record.projection)) {
      if (value instanceof Date) values[`projection.${escaped(name)}`] = ['Date'];
      else if (isOdd(value)) return superjson.stringify(record);
    }
  }
  return `{"json":${JSON.stringify(record)},"meta":${JSON.stringify({ values, v: 1 })}}`;
}
