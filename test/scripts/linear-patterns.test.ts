/** Regular expressions on text from outside take linear time: one of quadratic time lets a short text stop all conversations. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'rolldown/utils';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

/** Sources that read settings of this user, answers and command lines of programs of the user, and nothing else. */
const ownText = /^src\/(?:cli|deploy|addresses|supervise|config|ui|external\/presets)\b/;
/** Lengths of a repeated part, the short ones first: a cubic pattern needs minutes for the long one. */
const lengths = [400, 3_000, 16_000];
/** A linear pattern needs less than a millisecond, a quadratic one hundreds. */
const mostMs = 40;

/** Patterns of a source, with the line of each. */
function patternsOf(file: string): { readonly pattern: RegExp; readonly place: string }[] {
  const source = readFileSync(join(root, file), 'utf8');
  const found: { readonly pattern: RegExp; readonly place: string }[] = [];
  new Visitor({
    Literal(node) {
      if (!('regex' in node)) return;
      const line = source.slice(0, node.start).split('\n').length;
      found.push({ pattern: new RegExp(node.regex.pattern, node.regex.flags), place: `${file}:${line}` });
    },
  }).visit(parseSync(file, source).program);
  return found;
}

/** Texts of one sign or word of the pattern, many times, behind a beginning that it may match, with an end that it does not. */
function* texts({ source }: RegExp): Generator<string> {
  const plain = source.replaceAll(/\\([^\w])/g, '$1');
  const words = plain.match(/[A-Za-z][A-Za-z -]{2,}|[<:/=]{2,}/g) ?? [];
  const parts = new Set([
    ...plain.replaceAll(/\w/g, ''),
    ...words,
    'a',
    'A',
    '0',
    ' ',
    '\t',
    '\n',
    '\r',
    '!',
    '.',
    '=',
    '/',
  ]);
  const beginnings = new Set(['', 'a', 'a=', 'a: ', '"', '<a', '[', ...words]);
  for (const length of lengths) {
    for (const beginning of beginnings)
      for (const part of parts) yield `${beginning}${part.repeat(Math.ceil(length / part.length))}\0`;
  }
}

/** Processor time of a search: the work of other processes does not count. */
function msOf(pattern: RegExp, text: string): number {
  const begun = process.cpuUsage();
  text.search(pattern);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1_000;
}

/** Text that is slow in every search, so that one garbage collection does not count. */
function slowText(pattern: RegExp): string | undefined {
  for (const text of texts(pattern)) if ([1, 2, 3].every(() => msOf(pattern, text) > mostMs)) return text;
  return undefined;
}

t.test('a quadratic pattern is found: the control', async (t) => {
  t.ok(slowText(/[.,]+$/));
  t.ok(slowText(/^([a-z]+)\s*(?:=\s*([^"]*))?\s*$/));
  t.notOk(slowText(/(?<![.,])[.,]+$/));
});

t.test('no pattern on text from outside needs more than linear time', async (t) => {
  const files = globSync(['src/**/*.ts', 'machines/**/*.ts'], { cwd: root }).filter((file) => !ownText.test(file));
  const patterns = files.flatMap(patternsOf);
  t.ok(patterns.length > 400, `${patterns.length} patterns`);
  const slow = patterns.flatMap(({ pattern, place }) => {
    const text = slowText(pattern);
    return text === undefined ? [] : `${place} ${pattern} ${JSON.stringify(`${text.slice(0, 40)}…${text.slice(-20)}`)}`;
  });
  t.same(slow, []);
});
