/** Led turns as tasks of `oratorio mcp` over stdio, with the official clients of both generations. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client as NewerClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as NewerTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import t, { type Test } from 'tap';
import { RawRequests } from '../../src/mcp/raw-requests.ts';
import { program, programEnvironment } from '../programs.ts';
import { eventually, killIfThere, makeWorkspace, quick, request, startTestHub, temporaryDirectory } from './harness.ts';

const home = temporaryDirectory(t, 'oratorio-home-');
writeFileSync(join(home, 'config.json'), JSON.stringify({ Permissions: { DefaultApprovalPolicy: 'autoApprove' } }));
const hub = await startTestHub(t, { home });
const info = { name: 'official', version: '1' };
const tasksExtension = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

/** A workspace whose agent waits, in the command of `prompt`, for the file `gate`. */
async function ledWorkspace(t: Test) {
  const settings = { Provider: 'demo', DashBoard: { Enabled: false } };
  const path = makeWorkspace(t, { ...quick, ...settings });
  const record = await hub.ensure(path);
  const at = (name: string) => join(path, name);
  return {
    path,
    workspaceId: record.page?.split('/')[2] ?? '',
    prompt: 'run: touch began; until [ -e gate ]; do sleep 0.1; done; echo over',
    began: () => eventually(() => existsSync(at('began')) || undefined, 'the command runs'),
    open: () => writeFileSync(at('gate'), ''),
    /** Kills the agent server, and waits for the next one. */
    async kill() {
      const { pid } = await hub.record(path);
      killIfThere(pid ?? 0);
      await eventually(async () => {
        const next = await hub.record(path);
        return (next.state === 'running' && next.pid !== pid) || undefined;
      }, 'the next server runs');
    },
  };
}

const server = (...args: string[]) => ({
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', program('src/cli/main.ts'), 'mcp', '--no-start', ...args],
  cwd: '/',
  env: { ...programEnvironment, ORATORIO_HOME: hub.home } as Record<string, string>,
  stderr: 'inherit' as const,
});

async function olderClient(t: Test, ...args: string[]): Promise<Client> {
  const client = new Client(info);
  await client.connect(new StdioClientTransport(server(...args)));
  t.teardown(() => client.close());
  return client;
}

async function newerSession(t: Test) {
  const transport = new NewerTransport(server());
  const client = new NewerClient(info, { versionNegotiation: { mode: 'auto' }, capabilities: tasksExtension });
  await client.connect(transport);
  t.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  const session = createTaskSessionFromClient(client, {
    endpointId: 'oratorio',
    rawDispatch: new RawRequests(transport).dispatch,
    v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo: info, clientCapabilities: tasksExtension },
  });
  t.teardown(async () => {
    await session.close();
    await client.close();
  });
  return session;
}

// biome-ignore lint/suspicious/noExplicitAny: any result of the server
type Any = any;
const resultOf = (result: Any): Any => JSON.parse(result.content[0].text);
const begin = (client: Client, args: Record<string, unknown>) =>
  client.experimental.tasks.callToolStream({ name: 'prompt_agent', arguments: args }, CallToolResultSchema, {
    task: {},
  });

/** Id of the task that a call has created. */
async function taskOf(call: AsyncGenerator<Any>): Promise<string> {
  const { value } = await call.next();
  if (value?.type === 'error') throw value.error;
  if (value?.type !== 'taskCreated') throw new Error(JSON.stringify(value));
  return value.task.taskId;
}

t.test('2025: a led turn is a task, which survives kill -9 of its agent server', async (t) => {
  const { workspaceId, prompt, began, kill, open } = await ledWorkspace(t);
  const client = await olderClient(t);
  t.match(await client.listTools(), {
    tools: [{}, {}, { name: 'prompt_agent', execution: { taskSupport: 'optional' } }],
  });
  const call = begin(client, { workspaceId, text: prompt });
  const taskId = await taskOf(call);
  await began();
  t.match(await client.experimental.tasks.getTask(taskId), { taskId, status: 'working' });
  await kill();
  t.match(await client.experimental.tasks.getTask(taskId), { taskId, status: 'working' });
  open();
  let last: Any;
  for await (const message of call) last = message;
  t.match(last, { type: 'result' });
  t.match(resultOf(last.result), { status: 'completed', prompt, calls: ['Exec'] });

  const next = await olderClient(t);
  t.match(await next.experimental.tasks.getTask(taskId), { status: 'completed' }, 'another process knows the task');
});

t.test('2025: a task is cancelled, in its turn and in the queue of its conversation', async (t) => {
  const { workspaceId, prompt, began } = await ledWorkspace(t);
  const client = await olderClient(t);
  const { tasks } = client.experimental;
  const taskId = await taskOf(begin(client, { workspaceId, text: prompt }));
  await began();
  const [, threadId = ''] = taskId.split('/');
  const queued = await taskOf(begin(client, { workspaceId, threadId, text: 'hello' }));
  t.match(await tasks.getTask(queued), { status: 'working', statusMessage: /waits for the running turn/ });
  t.match(await tasks.cancelTask(queued), { taskId: queued, status: 'cancelled' });
  await t.rejects(tasks.getTask(queued), { code: -32_602, message: /Unknown task/ });
  t.match(await tasks.cancelTask(taskId), { taskId, status: 'cancelled' });
  await t.rejects(tasks.cancelTask(taskId), { code: -32_602, message: /already cancelled/ });
  t.match(await tasks.getTaskResult(taskId, CallToolResultSchema), { isError: true });
});

t.test('2026: a led turn is a task, which survives kill -9 of its agent server', async (t) => {
  const { workspaceId, prompt, began, kill, open } = await ledWorkspace(t);
  const session = await newerSession(t);
  const execution = await session.callTool('prompt_agent', { workspaceId, text: prompt });
  t.equal(execution.kind, 'task');
  await began();
  await kill();
  open();
  const { outcome } = await execution.settle();
  t.match(resultOf(resultFromTaskOutcome(outcome)), { status: 'completed', calls: ['Exec'] });
});

t.test('2026: a cancelled task ends its turn', async (t) => {
  const { workspaceId, prompt, began, path } = await ledWorkspace(t);
  const session = await newerSession(t);
  const execution = await session.callTool('prompt_agent', { workspaceId, text: prompt });
  await began();
  await execution.cancel();
  const { outcome } = await execution.settle();
  t.equal(outcome.status, 'cancelled');
  t.match((await hub.record(path)).state, 'running');
});

t.test('a token without the right to read offers no tasks', async (t) => {
  const { workspaceId } = await ledWorkspace(t);
  const client = await olderClient(t, '--allow', 'list,prompt');
  t.notOk(client.getServerCapabilities()?.tasks);
  t.notMatch(JSON.stringify(await client.listTools()), /taskSupport/);
  const { content } = await client.callTool({ name: 'prompt_agent', arguments: { workspaceId, text: 'hello' } });
  t.match(resultOf({ content }), { workspaceId, threadId: /./, messageId: undefined });
});

t.test('unknown tasks and invalid prompts are refused, and change nothing', async (t) => {
  const { workspaceId } = await ledWorkspace(t);
  const client = await olderClient(t);
  const { tasks } = client.experimental;
  const threadId = resultOf(
    await client.callTool({ name: 'prompt_agent', arguments: { workspaceId, text: 'hello', waitSeconds: 60 } }),
  ).threadId;
  const unknown = [`${workspaceId}/${threadId}/none`, `${workspaceId}/none/none`, 'none/none/none'];
  for (const taskId of ['', 'x', '../../..', 'a/b/c/d', ...unknown]) {
    const refusal = { code: -32_602, message: /Unknown task/ };
    await t.rejects(tasks.getTask(taskId), refusal, taskId);
    await t.rejects(tasks.cancelTask(taskId), refusal, taskId);
    await t.rejects(tasks.getTaskResult(taskId, CallToolResultSchema), refusal, taskId);
  }
  await t.rejects(taskOf(begin(client, { workspaceId })), { message: /text must be/ });
  await t.rejects(taskOf(begin(client, { workspaceId: 'none', text: 'x' })), { message: /no such workspace/ });
});

t.test('a result and a cancellation need the rights to read and to prompt', async (t) => {
  const { workspaceId } = await ledWorkspace(t);
  const tokenOf = async (scope: string) =>
    (await hub.call('POST', '/v1/tokens', { name: 'lead', scopes: [scope] })).body.token;
  const [reader, prompter] = [await tokenOf('read'), await tokenOf('prompt')];
  const send = (token: string, body: object) => request({ ...hub.lock, token }, 'POST', '/v1/delegated', body);
  const { body } = await send(prompter, { do: 'prompt', workspaceId, text: 'hello' });
  const { threadId, messageId } = body;
  const of = { workspaceId, threadId, messageId };
  t.match(await send(prompter, { do: 'result', ...of }), { status: 403, body: { error: { code: 'scopeMissing' } } });
  t.match(await send(reader, { do: 'cancel', ...of }), { status: 403, body: { error: { code: 'scopeMissing' } } });
  await eventually(async () => {
    const { body } = await send(reader, { do: 'result', ...of });
    return body.status === 'completed' || undefined;
  }, 'the turn ends');
  t.match(await send(prompter, { do: 'cancel', ...of }), { status: 200 }, 'an ended turn stays');
  t.match(await send(reader, { do: 'result', ...of }), { body: { status: 'completed', prompt: 'hello' } });
  t.match(await send(reader, { do: 'result', ...of, messageId: 'none' }), { status: 404 });
  t.match(await send(reader, { do: 'result', ...of, messageId: undefined }), { status: 400 });
});
