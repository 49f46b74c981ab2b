/** A prompt of the command line over the death of its agent server. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { runInProcess } from '../cli/in-process.ts';
import { eventually, killIfThere, makeWorkspace, quick, startTestHub } from './harness.ts';

t.test('chat connects again through the Hub, and prints the rest of the answer', async (t) => {
  const hub = await startTestHub(t);
  const workspace = makeWorkspace(t, { ...quick, Provider: 'demo', DashBoard: { Enabled: false } });
  const { pid } = await hub.ensure(workspace);
  const command = 'run: touch began; until [ -e gate ]; do sleep 0.1; done; echo over';
  const chat = runInProcess(hub.home, 'chat', command, '--yes', '--workspace', workspace);
  await eventually(() => existsSync(join(workspace, 'began')) || undefined, 'the command runs');
  killIfThere(pid ?? 0);
  await eventually(async () => {
    const record = await hub.record(workspace);
    return (record.state === 'running' && record.pid !== pid) || undefined;
  }, 'the next server runs');
  writeFileSync(join(workspace, 'gate'), '');
  const { code, text } = await chat;
  t.equal(code, 0, text);
  t.match(text, /↻ The agent server was restarted; this turn continues/);
  await hub.shutdown();
});
