import t from 'tap';
import { runTogether } from '../../scripts/test-jobs.ts';
import { flush } from '../machines/harness.ts';

/** Files that the test ends, on processors that it occupies. */
class Runner {
  readonly started: string[] = [];
  isStopped = false;
  idle = 0;
  look = (): void => undefined;
  readonly #ends = new Map<string, () => void>();
  readonly ended: Promise<void>;

  /** @param share of a core that a file takes whose name begins with `waits` */
  constructor(names: readonly string[], [least, most]: readonly [number, number], share = 0) {
    const run = (name: string) => {
      this.started.push(name);
      return new Promise<void>((resolve) => this.#ends.set(name, resolve));
    };
    this.ended = runTogether(names, run, {
      least,
      leastCores: 1,
      coreShare: (name) => (name.startsWith('waits') ? share : 1),
      most,
      idleShare: () => this.idle,
      every: (look) => {
        this.look = look;
        return () => {
          this.isStopped = true;
        };
      },
    });
  }

  async end(...names: readonly string[]): Promise<void> {
    for (const name of names) this.#ends.get(name)?.();
    await flush();
  }
}

t.test('while no core is idle, a file starts when one ends', async (t) => {
  const runner = new Runner(['a', 'b', 'c'], [2, 4]);
  runner.look();
  t.strictSame(runner.started, ['a', 'b']);
  await runner.end('b');
  t.strictSame(runner.started, ['a', 'b', 'c']);
  await runner.end('a', 'c');
  await runner.ended;
  t.ok(runner.isStopped);
});

t.test('while a core is idle, more files start, up to the limit', async (t) => {
  const runner = new Runner(['a', 'b', 'c', 'd', 'e'], [1, 3]);
  runner.idle = 0.5;
  for (let times = 0; times < 4; times += 1) runner.look();
  t.strictSame(runner.started, ['a', 'b', 'c']);
  runner.idle = 0;
  await runner.end('a', 'b');
  t.strictSame(runner.started, ['a', 'b', 'c'], 'with one left, none starts');
  await runner.end('c');
  t.strictSame(runner.started, ['a', 'b', 'c', 'd']);
  await runner.end('d');
  await runner.end('e');
  await runner.ended;
});

t.test('while no core is idle, files that mostly wait leave their place to others, up to the limit', async (t) => {
  const names = ['waits 1', 'waits 2', 'waits 3', 'waits 4', 'a', 'b'];
  const runner = new Runner(names, [2, 5], 0.25);
  t.strictSame(runner.started, names.slice(0, 4), 'four take a core together');
  await runner.end('waits 1');
  t.strictSame(runner.started, names.slice(0, 5), 'three take less than a core');
  await runner.end('waits 2', 'waits 3');
  t.strictSame(runner.started, names.slice(0, 5), 'a file that takes a core waits for nothing');
  await runner.end('waits 4');
  t.strictSame(runner.started, names, 'with one left, another starts');
  await runner.end('a', 'b');
  await runner.ended;
  const limited = new Runner(names.slice(0, 4), [2, 3], 0.01);
  t.strictSame(limited.started, names.slice(0, 3));
  await limited.end(...names.slice(0, 3));
  await limited.end('waits 4');
  await limited.ended;
});

t.test('a run without files ends at once', async () => {
  await new Runner([], [4, 4]).ended;
});
