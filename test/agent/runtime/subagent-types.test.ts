/** Types of sub-agents: their tools, models and instructions, and files that define them. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, Library, textReader } from '../../../src/agent/index.ts';
import { Config } from '../../../src/config/schema.ts';
import { answers, call, say, service, settings, talk } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

const reviewer = (head = '') => `---\ndescription: Reviews a change.\n${head}---\nBe strict about names.\n`;

/** Threads with the built-in tools, and files of the workspace and of the user's home. */
function stage(
  t: Test,
  files: { readonly workspace?: Record<string, string>; readonly home?: Record<string, string> },
  ...rounds: Parameters<typeof answers>
) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  for (const [base, all] of [
    [workspacePath, files.workspace ?? {}],
    [home, files.home ?? {}],
  ] as const) {
    for (const [path, content] of Object.entries(all)) {
      mkdirSync(dirname(join(base, path)), { recursive: true });
      writeFileSync(join(base, path), content);
    }
  }
  const library = new Library(home);
  const tools = createBuiltinTools({
    tools: v.parse(Config, { Tools: { Shell: { Sandbox: 'off' } } }).Tools,
    ...{ blockedPaths: [], home, environment: process.env, passEnvironment: [], secrets: [] },
  });
  const provider = answers(...rounds);
  const { runtime, bugs } = service(provider, {
    ...{ workspacePath, library, tools: () => tools },
    surroundings: { home, read: textReader({ blockedPaths: [], home }), library, commands: () => '' },
    settings: {
      ...settings,
      approvalPolicy: 'autoApprove',
      subAgent: { ...settings.subAgent, exploreModel: 'small' },
    },
  });
  return { runtime, bugs, provider, library, workspacePath, home };
}

const spawn = (type?: string) => call('1', 'SpawnSubagent', { task: 'Find it.', ...(type !== undefined && { type }) });
const named = (tools: readonly { readonly name: string }[] | undefined) => tools?.map(({ name }) => name) ?? [];

t.test('an explorer has the tools that read, the model for exploring, and says so in its prompt', async (t) => {
  const { runtime, provider, bugs } = stage(t, {}, [spawn('explore')], [say('It is in a.ts:3.')], [say('Found.')]);
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'Where is it?');
  const [parent, child] = provider.requests;
  t.ok(named(parent?.tools).includes('WriteFile'));
  t.strictSame(
    named(child?.tools).filter((name) =>
      ['WriteFile', 'EditFile', 'Exec', 'SpawnSubagent', 'UpdatePlan'].includes(name),
    ),
    [],
  );
  t.ok(named(child?.tools).includes('GrepFiles'));
  t.equal(child?.model, 'small');
  t.match(child?.messages[0], { role: 'system', text: /You explore: find the answer/ });
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { text: 'It is in a.ts:3.' },
  );
  t.strictSame(bugs, []);
});

t.test('an explorer that calls another tool is refused, and nothing changes', async (t) => {
  const { runtime, provider } = stage(
    t,
    {},
    [spawn('explore')],
    [call('2', 'Exec', { command: 'touch x' })],
    [say('I may not.')],
    [say('done')],
  );
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'x');
  t.match(provider.requests[2]?.messages.at(-1), { role: 'tool', content: [{ text: /there is no tool Exec/ }] });
});

t.test('without a type, and with the type work, a sub-agent has the tools of its parent', async (t) => {
  for (const type of [undefined, 'work']) {
    const { runtime, provider } = stage(t, {}, [spawn(type)], [say('done')], [say('done')]);
    const { thread } = runtime.threads.start({});
    await talk(runtime, thread.id, 'x');
    t.ok(named(provider.requests[1]?.tools).includes('Exec'), type ?? 'no type');
    t.notMatch(provider.requests[1]?.messages[0], { text: /You explore/ });
  }
});

t.test('a type of a file adds its instructions and limits the tools; only the user may choose a model', async (t) => {
  const head = 'tools: [ReadFile, grepfiles, Unknown]\nmodel: dear\n';
  for (const [place, model] of [
    ['workspace', undefined],
    ['home', 'dear'],
  ] as const) {
    const path = place === 'workspace' ? '.oratorio/agents/reviewer.md' : 'agents/reviewer.md';
    const scene = stage(t, { [place]: { [path]: reviewer(head) } }, [spawn('reviewer')], [say('ok')], [say('ok')]);
    const { thread } = scene.runtime.threads.start({});
    await talk(scene.runtime, thread.id, 'x');
    const [parent, child] = scene.provider.requests;
    t.match(parent?.messages[0], { text: /Further types of sub-agents:\n- reviewer: Reviews a change\./ });
    t.strictSame(named(child?.tools), ['ReadFile', 'GrepFiles']);
    t.match(child?.messages[0], { text: /Be strict about names\./ });
    t.equal(child?.model, model, place);
  }
});

t.test('an unknown type is an error that names the types', async (t) => {
  const scene = stage(t, { workspace: { '.oratorio/agents/reviewer.md': reviewer() } }, [spawn('nobody')], [say('ok')]);
  const { thread } = scene.runtime.threads.start({});
  await talk(scene.runtime, thread.id, 'x');
  t.match(scene.provider.requests[1]?.messages.at(-1), {
    content: [{ text: 'Error: there is no type nobody. Types: explore, work, reviewer.' }],
  });
});

t.test('files with faults are left out and reported; the workspace wins over the home', async (t) => {
  const { library, workspacePath, home } = stage(t, {
    workspace: {
      '.oratorio/agents/reviewer.md': reviewer(),
      '.oratorio/agents/explore.md': reviewer(),
      '.oratorio/agents/Big.md': reviewer(),
      '.oratorio/agents/empty.md': '---\ndescription: x\n---\n',
      '.oratorio/agents/mute.md': '---\nname: x\n---\nbody\n',
      '.oratorio/agents/odd.md': '---\ndescription: x\ntools: all\n---\nbody\n',
      '.oratorio/agents/broken.md': '---\n{\n---\nbody\n',
    },
    home: {
      'agents/reviewer.md': '---\ndescription: Mine.\n---\nMine.\n',
      'agents/other.md': '---\ndescription: Other.\n---\nOther.\n',
    },
  });
  symlinkSync('/etc/hostname', join(workspacePath, '.oratorio/agents/linked.md'));
  const { data, problems } = library.agentTypes(workspacePath);
  t.strictSame(
    data.map(({ name, description }) => [name, description]),
    [
      ['reviewer', 'Reviews a change.'],
      ['other', 'Other.'],
    ],
  );
  t.ok(home);
  t.match(problems.map(({ path, problem }) => `${path.split('/').at(-1)}: ${problem}`).sort(), [
    /^Big\.md: its name must be/,
    /^broken\.md: its head is not valid YAML/,
    /^empty\.md: it has no instructions/,
    /^explore\.md: explore is a type of Oratorio/,
    /^mute\.md: it has no description/,
    /^odd\.md: its tools must be a list of names/,
  ]);
});
