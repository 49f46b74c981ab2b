/** The table of agents in `docs/agents.md`: from the presets and from the agents that `npm run test:agents` drives. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { presetNames, presets } from '../src/external/presets.ts';
import { agentPresets } from '../src/protocol/index.ts';
import { subjects } from '../test/agents/subjects.ts';
import { root } from './toolchain.mjs';

const file = 'docs/agents.md';
const markers = ['<!-- begin table -->', '<!-- end table -->'] as const;

/** The document with its table made anew. @throws when it has no place for the table */
export function agentDocument(): string {
  const text = readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n');
  const [begin, end] = markers.map((marker) => text.indexOf(marker));
  if (begin === undefined || end === undefined || begin < 0 || end < begin) {
    throw new Error(`${file} needs ${markers.join(' and ')}`);
  }
  return `${text.slice(0, begin + markers[0].length)}\n${table()}\n${text.slice(end)}`;
}

function table(): string {
  const tested = new Set(subjects.map(({ name }) => name));
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const head = [
    'Name',
    'Package, version tested',
    'Asks before it acts',
    'Gets our MCP servers',
    'Driven by the test',
    'Log in',
  ];
  return [
    row(head),
    row(head.map(() => '---')),
    ...presetNames.map((name) => {
      const { package: of, tested: version, takesMcpServers, login } = presets[name];
      const words = [agentPresets[name].approvals === 'asks', takesMcpServers, tested.has(name)].map((is) =>
        is ? 'yes' : 'no',
      );
      return row([`\`${name}\``, `\`${of}\` ${version}`, ...words, login]);
    }),
  ].join('\n');
}
