/** A member of a JSON object, as offsets into the text. `valueEnd` is behind the value. */
interface Member {
  readonly key: string;
  readonly start: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

const space = /[ \t\r\n]*/y;
const text = /"(?:[^"\\]|\\.)*"/y;
const word = /[^\s,\]}]+/y;

/** End of the match of a sticky pattern at `at`; `at` itself without a match. */
function endOf(pattern: RegExp, source: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(source) ? pattern.lastIndex : at;
}

/** Where the value that begins at `at` ends. */
function valueEnd(source: string, at: number): number {
  const first = source[at];
  if (first === '"') return endOf(text, source, at);
  if (first !== '{' && first !== '[') return endOf(word, source, at);
  let depth = 0;
  for (let end = at; ; ) {
    const character = source[end];
    if (character === '"') end = endOf(text, source, end);
    else {
      if (character === '{' || character === '[') depth++;
      if (character === '}' || character === ']') depth--;
      end++;
      if (depth === 0) return end;
    }
  }
}

/** The members of the object that begins at `open`, and where its closing brace is. */
function membersOf(source: string, open: number): { readonly members: readonly Member[]; readonly close: number } {
  const members: Member[] = [];
  let at = endOf(space, source, open + 1);
  while (source[at] === '"') {
    const start = at;
    const keyEnd = endOf(text, source, start);
    const valueStart = endOf(space, source, endOf(space, source, keyEnd) + 1);
    const end = valueEnd(source, valueStart);
    members.push({ key: JSON.parse(source.slice(start, keyEnd)), start, valueStart, valueEnd: end });
    at = endOf(space, source, end);
    if (source[at] === ',') at = endOf(space, source, at + 1);
  }
  return { members, close: at };
}

/** One step of indentation as this text has it; two spaces when it does not show. */
const indentOf = (source: string): string => /^[{[]\r?\n([ \t]+)/m.exec(source)?.[1] ?? '  ';

/**
 * Changes one member of an object inside a JSON document and leaves every other character as it is.
 *
 * @param source valid JSON whose top is an object
 * @param path keys from the top to the member; objects on the way are made. Of two equal keys the later one counts.
 * @param value the new value; undefined removes the member
 */
export function setMember(source: string, path: readonly string[], value: unknown): string {
  const newline = source.includes('\r\n') ? '\r\n' : '\n';
  const write = (each: unknown, depth: number): string =>
    JSON.stringify(each, null, indentOf(source)).replaceAll('\n', newline + indentOf(source).repeat(depth));
  let open = endOf(space, source, source.charCodeAt(0) === 0xfeff ? 1 : 0);
  for (const [depth, key] of path.entries()) {
    const { members, close } = membersOf(source, open);
    const member = members.findLast((each) => each.key === key);
    const isLast = depth === path.length - 1;
    if (member && !isLast && source[member.valueStart] === '{') {
      open = member.valueStart;
      continue;
    }
    if (value === undefined) return member && isLast ? without(source, members, member) : source;
    const nested = path.slice(depth + 1).reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    if (member) {
      return source.slice(0, member.valueStart) + write(nested, depth + 1) + source.slice(member.valueEnd);
    }
    const before = members.at(-1)?.valueEnd ?? open + 1;
    const lead = `${members.length > 0 ? ',' : ''}${newline}${indentOf(source).repeat(depth + 1)}`;
    const tail =
      members.length > 0 ? source.slice(before) : newline + indentOf(source).repeat(depth) + source.slice(close);
    return `${source.slice(0, before)}${lead}${JSON.stringify(key)}: ${write(nested, depth + 1)}${tail}`;
  }
  return source;
}

/** The member goes with one of the commas around it. */
function without(source: string, members: readonly Member[], member: Member): string {
  const at = members.indexOf(member);
  const [before, after] = [members[at - 1], members[at + 1]];
  if (before) return source.slice(0, before.valueEnd) + source.slice(member.valueEnd);
  if (after) return source.slice(0, member.start) + source.slice(after.start);
  const open = source.lastIndexOf('{', member.start);
  return `${source.slice(0, open)}{}${source.slice(endOf(space, source, member.valueEnd) + 1)}`;
}
