/** Messages of the Agent Client Protocol against its official JSON schema, which the SDK ships. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

interface Definition {
  readonly 'x-side'?: string;
  readonly 'x-method'?: string;
}

interface Schema {
  readonly $id?: string;
  readonly $defs: Readonly<Record<string, Definition>>;
}

interface Message {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code?: unknown; readonly message?: unknown };
}

type Kind = 'Request' | 'Notification' | 'Response';
/** Side that receives requests. */
export type Side = 'agent' | 'client';

const read = (name: string): Schema =>
  JSON.parse(readFileSync(fileURLToPath(import.meta.resolve(`@agentclientprotocol/sdk/schema/v1/${name}`)), 'utf8'));

/** The stable schema; methods that it lacks are in the unstable one. */
const schemas = ['schema.json', 'schema.unstable.json'].map((name) => ({ ...read(name), $id: `acp:${name}` }));
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
for (const schema of schemas) ajv.addSchema(schema);

/** Methods of the stable schema that a side serves. */
export const methodsOf = (side: Side): string[] => [
  ...new Set(
    Object.values(schemas[0]?.$defs ?? {}).flatMap((each) =>
      each['x-side'] === side && each['x-method'] !== undefined ? [each['x-method']] : [],
    ),
  ),
];

const compiled = new Map<string, ValidateFunction | undefined>();

function validatorOf(side: Side, method: string, kind: Kind): ValidateFunction | undefined {
  const key = `${side} ${method} ${kind}`;
  if (!compiled.has(key)) compiled.set(key, compile(side, method, kind));
  return compiled.get(key);
}

function compile(side: Side, method: string, kind: Kind): ValidateFunction | undefined {
  for (const { $id, $defs } of schemas) {
    const found = Object.entries($defs).find(
      ([name, each]) =>
        each['x-method'] === method &&
        (each['x-side'] === side || each['x-side'] === 'protocol') &&
        name.endsWith(kind),
    );
    if (found) return ajv.compile({ $ref: `${$id}#/$defs/${found[0]}` });
  }
  return undefined;
}

/** Both directions of one connection. Requests are remembered, so that their responses can be checked. */
export class SchemaCheck {
  /** Problems of the messages to each side. */
  readonly problems: Readonly<Record<Side, string[]>> = { agent: [], client: [] };
  /** Methods of valid messages, with their kind: `agent session/new Response` is the answer of the agent. */
  readonly seen = new Set<string>();
  readonly #asked: Readonly<Record<Side, Map<unknown, string>>> = { agent: new Map(), client: new Map() };
  readonly #rest: Record<Side, string> = { agent: '', client: '' };

  /** Takes a piece of the stream to a side. */
  write(to: Side, text: string): void {
    const lines = (this.#rest[to] + text).split('\n');
    this.#rest[to] = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') this.#line(to, line);
  }

  #line(to: Side, line: string): void {
    const message = parsed(line);
    if (message === undefined) {
      this.problems[to].push(`not a message: ${line.slice(0, 200)}`);
      return;
    }
    const { id, method, params, result, error } = message;
    if (method !== undefined) {
      const kind = id === undefined ? 'Notification' : 'Request';
      if (id !== undefined) this.#asked[to].set(id, method);
      this.#check(to, { side: to, method, kind }, params ?? {});
      return;
    }
    const asker = to === 'agent' ? 'client' : 'agent';
    const asked = this.#asked[asker].get(id);
    this.#asked[asker].delete(id);
    if (error !== undefined) {
      const isError = Number.isInteger(error.code) && typeof error.message === 'string';
      if (!isError) this.problems[to].push(`not an error: ${line.slice(0, 200)}`);
    } else if (asked !== undefined) this.#check(to, { side: asker, method: asked, kind: 'Response' }, result);
  }

  #check(to: Side, { side, method, kind }: { side: Side; method: string; kind: Kind }, value: unknown): void {
    const name = `${side} ${method} ${kind}`;
    const validate = validatorOf(side, method, kind);
    if (!validate) this.problems[to].push(`${name}: there is no such method`);
    else if (validate(value)) this.seen.add(name);
    else this.problems[to].push(`${name}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value).slice(0, 500)}`);
  }
}

function parsed(line: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
