import { EventLog } from '../events/index.ts';
import type { SseSource } from '../http/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type AnyHubEvent,
  defaults,
  type HubEvent,
  type HubEventData,
  type HubEventKind,
  type RecentEvent,
} from '../protocol/index.ts';

/** The Hub's event stream (specification §6.1). Its first event is `hub.started`; earlier ones wait for it. */
export interface HubEvents {
  readonly source: SseSource;
  publish<K extends HubEventKind>(kind: K, workspacePath: string | null, data: HubEventData<K>): void;
  /** Events that are held, oldest first, with their ids. */
  recent(): readonly RecentEvent[];
  /** How many events of each kind were published so far. */
  counts(): ReadonlyMap<string, number>;
  subscribers(): number;
  /** Delivers the pending events and ends every reader's stream. */
  end(): void;
}

type AnyRecord = {
  readonly kind: string;
  readonly at: string;
  readonly workspacePath: string | null;
  readonly data: unknown;
};

/** @param onEvent called with every event and its id, after it is stored */
export function createEvents(logger: Logger, onEvent?: (id: string, event: AnyHubEvent) => void): HubEvents {
  const counts = new Map<string, number>();
  /** Events before `hub.started`: agent servers are adopted while the Hub still opens its address. */
  let early: (() => void)[] | null = [];
  const log = new EventLog<AnyRecord>({
    maxEvents: defaults.sse.ringEvents,
    maxBytes: defaults.sse.ringBytes,
    gap(gap) {
      counts.set('hub.gap', (counts.get('hub.gap') ?? 0) + 1);
      return { kind: 'hub.gap', at: new Date().toISOString(), workspacePath: null, data: gap };
    },
    onSubscriberError: (error) => logger.error('an event subscriber failed', { error }),
  });
  function append<K extends HubEventKind>(kind: K, workspacePath: string | null, data: HubEventData<K>): void {
    const record = { kind, at: new Date().toISOString(), workspacePath, data } as HubEvent;
    const id = log.append(record);
    onEvent?.(id, record);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }

  return {
    source: log,
    publish(kind, workspacePath, data) {
      if (early !== null && kind !== 'hub.started') {
        early.push(() => append(kind, workspacePath, data));
        return;
      }
      append(kind, workspacePath, data);
      for (const publishLater of early ?? []) publishLater();
      early = null;
    },
    recent: () => log.recent(defaults.sse.ringEvents).map(({ id, event }) => ({ id, ...(event as AnyHubEvent) })),
    counts: () => counts,
    subscribers: () => log.subscribers,
    end: () => log.end(),
  };
}
