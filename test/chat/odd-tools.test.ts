/** Tools of callers with odd names and schemas, in both interfaces. */
import fc from 'fast-check';
import t from 'tap';
import { always, type ScriptedProvider, say } from '../agent/scripted-provider.ts';
import { anyCharacter } from '../any-character.ts';
import { anySchema } from '../any-schema.ts';
import { refusalOfParameters } from '../providers/fakes/strict-schema.ts';
import { chat, type Running, user } from './harness.ts';

interface GivenTool {
  readonly name: unknown;
  readonly parameters?: unknown;
}

/** Each interface, with its field of a tool. */
const wires = [
  {
    path: '/v1/chat/completions',
    field: 'function.',
    bodyOf: (tools: readonly GivenTool[]) => ({
      messages: [user('hi')],
      tools: tools.map((tool) => ({ type: 'function', function: tool })),
    }),
  },
  {
    path: '/v1/responses',
    field: '',
    bodyOf: (tools: readonly GivenTool[]) => ({
      input: 'hi',
      store: false,
      tools: tools.map((tool) => ({ type: 'function', ...tool })),
    }),
  },
];
type Wire = (typeof wires)[number];

/** Returns the refused field, or undefined for a turn that offered each tool as every service accepts it. */
async function refusedField({ url, bugs }: Running, provider: ScriptedProvider, wire: Wire, tools: GivenTool[]) {
  const before = provider.requests.length;
  const [response, health] = await Promise.all([
    fetch(`${url}${wire.path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wire.bodyOf(tools)),
    }),
    fetch(`${url}/v1/health`),
  ]);
  const { error } = (await response.json()) as { error?: { type: string; param: string } | null };
  if (!health.ok || bugs.length > 0) throw new Error(`health ${health.status}, bugs ${bugs.join()}`);
  const requests = provider.requests.slice(before);
  if (response.status === 400 && error?.type === 'invalid_request_error') {
    if (requests.length > 0) throw new Error('a refused request began a turn');
    return error.param.replace(wire.field, '');
  }
  if (response.status !== 200 || requests.length !== 1) throw new Error(`status ${response.status}`);
  const offered = requests[0]?.tools ?? [];
  const refusal = offered.map(({ inputSchema }) => refusalOfParameters(inputSchema)).find(Boolean);
  if (refusal !== undefined) throw new Error(refusal);
  if (offered.length !== tools.length || !offered.every(({ name }) => /^[\w-]{1,128}$/.test(name))) {
    throw new Error(`offered ${JSON.stringify(offered.map(({ name }) => name))}`);
  }
  return undefined;
}

const anyName = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('get_weather', 'a-1', 'toString', '__proto__', 'x'.repeat(128)) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>('', 'a b', 'a.b', 'ä', 'a\n', 'x'.repeat(129), 7, null, undefined) },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter }) },
);
const anyTools = fc.array(fc.record({ name: anyName, parameters: anySchema }, { requiredKeys: ['name'] }), {
  minLength: 1,
  maxLength: 3,
});

t.test('a request with odd tools gets a turn that every service accepts, or 400 with the field', async (t) => {
  for (const wire of wires) {
    const provider = always(say('ok'));
    const running = await chat(t, provider);
    const fields = new Map<string | undefined, number>();
    await fc.assert(
      fc.asyncProperty(anyTools, async (tools) => {
        const field = (await refusedField(running, provider, wire, tools))?.replace(/\d+/, 'n');
        fields.set(field, (fields.get(field) ?? 0) + 1);
      }),
      { numRuns: 300 },
    );
    t.strictSame(new Set(fields.keys()), new Set([undefined, 'tools[n].name', 'tools[n].parameters']), wire.path);
    t.ok((fields.get(undefined) ?? 0) > 30, 'positive control: many requests get a turn');
  }
});

const many = <T>(count: number, each: (index: number) => T): T[] => Array.from({ length: count }, (_, n) => each(n));
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });
const named = (count: number, each: (index: number) => unknown) =>
  Object.fromEntries(many(count, (n) => [`p${n}`, each(n)]));
/** A schema whose properties all refer to one definition. */
const repeated = (definition: object, count = 1_900) =>
  object(
    named(count, () => ({ $ref: '#/$defs/a' })),
    { $defs: { a: definition } },
  );
function nested(levels: number): object {
  let schema: object = { type: 'string' };
  for (let level = 0; level < levels; level += 1) schema = { anyOf: [schema] };
  return schema;
}
const bomb = {
  ...named(30, (n) => object(named(9, () => ({ $ref: `#/$defs/p${n + 1}` })))),
  p30: { type: 'string' },
};
const oneTool = (parameters: unknown): GivenTool[] => [{ name: 'f', parameters }];

/** Tools, and the field that is refused; undefined: a turn. */
const large: readonly (readonly [string, () => GivenTool[], string | undefined])[] = [
  [
    'a cycle of references',
    () => oneTool(object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { $ref: '#' } } })),
    undefined,
  ],
  ['references that multiply', () => oneTool(object({ a: { $ref: '#/$defs/p0' } }, { $defs: bomb })), undefined],
  ['a pattern that backtracks', () => oneTool(object({ a: { type: 'string', pattern: '^(a+)+$' } })), undefined],
  ['90 levels', () => oneTool(object({ a: nested(90) })), undefined],
  ['2,000 levels', () => oneTool(object({ a: nested(2_000) })), 'tools[0].parameters'],
  ['100,000 parts of allOf', () => oneTool({ allOf: many(100_000, (n) => object({ [`p${n}`]: {} })) }), undefined],
  ['100,000 branches', () => oneTool(object({ a: { anyOf: many(100_000, () => ({ type: 'string' })) } })), undefined],
  ['100,000 properties', () => oneTool(object(named(100_000, () => true))), 'tools[0].parameters'],
  ['100,000 types', () => oneTool(repeated({ type: many(100_000, () => 'string') })), 'tools[0].parameters'],
  ['100,000 values', () => oneTool(repeated({ enum: many(100_000, String) })), 'tools[0].parameters'],
  [
    'required names in each of 1,000 branches',
    () =>
      oneTool({
        anyOf: many(1_000, () =>
          object(
            named(9, () => true),
            { required: many(900, (n) => `p${n}`) },
          ),
        ),
      }),
    'tools[0].parameters',
  ],
  ['a text of 1 MB, repeated', () => oneTool(repeated({ default: 'x'.repeat(1_000_000) })), 'tools[0].parameters'],
  [
    'a name of 1 MB, repeated',
    () => oneTool(repeated(object({ ['x'.repeat(1_000_000)]: true }))),
    'tools[0].parameters',
  ],
  ['true', () => oneTool(true), 'tools[0].parameters'],
  ['false', () => oneTool(false), 'tools[0].parameters'],
  ['a list', () => oneTool([]), 'tools[0].parameters'],
  ['equal names', () => [...oneTool({}), ...oneTool({})], 'tools[1].name'],
  [
    '512 tools of 300 parts',
    () => many(512, (n) => ({ name: `t${n}`, parameters: repeated({ type: 'string' }, 300) })),
    undefined,
  ],
  ['513 tools', () => many(513, (n) => ({ name: `t${n}` })), 'tools'],
];

t.test('a request with large tools gets a turn, or 400 with the field', async (t) => {
  for (const wire of wires) {
    const provider = always(say('ok'));
    const running = await chat(t, provider);
    for (const [name, tools, field] of large) {
      t.equal(await refusedField(running, provider, wire, tools()), field, `${wire.path}: ${name}`);
    }
  }
});
