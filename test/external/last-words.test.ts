/** The end of an agent's process: its outputs and its exit are noticed in any order. */
import t from 'tap';
import type { ExternalAgentProcessEvent } from '../../machines/index.ts';
import { Connection } from '../../src/external/connection.ts';

/** Steps of a shell before it exits. Standard error is closed after the words only. */
const steps = { closeOutput: 'exec 1>&-', words: 'echo "no credit left" >&2', closeErrors: 'exec 2>&-' };
const orders = permutations(Object.values(steps)).filter(
  (order) => order.indexOf(steps.words) < order.indexOf(steps.closeErrors),
);
/** Each pause lets the parent notice the step before it. */
const separators = { 'at once': '; ', 'step by step': '; sleep 0.1; ' };
const scripts = Object.entries(separators).flatMap(([pace, separator]) =>
  [...orders, [steps.closeOutput, steps.words], [steps.words, steps.closeOutput], [steps.words]].map(
    (order) => [`${order.map(nameOf).join(', ')}, ${pace}`, `${order.join(separator)}${separator}exit 3`] as const,
  ),
);
scripts.push(['words, while a child holds the outputs', `sleep 60 & ${steps.words}; exit 3`]);

t.test('the reason has exit code and last words in each order of the ends of outputs and process', async (t) => {
  t.equal(scripts.length, 13);
  const ends = await Promise.all(scripts.map(([, script]) => endOf(script)));
  for (const [index, [order]] of scripts.entries()) {
    t.equal(ends[index]?.length, 1, 'one reason');
    t.match(ends[index], [{ type: 'PROCESS.EXITED', error: /^It exited \(code 3\)\.\nno credit left/ }], order);
  }
});

/** Events that give a reason, up to the exit. */
async function endOf(script: string): Promise<ExternalAgentProcessEvent[]> {
  const reasons: ExternalAgentProcessEvent[] = [];
  await new Promise<void>((resolve) => {
    new Connection({
      ...{ command: ['/bin/sh', '-c', script], cwd: '/', env: { PATH: process.env['PATH'] ?? '' }, incarnation: 1 },
      ...{ parentMarker: undefined, worker: undefined, record: undefined, exported: undefined, clientCapabilities: {} },
      report(event) {
        if (event.type === 'PROCESS.SWEPT') resolve();
        if ('error' in event) reasons.push(event);
      },
      onRequest: async () => undefined,
      onNotification: () => undefined,
      onBug: (error) => t.fail(String(error)),
    });
  });
  return reasons;
}

function nameOf(step: string): string {
  return Object.entries(steps).find(([, each]) => each === step)?.[0] ?? step;
}

function permutations<T>(all: readonly T[]): T[][] {
  if (all.length === 0) return [[]];
  return all.flatMap((first, index) => permutations(all.toSpliced(index, 1)).map((rest) => [first, ...rest]));
}
