/** Background processes that outlive their agent server. */
import { readFileSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { BackgroundProcesses } from '../../../../src/agent/tools/background/index.ts';
import { createProcessTools } from '../../../../src/agent/tools/background/process-tools.ts';
import { createExec } from '../../../../src/agent/tools/exec/exec.ts';
import { listKept } from '../../../../src/supervise/index.ts';
import { until } from '../../../supervise/helpers.ts';
import { ids, onPosix, type Places, places, secret, server } from '../kept.ts';
import { call, onBug } from '../run-tool.ts';

/** Background processes of an agent server in this process. */
function processesOf(t: Test, { settings, workspacePath }: Places) {
  const processes = new BackgroundProcesses({ secrets: [secret], outputs: undefined, onBug, keep: settings.keep });
  t.teardown(() => processes.close());
  const tools = [createExec({ ...settings, processes }), ...createProcessTools(processes)];
  const run = (name: string, args: object) => {
    const tool = tools.find((each) => each.name === name);
    if (!tool) throw new Error(name);
    return call(tool, args, { ...ids, workspacePath });
  };
  const readUntil = async (id: string, wanted: string) => {
    let all = '';
    await until(wanted, async () => {
      const { text } = await run('ExecOutput', { id, waitMs: 1_000 });
      all += text.replace(/^\(no new output\)/, '').replace(/\n\nThe process.*$/s, '\n');
      return all.includes(wanted);
    });
    return all;
  };
  const idOf = () => processes.list(ids.threadId)[0]?.id ?? '';
  return { processes, run, readUntil, idOf };
}

const echoes = 'echo ready; while read -r line; do echo "got $line"; done; echo over';

t.test('a background process outlives a killed server with its id, output and input', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, { command: echoes, background: true });
  await first.showed('ready');
  await until('its reading is stored', () => listKept(here.directory).length === 1);
  await first.kill();
  const { processes, run, readUntil, idOf } = processesOf(t, here);
  await processes.adopt(() => true);
  const id = idOf();
  t.match(first.shown(), id, 'the id is the same');
  const { text } = await run('ExecInput', { id, text: 'one\n' });
  const all = text.includes('got one') ? text : text + (await readUntil(id, 'got one'));
  t.notMatch(all, 'ready', 'output that was read does not come again');
  t.match(await run('ExecStop', { id }), { text: /has ended by SIGTERM/, isError: false });
  await here.isClean();
});

t.test('regression: an error after the end of an adopted process is reported', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, { command: 'echo ready; until [ -e go ]; do sleep 0.02; done', background: true });
  await first.showed('ready');
  await first.kill();
  const { promise: reported, resolve } = Promise.withResolvers<unknown>();
  const leave = async () => {
    throw new Error('no room');
  };
  const keep = { ...here.settings.keep, leave };
  const processes = new BackgroundProcesses({ secrets: [secret], outputs: undefined, onBug: resolve, keep });
  t.teardown(() => processes.close());
  await processes.adopt(() => true);
  writeFileSync(here.at('go'), '');
  t.match(await reported, { message: 'no room' });
  await here.isClean();
});

t.test('a background process that ended without a server says how', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, {
    command: 'echo ready; sleep 0.1; until [ -e go ]; do sleep 0.02; done; exit 6',
    background: true,
  });
  await first.showed('ready');
  await first.kill();
  writeFileSync(here.at('go'), '');
  await until('its end', async () => (await here.survivors()).length === 0);
  const { processes, run, idOf } = processesOf(t, here);
  await processes.adopt(() => true);
  await until('it is read', () => processes.list(ids.threadId)[0]?.state === 'ended');
  t.match(await run('ExecOutput', { id: idOf() }), { text: /has ended with exit code 6/, exitCode: 6 });
  await here.isClean();
});

t.test('a background process whose keeper was killed has ended with an unknown exit code', onPosix, async (t) => {
  const here = places(t);
  const first = server(t, here, { command: 'echo ready; sleep 1000', background: true });
  await first.showed('ready');
  await first.kill();
  await here.killSurvivors();
  const { processes, run, idOf } = processesOf(t, here);
  await processes.adopt(() => true);
  await until('it is read', () => processes.list(ids.threadId)[0]?.state === 'ended');
  t.match(await run('ExecOutput', { id: idOf() }), { text: /has ended with an unknown exit code/ });
  await here.isClean();
});

t.test(
  'a hand-over leaves background processes to the next server; the end of the conversation ends them',
  onPosix,
  async (t) => {
    const here = places(t);
    const first = processesOf(t, here);
    await first.run('Exec', { command: `echo $$ >pid; ${echoes}`, background: true });
    const id = first.idOf();
    first.processes.handOver();
    await first.processes.close();
    const pid = Number(readFileSync(here.at('pid'), 'utf8'));
    t.ok((await here.survivors()).includes(pid), 'it runs on');
    const second = processesOf(t, here);
    await second.processes.adopt(() => true);
    t.equal(second.idOf(), id);
    await second.processes.endThread(ids.threadId);
    await here.isClean();
  },
);

t.test('processes of a conversation that is gone are ended at the start', onPosix, async (t) => {
  const here = places(t);
  const first = processesOf(t, here);
  await first.run('Exec', { command: echoes, background: true });
  first.processes.handOver();
  await processesOf(t, here).processes.adopt(() => false);
  await here.isClean();
});
