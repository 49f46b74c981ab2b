import t from 'tap';
import { emptySum, type FleetQuery, type FleetRow, fleetPage } from '../../src/hub/routes/fleet-list.ts';

const row = (host: string | null, path: string, more: Partial<FleetRow['record']> = {}): FleetRow => ({
  host,
  record: {
    ...{ canonicalWorkspacePath: path, state: 'stopped', phase: 'stopped', health: 'unknown', problems: [] },
    ...{ exitCode: null, pendingApprovals: 0, costUsd: null },
    ...more,
  },
});
const all: FleetQuery = {
  ...{ state: '', group: '', words: [], path: null, isByAttention: false, after: '', limit: 200 },
};
const running = { state: 'running', phase: 'running' } as const;
const rows = [
  row('build', '/b', running),
  row(null, '/z', { ...running, costUsd: 1 }),
  row(null, '/a'),
  row('build', '/a', { ...running, pendingApprovals: 2 }),
  row(null, '/m', { ...running, health: 'failing' }),
];
const pathsOf = (query: Partial<FleetQuery>) =>
  fleetPage(rows, [], { ...all, ...query }).rows.map(
    ({ host, record }) => `${host ?? ''}:${record.canonicalWorkspacePath}`,
  );

t.test('rows are sorted by host and path, or those first that need a person', async (t) => {
  t.same(pathsOf({}), [':/a', ':/m', ':/z', 'build:/a', 'build:/b']);
  t.same(pathsOf({ isByAttention: true }), ['build:/a', ':/m', ':/z', 'build:/b', ':/a']);
});

t.test('filters select by group, state, words and path', async (t) => {
  t.same(pathsOf({ group: 'trouble' }), [':/m']);
  t.same(pathsOf({ group: 'stopped' }), [':/a']);
  t.same(pathsOf({ state: 'running', words: ['build', '/b'] }), ['build:/b']);
  t.same(pathsOf({ path: '/a' }), [':/a', 'build:/a']);
});

t.test('sums count every row of a machine without filters', async (t) => {
  const sums = [emptySum(null), emptySum('build')];
  fleetPage(rows, sums, { ...all, group: 'ready' });
  t.same(sums, [
    { host: null, workspaces: 3, trouble: 1, ready: 1, asleep: 0, stopped: 1, waiting: 0, costUsd: 1 },
    { host: 'build', workspaces: 2, trouble: 0, ready: 2, asleep: 0, stopped: 0, waiting: 2, costUsd: 0 },
  ]);
});

t.test('pages of 10,000 rows have each row once, in order', async (t) => {
  const many = Array.from({ length: 10_000 }, (_, index) => row(null, `/w/${index}`, index % 3 === 0 ? running : {}));
  const seen: string[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const page: ReturnType<typeof fleetPage> = fleetPage(many, [], {
      ...all,
      isByAttention: true,
      after,
      limit: 1_000,
    });
    seen.push(...page.rows.map(({ record }) => record.canonicalWorkspacePath));
    after = page.next;
  }
  t.equal(seen.length, 10_000);
  t.equal(new Set(seen).size, 10_000);
});
