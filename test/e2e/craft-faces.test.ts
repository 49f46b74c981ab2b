/** AGENTS.md, skills, prompt commands, hooks and the plan in every face of the built product: for the model and for clients. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { AppServerClient } from '../../src/client/index.ts';
import { choose, editorOn, introduce } from '../acp/harness.ts';
import { agentOf, say as prompt, run } from '../agui/harness.ts';
import { answered, startMockUpstream, type UpstreamRequest } from '../fixtures/upstream/mock-upstream.ts';
import { answerOf, command, makePlace, oratorio, type Place, say, startHub } from './harness.ts';

const steps = [
  { step: 'Reproduce it', status: 'completed' },
  { step: 'Repair it', status: 'in_progress' },
];
/** The model plans, reads below an AGENTS.md, reads the skill, and tries the call that the hook forbids. */
const toolCalls = [
  { id: 'plan', name: 'UpdatePlan', arguments: { plan: steps } },
  { id: 'read', name: 'ReadFile', arguments: { path: 'shop/price.txt' } },
  { id: 'skill', name: 'Skill', arguments: { name: 'release' } },
  { id: 'push', name: 'Exec', arguments: { command: 'echo pushed' } },
];

type Message = { readonly role: string; readonly content: unknown; readonly tool_call_id?: string };
const messagesOf = ({ body }: UpstreamRequest): readonly Message[] => body.messages;
const textOf = ({ content }: Message): string => (typeof content === 'string' ? content : JSON.stringify(content));

function write(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
}

const Thread = v.object({
  thread: v.object({ turns: v.array(v.object({ items: v.array(v.looseObject({ type: v.string() })) })) }),
});
/** The plan of the first turn of a thread that was read. */
const planIn = (read: unknown) => v.parse(Thread, read).thread.turns[0]?.items.find(({ type }) => type === 'plan');

/** A workspace with everything, trusted, and a model that uses it. */
async function scene(t: Test) {
  const upstream = await startMockUpstream(t, (request) => {
    const isFirst = messagesOf(request).at(-1)?.role === 'user';
    return answered(request, isFirst ? { toolCalls } : { text: 'It is repaired.' });
  });
  const place = makePlace(t);
  const workspace = place.workspace('site', {
    ...{ Provider: 'openai-compatible', EndPoint: upstream.url, ApiKey: 'test-key', Model: 'mock-model' },
    AgUi: { Enabled: true, ApiKey: 'a-key-of-the-frontend' },
    Permissions: { DefaultApprovalPolicy: 'autoApprove' },
    Hooks: {
      SessionStart: [{ Command: 'echo The build is green.' }],
      UserPromptSubmit: [{ Command: 'echo The branch is frozen.' }],
      PreToolUse: [{ Matcher: 'Exec', Command: 'echo Nothing is pushed today. >&2; exit 2' }],
    },
  });
  write(workspace, {
    'AGENTS.md': 'Indent with tabs.\n',
    'shop/AGENTS.md': 'Prices are in cents.\n',
    'shop/price.txt': '100\n',
    '.agents/skills/release/SKILL.md':
      '---\nname: release\ndescription: Makes a release.\n---\nCount the versions first.\n',
    '.oratorio/commands/fix.md': '---\ndescription: Fixes an issue\nargument-hint: <number>\n---\nRepair issue $1.\n',
  });
  chmodSync(join(workspace, 'shop'), 0o755);
  return { place, workspace, upstream };
}

/** Everything that the model got in a conversation that began with `/fix 12`. */
function checkConversation(t: Test, requests: readonly UpstreamRequest[]): void {
  t.equal(requests.length, 2, 'the model was asked twice');
  const [first, second] = requests;
  if (!first || !second) return;
  const [system, user] = messagesOf(first);
  t.match(system?.content, /Indent with tabs\./, 'the instructions of the project');
  t.match(system?.content, /release: Makes a release\.|release.*Makes a release\./s, 'the skill');
  t.match(system?.content, /The build is green\./, 'the context of the hook at the start');
  t.match(user && textOf(user), /Repair issue 12\./, 'the prompt command');
  t.match(messagesOf(first).map(textOf).join('\n'), /The branch is frozen\./, 'the context of the hook of the prompt');
  const result = (id: string) =>
    textOf(messagesOf(second).find((each) => each.tool_call_id?.endsWith(id)) ?? { role: '', content: '' });
  t.match(result('read'), /100[\s\S]*Prices are in cents\./, 'the instructions of the directory');
  t.match(result('skill'), /Count the versions first\./, 'the body of the skill');
  t.match(result('push'), /Nothing is pushed today\./, 'the reason of the hook');
  t.notMatch(result('push'), /^pushed/m);
  t.equal(messagesOf(second)[0]?.content, system?.content, 'the system prompt is the same to the byte');
}

/** `oratorio acp`, as an editor starts it. */
async function editor(t: Test, place: Place) {
  const child = spawn(process.execPath, [command, 'acp', '--no-start'], { cwd: place.root, env: place.env });
  child.stderr.resume();
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const made = editorOn(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>, () =>
    choose('accept'),
  );
  await introduce(made);
  return made;
}

t.test('instructions, skills, commands, hooks and plan reach the model and the client in every face', async (t) => {
  const { place, workspace, upstream } = await scene(t);
  const hub = await startHub(place);
  const { endpoints, serviceStatus } = await hub.client.ensure({ workspacePath: workspace });
  let seen = 0;
  const fresh = () => {
    const requests = upstream.requests.slice(seen).filter(({ method }) => method === 'POST');
    seen = upstream.requests.length;
    return requests;
  };

  await t.test('JSON-RPC', async (t) => {
    const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '');
    t.teardown(() => client.close());
    t.match(await client.request('skills/list', {}), { data: [{ name: 'release', description: 'Makes a release.' }] });
    t.match(await client.request('command/list', {}), { data: [{ name: 'fix' }] });
    const turn = await say(client, workspace, '/fix 12');
    t.equal(await answerOf(turn), 'It is repaired.');
    t.match(planIn(await client.request('thread/read', { threadId: turn.threadId, includeTurns: true })), { steps });
    checkConversation(t, fresh());
  });

  await t.test('ACP with the official client', async (t) => {
    const made = await editor(t, place);
    const { sessionId } = await made.agent.request('session/new', { cwd: workspace, mcpServers: [] });
    const prompt = [{ type: 'text' as const, text: '/fix 12' }];
    t.match(await made.agent.request('session/prompt', { sessionId, prompt }), { stopReason: 'end_turn' });
    t.match(made.of('available_commands_update').at(-1), {
      availableCommands: [
        { name: 'undo' },
        { name: 'diff' },
        { name: 'fix', description: 'Fixes an issue', input: { hint: '<number>' } },
      ],
    });
    t.match(
      made
        .of('plan')
        .at(-1)
        ?.entries.map(({ content, status }) => ({ step: content, status })),
      steps,
    );
    t.match(made.said(), /It is repaired\./);
    checkConversation(t, fresh());
  });

  await t.test('AG-UI with the official client', async (t) => {
    const url = serviceStatus['agui']?.url ?? '';
    const agent = agentOf(url, 'a thread of the page', { authorization: 'Bearer a-key-of-the-frontend' });
    prompt(agent, '/fix 12');
    const { events } = await run(agent);
    t.match(
      events.find((event) => event.type === 'CUSTOM' && 'name' in event && event.name === 'oratorio.plan'),
      {
        value: { steps },
      },
    );
    t.match(agent.messages.at(-1), { role: 'assistant', content: 'It is repaired.' });
    checkConversation(t, fresh());
  });

  await t.test('the command line', async (t) => {
    const { code, stdout } = await oratorio(place, ['exec', '--workspace', workspace, '--yes', '/fix 12']);
    t.equal(code, 0);
    t.match(stdout, /It is repaired\./);
    checkConversation(t, fresh());
  });

  await t.test('an automation', async (t) => {
    const { code, stdout } = await oratorio(place, [
      ...['task', 'add', '--workspace', workspace, '--yes', '--wait', '/fix 12'],
    ]);
    t.equal(code, 0);
    t.match(stdout, /It is repaired\./);
    checkConversation(t, fresh());
  });
  await hub.shutdown();
});
