/** Table of providers and working capabilities in `docs/providers.md`, from the providers and capabilities of the tests. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { knownProviderNames } from '../src/protocol/index.ts';
import { type Capability, capabilities } from '../test/providers/capabilities.ts';
import { subjects } from '../test/providers/subjects.ts';
import { root } from './toolchain.mjs';

const file = 'docs/providers.md';
const markers = ['<!-- begin table -->', '<!-- end table -->'] as const;
const suite = 'test/providers/conformance.test.ts';

/** Returns the document with a new table. @throws when it has no place for the table */
export function providerDocument(): string {
  const text = readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n');
  const [begin, end] = markers.map((marker) => text.indexOf(marker));
  if (begin === undefined || end === undefined || begin < 0 || end < begin) {
    throw new Error(`${file} needs ${markers.join(' and ')}`);
  }
  return `${text.slice(0, begin + markers[0].length)}\n${table()}\n${text.slice(end)}`;
}

function table(): string {
  const columns: readonly Capability[] = Object.values(capabilities);
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    row(['Provider', ...columns.map((_, index) => String(index + 1))]),
    row(['---', ...columns.map(() => '---')]),
    ...subjects.map(({ name }) => row([name, ...columns.map(() => '✓')])),
    '',
    `A ✓ in column *n* of a provider is the test of that number inside of the test with the provider's name, in \`${suite}\`:`,
    '',
    ...columns.map(({ column, test }, index) => `${index + 1}. **${column}**: “${test}”`),
    '',
    `Names that \`oratorio login\` knows: ${knownProviderNames.map((name) => `\`${name}\``).join(', ')}. Each is connected at a real`,
    'terminal by `test/cli/login.test.ts`: “at a terminal, login connects NAME after one request, and the key is not shown”.',
  ].join('\n');
}
