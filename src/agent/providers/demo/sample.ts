type Schema = Readonly<Record<string, unknown>>;

/** Schemas may refer to themselves. */
const deepest = 12;
const longestList = 20;
/** Most values of a sample: a schema that branches and refers to itself would never end. */
const largest = 1_000;

const formats: Readonly<Record<string, string>> = {
  'date-time': '1970-01-01T00:00:00Z',
  date: '1970-01-01',
  time: '00:00:00Z',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  email: 'nobody@example.com',
  uuid: '00000000-0000-4000-8000-000000000000',
  ipv4: '127.0.0.1',
};

/**
 * A value that a JSON Schema allows, the simplest there is: required properties only, empty lists, zeros, `words` where a
 * text may be anything. Patterns are not understood.
 */
export function sample(schema: unknown, words: string): unknown {
  return instanceOf(schema, { words, root: schema, depth: 0, budget: { left: largest } });
}

interface SchemaPosition {
  readonly words: string;
  readonly root: unknown;
  readonly depth: number;
  readonly budget: { left: number };
}

function instanceOf(schema: unknown, place: SchemaPosition): unknown {
  place.budget.left -= 1;
  if (!isSchema(schema) || place.depth > deepest || place.budget.left < 0) return null;
  const inner = { ...place, depth: place.depth + 1 };
  if (typeof schema['$ref'] === 'string') return instanceOf(resolved(schema['$ref'], place.root), inner);
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  if ('default' in schema) return schema['default'];
  const options = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(options)) return instanceOf(options.find((option) => !isNull(option)) ?? null, inner);
  if (Array.isArray(schema['allOf']))
    return instanceOf(Object.assign({}, schema, ...schema['allOf'], { allOf: undefined }), inner);
  return plainValue(schema, inner);
}

function plainValue(schema: Schema, place: SchemaPosition): unknown {
  switch (typeOf(schema)) {
    case 'object':
      return objectOf(schema, place);
    case 'array':
      return listOf(schema, place);
    case 'string':
      return textOf(schema, place.words);
    case 'number':
    case 'integer':
      return numberOf(schema);
    case 'boolean':
      return false;
    default:
      return null;
  }
}

function typeOf({ type, properties, items }: Schema): unknown {
  if (Array.isArray(type)) return type.find((one) => one !== 'null');
  return type ?? (properties ? 'object' : items ? 'array' : 'string');
}

function objectOf({ properties, required }: Schema, place: SchemaPosition): unknown {
  if (!isSchema(properties)) return {};
  const names = Array.isArray(required)
    ? required.filter((name) => Object.hasOwn(properties, name))
    : Object.keys(properties);
  return Object.fromEntries(names.map((name) => [name, instanceOf(properties[name], place)]));
}

function listOf({ items, minItems }: Schema, place: SchemaPosition): unknown {
  const length = typeof minItems === 'number' ? Math.min(minItems, longestList) : 0;
  return Array.from({ length }, () => instanceOf(items, place));
}

function textOf({ format, minLength, maxLength }: Schema, words: string): string {
  const text = (typeof format === 'string' && formats[format]) || words;
  const padded = typeof minLength === 'number' ? text.padEnd(Math.min(minLength, 10_000), '.') : text;
  return typeof maxLength === 'number' ? padded.slice(0, Math.max(0, maxLength)) : padded;
}

function numberOf({ minimum, exclusiveMinimum, maximum }: Schema): number {
  const least = typeof minimum === 'number' ? minimum : typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : 0;
  return typeof maximum === 'number' ? Math.min(Math.max(0, least), maximum) : Math.max(0, least);
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNull = (option: unknown): boolean => isSchema(option) && option['type'] === 'null';

/** `#/$defs/Name` and the like; other documents are not read. */
function resolved(reference: string, root: unknown): unknown {
  const path = reference.replace(/^#\/?/, '').split('/').filter(Boolean);
  return path.reduce<unknown>((at, name) => {
    const key = decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
    return isSchema(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }, root);
}
