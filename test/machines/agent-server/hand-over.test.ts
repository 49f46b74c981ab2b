import t from 'tap';
import { handOverOf } from '../../../machines/agent-server-context.ts';
import type { AgentServerContext } from '../../../machines/agent-server-types.ts';
import { policy, Workspace } from '../worlds.ts';
import { commands } from './steps.ts';

t.test('a stop suspends turns, a restart names itself, and a server that does not answer gets no time', async (t) => {
  const of = (stopReason: AgentServerContext['stopReason'], endsTurns = false) =>
    handOverOf({ stopReason, endsTurns, policy: { ...policy, handOverMs: 7 } } as AgentServerContext);
  t.same(of('user'), { reason: 'stop', withinMs: 7, endsTurns: false });
  t.same(of('hub'), { reason: 'stop', withinMs: 7, endsTurns: false });
  t.same(of('restart'), { reason: 'restart', withinMs: 7, endsTurns: false });
  t.same(of('idle'), { reason: 'restart', withinMs: 7, endsTurns: false });
  t.same(of('unhealthy'), { reason: 'restart', withinMs: 0, endsTurns: false });
  t.same(of('user', true), { reason: 'stop', withinMs: 0, endsTurns: true });
});

t.test('SIGKILL follows the time of the hand-over and the grace period', async (t) => {
  const world = new Workspace({ handOverMs: 1_000 });
  await world.run();
  await world.stop();
  await world.pass(policy.gracefulStopMs);
  t.same(commands(world), ['TERMINATE']);
  await world.pass(1_000);
  t.same(commands(world), ['TERMINATE', 'KILL']);
});
