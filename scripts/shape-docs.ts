/** JSON Schemas in a form for people: the source of the generated documents. */

/** The part of JSON Schema that valibot's shapes become. */
export interface Shape {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Shape[];
  readonly oneOf?: readonly Shape[];
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Shape | boolean;
  readonly description?: string;
  readonly format?: string;
  readonly default?: unknown;
}

export const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1);
export const anchor = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9_ -]/g, '')
    .replaceAll(' ', '-');
export const link = (name: string): string => `[${name}](#${anchor(name)})`;
export const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** A shape in a few words: `integer or null`, `"stop" \| "detach"`, `array of …`. */
export function typeOf(shape: Shape): string {
  if (shape.$ref) return link(nameOf(shape.$ref));
  if (shape.const !== undefined) return `\`${JSON.stringify(shape.const)}\``;
  if (shape.enum) return shape.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ');
  const variants = shape.anyOf ?? shape.oneOf;
  if (variants) return variants.map(typeOf).join(' or ');
  if (shape.type === 'array') return `array of ${typeOf(shape.items ?? {})}`;
  if (shape.type === 'object' && typeof shape.additionalProperties === 'object') {
    return `object of ${typeOf(shape.additionalProperties)}`;
  }
  if (shape.format === 'date-time') return 'ISO 8601 time';
  return shape.type ?? 'any';
}

/** One row for each field, those of nested objects with their path: `Hosts.<name>.Ssh`. */
export function fieldRows(shape: Shape, prefix = ''): string[] {
  return Object.entries(shape.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const optional = shape.required?.includes(name) ? '' : 'optional';
    const fallback = field.default === undefined ? '' : `, default \`${JSON.stringify(field.default)}\``;
    const row = `| \`${path}\` | ${typeOf(field)} | ${optional}${fallback} | ${cell(field.description ?? '')} |`;
    const each = typeof field.additionalProperties === 'object' ? field.additionalProperties : {};
    return [row, ...fieldRows(field, `${path}.`), ...fieldRows(each, `${path}.<name>.`)];
  });
}

export function fieldTable(shape: Shape): string[] {
  return ['| Field | Type | | Meaning |', '|---|---|---|---|', ...fieldRows(shape), ''];
}
