import * as v from 'valibot';
import {
  createBuiltinTools,
  describeRule,
  parseScript,
  placeRules,
  RuleBook,
  readSavedRules,
  savedRulesFile,
  writeSavedRules,
} from '../../agent/index.ts';
import { PermissionRule, workspaceStateDirectory } from '../../config/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { effective } from '../model/index.ts';
import { columns } from '../render.ts';

/** `oratorio rules` */
export async function list(context: CommandContext): Promise<number> {
  const { output } = context;
  const { config, stateDirectory } = placeOf(context);
  const saved = savedRules(stateDirectory);
  const configured = config.Permissions.Rules;
  if (output.json) output.document({ configured, saved, file: savedRulesFile(stateDirectory) });
  const rows = [
    ...saved.map((rule, index) => [String(index + 1), describeRule(rule), 'saved for this workspace']),
    ...configured.map((rule) => ['', describeRule(rule), 'Permissions.Rules']),
    ['', 'allow commands that only read in the workspace', 'built in'],
  ];
  for (const row of columns(['NO', 'RULE', 'FROM'], rows, output)) output.line(row);
  return exitCodes.ok.code;
}

/** `oratorio rules add` */
export async function add(context: CommandContext): Promise<number> {
  const { output, argument, options } = context;
  const { stateDirectory } = placeOf(context);
  const isPattern = options['pattern'] === true;
  const parsed = v.safeParse(PermissionRule, {
    Tool: options['tool'] ?? 'Exec',
    ...(argument !== undefined && { [isPattern ? 'Pattern' : 'Prefix']: isPattern ? argument : argument.split(/\s+/) }),
    ...(options['network'] === true && { Network: true }),
    Decision: options['decision'] ?? 'allow',
  });
  if (!parsed.success) throw usageError(`It must be ${parsed.issues[0].message}.`, 'rules add');
  const rules = [...savedRules(stateDirectory), parsed.output];
  writeSavedRules(stateDirectory, rules);
  if (output.json) output.document({ rule: parsed.output, number: rules.length });
  output.line(`Saved as rule ${rules.length}: ${describeRule(parsed.output)}`);
  return exitCodes.ok.code;
}

/** `oratorio rules remove` */
export async function remove(context: CommandContext): Promise<number> {
  const { output, argument } = context;
  const { stateDirectory } = placeOf(context);
  const rules = savedRules(stateDirectory);
  const number = Number(argument);
  const rule = rules[number - 1];
  if (!Number.isInteger(number) || !rule) {
    throw usageError(`There is no saved rule ${argument ?? ''}; there are ${rules.length}.`, 'rules remove');
  }
  writeSavedRules(stateDirectory, rules.toSpliced(number - 1, 1));
  if (output.json) output.document({ removed: rule });
  output.line(`Removed: ${describeRule(rule)}`);
  return exitCodes.ok.code;
}

/** `oratorio rules test` */
export async function test(context: CommandContext): Promise<number> {
  const { output, argument: command, home, env } = context;
  if (command === undefined) throw usageError('rules test needs a command.', 'rules test');
  const { config, stateDirectory, workspacePath } = placeOf(context);
  const { BlockedPaths: blockedPaths, Rules: configured } = config.Permissions;
  const book = new RuleBook({
    configured,
    stateDirectory,
    places: placeRules({ blockedPaths, home, environment: env }),
  });
  const exec = createBuiltinTools({
    ...{ tools: config.Tools, blockedPaths, passEnvironment: [], secrets: [], environment: env, home },
  }).find(({ name }) => name === 'Exec');
  const parsed = exec?.parse({ command });
  if (!exec || !parsed?.ok) throw usageError(parsed?.ok === false ? parsed.error : 'There is no Exec.', 'rules test');
  const { decision, reason } = await book.judge(exec, parsed.args, { workspacePath });
  const { kind, commands } = await parseScript(command);
  const shown = decision ?? 'ask';
  if (output.json) output.document({ decision: shown, reason, kind, commands });
  output.line(`${output.colors.bold(shown)}: ${reason}`);
  for (const words of commands) output.line(`  ${words.map((word) => JSON.stringify(word)).join(' ')}`);
  return exitCodes.ok.code;
}

/** @throws CliError workspaceNotFound */
function placeOf(context: CommandContext) {
  const { config, workspace } = effective(context);
  if (workspace === undefined) {
    throw new CliError('workspaceNotFound', 'This is not a workspace.', 'Make it one with: oratorio init');
  }
  return { config, workspacePath: workspace, stateDirectory: workspaceStateDirectory(context.home, workspace) };
}

/** @throws CliError for a damaged file */
function savedRules(stateDirectory: string): readonly PermissionRule[] {
  const { rules, problem } = readSavedRules(stateDirectory);
  if (problem !== undefined)
    throw new CliError('failure', `${problem}.`, 'Repair or remove the file.', 'invalidConfig');
  return rules;
}
