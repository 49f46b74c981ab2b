import { toJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import type { ApprovalNeed, Tool, ToolContext, ToolResult } from '../tool.ts';

type Parameters = v.ObjectSchema<v.ObjectEntries, undefined>;

/** A built-in tool as its author writes it. */
export interface ToolDefinition<P extends Parameters> {
  readonly name: string;
  readonly description: string;
  readonly isReadOnly: boolean;
  readonly isExtra?: boolean;
  /** See `Tool.replacesFile`. */
  readonly replacesFile?: boolean;
  /** Messages complete the sentence "<parameter> must be …"; the model reads the descriptions. */
  readonly parameters: P;
  /** Other names of a parameter that models write, by its own name. Spellings (`old_text`, `OldText`) need not be listed. */
  readonly aliases?: Readonly<Partial<Record<keyof P['entries'] & string, readonly string[]>>>;
  /** See `Tool.approvalFor`; absent: nothing needs approval. */
  readonly approvalFor?: (
    args: v.InferOutput<P>,
    context: Pick<ToolContext, 'workspacePath'>,
  ) => Promise<ApprovalNeed | undefined>;
  /** See `Tool.placeOf`. */
  readonly placeOf?: (args: v.InferOutput<P>) => string;
  readonly run: (args: v.InferOutput<P>, context: ToolContext) => Promise<ToolResult>;
}

type Parsed<T> = { readonly ok: true; readonly args: T } | { readonly ok: false; readonly error: string };

/**
 * Makes a tool of a definition. Corrects mistakes of models in arguments whose meaning is clear:
 * other names of parameters, numbers and booleans as text, null for an absent one, parameters that do not exist.
 */
export function defineTool<P extends Parameters>(definition: ToolDefinition<P>): Tool {
  const { name, description, isReadOnly, isExtra, replacesFile, parameters, placeOf, run, approvalFor } = definition;
  const aliases = definition.aliases ?? {};
  // Objects in a list have the names of the parameters that stand alone.
  const names = new Map(objectsIn(parameters.entries).map((entries) => [entries, canonicalNames(entries, aliases)]));
  let inputSchema: Readonly<Record<string, unknown>> | undefined;
  return {
    name,
    source: 'builtin',
    description,
    isReadOnly,
    isExtra,
    replacesFile,
    // Made when a model first has to see it: the start of a server does not wait for it.
    get inputSchema() {
      inputSchema ??= schemaForModels(parameters);
      return inputSchema;
    },
    parse: (args) => parseArguments(name, parameters, names, args),
    // The contract of `Tool`: all get the result of `parse`.
    placeOf: placeOf && ((args) => placeOf(args as v.InferOutput<P>)),
    approvalFor: async (args, context) => approvalFor?.(args as v.InferOutput<P>, context),
    run: (args, context) => run(args as v.InferOutput<P>, context),
  };
}

/** Limits and defaults that `parse` applies. Descriptions name them where a model must know them. */
const unneeded: ReadonlySet<string> = new Set([
  ...['$schema', 'default', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'],
]);

/** Short: every request carries the schemas of all tools. */
function schemaForModels(parameters: Parameters): Readonly<Record<string, unknown>> {
  return shortened(toJsonSchema(parameters, { typeMode: 'input', errorMode: 'ignore' }) as SchemaNode);
}

type SchemaNode = Readonly<Record<string, unknown>>;

function shortened(node: SchemaNode): SchemaNode {
  const isNode = (value: unknown): value is SchemaNode =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const kept = Object.entries(node).filter(([key]) => !unneeded.has(key));
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (!isNode(value)) return [key, value];
      // Keys of `properties` are names of parameters, not words of the schema.
      if (key === 'properties')
        return [
          key,
          Object.fromEntries(
            Object.entries(value).map(([name, each]) => [name, isNode(each) ? shortened(each) : each]),
          ),
        ];
      return [key, shortened(value)];
    }),
  );
}

/** The entries of an object, and of the objects in its lists. */
const objectsIn = (entries: v.ObjectEntries): v.ObjectEntries[] => [
  entries,
  ...Object.values(entries).flatMap((entry) => {
    const inner = itemEntriesOf(entry);
    return inner ? objectsIn(inner) : [];
  }),
];

/** `old_string`, `oldString` and `OldString` are one name. */
const spelling = (name: string): string => name.replace(/[_-]/g, '').toLowerCase();

/** Every accepted spelling and how much it is worth: of two that mean the same parameter, the lower rank wins. */
type CanonicalNames = ReadonlyMap<string, { readonly name: string; readonly rank: number }>;
/** The names of each object in the arguments. */
type NamesByObject = ReadonlyMap<v.ObjectEntries, CanonicalNames>;

function canonicalNames(
  entries: v.ObjectEntries,
  aliases: Readonly<Record<string, readonly string[] | undefined>>,
): CanonicalNames {
  const names = new Map<string, { name: string; rank: number }>();
  for (const name of Object.keys(entries)) names.set(spelling(name), { name, rank: 1 });
  for (const [name, others] of Object.entries(aliases)) {
    if (!Object.hasOwn(entries, name)) continue;
    for (const [at, other] of (others ?? []).entries()) {
      if (!names.has(spelling(other))) names.set(spelling(other), { name, rank: at + 2 });
    }
  }
  return names;
}

function parseArguments<P extends Parameters>(
  tool: string,
  parameters: P,
  names: NamesByObject,
  args: unknown,
): Parsed<v.InferOutput<P>> {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return { ok: false, error: `${tool}: the arguments must be a JSON object.` };
  }
  const result = v.safeParse(parameters, tidy(parameters.entries, names, args), { abortEarly: true });
  if (result.success) return { ok: true, args: result.output };
  return { ok: false, error: `${tool}: ${sentence(parameters, result.issues[0])}.` };
}

/** The arguments under their own names, of the types that were meant. */
function tidy(entries: v.ObjectEntries, names: NamesByObject, args: object): Record<string, unknown> {
  const found = new Map<string, { value: unknown; rank: number }>();
  for (const [key, value] of Object.entries(args)) {
    const meant = names.get(entries)?.get(spelling(key));
    if (!meant || value === null || value === undefined) continue;
    const rank = key === meant.name ? 0 : meant.rank;
    const other = found.get(meant.name);
    if (!other || rank < other.rank) found.set(meant.name, { value, rank });
  }
  return Object.fromEntries(
    [...found].map(([name, { value }]) => {
      const inner = itemEntriesOf(entries[name]);
      return [name, inner ? tidyList(inner, names, value) : withType(typeOf(entries[name]), value)];
    }),
  );
}

/** A list of objects, which some models write as JSON in a text. */
function tidyList(entries: v.ObjectEntries, names: NamesByObject, value: unknown): unknown {
  const list = typeof value === 'string' ? parsedJson(value) : value;
  if (!Array.isArray(list)) return list;
  return list.map((item) => (typeof item === 'object' && item !== null ? tidy(entries, names, item) : item));
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Entries of the objects in a list; undefined for any other schema. */
function itemEntriesOf(schema: unknown): v.ObjectEntries | undefined {
  const { wrapped, item, pipe } = (schema ?? {}) as {
    readonly wrapped?: unknown;
    readonly item?: { readonly type?: string; readonly entries?: v.ObjectEntries };
    readonly pipe?: readonly unknown[];
  };
  if (item?.type === 'object') return item.entries;
  if (wrapped !== undefined) return itemEntriesOf(wrapped);
  return pipe?.[0] === schema || pipe === undefined ? undefined : itemEntriesOf(pipe[0]);
}

/** Type of a schema without its wrappers: `number`, `string` …. */
function typeOf(schema: unknown): string | undefined {
  const { type, wrapped } = (schema ?? {}) as { readonly type?: string; readonly wrapped?: unknown };
  return wrapped === undefined ? type : typeOf(wrapped);
}

function withType(type: string | undefined, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const text = value.trim();
  if (type === 'number' && /^[+-]?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (type === 'boolean' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  return value;
}

/** Describes a fault by parameter and expected value; never with the given value. */
function sentence(parameters: Parameters, issue: v.BaseIssue<unknown>): string {
  const where = v.getDotPath(issue) ?? 'the arguments';
  const entry = parameters.entries[where];
  const isMissing = entry !== undefined && issue.path?.at(-1)?.value === undefined;
  if (!isMissing) return `${where} must be ${expected(issue)}`;
  const [asked] = v.safeParse(entry, undefined).issues ?? [];
  return `${where} is missing, it must be ${expected(asked ?? issue)}`;
}

const typeWords: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  Array: 'a list',
  Object: 'an object',
};

/** The author's own words, else the type that valibot expected. */
function expected({ message, expected }: v.BaseIssue<unknown>): string {
  if (!message.startsWith('Invalid ')) return message;
  return typeWords[expected ?? ''] ?? expected ?? 'valid';
}
