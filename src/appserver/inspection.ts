import { type AnyRoute, type Authenticate, HttpError, json, sse, type WebSocketRoute } from '../http/index.ts';
import { loadCharts, withoutCredentials } from '../inspect/index.ts';
import { visible } from '../lib/index.ts';
import type { InputPart } from '../protocol/index.ts';
import type { Observatory } from './observatory.ts';

/** The actors of this process for clients with the token of its WebSocket. The dashboard shows them on its own listener. */
export function inspectionRoutes(observatory: Observatory, auth: Authenticate<unknown>): AnyRoute[] {
  return [
    { method: 'GET', path: '/v1/machines', auth, handler: async () => json(200, await loadCharts()) },
    {
      method: 'GET',
      path: '/v1/inspect',
      auth,
      deadlineMs: 0,
      async handler(context) {
        const lastEventId = context.header('last-event-id') ?? context.query.get('lastEventId') ?? undefined;
        const format = context.query.get('format');
        if (format !== null && format !== 'stately') {
          throw new HttpError(400, 'invalidRequest', 'format must be stately, or absent.', null);
        }
        return sse(await (format === null ? observatory.source() : observatory.stately()), lastEventId);
      },
    },
  ];
}

/** Inspection route for Stately's tools, which read a WebSocket. */
export const inspectionSocket = (observatory: Observatory, auth: Authenticate<unknown>): WebSocketRoute =>
  observatory.statelySocket('/v1/inspect/stately', auth);

/** Longest title of a turn, in characters. */
const longest = 60;
/** Text up to here is read: a prompt may be a whole file. */
const scanned = 1_000;

/**
 * Title of a turn in the inspector: the first words of its prompt on one line, without control and invisible characters, and
 * without credentials. Empty for a prompt without text.
 *
 * @param clean removes the secrets of the configuration
 */
export function turnTitle(input: readonly InputPart[], clean: (text: string) => string): string {
  const prompt = input.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ');
  const safe = withoutCredentials(clean(prompt.slice(0, scanned))) ?? '';
  const line = visible(safe.replace(/\s+/g, ' '), { multiline: false, strict: true, spell: () => '' }).trim();
  const characters = [...line];
  if (characters.length <= longest) return line;
  const start = characters.slice(0, longest - 1).join('');
  return `${start.includes(' ') ? start.slice(0, start.lastIndexOf(' ')) : start}…`;
}
