import * as v from 'valibot';
import type { EventRange } from '../agent/index.ts';
import { HttpError, json, type Reply, type RequestContext } from '../http/index.ts';
import {
  defaults,
  type EventPage,
  type EventSummary,
  type RecentEvents,
  type TraceEvent,
  traceTypes,
} from '../protocol/index.ts';
import type { DashboardOptions } from './options.ts';
import { names, parseQuery, searchText, shortText, wholeNumber } from './query.ts';
import { dashboardSession } from './sessions.ts';

const { eventsPerPage, maxEventsPerPage, shortTextChars } = defaults.dashboard;

export type Bodies = 'short' | 'none' | 'full';

/** A word such as a status is not a text: lists without texts include it. */
const wordChars = 32;

/** An event as lists and streams have it. */
export function summaryOf(event: TraceEvent, bodies: Bodies): EventSummary {
  if (bodies === 'full') return event;
  const cutter = new Cutter(bodies === 'short' ? shortTextChars : wordChars, bodies === 'none');
  const data = cutter.cut(event.data) as TraceEvent['data'];
  return cutter.hasCut ? { ...event, data, isShortened: true } : event;
}

/** Shortens the texts of a value; returns the same value if none is too long. */
class Cutter {
  readonly #limit: number;
  readonly #isDropping: boolean;
  hasCut = false;

  constructor(limit: number, isDropping: boolean) {
    this.#limit = limit;
    this.#isDropping = isDropping;
  }

  cut(value: unknown): unknown {
    if (typeof value === 'string') return value.length > this.#limit ? this.#shortened(value) : value;
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => this.cut(each));
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.cut(each)]));
  }

  #shortened(text: string): string {
    this.hasCut = true;
    if (this.#isDropping) return '';
    const last = text.charCodeAt(this.#limit - 1);
    // Half a character would be none.
    return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? this.#limit - 1 : this.#limit)}…`;
  }
}

const largest = Number.MAX_SAFE_INTEGER;
const pageQuery = {
  after: v.optional(wholeNumber(0, largest)),
  before: v.optional(wholeNumber(0, largest)),
  limit: v.optional(wholeNumber(1, maxEventsPerPage), String(eventsPerPage)),
  types: v.optional(names(traceTypes)),
  tool: v.optional(shortText),
  turn: v.optional(shortText),
  q: v.optional(searchText),
  order: v.optional(v.picklist(['asc', 'desc'], 'asc or desc'), 'asc'),
  bodies: v.optional(v.picklist(['short', 'none', 'full'], 'short, none or full'), 'short'),
};

/** `GET …/sessions/{sessionKey}/events`. Answers 404 `sessionNotFound` for an unknown session. */
export function eventPage({ traces, flush, isRunning }: DashboardOptions): (context: RequestContext) => Reply {
  return ({ params, query }) => {
    const { after, before, limit, types, tool, turn, q, order, bodies } = parseQuery(query, pageQuery);
    const sessionKey = params['sessionKey'] ?? '';
    const range: EventRange = {
      limit,
      order,
      after: order === 'asc' ? after : before,
      ...(types && types.length > 0 && { types }),
      ...(tool !== undefined && { tool }),
      ...(turn !== undefined && { turnId: turn }),
      ...(q !== undefined && q !== '' && { text: q }),
    };
    // The cursor goes one way; the other bound only says where to stop.
    const until = order === 'asc' ? before : after;
    flush?.();
    const session = traces.session(sessionKey);
    if (!session) throw new HttpError(404, 'sessionNotFound', 'There is no such session.', { sessionKey });
    const { events, next } = traces.events(sessionKey, range);
    const wanted =
      until === undefined ? events : events.filter(({ id }) => (order === 'asc' ? id < until : id > until));
    const hasMore = next !== undefined && wanted.length === events.length;
    const page: EventPage = {
      session: dashboardSession(session, isRunning(session)),
      events: wanted.map((event) => summaryOf(event, bodies)),
      ...(hasMore && { next }),
    };
    return json(200, page);
  };
}

const recentQuery = {
  before: v.optional(wholeNumber(0, largest)),
  limit: v.optional(wholeNumber(1, maxEventsPerPage), String(eventsPerPage)),
};

/** `GET /dashboard/api/events?before=&limit=`: events of all sessions, newest first. */
export function recentEvents({ traces, flush }: DashboardOptions): (context: RequestContext) => Reply {
  return ({ query }) => {
    const { before, limit } = parseQuery(query, recentQuery);
    flush?.();
    const events = traces.recent(limit + 1, before);
    const shown = events.slice(0, limit);
    const next = events.length > limit ? shown.at(-1)?.id : undefined;
    const page: RecentEvents = {
      events: shown.map((event) => summaryOf(event, 'short')),
      ...(next !== undefined && { next }),
    };
    return json(200, page);
  };
}

/** `GET …/sessions/{sessionKey}/events/{id}`: the whole of one event. */
export function singleEvent({ traces }: DashboardOptions): (context: RequestContext) => Reply {
  return ({ params }) => {
    const { sessionKey = '', id = '' } = params;
    const event = /^\d{1,15}$/.test(id) ? traces.event(sessionKey, Number(id)) : undefined;
    if (!event) throw new HttpError(404, 'eventNotFound', 'This session has no such event.', { sessionKey, id });
    return json(200, event);
  };
}
