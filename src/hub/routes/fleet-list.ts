/** Filters, order, pages and sums of the list of all machines. */
import {
  type AppServerRecord,
  type FleetGroup,
  type FleetSum,
  stateWordOf,
  toneOfState,
} from '../../protocol/index.ts';

/** Record of this machine or of a host. Words of a host may be unknown here. */
interface ListedRecord
  extends Pick<AppServerRecord, 'canonicalWorkspacePath' | 'exitCode' | 'pendingApprovals' | 'costUsd'> {
  readonly state: string;
  readonly phase: string;
  readonly health: string;
  readonly problems: readonly { readonly code: string }[];
}

/** Row of the list. @see FleetRecord */
export interface FleetRow {
  /** Name of the host; null for this machine. */
  readonly host: string | null;
  readonly record: ListedRecord;
}

export interface FleetQuery {
  /** Empty: any state. */
  readonly state: string;
  /** Empty: any group. */
  readonly group: FleetGroup | '';
  /** Words that a host and path must contain, in lower case. */
  readonly words: readonly string[];
  /** Exact path; null: any. */
  readonly path: string | null;
  readonly isByAttention: boolean;
  /** Value of `next` of the page before; empty: the first page. */
  readonly after: string;
  readonly limit: number;
}

/** Pending requests come first, then trouble. */
const ranks = { danger: '1', warn: '2', progress: '3', ok: '4', neutral: '5' } as const;

const atRest: ReadonlySet<string> = new Set(['stopped', 'ended']);

function groupOf(word: string, tone: keyof typeof ranks): FleetGroup | null {
  if (tone === 'danger' || tone === 'warn') return 'trouble';
  if (word === 'ready' || word === 'asleep') return word;
  return atRest.has(word) ? 'stopped' : null;
}

interface Attention {
  readonly tone: keyof typeof ranks;
  readonly group: FleetGroup | null;
}

/** Tone and group of each record. A record never changes: a new state is a new record. */
const attentions = new WeakMap<ListedRecord, Attention>();

function attentionOf(record: ListedRecord): Attention {
  const known = attentions.get(record);
  if (known) return known;
  const word = stateWordOf(record);
  const tone = toneOfState(word);
  const attention = { tone, group: groupOf(word, tone) };
  attentions.set(record, attention);
  return attention;
}

/** Empty sum of a machine. @param host null: this machine */
export const emptySum = (host: string | null): FleetSum => ({
  ...{ host, workspaces: 0, trouble: 0, ready: 0, asleep: 0, stopped: 0, waiting: 0, costUsd: 0 },
});

/** Compares by code units, like `<`. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * One page of rows, and the sums of all rows. Filters do not change the sums. The mark after a host sorts before every character of a
 * host name, so this machine is first.
 *
 * @param sums one for each host of `rows`; the function adds to them
 */
export function fleetPage<T extends FleetRow>(
  rows: readonly T[],
  sums: readonly FleetSum[],
  { state, group, words, path, isByAttention, after, limit }: FleetQuery,
): { readonly rows: readonly T[]; readonly next: string | null } {
  const byHost = new Map(sums.map((sum) => [sum.host, sum]));
  const found: { readonly row: T; readonly key: string }[] = [];
  for (const row of rows) {
    const { host, record } = row;
    const { canonicalWorkspacePath, pendingApprovals } = record;
    const { tone, group: own } = attentionOf(record);
    const sum = byHost.get(host);
    if (sum) {
      sum.workspaces += 1;
      sum.waiting += pendingApprovals;
      sum.costUsd += record.costUsd ?? 0;
      if (own) sum[own] += 1;
    }
    if ((state !== '' && record.state !== state) || (group !== '' && own !== group)) continue;
    if (path !== null && path !== canonicalWorkspacePath) continue;
    const place = `${host ?? ''}!${canonicalWorkspacePath}`;
    if (words.length > 0 && !contains(`${host ?? ''}:${canonicalWorkspacePath}`.toLowerCase(), words)) continue;
    const key = isByAttention ? `${pendingApprovals > 0 ? '0' : ranks[tone]}!${place}` : place;
    if (key > after) found.push({ row, key });
  }
  found.sort((a, b) => compare(a.key, b.key));
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const next = last !== undefined && found.length > shown.length ? last.key : null;
  return { rows: shown.map(({ row }) => row), next };
}

const contains = (text: string, words: readonly string[]): boolean => words.every((word) => text.includes(word));
