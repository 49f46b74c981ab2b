import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { pageFile, readResults, renderPage } from '../../bench/performance-page.ts';

t.test(
  'regression: docs/performance.md each section has a results file of a full run with the same figures',
  async (t) => {
    const page = readFileSync(pageFile, 'utf8');
    const results = readResults();
    t.ok(results.length > 0);
    t.equal(renderPage(page, results), page, 'run: node bench/performance-page.ts');
    const [, written = ''] = page.split('# Results\n');
    const titles = [...written.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
    t.same(
      titles,
      results.map(({ title }) => title),
    );
    for (const section of written.split(/^<!-- begin /m).slice(1)) {
      t.match(section, /^\| .* \|$/m, `${section.split('\n')[1]} has a table`);
      t.notMatch(section, '--quick');
    }
  },
);

const result = (benchmark: string, changes: object = {}) => ({
  benchmark,
  title: `Title of ${benchmark}`,
  command: `npm run bench -- ${benchmark}`,
  at: '2026-11-22T10:00:00.000Z',
  machine: { cpu: 'a CPU', cores: 2, memoryGiB: 4, node: 'v22.0.0', kernel: 'linux 6' },
  rounds: 5,
  tables: [
    {
      title: 'Rates',
      columns: ['server', 'rate'],
      rows: [
        ['ours', 1234567],
        ['theirs', null],
      ],
    },
  ],
  notes: ['A note.'],
  checks: [{ what: 'ours', measured: 0.9, atLeast: 1, unit: '', met: false }],
  ...changes,
});

t.test('a page has the sections of its results, in the order of the benchmarks, and no others', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-results-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const save = (name: string, content: object) => writeFileSync(join(directory, name), JSON.stringify(content));
  save('traces.json', result('traces'));
  save('hub-requests.json', result('hub-requests'));
  save('zeta.json', result('zeta'));
  save('page.local.json', result('page', { command: 'npm run bench -- --quick page' }));
  const page = renderPage('Intro.\n\n# Results\n\n## Old section\n\nstale\n', readResults(directory));
  t.match(page, /^Intro\.\n\n# Results\n\nWritten by/);
  t.same(
    [...page.matchAll(/^## (.+)$/gm)].map(([, title]) => title),
    ['Title of hub-requests', 'Title of traces', 'Title of zeta'],
  );
  t.match(page, '| ours   | 1.23 M |');
  t.match(page, '| theirs |      – |');
  t.match(page, 'SHORT  ours: 0.90 (target ≥ 1)');
  t.match(page, 'Measured 2026-11-22.');
  t.equal(renderPage(page, readResults(directory)), page, 'written twice is written once');
});

t.test('results of a quick run are refused', async (t) => {
  for (const changes of [{ command: 'npm run bench -- x --quick --rounds 5' }, { rounds: 1 }, { benchmark: 'y' }]) {
    const directory = mkdtempSync(join(tmpdir(), 'oratorio-results-'));
    t.teardown(() => rmSync(directory, { recursive: true }));
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'x.json'), JSON.stringify(result('x', changes)));
    t.throws(() => readResults(directory), JSON.stringify(changes));
  }
});
