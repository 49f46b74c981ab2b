import { eitherOf, joined, pointedAt, type Schema } from './schema-parts.ts';

/**
 * Schemas of tools from outside: MCP servers and clients. Services check the schemas of all tools in a request, and one that
 * they refuse fails the whole request. A schema only advises the model, because the owner of a tool checks its arguments: each
 * part that a service may refuse is left out here, which is always sound.
 */

/** Schema that every service accepts, or the reason why the tool cannot be offered. Problems are parts of sentences. */
export type ReviewedSchema =
  | { readonly schema: Schema; readonly problems: readonly string[] }
  | { readonly schema: undefined; readonly problems: readonly [string] };

const limits = {
  /** Nested schemas; the content of a deeper one is left open. */
  depth: 12,
  /** Schemas of one tool, after references are inlined; further ones are left open. */
  nodes: 2_000,
  chars: 131_072,
  descriptionChars: 4_000,
  headerChars: 200,
  problems: 3,
} as const;

/** Names of properties that every service accepts. */
const propertyName = /^[a-zA-Z0-9_.-]{1,64}$/;
const typeNames: ReadonlySet<unknown> = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isFiniteNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isNonEmpty = (value: unknown): boolean => Array.isArray(value) && value.length > 0;
const isScalar = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'boolean' || isFiniteNumber(value);

/** Keywords with a plain value, and the values that pass. A fault is reported. */
const plainKeywords: Readonly<Record<string, (value: unknown) => boolean>> = {
  minimum: isFiniteNumber,
  maximum: isFiniteNumber,
  exclusiveMinimum: isFiniteNumber,
  exclusiveMaximum: isFiniteNumber,
  multipleOf: (value) => isFiniteNumber(value) && (value as number) > 0,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  uniqueItems: (value) => typeof value === 'boolean',
};

/** Reviews the input schema of a tool; null and undefined stand for a missing one. */
export function reviewToolSchema(given: unknown): ReviewedSchema {
  const review = new SchemaReview(given);
  try {
    const schema = review.top();
    if (JSON.stringify(schema).length > limits.chars) throw tooLong();
    return { schema, problems: review.problems };
  } catch (error) {
    if (error instanceof UnfitSchema) return { schema: undefined, problems: [error.message] };
    throw error;
  }
}

/** The tool cannot be offered. The message names the field. */
class UnfitSchema extends Error {}

const tooLong = (): UnfitSchema => new UnfitSchema(`inputSchema is longer than ${limits.chars} characters`);

const reviews = new WeakMap<object, ReviewedSchema>();

/** Reviews a schema once: clients register the schemas of their tools for many turns. */
export function reviewOf(inputSchema: object): ReviewedSchema {
  let review = reviews.get(inputSchema);
  if (!review) {
    review = reviewToolSchema(inputSchema);
    reviews.set(inputSchema, review);
  }
  return review;
}

/** A place in the schema, and the references that led to it. */
interface SchemaPosition {
  readonly path: string;
  readonly depth: number;
  readonly references: readonly string[];
}

const below = (place: SchemaPosition, key: string): SchemaPosition => ({
  ...place,
  path: `${place.path}.${key}`,
  depth: place.depth + 1,
});

class SchemaReview {
  readonly #root: unknown;
  readonly #problems: string[] = [];
  #nodes = 0;
  #chars = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Reviews the whole: an object with properties. @throws UnfitSchema */
  top(): Schema {
    const place = { path: 'inputSchema', depth: 0, references: ['#'] };
    if (this.#root === undefined || this.#root === null) {
      this.#report('inputSchema', 'is missing');
      return { type: 'object', properties: {} };
    }
    if (!isSchema(this.#root)) throw new UnfitSchema(`inputSchema must be an object, but is ${shown(this.#root)}`);
    const { anyOf, type, properties, required, additionalProperties, description, ...rest } = this.#schema(
      this.#root,
      place,
    );
    const types = Array.isArray(type) ? type : [type];
    if (type !== undefined && !types.includes('object')) {
      throw new UnfitSchema(`inputSchema.type must be "object", but is ${shown(type)}`);
    }
    const branches = Array.isArray(anyOf) ? anyOf.filter(isSchema) : [];
    const objects = branches.filter(
      (branch) => branch['type'] === undefined || [branch['type']].flat().includes('object'),
    );
    if (type === undefined && branches.length > 0 && objects.length === 0) {
      throw new UnfitSchema('inputSchema.anyOf must have a branch of type "object"');
    }
    const whole =
      objects.length === 0 ? { properties, required } : joined([{ properties, required }, eitherOf(objects)]);
    return {
      type: 'object',
      ...(description !== undefined && { description }),
      properties: whole['properties'] ?? {},
      ...(isNonEmpty(whole['required']) && { required: whole['required'] }),
      ...(typeof additionalProperties === 'boolean' && objects.length === 0 && { additionalProperties }),
      ...('x-mcp-header' in rest && { 'x-mcp-header': rest['x-mcp-header'] }),
    };
  }

  /** Counts characters and list entries before they are read, however often a reference leads to them. @throws UnfitSchema */
  #count(chars: number): void {
    this.#chars += chars;
    if (this.#chars > limits.chars) throw tooLong();
  }

  #report(path: string, problem: string): void {
    if (this.#problems.length < limits.problems) this.#problems.push(`${path} ${problem}`);
  }

  /** Any schema; `{}` for one that cannot be read. */
  #schema(given: unknown, place: SchemaPosition): Schema {
    if (given === true) return {};
    if (!isSchema(given)) {
      this.#report(place.path, `must be a schema, but is ${shown(given)}`);
      return {};
    }
    this.#nodes += 1;
    if (place.depth > limits.depth || this.#nodes > limits.nodes) return {};
    const { allOf, $ref } = given;
    const own = this.#own(given, place);
    const parts = [own];
    if ($ref !== undefined) parts.push(this.#referenced($ref, place));
    if (Array.isArray(allOf)) parts.push(...this.#list(allOf, 'allOf', place));
    else if (allOf !== undefined) this.#report(`${place.path}.allOf`, `must be a list, but is ${shown(allOf)}`);
    return withKnownRequired(parts.length === 1 ? own : joined(parts));
  }

  /** Reads one schema more than may be read, which is open. */
  #list(given: readonly unknown[], key: string, place: SchemaPosition): Schema[] {
    return given.slice(0, limits.nodes + 1).map((each, index) => this.#schema(each, below(place, `${key}.${index}`)));
  }

  #referenced($ref: unknown, place: SchemaPosition): Schema {
    const target = typeof $ref === 'string' ? pointedAt(this.#root, $ref) : undefined;
    if (typeof $ref !== 'string' || target === undefined) {
      this.#report(`${place.path}.$ref`, `must lead to a part of the schema, but is ${shown($ref)}`);
      return {};
    }
    // A recursive schema is described once: services refuse recursion, and an open object accepts each further level.
    if (place.references.includes($ref))
      return isSchema(target) && target['type'] === 'object' ? { type: 'object' } : {};
    return this.#schema(target, { ...place, depth: place.depth + 1, references: [...place.references, $ref] });
  }

  /** Keywords beside `$ref` and `allOf`. */
  #own(given: Schema, place: SchemaPosition): Schema {
    const notes: string[] = [];
    const type = this.#type(given, place);
    const values = this.#values(given, place, notes);
    const properties = this.#properties(given['properties'], place);
    const plain = Object.entries(plainKeywords).flatMap(([key, passes]) => {
      const value = given[key];
      if (value === undefined || value === null) return [];
      if (passes(value)) return [[key, value] as const];
      // Draft 4 has booleans here.
      if (typeof value !== 'boolean') this.#report(`${place.path}.${key}`, `has the value ${shown(value)}`);
      return [];
    });
    for (const key of ['pattern', 'format'] as const) {
      const text = given[key];
      if (typeof text === 'string' && text.length <= 200)
        notes.push(`${key === 'pattern' ? 'Pattern' : 'Format'}: ${text}`);
    }
    const isArray = [type].flat().includes('array');
    const description = described(given['description'], notes);
    const { default: value, 'x-mcp-header': header } = given;
    this.#count((description?.length ?? 0) + (typeof value === 'string' ? value.length : 0));
    return {
      ...(type !== undefined && { type }),
      ...(description !== undefined && { description }),
      ...(values !== undefined && { enum: values }),
      ...(isScalar(value) && { default: value }),
      ...Object.fromEntries(plain),
      ...(properties && { properties }),
      ...this.#required(given['required'], place),
      ...(isArray && { items: this.#items(given, place) }),
      ...this.#alternatives(given, place),
      ...this.#additional(given['additionalProperties'], place),
      // The library reads this one (SEP-2243).
      ...(typeof header === 'string' && header.length <= limits.headerChars && { 'x-mcp-header': header }),
    };
  }

  #type({ type, nullable, properties, items }: Schema, place: SchemaPosition): string | string[] | undefined {
    const given = Array.isArray(type) ? type : [type];
    this.#count(given.length);
    const known = [...new Set(given.filter((each): each is string => typeNames.has(each)))];
    if (type !== undefined && known.length < new Set(given).size) {
      this.#report(`${place.path}.type`, `must be a type of JSON Schema, but is ${shown(type)}`);
    }
    if (nullable === true && known.length > 0 && !known.includes('null')) known.push('null');
    if (known.length > 1) return known;
    return known[0] ?? (isSchema(properties) ? 'object' : isSchema(items) ? 'array' : undefined);
  }

  /** Values as `enum`, where all are texts; other values are noted for the model only. */
  #values(given: Schema, place: SchemaPosition, notes: string[]): readonly string[] | undefined {
    const list = given['const'] === undefined ? given['enum'] : [given['const']];
    if (list === undefined || list === null) return undefined;
    if (!Array.isArray(list) || list.length === 0) {
      this.#report(`${place.path}.enum`, `must be a list of values, but is ${shown(list)}`);
      return undefined;
    }
    this.#count(list.reduce((chars, each) => chars + 1 + (typeof each === 'string' ? each.length : 0), 0));
    const types = [given['type'] ?? 'string'].flat();
    const texts = new Set(list.filter((each): each is string => typeof each === 'string' && each !== ''));
    if (texts.size === list.length && types.length === 1 && types[0] === 'string') return [...texts].map(wellFormed);
    notes.push(
      `One of ${list
        .slice(0, 100)
        .map((each) => (isSchema(each) || Array.isArray(each) ? '…' : JSON.stringify(each)))
        .join(', ')}`,
    );
    return undefined;
  }

  #properties(given: unknown, place: SchemaPosition): Schema | undefined {
    if (given === undefined || given === null) return undefined;
    const path = `${place.path}.properties`;
    if (!isSchema(given)) {
      this.#report(path, `must be an object, but is ${shown(given)}`);
      return undefined;
    }
    const entries = Object.entries(given).flatMap(([name, schema]) => {
      this.#count(name.length + 1);
      if (schema === false) return [];
      if (!propertyName.test(name)) {
        this.#report(path, `has the name ${shown(name)}, which services refuse`);
        return [];
      }
      const inner = { ...place, path: `${path}.${name}`, depth: place.depth + 1 };
      if (schema !== true && !isSchema(schema)) {
        this.#report(inner.path, `must be a schema, but is ${shown(schema)}`);
        return [];
      }
      return [[name, this.#schema(schema, inner)] as const];
    });
    return Object.fromEntries(entries);
  }

  /** @throws UnfitSchema when an argument of the tool is required under a name that services refuse */
  #required(given: unknown, place: SchemaPosition): { readonly required?: readonly string[] } {
    // Draft 3 marks a property itself.
    if (given === undefined || given === null || typeof given === 'boolean') return {};
    const path = `${place.path}.required`;
    if (Array.isArray(given)) this.#count(given.length);
    if (!Array.isArray(given) || given.some((name) => typeof name !== 'string')) {
      this.#report(path, `must be a list of names, but is ${shown(given)}`);
    }
    const names: readonly string[] = [given].flat().filter((name): name is string => typeof name === 'string');
    const refused = names.find((name) => !propertyName.test(name));
    if (refused !== undefined && place.depth === 0) {
      throw new UnfitSchema(`${path} has the name ${shown(refused)}, which services refuse`);
    }
    return names.length === 0 || !Array.isArray(given) ? {} : { required: names };
  }

  #items({ items }: Schema, place: SchemaPosition): Schema {
    if (items === undefined || items === null || items === false) return {};
    if (!Array.isArray(items)) return this.#schema(items, below(place, 'items'));
    // A tuple of draft 4: one schema for each place.
    const each = this.#list(items, 'items', place);
    return each.length === 0 ? {} : { anyOf: each };
  }

  #alternatives(given: Schema, place: SchemaPosition): { readonly anyOf?: readonly Schema[] } {
    const lists = (['anyOf', 'oneOf'] as const).flatMap((key) => {
      const list = given[key];
      if (list === undefined || list === null) return [];
      if (Array.isArray(list) && list.length > 0) {
        return [this.#list(list, key, place)];
      }
      this.#report(`${place.path}.${key}`, `must be a list of schemas, but is ${shown(list)}`);
      return [];
    });
    const [first] = lists;
    return first === undefined ? {} : { anyOf: first };
  }

  #additional(given: unknown, place: SchemaPosition): { readonly additionalProperties?: unknown } {
    if (typeof given === 'boolean') return { additionalProperties: given };
    if (given === undefined || given === null) return {};
    return { additionalProperties: this.#schema(given, below(place, 'additionalProperties')) };
  }
}

/** Services refuse a required property that the schema does not have. */
function withKnownRequired({ required, ...schema }: Schema): Schema {
  if (!Array.isArray(required)) return schema;
  const properties = schema['properties'] ?? {};
  const known = [...new Set(required)].filter((name) => Object.hasOwn(properties, name));
  return known.length === 0 ? schema : { ...schema, required: known };
}

const wellFormed = (text: string): string => text.toWellFormed();

function described(given: unknown, notes: readonly string[]): string | undefined {
  const text = typeof given === 'string' ? given.slice(0, limits.descriptionChars) : '';
  const all = [text, ...notes.map((note) => `${note}.`)].filter((each) => each !== '').join(' ');
  return all === '' ? undefined : wellFormed(all);
}

/** A value in a message: short scalars as JSON, others by their kind. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, 60) : value) ?? 'undefined';
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}

/**
 * Name of a call in the form that every service accepts in a request. A model may have written any text, which the store keeps: services
 * refuse a conversation that contains it.
 */
export function wireToolName(name: string): string {
  const safe = name.replace(/[^\w-]+/g, '_').slice(0, 64);
  return safe === '' ? 'unknown' : safe;
}
