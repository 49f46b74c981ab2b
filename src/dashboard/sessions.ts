import * as v from 'valibot';
import { HttpError, json, type Reply, type RequestContext } from '../http/index.ts';
import {
  type DashboardSession,
  defaults,
  type FoundTexts,
  type SessionPage,
  type TraceSession,
} from '../protocol/index.ts';
import type { Caller } from './access.ts';
import type { DashboardOptions } from './options.ts';
import { parseQuery, searchText, shortText, wholeNumber } from './query.ts';

const { sessionsPerPage, maxSessionsPerPage } = defaults.dashboard;

/** A session with its calculated fields. */
export function dashboardSession(session: TraceSession, isRunning: boolean): DashboardSession {
  return {
    ...session,
    durationMs: Math.max(0, Date.parse(session.lastActivityAt) - Date.parse(session.startedAt)),
    totalTokens: session.inputTokens + session.outputTokens,
    isRunning,
  };
}

const listQuery = {
  limit: v.optional(wholeNumber(1, maxSessionsPerPage), String(sessionsPerPage)),
  cursor: v.optional(shortText),
  q: v.optional(searchText),
  status: v.optional(v.picklist(['running', 'failed'], 'running or failed')),
};

/** `GET /DashBoard/api/sessions`. */
export function sessionList({ traces, flush, isRunning }: DashboardOptions): (context: RequestContext) => Reply {
  return ({ query }) => {
    const { limit, cursor, q, status } = parseQuery(query, listQuery);
    flush?.();
    const found = traces.sessions({
      limit: limit + 1,
      ...(cursor !== undefined && { before: cursor }),
      ...(q !== undefined && q !== '' && { text: q }),
      ...(status !== undefined && { status }),
    });
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    const page: SessionPage = {
      sessions: shown.map((session) => dashboardSession(session, isRunning(session))),
      ...(found.length > limit && last && { next: last.sessionKey }),
    };
    return json(200, page);
  };
}

const textsQuery = { q: searchText, limit: v.optional(wholeNumber(1, maxSessionsPerPage), '20') };

/** `GET /dashboard/api/texts`. */
export function textSearch({ traces }: DashboardOptions): (context: RequestContext) => Reply {
  return ({ query }) => {
    const { q, limit } = parseQuery(query, textsQuery);
    const found: FoundTexts = { texts: [...traces.texts(q, limit)] };
    return json(200, found);
  };
}

/** The two routes that delete. Every deletion is sent to the readers of the stream, and logged. */
export function sessionDeletion(options: DashboardOptions, stream: { deleted(sessionKey: string | null): void }) {
  const { deletion, logger } = options;

  function possible() {
    if (deletion) return deletion;
    const reason = options.readOnly ?? 'Nothing can be deleted here.';
    throw new HttpError(403, 'readOnly', reason, null);
  }

  /** `DELETE /api/sessions/{sessionKey}`. */
  function one({ params, principal, remoteAddress }: RequestContext<Caller>): Reply {
    const { sessionKey = '' } = params;
    const { running, delete: remove } = possible();
    if (running().has(sessionKey)) {
      throw new HttpError(409, 'sessionActive', 'A turn of this session is running: interrupt it first.', {
        sessionKey,
      });
    }
    if (!remove(sessionKey)) throw new HttpError(404, 'sessionNotFound', 'There is no such session.', { sessionKey });
    logger.info('session deleted', { sessionKey, by: principal, remoteAddress });
    stream.deleted(sessionKey);
    return json(200, { deleted: true, sessionKey });
  }

  /** `DELETE /api/sessions`. */
  function all({ principal, remoteAddress }: RequestContext<Caller>): Reply {
    const { running, deleteAll } = possible();
    const keep = [...running()];
    const deleted = deleteAll(keep);
    logger.info('all sessions deleted', { deleted, kept: keep.length, by: principal, remoteAddress });
    stream.deleted(null);
    return json(200, { deleted, kept: keep });
  }

  return { one, all };
}
