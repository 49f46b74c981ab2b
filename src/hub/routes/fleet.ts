import type { Fleet, Host } from '../../hosts/index.ts';
import { type AnyRoute, json, type Reply, type RequestContext, sse } from '../../http/index.ts';
import { hostPagePath, InboxAnswer, workspacePageShape } from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import type { Inbox } from '../inbox/index.ts';
import { onHost } from '../pages/index.ts';
import type { Registry } from '../registry.ts';
import { onRemote } from '../remote.ts';
import { hubRoutes } from '../route-table.ts';
import type { ThreadLists } from '../threads.ts';
import type { Bind } from './bind.ts';

export interface FleetRoutesOptions {
  readonly fleet: Fleet;
  readonly registry: Registry;
  readonly inbox: Inbox;
  readonly threadLists: ThreadLists;
}

type LastEventId = (context: RequestContext<never>) => string | undefined;

/** Fields by which rows of all machines are sorted and filtered. */
interface Row {
  readonly host: string | null;
  readonly canonicalWorkspacePath: string;
  readonly state: string;
}

const defaultRows = 200;
const maxRows = 1_000;
const defaultThreads = 100;
const maxThreads = 200;
const maxText = 200;

/** Sort key of a row: its host, then its path. Host names never contain a tilde. */
const keyOf = ({ host, canonicalWorkspacePath }: Row): string => `${host ?? ''}~${canonicalWorkspacePath}`;

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

/** Routes that combine this Hub with all hosts. A host that is not connected is listed with its last known state and time. */
export function fleetRoutes(
  bind: Bind,
  { fleet, registry, inbox, threadLists }: FleetRoutesOptions,
  lastEventId: LastEventId,
): AnyRoute[] {
  /** Rows of one host, with the paths of its pages on this Hub. */
  const rowsOf = (host: Host) =>
    (host.seen?.records ?? []).map((record) => ({
      ...record,
      page: record.page === null ? null : pathHere(host.name, record.page),
      ...{ host: host.name, asOf: host.asOf },
    }));

  async function list({ query }: RequestContext<never>): Promise<Reply> {
    const only = query.get('host');
    const hosts = only === null ? fleet.hosts() : [onHost(() => fleet.byName(only))];
    const own = only === null ? await registry.listAll() : [];
    const state = textIn(query, 'state');
    const text = textIn(query, 'q').toLowerCase();
    const after = textIn(query, 'after', 5_000);
    const limit = limitIn(query, defaultRows, maxRows);
    const rows = [...own.map((record) => ({ ...record, host: null, asOf: null })), ...hosts.flatMap(rowsOf)]
      .filter(
        (row) =>
          (state === '' || row.state === state) &&
          (text === '' || row.canonicalWorkspacePath.toLowerCase().includes(text)) &&
          keyOf(row) > after,
      )
      .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const next = last !== undefined && rows.length > shown.length ? keyOf(last) : null;
    return json(200, { appServers: shown, hosts: hosts.map((host) => host.record()), next });
  }

  function listInbox(): Reply {
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
