/** The tables of `docs/agents.md`: from the presets, and from the results of `npm run test:agents`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { presetNames, presets } from '../src/external/presets.ts';
import { registryAgents, registryCommand, registryDate } from '../src/external/registry.ts';
import { type Capability, type Results, readResults, victims } from '../test/agents/results.ts';
import { packagesOf, subjects } from '../test/agents/subjects.ts';
import { root } from './toolchain.mjs';

const file = 'docs/agents.md';

const capabilityHeads = {
  asks: 'Asks before it acts',
  takesMcpServers: 'Gets our MCP servers',
  canBeInterrupted: 'Ends at an interrupt',
  seesImages: 'Sees images ¹',
  remembers: 'Remembers after a restart',
  resumes: 'Continues a killed turn ²',
  reportsTokens: 'Reports tokens',
} as const satisfies Readonly<Record<Capability, string>>;
const capabilityNames = Object.keys(capabilityHeads) as Capability[];

/** Returns the document with new tables. @throws when it has no place for one of them */
export function agentDocument(): string {
  const text = readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n');
  const results = currentResults();
  const tables = { table: table(), registry: registry(), capabilities: capabilities(results), kills: kills(results) };
  return Object.entries(tables).reduce((made, [name, rows]) => replaced(made, name, rows), text);
}

/** @throws when a version was not tested: its results are those of another one */
function currentResults(): Results {
  const results = readResults();
  for (const subject of subjects) {
    const found = results[subject.name]?.packages;
    if (found !== undefined && found !== packagesOf(subject).join(' '))
      throw new Error(`${subject.name} was tested as ${found}; run: npm run test:agents -- ${subject.name}`);
  }
  return results;
}

function replaced(text: string, name: string, rows: string): string {
  const markers = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`] as const;
  const [begin, end] = markers.map((marker) => text.indexOf(marker));
  if (begin === undefined || end === undefined || begin < 0 || end < begin) {
    throw new Error(`${file} needs ${markers.join(' and ')}`);
  }
  return `${text.slice(0, begin + markers[0].length)}\n${rows}\n${text.slice(end)}`;
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const lines = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');
const yesOrNo = (is: boolean | undefined): string => {
  if (is === undefined) return '–';
  return is ? 'yes' : 'no';
};

function table(): string {
  return lines(
    ['Name', 'Package, version tested', 'Log in'],
    presetNames.map((name) => {
      const { package: of, tested: version, login } = presets[name];
      return [`\`${name}\``, `\`${of}\` ${version}`, login];
    }),
  );
}

/** Table of the agents that were not tried. */
function registry(): string {
  const rows = registryAgents.map((agent) => {
    const { id, name, site, license } = agent;
    return [`\`${id}\``, `[${name}](${site})`, `\`${registryCommand(agent).join(' ')}\``, license, 'not tried'];
  });
  return `As of ${registryDate}:\n\n${lines(['Name', 'Agent', 'Command', 'Licence', 'Tried'], rows)}`;
}

/** Table of the capabilities; only a test's finding fills a cell. */
function capabilities(results: Results): string {
  return lines(
    ['Name', ...Object.values(capabilityHeads)],
    presetNames.map((name) => {
      const found = results[name]?.capabilities;
      return [`\`${name}\``, ...capabilityNames.map((capability) => yesOrNo(found?.[capability]))];
    }),
  );
}

/** Rounds of each kill. A count is there only for kills after which nothing was left or lost. */
function kills(results: Results): string {
  return lines(
    ['Name', ...victims],
    presetNames
      .filter((name) => results[name]?.kills)
      .map((name) => [
        `\`${name}\``,
        ...victims.map((victim) => {
          const found = results[name]?.kills?.[victim];
          return found ? `${found.rounds} (${found.processes} processes, ${found.items} items)` : '–';
        }),
      ]),
  );
}
