/** Text as models write it: headings, lists, tables, code, links, sentences. */

const code = [
  '```ts',
  'export function total(prices: readonly number[]): number {',
  '  let sum = 0;',
  '  for (const price of prices) sum += price;',
  '  return sum;',
  '}',
  '```',
].join('\n');
const sentence =
  'The function reads every price once, and **adds** it to the `sum` that it returns at the end, as the [docs](https://example.com/) say. ';
const table = '| Case | Before | After |\n|---|---:|---:|\n| empty | 0 | 0 |\n| three | 6 | 6 |';
const list =
  '- Read `src/total.ts`, which three files import.\n- Ran the tests: *all* passed.\n- Changed nothing else.';

/** One passage of some 900 characters; `number` makes it differ from the others. */
export const passage = (number: number): string =>
  [`## Step ${number}`, sentence.repeat(2).trim(), list, code, table, sentence.trim()].join('\n\n');

/** Passages one after the other, in pieces of some four characters: the tokens of a model. */
export function typedPieces(count: number): readonly string[] {
  let text = '';
  for (let number = 1; text.length < count * 4; number += 1) text += `${passage(number)}\n\n`;
  return Array.from({ length: count }, (_, index) => text.slice(index * 4, index * 4 + 4));
}
