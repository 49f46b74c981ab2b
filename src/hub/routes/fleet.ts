import type { RecordAnswer } from '../../client/index.ts';
import type { Fleet, Host } from '../../hosts/index.ts';
import { type AnyRoute, json, type Reply, type RequestContext, sse } from '../../http/index.ts';
import {
  type AppServerRecord,
  fleetGroups,
  hostPagePath,
  InboxAnswer,
  workspacePageShape,
} from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import type { Inbox } from '../inbox/index.ts';
import { onHost } from '../pages/index.ts';
import type { Registry } from '../registry.ts';
import { onRemote } from '../remote.ts';
import { hubRoutes } from '../route-table.ts';
import type { ThreadLists } from '../threads.ts';
import type { Bind } from './bind.ts';
import { emptySum, type FleetQuery, fleetPage } from './fleet-list.ts';

export interface FleetRoutesOptions {
  readonly fleet: Fleet;
  readonly registry: Registry;
  readonly inbox: Inbox;
  readonly threadLists: ThreadLists;
}

type LastEventId = (context: RequestContext<never>) => string | undefined;

const defaultRows = 200;
const maxRows = 1_000;
const defaultThreads = 100;
const maxThreads = 200;
const maxText = 200;
const maxPath = 5_000;
const orders = ['path', 'attention'] as const;

/** Rest of a path after the id of its workspace: the page, with a place on it. A path with dots would lead out of it. */
const pageRest = /^\/(?:#[!-~]*)?$/;

/** Maps a path of a remote page to this Hub; null for any other path, so that a remote Hub can link only to its own pages. */
function pathHere(host: string, path: string): string | null {
  const [page] = workspacePageShape.exec(path) ?? [];
  return page !== undefined && pageRest.test(path.slice(page.length)) ? hostPagePath(host, path) : null;
}

function limitIn(query: URLSearchParams, fallback: number, max: number): number {
  const limit = Number(query.get('limit') ?? fallback);
  if (Number.isInteger(limit) && limit >= 1 && limit <= max) return limit;
  throw hubError('invalidRequest', `limit must be a whole number from 1 to ${max}.`);
}

function textIn(query: URLSearchParams, name: string, max = maxText): string {
  const text = query.get(name)?.trim() ?? '';
  if (text.length <= max) return text;
  throw hubError('invalidRequest', `${name} must have at most ${max} characters.`);
}

function wordIn<T extends string>(query: URLSearchParams, name: string, words: readonly T[]): T | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const word = words.find((each) => each === text);
  if (word === undefined) throw hubError('invalidRequest', `${name} must be one of: ${words.join(', ')}.`);
  return word;
}

/** Row of the list before its record is completed for the answer. */
type Row =
  | { readonly host: null; readonly record: AppServerRecord }
  | { readonly host: string; readonly asOf: string | null; readonly record: RecordAnswer };

const rowsOf = ({ name, asOf, seen }: Host): Row[] =>
  (seen?.records ?? []).map((record) => ({ host: name, asOf, record }));

/** Routes that combine this Hub with all hosts. A host that is not connected is listed with its last known state and time. */
export function fleetRoutes(
  bind: Bind,
  { fleet, registry, inbox, threadLists }: FleetRoutesOptions,
  lastEventId: LastEventId,
): AnyRoute[] {
  /** Completes a row for the answer. Only rows of the answer cost system calls. */
  async function shown(row: Row) {
    if (row.host === null) return { ...(await registry.inspected(row.record)), host: null, asOf: null };
    const { host, asOf, record } = row;
    return { ...record, page: record.page === null ? null : pathHere(host, record.page), host, asOf };
  }

  async function list({ query }: RequestContext<never>): Promise<Reply> {
    const only = query.get('host');
    const hosts = only === null ? fleet.hosts() : [onHost(() => fleet.byName(only))];
    const path = query.get('path');
    const wanted: FleetQuery = {
      state: textIn(query, 'state'),
      group: wordIn(query, 'group', fleetGroups) ?? '',
      words: textIn(query, 'q').toLowerCase().split(/\s+/).filter(Boolean),
      path: path === null ? null : textIn(query, 'path', maxPath),
      isByAttention: wordIn(query, 'order', orders) === 'attention',
      after: textIn(query, 'after', maxPath),
      limit: limitIn(query, defaultRows, maxRows),
    };
    await fleet.current();
    const own: Row[] = only === null ? registry.list().map((record) => ({ host: null, record })) : [];
    const sums = [...(only === null ? [emptySum(null)] : []), ...hosts.map(({ name }) => emptySum(name))];
    const { rows, next } = fleetPage([...own, ...hosts.flatMap(rowsOf)], sums, wanted);
    const appServers = await Promise.all(rows.map(shown));
    return json(200, { appServers, hosts: hosts.map((host) => host.record()), sums, next });
  }

  async function listInbox(): Promise<Reply> {
    await fleet.current();
    const own = inbox.list().map((item) => ({ ...item, host: null, asOf: null }));
    const others = fleet.hosts().flatMap((host) =>
      (host.seen?.inbox ?? []).map((item) => ({
        ...item,
        actionUrl: pathHere(host.name, item.actionUrl) ?? '/',
        ...{ host: host.name, asOf: host.asOf },
      })),
    );
    return json(200, [...own, ...others]);
  }

  async function answer(context: RequestContext<never>): Promise<Reply> {
    const { host = '', workspaceId = '', requestId = '' } = context.params;
    const given = await context.json(InboxAnswer);
    const { hub } = onHost(() => fleet.connected(host));
    const { signal } = context;
    return json(200, await onRemote(host, () => hub.answerInbox(workspaceId, requestId, given, { signal }), signal));
  }

  async function listThreads({ query }: RequestContext<never>): Promise<Reply> {
    const q = textIn(query, 'q');
    const limit = limitIn(query, defaultThreads, maxThreads);
    const [own, others] = await Promise.all([
      threadLists.list({ text: q, limit, includeArchived: false, forksOnly: false }),
      fleet.threads({ ...(q !== '' && { q }), limit }),
    ]);
    const lists = [{ host: null, list: own }, ...others];
    const threads = lists
      .flatMap(({ host, list }) =>
        (list?.threads ?? []).map((thread) => ({
          ...thread,
          actionUrl: host === null ? thread.actionUrl : (pathHere(host, thread.actionUrl) ?? '/'),
          host,
        })),
      )
      .sort((a, b) => (a.lastActiveAt > b.lastActiveAt ? -1 : 1));
    return json(200, {
      threads: threads.slice(0, limit),
      hasMore: threads.length > limit || lists.some(({ list }) => list?.hasMore === true),
      workspaces: lists.flatMap(({ host, list }) => (list?.workspaces ?? []).map((each) => ({ ...each, host }))),
      missing: others.flatMap(({ host, list: found }) => (found === null ? [host] : [])),
    });
  }

  return [
    bind(hubRoutes.listFleet, list),
    bind(hubRoutes.listFleetInbox, listInbox),
    bind(hubRoutes.answerFleetInbox, answer),
    bind(hubRoutes.listFleetThreads, listThreads),
    bind(hubRoutes.streamFleetEvents, (context) => sse(fleet.log, lastEventId(context))),
  ];
}
