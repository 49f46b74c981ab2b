import type { EventPage } from '../../../protocol/index.ts';
import { ApiError } from '../../app/api.ts';
import type { App } from '../../app/app.ts';
import { paths } from './paths.ts';

/** One page of a session's events; empty and without `session` when the session has no record. Rejects with `ApiError`. */
export async function eventPageOf(
  app: App,
  sessionKey: string,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal,
): Promise<EventPage> {
  try {
    return await app.api.get<EventPage>(paths.events(sessionKey, query), signal);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'sessionNotFound') return { events: [] };
    throw error;
  }
}
