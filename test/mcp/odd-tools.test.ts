import { Client, InMemoryTransport, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import fc from 'fast-check';
import t from 'tap';
import { failureOf } from '../../src/mcp/failure.ts';
import { ListReview } from '../../src/mcp/list-review.ts';
import { createTool } from '../../src/mcp/tool.ts';
import { refusalOfParameters } from '../providers/fakes/strict-schema.ts';
import { call, inState, nothingLeft, room, small, stdio, toolOf } from './helpers.ts';

type Page = Readonly<Record<string, unknown>>;

/** A client whose server answers each list with `pageOf`, in this process. */
async function connected(pageOf: (method: string, cursor: unknown) => Page, limitMs = 60_000) {
  const [mine, theirs] = InMemoryTransport.createLinkedPair();
  const lists = new ListReview(limitMs);
  const asked: string[] = [];
  theirs.onmessage = (message: JSONRPCMessage) => {
    if (!('method' in message) || !('id' in message)) return;
    const { id, method, params } = message;
    if (method !== 'initialize') asked.push(method);
    const capabilities = { tools: {}, resources: {}, prompts: {} };
    const result =
      method === 'initialize'
        ? { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'odd', version: '1' } }
        : pageOf(method, params?.['cursor']);
    void theirs.send({ jsonrpc: '2.0', id, ...('error' in result ? result : { result }) } as JSONRPCMessage);
  };
  await theirs.start();
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
  await client.connect(reviewed(mine, lists));
  return { client, lists, asked };
}

/** A transport whose lists are reviewed, as those of servers are. */
function reviewed(inner: InMemoryTransport, lists: ListReview): Transport {
  const outer: Transport = {
    start: () => inner.start(),
    close: () => inner.close(),
    send(message) {
      lists.sent(message);
      return inner.send(message);
    },
  };
  inner.onmessage = (message) => outer.onmessage?.(lists.received(message));
  inner.onclose = () => outer.onclose?.();
  return outer;
}

const host = {
  serverName: 'odd',
  isTrusted: false,
  toolTimeoutSec: 1,
  connection: () => undefined,
  settled: async () => {},
  stateText: () => '',
  clean: (text: string) => text,
  cleanResult: (text: string) => text,
};

const goodSchema = { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] };
/** Definitions that cannot be offered, and ones that are offered in part. */
const odd: readonly Page[] = [
  { inputSchema: { type: 'string' } },
  { inputSchema: [] },
  { inputSchema: { anyOf: [{ type: 'string' }] } },
  { inputSchema: { type: 'object', properties: { 'a b': {} }, required: ['a b'] } },
  { inputSchema: goodSchema, execution: { taskSupport: 'required' } },
  {},
  { inputSchema: { type: 'object', properties: { coin: { type: 'string' }, required: ['coin'] } } },
  { inputSchema: { type: 'object', properties: { x: { $ref: '#/nowhere' } } } },
  { inputSchema: { type: 'object', properties: { x: { type: 'any' } } } },
  { inputSchema: { type: 'any' }, description: 7, annotations: 'none' },
];

t.test('a list with odd tools offers the good ones unchanged and names each odd one', async (t) => {
  let page: Page = {};
  const { client, lists } = await connected(() => page);
  const kind = fc.integer({ min: -2 * odd.length, max: odd.length - 1 });
  const wholeList = fc.array(kind, { minLength: 1, maxLength: 12 });
  let oddTools = 0;
  await fc.assert(
    fc.asyncProperty(wholeList, async (kinds) => {
      const tools = kinds.map((each, index) => ({
        name: `tool-${index}`,
        ...(odd[each] ?? { inputSchema: goodSchema }),
      }));
      page = { tools, nextCursor: null };
      const offered = (await client.listTools(undefined, { cacheMode: 'refresh' })).tools;
      const named = new Map(lists.toolProblems.map((problem) => [problem.tool, problem]));
      for (const [index, each] of kinds.entries()) {
        const name = `tool-${index}`;
        const tool = offered.find((one) => one.name === name);
        const problem = named.get(name);
        if (each >= 0) {
          oddTools += 1;
          if (!problem || problem.isOffered !== (tool !== undefined)) throw new Error(`${name} is not named`);
          if (!/^(inputSchema|execution)\S* [^\n]*\.$/.test(problem.problem)) throw new Error(problem.problem);
        } else if (problem) throw new Error(`${name} is named: ${problem.problem}`);
        if (each < 0 && !tool) throw new Error(`${name} is missing`);
        const refusal = tool && refusalOfParameters(createTool(name, tool, host).inputSchema);
        if (refusal !== undefined) throw new Error(refusal);
      }
    }),
    { numRuns: 1_000 },
  );
  t.ok(oddTools > 1_000, 'positive control: a third of the tools is odd');
  await client.close();
});

t.test(
  'a list ends with the tools read so far when its cursor is null, repeated or endless, or a page fails',
  async (t) => {
    const tool = (name: string) => ({ name, inputSchema: goodSchema });
    const cases: readonly [string, (cursor: unknown) => Page, number, RegExp | undefined][] = [
      ['null', () => ({ tools: [tool('a')], nextCursor: null }), 1, undefined],
      ['empty', () => ({ tools: [tool('a')], nextCursor: '' }), 1, undefined],
      ['a number', () => ({ tools: [tool('a')], nextCursor: 2 }), 1, undefined],
      ['repeated', (at) => ({ tools: [tool(`a${at}`)], nextCursor: 'again' }), 2, /repeats a cursor/],
      ['in a circle', (at) => ({ tools: [tool(`a${at}`)], nextCursor: at === 'x' ? 'y' : 'x' }), 3, /repeats a cursor/],
      ['endless', (at) => ({ tools: [tool(`a${at}`)], nextCursor: `${Number(at ?? 0) + 1}` }), 50, /does not end/],
      [
        'failing',
        (at) => (at ? { error: { code: -32_603, message: 'no page' } } : { tools: [tool('a')], nextCursor: 'b' }),
        1,
        /ended with an error: no page/,
      ],
      ['no list', () => ({ tools: 'none' }), 0, /must have a list tools/],
      ['odd entries', () => ({ tools: [null, 7, tool('a'), { name: '' }] }), 1, /entry 1 that is not an object/],
      ['two pages', (at) => ({ tools: [tool(`a${at}`)], ...(!at && { nextCursor: 'b' }) }), 2, undefined],
    ];
    for (const [name, pageOf, count, problem] of cases) {
      const { client, lists } = await connected((_method, cursor) => pageOf(cursor));
      t.equal((await client.listTools()).tools.length, count, name);
      t.match(lists.toolProblems[0]?.problem, problem, name);
      await client.close();
    }
    const slow = await connected((_method, at) => ({ tools: [tool(`a${at}`)], nextCursor: `${at}1` }), -1);
    t.equal((await slow.client.listTools()).tools.length, 1, 'no time is left for a second page');
    t.match(slow.lists.toolProblems, [{ problem: /takes too long/ }]);
  },
);

t.test('odd resources, templates and prompts do not hide the others', async (t) => {
  const good = { name: 'good', description: 'Good.' };
  const { client } = await connected(() => ({
    resources: [{ ...good, uri: 'file:///a' }, { name: 'bad' }, 'bad'],
    resourceTemplates: [{ ...good, uriTemplate: 'file:///{a}' }, { uriTemplate: 7 }],
    prompts: [{ ...good, arguments: [{ name: 'a' }, 'b'] }, { description: 'without a name' }, null],
    nextCursor: null,
  }));
  t.same((await client.listResources()).resources, [{ ...good, uri: 'file:///a' }]);
  t.same((await client.listResourceTemplates()).resourceTemplates, [{ ...good, uriTemplate: 'file:///{a}' }]);
  t.same((await client.listPrompts()).prompts, [{ ...good, arguments: [{ name: 'a', required: false }] }]);
  await client.close();
});

for (const era of ['2025', '2026']) {
  t.test(`a server of ${era} with odd tools is ready, its status and the log name them`, async (t) => {
    const mcp = room(t, { small: stdio([small, era, 'odd']) });
    mcp.servers.start();
    const { toolCount, toolProblems } = await inState(mcp, 'small', 'ready');
    t.equal(toolCount, 9);
    t.match(toolProblems, [
      { tool: 'bad', problem: 'inputSchema.type must be "object", but is "string".', isOffered: false },
      { tool: 'mended', problem: /^inputSchema\.properties\.\S+ .*\.$/, isOffered: true },
    ]);
    t.match(mcp.logged.join(''), /tool bad is left out: inputSchema\.type/);
    t.equal((await call(mcp, '__say', { text: 'hi' })).isError, false);
    t.match(await call(mcp, '__mended', { coin: 'x' }), { text: /no mended today/ }, 'the call reaches the server');
    for (const { inputSchema } of mcp.servers.tools()) t.equal(refusalOfParameters(inputSchema), undefined);
  });
}

t.test(
  'regression: H50 the hint that a tool only reads is honoured for trusted servers only, and the question shows the arguments',
  async (t) => {
    const mcp = room(t, { plain: stdio([small, '2025']), friend: stdio([small, '2025'], { trusted: true }) });
    mcp.servers.start();
    await Promise.all(['plain', 'friend'].map((name) => inState(mcp, name, 'ready')));
    const place = { workspacePath: mcp.workspace };
    t.equal(toolOf(mcp, 'friend__say').isReadOnly, true);
    t.equal(await toolOf(mcp, 'friend__say').approvalFor({ text: 'x' }, place), undefined);
    t.equal(toolOf(mcp, 'plain__say').isReadOnly, false);
    t.match(await toolOf(mcp, 'plain__say').approvalFor({ text: 'secret' }, place), {
      target: 'plain/say {"text":"secret"}',
    });
  },
);

t.test(
  'regression: H50 an earlier approval does not hold for a tool that the server describes differently',
  async (t) => {
    const tool = { name: 'say', description: 'Repeats.', inputSchema: { type: 'object' as const, properties: {} } };
    const keyOf = async (changes: object) =>
      (await createTool('say', { ...tool, ...changes }, host).approvalFor({}, { workspacePath: '/w' }))?.scopeKey;
    const before = await keyOf({});
    t.equal(await keyOf({}), before, 'the same tool keeps its key');
    const changes: readonly object[] = [
      { description: 'Sends.' },
      { inputSchema: { type: 'object', properties: { to: {} } } },
      { annotations: { readOnlyHint: true } },
    ];
    for (const change of changes) t.not(await keyOf(change), before);
  },
);

t.test('an answer that breaks the protocol fails with one sentence that names the field', async (t) => {
  const { client } = await connected(() => ({ resources: [], contents: [{ uri: 7 }] }));
  const failure = await client.readResource({ uri: 'file:///a' }).then(
    () => t.fail('the answer is not valid'),
    (error: unknown) => failureOf(error),
  );
  t.match(failure, { code: 'protocol', message: /^The server did not keep to the protocol: .*contents\.0.*\.$/ });
  t.notMatch(failure, { message: /[{}\n]/ });
  await client.close();
});

nothingLeft();
