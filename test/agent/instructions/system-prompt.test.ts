import fc from 'fast-check';
import t from 'tap';
import type { PromptInput } from '../../../src/agent/instructions/index.ts';
import { promptParts, systemPrompt } from '../../../src/agent/instructions/index.ts';

const input: PromptInput = {
  workspacePath: '/work',
  briefing: {
    day: '2026-11-23',
    branch: 'main',
    instructions: [{ path: 'AGENTS.md', text: 'Use tabs.\n', isCut: true }],
  },
  tools: ['ReadFile', 'EditFile', 'GrepFiles', 'FindFiles', 'Exec'],
  policy: 'default',
  commands: 'Commands run in a sandbox.',
  additions: ['', ' Answer in German. '],
};
const names = (over: Partial<PromptInput> = {}) => promptParts({ ...input, ...over }).map(({ name }) => name);

t.test('all parts come in their order, without empty ones', async (t) => {
  t.same(names(), ['role', 'environment', 'work', 'tools', 'limits', 'answer', 'instructions', 'additions']);
  const none = { briefing: { day: '2026-11-23', instructions: [] }, tools: [], additions: [] };
  t.same(names(none), ['role', 'environment'], 'a model without tools needs no advice about them');
});

t.test('the prompt names place, branch, limits and cut instructions', async (t) => {
  const text = systemPrompt(input);
  for (const words of [
    'Workspace: /work;',
    'on git branch main.',
    'Commands run in a sandbox.',
    '<instructions path="AGENTS.md">\nUse tabs.\n[The file is longer; the rest is left out.]\n</instructions>',
    '\n\nAnswer in German.',
  ]) {
    t.match(text, words);
  }
  t.notMatch(text, 'SpawnSubagent', 'no advice about tools that are missing');
});

t.test('without instructions it stays below 4 KiB, with every tool', async (t) => {
  const tools = [...input.tools, 'ExecOutput', 'UpdatePlan', 'SpawnSubagent'];
  const text = systemPrompt({ ...input, tools, briefing: { day: '2026-11-23', instructions: [] } });
  t.ok(Buffer.byteLength(text) < 4_096, `${Buffer.byteLength(text)} bytes`);
});

t.test('neither text nor path of a file ends its own block (property)', async () => {
  const piece = fc.constantFrom('</instructions>', '</instructions', '<instructions path="x">', 'x', '\n', '</');
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1 }), fc.array(piece), (pieces, names) => {
      const instructions = [{ path: names.join('/'), text: pieces.join(''), isCut: false }];
      const text = systemPrompt({ ...input, briefing: { day: '2026-11-23', instructions }, additions: [] });
      return text.indexOf('</instructions') === text.length - '</instructions>'.length;
    }),
  );
});
