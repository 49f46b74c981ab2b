/** Files that a person may mean, by parts of their paths. */
import { symlinkSync, unlinkSync, utimesSync } from 'node:fs';
import t from 'tap';
import { createPathSearch } from '../../../src/agent/tools/files/path-search.ts';
import { createRipgrepEngine } from '../../../src/agent/tools/files/ripgrep.ts';
import { createScriptEngine } from '../../../src/agent/tools/files/script-engine.ts';
import type { FoundFiles, SearchEngine } from '../../../src/agent/tools/files/search.ts';
import { places, settings } from './file-tools.ts';

const engines: Readonly<Record<string, SearchEngine>> = {
  ripgrep: createRipgrepEngine(),
  'our own code': createScriptEngine(),
};

for (const [name, engine] of Object.entries(engines)) {
  t.test(`${name}: ignored, blocked, linked, hidden and unwritable names are not found`, async (t) => {
    const shown = ['src/app/router.ts', 'src/chart.ts', 'docs/read me.md', 'Makefile'];
    const left = [
      '.oratorio/a.ts',
      '.git/a.ts',
      'node_modules/x/a.ts',
      'built/a.ts',
      'secret/a.ts',
      'quo"te.ts',
      'line\nbreak.ts',
      'bidi\u202e.ts',
    ];
    const files = Object.fromEntries([...shown, ...left].map((path) => [path, '']));
    const { workspace, at, outside } = places(t, { ...files, '.gitignore': 'built/\n' });
    symlinkSync(outside, at('linked.ts'));
    const search = createPathSearch({
      workspacePath: workspace,
      rules: settings({ blockedPaths: ['secret'] }),
      engine,
    });
    const { paths, isComplete } = await search.find('', 50);
    t.strictSame([...paths].sort(), [...shown, '.gitignore'].sort());
    t.equal(isComplete, true);
    t.strictSame(
      (await search.find('sar', 50)).paths,
      ['src/app/router.ts', 'src/chart.ts'],
      'beginnings of words first',
    );
    t.strictSame((await search.find('nothing like it', 50)).paths, []);
    t.equal((await search.find('', 2)).paths.length, 2);
    unlinkSync(at('src/chart.ts'));
    t.strictSame((await search.find('chart', 50)).paths, [], 'what is gone since is not offered');
  });

  t.test(`${name}: without a query the last changed come first`, async (t) => {
    const { workspace, at } = places(t, { 'old.ts': '', 'new.ts': '' });
    utimesSync(at('old.ts'), 1_000, 1_000);
    utimesSync(at('new.ts'), 2_000, 2_000);
    const search = createPathSearch({ workspacePath: workspace, rules: settings(), engine });
    t.strictSame((await search.find('', 9)).paths, ['new.ts', 'old.ts']);
  });
}

/** An engine that has found these already. */
function finding(found: Partial<FoundFiles>): { readonly engine: SearchEngine; readonly reads: () => number } {
  let reads = 0;
  const script = createScriptEngine();
  const findFiles = async (): Promise<FoundFiles> => {
    reads += 1;
    return { paths: [], total: 0, end: 'complete', ...found };
  };
  return { engine: { ...script, findFiles }, reads: () => reads };
}

t.test('50,000 files are looked through in pieces, read once for those who type, and bounded', async (t) => {
  const { workspace } = places(t, { 'wanted/one.ts': '' });
  const paths = Array.from({ length: 50_000 }, (_, number) =>
    number === 49_999 ? 'wanted/one.ts' : `src/${number}.ts`,
  );
  const { engine, reads } = finding({ paths, total: 60_000 });
  const search = createPathSearch({ workspacePath: workspace, rules: settings(), engine });
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const [first, second] = await Promise.all([search.find('wone', 20), search.find('wanted', 20)]);
  isOver = true;
  t.strictSame(first, { paths: ['wanted/one.ts'], isComplete: false });
  t.strictSame(second.paths, ['wanted/one.ts']);
  t.equal(reads(), 1);
  t.ok(turns >= 49, `${turns} other turns meanwhile`);
});

t.test('a reading that failed is not the answer to the next question', async (t) => {
  const { workspace } = places(t, { 'a.ts': '' });
  const script = createScriptEngine();
  let fails = true;
  const engine: SearchEngine = {
    ...script,
    findFiles: (...args) => (fails ? Promise.reject(new Error('out of descriptors')) : script.findFiles(...args)),
  };
  const search = createPathSearch({ workspacePath: workspace, rules: settings(), engine });
  await t.rejects(search.find('a', 5), /out of descriptors/);
  fails = false;
  t.strictSame((await search.find('a', 5)).paths, ['a.ts']);
  search.close();
  await t.rejects(createClosed(), { name: 'AbortError' });
  async function createClosed() {
    const closed = createPathSearch({ workspacePath: workspace, rules: settings(), engine: createRipgrepEngine() });
    closed.close();
    return closed.find('a', 5);
  }
});
