/** An agent server whose world breaks: the upstream, its clients, its tools' processes, its disk, and what is sent to it. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { chatErrors } from '../../src/chat/errors.ts';
import { JsonRpcError, startThread } from '../../src/client/index.ts';
import { rpcErrors, rpcMethods, type Turn } from '../../src/protocol/index.ts';
import {
  answered,
  cut,
  delta,
  done,
  event,
  eventStream,
  hang,
  type Reply,
  rateLimited,
  refusal,
  type Script,
  startMockUpstream,
  type UpstreamRequest,
  wait,
  write,
} from '../fixtures/upstream/mock-upstream.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import {
  approver,
  connect,
  heard,
  itemsOf,
  lastTurn,
  lastWords,
  obedient,
  orders,
  publishedBy,
  readThread,
  resultsOf,
  runTurn,
  startApi,
  toolCall,
  tracesOf,
  turnEnd,
} from './agent-server.ts';
import { makePlace, type Place, processesUnder, startHub, stateOf, type Teardown } from './harness.ts';

const api = { Enabled: true, Port: 0 };
const user = (content: string) => ({ role: 'user', content });

/** A workspace whose upstream answers by `reply`. */
async function troubled(t: Test, reply: Reply, settings: Readonly<Record<string, unknown>> = {}) {
  const place = makePlace(t);
  const upstream = await startMockUpstream(t, reply);
  const workspace = place.workspace('site', {
    EndPoint: upstream.url,
    ApiKey: 'key-of-the-upstream',
    Model: 'mock-model',
    UpstreamRetries: 0,
    Api: api,
    ...settings,
  });
  return { place, upstream, workspace };
}

const begun = [eventStream, write(event(delta({ role: 'assistant', content: 'half an ' })))];

interface Fault {
  readonly script: Script;
  /** Of the chat API, when nothing was said before. */
  readonly status: number;
  readonly code: string;
  readonly turn: string;
  /** What the model had said before. */
  readonly said?: string;
  readonly retryAfter?: string;
}

const faults: Readonly<Record<string, Fault>> = {
  'closes the connection at once': {
    script: [cut],
    status: 502,
    code: 'upstream_unreachable',
    turn: 'upstreamUnreachable',
  },
  'never answers': { script: [hang], status: 502, code: 'upstream_unreachable', turn: 'upstreamUnreachable' },
  'sends headers and nothing else': {
    script: [eventStream, hang],
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
  },
  'falls silent in the middle': {
    script: [...begun, hang],
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
    said: 'half an ',
  },
  'is cut in the middle': {
    script: [...begun, cut],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
    said: 'half an ',
  },
  'is cut in the middle of a tool call': {
    script: [
      ...begun,
      write(
        event(
          delta({
            tool_calls: [
              {
                index: 0,
                id: 'half',
                type: 'function',
                function: { name: 'WriteFile', arguments: '{"path":"half.txt",' },
              },
            ],
          }),
        ),
      ),
      cut,
    ],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
    said: 'half an ',
  },
  'reports an error in the middle': {
    script: [...begun, write(event({ error: { message: 'out of memory', type: 'server_error' } })), write(done)],
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
    said: 'half an ',
  },
  'sends a page': {
    script: [
      { do: 'head', status: 200, headers: { 'content-type': 'text/html' } },
      write('<html><body>It works!</body></html>'),
    ],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
  },
  'sends bytes without a meaning': {
    script: [eventStream, write(Buffer.from([0, 255, 254, 10, 128, 10, 10])), write('data: {"choices": [nonsense\n\n')],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
  },
  'does not know our key': {
    script: refusal(401, { message: 'Incorrect API key provided.' }),
    status: 502,
    code: 'upstream_auth',
    turn: 'upstreamUnauthorized',
  },
  'wants to be left alone': {
    script: rateLimited(7),
    status: 429,
    code: 'upstream_rate_limit',
    turn: 'upstreamRateLimited',
    retryAfter: '7',
  },
  'has a bug': {
    script: refusal(500, { message: 'Internal server error.' }),
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
  },
  'does not like the request': {
    script: refusal(400, { message: 'Unsupported value.' }),
    status: 400,
    code: 'upstream_rejected',
    turn: 'upstreamRejected',
  },
  'cannot take so much in': {
    script: refusal(400, { message: 'Too long.', code: 'context_length_exceeded' }),
    status: 400,
    code: 'context_length_exceeded',
    turn: 'contextTooLong',
  },
};

/** Whatever ended a turn: it has no loose ends. */
function isWhole(t: Test, turn: Turn): void {
  t.strictSame(
    turn.items.filter(({ status }) => status !== 'completed'),
    [],
    'every item is complete',
  );
  const answeredCalls = itemsOf(turn, 'toolResult').map(({ callId }) => callId);
  t.strictSame(
    itemsOf(turn, 'toolCall').map(({ callId }) => callId),
    answeredCalls,
    'every call has a result',
  );
  t.ok(turn.completedAt);
}

t.test('an upstream that', async (t) => {
  const { place, workspace, upstream } = await troubled(
    t,
    (request) => faults[lastWords(request).words]?.script ?? obedient(request),
    // Long enough for an answer of a busy machine; well below `chat.heartbeatMs`, which would commit a stream to its 200.
    { UpstreamIdleMs: 4_000 },
  );
  const { chat, url } = await startApi(place, workspace);
  const client = await connect(t, workspace);
  const threadId = await startThread(client, { workspacePath: workspace });

  for (const [at, [name, fault]] of Object.entries(faults).entries()) {
    t.test(name, async (t) => {
      const { status, code, said = '', retryAfter = null } = fault;
      const body = { messages: [user(name)] };
      const [whole, stream, turn] = await Promise.all([
        chat(body),
        chat({ ...body, stream: true }, { headers: { 'x-session-id': `streamed-${at}` } }),
        runTurn(client, threadId, name),
      ]);
      t.equal(whole.status, status);
      t.equal(whole.headers.get('retry-after'), retryAfter);
      t.match(await whole.json(), { error: { code, message: /upstream/, param: null } });

      if (said === '') {
        t.equal(stream.status, status);
        t.match(await stream.json(), { error: { code } });
      } else {
        t.equal(stream.status, 200);
        const frames = (await stream.text())
          .trim()
          .split('\n\n')
          .map((frame) => frame.replace(/^data: /, ''));
        t.match(
          JSON.parse(frames.at(-1) ?? ''),
          { error: { code, message: /upstream/ } },
          'the last frame is the error',
        );
        const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame));
        t.equal(chunks.map(({ choices }) => choices[0].delta.content ?? '').join(''), said);
      }

      t.match(turn, { status: 'failed', error: { code: fault.turn } });
      t.strictSame(
        itemsOf(turn, 'agentMessage').map(({ text }) => text),
        said === '' ? [] : [said],
      );
      t.equal(itemsOf(turn, 'error').length, 1);
      isWhole(t, turn);
      t.match(await runTurn(client, threadId, 'hello'), { status: 'completed' }, 'the next turn works');
      const again = await chat({ messages: [user('hello')] }, { headers: { 'x-session-id': `streamed-${at}` } });
      t.match(await again.json(), { choices: [{ message: { content: 'done' } }] });
    });
  }

  t.test('is not there', async (t) => {
    await upstream.close();
    const answer = await chat({ messages: [user('hello')] });
    t.equal(answer.status, 502);
    t.match(await answer.json(), { error: { code: 'upstream_unreachable' } });
    t.match(await runTurn(client, threadId, 'hello'), { status: 'failed', error: { code: 'upstreamUnreachable' } });
    t.match(await (await fetch(`${url}/v1/health`)).json(), { status: 'ok', activeTurns: 0 });
  });
  t.notOk(existsSync(join(workspace, 'half.txt')), 'half a call was not run');
});

t.test('a context that is too long is compacted, once, and the turn goes on', async (t) => {
  let summaries = 0;
  let refusals = 0;
  let isHopeless = false;
  const isSummary = ({ body }: UpstreamRequest) => /^Summarise the conversation/.test(body.messages[0].content);
  const tooLong = () => {
    refusals += 1;
    return refusal(400, { message: 'Too long.', code: 'context_length_exceeded' });
  };
  const { place, workspace } = await troubled(
    t,
    (request) => {
      if (isSummary(request)) {
        summaries += 1;
        return answered(request, { text: 'All was well.' });
      }
      return isHopeless || request.body.messages.length > 5 ? tooLong() : obedient(request);
    },
    { Compaction: { KeepRecentTurns: 1 } },
  );
  const hub = await startHub(place);
  await hub.client.ensure({ workspacePath: workspace });
  const client = await connect(t, workspace);
  const threadId = await startThread(client, { workspacePath: workspace });
  for (const words of ['one', 'two']) t.equal((await runTurn(client, threadId, words)).status, 'completed');
  const turn = await runTurn(client, threadId, 'three');
  t.equal(turn.status, 'completed');
  t.match(itemsOf(turn, 'systemNotice'), [{ kind: 'contextCompacted' }]);
  t.match(itemsOf(turn, 'agentMessage'), [{ text: 'done' }]);
  t.strictSame([summaries, refusals], [1, 1]);
  isHopeless = true;
  const failed = await runTurn(client, threadId, 'four');
  t.match(failed, { status: 'failed', error: { code: 'contextTooLong' } });
  isWhole(t, failed);
  isHopeless = false;
  t.equal((await runTurn(client, threadId, 'five')).status, 'completed');
  t.equal((await readThread(client, threadId)).turns?.length, 5, 'what was said before is still to be read');
  await eventually(
    () => tracesOf(workspace).some(({ type }) => type === 'context.compacted') || undefined,
    'the compaction is traced',
  );
});

/** Processes that are neither ours to start nor of Oratorio: what tools have left. */
const strays = ({ root }: Place) =>
  processesUnder(root)
    .filter(({ argv }) => !argv.some((word) => /oratorio\.js$|\/dist\//.test(word)))
    .map(({ pid, argv }) => `${pid} ${argv.join(' ')}`);

const untilNoStrays = (place: Place) =>
  eventually(
    () => strays(place).length === 0 || undefined,
    () => `no process is left: ${strays(place).join('; ')}`,
  );

/** Writes what it is called, then runs until it is ended. */
const runsFor = (name: string) => toolCall('Exec', { command: `touch ${name}; while :; do sleep 0.1; done` });
const untilThere = (file: string) => eventually(() => existsSync(file) || undefined, `${file} is there`);

t.test('a client of the chat API that vanishes', async (t) => {
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const { place, workspace, upstream } = await troubled(
    t,
    (request) =>
      lastWords(request).words === 'talk'
        ? [...begun, wait(gate.promise), write(event(delta({ content: 'answer' }, 'stop'))), write(done)]
        : obedient(request),
    { Api: { ...api, DisconnectGraceMs: 200 } },
  );
  const { chat, url } = await startApi(place, workspace);
  const client = await connect(t, workspace);
  const sessionThread = async () => {
    const { data } = (await client.request('thread/list')) as { data: { id: string }[] };
    return data[0]?.id ?? '';
  };
  const idle = () =>
    eventually(async () => {
      const { activeTurns } = (await (await fetch(`${url}/v1/health`)).json()) as { activeTurns: number };
      return activeTurns === 0 || undefined;
    }, 'no turn runs');

  t.test('in the middle of words: the upstream is hung up on', async (t) => {
    const leaving = new AbortController();
    const answer = await chat({ messages: [user('talk')], stream: true }, { signal: leaving.signal });
    t.equal(answer.status, 200);
    leaving.abort();
    await upstream.requests.at(-1)?.closed;
    await idle();
  });

  t.test('while a tool runs: it is ended, and no other starts', async (t) => {
    const leaving = new AbortController();
    const calls = [
      runsFor('running'),
      toolCall('Exec', { command: 'touch after' }),
      toolCall('WriteFile', { path: 'after', content: '' }),
    ];
    const body = { messages: [user(orders({ toolCalls: calls }))], stream: true };
    const headers = { 'x-session-id': 'leaving' };
    const answer = await chat(body, { headers, signal: leaving.signal });
    t.equal(answer.status, 200);
    await untilThere(join(workspace, 'running'));
    const asked = upstream.requests.length;
    leaving.abort();
    await untilNoStrays(place);
    await idle();
    const turn = await lastTurn(client, await sessionThread());
    t.match(turn, { status: 'cancelled', interruptedBy: 'user' });
    isWhole(t, turn);
    t.strictSame(
      resultsOf(turn).map(({ outcome }) => outcome),
      ['cancelled', 'cancelled', 'cancelled'],
    );
    t.notOk(existsSync(join(workspace, 'after')));
    t.equal(upstream.requests.length, asked, 'the model is not asked again');
    const next = await chat({ messages: [user('hello')] }, { headers });
    t.match(await next.json(), { choices: [{ message: { content: 'done' } }] }, 'the session goes on');
  });
});

t.test('a client of the chat API that vanishes while its approval is waited for', async (t) => {
  const { place, workspace, upstream } = await troubled(t, obedient, {
    Api: { ...api, ApprovalMode: 'interactive', DisconnectGraceMs: 100 },
  });
  const { chat, url } = await startApi(place, workspace);
  const pending = async () => {
    const { approvals } = (await (await fetch(`${url}/v1/approvals`)).json()) as { approvals: { id: string }[] };
    return approvals;
  };
  const leaving = new AbortController();
  const content = orders({ toolCalls: [toolCall('WriteFile', { path: 'asked.txt', content: 'x' })] });
  const asking = chat({ messages: [user(content)] }, { headers: { 'x-session-id': 's' }, signal: leaving.signal });
  const gone = asking.then(
    () => 'answered',
    () => 'gone',
  );
  const [asked] = await eventually(async () => ((await pending()).length > 0 ? pending() : undefined), 'it is asked');
  leaving.abort();
  t.equal(await gone, 'gone');
  await eventually(async () => (await pending()).length === 0 || undefined, 'nothing is waited for any more');
  await eventually(async () => {
    const { activeTurns } = (await (await fetch(`${url}/v1/health`)).json()) as { activeTurns: number };
    return activeTurns === 0 || undefined;
  }, 'the turn has ended');
  const late = await fetch(`${url}/v1/approvals/${asked?.id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"approved": true}',
  });
  t.equal(late.status, 404);
  t.notOk(existsSync(join(workspace, 'asked.txt')));
  const client = await connect(t, workspace);
  const { data } = (await client.request('thread/list')) as { data: { id: string }[] };
  const turn = await lastTurn(client, data[0]?.id ?? '');
  t.match(turn, {
    status: 'cancelled',
    items: [{ type: 'userMessage' }, { type: 'toolCall' }, {}, { decision: 'cancel' }],
  });
  const next = await chat({ messages: [user('hello')] }, { headers: { 'x-session-id': 's' } });
  t.match(await next.json(), { choices: [{ message: { content: 'done' } }] }, 'the session goes on');
  // Upstreams refuse a call without a result.
  const told: { role: string; tool_calls?: { id: string }[]; tool_call_id?: string }[] =
    upstream.requests.at(-1)?.body.messages;
  const calls = told.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
  t.strictSame(
    told.flatMap(({ tool_call_id }) => tool_call_id ?? []),
    calls,
  );
});

t.test('clients of JSON-RPC come and go, the turn stays', async (t) => {
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const { place, workspace } = await troubled(t, (request) =>
    lastWords(request).words === 'talk'
      ? [...begun, wait(gate.promise), write(event(delta({ content: 'answer' }, 'stop'))), write(done)]
      : obedient(request),
  );
  const hub = await startHub(place);
  await hub.client.ensure({ workspacePath: workspace });

  t.test('in the middle of words', async (t) => {
    const first = await connect(t, workspace);
    const threadId = await startThread(first, { workspacePath: workspace });
    const begins = heard(first, ({ method }) => method === 'item/agentMessage/delta');
    await first.request('turn/start', { threadId, input: [{ type: 'text', text: 'talk' }] });
    await begins;
    first.close();
    const second = await connect(t, workspace);
    t.match(await lastTurn(second, threadId), { status: 'running', items: [{}, { text: 'half an ' }] });
    await second.request('thread/subscribe', { threadId });
    const ended = turnEnd(second, threadId);
    gate.resolve();
    t.equal((await ended).method, 'turn/completed');
    t.match(itemsOf(await lastTurn(second, threadId), 'agentMessage'), [{ text: 'half an answer' }]);
  });

  t.test('in the middle of an approval: the next one is asked', async (t) => {
    let ask = Promise.withResolvers<void>();
    const first = await connect(t, workspace, {
      onRequest: () => {
        ask.resolve();
        return new Promise(() => undefined);
      },
    });
    const threadId = await startThread(first, { workspacePath: workspace });
    const text = orders({ toolCalls: [toolCall('WriteFile', { path: 'approved.txt', content: 'x' })] });
    await first.request('turn/start', { threadId, input: [{ type: 'text', text }] });
    await ask.promise;
    first.close();
    ask = Promise.withResolvers();
    const { asked, onRequest } = approver('accept');
    const second = await connect(t, workspace, { onRequest });
    const ended = turnEnd(second, threadId);
    await second.request('thread/resume', { threadId });
    t.equal((await ended).method, 'turn/completed');
    t.match(asked, [{ tool: 'WriteFile', target: join(workspace, 'approved.txt') }]);
    t.ok(existsSync(join(workspace, 'approved.txt')));
  });

  t.test('two on one thread: both hear the same, one turn runs, the first answer counts', async (t) => {
    const clients = [await connect(t, workspace, { onRequest: () => new Promise(() => undefined) })] as const;
    const [first] = clients;
    const second = await connect(t, workspace, { onRequest: () => new Promise(() => undefined) });
    const threadId = await startThread(first, { workspacePath: workspace });
    await second.request('thread/subscribe', { threadId });
    const logs: string[][] = [[], []];
    for (const [at, each] of [first, second].entries()) {
      each.onNotification(({ method, params }) => {
        if (params['threadId'] === threadId && !method.startsWith('thread/'))
          logs[at]?.push(`${method} ${JSON.stringify(params)}`);
      });
    }
    const text = orders({ text: 'let me see', toolCalls: [toolCall('Exec', { command: 'echo once >> times.txt' })] });
    const ends = [turnEnd(first, threadId), turnEnd(second, threadId)];
    await first.request('turn/start', { threadId, input: [{ type: 'text', text }] });
    await t.rejects(second.request('turn/start', { threadId, input: [{ type: 'text', text: 'me too' }] }), {
      code: rpcErrors.turnInProgress.code,
    });
    const waiting = async () => {
      const { data } = (await second.request('approval/list', { threadId })) as { data: { requestId: string }[] };
      return data[0]?.requestId;
    };
    const requestId = await eventually(waiting, 'an approval waits');
    const answers = await Promise.allSettled(
      [first, second].map((each) => each.request('approval/respond', { requestId, decision: 'accept' })),
    );
    t.strictSame(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    const [lost] = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    t.match(lost, { code: rpcErrors.approvalNotFound.code });
    t.match(await Promise.all(ends), [{ method: 'turn/completed' }, { method: 'turn/completed' }]);
    t.strictSame(logs[0], logs[1]);
    t.equal(readFileSync(join(workspace, 'times.txt'), 'utf8'), 'once\n');
  });
});

t.test('commands that do not want to end', async (t) => {
  const { place, workspace } = await troubled(t, obedient);
  const hub = await startHub(place);
  await hub.client.ensure({ workspacePath: workspace });
  const client = await connect(t, workspace, { onRequest: approver('accept').onRequest });
  const stubborn = `trap '' TERM INT HUP; while :; do sleep 0.1; done`;
  const commands = {
    'flood the output': 'touch "$0.started" 2>/dev/null; touch started; yes',
    'ignore every polite signal': `touch started; ${stubborn}`,
    'fork daemons': `setsid sh -c "${stubborn}" & (setsid sh -c "${stubborn}" >/dev/null 2>&1 &) ; nohup sh -c "${stubborn}" & touch started; ${stubborn}`,
    'stop themselves': 'touch started; kill -STOP $$; sleep 1000',
    'fork without end': 'touch started; while :; do sh -c "sleep 1000" & sleep 0.02; done',
  };
  for (const [name, command] of Object.entries(commands)) {
    t.test(name, async (t) => {
      rmSync(join(workspace, 'started'), { force: true });
      const threadId = await startThread(client, { workspacePath: workspace });
      const ended = turnEnd(client, threadId);
      const text = orders({ toolCalls: [toolCall('Exec', { command })] });
      const { turn } = (await client.request('turn/start', { threadId, input: [{ type: 'text', text }] })) as {
        turn: Turn;
      };
      await untilThere(join(workspace, 'started'));
      // It answers while the flood goes on.
      await client.request('thread/list');
      await client.request('turn/interrupt', { threadId, turnId: turn.id });
      t.equal((await ended).method, 'turn/cancelled');
      const after = await lastTurn(client, threadId);
      isWhole(t, after);
      t.match(resultsOf(after), [{ outcome: 'cancelled' }]);
      await untilNoStrays(place);
      t.match(await runTurn(client, threadId, 'hello'), { status: 'completed' });
    });
  }

  t.test('daemons of a command that has ended, and a flood that has a time limit', async (t) => {
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
    t.ok((flood?.text.length ?? 0) < 60_000, 'the model is shown a part');
    for (const { output } of itemsOf(turn, 'commandExecution'))
      t.ok(output.length < 250_000, 'and so is everybody else');
    await untilNoStrays(place);
  });
});

/** A file system of its own for the state of a workspace where we may mount one; else a limit on what its server may write. */
function smallDisk(t: Teardown, workspace: string) {
  const directory = stateOf(workspace);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const pid = () => publishedBy(workspace).pid;
  const limit = (bytes: string) => void execFileSync('prlimit', ['--pid', String(pid()), `--fsize=${bytes}:`]);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'tmpfs', directory], { stdio: 'ignore' });
  } catch {
    return { fill: () => limit('0'), makeRoom: () => limit('unlimited') };
  }
  t.teardown(() => execFileSync('umount', ['--lazy', directory]));
  const ballast = join(directory, 'ballast');
  const write = (file: string, bytes: Uint8Array) => {
    const fd = openSync(file, 'a');
    try {
      writeSync(fd, bytes);
    } finally {
      process.getBuiltinModule('node:fs').closeSync(fd);
    }
  };
  return {
    fill() {
      try {
        for (;;) write(ballast, Buffer.alloc(4096));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      }
    },
    makeRoom: () => rmSync(ballast),
  };
}

t.test('a full disk', async (t) => {
  let gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  // Long enough to need another page of the database.
  const rest = 'and all the rest of it '.repeat(2_000);
  const { place, workspace } = await troubled(t, (request) =>
    lastWords(request).words === 'talk'
      ? [...begun, wait(gate.promise), write(event(delta({ content: rest }, 'stop'))), write(done)]
      : obedient(request),
  );
  const disk = smallDisk(t, workspace);
  const { chat, url, pid } = await startApi(place, workspace);
  const client = await connect(t, workspace);
  const earlier = await startThread(client, { workspacePath: workspace });
  t.equal((await runTurn(client, earlier, 'hello')).status, 'completed');
  const kept = (await readThread(client, earlier)).turns;
  const threadId = await startThread(client, { workspacePath: workspace });
  t.equal((await runTurn(client, threadId, 'hello')).status, 'completed');

  const begins = heard(client, ({ method }) => method === 'item/agentMessage/delta');
  const ended = turnEnd(client, threadId);
  await client.request('turn/start', { threadId, input: [{ type: 'text', text: 'talk' }] });
  await begins;
  const session = { headers: { 'x-session-id': 'on-a-full-disk' } };
  const streaming = await chat({ messages: [user('talk')], stream: true }, session);
  t.equal(streaming.status, 200);
  disk.fill();
  gate.resolve();

  t.test('a turn that runs fails, and says why', async (t) => {
    const { method, params } = await ended;
    t.match(
      { method, params },
      { method: 'turn/failed', params: { error: { code: 'storageFailed', message: /disk|room/i } } },
    );
    const last = (await streaming.text()).trim().split('\n\n').at(-1) ?? '';
    t.match(JSON.parse(last.replace(/^data: /, '')), { error: { code: 'storage_failed' } });
  });
  t.test('a new one is refused', async (t) => {
    // A small one may still find room in a page that was begun.
    const refused = async () => {
      try {
        await client.request('thread/start', { displayName: 'x'.repeat(10_000) });
      } catch (error) {
        return error;
      }
      return undefined;
    };
    const error = await eventually(refused, 'a thread is refused');
    t.ok(error instanceof JsonRpcError);
    t.match(error, { code: rpcErrors.storageFailed.code });
    const answer = await chat({ messages: [user('x'.repeat(50_000))] }, session);
    t.match(
      { status: answer.status, body: await answer.json() },
      { status: 500, body: { error: { code: 'storage_failed' } } },
    );
  });
  t.test('the server lives, and what was kept can be read', async (t) => {
    t.match(await (await fetch(`${url}/v1/health`)).json(), { status: 'ok' });
    t.strictSame((await readThread(client, earlier)).turns, kept);
    t.ok(isAlive(pid));
  });
  t.test('the turn that failed is told as failed', async (t) => {
    const turn = await lastTurn(client, threadId);
    t.match(turn, { status: 'failed', error: { code: 'storageFailed' } });
  });
  t.test('with room again everything works', async (t) => {
    disk.makeRoom();
    gate = Promise.withResolvers();
    t.match(await runTurn(client, threadId, 'hello'), { status: 'completed' });
    t.match(await runTurn(client, earlier, 'hello'), { status: 'completed' });
    const answer = await chat({ messages: [user('hello')] }, session);
    t.match({ status: answer.status, body: await answer.json() }, { status: 200 });
    t.match(
      (await readThread(client, threadId)).turns?.map(({ status }) => status),
      ['completed', 'failed', 'completed'],
    );
  });
});

const chatCodes = new Set<string>(Object.values(chatErrors).map(({ code }) => code));
const rpcCodes = new Set<number>(Object.values(rpcErrors).map(({ code }) => code));

t.test('hundreds of bodies that are wrong in some way: exact errors, and the server is well', async (t) => {
  const { place, workspace } = await troubled(t, (request) => answered(request, { text: 'ok' }));
  const { chat, url, output } = await startApi(place, workspace);
  const message = fc.record(
    { role: fc.oneof(fc.constantFrom('user', 'assistant', 'tool', 'system'), fc.jsonValue()), content: fc.jsonValue() },
    { requiredKeys: [] },
  );
  const request = fc.record(
    {
      messages: fc.oneof(fc.array(message, { maxLength: 4 }), fc.jsonValue()),
      model: fc.jsonValue(),
      stream: fc.oneof(fc.boolean(), fc.jsonValue()),
      tools: fc.jsonValue(),
      tool_choice: fc.jsonValue(),
      response_format: fc.jsonValue(),
      n: fc.jsonValue(),
      temperature: fc.jsonValue(),
      metadata: fc.jsonValue(),
      x_agent: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  const utf8 = new TextEncoder();
  const text = (json: string) => utf8.encode(json.toWellFormed());
  const bodies = fc.oneof(
    { weight: 5, arbitrary: request.map((body) => text(JSON.stringify(body))) },
    {
      weight: 2,
      arbitrary: fc.tuple(request, fc.nat(80)).map(([body, at]) => text(JSON.stringify(body).slice(0, at))),
    },
    { weight: 1, arbitrary: fc.json().map(text) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }) },
    { weight: 1, arbitrary: fc.nat(5_000).map((depth) => text('['.repeat(depth) + ']'.repeat(depth))) },
  );
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      const answer = await chat(body);
      const said = await answer.text();
      if (answer.status === 200) return isJson(body);
      const { error } = JSON.parse(said);
      const isExact = isJson(body) ? error.code !== 'invalid_json' : error.code === 'invalid_json';
      return answer.status === 400 && isExact && chatCodes.has(error.code) && typeof error.message === 'string';
    }),
    { numRuns: 300 },
  );
  t.match(await (await fetch(`${url}/v1/health`)).json(), { status: 'ok', activeTurns: 0 });
  t.match(await (await chat({ messages: [user('hello')] })).json(), { choices: [{ message: { content: 'ok' } }] });
  t.notMatch(output(), /"level":"error"|because of a bug/);
});

const strict = new TextDecoder('utf-8', { fatal: true });
function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(strict.decode(bytes));
    return true;
  } catch {
    return false;
  }
}

t.test('hundreds of frames that are wrong in some way: exact errors, and the connection lives', async (t) => {
  const { place, workspace } = await troubled(t, (request) => answered(request, { text: 'ok' }));
  const hub = await startHub(place);
  const { pid } = await hub.client.ensure({ workspacePath: workspace });
  const { endpoints } = publishedBy(workspace);
  const socket = new WebSocket(endpoints.appServerWebSocket ?? '');
  t.teardown(() => socket.close());
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  let closed = '';
  socket.addEventListener('close', ({ code }) => {
    closed = `closed with ${code}`;
  });
  // Whatever the server says.
  // biome-ignore lint/suspicious/noExplicitAny: looked at field by field
  const received: any[] = [];
  let wake = () => {};
  socket.addEventListener('message', ({ data }) => {
    received.push(JSON.parse(String(data)));
    wake();
  });
  const until = async <T>(find: () => T | undefined) => {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (closed) throw new Error(closed);
      await new Promise<void>((resolve) => {
        wake = resolve;
        socket.addEventListener('close', () => resolve(), { once: true });
      });
    }
  };
  let round = 0;
  /** All answers to this frame: those that came before the answer to a question that was asked after it. */
  const answersTo = async (frame: string) => {
    received.length = 0;
    round += 1;
    const id = `sentinel ${round}`;
    socket.send(frame);
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'thread/read', params: { threadId: 'none' } }));
    await until(() => received.find((each) => each.id === id));
    return received.filter((each) => each.method === undefined && each.id !== id);
  };
  t.match(await answersTo('{"jsonrpc":"2.0","id":1,"method":"thread/list"}'), [
    { id: 1, error: { code: rpcErrors.notInitialized.code } },
  ]);
  const clientInfo = { name: 'fuzz', version: '1' };
  t.match(await answersTo(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'initialize', params: { clientInfo } })), [
    { id: 2, result: {} },
  ]);
  socket.send('{"jsonrpc":"2.0","method":"initialized"}');

  // `model/list` asks the upstream and may be answered later.
  const known = Object.keys(rpcMethods).filter((method) => method !== 'model/list');
  const call = fc.record({
    jsonrpc: fc.constant('2.0'),
    id: fc.oneof(fc.integer(), fc.string()),
    method: fc.constantFrom(...known, 'toString', '__proto__', ''),
    params: fc.oneof(
      fc.dictionary(fc.constantFrom('threadId', 'turnId', 'input', 'config', 'name', 'identity'), fc.jsonValue()),
      fc.array(fc.jsonValue()),
    ),
  });
  await fc.assert(
    fc.asyncProperty(call, async (message) => {
      const [answer, ...others] = await answersTo(JSON.stringify(message));
      if (others.length > 0 || answer?.id !== message.id || answer.jsonrpc !== '2.0') return false;
      if (answer.error === undefined) return 'result' in answer;
      const isKnown = known.includes(message.method);
      if (!isKnown) return answer.error.code === rpcErrors.methodNotFound.code;
      return rpcCodes.has(answer.error.code) && answer.error.code !== rpcErrors.internalError.code;
    }),
    { numRuns: 250 },
  );
  const broken = fc.oneof(
    fc.string({ unit: 'grapheme' }).filter((text) => !isJson(Buffer.from(text))),
    fc.tuple(call, fc.nat(30)).map(([message, at]) => JSON.stringify(message).slice(0, at)),
  );
  await fc.assert(
    fc.asyncProperty(broken, async (frame) => {
      const answers = await answersTo(frame);
      return answers.length === 1 && answers[0].id === null && answers[0].error.code === rpcErrors.parseError.code;
    }),
    { numRuns: 100 },
  );
  const noMessage = fc.oneof(
    fc.array(call),
    fc.oneof(fc.integer(), fc.boolean(), fc.constant(null)),
    call.map((message) => ({ ...message, jsonrpc: '1.0' })),
    call.map((message) => ({ ...message, id: null })),
    call.map((message) => ({ ...message, method: 7 })),
    call.map((message) => ({ ...message, params: 'text' })),
  );
  await fc.assert(
    fc.asyncProperty(noMessage, async (frame) => {
      const answers = await answersTo(JSON.stringify(frame));
      return answers.length === 1 && answers[0].error.code === rpcErrors.invalidRequest.code;
    }),
    { numRuns: 150 },
  );
  t.equal(closed, '');
  t.match(await hub.client.byWorkspace(workspace), { state: 'running', pid });
});
