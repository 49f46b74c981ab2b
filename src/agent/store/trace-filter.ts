import type { TraceEvent } from '../../protocol/index.ts';
import type { EventRange } from '../thread-store.ts';
import { folded } from './rows.ts';

/** Filters on the text of an event, which has no column. */
export type ContentFilter = Pick<EventRange, 'tool' | 'turnId' | 'text'>;

/** SQL that few events pass which are not meant; `isMeant` has the last word. */
export interface Sieve {
  readonly sql: string;
  readonly values: readonly string[];
  readonly isMeant: (event: TraceEvent) => boolean;
}

/**
 * Makes the test for the events of a filter: a fast one on their JSON, where quotes are escaped, then an exact one.
 * Undefined: all of them.
 */
export function sieveOf({ tool, turnId, text = '' }: ContentFilter): Sieve | undefined {
  const members = Object.entries({ tool, turnId }).filter(([, value]) => value !== undefined);
  if (members.length === 0 && text === '') return undefined;
  const needle = folded(text);
  return {
    sql: [
      ...members.map(() => 'AND instr(json, ?) > 0'),
      ...(text === '' ? [] : ['AND instr(folded(json), ?) > 0']),
    ].join(' '),
    values: [
      ...members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`),
      ...(text === '' ? [] : [folded(JSON.stringify(text).slice(1, -1))]),
    ],
    isMeant: (event) =>
      (tool === undefined || event.tool === tool) &&
      (turnId === undefined || event.turnId === turnId) &&
      (text === '' || hasText([event.tool, event.callId, event.data], needle)),
  };
}

function hasText(value: unknown, needle: string): boolean {
  if (typeof value === 'string') return folded(value).includes(needle);
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((each) => hasText(each, needle));
}
