/** Sessions as the protocol's own client sees them, on streams within this process. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { ModelError } from '../../src/agent/index.ts';
import { AppServerClient, AppServerConnectionError } from '../../src/client/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import { calls, hangs, type Script, says, scripted } from '../agui/model.ts';
import { eventually } from '../http/support.ts';
import { pictures, pictureUrl } from '../pictures.ts';
import { attach, choose, inSession, introduce, surroundings } from './harness.ts';

/** Why it was refused. */
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'it was not refused',
    (error: unknown) => error,
  );

t.test('initialize returns the capabilities', async (t) => {
  const editor = attach(t, await surroundings(t, scripted(says('hi'))));
  t.match(await introduce(editor), {
    protocolVersion: 1,
    agentInfo: { name: 'oratorio' },
    agentCapabilities: { loadSession: true, promptCapabilities: { image: true, embeddedContext: true } },
    authMethods: [],
  });
});

t.test('a prompt is answered in chunks, with separate thoughts and usage before the end', async (t) => {
  const provider = scripted((_, emit) => {
    emit({ type: 'thinking', text: 'hm' });
    for (const text of ['Hello', ', ', 'you']) emit({ type: 'text', text });
    emit({ type: 'usage', inputTokens: 100, outputTokens: 3 });
    emit({ type: 'finish', reason: 'stop' });
  });
  const editor = await inSession(t, await surroundings(t, provider));
  t.match(await editor.prompt('hi'), { stopReason: 'end_turn' });
  t.equal(editor.said(), 'Hello, you');
  t.match(editor.of('agent_thought_chunk'), [{ content: { text: 'hm' } }]);
  t.match(editor.of('usage_update'), [{ used: 100, size: defaults.upstream.contextWindow }]);
  t.strictSame(editor.of('user_message_chunk'), [], 'the user is not told what they typed');
});

t.test('a tool that needs approval requests permission with its details and runs when allowed', async (t) => {
  const provider = scripted(
    calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'one\n' } }),
    calls({ callId: 'e1', name: 'EditFile', args: { path: 'a.txt', oldText: 'one', newText: 'two' } }),
    calls({ callId: 'r1', name: 'ReadFile', args: { path: 'a.txt', offset: 1 } }),
    says('Done.'),
  );
  const where = await surroundings(t, provider);
  const editor = await inSession(t, where, { permit: () => choose('accept') });
  t.match(await editor.prompt('write it'), { stopReason: 'end_turn' });
  t.equal(readFileSync(join(where.workspace, 'a.txt'), 'utf8'), 'two\n');
  const path = join(where.workspace, 'a.txt');
  t.match(
    editor.asked.map(({ toolCall }) => toolCall),
    [
      { toolCallId: 'w1', kind: 'edit', title: 'Write a.txt', content: [{ type: 'diff', path, newText: 'one\n' }] },
      { toolCallId: 'e1', kind: 'edit', content: [{ type: 'diff', path, oldText: 'one', newText: 'two' }] },
    ],
  );
  t.strictSame(
    editor.asked[0]?.options.map(({ kind }) => kind),
    ['allow_once', 'allow_always', 'allow_always', 'reject_once'],
  );
  t.match(editor.of('tool_call'), [
    { toolCallId: 'w1', name: 'WriteFile', kind: 'edit', locations: [{ path }], rawInput: { path: 'a.txt' } },
    { toolCallId: 'e1' },
    { toolCallId: 'r1', kind: 'read', title: 'Read a.txt', locations: [{ path, line: 1 }] },
  ]);
  const ends = editor.of('tool_call_update').filter(({ status }) => status === 'completed');
  t.match(ends, [
    { toolCallId: 'w1', content: [{ type: 'diff' }], rawOutput: { outcome: 'completed' } },
    { toolCallId: 'e1', content: [{ type: 'diff' }] },
    { toolCallId: 'r1', content: [{ type: 'content', content: { text: /two/ } }] },
  ]);
});

t.test('a plan of the agent is shown as a plan, each time whole', async (t) => {
  const plan = (status: string) =>
    calls({ callId: `p-${status}`, name: 'UpdatePlan', args: { plan: [{ step: 'look', status }, { step: 'write' }] } });
  const where = await surroundings(t, scripted(plan('in_progress'), plan('completed'), says('Done.')));
  const editor = await inSession(t, where, {});
  await editor.prompt('plan it');
  const entries = (status: string) => [
    { content: 'look', priority: 'medium', status },
    { content: 'write', priority: 'medium', status: 'pending' },
  ];
  t.match(editor.of('plan'), [{ entries: entries('in_progress') }, { entries: entries('completed') }]);
  t.equal(editor.asked.length, 0);
});

t.test('prompt commands are offered to the editor; one at the beginning of a prompt is expanded', async (t) => {
  const provider = scripted(says('Reviewed.'));
  const where = await surroundings(t, provider);
  const commands = join(where.workspace, '.oratorio', 'commands');
  mkdirSync(commands, { recursive: true });
  writeFileSync(
    join(commands, 'review.md'),
    '---\ndescription: Reviews a file\nargument-hint: <file>\n---\nReview $1 with care.',
  );
  writeFileSync(join(commands, 'undo.md'), 'A command of the repository does not replace this one.');
  const editor = await inSession(t, where, {});
  await editor.prompt('/review a.ts');
  t.match(editor.of('available_commands_update'), [
    {
      availableCommands: [
        { name: 'undo' },
        { name: 'diff' },
        { name: 'review', description: 'Reviews a file', input: { hint: '<file>' } },
      ],
    },
  ]);
  t.match(provider.requests[0]?.messages.at(-1), { content: [{ text: 'Review a.ts with care.' }] });
});

t.test('a declined call does not run, and the agent is informed', async (t) => {
  const provider = scripted(
    calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'x' } }),
    says('As you wish.'),
  );
  const where = await surroundings(t, provider);
  const editor = await inSession(t, where, { permit: () => choose('decline') });
  t.match(await editor.prompt('write it'), { stopReason: 'end_turn' });
  t.equal(existsSync(join(where.workspace, 'a.txt')), false);
  t.match(editor.of('tool_call_update').at(-1), {
    toolCallId: 'w1',
    status: 'failed',
    rawOutput: { outcome: 'declined' },
  });
  t.equal(editor.said(), 'As you wish.');
});

t.test('permission for the session is not requested again', async (t) => {
  const write = calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'x' } });
  const again = calls({ callId: 'w2', name: 'WriteFile', args: { path: 'a.txt', content: 'y' } });
  const where = await surroundings(t, scripted(write, says('one'), again, says('two')));
  const editor = await inSession(t, where, { permit: () => choose('acceptForSession') });
  await editor.prompt('write');
  await editor.prompt('write again');
  t.equal(editor.asked.length, 1);
  t.equal(readFileSync(join(where.workspace, 'a.txt'), 'utf8'), 'y');
});

t.test('commands show their output while they run', async (t) => {
  const provider = scripted(
    calls({ callId: 'x1', name: 'Exec', args: { command: 'echo out; exit 3' } }),
    says('It failed.'),
  );
  const editor = await inSession(t, await surroundings(t, provider), { permit: () => choose('accept') });
  await editor.prompt('run it');
  t.match(editor.of('tool_call'), [{ kind: 'execute', title: 'echo out; exit 3' }]);
  t.ok(editor.of('tool_call_update').some(({ status }) => status === 'in_progress'));
  t.match(editor.of('tool_call_update').at(-1), { content: [{ content: { text: /out/ } }] });
});

t.test('cancel ends the prompt in every state', async (t) => {
  const editor = await inSession(t, await surroundings(t, scripted(hangs())));
  const { sessionId } = editor;
  const answered = editor.prompt('think');
  await eventually(() => editor.said() !== '', 'it has begun to answer');
  await editor.agent.notify('session/cancel', { sessionId });
  t.match(await answered, { stopReason: 'cancelled' });

  const early = editor.prompt('think again');
  await editor.agent.notify('session/cancel', { sessionId });
  t.match(await early, { stopReason: 'cancelled' }, 'before it has begun');
  await editor.agent.notify('session/cancel', { sessionId });
});

t.test('cancel during a request for permission ends the turn', async (t) => {
  const provider = scripted(calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'x' } }));
  const where = await surroundings(t, provider);
  const asked = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const editor = await inSession(t, where, {
    async permit() {
      asked.resolve();
      await cancelled.promise;
      return { outcome: { outcome: 'cancelled' } };
    },
  });
  const answered = editor.prompt('write');
  await asked.promise;
  await editor.agent.notify('session/cancel', { sessionId: editor.sessionId });
  cancelled.resolve();
  t.match(await answered, { stopReason: 'cancelled' });
  t.equal(existsSync(join(where.workspace, 'a.txt')), false);
});

t.test('one prompt at a time; a failed turn is an error of its prompt', async (t) => {
  const editor = await inSession(
    t,
    await surroundings(
      t,
      scripted(hangs(), () => Promise.reject(new Error('bug'))),
    ),
  );
  const first = editor.prompt('think');
  await eventually(() => editor.said() !== '', 'it has begun to answer');
  t.match(await failure(editor.prompt('and this')), { code: -32_600 });
  await editor.agent.notify('session/cancel', { sessionId: editor.sessionId });
  await first;
  t.match(await failure(editor.prompt('now')), { code: -32_603, data: { code: 'internalError' } });
});

t.test('an answer that broke off is withdrawn in the editor, at once and when the session is loaded', async (t) => {
  const breaks: Script = (_, emit) => {
    emit({ type: 'text', text: 'half an ans' });
    throw new ModelError('upstreamFailed', 'cut', { retryAfterMs: 1 });
  };
  const where = await surroundings(t, scripted(breaks, says('whole')));
  const editor = await inSession(t, where);
  await editor.prompt('go');
  t.match(editor.said(), /^half an ans\s+\*\[Withdrawn: .*\]\*\s+whole$/s);
  const other = attach(t, where);
  await introduce(other);
  await other.agent.request('session/load', { sessionId: editor.sessionId, cwd: where.workspace, mcpServers: [] });
  t.match(other.said(), /^half an ans\s+\*\[Withdrawn: .*\]\*\s+whole$/s);
});

t.test('images, files and other resources reach the model', async (t) => {
  const provider = scripted(says('ok'));
  const where = await surroundings(t, provider);
  const editor = await inSession(t, where);
  const file = join(where.workspace, 'b c.ts');
  await editor.agent.request('session/prompt', {
    sessionId: editor.sessionId,
    prompt: [
      { type: 'text', text: 'see' },
      { type: 'image', mimeType: 'image/png', data: pictures.png.toString('base64') },
      { type: 'resource_link', name: 'b c.ts', uri: pathToFileURL(file).href },
      { type: 'resource_link', name: 'site', uri: 'https://example.org/' },
      { type: 'resource', resource: { uri: 'file:///x.md', text: '```\nfenced\n```' } },
    ],
  });
  t.match(provider.requests[0]?.messages.at(-1), {
    content: [
      { text: 'see' },
      { type: 'image', url: pictureUrl(pictures.png, 'png') },
      { text: `@${file}` },
      { text: '[site](https://example.org/)' },
      { text: '@/x.md\n````\n```\nfenced\n```\n````' },
    ],
  });
  const { sessionId } = editor;
  for (const prompt of [
    [],
    [{ type: 'audio' as const, mimeType: 'audio/wav', data: '' }],
    [{ type: 'image' as const, mimeType: 'text/html', data: '' }],
    [{ type: 'text' as const, text: 'x'.repeat(5_000_000) }],
  ]) {
    t.match(await failure(editor.agent.request('session/prompt', { sessionId, prompt })), { code: -32_602 });
  }
});

t.test('a loaded session has its whole conversation', async (t) => {
  const provider = scripted(
    calls({ callId: 'r1', name: 'FindFiles', args: { pattern: '*.none' } }),
    says('Nothing there.'),
    says('Still nothing.'),
  );
  const where = await surroundings(t, provider);
  const first = await inSession(t, where);
  await first.prompt('what is there?');
  await first.prompt('and now?');
  const { sessionId } = first;
  const second = attach(t, where);
  await introduce(second);
  const { sessions } = await second.agent.request('session/list', { cwd: where.workspace });
  t.match(sessions, [{ sessionId, cwd: where.workspace, updatedAt: String }]);
  const loaded = await second.agent.request('session/load', { sessionId, cwd: where.workspace, mcpServers: [] });
  t.match(loaded, { modes: { currentModeId: 'default' } });
  t.strictSame(
    second.updates.map(({ update }) => update.sessionUpdate),
    [
      'user_message_chunk',
      'tool_call',
      'tool_call_update',
      'agent_message_chunk',
      'user_message_chunk',
      'agent_message_chunk',
    ],
  );
  t.match(second.of('user_message_chunk'), [
    { content: { text: 'what is there?' } },
    { content: { text: 'and now?' } },
  ]);
  t.equal(second.said(), 'Nothing there.Still nothing.');
});

t.test(
  'a running session is loaded with its present state and continues; its approvals are requested again',
  async (t) => {
    const gate = Promise.withResolvers<void>();
    const provider = scripted(async (request, emit, signal) => {
      emit({ type: 'text', text: 'Half' });
      await gate.promise;
      emit({ type: 'text', text: ' and half.' });
      return calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'x' } })(request, emit, signal);
    }, says('Written.'));
    const where = await surroundings(t, provider);
    const first = await inSession(t, where, { permit: () => new Promise(() => undefined) });
    const { sessionId } = first;
    const answered = first.prompt('go');
    await eventually(() => first.said() === 'Half', 'half of it was said');
    const second = attach(t, where, { permit: () => choose('accept') });
    await introduce(second);
    await second.agent.request('session/load', { sessionId, cwd: where.workspace, mcpServers: [] });
    await eventually(() => second.said() === 'Half', 'the second editor sees the first half');
    gate.resolve();
    t.match(await answered, { stopReason: 'end_turn' });
    await eventually(() => second.said() === 'Half and half.Written.', 'the second editor sees all of it');
    t.equal(first.said(), 'Half and half.Written.');
    t.match(second.of('user_message_chunk'), [{ content: { text: 'go' } }]);
    t.equal(first.asked.length, 1, 'asked here, answered there');
  },
);

t.test('approvals of a sub-agent are requested in the session of its parent', async (t) => {
  const provider = scripted(
    calls({ callId: 's1', name: 'SpawnSubagent', args: { task: 'write a file', label: 'writer' } }),
    calls({ callId: 'w1', name: 'WriteFile', args: { path: 'b.txt', content: 'x' } }),
    says('I wrote it.'),
    says('My helper wrote it.'),
  );
  const where = await surroundings(t, provider);
  const editor = await inSession(t, where, { permit: () => choose('accept') });
  t.match(await editor.prompt('have it written'), { stopReason: 'end_turn' });
  t.match(editor.asked, [{ sessionId: editor.sessionId, toolCall: { title: /write .*b\.txt/ } }]);
  t.equal(existsSync(join(where.workspace, 'b.txt')), true);
  t.match(editor.of('tool_call'), [{ kind: 'think', title: 'Sub-agent: writer' }]);
  t.equal(editor.said(), 'My helper wrote it.');
});

t.test('modes are the approval policies, and planning', async (t) => {
  const write = calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'x' } });
  const where = await surroundings(t, scripted(write, says('refused'), write, says('done')));
  const editor = await inSession(t, where);
  const { sessionId } = editor;
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'interrupt' });
  await editor.prompt('write');
  t.equal(existsSync(join(where.workspace, 'a.txt')), false);
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'autoApprove' });
  await editor.prompt('write');
  t.equal(existsSync(join(where.workspace, 'a.txt')), true);
  t.strictSame(editor.asked, []);
  t.match(await failure(editor.agent.request('session/set_mode', { sessionId, modeId: 'yolo' })), { code: -32_602 });
  const resumed = await editor.agent.request('session/resume', { sessionId, cwd: where.workspace });
  t.match(resumed, { modes: { currentModeId: 'autoApprove' } });
});

t.test('mode, model and effort are options of a session; one that is not offered is refused', async (t) => {
  const models: unknown[] = [];
  const provider = scripted(says('one'), says('two'));
  const stream: typeof provider.stream = (request, ...rest) => {
    models.push([request.model, request.effort]);
    return provider.stream(request, ...rest);
  };
  const where = await surroundings(t, { ...provider, stream });
  const editor = await inSession(t, where);
  const { sessionId } = editor;
  const set = (configId: string, value: string) =>
    editor.agent.request('session/set_config_option', { sessionId, configId, value });
  const { configOptions } = await set('effort', 'high');
  t.match(
    configOptions.find(({ id }) => id === 'effort'),
    { category: 'thought_level', currentValue: 'high', options: [{ value: 'none' }, { value: 'minimal' }] },
  );
  const withModels = () =>
    editor.of('config_option_update').find((each) => each.configOptions.some(({ id }) => id === 'model'));
  await eventually(() => withModels() !== undefined, 'the models of the provider are offered');
  t.match(withModels()?.configOptions, [
    { id: 'mode', category: 'mode', currentValue: 'default' },
    { id: 'model', category: 'model', currentValue: 'configured', options: [{}, { value: 'scripted' }] },
    { id: 'effort' },
  ]);
  await set('model', 'configured');
  await editor.prompt('hi');
  await set('model', 'scripted');
  await editor.prompt('hi');
  t.match(models, [
    [undefined, 'high'],
    ['scripted', 'high'],
  ]);
  t.match(await set('mode', 'interrupt'), { configOptions: [{ id: 'mode', currentValue: 'interrupt' }] });
  t.match(editor.of('current_mode_update'), [{ currentModeId: 'interrupt' }], 'for editors that know modes only');
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'autoApprove' });
  t.match(editor.of('config_option_update').at(-1), { configOptions: [{ currentValue: 'autoApprove' }] });
  for (const [id, value] of [
    ['model', 'missing'],
    ['mode', 'yolo'],
    ['agent_mode', 'ask'],
    ['effort', ''],
    ['model', 'configured'],
  ] as const) {
    t.match(await failure(set(id, value)), { code: -32_602 });
  }
  const resumed = await editor.agent.request('session/resume', { sessionId, cwd: where.workspace });
  t.match(resumed, {
    configOptions: [{ id: 'mode', currentValue: 'autoApprove' }, { id: 'model', currentValue: 'scripted' }, {}],
  });
});

t.test('the mode plan lets a session only read, and another mode ends it', async (t) => {
  const write = calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'x' } });
  const plan = calls({ callId: 'p1', name: 'UpdatePlan', args: { plan: [{ step: 'Write a.txt' }] } });
  const where = await surroundings(t, scripted(write, plan, says('planned'), write, says('done')));
  const editor = await inSession(t, where);
  const { sessionId } = editor;
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'plan' });
  await editor.prompt('write');
  t.equal(existsSync(join(where.workspace, 'a.txt')), false);
  t.match(editor.of('plan').at(-1), { entries: [{ content: 'Write a.txt', status: 'pending' }] });
  const resumed = await editor.agent.request('session/resume', { sessionId, cwd: where.workspace });
  t.match(resumed, { modes: { currentModeId: 'plan' } });
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'autoApprove' });
  await editor.prompt('now write');
  t.equal(existsSync(join(where.workspace, 'a.txt')), true);
});

t.test('regression: C3 the directory that the editor names is the workspace; none above it is tried', async (t) => {
  const where = await surroundings(t, scripted(says('hi')));
  const editor = attach(t, where);
  await introduce(editor);
  const inside = join(where.workspace, 'src', 'deep');
  mkdirSync(inside, { recursive: true });
  t.match(await editor.agent.request('session/new', { cwd: where.workspace, mcpServers: [] }), { sessionId: String });
  const outside = join(where.workspace, '..');
  for (const [cwd, message] of [
    [inside, /oratorio init .*deep/],
    [outside, /oratorio init/],
    ['relative', /absolute/],
    [join(outside, 'nowhere'), /does not exist/],
  ] as const) {
    await t.rejects(editor.agent.request('session/new', { cwd, mcpServers: [] }), { code: -32_602, message });
  }
});

t.test('sessions that are unknown, closed or deleted are not found', async (t) => {
  const where = await surroundings(t, scripted(says('hi')));
  const editor = await inSession(t, where);
  const { sessionId } = editor;
  const lost = { code: -32_002 };
  const prompt = [{ type: 'text' as const, text: 'hi' }];
  t.match(await failure(editor.agent.request('session/prompt', { sessionId: 'none', prompt })), lost);
  t.match(
    await failure(editor.agent.request('session/load', { sessionId: 'none', cwd: where.workspace, mcpServers: [] })),
    lost,
  );
  await editor.agent.request('session/close', { sessionId });
  t.match(await failure(editor.prompt('hi')), lost);
  await editor.agent.request('session/load', { sessionId, cwd: where.workspace, mcpServers: [] });
  t.match(await editor.prompt('hi'), { stopReason: 'end_turn' });
  await editor.agent.request('session/delete', { sessionId });
  t.strictSame((await editor.agent.request('session/list', {})).sessions, []);
});

t.test('a prompt outlives the connection that it was made on', async (t) => {
  const clients: AppServerClient[] = [];
  const gate = Promise.withResolvers<void>();
  const provider = scripted(async (_, emit) => {
    emit({ type: 'text', text: 'Half' });
    await gate.promise;
    emit({ type: 'text', text: ' and half.' });
    emit({ type: 'finish', reason: 'stop' });
  });
  const editor = await inSession(t, await surroundings(t, provider), { onConnect: (made) => clients.push(made) });
  const answered = editor.prompt('go');
  await eventually(() => editor.said() === 'Half', 'half of it was said');
  clients[0]?.close();
  await eventually(() => clients.length === 2, 'there is a new connection');
  gate.resolve();
  t.match(await answered, { stopReason: 'end_turn' });
  t.equal(editor.said(), 'Half and half.');
});

t.test(
  'a connection that fails at first does not end the prompt, and a request for approval is shown once',
  async (t) => {
    const clients: AppServerClient[] = [];
    let failures = 0;
    const answer = Promise.withResolvers<void>();
    const provider = scripted(calls({ callId: 'c1', name: 'Exec', args: { command: 'touch asked' } }), says('done'));
    const editor = await inSession(t, await surroundings(t, provider), {
      onConnect(made) {
        clients.push(made);
        if (clients.length === 1 || failures === 2) return;
        failures += 1;
        throw new AppServerConnectionError('The agent server cannot be reached.');
      },
      permit: async () => {
        await answer.promise;
        return choose('accept');
      },
    });
    const answered = editor.prompt('go');
    await eventually(() => editor.asked.length === 1, 'it has asked');
    clients[0]?.close();
    await eventually(() => clients.length === 4, 'it has connected again');
    answer.resolve();
    t.match(await answered, { stopReason: 'end_turn' });
    t.equal(failures, 2);
    t.equal(editor.asked.length, 1);
    t.equal(editor.said(), 'done');
    for (const client of clients) client.close();
  },
);

/** Connections to an agent server, which fail while it is not reachable. */
function connections() {
  const clients: AppServerClient[] = [];
  const state = {
    clients,
    failures: 0,
    isReachable: true,
    onConnect(made: AppServerClient) {
      clients.push(made);
      if (state.isReachable) return;
      state.failures += 1;
      made.close();
      throw new AppServerConnectionError('The agent server cannot be reached.');
    },
  };
  return state;
}

t.test('an answer that is given without a connection counts on the next one, and is asked for once', async (t) => {
  const server = connections();
  const answer = Promise.withResolvers<void>();
  const provider = scripted(calls({ callId: 'c1', name: 'Exec', args: { command: 'touch asked' } }), says('done'));
  const where = await surroundings(t, provider);
  const editor = await inSession(t, where, {
    onConnect: server.onConnect,
    permit: async () => {
      await answer.promise;
      return choose('accept');
    },
  });
  const answered = editor.prompt('go');
  await eventually(() => editor.asked.length === 1, 'it has asked');
  server.isReachable = false;
  server.clients[0]?.close();
  await eventually(() => server.failures === 1, 'the connection is lost');
  answer.resolve();
  await eventually(() => server.failures === 4, 'the answer has arrived meanwhile');
  server.isReachable = true;
  t.match(await answered, { stopReason: 'end_turn' });
  t.equal(editor.asked.length, 1);
  t.ok(existsSync(join(where.workspace, 'asked')));
});

t.test('a prompt that is cancelled without a connection ends with the next one', async (t) => {
  const server = connections();
  const { onConnect } = server;
  const editor = await inSession(t, await surroundings(t, scripted(hangs())), { onConnect });
  const answered = editor.prompt('go');
  await eventually(() => editor.said() !== '', 'it has begun to answer');
  server.isReachable = false;
  server.clients[0]?.close();
  await eventually(() => server.failures === 1, 'the connection is lost');
  await editor.agent.notify('session/cancel', { sessionId: editor.sessionId });
  await eventually(() => server.failures === 4, 'the cancellation has arrived meanwhile');
  server.isReachable = true;
  t.match(await answered, { stopReason: 'cancelled' });
});

t.test('a connection that is lost while the thread is opened again is replaced once', async (t) => {
  const clients: AppServerClient[] = [];
  const subscribed: number[] = [];
  const gate = Promise.withResolvers<void>();
  const provider = scripted(async (_, emit) => {
    emit({ type: 'text', text: 'Half' });
    await gate.promise;
    emit({ type: 'text', text: ' and half.' });
    emit({ type: 'finish', reason: 'stop' });
  });
  const editor = await inSession(t, await surroundings(t, provider), {
    onConnect(made) {
      const number = clients.push(made);
      const request = made.request.bind(made);
      t.intercept(made, 'request', {
        value: (...args: Parameters<typeof request>) => {
          if (args[0] === 'thread/subscribe') subscribed.push(number);
          if (args[0] === 'thread/subscribe' && number === 2) made.close();
          return request(...args);
        },
      });
    },
  });
  const answered = editor.prompt('go');
  await eventually(() => editor.said() === 'Half', 'half of it was said');
  clients[0]?.close();
  await eventually(() => subscribed.includes(3), 'the thread is open again');
  // A second search would try again by now.
  await sleep(3 * defaults.client.revivePollMs);
  gate.resolve();
  t.match(await answered, { stopReason: 'end_turn' });
  t.strictSame(subscribed, [1, 2, 3]);
  t.equal(editor.said(), 'Half and half.');
});

for (const [title, isStarted] of [
  ['whose answer to its start is lost follows its turn, and starts no second one', true],
  ['whose request to start is lost is sent again', false],
] as const) {
  t.test(`regression: a prompt ${title}`, async (t) => {
    const clients: AppServerClient[] = [];
    const where = await surroundings(t, scripted(says('Whole.'), says('Twice.')));
    const editor = await inSession(t, where, {
      onConnect(made) {
        const request = made.request.bind(made);
        if (clients.push(made) > 1) return;
        t.intercept(made, 'request', {
          value: async (...args: Parameters<typeof request>) => {
            if (args[0] !== 'turn/start') return request(...args);
            if (isStarted) await request(...args);
            made.close();
            throw new AppServerConnectionError('The connection is lost.');
          },
        });
      },
    });
    t.match(await editor.prompt('go'), { stopReason: 'end_turn' });
    t.equal(editor.said(), 'Whole.');
    t.same(editor.of('user_message_chunk'), [], 'the editor knows its own prompt');
    t.equal(clients.length, 2);
    const read = await clients[1]?.request('thread/read', { threadId: editor.sessionId, includeTurns: true });
    t.equal((read as { thread: { turns: unknown[] } }).thread.turns.length, 1);
    t.match(await editor.prompt('again'), { stopReason: 'end_turn' }, 'the session works');
  });
}

t.test('a prompt whose server ends is an error, not a cancellation', async (t) => {
  const where = await surroundings(t, scripted(hangs()));
  const editor = await inSession(t, where);
  const answered = editor.prompt('think');
  const error = answered.catch((reason: unknown) => reason);
  await eventually(() => editor.said() !== '', 'it has begun to answer');
  await where.server.close();
  t.match(await error, { code: -32_603 });
});

t.test('a turn of another client in the thread is shown and can be cancelled', async (t) => {
  const where = await surroundings(t, scripted(hangs()));
  const editor = await inSession(t, where);
  const { sessionId } = editor;
  const other = await AppServerClient.connect(where.server.webSocketUrl);
  t.teardown(() => other.close());
  await other.request('turn/start', { threadId: sessionId, input: [{ type: 'text', text: 'from elsewhere' }] });
  await eventually(() => editor.said() !== '', 'the editor hears of it');
  t.match(editor.of('user_message_chunk'), [{ content: { text: 'from elsewhere' } }]);
  await other.request('thread/rename', { threadId: sessionId, displayName: 'Elsewhere' });
  await eventually(() => editor.of('session_info_update').length === 1, 'the new name is told');
  const ended = new Promise((resolve) => {
    other.onNotification(({ method }) => {
      if (method === 'turn/cancelled') resolve(method);
    });
  });
  await editor.agent.notify('session/cancel', { sessionId });
  t.equal(await ended, 'turn/cancelled');
});
