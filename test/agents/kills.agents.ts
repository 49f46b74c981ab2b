/**
 * SIGKILL for each process of a workspace whose agent works, with an MCP server attached: nothing is left once the workspace has
 * recovered, nor after its stop, and announced items are in the thread.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { AppServerClient } from '../../src/client/index.ts';
import { type InboxItem, Item, type Turn } from '../../src/protocol/index.ts';
import { isAlive, readIdentity } from '../../src/supervise/index.ts';
import { eventually, killIfThere, startTestHub, type TestHub } from '../hub/harness.ts';
import { startModel } from './model.ts';
import { record as recordFindings, type Victim, victims } from './results.ts';
import { agentWorkspace, chosenSubjects } from './scene.ts';
import { packagesOf, type Subject } from './subjects.ts';
import { variable } from './variables.ts';

t.setTimeout(7_200_000);
/** Another process with the command of an agent. */
const another = spawn('tail', ['-s', '1234', '-f', '/dev/null'], { stdio: 'ignore', detached: true });
t.teardown(() => another.kill('SIGKILL'));

const rounds = Number(process.env[variable.rounds] ?? 1);
const wanted = process.env[variable.victims]?.split(',');

const mcpServer = fileURLToPath(new URL('../../test/agents/mcp-server.mjs', import.meta.url));

interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly line: string;
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

function directoryOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}

/** Processes that belong to a workspace: by their directory, environment or command line. */
function processesOf(workspace: string, home: string): readonly Seen[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid)
    .flatMap((pid) => {
      const line = read(pid, 'cmdline').replaceAll('\0', ' ').trim();
      const isOurs =
        line !== '' &&
        (directoryOf(pid) === workspace ||
          line.includes(workspace) ||
          line.includes(home) ||
          read(pid, 'environ').includes(`HOME=${home}`));
      return isOurs ? [{ pid, parent: Number(/\) \w (\d+)/.exec(read(pid, 'stat'))?.[1] ?? 0), line }] : [];
    });
}

const isTool = ({ line }: Seen): boolean => /^tail -s 1234/.test(line);

/** Process that was started first: the agent server starts commands of the agent, too, and numbers of processes start over. */
function firstStarted(found: readonly Seen[]): Seen | undefined {
  const started = found.flatMap((each) => {
    const identity = readIdentity(each.pid);
    return typeof identity === 'string' ? [] : [{ each, ticks: Number(identity.startedTicks) }];
  });
  return started.toSorted((a, b) => a.ticks - b.ticks)[0]?.each;
}

/** A thread whose agent runs a command that a user has allowed. */
async function work(t: Test, hub: TestHub, subject: Subject, modelUrl: string) {
  const { home, workspace } = agentWorkspace(t, subject, modelUrl, (home) => ({
    // Known by its words: some agents clear its environment.
    McpServers: { left: { transport: 'stdio', command: process.execPath, args: [mcpServer, home] } },
  }));
  const record = await hub.ensure(workspace);
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
  t.teardown(() => client.close());
  const announced: Item[] = [];
  client.onNotification((notification) => {
    const { method, params } = notification;
    if (method === 'item/completed') announced.push(v.parse(Item, params['item']));
  });
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text: 'Please hold the line' }] });
  const seen = () => processesOf(workspace, home);
  await eventually(async () => {
    for (const { workspaceId, request } of (await hub.call('GET', '/v1/inbox')).body as InboxItem[]) {
      await hub.call('POST', `/v1/inbox/${workspaceId}/${request.requestId}`, { decision: 'accept' });
    }
    // Not the shell that will start it.
    return seen().some(isTool) || undefined;
  }, 'the command runs');
  return { workspace, record, threadId: thread.id, announced, seen };
}

for (const subject of chosenSubjects()) {
  for (const victim of victims.filter((each) => wanted?.includes(each) ?? true)) {
    // One process is adapter and worker.
    if (victim === 'worker' && subject.worker === undefined) continue;
    t.test(`${subject.name}: nothing is left after kill -9 of the ${victim}`, async (t) => {
      const model = await startModel();
      t.teardown(() => model.close());
      const found = { rounds: 0, processes: 0, items: 0 };
      for (let round = 1; round <= rounds; round += 1) {
        // A test of its own: its Hubs end with it, and do not load the machine of the next.
        await t.test(`round ${round}`, async (t) => {
          const { processes, items } = await kill(t, victim, subject, model.url);
          found.rounds += 1;
          found.processes += processes;
          found.items += items;
        });
        if (!t.passing()) return;
        recordFindings(subject.name, packagesOf(subject).join(' '), { kills: { [victim]: found } });
      }
    });
  }
}

/** Processes that a kill must end besides its victim; an MCP server that is ours and not the agent's goes with the agent server only. */
function isDoomed(
  victim: Victim,
  each: Seen,
  about: {
    readonly record: { readonly pid: number | null };
    readonly tool: Seen | undefined;
    readonly isServer: (each: Seen) => boolean;
  },
): boolean {
  const { record, tool, isServer } = about;
  if (victim === 'Hub') return false;
  if (victim === 'tool child') return each.pid === tool?.pid;
  if (victim === 'agent server') return true;
  return each.pid !== record.pid && !(isServer(each) && each.parent === record.pid);
}

async function kill(t: Test, victim: Victim, subject: Subject, modelUrl: string) {
  let hub = await startTestHub(t);
  const { workspace, record, threadId, announced, seen } = await work(t, hub, subject, modelUrl);
  const all = seen();
  const isServer = ({ line }: Seen) => line.includes(mcpServer);
  const agent = firstStarted(all.filter((each) => each.parent === record.pid && !isServer(each)));
  const tool = all.find(isTool);
  const worker = all.find(({ parent, line }) => parent === agent?.pid && subject.worker?.test(line));
  const target = {
    Hub: hub.lock.pid,
    'agent server': record.pid,
    agent: agent?.pid,
    worker: worker?.pid,
    'tool child': tool?.pid,
  };
  const pid = target[victim];
  if (!pid) throw new Error(`there is no ${victim} to kill: ${JSON.stringify(all)}`);
  // Processes that must end by themselves, before anything is stopped.
  const doomed = all
    .filter((each) => isDoomed(victim, each, { record, tool, isServer }))
    .flatMap((each) => {
      const identity = readIdentity(each.pid);
      return typeof identity === 'string' ? [] : [{ ...each, identity }];
    });
  killIfThere(pid);
  if (victim === 'Hub') hub = await startTestHub(t, { home: hub.home });
  const living = () => doomed.filter(({ identity }) => isAlive(identity) === 'alive').map(({ line }) => line);
  await eventually(
    () => living().length === 0 || undefined,
    () => `nothing is left after the recovery: ${living()}`,
  );
  // The workspace is stopped: then none of its processes may be there.
  await eventually(async () => {
    const { status } = await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
    return status < 500 || undefined;
  }, 'the workspace is stopped');
  await eventually(
    () => seen().length === 0 || undefined,
    () => `no process is left: ${JSON.stringify(seen())}`,
  );
  t.same([another.exitCode, another.signalCode], [null, null], 'another process with the same command was not touched');
  const again = await hub.ensure(workspace);
  const client = await AppServerClient.connect(again.endpoints['appServerWebSocket'] ?? '');
  const { thread } = (await client.request('thread/read', { threadId, includeTurns: true })) as {
    thread: { turns: Turn[] };
  };
  const stored = new Set(thread.turns.flatMap(({ items }) => items.map(({ id }) => id)));
  t.same(
    announced.filter(({ id }) => !stored.has(id)),
    [],
    'what was announced is in the thread',
  );
  await client.close();
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  await eventually(
    () => seen().length === 0 || undefined,
    () => `no process is left: ${JSON.stringify(seen())}`,
  );
  return { processes: all.length, items: announced.length };
}
