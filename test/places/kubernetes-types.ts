/** Checks request bodies against the published types of Kubernetes. */
import { readFileSync } from 'node:fs';
import { fixture } from '../hub/harness.ts';

type Type =
  | 'string'
  | 'number'
  | 'boolean'
  | { readonly items?: Type; readonly const?: string; readonly map?: 'string'; readonly ref?: string };

const { definitions } = JSON.parse(readFileSync(fixture('kubernetes/types-1.30.json'), 'utf8')) as {
  definitions: Record<string, Record<string, Type>>;
};

/** Faults of a body; empty: it has only properties of the published type, with values of their types. */
export function faultsOf(value: unknown, type: Type, path = ''): string[] {
  if (typeof type === 'string') return Object.is(typeof value, type) ? [] : [`${path} is not a ${type}`];
  if (type.const !== undefined) return value === type.const ? [] : [`${path} is not ${type.const}`];
  if (type.items !== undefined) {
    const { items } = type;
    return Array.isArray(value)
      ? value.flatMap((each, index) => faultsOf(each, items, `${path}[${index}]`))
      : [`${path} is not a list`];
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} is not an object`];
  if (type.map !== undefined)
    return Object.entries(value).flatMap(([name, each]) => faultsOf(each, 'string', `${path}.${name}`));
  const properties = definitions[type.ref ?? ''] ?? {};
  const missing = Object.keys(properties).filter((name) => !name.endsWith('?') && !(name in value));
  return [
    ...missing.map((name) => `${path}.${name} is missing`),
    ...Object.entries(value).flatMap(([name, each]) => {
      const property = properties[name] ?? properties[`${name}?`];
      return property === undefined ? [`${path}.${name} is unknown`] : faultsOf(each, property, `${path}.${name}`);
    }),
  ];
}
