import fc from 'fast-check';
import t from 'tap';
import { chatErrors } from '../../src/chat/errors.ts';
import { rpcErrors, rpcMethods } from '../../src/protocol/index.ts';
import { answered } from '../fixtures/upstream/mock-upstream.ts';
import { user, workspaceWithUpstream } from './agent-faults.ts';
import { publishedBy, startApi } from './agent-server.ts';
import { startHub } from './harness.ts';

const chatCodes = new Set<string>(Object.values(chatErrors).map(({ code }) => code));
const rpcCodes = new Set<number>(Object.values(rpcErrors).map(({ code }) => code));

t.test('random bodies of the chat API get an exact error, and the server stays healthy', async (t) => {
  const { place, workspace } = await workspaceWithUpstream(t, (request) => answered(request, { text: 'ok' }));
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

t.test('random frames of JSON-RPC get an exact error, and the connection stays open', async (t) => {
  const { place, workspace } = await workspaceWithUpstream(t, (request) => answered(request, { text: 'ok' }));
  const hub = await startHub(place);
  const { pid } = await hub.client.ensure({ workspacePath: workspace });
  const { endpoints } = publishedBy(workspace);
  const socket = new WebSocket(endpoints.appServerWebSocket ?? '');
  t.teardown(() => socket.close());
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  let wake = () => {};
  let closed = '';
  socket.addEventListener('close', ({ code }) => {
    closed = `closed with ${code}`;
    wake();
  });
  // biome-ignore lint/suspicious/noExplicitAny: messages of every shape, compared field by field
  const received: any[] = [];
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
      });
    }
  };
  let round = 0;
  /** Answers to this frame: all that arrive before the answer to a sentinel request sent after it. */
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

  // Requests that ask the upstream or read the workspace may be answered later.
  const later = ['model/list', 'file/search'];
  const known = Object.keys(rpcMethods).filter((method) => !later.includes(method));
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
