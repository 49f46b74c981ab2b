import type { AgentProblem } from '../agent/index.ts';
import { findProgram } from '../lib/index.ts';
import { type AgentChoice, agentPresets, approvalsOfAgent, ownAgent, presetNames } from '../protocol/index.ts';
import { DelegatedAgent } from './delegated-agent.ts';

type AgentOptions = ConstructorParameters<typeof DelegatedAgent>[0];

export interface DelegatedAgentsOptions {
  /** The one that does the turns of the workspace; undefined: our own does. */
  readonly main: DelegatedAgent | undefined;
  /** `Agent` of the configuration: with the kind `oratorio` it is there for sub-agents only. */
  readonly configured: AgentOptions['agent'];
  /** Options of every agent, without the agent's own settings. */
  readonly common: Omit<AgentOptions, 'agent' | 'observe'>;
  readonly observe: (actor: Parameters<NonNullable<AgentOptions['observe']>>[0], name: string) => void;
}

/** External agents that threads name: presets, and the one of the configuration. Each is one process, started when it is needed. */
export class DelegatedAgents {
  readonly #options: DelegatedAgentsOptions;
  readonly #byName = new Map<string, DelegatedAgent>();

  constructor(options: DelegatedAgentsOptions) {
    this.#options = options;
  }

  /** Undefined: the name is neither a preset nor the configured agent. */
  of(name: string): DelegatedAgent | undefined {
    const { main, configured, common, observe } = this.#options;
    if (main?.name === name) return main;
    const known = this.#byName.get(name);
    if (known || !this.#isKnown(name)) return known;
    const agent = new DelegatedAgent({
      ...common,
      agent: configured.Name === name ? configured : { Name: name, Command: [], Env: {} },
      observe: (actor) => observe(actor, name),
    });
    this.#byName.set(name, agent);
    return agent;
  }

  /** Agents that a thread may name, our own first. */
  choices(isTrusted: boolean): readonly AgentChoice[] {
    const own = { name: ownAgent, isInstalled: true, approvals: 'asks' as const };
    if (!isTrusted) return [own];
    const { main, configured } = this.#options;
    const named = [main?.name ?? '', configured.Name].filter((name) => name !== '' && name !== ownAgent);
    const others = [...new Set([...named, ...presetNames])];
    return [
      own,
      ...others.map((name) => ({
        ...{ name: name.slice(0, 200), isInstalled: this.#isInstalled(name), approvals: approvalsOfAgent(name) },
      })),
    ];
  }

  /** Undefined: it can be started as far as this can be seen without a start. */
  problemOf(name: string): AgentProblem | undefined {
    if (name === ownAgent) return undefined;
    if (!this.#isKnown(name)) return 'unknown';
    return this.#isInstalled(name) ? undefined : 'notInstalled';
  }

  #isKnown(name: string): boolean {
    const { main, configured } = this.#options;
    return main?.name === name || configured.Name === name || presetNames.some((preset) => preset === name);
  }

  #isInstalled(name: string): boolean {
    const { main, configured, common } = this.#options;
    const isConfigured = configured.Name === name || main?.name === name;
    const preset = presetNames.find((each) => each === name);
    const [own] = isConfigured ? configured.Command : [];
    const program = own ?? (preset === undefined ? name : agentPresets[preset].program);
    return isInstalled(program, common.env['PATH']);
  }

  forget(threadId: string): void {
    this.#options.main?.forget(threadId);
    // An agent that threads have named ends with the last of these threads.
    for (const agent of this.#byName.values()) agent.endThread(threadId);
  }

  async close(): Promise<void> {
    const { main } = this.#options;
    await Promise.all([main?.close(), ...[...this.#byName.values()].map((agent) => agent.close())]);
  }
}

/** Looks where the start of an agent looks. */
const isInstalled = (program: string, searchPath = ''): boolean => findProgram(program, searchPath, []) !== undefined;

/** Names that the model may give to a sub-agent: the configured agent, and presets whose programs are installed. */
export function agentsForTasks({ Name }: Pick<AgentOptions['agent'], 'Name'>, searchPath: string): readonly string[] {
  const presets = presetNames.filter((preset) => isInstalled(agentPresets[preset].program, searchPath));
  return [...new Set([...(Name === '' ? [] : [Name]), ...presets])];
}
