/**
 * Runs test files, each in a process of its own, and writes TAP. It does what `tap run` does, but for two things that cost a
 * run half of its time. `tap run` has every Node process below a test load the hooks that measure coverage, which we do not;
 * and it goes by name, so that the longest files run alone at the end. Here the slow rooms come first, and take turns: a file
 * that drives a browser runs beside one that waits for processes.
 *
 * Takes files and patterns, none for all, and those options of `tap run` that say how many at once and how long (`--jobs=2`).
 */
import { globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TapConfig } from '@tapjs/config';
import t from 'tap';
import { bundleTestPrograms } from './test-programs.ts';
import { root } from './toolchain.mjs';

/** Rooms whose files take long. */
const slowRooms = ['test/ui/', 'test/e2e/', 'test/hub/', 'test/appserver/', 'test/review/'];

const { values, positionals } = await TapConfig.load();
const patterns = positionals.length > 0 ? positionals : values.include;
const found = [...new Set(globSync(patterns, { cwd: root }))].toSorted();
const isAlone = (file: string): boolean => values.serial?.includes(file) ?? false;

/** One of each slow room in turn, then the rest, then those that want the machine for themselves. */
function inOrder(files: readonly string[]): readonly string[] {
  const shared = files.filter((file) => !isAlone(file));
  const slow = slowRooms.map((room) => shared.filter((file) => file.startsWith(room)));
  const turns = Math.max(0, ...slow.map(({ length }) => length));
  const mixed = Array.from({ length: turns }, (_, turn) => slow.flatMap((room) => room[turn] ?? [])).flat();
  return [...new Set([...mixed, ...shared, ...files])];
}

async function runAll(files: readonly string[]): Promise<void> {
  const programs = await bundleTestPrograms();
  t.teardown(() => rmSync(programs, { recursive: true, force: true }));
  for (const file of inOrder(files)) {
    // tap hands its hooks on in `NODE_OPTIONS`, which a test must not have.
    t.spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, ...(values['node-arg'] ?? []), join(root, file)], {
      name: file,
      cwd: root,
      env: { ...process.env, ORATORIO_TEST_PROGRAMS: programs },
      buffered: !isAlone(file),
      timeout: (values.timeout ?? 30) * 1000,
      at: null,
      stack: '',
    });
  }
}

t.setTimeout(0);
t.jobs = values.jobs ?? 1;
if (found.length > 0) await runAll(found);
else t.fail(`no test file matches ${patterns.join(' ')}`);
