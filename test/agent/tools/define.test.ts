import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { defineTool } from '../../../src/agent/tools/define.ts';
import { contextOf } from './run-tool.ts';

const wholeNumber = 'a whole number from 1 to 10';
const tool = defineTool({
  name: 'Try',
  description: 'Tries.',
  isReadOnly: true,
  parameters: v.object({
    path: v.pipe(v.string('a path'), v.nonEmpty('a path'), v.description('Where.')),
    oldText: v.optional(v.string()),
    limit: v.optional(
      v.pipe(v.number(wholeNumber), v.integer(wholeNumber), v.minValue(1, wholeNumber), v.maxValue(10, wholeNumber)),
      5,
    ),
    all: v.optional(v.boolean()),
    kind: v.optional(v.picklist(['a', 'b'])),
  }),
  aliases: { path: ['file_path', 'file'] },
  run: async (args) => ({ text: JSON.stringify(args), isError: false }),
});

const parsed = (args: unknown) => {
  const result = tool.parse(args);
  return result.ok ? result.args : result.error;
};

t.test('the schema that models see is made of the parameters, without the limits that parse sees to', async (t) => {
  t.strictSame(tool.inputSchema, {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Where.' },
      oldText: { type: 'string' },
      limit: { type: 'integer' },
      all: { type: 'boolean' },
      kind: { enum: ['a', 'b'], type: 'string' },
    },
    required: ['path'],
  });
  t.equal(tool.inputSchema, tool.inputSchema, 'made once');
  t.equal(tool.source, 'builtin');
});

t.test('other spellings and names of parameters mean the parameter', async (t) => {
  for (const key of ['path', 'Path', 'file_path', 'filePath', 'FILE-PATH', 'file']) {
    t.strictSame(parsed({ [key]: 'x' }), { path: 'x', limit: 5 }, key);
  }
  t.strictSame(parsed({ path: 'x', old_text: 'y' }), { path: 'x', oldText: 'y', limit: 5 });
});

t.test('of two names of a parameter the proper one wins, in any order', async (t) => {
  t.strictSame(parsed({ file: 'c', path: 'a', filePath: 'b' }), { path: 'a', limit: 5 });
  t.strictSame(parsed({ file: 'c', file_path: 'b' }), { path: 'b', limit: 5 });
});

t.test('numbers and booleans may be written as text, null means absent, unknown parameters are ignored', async (t) => {
  t.strictSame(parsed({ path: 'x', limit: ' 7 ', all: 'TRUE', kind: null, nonsense: 1 }), {
    path: 'x',
    limit: 7,
    all: true,
  });
  t.strictSame(parsed({ path: '12' }), { path: '12', limit: 5 }, 'a text that looks like a number stays a text');
});

t.test('an error names the parameter and its valid values, in one sentence', async (t) => {
  t.equal(parsed({}), 'Try: path is missing, it must be a path.');
  t.equal(parsed({ path: '' }), 'Try: path must be a path.');
  t.equal(parsed({ path: 'x', limit: '11' }), 'Try: limit must be a whole number from 1 to 10.');
  t.equal(parsed({ path: 'x', limit: 'many' }), 'Try: limit must be a whole number from 1 to 10.');
  t.equal(parsed({ path: 'x', limit: 1.5 }), 'Try: limit must be a whole number from 1 to 10.');
  t.equal(parsed({ path: 'x', all: 1 }), 'Try: all must be true or false.');
  t.equal(parsed({ path: 'x', oldText: {} }), 'Try: oldText must be a string.');
  t.equal(parsed({ path: 'x', kind: 'c' }), 'Try: kind must be ("a" | "b").');
  for (const args of [null, undefined, 'x', 1, []]) t.equal(parsed(args), 'Try: the arguments must be a JSON object.');
});

t.test('any text of a model gives arguments or an error of one sentence, never an exception', async () => {
  fc.assert(
    fc.property(fc.anything(), (args) => {
      const result = tool.parse(args);
      return result.ok || /^Try: [^\n]+\.$/.test(result.error);
    }),
  );
});

t.test('approval and run receive the parsed arguments', async (t) => {
  const result = tool.parse({ file: 'x' });
  if (!result.ok) throw new Error(result.error);
  t.equal(await tool.approvalFor(result.args, { workspacePath: '/' }), undefined);
  t.strictSame(await tool.run(result.args, contextOf()), { text: '{"path":"x","limit":5}', isError: false });
});
