import * as v from 'valibot';
import type { AppServerClient } from '../../client/index.ts';
import { ownAgent, presetNames, reasoningEfforts } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { inLine } from '../render.ts';
import { commandIn } from '../restores.ts';

/** Agent, model and effort of one attempt; an empty text: the setting of the workspace. */
export interface AttemptChoice {
  readonly agent: string;
  readonly model: string;
  readonly effort: string;
}

const defaultAttempts = 3;
const maxAttempts = 8;
/** Most characters of a refused name in the error. */
const shownChars = 100;

const Effort = v.picklist(reasoningEfforts);
const Agents = v.looseObject({
  agent: v.looseObject({ name: v.string() }),
  agents: v.optional(v.array(v.looseObject({ name: v.string() }))),
});

/** Choices of each attempt: the values of an option are used in turn. @throws CliError usage */
export function choicesOf({ options, lists }: Pick<CommandContext, 'options' | 'lists'>): readonly AttemptChoice[] {
  const agents = (lists['agent'] ?? []).flatMap((each) => listOf(each));
  const models = listOf(options['model']);
  const efforts = listOf(options['effort']);
  if (agents.includes('')) throw usageError('--agent needs a name before and after each comma.', 'race');
  const unknown = efforts.find((effort) => !v.is(Effort, effort));
  if (unknown !== undefined) {
    throw usageError(`--effort must name ${reasoningEfforts.join(', ')}, not ${inLine(unknown)}.`, 'race');
  }
  const count = Number(options['attempts'] ?? (agents.length || defaultAttempts));
  if (!Number.isSafeInteger(count) || count < 1 || count > maxAttempts) {
    throw usageError(`--attempts must be a whole number from 1 to ${maxAttempts}.`, 'race');
  }
  if (agents.length > count) {
    throw usageError(`--agent names ${agents.length} agents for --attempts ${count}: some would do nothing.`, 'race');
  }
  const cycled = (values: readonly string[], index: number) => values[index % Math.max(1, values.length)] ?? '';
  return Array.from({ length: count }, (_, index) => ({
    agent: cycled(agents, index),
    model: cycled(models, index),
    effort: cycled(efforts, index),
  }));
}

/**
 * Checks the names of agents before anything is begun. A program that is missing fails its attempts only.
 *
 * @returns the agent of attempts without a named agent
 * @throws CliError for a name that is unknown, and for any name in a workspace that is not trusted
 */
export async function checkAgents(
  context: CommandContext,
  server: AppServerClient,
  choices: readonly AttemptChoice[],
): Promise<string> {
  const { signal } = context;
  const { agent, agents } = v.parse(Agents, await server.request('agent/read', {}, { signal }));
  const named = choices.map((choice) => choice.agent).filter((name) => name !== '');
  if (named.length === 0) return agent.name;
  if (!agents) {
    throw new CliError(
      'failure',
      'The agent server of this workspace is of an earlier version: its races have one agent.',
      `Run: ${commandIn(context, 'restart')}`,
      'serverTooOld',
    );
  }
  const unknown = named.find((name) => !agents.some((each) => each.name === name));
  if (unknown === undefined) return agent.name;
  const isPreset = presetNames.some((preset) => preset === unknown);
  if (isPreset || agents.length === 1) {
    throw new CliError(
      'failure',
      `${inLine(unknown.slice(0, shownChars))} cannot do turns here: this workspace is not trusted.`,
      'Run: oratorio trust',
      'workspaceRestricted',
    );
  }
  const names = [ownAgent, ...agents.map(({ name }) => name).filter((name) => name !== ownAgent)].map(inLine);
  throw usageError(
    `There is no agent ${inLine(unknown.slice(0, shownChars))}. Agents: ${names.join(', ')}; see: oratorio agents.`,
    'race',
  );
}

const listOf = (value: string | boolean | undefined): readonly string[] =>
  typeof value === 'string' ? value.split(',').map((each) => each.trim()) : [];
