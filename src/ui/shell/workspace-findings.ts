import { messageOf } from '../../lib/browser.ts';
import type { AppServerRecord } from '../../protocol/index.ts';
import type { App } from '../app/app.ts';
import type { Finding } from '../app/commands.ts';
import { href, type To } from '../app/router.ts';
import { type Action, actionsOn, actWords } from '../parts/workspace-acts.ts';

const most = 12;

type Named = Pick<AppServerRecord, 'canonicalWorkspacePath' | 'displayName' | 'state' | 'phase' | 'page'>;

/** Act on a workspace in the palette. */
interface Doing {
  readonly id: string;
  readonly title: string;
  /** Further search words. */
  readonly words: string;
  readonly run: () => void;
}

/** Opens a view of the Hub, from the page of a workspace, too. */
export function openOnHub({ server, router }: Pick<App, 'server' | 'router'>, to: To): void {
  if (server.kind === 'hub') router.go(to);
  else location.assign(`/${href(to)}`);
}

const furtherWords: Readonly<Record<Action, string>> = {
  ensure: 'run ensure agent server',
  restart: 'agent server',
  stop: 'end agent server',
};
const done = { ensure: 'started', restart: 'restarted' } as const;

function doingsOf(app: App, workspace: Named): readonly Doing[] {
  const { canonicalWorkspacePath: path, displayName: name, state, phase, page } = workspace;
  const chart = (query = {}) => openOnHub(app, { view: 'actors', path: [path], query });
  const send = (action: keyof typeof done) => {
    if (app.server.kind === 'hub') chart();
    app.hub.send('POST', `/v1/appservers/${action}`, { workspacePath: path }).then(
      () => app.toast({ text: `${name}: ${done[action]}.`, ms: 2_500 }),
      (error: unknown) => app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 }),
    );
  };
  return [
    {
      ...{ id: 'open', title: name, words: 'open workspace' },
      run: () => (page === null ? chart() : location.assign(page)),
    },
    ...actionsOn({ state, isRetrying: phase === 'exited.backingOff' }).map((action) => ({
      ...{ id: action, title: `${actWords[action].label} ${name}`, words: furtherWords[action] },
      // The chart asks before it stops anything.
      run: () => (action === 'stop' ? chart({ ask: 'stop' }) : send(action)),
    })),
    { id: 'chart', title: `Open the chart of ${name}`, words: 'statechart actor', run: () => chart() },
  ];
}

/** Workspaces and their acts of which every word of the query is a part; a beginning of the title counts most. */
export function workspaceFindings(app: App, workspaces: readonly Named[], query: string): readonly Finding[] {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  return workspaces
    .flatMap((workspace) => {
      const { canonicalWorkspacePath: path } = workspace;
      return doingsOf(app, workspace).flatMap(({ id, title, words, run }) => {
        const all = `${title} ${words} ${path}`.toLowerCase();
        if (!wanted.every((word) => all.includes(word))) return [];
        const rank = title.toLowerCase().startsWith(wanted[0] ?? '') ? 0 : 1;
        return [{ rank, finding: { id: `workspace:${id}:${path}`, title, detail: path, run } }];
      });
    })
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ finding }) => finding);
}
