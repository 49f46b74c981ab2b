import { messageOf, visible } from '../../../lib/browser.ts';
import { decisionWord, hostedName, isEdit, placeInWords } from '../../../protocol/browser.ts';
import type { FleetEvent, FleetInboxItem, InboxDecision, QuestionAnswer } from '../../../protocol/index.ts';
import { ApiError } from '../../app/api.ts';
import type { App } from '../../app/app.ts';
import { createListStore, type ListStore } from '../../app/resource.ts';
import type { StreamEvent } from '../../app/stream.ts';
import { clockTime } from '../../parts/time.ts';
import { closeNotice } from './notices/browser-push.ts';
import { type Group, rounds } from './rounds.ts';

/** Shown request. A request that is decided while the view is open stays, with its outcome. */
export interface InboxEntry {
  readonly item: FleetInboxItem;
  readonly outcome: string | null;
  /** Decision that is under way. */
  readonly sending: string | null;
  /** The list no longer has it, and no decision was reported. A host that connects again may list it again. */
  readonly isMissing?: boolean;
  /** Equal for the edits that a turn asks about at the same time. */
  readonly round: string;
}

/** Requests that are shown together. */
export interface InboxCard {
  readonly key: string;
  readonly entries: Group<InboxEntry>;
  /** Entries without a decision. */
  readonly open: readonly InboxEntry[];
}

export const cardsOf = (entries: readonly InboxEntry[]): readonly InboxCard[] =>
  rounds(
    entries,
    ({ item }) => item.request,
    ({ round }) => round,
  ).map((group) => ({
    key: keyOf(group[0].item),
    entries: group,
    open: group.filter(({ outcome }) => outcome === null),
  }));

/** Entries of new requests: an edit joins the edits of its turn that still wait. */
function entriesOf(items: readonly FleetInboxItem[], known: readonly InboxEntry[]): readonly InboxEntry[] {
  const turnOf = ({ host, workspaceId, request }: FleetInboxItem) => `${placeOf(host, workspaceId)}/${request.turnId}`;
  const waiting = new Map<string, string>();
  for (const { item, outcome, round } of known)
    if (outcome === null && isEdit(item.request)) waiting.set(turnOf(item), round);
  return items.map((item) => {
    const own = keyOf(item);
    const round = isEdit(item.request) ? (waiting.get(turnOf(item)) ?? own) : own;
    if (isEdit(item.request)) waiting.set(turnOf(item), round);
    return { item, outcome: null, sending: null, round };
  });
}

/** A workspace of a host may have the id of one of this machine. */
const placeOf = (host: string | null, workspaceId: string): string => hostedName(host, workspaceId);
export const keyOf = ({ host, workspaceId, request }: FleetInboxItem): string =>
  `${placeOf(host, workspaceId)}/${request.requestId}`;

interface Resolved extends Pick<FleetEvent, 'at' | 'host'> {
  readonly data: {
    readonly workspaceId: string;
    readonly requestId: string;
    readonly decision: string;
    readonly decidedBy: string;
  };
}

/** Requests of all workspaces: read at the start and after each change that the stream reports. */
export function createInbox(app: App) {
  const list: ListStore<readonly InboxEntry[]> = createListStore({
    live: app.hubLive,
    isConcerned: ({ event }) => event === 'inbox.added' || event.startsWith('host.'),
    // An agent waits for the answer on this card.
    gatherMs: 0,
    load: async (aborted) => {
      const items = await app.hub.get<readonly FleetInboxItem[]>('/v1/fleet/inbox', aborted);
      const waiting = new Map(items.map((item) => [keyOf(item), item]));
      const known = entries.peek() ?? [];
      const stale = known.map((entry) => {
        const item = waiting.get(keyOf(entry.item));
        if (item) return { ...entry, item, isMissing: false, ...(entry.isMissing && { outcome: null }) };
        return entry.outcome === null
          ? { ...entry, sending: null, isMissing: true, outcome: outcomeOf('cancel', 'agent', '', Date.now()) }
          : entry;
      });
      const seen = new Set(known.map(({ item }) => keyOf(item)));
      const added = items.filter((item) => !seen.has(keyOf(item)));
      return [...stale, ...entriesOf(added, stale)];
    },
  });
  const { data: entries, error } = list;

  function change(key: string, more: Partial<InboxEntry>): void {
    entries.value = entries.peek()?.map((entry) => (keyOf(entry.item) === key ? { ...entry, ...more } : entry)) ?? null;
  }

  function take(events: readonly StreamEvent[]): void {
    for (const { event, data } of events) {
      if (event !== 'inbox.resolved') continue;
      const { at, host, data: made } = JSON.parse(data) as Resolved;
      const key = `${placeOf(host, made.workspaceId)}/${made.requestId}`;
      change(key, {
        outcome: outcomeOf(made.decision, made.decidedBy, made.requestId, Date.parse(at)),
        sending: null,
      });
      closeNotice(key).catch((fault: unknown) => {
        error.value = messageOf(fault);
      });
    }
  }

  async function answerOne(
    item: FleetInboxItem,
    decision: string,
    given: QuestionAnswer | null,
  ): Promise<string | null> {
    const { host, workspaceId, request } = item;
    const key = keyOf(item);
    change(key, { sending: decision });
    let outcome: string | null = null;
    try {
      const path = `${host === null ? '/v1/inbox' : `/v1/fleet/inbox/${host}`}/${workspaceId}/${encodeURIComponent(request.requestId)}`;
      const made = await app.hub.send<InboxDecision>('POST', path, given ?? { decision });
      outcome = outcomeOf(made.decision, made.decidedBy, request.requestId, Date.now());
    } catch (fault) {
      const made = fault instanceof ApiError && fault.code === 'alreadyDecided' ? fault.details : null;
      if (made) outcome = outcomeOf(String(made['decision']), String(made['decidedBy']), request.requestId, Date.now());
      else app.toast({ text: messageOf(fault), tone: 'danger', ms: 10_000 });
    }
    change(key, { sending: null, outcome });
    return outcome;
  }

  return {
    entries,
    error,
    load: list.reload,
    start(): () => void {
      const stop = list.start();
      const leave = app.hubLive.listen('events', { onEvents: take });
      list.reload();
      return () => {
        leave();
        stop();
      };
    },
    /** Answers the requests of a card. Resolves with the outcome in words; null: an answer did not arrive. */
    async answer(
      asked: readonly InboxEntry[],
      decision: string,
      given: QuestionAnswer | null = null,
    ): Promise<string | null> {
      // The end of the turn decides the others.
      const answered = decision === 'cancel' ? asked.slice(0, 1) : asked;
      const outcomes = await Promise.all(answered.map(({ item }) => answerOne(item, decision, given)));
      return outcomes.includes(null) ? null : (outcomes.at(-1) ?? null);
    },
  };
}

export type InboxStore = ReturnType<typeof createInbox>;

/** `Allowed in the terminal` */
export function decisionWords(decision: string, decidedBy: string, requestId: string): string {
  if (decidedBy === 'agent' || decidedBy === 'policy') return 'Withdrawn: the agent no longer asks';
  if (decidedBy === 'timeout') return 'Declined: no answer in time';
  return `${decisionWord(decision, requestId)} ${visible(placeInWords(decidedBy), { multiline: false })}`;
}

/** `Allowed in the terminal, 12:03:04`. @param at milliseconds since the epoch */
export const outcomeOf = (decision: string, decidedBy: string, requestId: string, at: number): string =>
  `${decisionWords(decision, decidedBy, requestId)}, ${clockTime(at)}`;
