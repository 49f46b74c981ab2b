import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';

export type Json = Record<string, unknown>;
interface Schema extends Json {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Record<string, Schema>;
  readonly required?: string[];
  readonly allOf?: Schema[];
  readonly anyOf?: Schema[];
  readonly oneOf?: Schema[];
  readonly enum?: unknown[];
  readonly format?: string;
  readonly nullable?: boolean;
}

/** GitHub's own description, trimmed to the operations that are used. */
const description = JSON.parse(readFileSync(join(import.meta.dirname, 'github-openapi.generated.json'), 'utf8')) as {
  paths: Record<string, Record<string, Json>>;
  components: Record<string, Record<string, Json>>;
};

/** Each schema is a function of its own, and none is improved: compiling all of them takes an eighth of the time. */
const ajv = new Ajv({ strict: false, allErrors: false, inlineRefs: false, code: { optimize: false } });
addFormats.default(ajv);
ajv.addSchema(withNull(description) as object, 'github');

/** OpenAPI 3.0 says `nullable` also beside `allOf`, where JSON Schema has no such word. */
function withNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNull);
  if (typeof value !== 'object' || value === null) return value;
  const { nullable, ...rest } = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withNull(each)]));
  if (nullable === true) return { anyOf: [rest, { type: 'null' }] };
  return nullable === undefined ? rest : { ...rest, nullable };
}

const validators = new Map<string, ValidateFunction | null>();
const pointer = (key: string): string => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));

function resolve(value: Json): Json {
  const ref = value['$ref'];
  if (typeof ref !== 'string') return value;
  return ref
    .slice(2)
    .split('/')
    .reduce<Json>((at, key) => at[key] as Json, description as unknown as Json);
}

function validator(path: string, method: string, status: number): ValidateFunction | null {
  const key = `${method} ${path} ${status}`;
  const known = validators.get(key);
  if (known !== undefined) return known;
  const operation = description.paths[path]?.[method.toLowerCase()];
  const response = (operation?.['responses'] as Record<string, Json> | undefined)?.[status];
  const content = response && (resolve(response)['content'] as Record<string, Json> | undefined);
  const isJson = content?.['application/json'] !== undefined;
  const ref = typeof response?.['$ref'] === 'string' ? String(response['$ref']).slice(1) : undefined;
  const base = ref ?? `/paths/${pointer(path)}/${method.toLowerCase()}/responses/${status}`;
  const made = isJson ? ajv.compile({ $ref: `github#${base}/content/${pointer('application/json')}/schema` }) : null;
  validators.set(key, made);
  return made;
}

/** @returns the deviations from GitHub's description; undefined when all is well, or nothing is described */
export function faultOf(path: string, method: string, status: number, body: unknown): string | undefined {
  const check = validator(path, method, status);
  if (!check || check(body)) return;
  const [first] = check.errors ?? [];
  return `${method} ${path} ${status}: ${first?.instancePath ?? ''} ${first?.message ?? ''} ${JSON.stringify(first?.params ?? {})}`;
}

const samples = new Map<string, unknown>();

/** Resource with all required fields: sample values, overridden by `own`. */
export function resource(schema: string, own: Json): Json {
  if (!samples.has(schema))
    samples.set(schema, sample({ ...resolve({ $ref: `#/components/schemas/${schema}` }), nullable: false }));
  return { ...(samples.get(schema) as Json), ...own };
}

function sample(given: Schema): unknown {
  const schema = given.$ref ? (resolve(given) as Schema) : given;
  if (schema.nullable) return null;
  if (schema.enum) return schema.enum[0];
  const choice = schema.allOf?.[0] ?? schema.anyOf?.[0] ?? schema.oneOf?.[0];
  if (choice) return sample(choice);
  if (schema.properties || schema.type === 'object') {
    const { properties = {}, required = [] } = schema;
    return Object.fromEntries(required.map((name) => [name, sample(properties[name] ?? {})]));
  }
  if (schema.type === 'array') return [];
  if (schema.type === 'integer' || schema.type === 'number') return 0;
  if (schema.type === 'boolean') return false;
  if (schema.format === 'date-time') return '2026-01-01T00:00:00Z';
  return schema.format === 'uri' ? 'https://github.test/' : '';
}
