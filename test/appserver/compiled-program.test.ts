import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { prepared, runCompiled } from '../../src/appserver/compiled-program.ts';

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
    async prepare(): Promise<void> {
      prepared.publish(undefined);
      await nextTurn();
    },
    /** Names and inodes of the stored files: a rewritten file has another inode. */
    stored: () => files().map((name) => [name, statSync(join(cache, name)).ino]),
    damage() {
      for (const name of files()) {
        const whole = readFileSync(join(cache, name));
        writeFileSync(
          join(cache, name),
          Buffer.concat([whole.subarray(0, -1), Buffer.from([(whole.at(-1) ?? 0) ^ 1])]),
        );
      }
    },
  };
}

t.test('a program runs, and stores its code once', async (t) => {
  const { run, prepare, stored } = scene(t);
  t.equal(run('one'), 'one');
  t.same(stored(), [], 'nothing is stored before it is prepared');
  await prepare();
  const first = stored();
  t.equal(first.length, 1);
  t.equal(run('one'), 'one', 'a part of it finds the program that runs');
  await prepare();
  t.same(stored(), first, 'stored code was used: it would have been written anew');
});

t.test('another source of the same length runs, and replaces the stored code', async (t) => {
  const { run, prepare, stored } = scene(t);
  run('one');
  await prepare();
  const first = stored();
  t.equal(run('two'), 'two');
  await prepare();
  t.strictNotSame(stored(), first);
});

t.test('damaged code is not run, and is replaced', async (t) => {
  const { run, prepare, stored, damage } = scene(t);
  run('one');
  await prepare();
  damage();
  const damaged = stored();
  t.equal(run('one'), 'one');
  await prepare();
  t.strictNotSame(stored(), damaged);
});
