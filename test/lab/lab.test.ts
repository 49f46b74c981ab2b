/** The lab with the built program; other harnesses are not installed for the tests. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import * as v from 'valibot';
import { runCommand } from '../../bench/lab/command.ts';
import { harnesses } from '../../bench/lab/harnesses.ts';
import { pickTasks } from '../../bench/lab/lab.ts';
import { readCommand } from '../../bench/lab/options.ts';
import { runTask } from '../../bench/lab/run.ts';
import { callsFor, OfferedTool } from '../../bench/lab/toolset.ts';

const root = join(import.meta.dirname, '..', '..');
const main = join(root, 'bench', 'lab', 'main.ts');
const limitMs = 600_000;
const ours = harnesses.find(({ name }) => name === 'oratorio');

/** Runs `npm run lab` without its npm. */
const lab = (args: readonly string[]) =>
  promisify(execFile)(process.execPath, ['--conditions=development', main, ...args]).catch(
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );

for (const name of ['ts-tabs', 'ts-server', 'py-dedented', 'c-warnings', 'sh-input']) {
  t.test(`oratorio solves ${name} with the scripted model`, async (t) => {
    const [task] = pickTasks([name]);
    if (!task || !ours) return t.fail('not there');
    const outcome = await runTask(ours, task, { limitMs });
    t.match(outcome, { isSolved: true, reason: undefined });
    t.ok(outcome.requests >= 4 && outcome.bytes > 4_000);
  });
}

t.test(
  'a real endpoint is asked with its model and its key, and a task that it does not solve is reported',
  async (t) => {
    const asked: { authorization: string | undefined; model: string }[] = [];
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const part of request) body += part;
      const { model } = v.parse(v.object({ model: v.string() }), JSON.parse(body));
      asked.push({ authorization: request.headers.authorization, model });
      const chunk = (choice: object) =>
        `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model, choices: [{ index: 0, ...choice }] })}\n\n`;
      response.setHeader('content-type', 'text/event-stream');
      response.end(
        `${chunk({ delta: { role: 'assistant', content: 'I would rather not.' }, finish_reason: null })}${chunk({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`,
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const args = ['--harness', 'oratorio', '--task', 'ts-pages', '--endpoint', endpoint, '--model', 'big', '--json'];
    const printed: string[] = [];
    const reported: string[] = [];
    const output = { print: (line: string) => printed.push(line), report: (line: string) => reported.push(line) };
    const code = await runCommand(args, { LAB_API_KEY: 'lab-key-of-the-test' }, output);
    t.match(JSON.parse(printed.join('\n')), {
      task: 'ts-pages',
      isSolved: false,
      requests: 1,
      reason: /the test fails/,
    });
    t.equal(code, 1);
    t.strictSame(asked, [{ authorization: 'Bearer lab-key-of-the-test', model: 'big' }]);
    t.notMatch([...printed, ...reported].join('\n'), 'lab-key-of-the-test');
  },
);

t.test('wrong options are refused with the known values', async (t) => {
  t.match(await lab(['--task', 'ts-nothing']), { code: 2, stderr: /no task ts-nothing.*ts-pages/ });
  const refuses = (args: readonly string[], message: RegExp) => t.throws(() => readCommand(args, {}), { message });
  refuses(['--harness', 'other'], /no harness other.*oratorio/);
  refuses(['--model', 'x'], /--provider or --endpoint/);
  refuses(['--provider', 'openai'], /--model/);
  refuses(['--provider', 'openai', '--model', 'x'], /OPENAI_API_KEY/);
  refuses(['--limit', 'soon'], /number of seconds/);
});

t.test('steps become calls of any toolset: absolute paths, seconds, one edit a call, required words', async (t) => {
  const tool = (name: string, properties: Record<string, object>, required: string[] = []) =>
    v.parse(OfferedTool, { function: { name, parameters: { properties, required } } }).function;
  const tools = [
    tool(
      'bash',
      { command: { type: 'string' }, timeout: { description: 'Timeout in seconds' }, description: { type: 'string' } },
      ['command', 'description'],
    ),
    tool('edit', { file_path: { description: 'The absolute path to the file' }, old_string: {}, new_string: {} }),
  ];
  t.strictSame(callsFor({ kind: 'run', command: 'true', limitMs: 2_000 }, tools, '/w'), [
    { name: 'bash', arguments: { command: 'true', timeout: 2, description: 'A step of the task' } },
  ]);
  const edits = [
    { old: 'a', new: 'b' },
    { old: 'c', new: 'd' },
  ];
  t.strictSame(
    callsFor({ kind: 'edit', path: 'x.ts', edits }, tools, '/w').map((call) => call.arguments),
    [
      { file_path: '/w/x.ts', old_string: 'a', new_string: 'b' },
      { file_path: '/w/x.ts', old_string: 'c', new_string: 'd' },
    ],
  );
  t.throws(() => callsFor({ kind: 'read', path: 'x' }, tools, '/w'), /no tool to read/);
});
