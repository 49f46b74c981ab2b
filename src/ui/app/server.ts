import {
  dashboardPaths,
  hostOfPage,
  hostPageShape,
  type PageView,
  type ProofRole,
  pageViews,
  workspacePageShape,
} from '../../protocol/browser.ts';
import type { PageInfo } from '../../protocol/index.ts';
import type { Api } from './api.ts';

/** Views of the review backend's page; the Hub and workspaces have the other views. */
export const reviewViews = ['queue', 'deliveries', 'sources'] as const;
export const viewNames = [...pageViews, ...reviewViews] as const;
export type ViewName = PageView | (typeof reviewViews)[number];

/** Facts about the server that the page belongs to. */
export interface Page extends Omit<PageInfo, 'kind' | 'views'> {
  readonly kind: PageInfo['kind'] | 'review' | 'inspector';
  readonly views: readonly ViewName[];
}

/** Differences between the servers that serve this page. */
export interface Server {
  readonly kind: Page['kind'];
  /** Prefix of each request path: `/w/<id>` or `/h/<host>/w/<id>` for the page of a workspace on the Hub, else empty. */
  readonly base: string;
  /** Machine of the workspace; null: the machine of the Hub that serves this page. */
  readonly host: string | null;
  /** Role in the server proof. */
  readonly role: ProofRole;
  /** Server name, shown where a workspace shows its path. */
  readonly name: string;
  /** View for an address that names none. */
  readonly firstView: ViewName;
  readonly readPage: (api: Api) => Promise<Page>;
  /** Path, from the root, of the page info of the server that serves the files of this page; null: the server of `readPage`. */
  readonly filesFrom: string | null;
  readonly streams: { readonly events: string; readonly inspect: string };
  /** Path of the charts of its machines. */
  readonly machines: string;
  readonly gate: {
    /** Explains how to get a token, and names the command. */
    readonly hint: string;
    readonly command: string;
    /** Command that shows or starts a server that does not answer. */
    readonly whenSilent: string;
  };
}

const ofTerminal = 'This command opens the page with a valid token:';
const ofWorkspace = 'In the workspace, this command opens the page with a valid token:';

/** Streams of the Hub: events of all machines, and actors of its own. */
export const hubStreams = { events: '/v1/fleet/events', inspect: '/v1/inspect' };

const servers: Readonly<Record<Exclude<Page['kind'], 'inspector'>, Server>> = {
  hub: {
    kind: 'hub',
    base: '',
    host: null,
    role: 'hub',
    name: 'Hub',
    firstView: 'now',
    readPage: (api) => api.get<PageInfo>('/v1/page'),
    filesFrom: null,
    streams: hubStreams,
    machines: '/v1/machines',
    gate: { hint: ofTerminal, command: 'oratorio inspect', whenSilent: 'oratorio list' },
  },
  workspace: {
    kind: 'workspace',
    base: '',
    host: null,
    role: 'dashboard',
    name: 'Workspace',
    firstView: 'overview',
    readPage: (api) => api.get<PageInfo>(dashboardPaths.pageInfo),
    filesFrom: null,
    streams: { events: `/dashboard${dashboardPaths.eventStream}`, inspect: dashboardPaths.inspect },
    machines: dashboardPaths.machines,
    gate: { hint: ofWorkspace, command: 'oratorio inspect . --open', whenSilent: 'oratorio list' },
  },
  review: {
    kind: 'review',
    base: '',
    host: null,
    role: 'backend',
    name: 'Reviews',
    firstView: 'queue',
    readPage: async (api) => {
      const { version } = await api.get<{ readonly version: string }>('/api/v1/status');
      return { kind: 'review', version, views: [...reviewViews, 'actors'] };
    },
    filesFrom: null,
    streams: { events: '/api/v1/events', inspect: '/api/v1/inspect' },
    machines: '/api/v1/machines',
    gate: {
      hint: 'Enter the service token of the review backend: Server.ServiceToken of its settings, or service.token in its state directory:',
      command: 'cat "${ORATORIO_STATE_ROOT:-${ORATORIO_HOME:-$HOME/.oratorio}/backend}/service.token"',
      whenSilent: 'oratorio backend',
    },
  },
};

/** The page of a workspace as the Hub serves it. Streams carry the id in their names, which tabs share. */
function onHub(base: string): Server {
  const { streams, ...workspace } = servers.workspace;
  return {
    ...workspace,
    base,
    host: hostOfPage(base),
    role: 'hub',
    filesFrom: '/v1/page',
    streams: { events: `${base}${streams.events}`, inspect: `${base}${streams.inspect}` },
  };
}

/** The server of this page, by the page's path. */
export function serverOf({ baseURI }: Pick<Document, 'baseURI'>): Server {
  const { pathname } = new URL(baseURI);
  const [host = ''] = hostPageShape.exec(pathname) ?? [];
  const [base] = workspacePageShape.exec(pathname.slice(host.length)) ?? [];
  if (base !== undefined) return onHub(`${host}${base}`);
  if (/^\/dashboard(\/|$)/i.test(pathname)) return servers.workspace;
  return /^\/review(\/|$)/i.test(pathname) ? servers.review : servers.hub;
}
