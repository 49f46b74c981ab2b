import fc from 'fast-check';
import t from 'tap';
import type { SupervisionPolicy } from '../../machines/index.ts';
import { Simulation, type Step } from './simulation.ts';

const kind = fc.constantFrom('server' as const, 'sidecar' as const);
const sidecarChoice = fc.constantFrom(undefined, 'keep' as const, 'replace' as const, 'none' as const);
const exitCode = fc.constantFrom(0, 1, 75, 143, null);
const does = <const D extends Step['do']>(name: D) => fc.constant(name);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom('ensure' as const, 'restart' as const), proxy: sidecarChoice }),
  },
  { weight: 1, arbitrary: fc.record({ do: does('adopt'), proxy: sidecarChoice }) },
  { weight: 3, arbitrary: fc.record({ do: does('stop'), reason: fc.constantFrom('user' as const, 'hub' as const) }) },
  { weight: 6, arbitrary: fc.record({ do: does('advance'), ms: fc.constantFrom(100, 1_000, 3_000, 5_000, 20_000) }) },
  { weight: 8, arbitrary: fc.record({ do: does('prepare'), as: fc.constant('managed' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: does('prepare'),
      as: fc.constantFrom('adopted' as const, 'external' as const, 'locked' as const, 'noPort' as const),
    }),
  },
  { weight: 14, arbitrary: fc.record({ do: fc.constantFrom('spawn' as const, 'ready' as const), of: kind }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('refuse' as const, 'notReady' as const), of: kind }) },
  { weight: 2, arbitrary: fc.record({ do: does('end'), of: kind }) },
  { weight: 4, arbitrary: fc.record({ do: does('exit'), of: kind, code: exitCode }) },
  { weight: 5, arbitrary: fc.record({ do: does('obey'), of: kind }) },
  { weight: 5, arbitrary: fc.record({ do: does('probe'), passes: fc.boolean(), idleMs: fc.nat(100_000) }) },
  { weight: 4, arbitrary: fc.record({ do: does('decide'), sleeps: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: does('probeSidecar'), passes: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: does('late'), event: fc.nat(5), age: fc.integer({ min: 1, max: 3 }) }) },
);

const policy: fc.Arbitrary<Partial<SupervisionPolicy>> = fc.record({
  restart: fc.constantFrom('never' as const, 'onFailure' as const, 'onFailure' as const, 'always' as const),
  maxRestarts: fc.nat(3),
  idleStopMs: fc.constantFrom(0, 50_000),
  livenessFailures: fc.integer({ min: 1, max: 3 }),
});

const history = fc.array(step, { minLength: 1, maxLength: 60, size: 'max' });

/** Runs a history and `finish`. @throws the first violated invariants */
async function holds(
  changes: Partial<SupervisionPolicy>,
  steps: readonly Step[],
  finish: (simulation: Simulation) => Promise<void>,
): Promise<boolean> {
  const simulation = new Simulation(changes);
  for (const each of steps) await simulation.take(each);
  await finish(simulation);
  simulation.world.actor.stop();
  if (simulation.broken.length > 0) throw new Error(simulation.broken.slice(0, 3).join('\n'));
  return true;
}

/** Fixed seed, or that of `ORATORIO_TEST_SEED=<number>` or `=random`. */
function settings(numRuns: number): fc.Parameters<unknown> {
  const seed = process.env['ORATORIO_TEST_SEED'];
  return { numRuns, ...(seed !== 'random' && { seed: Number(seed ?? 20_261_121) }) };
}

const isExternal = ({ world }: Simulation) =>
  world.context.ownership === 'external' && /^(running|unhealthy)/.test(world.state);

t.test('I1–I7 hold through any history, and every request ends when processes respond', async (t) => {
  await fc.assert(
    fc.asyncProperty(policy, history, (changes, steps) =>
      holds(changes, steps, (simulation) => simulation.cooperate('settled')),
    ),
    settings(400),
  );
  t.pass();
});

t.test('after any settled history STOP leads to stopped without actors and processes', async (t) => {
  await fc.assert(
    fc.asyncProperty(policy, history, (changes, steps) =>
      holds(changes, steps, async (simulation) => {
        await simulation.cooperate('settled');
        if (isExternal(simulation)) return;
        await simulation.take({ do: 'stop', reason: 'user' });
        await simulation.cooperate(/^stopped$/);
        const { children } = simulation.world;
        const { context } = simulation.world.actor.getSnapshot();
        if (children.length > 0) simulation.broken.push(`left: ${children}`);
        if (context.hasProcess) simulation.broken.push('a process is still expected');
      }),
    ),
    settings(200),
  );
  t.pass();
});

t.test('after any history, also an unsettled one, STOP leads to stopped when processes respond', async (t) => {
  await fc.assert(
    fc.asyncProperty(policy, history, (changes, steps) =>
      holds(changes, steps, async (simulation) => {
        if (isExternal(simulation)) return;
        await simulation.take({ do: 'stop', reason: 'hub' });
        await simulation.cooperate(/^stopped$/);
      }),
    ),
    settings(200),
  );
  t.pass();
});

t.test('after any history ENSURE leads to running', async (t) => {
  await fc.assert(
    fc.asyncProperty(policy, history, fc.boolean(), (changes, steps, withSidecar) =>
      holds(changes, steps, async (simulation) => {
        // A process that survived SIGKILL is awaited first: no other may start beside it.
        await simulation.cooperate(/^(stopped|exited|running|unhealthy)/);
        if (isExternal(simulation)) return;
        await simulation.take({ do: 'ensure', proxy: withSidecar ? 'keep' : undefined });
        await simulation.cooperate(/^running$/);
      }),
    ),
    settings(200),
  );
  t.pass();
});

t.test('the sidecar of a server that is not restarted stops', async (t) => {
  await fc.assert(
    fc.asyncProperty(policy, history, exitCode, (changes, steps, code) =>
      holds({ ...changes, maxRestarts: 0 }, steps, async (simulation) => {
        const { world } = simulation;
        await simulation.cooperate('settled');
        if (isExternal(simulation)) return;
        await simulation.take({ do: 'restart', proxy: 'keep' });
        await simulation.cooperate(/^running$/);
        await simulation.take({ do: 'exit', of: 'server', code });
        if (!/^exited\.(resting|givenUp)$/.test(world.state)) simulation.broken.push(`it went to ${world.state}`);
        for (let round = 0; round < 20 && world.os.live('sidecar').length > 0; round++) {
          await simulation.take({ do: 'obey', of: 'sidecar' });
          await simulation.take({ do: 'advance', ms: 1_000 });
        }
        if (world.os.live('sidecar').length > 0) simulation.broken.push(`a sidecar stays in ${world.state}`);
      }),
    ),
    settings(100),
  );
  t.pass();
});
