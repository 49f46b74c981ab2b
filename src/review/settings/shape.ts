import { BackendSettings, secretSettings } from './schema.ts';

/** Shape of a schema, below `optional` and `pipe`. */
export type Shape =
  | { readonly kind: 'section'; readonly entries: Readonly<Record<string, unknown>> }
  | { readonly kind: 'list'; readonly item: unknown }
  | { readonly kind: 'boolean' | 'number' | 'other' };

interface Node {
  readonly type?: string;
  readonly entries?: Readonly<Record<string, unknown>>;
  readonly item?: unknown;
  readonly wrapped?: unknown;
}

/** @param schema a valibot schema */
export function shapeOf(schema: unknown): Shape {
  const node = schema as Node;
  if (node.wrapped !== undefined) return shapeOf(node.wrapped);
  if (node.entries !== undefined) return { kind: 'section', entries: node.entries };
  if (node.type === 'array') return { kind: 'list', item: node.item };
  return { kind: node.type === 'boolean' || node.type === 'number' ? node.type : 'other' };
}

/** Former names of sections. */
const aliases: ReadonlyMap<string, string> = new Map([['dotcraft', 'AgentServer']]);

/** The key of a section in the spelling of the schema, matched in any case; undefined when it is unknown. */
export function spelled(entries: Readonly<Record<string, unknown>>, given: string, isTop: boolean): string | undefined {
  const wanted = given.toLowerCase();
  const alias = isTop ? aliases.get(wanted) : undefined;
  return alias ?? Object.keys(entries).find((key) => key.toLowerCase() === wanted);
}

export const rootSchema: unknown = BackendSettings;

const secretPaths: ReadonlySet<string> = new Set(secretSettings);
/** True when the setting at this path must not be shown, logged or published. */
export const isSecret = (path: string): boolean => secretPaths.has(path);

/** Returns the secret whose file a key such as `WebhookSecretFile` names; undefined when there is no such secret. */
export function secretOfFileKey(section: string, key: string): string | undefined {
  const found = secretSettings.find((path) => `${path}File`.toLowerCase() === `${section}.${key}`.toLowerCase());
  return found;
}
