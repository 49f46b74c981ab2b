import t from 'tap';
import * as v from 'valibot';
import { rpcErrors, rpcMethods, rpcNotifications, version } from '../../src/protocol/index.ts';
import { neverEnds, says, scripted } from '../agent/helpers.ts';
import {
  Client,
  deferred,
  launchDocument,
  makeWorkspace,
  RpcFailure,
  RpcSuccess,
  startServer,
  words,
} from './harness.ts';

const introduction = { clientInfo: { name: 'test', version: '1' } };

for (const kind of ['node', 'ws'] as const) {
  t.test(`handshake and a turn succeed with the WebSocket of ${kind}`, async (t) => {
    const { server, path } = await startServer(t);
    const client = await Client.open(t, server.webSocketUrl, kind);
    const introduced = await client.call('initialize', introduction);
    t.same(introduced.serverInfo, { name: 'oratorio', version, protocolVersion: '1', extensions: [] });
    t.match(introduced.capabilities, {
      threadManagement: true,
      threadSubscriptions: true,
      approvalFlow: true,
      mcpManagement: true,
      extensions: { checkpoints: true },
    });
    client.send({ jsonrpc: '2.0', method: 'initialized', params: {} });
    const { thread } = await client.call('thread/start', {
      identity: { channelName: 'cli', userId: 'u', workspacePath: path },
    });
    t.match(thread, { status: 'active', workspacePath: path });
    const { turn } = await client.call('turn/start', { threadId: thread.id, input: words('count to 3') });
    t.match(turn, { status: 'running', items: [] });
    const { params } = await client.notification('turn/completed');
    t.match(params.turn.items.at(-1), { type: 'agentMessage', text: 'Demo model (offline, no AI): 1 2 3' });
    const said = client.messages
      .filter(({ method }) => method === 'item/agentMessage/delta')
      .map((message) => message.params.delta);
    t.equal(said.join(''), 'Demo model (offline, no AI): 1 2 3');
    t.ok(said.length > 3, 'word by word');
  });
}

t.test('every message is JSON-RPC 2.0 and fits its schema', async (t) => {
  const { server } = await startServer(t, says('a', 'b'));
  const client = await Client.ready(t, server.webSocketUrl);
  const { thread } = await client.call('thread/start', {});
  await client.call('turn/start', { threadId: thread.id, input: words('x') });
  await client.notification('turn/completed');
  const calls = {
    'thread/list': {},
    'thread/read': { threadId: thread.id, includeTurns: true },
    'thread/resume': { threadId: thread.id },
    'thread/subscribe': { threadId: thread.id },
    'thread/unsubscribe': { threadId: thread.id },
    'model/list': {},
  };
  for (const [method, params] of Object.entries(calls)) {
    const result = await client.call(method, params);
    v.assert(rpcMethods[method as keyof typeof calls].result, result);
  }
  await client.notification('thread/resumed');
  for (const message of client.messages) {
    t.equal(message.jsonrpc, '2.0');
    t.notMatch(JSON.stringify(message), /:null/, 'what is not known is left out');
    if (message.method === undefined) v.assert(RpcSuccess, message);
    else v.assert(rpcNotifications[message.method as keyof typeof rpcNotifications], message.params);
  }
});

t.test('an answer precedes the notifications it causes, and those arrive in order', async (t) => {
  const { server } = await startServer(t, says('x'));
  const client = await Client.ready(t, server.webSocketUrl);
  const { thread } = await client.call('thread/start', {});
  await client.notification('thread/started');
  await client.call('turn/start', { threadId: thread.id, input: words('x') });
  await client.until(
    ({ method, params }) => method === 'thread/runtimeChanged' && params.runtime.running === false,
    'the thread is free again',
  );
  const order = client.messages.map((message) => message.method ?? Object.keys(message.result)[0]);
  t.same(order, [
    'serverInfo',
    'thread',
    'thread/started',
    'turn',
    'thread/runtimeChanged',
    'turn/started',
    'item/started',
    'item/completed',
    'item/started',
    'item/agentMessage/delta',
    'item/usage/delta',
    'item/completed',
    'turn/completed',
    'thread/runtimeChanged',
  ]);
});

t.test('turn/interrupt is answered before the turn is cancelled', async (t) => {
  const { server } = await startServer(t, neverEnds());
  const client = await Client.ready(t, server.webSocketUrl);
  const { thread } = await client.call('thread/start', {});
  const { turn } = await client.call('turn/start', { threadId: thread.id, input: words('x') });
  await client.notification('item/agentMessage/delta');
  t.same(await client.call('turn/interrupt', { threadId: thread.id, turnId: turn.id }), {});
  const { params } = await client.notification('turn/cancelled');
  t.match(params, { threadId: thread.id, turn: { id: turn.id, status: 'cancelled' } });
  const afterwards = client.messages.slice(client.messages.findIndex(({ method }) => method === 'turn/cancelled') + 1);
  t.same(
    afterwards.filter(({ method = '' }) => /^(turn|item)/.test(method)),
    [],
    'no notification of the turn follows',
  );
  t.equal(
    (await client.ask('turn/interrupt', { threadId: thread.id, turnId: turn.id })).error.code,
    rpcErrors.turnNotRunning.code,
  );
});

t.test('each error condition is answered with its code of the table', async (t) => {
  const never = neverEnds();
  const models = deferred<never>();
  const provider = { ...never, listModels: () => models.promise };
  const { server, log } = await startServer(t, provider);

  await t.test('an invalid frame is a parseError or an invalidRequest', async (t) => {
    const client = await Client.ready(t, server.webSocketUrl);
    const frames: [string, number, unknown][] = [
      ['', rpcErrors.parseError.code, null],
      ['{', rpcErrors.parseError.code, null],
      ['hello', rpcErrors.parseError.code, null],
      ['[]', rpcErrors.invalidRequest.code, null],
      ['[{"jsonrpc":"2.0","id":1,"method":"thread/list"}]', rpcErrors.invalidRequest.code, null],
      ['1', rpcErrors.invalidRequest.code, null],
      ['null', rpcErrors.invalidRequest.code, null],
      ['{}', rpcErrors.invalidRequest.code, null],
      ['{"jsonrpc":"2.0","id":5}', rpcErrors.invalidRequest.code, 5],
      ['{"id":6,"method":"thread/list"}', rpcErrors.invalidRequest.code, 6],
      ['{"jsonrpc":"1.0","id":7,"method":"thread/list"}', rpcErrors.invalidRequest.code, 7],
      ['{"jsonrpc":"2.0","id":8,"method":5}', rpcErrors.invalidRequest.code, 8],
      ['{"jsonrpc":"2.0","id":9,"method":"thread/list","params":5}', rpcErrors.invalidRequest.code, 9],
      ['{"jsonrpc":"2.0","id":null,"method":"thread/list"}', rpcErrors.invalidRequest.code, null],
      ['{"jsonrpc":"2.0","id":1.5,"method":"thread/list"}', rpcErrors.invalidRequest.code, null],
      ['{"jsonrpc":"2.0","id":{},"method":"thread/list"}', rpcErrors.invalidRequest.code, null],
      ['{"jsonrpc":"2.0","id":9007199254740993,"method":"thread/list"}', rpcErrors.invalidRequest.code, null],
      ['{"jsonrpc":"2.0","method":7}', rpcErrors.invalidRequest.code, null],
    ];
    for (const [frame, code, id] of frames) {
      const before = client.messages.length;
      client.send(frame);
      const answer = await client.until((message) => client.messages.indexOf(message) >= before, frame);
      t.match(answer, { jsonrpc: '2.0', id, error: { code, message: String } }, frame);
      v.assert(RpcFailure, answer);
    }
  });

  await t.test('an answer has the id of the request with its type', async (t) => {
    const client = await Client.ready(t, server.webSocketUrl);
    for (const id of ['', '1', 0, 1, -7, Number.MAX_SAFE_INTEGER, 'ünï']) {
      client.send({ jsonrpc: '2.0', id, method: 'thread/list', params: {} });
      t.ok(await client.until((message) => message.id === id, String(id)));
    }
  });

  await t.test('requests are refused before initialize, and a second initialize after it', async (t) => {
    const client = await Client.open(t, server.webSocketUrl);
    for (const method of ['thread/list', 'nonsense'])
      t.equal((await client.ask(method, {})).error.code, rpcErrors.notInitialized.code);
    client.send({ jsonrpc: '2.0', method: 'initialized' });
    t.equal((await client.ask('initialize', { clientInfo: {} })).error.code, rpcErrors.invalidParams.code);
    t.equal(
      (await client.ask('thread/list', {})).error.code,
      rpcErrors.notInitialized.code,
      'a refused initialize does not count',
    );
    await client.call('initialize', introduction);
    t.equal((await client.ask('initialize', introduction)).error.code, rpcErrors.alreadyInitialized.code);
    await client.call('thread/list', {});
  });

  await t.test('an unknown method is methodNotFound, and notifications get no answer', async (t) => {
    const client = await Client.ready(t, server.webSocketUrl);
    for (const method of ['', 'thread/nope', 'toString', '__proto__', 'constructor', 'initialized']) {
      t.match((await client.ask(method, {})).error, { code: rpcErrors.methodNotFound.code, data: { method } }, method);
    }
    client.send({ jsonrpc: '2.0', method: 'no/such/notification' });
    client.send({ jsonrpc: '2.0', id: 'x', result: {} });
    await client.call('thread/list');
    t.equal(client.messages.length, 8, 'neither notifications nor stray answers are answered');
  });

  await t.test('invalid parameters are reported with their path', async (t) => {
    const client = await Client.ready(t, server.webSocketUrl);
    const cases: [string, unknown, string][] = [
      ['thread/read', {}, 'threadId'],
      ['thread/read', { threadId: 5 }, 'threadId'],
      ['thread/read', [], ''],
      ['thread/start', ['x'], ''],
      ['thread/start', { identity: { userId: 7 } }, 'identity.userId'],
      ['thread/start', { historyMode: 'client' }, 'historyMode'],
      ['turn/start', { threadId: 't' }, 'input'],
      ['turn/start', { threadId: 't', input: [] }, 'input'],
      ['turn/start', { threadId: 't', input: [{ type: 'smell' }] }, 'input.0.type'],
      ['turn/start', { threadId: 't', input: [{ type: 'text' }] }, 'input.0.text'],
      ['turn/interrupt', { threadId: 't' }, 'turnId'],
    ];
    for (const [method, params, path] of cases) {
      const { error } = await client.ask(method, params);
      t.match(error, { code: rpcErrors.invalidParams.code, data: { path } }, `${method} ${JSON.stringify(params)}`);
      t.ok(error.message.includes(path || 'params'), error.message);
    }
  });

  await t.test('unknown threads and turns, and turns in a wrong state, have their own codes', async (t) => {
    const client = await Client.ready(t, server.webSocketUrl);
    for (const method of ['thread/read', 'thread/resume', 'thread/subscribe', 'thread/unsubscribe']) {
      t.match((await client.ask(method, { threadId: 'nope' })).error, {
        code: rpcErrors.threadNotFound.code,
        data: { threadId: 'nope' },
      });
    }
    t.equal(
      (await client.ask('turn/start', { threadId: 'nope', input: words('x') })).error.code,
      rpcErrors.threadNotFound.code,
    );
    const { thread } = await client.call('thread/start');
    t.equal(
      (await client.ask('turn/interrupt', { threadId: thread.id, turnId: 'turn_001' })).error.code,
      rpcErrors.turnNotFound.code,
    );
    const { turn } = await client.call('turn/start', { threadId: thread.id, input: words('x') });
    t.equal(
      (await client.ask('turn/start', { threadId: thread.id, input: words('y') })).error.code,
      rpcErrors.turnInProgress.code,
    );
    await client.call('turn/interrupt', { threadId: thread.id, turnId: turn.id });
    await client.notification('turn/cancelled');
    t.equal(
      (await client.ask('turn/interrupt', { threadId: thread.id, turnId: turn.id })).error.code,
      rpcErrors.turnNotRunning.code,
    );
  });

  await t.test(
    'too many requests of a connection are overloaded, and a bug is an internalError with an id',
    async (t) => {
      const greedy = await Client.ready(t, server.webSocketUrl);
      const modest = await Client.ready(t, server.webSocketUrl);
      const slow = Array.from({ length: 32 }, () => greedy.ask('model/list', {}));
      t.equal((await greedy.ask('thread/list', {})).error.code, rpcErrors.overloaded.code);
      await modest.call('thread/list', {});
      models.reject(new Error('a secret detail of a bug'));
      for (const answer of await Promise.all(slow)) {
        t.match(answer.error, { code: rpcErrors.internalError.code, data: { errorId: /^[0-9a-f]{12}$/ } });
        t.notMatch(JSON.stringify(answer), /secret detail/);
      }
      const [{ error }] = (await Promise.all(slow)) as [{ error: { data: { errorId: string } } }];
      t.ok(
        log.some((line) => line.includes(error.data.errorId) && line.includes('a secret detail')),
        'the log has the details',
      );
      await greedy.call('thread/list', {});
    },
  );
});

t.test('every connection receives broadcasts, the caller and subscribers receive turns, each once', async (t) => {
  const { server } = await startServer(t, says('a', 'b'));
  const [asker, subscriber, bystander] = (await Promise.all(
    [1, 2, 3].map(() => Client.ready(t, server.webSocketUrl)),
  )) as [Client, Client, Client];
  // `initialized` has no answer; one to a later request shows that it has arrived.
  for (const client of [asker, subscriber, bystander]) await client.call('thread/list');
  const { thread } = await asker.call('thread/start', {});
  for (const client of [asker, subscriber, bystander]) await client.notification('thread/started');
  await subscriber.call('thread/subscribe', { threadId: thread.id });
  await asker.call('thread/subscribe', { threadId: thread.id });
  await asker.call('turn/start', { threadId: thread.id, input: words('x') });
  await Promise.all([asker.notification('turn/completed'), subscriber.notification('turn/completed')]);
  await bystander.call('thread/list');
  await bystander.until(
    ({ method, params }) => method === 'thread/runtimeChanged' && params.runtime.running === false,
    'the thread is free again',
  );
  const heardBy = (client: Client) => client.heard().filter((method) => method !== 'thread/runtimeChanged');
  t.same(heardBy(bystander), ['thread/started']);
  t.same(heardBy(asker), heardBy(subscriber));
  t.equal(asker.heard().filter((method) => method === 'turn/started').length, 1);
  await subscriber.call('thread/unsubscribe', { threadId: thread.id });
  await asker.call('turn/start', { threadId: thread.id, input: words('y') });
  await asker.until(
    ({ method, params }) => method === 'turn/completed' && params.turn.id === 'turn_002',
    'the second turn',
  );
  await subscriber.call('thread/list');
  t.equal(subscriber.heard().filter((method) => method === 'turn/started').length, 1);
});

t.test('a client receives no deltas and notifications that its capabilities exclude', async (t) => {
  const { server } = await startServer(t, says('a'));
  const quiet = await Client.ready(t, server.webSocketUrl, {
    streamingSupport: false,
    optOutNotificationMethods: ['thread/started', 'thread/runtimeChanged', 'item/started'],
  });
  const { thread } = await quiet.call('thread/start', {});
  await quiet.call('turn/start', { threadId: thread.id, input: words('x') });
  await quiet.notification('turn/completed');
  t.same(quiet.heard(), ['turn/started', 'item/completed', 'item/completed', 'turn/completed']);
});

t.test('a client that never sends initialized gets answers but no notifications', async (t) => {
  const { server } = await startServer(t, says('a'));
  const client = await Client.open(t, server.webSocketUrl);
  await client.call('initialize', introduction);
  const { thread } = await client.call('thread/start', {});
  await client.call('turn/start', { threadId: thread.id, input: words('x') });
  const watcher = await Client.ready(t, server.webSocketUrl);
  await watcher.call('thread/subscribe', { threadId: thread.id });
  await watcher.call('turn/start', { threadId: (await watcher.call('thread/start', {})).thread.id, input: words('x') });
  await watcher.notification('turn/completed');
  await client.call('thread/list');
  t.same(client.heard(), []);
});

t.test('a turn continues when its client disconnects, and another client can follow it', async (t) => {
  const gate = deferred<void>();
  const { server } = await startServer(
    t,
    scripted(async function* () {
      yield { type: 'text', text: 'one ' };
      await gate.promise;
      yield { type: 'text', text: 'two' };
    }),
  );
  const first = await Client.ready(t, server.webSocketUrl);
  const { thread } = await first.call('thread/start', {});
  await first.call('turn/start', { threadId: thread.id, input: words('x') });
  await first.notification('item/agentMessage/delta');
  await first.close();
  const second = await Client.ready(t, server.webSocketUrl);
  t.match((await second.call('thread/list')).data, [{ id: thread.id, runtime: { running: true } }]);
  await second.call('thread/subscribe', { threadId: thread.id, replayRecent: true });
  const replayed = await second.notification('turn/started');
  t.match(replayed.params.turn.items.at(-1), { type: 'agentMessage', text: 'one ', status: 'streaming' });
  gate.resolve();
  const { params } = await second.notification('turn/completed');
  t.equal(params.turn.items.at(-1).text, 'one two');
});

t.test('an unreachable upstream fails the turn with a typed error', async (t) => {
  const upstream = { endpoint: 'http://127.0.0.1:9/v1', apiKey: 'sk-upstream-secret' };
  const { path, home } = makeWorkspace(t, { UpstreamRetries: 0 });
  const { server, log } = await startServer(t, undefined, {
    workspacePath: path,
    env: { ORATORIO_HOME: home },
    launch: { ...launchDocument(path), upstream },
  });
  const client = await Client.ready(t, server.webSocketUrl);
  const { thread } = await client.call('thread/start', {});
  await client.call('turn/start', { threadId: thread.id, input: words('x') });
  const { params } = await client.notification('turn/failed');
  t.match(params, { error: { code: 'upstreamUnreachable' }, turn: { status: 'failed' } });
  t.match(await client.call('model/list'), { success: false, errorCode: 'upstreamUnreachable' });
  t.notMatch(JSON.stringify(client.messages) + log.join(''), /sk-upstream-secret|web-socket-token|notification-token/);
});
