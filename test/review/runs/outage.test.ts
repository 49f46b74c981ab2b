import t from 'tap';
import { ReviewAgentError } from '../../../src/review/agent/index.ts';
import { SourceError } from '../../../src/review/github/index.ts';
import { World } from './world.ts';

const tries = 4;

for (const [what, away, part] of [
  ['the agent server', () => new ReviewAgentError('agentUnavailable', 'nobody answers'), 'agent'],
  ['the forge', () => new SourceError('connectionFailed', 'nobody answers'), 'forge'],
] as const)
  t.test(`regression: a review waits during an outage of ${what}, and runs once after it`, async (t) => {
    const world = await World.create(t, { AgentServer: { MaxRunAttempts: 2, RetryBackoffSeconds: 60 } });
    let failures = 0;
    const fails = () => {
      if (failures >= tries) return;
      failures += 1;
      throw away();
    };
    if (part === 'agent') world.agent.onReview = fails;
    else world.forge.onRead = fails;
    world.runs.start();
    const runId = await world.dispatch();
    for (let seen = 1; seen <= tries; seen += 1) {
      await world.until(async () => failures === seen && (await world.run(runId)).nextAttemptAt !== null);
      const { state, attempt } = await world.run(runId);
      t.match({ state, attempt }, { state: 'backingOff', attempt: 2 }, `${seen}`);
      await world.pausesAreOver();
    }
    t.match(await world.ended(runId), { state: 'done', error: null });
    t.equal(world.forge.of('review').length, 1);
  });

t.test('regression: a review fails after an outage of a day', async (t) => {
  const world = await World.create(t, { AgentServer: { MaxRunAttempts: 1 } });
  world.agent.onReview = () => {
    throw new ReviewAgentError('agentUnavailable', 'nobody answers');
  };
  const runId = await world.dispatch();
  await world.subject.sql(`UPDATE "runs" SET "createdAt" = "createdAt" - 86400000`);
  world.runs.start();
  t.match(await world.ended(runId), { state: 'failed', error: { code: 'agentUnavailable' } });
});
