/** Codex as a client: it drives `/v1/responses` of Oratorio, whose model asks for a tool of codex. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { parrot, parrotModel } from '../chat/clients/parrot.ts';
import { pixel, seenPixel } from '../chat/clients/target.ts';
import { chat } from '../chat/harness.ts';
import { temporaryDirectory } from '../hub/harness.ts';
import { agentPrograms } from './programs.ts';
import { subjects } from './subjects.ts';

t.setTimeout(600_000);

const key = 'a-key-of-the-test';
const codex = subjects.find(({ name }) => name === 'codex');

t.test('codex with Oratorio as its provider answers, runs commands, shows thoughts and sends pictures', async (t) => {
  const model = parrot();
  const { url, bugs } = await chat(t, model, { api: { ApiKey: key } });
  const home = temporaryDirectory(t);
  const workspace = temporaryDirectory(t);
  const variables = codex?.configure(home, `${url}/v1`);

  async function run(prompt: string, more: readonly string[] = []) {
    const words = [
      'exec',
      '--json',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      prompt,
      ...more,
    ];
    const child = spawn(join(agentPrograms, 'codex'), ['--model', parrotModel, ...words], {
      cwd: workspace,
      env: { ...process.env, HOME: home, ...variables },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = (await text(child.stdout)).trim().split('\n');
    return lines.map(
      (line) => JSON.parse(line) as { readonly type: string; readonly item?: object; readonly usage?: object },
    );
  }

  const said = await run('say hello there');
  t.match(said.filter(({ type }) => type === 'item.completed').at(-1)?.item, {
    type: 'agent_message',
    text: 'hello there',
  });
  t.match(said.at(-1), { type: 'turn.completed', usage: { output_tokens: 2 } });

  const worked = await run('call exec_command {"cmd":"echo by codex > made.txt"}');
  t.match(worked.at(-1), { type: 'turn.completed' });
  t.equal(readFileSync(join(workspace, 'made.txt'), 'utf8'), 'by codex\n');
  t.match(worked.filter(({ type }) => type === 'item.completed').at(-1)?.item, {
    type: 'agent_message',
    text: /^result: [\s\S]*exited with code 0/,
  });

  const thought = await run('think deeply');
  t.match(thought.flatMap(({ type, item }) => (type === 'item.completed' ? [item] : [])).slice(-2), [
    { type: 'reasoning', text: 'deeply' },
    { type: 'agent_message', text: 'thought' },
  ]);

  const picture = join(workspace, 'pixel.png');
  writeFileSync(picture, Buffer.from(pixel, 'base64'));
  const seen = await run('see', ['--image', picture]);
  t.match(seen.filter(({ type }) => type === 'item.completed').at(-1)?.item, {
    type: 'agent_message',
    text: seenPixel,
  });
  t.strictSame(bugs, [], 'no request was logged as a bug');
});
