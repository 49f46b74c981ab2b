import { messageOf } from '../../lib/browser.ts';
import type { AppServerRecord } from '../../protocol/index.ts';
import type { App } from '../app/app.ts';
import type { Finding } from '../app/commands.ts';

const most = 12;

type Named = Pick<AppServerRecord, 'canonicalWorkspacePath' | 'displayName' | 'state'>;

/** Action on a workspace in the palette of the Hub. */
interface Doing {
  readonly id: string;
  readonly title: (name: string) => string;
  /** Further search words. */
  readonly words: string;
  readonly isPossible: (isDown: boolean) => boolean;
  readonly run: (app: App, workspace: Named) => void;
}

const openChart = (app: App, { canonicalWorkspacePath: path }: Named, query: Record<string, string> = {}) =>
  app.router.go({ view: 'actors', path: [path], query });

const send = (action: 'ensure' | 'restart', done: string) => (app: App, workspace: Named) => {
  openChart(app, workspace);
  const { canonicalWorkspacePath: workspacePath, displayName } = workspace;
  app.api.send('POST', `/v1/appservers/${action}`, { workspacePath }).then(
    () => app.toast({ text: `${displayName}: ${done}.`, ms: 2_500 }),
    (error: unknown) => app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 }),
  );
};

const doings: readonly Doing[] = [
  { id: 'open', title: (name) => name, words: 'open workspace', isPossible: () => true, run: openChart },
  {
    id: 'start',
    title: (name) => `Start ${name}`,
    words: 'run ensure agent server',
    isPossible: (isDown) => isDown,
    run: send('ensure', 'started'),
  },
  {
    id: 'restart',
    title: (name) => `Restart ${name}`,
    words: 'agent server',
    isPossible: () => true,
    run: send('restart', 'restarted'),
  },
  {
    id: 'stop',
    title: (name) => `Stop ${name}`,
    words: 'end agent server',
    isPossible: (isDown) => !isDown,
    // Asks there before it stops anything.
    run: (app, workspace) => openChart(app, workspace, { ask: 'stop' }),
  },
  {
    id: 'chart',
    title: (name) => `Open the chart of ${name}`,
    words: 'statechart actor',
    isPossible: () => true,
    run: openChart,
  },
];

/** Workspaces and their actions of which every word of the query is a part; a beginning of the title counts most. */
export function workspaceFindings(app: App, workspaces: readonly Named[], query: string): readonly Finding[] {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  const lines = workspaces.flatMap((workspace) => {
    const { canonicalWorkspacePath: path, displayName, state } = workspace;
    const isDown = state === 'stopped' || state === 'exited';
    return doings
      .filter(({ isPossible }) => isPossible(isDown))
      .flatMap(({ id, title, words, run }) => {
        const text = title(displayName);
        const all = `${text} ${words} ${path}`.toLowerCase();
        if (!wanted.every((word) => all.includes(word))) return [];
        const rank = text.toLowerCase().startsWith(wanted[0] ?? '') ? 0 : 1;
        return [
          {
            rank,
            finding: { id: `workspace:${id}:${path}`, title: text, detail: path, run: () => run(app, workspace) },
          },
        ];
      });
  });
  return lines
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ finding }) => finding);
}
