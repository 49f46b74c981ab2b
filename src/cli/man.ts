/** Creates the man page from the command table. A release installs it. */
import type { CommandSpec, OptionSpec } from './command.ts';
import { commands } from './commands.ts';
import { exitCodes } from './exit-codes.ts';
import { environment } from './help.ts';

/** Escapes a character beyond ASCII for roff, so the page needs no encoding. */
const named = (character: string): string =>
  `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`;

/** Escapes a text so that roff prints it unchanged, with hyphens that can be copied. */
const plain = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1')
    .replaceAll(/\P{ASCII}/gu, named);

const bold = (text: string): string => `\\fB${plain(text)}\\fR`;
const italic = (text: string): string => `\\fI${plain(text)}\\fR`;
const item = (term: string, text: string): string => `.TP\n${term}\n${plain(text)}`;

function optionItem({ name, alias, value, choices, describe }: OptionSpec): string {
  const names = [...(alias ? [`-${alias}`] : []), `--${name}`].map(bold).join(', ');
  const text = choices ? `${describe} (${choices.join(', ')})` : describe;
  return item(`${names}${value ? ` ${italic(value)}` : ''}`, text);
}

function section({ name, describe, argument, options, examples }: CommandSpec): string {
  const usage = `${bold(`oratorio ${name}`)}${argument ? ` [${italic(argument.name)}]` : ''}${options.length > 0 ? ` [${italic('options')}]` : ''}`;
  const choices = argument?.choices ? [`.PP\nOne of: ${plain(argument.choices.join(', '))}.`] : [];
  return [
    `.SS ${plain(name)}`,
    usage,
    `.PP\n${plain(describe.join(' '))}`,
    ...choices,
    ...options.map(optionItem),
    `.PP\n.nf\n${examples.map((example) => plain(`oratorio ${example}`)).join('\n')}\n.fi`,
  ].join('\n');
}

/** Page `oratorio(1)` in roff. */
export function manPage(version: string): string {
  const variables = environment.map(([name, text]) => item(bold(name), text));
  const codes = Object.values(exitCodes).map(({ code, meaning }) => item(bold(String(code)), meaning));
  return `.TH ORATORIO 1 "" "Oratorio ${plain(version)}" "Oratorio"
.SH NAME
oratorio \\- supervise coding agents, one agent server per workspace
.SH SYNOPSIS
${bold('oratorio')} ${italic('command')} [${italic('argument')}] [${italic('options')}]
.SH DESCRIPTION
Begin with ${bold('oratorio up')}: it finds or starts the Hub, starts the agent server of a workspace, and prints the addresses of its pages.
.SH COMMANDS
${commands.map(section).join('\n')}
.SH ENVIRONMENT
${variables.join('\n')}
.SH EXIT STATUS
${codes.join('\n')}
`;
}
