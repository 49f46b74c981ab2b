/** Skills and prompt commands in turns. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createSkillTool, Library, textReader } from '../../../src/agent/index.ts';
import { answers, call, listening, say, service, talk, text } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

function place(t: Test) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  mkdirSync(join(workspacePath, '.oratorio', 'commands'), { recursive: true });
  mkdirSync(join(workspacePath, '.agents', 'skills', 'deploy'), { recursive: true });
  writeFileSync(join(workspacePath, '.oratorio', 'commands', 'review.md'), 'Review $1 with care.');
  writeFileSync(
    join(workspacePath, '.agents', 'skills', 'deploy', 'SKILL.md'),
    '---\nname: deploy\ndescription: Deploys it.\n---\nRun it.\n',
  );
  const library = new Library(home);
  const surroundings = { home, library, read: textReader({ blockedPaths: [], home }), commands: () => '' };
  return { workspacePath, options: { workspacePath, library, surroundings, tools: () => [createSkillTool(library)] } };
}

t.test(
  'the model gets the text of a command and the item stays a reference, also after the file is gone',
  async (t) => {
    const { workspacePath, options } = place(t);
    const provider = answers([say('one')], [say('two')]);
    const { runtime } = service(provider, options);
    const { thread } = runtime.threads.start({});
    const { turn } = await talk(runtime, thread.id, '/review a.ts');
    t.match(turn.items[0], {
      type: 'userMessage',
      input: [{ type: 'commandRef', name: 'review', rawText: '/review a.ts' }],
    });
    rmSync(join(workspacePath, '.oratorio'), { recursive: true });
    await talk(runtime, thread.id, 'and now?');
    for (const { messages } of provider.requests)
      t.match(messages[1], { content: [{ text: 'Review a.ts with care.' }] });
  },
);

t.test('a steered and a queued input are resolved, too', async (t) => {
  const { options } = place(t);
  const provider = answers([call('1', 'Skill', { name: 'deploy' })], [say('one')], [say('two')]);
  const { runtime } = service(provider, options);
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, ear.listener);
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  runtime.turns.enqueue(thread.id, text('/review queued.ts'), undefined, ear.listener).begin();
  runtime.turns.steer(thread.id, turn.id, { input: text('/review steered.ts') });
  begin();
  await ear.until('turn/completed', 2);
  t.match(JSON.stringify(provider.requests[1]?.messages), 'Review steered.ts with care.');
  t.match(JSON.stringify(provider.requests[2]?.messages), 'Review queued.ts with care.');
});

t.test('the prompt lists skills, the tool reads one; a read-only thread and the chat API get neither', async (t) => {
  const { options } = place(t);
  const provider = answers([call('1', 'Skill', { name: 'deploy' })], [say('done')], [say('ok')], [say('ok')]);
  const { runtime } = service(provider, options);
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(provider.requests[0]?.messages[0], { text: /- deploy: Deploys it\./ });
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { text: 'Run it.' },
  );
  await talk(runtime, runtime.threads.start({ config: { readOnly: true } }).thread.id, 'x');
  const chat = runtime.threads.start({ isEphemeral: true }).thread.id;
  const ear = listening();
  runtime.turns.start(chat, text('/review x'), ear.listener, { tools: 'standard' }).begin();
  await ear.until('turn/completed');
  for (const request of provider.requests.slice(2)) {
    t.notMatch(JSON.stringify(request.messages[0]), 'deploy');
    t.same(request.tools ?? [], []);
  }
  t.match(provider.requests[3]?.messages.at(-1), { content: [{ text: '/review x' }] });
});
