/** `oratorio app-server --print-schema`: an OpenRPC document of everything that the server speaks. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import * as v from 'valibot';
import { protocolDocument } from '../../src/appserver/index.ts';
import { rpcErrors, rpcMethods, rpcNotifications, serverRequests, version } from '../../src/protocol/index.ts';
import { program } from '../programs.ts';

const entry = program('src/cli/main.ts');

const JsonSchema = v.record(v.string(), v.unknown());
const Descriptor = v.strictObject({ name: v.string(), required: v.optional(v.boolean()), schema: JsonSchema });
const Message = v.object({ name: v.string(), params: v.array(Descriptor) });

/** The parts of https://spec.open-rpc.org that the document uses. */
const OpenRpc = v.object({
  openrpc: v.pipe(v.string(), v.regex(/^1\.\d+\.\d+$/)),
  info: v.object({ title: v.string(), version: v.string(), description: v.string() }),
  methods: v.array(
    v.object({
      name: v.string(),
      summary: v.string(),
      paramStructure: v.literal('by-name'),
      params: v.array(Descriptor),
      result: Descriptor,
    }),
  ),
  components: v.object({ schemas: v.record(v.string(), JsonSchema) }),
  'x-notifications': v.array(Message),
  'x-server-requests': v.array(v.object({ ...Message.entries, result: Descriptor })),
  'x-client-notifications': v.array(Message),
  'x-errors': v.array(v.object({ name: v.string(), code: v.number(), message: v.string(), when: v.string() })),
});

const names = (messages: readonly { readonly name: string }[]) => messages.map(({ name }) => name);

/** Every object inside of a JSON value. */
function* objectsIn(value: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (typeof value !== 'object' || value === null) return;
  yield value as Readonly<Record<string, unknown>>;
  for (const inner of Object.values(value)) yield* objectsIn(inner);
}

t.test('--print-schema prints the document and nothing else', async (t) => {
  const args = ['--disable-warning=ExperimentalWarning', entry, 'app-server', '--print-schema'];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { maxBuffer: 16_000_000 });
  t.equal(stderr, '');
  t.same(JSON.parse(stdout), JSON.parse(JSON.stringify(protocolDocument())));
});

t.test('the OpenRPC document has every method, notification, request and error', (t) => {
  const document = v.parse(OpenRpc, protocolDocument());
  t.equal(document.info.version, version);
  t.same(names(document.methods), Object.keys(rpcMethods));
  t.same(names(document['x-notifications']), Object.keys(rpcNotifications));
  t.same(names(document['x-server-requests']), Object.keys(serverRequests));
  t.same(names(document['x-client-notifications']), ['initialized']);
  t.same(names(document['x-errors']), Object.keys(rpcErrors));
  for (const { name, params } of document.methods) {
    t.equal(new Set(names(params)).size, params.length, name);
    const wanted = Object.keys(rpcMethods[name as keyof typeof rpcMethods].params.entries);
    t.same(names(params), wanted, name);
    const optional = params.findIndex(({ required }) => required !== true);
    if (name !== 'turn/start') continue;
    t.equal(optional, 2, 'threadId and input of turn/start are required, approvalPolicy is not');
  }
  t.end();
});

t.test('every reference resolves to a schema, and every schema is used', (t) => {
  const document = v.parse(OpenRpc, protocolDocument());
  const references = [...objectsIn(document)].flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []));
  const known = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  t.same([...new Set(references)].sort(), known.sort());
  t.end();
});
