/** Kills agent server and Hub while the agent has background processes: none of them is left. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import { answerOf, makePlace, processesUnder, say, startHub, untilNoneRuns } from './harness.ts';

/** Two for each kind of victim. */
const rounds = 8;
/** By turns: the server, both at once, the Hub and then the server, the Hub alone. */
const victims = ['server', 'both', 'hub, later server', 'hub'] as const;
const quick = {
  Supervision: { BackoffBaseMs: 40, ProbeIntervalMs: 100, MaxRestarts: 100 },
  Permissions: { DefaultApprovalPolicy: 'autoApprove' },
  Turns: { KeepCommands: false },
};
/** A child in the group, one that left it, one that ignores SIGTERM, and one that has left the group and ignores SIGTERM. */
const forks = (seconds: number) =>
  `sleep ${seconds} & setsid sleep ${seconds} & (trap '' TERM; sleep ${seconds}) & (trap '' TERM; setsid sleep ${seconds}) & wait`;

t.test(`${rounds} rounds of kill -9 of agent server and Hub leave no background process`, async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site', quick);
  const sleepers = (seconds: number) =>
    processesUnder(place.root, (argv) => argv[0] === 'sleep' && argv[1] === String(seconds));

  let hub = await startHub(place);
  const ensure = async () => {
    const { pid, adopted, endpoints } = await hub.client.ensure({ workspacePath: workspace });
    if (pid === null) throw new Error('the server that was ensured has no process');
    return { pid, adopted, webSocket: endpoints['appServerWebSocket'] ?? '' };
  };
  // The server of the round before, if it runs.
  let running: Awaited<ReturnType<typeof ensure>> | undefined;
  for (let round = 0; round < rounds; round += 1) {
    const victim = victims[round % victims.length];
    const seconds = 90_000 + round;
    const record = running ?? (await ensure());
    const client = await AppServerClient.connect(record.webSocket);
    await answerOf(
      await say(client, workspace, `call Exec ${JSON.stringify({ command: forks(seconds), background: true })}`),
    );
    client.close();
    await eventually(() => sleepers(seconds).length === 4 || undefined, 'all four run');
    if (victim !== 'server') process.kill(hub.pid, 'SIGKILL');
    if (victim === 'hub, later server') await sleep(20);
    if (victim !== 'hub') {
      process.kill(record.pid, 'SIGKILL');
      await eventually(() => !isAlive(record.pid) || undefined, 'the server is dead');
    }
    if (victim === 'server') {
      const hasNoticed = async () => (await hub.client.byWorkspace(workspace)).pid !== record.pid || undefined;
      await eventually(hasNoticed, 'the Hub has noticed');
    } else {
      await eventually(() => !isAlive(hub.pid) || undefined, 'the Hub is dead');
      hub = await startHub(place);
    }

    const again = await ensure();
    if (victim === 'hub') {
      t.same([again.pid, again.adopted], [record.pid, true], `round ${round}: the server was adopted`);
      t.equal(sleepers(seconds).length, 4, 'its background processes run on');
      await hub.client.stop(workspace);
    } else t.not(again.pid, record.pid, `round ${round}: another server runs`);
    running = victim === 'hub' ? undefined : again;
    t.same(sleepers(seconds), [], `round ${round}: nothing is left after the death of ${victim}`);
  }
  await hub.shutdown();
  await untilNoneRuns(place);
});
