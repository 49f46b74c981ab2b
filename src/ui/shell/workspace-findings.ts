import { messageOf } from '../../lib/browser.ts';
import { hostedName } from '../../protocol/browser.ts';
import type { FleetRecord } from '../../protocol/index.ts';
import type { App } from '../app/app.ts';
import type { Finding } from '../app/commands.ts';
import { href, type To } from '../app/router.ts';
import { type Action, actionsOn, actWords, sendAct } from '../parts/workspace-acts.ts';

const most = 12;

type Named = Pick<FleetRecord, 'canonicalWorkspacePath' | 'displayName' | 'state' | 'phase' | 'page' | 'host'>;

/** Entry of the palette for one workspace. */
interface PaletteAction {
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

function paletteActions(app: App, workspace: Named): readonly PaletteAction[] {
  const { canonicalWorkspacePath: path, displayName, state, phase, page, host } = workspace;
  const name = hostedName(host, displayName);
  // The charts of a host are on its page.
  const chart = (query = {}) =>
    host === null
      ? openOnHub(app, { view: 'actors', path: [path], query })
      : openOnHub(app, { view: 'overview', query: { workspace: hostedName(host, path) } });
  const send = (action: keyof typeof done) => {
    if (app.server.kind === 'hub') chart();
    sendAct(app, action, workspace).then(
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
    ...(host === null
      ? [{ id: 'chart', title: `Open the chart of ${name}`, words: 'statechart actor', run: () => chart() }]
      : []),
  ];
}

/** Words of a query that may be part of a path. Leaves out beginnings of names of acts. */
export function pathWords(query: string): string {
  const acts = Object.entries(furtherWords).flatMap(([action, words]) =>
    `${actWords[action as Action].label} ${words} open workspace chart statechart actor of the`
      .toLowerCase()
      .split(' '),
  );
  const given = query.toLowerCase().split(/\s+/);
  return given.filter((word) => !acts.some((act) => act.startsWith(word))).join(' ');
}

/** Workspaces and their acts of which every word of the query is a part; a beginning of the title counts most. */
export function workspaceFindings(app: App, workspaces: readonly Named[], query: string): readonly Finding[] {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  return workspaces
    .flatMap((workspace) => {
      const path = hostedName(workspace.host, workspace.canonicalWorkspacePath);
      return paletteActions(app, workspace).flatMap(({ id, title, words, run }) => {
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
