import { duration } from '../../parts/format.ts';
import type { Fact } from './diff.ts';

/** A fact for people. Numbers whose name ends in `Ms` are durations. */
export function factText(name: string, value: Fact): string {
  if (value === null) return '–';
  if (value instanceof Date) return value.toLocaleString();
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return name.endsWith('Ms') && typeof value === 'number' ? duration(value) : String(value);
}
