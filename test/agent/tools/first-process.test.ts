/** Sandboxes of a server that is the first process of a container, and collects no process that others leave to it. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { root } from '../../../scripts/toolchain.mjs';
import { temporaryWorkspace } from './run-tool.ts';

const namespaces = ['-r', '--pid', '--fork', '--mount-proc', '--kill-child'];
const hasNamespaces =
  spawnSync('unshare', [...namespaces, 'bwrap', '--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0;

/** Runs commands as process 1, ends their sandboxes, and prints the processes that remain as zombies. */
const source = `
const { Sandboxes, OutputFiles } = await import(process.env.AGENT);
const { createExec } = await import(process.env.EXEC);
const { readdirSync, readFileSync } = await import('node:fs');
const [way, workspacePath, home] = process.argv.slice(1);
const environment = { ...process.env, ORATORIO_INCARNATION: 'test-of-first-process' };
const sandboxes = way === 'shared' ? new Sandboxes(environment) : undefined;
const tool = createExec({
  timeoutMs: 60_000, maxTimeoutMs: 60_000, maxOutputChars: 10_000, sandbox: 'required', network: 'deny', home, sandboxes, environment,
  pathRules: { blockedPaths: [], protectedDirectories: [home] }, passEnvironment: [], secrets: [], outputs: new OutputFiles(home + '/outputs'),
});
const run = async (args) => {
  const parsed = tool.parse(args);
  const context = { workspacePath, threadId: 'thread_a', turnId: 'turn', callId: 'call', onOutput() {}, signal: new AbortController().signal };
  return (await tool.run(parsed.args, context)).text;
};
const texts = [];
const state = (pid) => {
  try { return /^State:\\s+(\\S)/m.exec(readFileSync('/proc/' + pid + '/status', 'utf8'))?.[1]; } catch { return undefined; }
};
const zombies = () => readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && state(name) === 'Z');
for (const end of ['sleep 3600', 'setsid sleep 3600', 'setsid -f sleep 3600']) {
  texts.push(await run({ command: '(' + end + ' > /dev/null 2>&1 &); echo ran' }));
  await sandboxes?.end('thread_a');
}
await sandboxes?.close();
// Processes end a moment after their namespace: a zombie of a child of this process is collected as soon as it is seen.
const deadline = Date.now() + 60_000;
while (zombies().length > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
console.log(JSON.stringify({ pid: process.pid, texts, zombies: zombies().map((pid) => readFileSync('/proc/' + pid + '/stat', 'utf8')) }));
process.exit(0);
`;

function asFirst(t: Test, way: string): { pid: number; texts: string[]; zombies: string[] } {
  const at = (...path: string[]) => join(root, 'src', 'agent', ...path);
  const env = {
    ...process.env,
    AGENT: at('index.ts'),
    EXEC: at('tools', 'exec', 'exec.ts'),
  };
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', source];
  const words = [...namespaces, ...node, way, temporaryWorkspace(t), temporaryWorkspace(t)];
  return JSON.parse(execFileSync('unshare', words, { env, encoding: 'utf8' }));
}

for (const way of ['shared', 'single']) {
  t.test(`a server that is process 1 is left no zombie by a ${way} sandbox`, { skip: !hasNamespaces }, async (t) => {
    const { pid, texts, zombies } = asFirst(t, way);
    t.equal(pid, 1);
    t.same(
      texts.map((text) => text.split('\n')[0]),
      ['ran', 'ran', 'ran'],
    );
    t.same(zombies, []);
  });
}
