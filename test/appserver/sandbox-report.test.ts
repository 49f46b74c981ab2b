/** The known state of the sandbox of commands, without a sandbox. */
import t from 'tap';
import type { SandboxStatus } from '../../src/agent/index.ts';
import { SandboxReport } from '../../src/appserver/sandbox-report.ts';

const working: SandboxStatus = { mode: 'auto', available: true, reason: 'bubblewrap 0.8.0' };

function reportOn(trial: () => Promise<SandboxStatus>) {
  const bugs: unknown[] = [];
  let trials = 0;
  const report = new SandboxReport({
    mode: 'auto',
    isInstalled: () => true,
    trial() {
      trials += 1;
      return trial();
    },
    onBug: (error) => bugs.push(error),
  });
  t.teardown(() => report.close());
  return { report, bugs, trials: () => trials };
}

t.test('a turn is described before any trial, which follows it once', async (t) => {
  const { report, trials } = reportOn(async () => working);
  t.ok(report.isExpected, 'its program is installed');
  t.equal(report.state, null, 'and its state is unknown');
  const changed = new Promise<void>((resolve) => report.onChange(resolve));
  report.turnEnded();
  report.turnEnded();
  t.equal(trials(), 0, 'the next turn does not wait for it');
  // The timer of the pause keeps no process.
  const awake = setInterval(() => {}, 1_000);
  await changed;
  clearInterval(awake);
  t.same(report.state, { state: 'on', reason: working.reason });
  t.equal(trials(), 1);
});

t.test(
  'a refused command counts without a trial, and a later one that runs restores the words of the trial',
  async (t) => {
    const { report } = reportOn(async () => working);
    report.noted('no user namespaces');
    t.notOk(report.isExpected);
    t.same(report.state, { state: 'failed', reason: 'no user namespaces' });
    const changed = new Promise<void>((resolve) => report.onChange(resolve));
    report.try();
    await changed;
    report.noted('no user namespaces');
    report.noted(undefined);
    t.same(report.state, { state: 'on', reason: working.reason });
  },
);

t.test('a trial that throws is reported as a bug, and leaves the state unknown', async (t) => {
  const { report, bugs } = reportOn(() => Promise.reject(new RangeError('a bug')));
  report.try();
  await new Promise((resolve) => setImmediate(resolve));
  t.match(bugs, [RangeError]);
  t.equal(report.state, null);
});
