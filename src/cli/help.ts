import type { CommandSpec } from './command.ts';
import { commands } from './commands.ts';
import { exitCodes } from './exit-codes.ts';
import { program, subcommandsOf } from './parse.ts';

/** First words of the commands by purpose, in the order of the help of the program. */
export const helpGroups: readonly (readonly [title: string, words: readonly string[]])[] = [
  [
    'Workspaces',
    ['up', 'list', 'inspect', 'doctor', 'init', 'trust', 'restart', 'stop', 'ensure', 'place', 'logs', 'events'],
  ],
  ['Conversations', ['chat', 'exec', 'inbox', 'diff', 'undo', 'fork', 'merge', 'race', 'threads', 'context', 'move']],
  ['Model, agents and rules', ['login', 'model', 'agents', 'rules']],
  ['Automations', ['cron', 'task']],
  ['Hub and machines', ['hub', 'hosts', 'service', 'app-server']],
  ['APIs and editors', ['api', 'gateway', 'dashboard', 'acp', 'mcp', 'tokens']],
  ['Reviews', ['review', 'backend', 'server']],
  ['Program', ['self-update', 'completion', 'machines', 'version']],
];

export const environment: readonly (readonly [string, string])[] = [
  ['ORATORIO_HOME', 'Where the Hub keeps its state and your configuration; default ~/.oratorio'],
  ['NO_COLOR', 'No colours, also on a terminal'],
];

const widthOf = (rows: readonly (readonly [string, string])[]): number =>
  Math.max(...rows.map(([name]) => name.length)) + 4;

function table(title: string, rows: readonly (readonly [string, string])[], width = widthOf(rows)): string {
  return `  ${title}\n${rows.map(([name, text]) => `    ${name.padEnd(width)}${text}`).join('\n')}\n`;
}

/** Subcommands with their summaries; empty for a command without any. */
function groupRows(group: string): (readonly [string, string])[] {
  const names = subcommandsOf(group).map((name) => `${group} ${name}`);
  return commands
    .filter(({ name }) => names.includes(name))
    .map(({ name, describe }) => [name, describe[0] ?? ''] as const);
}

/** Row of a first word: a command, or the names of its subcommands. */
function wordRow(word: string): readonly [string, string] {
  const own = commands.find(({ name }) => name === word);
  const below = [...new Set(subcommandsOf(word).map((name) => name.split(' ')[0]))];
  return [below.length > 0 ? `${word} …` : word, own?.describe[0] ?? `Commands: ${below.join(', ')}.`];
}

function programHelp(): string {
  const groups = helpGroups.map(([title, words]) => [title, words.map(wordRow)] as const);
  const width = widthOf(groups.flatMap(([, rows]) => rows));
  const codes = Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning] as const);
  return [
    '\n  A supervisor of coding agents: one agent server per workspace, every one a statechart you can watch.',
    '  Begin with: oratorio up\n\n  Usage\n    $ oratorio <command> [options]\n',
    ...groups.map(([title, rows]) => table(title, rows, width)),
    '  Options and subcommands of a command (… has some)\n    $ oratorio hosts --help\n',
    table('Exit codes', codes),
    table('Environment', environment),
  ].join('\n');
}

/** Prints the help of one command, of a group, or of the program with its exit codes and environment. */
export function printHelp(version: string, command: CommandSpec | undefined, group?: string): void {
  if (command === undefined && group !== undefined) {
    const rows = groupRows(group);
    console.log(`\n  Usage\n    $ oratorio ${group} <command> [options]\n`);
    console.log(table('Available Commands', rows));
    console.log(
      `  For more info, run any command with the \`--help\` flag\n    $ oratorio ${rows[0]?.[0] ?? group} --help\n`,
    );
    return;
  }
  if (command === undefined) {
    console.log(programHelp());
    return;
  }
  program(version).help(command.name);
  const rows = groupRows(command.name);
  if (rows.length > 0) console.log(table('Subcommands', rows));
}
