/** Changes one place of a JSON document and no other character. */
import { type Node, parseTree } from 'jsonc-parser';

/** Keys from the top of a document to a value. */
type Path = readonly string[];

/** The layout of a document: line ends and one step of indentation, two spaces when it does not show. */
function layoutOf(source: string): { readonly newline: string; readonly indent: string } {
  const newline = source.includes('\r\n') ? '\r\n' : '\n';
  return { newline, indent: /^\ufeff?[{[]\r?\n([ \t]+)/.exec(source)?.[1] ?? '  ' };
}

/** The text of a value that stands `depth` steps of indentation deep. */
function textOf(value: unknown, source: string, depth: number): string {
  const { newline, indent } = layoutOf(source);
  return JSON.stringify(value, null, indent).replaceAll('\n', newline + indent.repeat(depth));
}

/** A property of an object: its nodes are the key and the value. Of two equal keys the later one counts, as in `JSON.parse`. */
function propertyOf(object: Node, key: string): { readonly property: Node; readonly value: Node } | undefined {
  const property = object.children?.findLast(({ children: [name] = [] }) => name?.value === key);
  const value = property?.children?.[1];
  return property && value && { property, value };
}

const endOf = ({ offset, length }: Node): number => offset + length;

const replace = (source: string, start: number, end: number, text: string): string =>
  source.slice(0, start) + text + source.slice(end);

/**
 * Changes one member of an object inside a JSON document.
 *
 * @param source valid JSON whose top is an object
 * @param path keys from the top to the member; objects on the way are made
 * @param value the new value; undefined removes the member
 */
export function setMember(source: string, path: Path, value: unknown): string {
  let object = parseTree(source);
  for (const [depth, key] of path.entries()) {
    if (object?.type !== 'object') return source;
    const found = propertyOf(object, key);
    const isLast = depth === path.length - 1;
    if (found && !isLast && found.value.type === 'object') {
      object = found.value;
      continue;
    }
    if (value === undefined) return found && isLast ? withoutProperty(source, object, found.property) : source;
    const nested = path.slice(depth + 1).reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    const text = textOf(nested, source, depth + 1);
    if (found) return replace(source, found.value.offset, endOf(found.value), text);
    return withProperty(source, object, depth, `${JSON.stringify(key)}: ${text}`);
  }
  return source;
}

/**
 * Line of a value inside a JSON document, from 1; of the nearest value around it when it is missing. Keys match in any case.
 *
 * @param source valid JSON
 * @param path keys and indices from the top to the value
 */
export function lineOf(source: string, path: Path): number {
  let node = parseTree(source);
  let offset = node?.offset ?? 0;
  for (const key of path) {
    const property = node?.children?.findLast(
      ({ children: [name] = [] }) => String(name?.value).toLowerCase() === key.toLowerCase(),
    );
    const next = node?.type === 'array' ? node.children?.[Number(key)] : property;
    if (!next) break;
    ({ offset } = next);
    node = node?.type === 'array' ? next : next.children?.[1];
  }
  return source.slice(0, offset).split('\n').length;
}

/** Adds a property at the end of an object, on a line of its own. */
function withProperty(source: string, object: Node, depth: number, text: string): string {
  const { newline, indent } = layoutOf(source);
  const lead = newline + indent.repeat(depth + 1);
  const last = object.children?.at(-1);
  if (last) return replace(source, endOf(last), endOf(last), `,${lead}${text}`);
  return replace(source, object.offset, endOf(object), `{${lead}${text}${newline}${indent.repeat(depth)}}`);
}

/** Removes a property with one of the commas around it. */
function withoutProperty(source: string, object: Node, property: Node): string {
  const all = object.children ?? [];
  const at = all.indexOf(property);
  const [before, after] = [all[at - 1], all[at + 1]];
  if (before) return replace(source, endOf(before), endOf(property), '');
  if (after) return replace(source, property.offset, after.offset, '');
  return replace(source, object.offset, endOf(object), '{}');
}

/**
 * Adds an element to the end of a list inside a JSON document. A list that is missing, empty or another value is replaced by
 * one of this element.
 *
 * @param source valid JSON whose top is an object
 * @param path keys from the top to the list
 */
export function appendElement(source: string, path: Path, element: unknown): string {
  let node = parseTree(source);
  for (const key of path) node = node?.type === 'object' ? propertyOf(node, key)?.value : undefined;
  const [first] = node?.children ?? [];
  const last = node?.children?.at(-1);
  if (node?.type !== 'array' || !first || !last) return setMember(source, path, [element]);
  // A new line of a list gets the line end and indentation of the first one.
  const [line] = /\r?\n[ \t]*$/.exec(source.slice(node.offset + 1, first.offset)) ?? [];
  const text =
    line === undefined
      ? ` ${JSON.stringify(element)}`
      : line + JSON.stringify(element, null, line.includes('\t') ? '\t' : '  ').replaceAll('\n', line);
  return replace(source, endOf(last), endOf(last), `,${text}`);
}
