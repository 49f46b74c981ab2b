import { RequestError, type SessionConfigOption, type SessionModeState } from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { type AppServerClient, JsonRpcError } from '../client/index.ts';
import { AgentInUse, AgentMode, AgentOption, ownAgent, reasoningEfforts } from '../protocol/index.ts';
import { settingsOf } from './modes.ts';

type Config = Readonly<Record<string, unknown>>;

/** Choices that the agent of a thread offers. */
export interface Offered {
  /** Name of an external agent; undefined: the built-in agent runs the turns. */
  readonly agent: string | undefined;
  readonly models: readonly string[];
  readonly agentModes: readonly AgentMode[];
  /** Further choices of an external agent. */
  readonly options: readonly AgentOption[];
}

export const nothingOffered: Offered = { agent: undefined, models: [], agentModes: [], options: [] };

const AgentResult = v.looseObject({
  agent: v.pick(AgentInUse, ['kind', 'name']),
  modes: v.optional(v.array(AgentMode), []),
  options: v.optional(v.array(AgentOption), []),
});
const ModelsResult = v.looseObject({ models: v.optional(v.array(v.looseObject({ id: v.string() })), []) });

/**
 * Reads the choices that the agent of a thread offers. The models of the built-in agent come from its provider, which may take seconds.
 *
 * @throws AppServerConnectionError
 */
export async function readOffered(client: AppServerClient, config: Config, withModels: boolean): Promise<Offered> {
  const main = await ask(client, 'agent/read', AgentResult);
  const isMain = config['agent'] === undefined || config['agent'] === main?.agent.name;
  // An agent that only one thread names lists no choices.
  if (!isMain && config['agent'] !== ownAgent) return { ...nothingOffered, agent: String(config['agent']) };
  const isOther = isMain && main?.agent.kind === 'acp';
  const isListed = isMain && (isOther || withModels);
  const models = isListed ? await ask(client, 'model/list', ModelsResult) : undefined;
  return {
    agent: isOther ? main.agent.name : undefined,
    models: models?.models.map(({ id }) => id) ?? [],
    agentModes: isOther ? main.modes : [],
    options: isOther ? main.options : [],
  };
}

/** Undefined: an older server does not know the method, or answers in another way. */
async function ask<S extends v.GenericSchema>(client: AppServerClient, method: string, schema: S) {
  try {
    const answer = v.safeParse(schema, await client.request(method, {}));
    return answer.success ? answer.output : undefined;
  } catch (error) {
    if (error instanceof JsonRpcError) return undefined;
    throw error;
  }
}

/** Value of an option that leaves the choice to the configuration, or to the agent. A thread cannot return to it. */
const unset = 'configured';

interface Choice {
  readonly id: string;
  /** Setting of the thread. */
  readonly key: 'model' | 'effort' | 'agentMode';
  readonly category: string;
  readonly name: string;
  readonly values: readonly { readonly value: string; readonly name: string }[];
}

function choicesOf({ agent, models, agentModes }: Offered, config: Config): readonly Choice[] {
  const named = (values: readonly string[]) => values.map((value) => ({ value, name: value }));
  const choices: readonly Choice[] = [
    { id: 'model', key: 'model', category: 'model', name: 'Model', values: named(models) },
    { id: 'effort', key: 'effort', category: 'thought_level', name: 'Effort', values: named(reasoningEfforts) },
    {
      id: 'agent_mode',
      key: 'agentMode',
      category: '_agent_mode',
      name: `Mode of ${agent}`,
      values: agentModes.map(({ id, name }) => ({ value: id, name })),
    },
  ];
  return choices.flatMap((choice) => {
    const present = presentOf(config, choice);
    const listed = choice.values.filter(({ value }) => value !== unset);
    if (present === unset) {
      const values = [{ value: unset, name: 'As configured' }, ...listed];
      return listed.length === 0 ? [] : [{ ...choice, values }];
    }
    const isListed = listed.some(({ value }) => value === present);
    return [{ ...choice, values: isListed ? listed : [...listed, ...named([present])] }];
  });
}

const presentOf = (config: Config, { key }: Choice): string => {
  const present = config[key];
  return typeof present === 'string' ? present : unset;
};

const AgentOptions = v.fallback(v.record(v.string(), v.union([v.string(), v.boolean()])), {});

/** Id of an agent's option in the editor, which differs from all ids of our options. */
const agentOptionPrefix = 'agent_option_';

/** Other options of an external agent. An editor without switches shows them as selections. */
function agentOptionsOf(config: Config, { options }: Offered, hasSwitches: boolean): SessionConfigOption[] {
  const chosen = v.parse(AgentOptions, config['agentOptions']);
  return options.map(({ id, name, description, category, value, values = switchValues }): SessionConfigOption => {
    const current = chosen[id] ?? value;
    const about = {
      ...{ id: `${agentOptionPrefix}${id}`, name },
      ...(description !== undefined && { description }),
      ...(category !== undefined && { category }),
    };
    if (typeof current === 'boolean' && hasSwitches) return { ...about, type: 'boolean', currentValue: current };
    const selectable = values.map((each) => ({ value: each.id, name: each.name }));
    return { ...about, type: 'select', currentValue: String(current), options: selectable };
  });
}

const switchValues = [
  { id: 'true', name: 'On' },
  { id: 'false', name: 'Off' },
];

/** Options of a session: its mode and the options of the thread's agent. @param hasSwitches the editor shows boolean options */
export function configOptionsOf(
  modes: SessionModeState,
  config: Config,
  offered: Offered,
  hasSwitches: boolean,
): SessionConfigOption[] {
  const mode: SessionConfigOption = {
    ...{ id: 'mode', category: 'mode', name: 'Mode', type: 'select', currentValue: modes.currentModeId },
    options: modes.availableModes.map(({ id, name, description }) => ({
      ...{ value: id, name },
      ...(description !== undefined && { description }),
    })),
  };
  const others = choicesOf(offered, config).map((choice): SessionConfigOption => {
    const { id, category, name, values } = choice;
    return { id, category, name, type: 'select', currentValue: presentOf(config, choice), options: [...values] };
  });
  return [mode, ...others, ...agentOptionsOf(config, offered, hasSwitches)];
}

/** Settings of a thread with an option set. @throws RequestError -32602 for one that is not offered */
export function withOption(config: Config, id: string, value: unknown, offered: Offered): Config {
  if (id.startsWith(agentOptionPrefix))
    return withAgentOption(config, id.slice(agentOptionPrefix.length), value, offered);
  if (typeof value !== 'string')
    throw RequestError.invalidParams({ configId: id }, 'this option takes one of its listed values');
  if (id === 'mode') return { ...config, ...settingsOf(value) };
  const choices = choicesOf(offered, config);
  const choice = choices.find((each) => each.id === id);
  if (!choice) {
    const ids = ['mode', ...choices.map((each) => each.id)];
    throw RequestError.invalidParams({ configId: id }, `there are the options ${ids.join(', ')}`);
  }
  if (!choice.values.some((each) => each.value === value)) {
    throw RequestError.invalidParams({ value }, `${choice.name} has no such value`);
  }
  return value === unset ? config : { ...config, [choice.key]: value };
}

function withAgentOption(config: Config, id: string, value: unknown, { options }: Offered): Config {
  const option = options.find((each) => each.id === id);
  if (!option) throw RequestError.invalidParams({ configId: id }, 'the agent offers no such option');
  const chosen = option.values ? value : booleanOf(value);
  const isOffered = option.values ? option.values.some((each) => each.id === chosen) : typeof chosen === 'boolean';
  if (!isOffered) throw RequestError.invalidParams({ value }, `${option.name} has no such value`);
  return { ...config, agentOptions: { ...v.parse(AgentOptions, config['agentOptions']), [id]: chosen } };
}

/** Value of a switch, even if the editor shows it as a selection. */
const booleanOf = (value: unknown): unknown =>
  value === 'true' || value === 'false' ? value === 'true' : typeof value === 'boolean' ? value : undefined;
