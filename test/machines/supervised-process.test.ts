/** Parts that the machines of agent server, sidecar and MCP server share. The machines' own tests walk their transitions. */
import fc from 'fast-check';
import t from 'tap';
import { agentServerMachine, apiProxyMachine, mcpServerMachine } from '../../machines/index.ts';
import {
  isThisIncarnation,
  killStates,
  type ProbedContext,
  probedGuards,
  restartStates,
  supervisedDelays,
  terminateStates,
  withFailure,
} from '../../machines/supervised-process.ts';
import { graphOf } from '../../src/inspect/graph.ts';
import { policy } from './worlds.ts';

const context = (changes: Partial<ProbedContext> = {}): ProbedContext => ({
  policy,
  seed: 1,
  incarnation: 3,
  failures: [],
  attempt: 2,
  delayMs: null,
  runningSince: null,
  probeFailures: 0,
  ...changes,
});

const failed = (incarnation: number) => ({ type: 'PROBE.FAILED', incarnation });

t.test('an event of the present incarnation passes the guard, another does not', async (t) => {
  t.ok(isThisIncarnation({ context: context(), event: failed(3) }));
  t.notOk(isThisIncarnation({ context: context(), event: failed(2) }));
});

t.test('a guard or an action that gets an event without its field throws', async (t) => {
  t.throws(() => isThisIncarnation({ context: context(), event: { type: 'STOP' } }), /STOP has no field incarnation/);
  t.throws(() => withFailure(context(), { type: 'STOP' }), /STOP has no field at/);
});

t.test('a failed probe reaches the threshold at the configured number in a row', async (t) => {
  const reached = (probeFailures: number, incarnation = 3) =>
    probedGuards.reachesFailureThreshold({ context: context({ probeFailures }), event: failed(incarnation) });
  t.same(
    [0, 1, 2].map((count) => reached(count)),
    [false, false, true],
  );
  t.notOk(reached(2, 2), 'not with a probe of an earlier incarnation');
});

t.test('a failure counts as the first exactly when the run before it was stable', async () => {
  fc.assert(
    fc.property(fc.option(fc.nat(100_000)), fc.nat(100_000), (runningSince, ranMs) => {
      const at = (runningSince ?? 0) + ranMs;
      const { failures, attempt } = withFailure(context({ runningSince }), { type: 'EXITED', at } as never);
      const wasStable = runningSince !== null && ranMs >= policy.stableAfterMs;
      return failures?.at(-1) === at && attempt === (wasStable ? 0 : undefined);
    }),
  );
});

t.test('the pause before a restart is the planned one, or zero without a plan', async (t) => {
  t.equal(supervisedDelays.backoff({ context: context({ delayMs: 750 }) }), 750);
  t.equal(supervisedDelays.backoff({ context: context() }), 0);
});

t.test('the three machines end and restart a process with the same states', async (t) => {
  const { deciding, backingOff } = restartStates({ start: 'a', noRestart: 'b', tooManyFailures: 'c' });
  const shared = {
    'starting.aborting.killing': killStates.killing,
    'starting.aborting.stuck': killStates.stuck,
    'stopping.terminating': terminateStates.terminating,
    'stopping.killing': terminateStates.killing,
    'stopping.stuck': terminateStates.stuck,
  };
  for (const [name, machine, ended] of [
    ['agent-server', agentServerMachine, 'exited'],
    ['api-proxy', apiProxyMachine, 'exited'],
    ['mcp-server', mcpServerMachine, 'down'],
  ] as const) {
    const { nodes } = graphOf(name, machine);
    const expected = { ...shared, [`${ended}.deciding`]: deciding, [`${ended}.backingOff`]: backingOff };
    for (const [id, { description }] of Object.entries(expected)) {
      t.equal(nodes.find((node) => node.id === id)?.description, description, `${name}: ${id}`);
    }
  }
});
