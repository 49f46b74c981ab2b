import type { CommandSpec } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { program } from './parse.ts';

const environment: readonly (readonly [string, string])[] = [
  ['ORATORIO_HOME', 'Where the Hub keeps its state and your configuration; default ~/.oratorio'],
  ['NO_COLOR', 'No colours, also on a terminal'],
];

function table(title: string, rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 4;
  return `  ${title}\n${rows.map(([name, text]) => `    ${name.padEnd(width)}${text}`).join('\n')}\n`;
}

/** Prints the help of one command, or of the program with its exit codes and environment. */
export function printHelp(version: string, command: CommandSpec | undefined): void {
  program(version).help(command?.name ?? '');
  if (command) return;
  const codes = Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning] as const);
  console.log(`${table('Exit codes', codes)}\n${table('Environment', environment)}`);
}
