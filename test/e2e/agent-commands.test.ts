import { rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startThread } from '../../src/client/index.ts';
import type { Turn } from '../../src/protocol/index.ts';
import { checkCompleteTurn, untilExists, untilNoToolProcess, workspaceWithUpstream } from './agent-faults.ts';
import {
  approver,
  connect,
  itemsOf,
  lastTurn,
  obedient,
  orders,
  resultsOf,
  runTurn,
  toolCall,
  turnEnd,
} from './agent-server.ts';
import { startHub } from './harness.ts';

t.test('an interrupt or a time limit ends every process of a command', async (t) => {
  const { place, workspace } = await workspaceWithUpstream(t, obedient);
  const hub = await startHub(place);
  await hub.client.ensure({ workspacePath: workspace });
  const client = await connect(t, workspace, { onRequest: approver('accept').onRequest });
  const stubborn = `trap '' TERM INT HUP; while :; do sleep 0.1; done`;
  const commands = {
    'that floods its output': 'touch "$0.started" 2>/dev/null; touch started; yes',
    'that ignores SIGTERM, SIGINT and SIGHUP': `touch started; ${stubborn}`,
    'that forks daemons': `setsid sh -c "${stubborn}" & (setsid sh -c "${stubborn}" >/dev/null 2>&1 &) ; nohup sh -c "${stubborn}" & touch started; ${stubborn}`,
    'that stops itself': 'touch started; kill -STOP $$; sleep 1000',
    'that forks without end': 'touch started; while :; do sh -c "sleep 1000" & sleep 0.02; done',
  };
  for (const [name, command] of Object.entries(commands)) {
    t.test(`an interrupt ends a command ${name}`, async (t) => {
      rmSync(join(workspace, 'started'), { force: true });
      const threadId = await startThread(client, { workspacePath: workspace });
      const ended = turnEnd(client, threadId);
      const text = orders({ toolCalls: [toolCall('Exec', { command })] });
      const { turn } = (await client.request('turn/start', { threadId, input: [{ type: 'text', text }] })) as {
        turn: Turn;
      };
      await untilExists(join(workspace, 'started'));
      // The server answers while the command runs.
      await client.request('thread/list');
      await client.request('turn/interrupt', { threadId, turnId: turn.id });
      t.equal((await ended).method, 'turn/cancelled');
      const after = await lastTurn(client, threadId);
      checkCompleteTurn(t, after);
      t.match(resultsOf(after), [{ outcome: 'cancelled' }]);
      await untilNoToolProcess(place);
      t.match(await runTurn(client, threadId, 'hello'), { status: 'completed' });
    });
  }

  t.test('daemons of a completed command are ended, and a flood ends at its time limit', async (t) => {
    const threadId = await startThread(client, { workspacePath: workspace });
    const text = orders({
      toolCalls: [
        toolCall('Exec', { command: `setsid sh -c "${stubborn}" & nohup sleep 1000 & echo ended` }),
        toolCall('Exec', { command: 'yes "a line of a flood"', timeoutMs: 5_000 }),
      ],
    });
    const turn = await runTurn(client, threadId, text);
    const [daemons, flood] = resultsOf(turn);
    t.match(daemons, { outcome: 'completed', text: /ended/ });
    t.match(flood, { outcome: 'failed', text: /a line of a flood/ });
    t.ok((flood?.text.length ?? 0) < 60_000, 'the model receives a part of the output');
    for (const { output } of itemsOf(turn, 'commandExecution'))
      t.ok(output.length < 250_000, 'clients receive a part of the output');
    await untilNoToolProcess(place);
  });
});
