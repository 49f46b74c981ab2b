import t from 'tap';
import { rankOf, scattered } from '../../src/lib/index.ts';
import type { App } from '../../src/ui/app/app.ts';
import { workspaceFindings } from '../../src/ui/shell/workspace-findings.ts';

const workspaces = [
  {
    canonicalWorkspacePath: '/w/site',
    displayName: 'site',
    state: 'running',
    phase: 'running',
    page: null,
    host: null,
  },
  {
    canonicalWorkspacePath: '/w/shop',
    displayName: 'shop',
    state: 'stopped',
    phase: 'stopped',
    page: null,
    host: null,
  },
] as const;

/** An app that records the acts of a finding. */
function app() {
  const done: unknown[] = [];
  const made = {
    router: { go: (place: unknown) => done.push(place) },
    server: { kind: 'hub' },
    hub: { send: async (...request: unknown[]) => done.push(request) },
    toast: ({ text }: { readonly text: string }) => done.push(text),
  };
  return { done, app: made as unknown as App };
}

const titles = (query: string) => workspaceFindings(app().app, workspaces, query).map(({ title }) => title);

t.test(
  'regression: the palette finds the actions of workspaces, those first whose title begins with the query',
  async (t) => {
    t.same(titles('restart'), ['Restart site'], 'only what runs');
    t.same(titles('start'), ['Start shop', 'Restart site']);
    t.same(titles('stop site'), ['Stop site'], 'only what runs can be stopped');
    t.same(titles('open chart'), ['Open the chart of site', 'Open the chart of shop']);
    t.same(titles('shop'), ['shop', 'Start shop', 'Open the chart of shop']);
    t.same(titles('nothing'), []);
  },
);

t.test('titles rank by their whole text, whole words, beginnings of words, then scattered letters', async (t) => {
  t.equal(rankOf('infra', 'infra'), 0);
  t.equal(rankOf('infra restart', 'Restart infra'), 1);
  t.equal(rankOf('res inf', 'Restart infra'), 2);
  t.equal(rankOf('infra', 'Switch the density: compact, comfortable'), scattered);
  t.equal(rankOf('–', 'Restart infra'), scattered);
});

t.test('restart asks the Hub, stop asks the user first', async (t) => {
  const { done, app: made } = app();
  const [restart] = workspaceFindings(made, workspaces, 'restart site');
  restart?.run();
  await Promise.resolve();
  t.same(done.slice(0, 2), [
    { view: 'actors', path: ['/w/site'], query: {} },
    ['POST', '/v1/appservers/restart', { workspacePath: '/w/site' }],
  ]);
  done.length = 0;
  const [stop] = workspaceFindings(made, workspaces, 'stop site');
  stop?.run();
  t.same(done, [{ view: 'actors', path: ['/w/site'], query: { ask: 'stop' } }]);
});
