/** Rules of model services for the parameters of a tool, each as strict as the strictest service that has it. */
type Json = Readonly<Record<string, unknown>>;

const types = new Set<unknown>(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
const refusedAnywhere = [
  '$ref',
  '$dynamicRef',
  'allOf',
  'not',
  'if',
  'then',
  'else',
  'patternProperties',
  'prefixItems',
];
const refusedAtTop = ['anyOf', 'oneOf', 'allOf', 'enum', 'not', 'const'];
const deepest = 40;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Why a service refuses these parameters; undefined: it accepts them. */
export function refusalOfParameters(parameters: unknown): string | undefined {
  if (!isObject(parameters)) return `parameters: ${JSON.stringify(parameters)} is not of type 'object'`;
  if (parameters['type'] !== 'object')
    return `schema must be of type "object", got ${JSON.stringify(parameters['type'])}`;
  if (!isObject(parameters['properties'])) return 'object schema missing properties';
  const atTop = refusedAtTop.find((keyword) => keyword in parameters);
  if (atTop !== undefined) return `schema must not have '${atTop}' at the top level`;
  return refusalOf(parameters, 'parameters', 0);
}

function refusalOf(schema: unknown, path: string, depth: number): string | undefined {
  if (schema === true || schema === false) return undefined;
  if (!isObject(schema)) return `${path}: ${JSON.stringify(schema)} is not a schema`;
  if (depth > deepest) return `${path}: nested too deeply`;
  const refused = refusedAnywhere.find((keyword) => keyword in schema);
  if (refused !== undefined) return `${path}: Unknown name "${refused}"`;
  return refusalOfParts(schema, path) ?? refusalWithin(schema, path, depth);
}

function refusalOfParts(schema: Json, path: string): string | undefined {
  const { type, required, properties, enum: values } = schema;
  const given = Array.isArray(type) ? type : [type];
  if (type !== undefined && (given.length === 0 || given.some((each) => !types.has(each)))) {
    return `${path}.type: ${JSON.stringify(type)} is not valid under any of the given schemas`;
  }
  if (given.includes('array') && schema['items'] === undefined) return `${path}: array schema missing items`;
  if (properties !== undefined && !isObject(properties)) return `${path}.properties is not of type 'object'`;
  const names = Object.keys(properties ?? {});
  const name = names.find((each) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(each));
  if (name !== undefined) return `${path}.properties: Property keys should match pattern, got ${JSON.stringify(name)}`;
  if (required !== undefined) {
    if (!Array.isArray(required)) return `${path}.required is not of type 'array'`;
    const missing = required.find((each) => !names.includes(each as string));
    if (missing !== undefined) return `${path}.required: property ${JSON.stringify(missing)} is not defined`;
    if (new Set(required).size < required.length) return `${path}.required has non-unique elements`;
  }
  if (
    values !== undefined &&
    !(Array.isArray(values) && values.length > 0 && values.every((each) => typeof each === 'string' && each !== ''))
  ) {
    return `${path}.enum: only allowed for STRING type, and not empty`;
  }
  const number = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'multipleOf'].find(
    (key) => schema[key] !== undefined && typeof schema[key] !== 'number',
  );
  return number === undefined ? undefined : `${path}.${number} is not of type 'number'`;
}

function refusalWithin(schema: Json, path: string, depth: number): string | undefined {
  const { properties = {}, anyOf, oneOf, items, additionalProperties } = schema;
  const inner: [string, unknown][] = Object.entries(properties as Json).map(([key, each]) => [
    `properties.${key}`,
    each,
  ]);
  for (const [key, list] of Object.entries({ anyOf, oneOf })) {
    if (list === undefined) continue;
    if (!Array.isArray(list) || list.length === 0) return `${path}.${key} should be non-empty`;
    inner.push(...list.map((each, index): [string, unknown] => [`${key}.${index}`, each]));
  }
  if (items !== undefined) inner.push(['items', items]);
  if (additionalProperties !== undefined) inner.push(['additionalProperties', additionalProperties]);
  for (const [key, each] of inner) {
    const refusal = refusalOf(each, `${path}.${key}`, depth + 1);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}
