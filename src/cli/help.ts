import type { CommandSpec } from './command.ts';
import { commands } from './commands.ts';
import { exitCodes } from './exit-codes.ts';
import { program, subcommandsOf } from './parse.ts';

export const environment: readonly (readonly [string, string])[] = [
  ['ORATORIO_HOME', 'Where the Hub keeps its state and your configuration; default ~/.oratorio'],
  ['NO_COLOR', 'No colours, also on a terminal'],
];

function table(title: string, rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 4;
  return `  ${title}\n${rows.map(([name, text]) => `    ${name.padEnd(width)}${text}`).join('\n')}\n`;
}

/** Subcommands with their summaries; empty for a command without any. */
function groupRows(group: string): (readonly [string, string])[] {
  const names = subcommandsOf(group).map((name) => `${group} ${name}`);
  return commands
    .filter(({ name }) => names.includes(name))
    .map(({ name, describe }) => [name, describe[0] ?? ''] as const);
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
  program(version).help(command?.name ?? '');
  if (command) {
    const rows = groupRows(command.name);
    if (rows.length > 0) console.log(table('Subcommands', rows));
    return;
  }
  const codes = Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning] as const);
  console.log(`${table('Exit codes', codes)}\n${table('Environment', environment)}`);
}
