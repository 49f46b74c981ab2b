import { findProgram } from '../agent/index.ts';
import { agentPresets, presetNames } from '../protocol/index.ts';
import { DelegatedAgent } from './delegated-agent.ts';

type AgentOptions = ConstructorParameters<typeof DelegatedAgent>[0];

export interface DelegatedAgentsOptions {
  /** The one that does the turns of the workspace; undefined: our own does. */
  readonly main: DelegatedAgent | undefined;
  /** `Agent` of the configuration: with the kind `oratorio` it is there for sub-agents only. */
  readonly configured: AgentOptions['agent'];
  /** Of any of them but the settings of the agent. */
  readonly common: Omit<AgentOptions, 'agent' | 'observe'>;
  readonly observe: (actor: Parameters<NonNullable<AgentOptions['observe']>>[0], name: string) => void;
}

/** Agents of other makers that threads name: presets, and the one of the configuration. Each is one process, started when it is needed. */
export class DelegatedAgents {
  readonly #options: DelegatedAgentsOptions;
  readonly #byName = new Map<string, DelegatedAgent>();

  constructor(options: DelegatedAgentsOptions) {
    this.#options = options;
  }

  /** Undefined: a name that is neither a preset nor that of the configured agent. */
  of(name: string): DelegatedAgent | undefined {
    const { main, configured, common, observe } = this.#options;
    if (main?.name === name) return main;
    const known = this.#byName.get(name);
    const isPreset = presetNames.some((preset) => preset === name);
    if (known || (!isPreset && configured.Name !== name)) return known;
    const agent = new DelegatedAgent({
      ...common,
      agent: configured.Name === name ? configured : { Name: name, Command: [], Env: {} },
      observe: (actor) => observe(actor, name),
    });
    this.#byName.set(name, agent);
    return agent;
  }

  forget(threadId: string): void {
    this.#options.main?.forget(threadId);
    for (const agent of this.#byName.values()) agent.forget(threadId);
  }

  async close(): Promise<void> {
    const { main } = this.#options;
    await Promise.all([main?.close(), ...[...this.#byName.values()].map((agent) => agent.close())]);
  }
}

/** Names that the model may give to a sub-agent: the configured agent, and presets whose programs are installed. */
export function agentsForTasks({ Name }: Pick<AgentOptions['agent'], 'Name'>, searchPath: string): readonly string[] {
  const isInstalled = (preset: keyof typeof agentPresets) =>
    findProgram(agentPresets[preset].program, searchPath) !== undefined;
  return [...new Set([...(Name === '' ? [] : [Name]), ...presetNames.filter(isInstalled)])];
}
