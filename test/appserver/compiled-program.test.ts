import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { runCompiled } from '../../src/appserver/compiled-program.ts';
import { type LifePart, lifeParts } from '../../src/appserver/life-parts.ts';

const load = createRequire(import.meta.url);

/** A program, and the files of its compiled code. */
function scene(t: Test) {
  const directory = t.testdir({ 'part.cjs': "exports.part = require('./program.cjs').own;" });
  const cache = join(directory, 'cache');
  mkdirSync(cache);
  const program = join(directory, 'program.cjs');
  const files = () => readdirSync(cache).sort();
  return {
    /** Runs the program, which returns a word, as a process would that starts now. */
    run(word: string): unknown {
      writeFileSync(program, `exports.own = '${word}'; exports.answer = () => require('./part.cjs').part;`);
      for (const file of ['program.cjs', 'part.cjs']) delete load.cache[join(directory, file)];
      runCompiled(program, cache);
      return load(program).answer();
    },
    async live(part: LifePart): Promise<void> {
      lifeParts.publish(part);
      await nextTurn();
    },
    /** Names and inodes of the stored files: a rewritten file has another inode. */
    stored: () => files().map((name) => [name.replace(/.*-/, ''), statSync(join(cache, name)).ino]),
    damage() {
      for (const name of files()) {
        const whole = readFileSync(join(cache, name));
        writeFileSync(
          join(cache, name),
          Buffer.concat([whole.subarray(0, -1), Buffer.from([(whole.at(-1) ?? 0) ^ 1])]),
        );
      }
    },
    names: () => files().map((name) => name.replace(/.*-/, '')),
  };
}

t.test('a program runs, and stores its code once for each part of its life', async (t) => {
  const { run, live, stored, names } = scene(t);
  t.equal(run('one'), 'one');
  t.same(names(), [], 'nothing is stored before a part of the life has run');
  await live('start');
  t.same(names(), ['start']);
  const first = stored();
  t.equal(run('one'), 'one', 'the part finds the program that runs');
  await live('start');
  t.same(stored(), first, 'stored code was used: it would have been written anew');
  await live('turn');
  t.same(names(), ['start', 'turn']);
  const both = stored();
  t.equal(run('one'), 'one');
  await live('start');
  t.same(stored(), both, 'the code of a turn contains that of a start');
});

t.test('another source of the same length runs, and replaces the stored code', async (t) => {
  const { run, live, stored } = scene(t);
  run('one');
  await live('start');
  const first = stored();
  t.equal(run('two'), 'two');
  await live('start');
  t.strictNotSame(stored(), first);
});

t.test('damaged code is not run, and is replaced', async (t) => {
  const { run, live, stored, damage } = scene(t);
  run('one');
  await live('start');
  damage();
  const damaged = stored();
  t.equal(run('one'), 'one');
  await live('start');
  t.strictNotSame(stored(), damaged);
});
