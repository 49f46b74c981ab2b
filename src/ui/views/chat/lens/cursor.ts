import type { Route, To } from '../../../app/router.ts';

/** Views of a conversation beside its messages, with their keys. */
export const lenses = {
  changes: { title: 'Changes', key: 'c' },
  trace: { title: 'Trace', key: 't' },
  chart: { title: 'Chart', key: 'h' },
  raw: { title: 'Raw', key: 'r' },
} as const;

export type LensName = keyof typeof lenses;
export const lensNames = Object.keys(lenses) as readonly LensName[];

/** Moment in the messages and every lens. Without a turn: the end of the conversation. */
export interface Cursor {
  readonly turn: string | undefined;
  /** Call of this turn. */
  readonly call: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number | undefined;
}

type Query = Route['query'];

/** Parses the lens in an address: `?lens=trace&turn=turn_001&call=call_1&at=1764000000000`. */
export const lensOf = ({ lens }: Query): LensName | null => lensNames.find((name) => name === lens) ?? null;

export function cursorOf({ turn, call, at }: Query): Cursor {
  const ms = at === undefined || at === '' ? Number.NaN : Number(at);
  return { turn, call: turn === undefined ? undefined : call, at: Number.isFinite(ms) ? ms : undefined };
}

/** Query parameters for a moment. */
export const queryOf = ({ turn, call, at }: Partial<Cursor>): Record<'turn' | 'call' | 'at', string | undefined> => ({
  ...{ turn, call },
  at: at === undefined ? undefined : String(Math.round(at)),
});

/** Address of a conversation with a lens at a moment. */
export const lensAt = (threadId: string, lens: LensName | null, cursor: Partial<Cursor> = {}): To => ({
  view: 'chat',
  path: [threadId],
  query: { lens: lens ?? undefined, ...queryOf(cursor) },
});

/** Applies a change of the cursor by a lens. The messages follow. */
export type MoveTo = (cursor: Partial<Cursor>) => void;
