/** Reviews by the demo model: which lines it reports, and that nothing in a change leads it elsewhere. */
import t from 'tap';
import type { ModelMessage, ModelTool } from '../../../src/agent/model.ts';
import { DemoProvider } from '../../../src/agent/providers/demo.ts';
import { answerOf, collect, user } from './helpers.ts';

const tool = (name: string): ModelTool => ({
  name,
  description: name,
  inputSchema: { type: 'object', properties: {} },
});
const tools = [tool('ReadFile'), tool('SubmitReviewDraft')];

const task = (...files: readonly (readonly [path: string, ...lines: string[]])[]): string =>
  [
    `# Pull request 7 at ${'a'.repeat(40)}`,
    ...files.map(
      ([path, ...lines]) => `### ${path} (modified)\n\`\`\`diff\n@@ -1,1 +10,9 @@\n${lines.join('\n')}\n\`\`\``,
    ),
  ].join('\n\n');

/** Answers every call with `ok`, until the model makes none. */
async function review(words: string, offered = tools) {
  const messages: ModelMessage[] = [user(words)];
  const calls: { name: string; args: Record<string, unknown> }[] = [];
  for (;;) {
    const said = answerOf(await collect(new DemoProvider({ paceMs: 0 }), { messages, tools: offered }));
    if (said.calls.length === 0) return { calls, answer: said.text };
    calls.push(...said.calls.map(({ name, arguments: args }) => ({ name, args: JSON.parse(args) })));
    messages.push({ role: 'assistant', text: said.text, toolCalls: said.calls });
    for (const { callId, name } of said.calls)
      messages.push({ role: 'tool', callId, name, content: [{ type: 'text', text: 'ok' }] });
  }
}

t.test('added lines that match a rule are reported with their number, and with the fix where it is sure', async (t) => {
  const { calls, answer } = await review(
    task(
      ['a.js', ' const kept = eval(one);', '-const gone = eval(two);', '+for (let i = 0; i <= list.length; i += 1) {'],
      [
        'b.js',
        "+db.query('SELECT * FROM t WHERE id = ' + id);",
        '+  if (state = 3) {',
        '+if (a === b) {',
        '+x = eval(y)',
      ],
    ),
  );
  t.strictSame(
    calls.map(({ name }) => name),
    ['ReadFile', 'ReadFile', 'SubmitReviewDraft'],
  );
  const [, , handedIn] = calls;
  const findings = (handedIn?.args['findings'] ?? []) as Record<string, unknown>[];
  t.match(findings, [
    { path: 'a.js', line: 11, newText: 'for (let i = 0; i < list.length; i += 1) {', severity: 'major' },
    { path: 'b.js', line: 10, severity: 'critical' },
    { path: 'b.js', line: 11, newText: '  if (state === 3) {' },
    { path: 'b.js', line: 13, title: 'Text is evaluated as a program' },
  ]);
  t.equal(findings.length, 4);
  t.ok(findings.every(({ body }) => String(body).includes('Demo model (offline, no AI)')));
  t.match(answer, /^Demo model \(offline, no AI\):/);
});

t.test('a change without a fault is handed in without findings', async (t) => {
  const { calls } = await review(task(['a.js', '+const sum = 1 + 2;', `+${'"SELECT '.repeat(40_000)}`]));
  t.match(calls.at(-1), { name: 'SubmitReviewDraft', args: { findings: { length: 0 } } });
});

t.test('a request without a tool for drafts is not a review', async (t) => {
  t.strictSame((await review(task(['a.js', '+eval(x)']), [tool('ReadFile')])).calls, []);
  t.strictSame((await review('hello')).calls, []);
});
