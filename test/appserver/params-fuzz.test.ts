/** Any parameters for any method, and any answers to the server's own questions: results, exact errors, never a bug. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import type { ModelProvider } from '../../src/agent/index.ts';
import {
  approvalDecisions,
  approvalPolicies,
  moveParts,
  moveSteps,
  type RpcMethod,
  rpcErrors,
  rpcMethods,
} from '../../src/protocol/index.ts';
import { call, scripted } from '../agent/helpers.ts';
import { anyWebUrl } from '../any-character.ts';
import { Client, type Message, startServer, words } from './harness.ts';

const tool = { name: 'probe', description: 'A tool of the client.', inputSchema: { type: 'object' } };
/** `$kind n`: one of the ids of this kind that the server has given so far. */
const known = (kind: string) => fc.nat({ max: 2 }).map((number) => `$${kind} ${number}`);
const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text }),
  fc.record({ type: fc.constant('image'), url: text }),
  fc.record({ type: fc.constant('localImage'), path: text }),
  fc.record({ type: fc.constant('fileRef'), path: text }),
  fc.record({ type: fc.constant('skillRef'), name: text }),
  fc.record({ type: fc.constant('commandRef'), name: text, argsText: text }),
);
const identity = fc.record({ channelName: text, userId: text }, { requiredKeys: [] });
const threadConfig = fc.record(
  {
    model: text,
    approvalPolicy: fc.constantFrom(...approvalPolicies),
    agentInstructions: text,
    enabledTools: fc.array(fc.constantFrom('Exec', 'ReadFile', 'nope'), { maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const settings = fc.oneof(
  fc.record({ transport: fc.constant('stdio'), command: fc.constant('/bin/false'), enabled: fc.constant(false) }),
  fc.record({ transport: fc.constant('streamableHttp'), url: anyWebUrl, enabled: fc.constant(false) }),
);

const schedule = fc.oneof(
  fc.record({ kind: fc.constant('every'), everyMs: fc.integer({ min: 60_000, max: 86_400_000 }) }),
  fc.record({ kind: fc.constant('at'), at: fc.constantFrom('2099-01-01T00:00:00Z', '2001-01-01T00:00:00Z') }),
  fc.record({ kind: fc.constant('daily'), time: fc.constantFrom('07:30', '23:59') }),
  fc.record({ kind: fc.constant('cron'), expression: fc.constantFrom('0 9 * * 1', '*/7 * * * *', '0 0 30 2 *', 'x') }),
);

/** Valid values by the name of the parameter. */
const good: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  threadId: known('thread'),
  turnId: known('turn'),
  expectedTurnId: known('turn'),
  beforeTurnId: known('turn'),
  atTurnId: known('turn'),
  queuedInputId: known('queued'),
  requestId: known('request'),
  decision: fc.constantFrom(...approvalDecisions),
  action: fc.constantFrom('accept', 'decline', 'cancel'),
  input: fc.array(part, { minLength: 1, maxLength: 3 }),
  identity,
  config: threadConfig,
  dynamicTools: fc.array(fc.constant(tool), { maxLength: 2 }),
  displayName: text,
  sender: text,
  channelName: text,
  historyMode: fc.constant('server'),
  includeTurns: fc.boolean(),
  includeArchived: fc.boolean(),
  replayRecent: fc.boolean(),
  turnLimit: fc.integer({ min: 1, max: 3 }),
  numTurns: fc.integer({ min: 1, max: 3 }),
  restoreFiles: fc.boolean(),
  paths: fc.array(fc.constantFrom('asked', 'nowhere/at/all', '..'), { maxLength: 2 }),
  force: fc.boolean(),
  worktree: fc.constant(false),
  format: fc.constantFrom('unified', 'summary'),
  name: fc.constantFrom('one', 'two'),
  server: fc.constantFrom('one', 'two'),
  settings,
  servers: fc.constant({}),
  clientInfo: fc.constant({ name: 'fuzz', version: '1' }),
  prompt: fc.constantFrom('look around', 'tidy up'),
  schedule,
  enabled: fc.boolean(),
  binding: fc.oneof(fc.constant({ mode: 'new' }), fc.constant({ mode: 'own' })),
  approvalPolicy: fc.constantFrom(...approvalPolicies),
  model: fc.constant('another'),
  deleteAfterRun: fc.boolean(),
  includeDisabled: fc.boolean(),
  processId: fc.constant('proc_1'),
  jobId: known('job'),
  automationId: known('automation'),
  version: fc.constantFrom(1, 2),
  change: fc.record({ name: fc.constant('renamed'), schedule, enabled: fc.boolean() }, { requiredKeys: [] }),
  step: fc.constantFrom(...moveSteps),
  moveId: fc.constantFrom('move_0000000000000001', 'move_0000000000000002'),
  part: fc.constantFrom(...moveParts),
  offset: fc.integer({ min: 0, max: 9 }),
  data: fc.constantFrom('', 'YWJj'),
  place: fc.constant('build:/srv/site'),
  limit: fc.integer({ min: 1, max: 500 }),
  before: fc.constantFrom('run_1', 'run_9'),
  query: text,
  arguments: text,
};

/** @param extent of the parameters: any value now and then, or only parameters with a valid value */
function paramsOf(method: RpcMethod, extent: 'any' | 'valid' = 'any'): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.keys(rpcMethods[method].params.entries).flatMap((name) => {
    const right = good[name];
    if (extent === 'valid') return right === undefined ? [] : [[name, right] as const];
    const some = { weight: 12, arbitrary: right ?? fc.jsonValue() };
    return [[name, fc.oneof(some, { weight: 1, arbitrary: fc.jsonValue() })] as const];
  });
  const required = fields
    .map(([name]) => name)
    .filter((name) => /Id$|^input$|^decision$|^name$|^servers?$|^prompt$|^schedule$|^change$|^query$/.test(name))
    .filter((name) => method !== 'turn/steer' || name !== 'queuedInputId');
  return fc.record(Object.fromEntries(fields), { requiredKeys: required });
}

// `mcp/test` starts the program in its parameters, so it is fuzzed with a name only.
const methods = (Object.keys(rpcMethods) as RpcMethod[]).filter((method) => method !== 'initialize');
const weights: Partial<Record<RpcMethod, number>> = {
  'turn/start': 12,
  'turn/enqueue': 4,
  'turn/steer': 4,
  'turn/interrupt': 3,
  'turn/queue/remove': 4,
  'approval/respond': 4,
};
const request = fc.oneof(
  ...methods.map((method) => ({
    weight: weights[method] ?? 1,
    arbitrary: fc.tuple(
      fc.constant(method),
      method === 'mcp/test' ? fc.record({ name: fc.jsonValue() }) : paramsOf(method),
    ),
  })),
);

/** Methods that need more than their parameters: a process, a fork with changes, a long talk, a server of tools, a log-in, a run, an open question. */
const needMoreThanParameters: readonly RpcMethod[] = [
  'process/stop',
  'thread/merge',
  'checkpoint/restore',
  'thread/compact',
  'question/answer',
  'mcp/login',
  'mcp/test',
  'automation/cancel',
];

/** Ways in which a client answers a request of the server. */
const answers = fc.constantFrom(
  'accept',
  'decline',
  'toolResult',
  'garbage',
  'error',
  'brokenError',
  'twice',
  'wrongId',
  'nothing',
);
type Answer = typeof answers extends fc.Arbitrary<infer A> ? A : never;

function framesFor(answer: Answer, id: unknown, garbage: unknown): unknown[] {
  const result = (value: unknown, to = id) => ({ jsonrpc: '2.0', id: to, result: value });
  switch (answer) {
    case 'accept':
    case 'decline':
      return [result({ decision: answer })];
    case 'toolResult':
      return [result({ success: true, contentItems: [] })];
    case 'garbage':
      return [result(garbage)];
    case 'error':
      return [{ jsonrpc: '2.0', id, error: { code: -1, message: 'no', data: garbage } }];
    case 'brokenError':
      return [{ jsonrpc: '2.0', id, error: garbage }, result(garbage)];
    case 'twice':
      return [result({ decision: 'accept' }), result({ decision: 'cancel' }), result(garbage)];
    case 'wrongId':
      return [result(garbage, 'server-0'), result(garbage, null), result(garbage, 10), result({ decision: 'decline' })];
    default:
      return [];
  }
}

/** Talks, asks for approval, and calls the tool of the client, by turns. */
function busyModel(): ModelProvider {
  let round = 0;
  return scripted(async function* ({ messages, tools = [] }) {
    round += 1;
    await sleep((round % 4) * 10);
    yield { type: 'text', text: `answer ${round}` };
    if (messages.at(-1)?.role === 'tool') return;
    const has = (name: string) => tools.some((offered) => offered.name === name);
    if (round % 3 === 0 && has('probe')) yield call(`call-${round}`, 'probe', {});
    // A command starts ten processes. Writing a file needs approval just as well, and starts no process.
    else if (round % 8 === 0 && has('Exec')) yield call(`call-${round}`, 'Exec', { command: 'touch asked' });
    else if (has('WriteFile')) yield call(`call-${round}`, 'WriteFile', { path: 'asked', content: `${round}` });
  });
}

const codes = new Set(Object.values(rpcErrors).map(({ code }) => code));
const kinds = ['thread', 'turn', 'queued', 'request', 'job', 'automation'] as const;
const ids: Record<string, Set<string>> = Object.fromEntries(kinds.map((kind) => [kind, new Set<string>()]));

/** Puts real ids in the place of `$kind n`. */
function resolve(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const [, kind = '', number = ''] = /^\$(\w+) (\d)$/.exec(value) ?? [];
  return [...(ids[kind] ?? [])].at(-1 - Number(number)) ?? value;
}

function learn({ method, result, params }: Message): void {
  const found = {
    thread: result?.turn?.threadId ?? result?.thread?.id,
    turn: result?.turn?.id,
    queued: result?.queuedInput?.id,
    request: method === 'item/approval/request' ? params.requestId : undefined,
    job: result?.job?.id,
    automation: (result?.job ?? result?.task ?? result?.automation)?.id,
  };
  for (const [kind, id] of Object.entries(found)) {
    // A known id moves to the end: the last id is the latest.
    ids[kind]?.delete(id);
    if (id !== undefined) ids[kind]?.add(id);
  }
}

/** A skill and a prompt command with a name that requests use. */
function addLibrary(workspace: string): void {
  const at = (...parts: string[]) => join(workspace, '.oratorio', ...parts);
  mkdirSync(at('skills', 'one'), { recursive: true });
  mkdirSync(at('commands'));
  writeFileSync(at('skills', 'one', 'SKILL.md'), '---\nname: one\ndescription: The first.\n---\nDo it.');
  writeFileSync(at('commands', 'two.md'), 'Do $ARGUMENTS.');
}

t.test('random parameters and answers get typed errors, and the server stays healthy', async (t) => {
  const { server, path, log } = await startServer(t, busyModel());
  addLibrary(path);
  const client = await Client.ready(t, server.webSocketUrl);
  const succeeded = new Set<string>();
  let asked = 0;
  /** Records the ids in all received messages, answers the requests among them, and drops the messages. */
  const attend = (kinds: readonly (readonly [Answer, unknown])[]) => {
    for (const message of client.messages.splice(0)) {
      learn(message);
      if (message.method === undefined || message.id === undefined) continue;
      const [kind, garbage] = kinds[asked % kinds.length] ?? ['nothing', null];
      asked += 1;
      for (const frame of framesFor(kind, message.id, garbage)) client.send(frame);
    }
  };
  const ask = (method: RpcMethod, params: Record<string, unknown>) =>
    client.ask(method, Object.fromEntries(Object.entries(params).map(([name, value]) => [name, resolve(value)])));
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 12 }),
      fc.array(fc.tuple(answers, fc.jsonValue()), { minLength: 4, maxLength: 4 }),
      async (requests, kinds) => {
        attend(kinds);
        // Something to work on: a new thread, and a turn that runs in it.
        const { thread } = await client.call('thread/start', { dynamicTools: [tool] });
        const { turn } = await client.call('turn/start', { threadId: thread.id, input: words('go') });
        learn({ result: { turn } });
        const replies = requests.map(([method, params]) => ask(method, params).then((reply) => ({ method, reply })));
        for (const { method, reply } of await Promise.all(replies)) {
          learn(reply);
          if (reply.error) {
            if (!codes.has(reply.error.code) || reply.error.code === rpcErrors.internalError.code) return false;
          } else {
            succeeded.add(method);
            v.assert(rpcMethods[method].result, reply.result);
          }
        }
        attend(kinds);
        const { error } = await client.ask('thread/read', { threadId: 'nobody' });
        return error.code === rpcErrors.threadNotFound.code;
      },
    ),
    { numRuns: 120 },
  );
  const job = { prompt: 'look around', schedule: { kind: 'every', everyMs: 86_400_000 } };
  const toolServer = { transport: 'stdio', command: '/bin/false', enabled: false };
  const unlucky = methods.filter((method) => !succeeded.has(method) && !needMoreThanParameters.includes(method));
  for (const method of unlucky) {
    for (let attempt = 0; !succeeded.has(method); attempt += 1) {
      const { thread } = await client.call('thread/start', {});
      learn({ result: { thread } });
      const isAnswer = method === 'approval/respond';
      const turn = {
        threadId: thread.id,
        input: words('go'),
        approvalPolicy: isAnswer ? 'default' : 'autoApprove',
      };
      learn(await client.ask('turn/start', turn));
      // An answer wants a turn that asks. Some methods want one that has ended, the others one that runs with an input that waits for its end.
      if (isAnswer) {
        await client.until(
          ({ method, params }) =>
            (method === 'item/approval/request' || method === 'turn/completed') && params.threadId === thread.id,
          'the turn asks, or ends',
        );
      } else if (attempt % 2 === 0) {
        await client.until(
          (message) => message.method === 'turn/completed' && message.params.threadId === thread.id,
          `the turn before ${method} ends`,
        );
      } else learn(await client.ask('turn/enqueue', turn));
      attend([[isAnswer ? 'nothing' : 'accept', null]]);
      if (/^(cron|automation)\//.test(method)) learn(await client.ask('cron/add', job));
      // Chance may have removed the servers of tools that random parameters name.
      if (method.startsWith('mcp/')) await client.call('mcp/upsert', { name: 'one', settings: toolServer });
      const [params = {}] = fc.sample(paramsOf(method, 'valid'), 1);
      const reply = await ask(method, params);
      if (!reply.error) succeeded.add(method);
      else if (attempt === 500) throw new Error(`${method} never succeeds: ${JSON.stringify(reply.error)}`);
    }
  }
  t.strictSame(
    methods.filter((method) => !succeeded.has(method)),
    needMoreThanParameters.filter((method) => !succeeded.has(method)),
    'each method succeeds: its parameters are not merely refused',
  );
  t.same(
    log.filter((line) => line.includes('"level":"error"')),
    [],
    'no bug was logged',
  );
});
